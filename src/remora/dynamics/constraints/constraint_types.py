"""The table of constraint types: reaction wrenches, their rates, and closest joint coordinates.

A constraint of a joint type allows the motion of that type between its two frames. With x the pose
of the child's constraint frame in the parent's, and ξ its twist relative to the parent in the
child's axes, a row gives a basis V of the wrenches [f, τ] that the constraint exerts on the child:

    constraint at velocity level:  Vᵀ ξˢ = 0,    rate of V in the child's axes: V̇ = rate(x, ξ).

For all joint types but `universal`, V is constant in the child's frame [VT18, Table 4]. The force
of a rod is along the rod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion, vector
from remora.algebra.array_ops import (
    Array,
    arctan2,
    asarray,
    concatenate,
    cos,
    is_symbolic,
    less,
    select,
    sin,
    sqrt,
)
from remora.algebra.screw import Transform
from remora.errors import InvalidValue, UnknownName
from remora.model.constraint import GEAR, ROD, Constraint
from remora.model.joint_types import lookup
from remora.model.robot import Joint, Robot


class ConstraintType(NamedTuple):
    """A row of the table.

    Attributes:
        equations: their number, m_c.
        wrenches: (constraint, X) -> V `(..., 6, m_c)`, child's frame, for X the child's frame in
            the parent's.
        rate: (constraint, X, ξ) -> V̇ `(..., 6, m_c)`; None where V is constant.
        bend: (constraint, X, ξ, η) -> change of that V̇ at fixed ξ when the child's frame moves
            along the twist η; None where V is constant.
        residual: (constraint, x) -> φ `(..., m_c)` for the pose x `(..., 8)`, m or rad.
    """

    equations: int
    wrenches: Callable[[Constraint, Transform], Array]
    rate: Callable[[Constraint, Transform, Array], Array] | None
    residual: Callable[[Constraint, Array], Array]
    bend: Callable[[Constraint, Transform, Array, Array], Array] | None = None


def constraint_type(constraint: Constraint) -> ConstraintType:
    """Return the row of a constraint between two frames; a gear has none."""
    if constraint.kind not in CONSTRAINT_TYPES:
        raise UnknownName("kind of constraint", constraint.kind, [*CONSTRAINT_TYPES, GEAR])
    return CONSTRAINT_TYPES[constraint.kind]


def count(constraint: Constraint) -> int:
    """Return the number of equations of a constraint."""
    return 1 if constraint.kind == GEAR else constraint_type(constraint).equations


def units(robot: Robot, constraint: Constraint) -> list[str]:
    """Return the unit of every equation of a constraint: m or rad."""
    if constraint.kind == GEAR:
        freedom = lookup(robot.joints[constraint.child].kind).freedoms[0]
        return [freedom.coordinate_unit]
    V = constraint_type(constraint).wrenches(constraint, Transform(np.eye(3), 1e3 * np.ones(3)))
    return ["m" if np.any(V[:3, i] != 0.0) else "rad" for i in range(V.shape[-1])]


# Joint types --------------------------------------------------------------------------------------

_Coordinates = Callable[[Constraint, Array], Array]


def _as_joint(constraint: Constraint) -> Joint:
    """Return the constraint where the table of joint types reads only axes and pitch."""
    return cast(Joint, constraint)


def _joint_row(kind: str, closest: _Coordinates) -> ConstraintType:
    row = lookup(kind)

    def wrenches(constraint: Constraint, X: Transform) -> Array:
        return row.reactions(_as_joint(constraint), np.zeros(row.nq))

    def residual(constraint: Constraint, x: Array) -> Array:
        """Return the part of the error pose(c)* x, c the closest coordinates, that V resists."""
        c = closest(constraint, x)
        joint = _as_joint(constraint)
        error = dual_quaternion.mul(dual_quaternion.conjugate(row.pose(joint, c)), x)
        turn = 2.0 * quaternion.log(pose.rotation(error))
        screw_error = concatenate([pose.translation(error), turn])  # as a wrench: swapped
        return vector.apply(vector.transpose(row.reactions(joint, c)), screw_error)

    return ConstraintType(6 - row.nv, wrenches, None, residual)


def _no_coordinates(constraint: Constraint, x: Array) -> Array:
    return np.zeros((*x.shape[:-1], 0))


def _angle(axis: Array, x: Array) -> Array:
    """Return the rotation about an axis `(..., 1)`: the twist of a swing-twist decomposition."""
    return 2.0 * arctan2(vector.dot(x[..., 1:4], axis), x[..., :1])


def _travel(axis: Array, x: Array) -> Array:
    return vector.dot(pose.translation(x), axis)


def _revolute(constraint: Constraint, x: Array) -> Array:
    return _angle(constraint.axes[0], x)


def _prismatic(constraint: Constraint, x: Array) -> Array:
    return _travel(constraint.axes[0], x)


def _helical(constraint: Constraint, x: Array) -> Array:
    """Return the angle, of all its full turns the one whose travel is closest."""
    axis, pitch = constraint.axes[0], asarray(constraint.pitch)[..., None]
    angle = _angle(axis, x)
    flat = less(pitch * pitch, 1e-300)
    by_travel = _travel(axis, x) / select(flat, 1.0, pitch)
    difference = by_travel - angle
    return select(flat, angle, by_travel - arctan2(sin(difference), cos(difference)))


def _cylindrical(constraint: Constraint, x: Array) -> Array:
    axis = constraint.axes[0]
    return concatenate([_angle(axis, x), _travel(axis, x)])


def _universal(constraint: Constraint, x: Array) -> Array:
    """Return the angles at which the first axis, then the second, are directed as in x."""
    a, b = constraint.axes
    r = pose.rotation(x)
    first = _angle_about(a, b, quaternion.rotate(r, b))
    second = _angle_about(b, quaternion.rotate(quaternion.conjugate(r), a), a)
    return concatenate([first, second])


def _angle_about(axis: Array, before: Array, after: Array) -> Array:
    """Return the rotation about an axis `(..., 1)` that turns one direction to another."""
    normal = vector.cross(axis, before)
    return arctan2(
        vector.dot(after, normal),
        vector.dot(after, before) - vector.dot(after, axis) * vector.dot(before, axis),
    )


def _planar(constraint: Constraint, x: Array) -> Array:
    e1, e2, n = constraint.axes
    p = pose.translation(x)
    return concatenate([vector.dot(p, e1), vector.dot(p, e2), _angle(n, x)])


def _cartesian(constraint: Constraint, x: Array) -> Array:
    return pose.translation(x)


def _spherical(constraint: Constraint, x: Array) -> Array:
    return pose.rotation(x)


# Reactions that move in the child's frame ---------------------------------------------------------


def _universal_wrenches(constraint: Constraint, X: Transform) -> Array:
    """Return all forces, and the torque along the normal a × b of both axes, child's frame."""
    a, b = constraint.axes
    seen = vector.apply(vector.transpose(X.R), a)
    return _with_forces(vector.cross(seen, b) / np.linalg.norm(np.cross(a, b)))


def _universal_rate(constraint: Constraint, X: Transform, xi: Array) -> Array:
    """Return the rate of the normal: the first axis is fixed in the parent's frame."""
    a, b = constraint.axes
    seen = vector.cross(vector.apply(vector.transpose(X.R), a), xi[..., :3])
    normal = vector.cross(seen, b) / np.linalg.norm(np.cross(a, b))
    return _column(concatenate([np.zeros_like(normal), normal]), before=3)


def _universal_bend(constraint: Constraint, X: Transform, xi: Array, eta: Array) -> Array:
    """Return the change of `_universal_rate` by the change of the first axis in the child's."""
    a, b = constraint.axes
    seen = vector.cross(vector.apply(vector.transpose(X.R), a), eta[..., :3])
    normal = vector.cross(vector.cross(seen, xi[..., :3]), b) / np.linalg.norm(np.cross(a, b))
    return _column(concatenate([np.zeros_like(normal), normal]), before=3)


def _with_forces(torque: Array) -> Array:
    forces = np.broadcast_to(np.eye(6)[:, :3], (*torque.shape[:-1], 6, 3))
    return concatenate([forces, concatenate([np.zeros_like(torque), torque])[..., None]])


def _column(column: Array, before: int) -> Array:
    """Return a column `(..., 6)` after some columns of zeros, `(..., 6, before + 1)`."""
    return concatenate([np.zeros((*column.shape, before)), column[..., None]])


def _rod_wrench(constraint: Constraint, X: Transform) -> Array:
    """Return the unit force along the rod, from the parent's end to the child's."""
    return _column(concatenate([_rod_direction(constraint, X)[0], np.zeros(3)]), before=0)


def _rod_rate(constraint: Constraint, X: Transform, xi: Array) -> Array:
    """Return the rate of the rod's direction in the child's axes."""
    u, distance = _rod_direction(constraint, X)
    omega, v = xi[..., :3], xi[..., 3:]
    across = (v - u * vector.dot(u, v)) / distance
    return _column(concatenate([across - vector.cross(omega, u), np.zeros(3)]), before=0)


def _rod_bend(constraint: Constraint, X: Transform, xi: Array, eta: Array) -> Array:
    """Return the change of `_rod_rate` by the changes of the rod's direction and length."""
    u, distance = _rod_direction(constraint, X)
    omega, v = xi[..., :3], xi[..., 3:]
    longer = vector.dot(u, eta[..., 3:])
    du = (eta[..., 3:] - u * longer) / distance - vector.cross(eta[..., :3], u)
    along = vector.dot(u, v)
    bent = -(du * along + u * vector.dot(du, v)) / distance
    bent = bent - (v - u * along) * longer / (distance * distance) - vector.cross(omega, du)
    return _column(concatenate([bent, np.zeros(3)]), before=0)


def _rod_direction(constraint: Constraint, X: Transform) -> tuple[Array, Array]:
    """Return the direction `(..., 3)` of the rod in the child's axes, and its length.

    Where both ends coincide it has no direction: refused, and not finite in compiled code.
    """
    p = vector.apply(vector.transpose(X.R), X.p)
    distance = sqrt(vector.dot(p, p))
    shortest = 1e-6 * asarray(constraint.length)[..., None]
    if is_symbolic(distance) or is_symbolic(shortest):
        distance = select(less(distance, shortest), 0.0, distance)
    elif np.any(distance < shortest):
        raise InvalidValue(
            f"rod {constraint.name!r} has no direction: both ends are at the same point"
        )
    return p / distance, distance


def _rod_residual(constraint: Constraint, x: Array) -> Array:
    p = pose.translation(x)
    return sqrt(vector.dot(p, p)) - asarray(constraint.length)[..., None]


_CLOSEST: dict[str, _Coordinates] = {
    "fixed": _no_coordinates,
    "revolute": _revolute,
    "prismatic": _prismatic,
    "helical": _helical,
    "cylindrical": _cylindrical,
    "universal": _universal,
    "planar": _planar,
    "cartesian": _cartesian,
    "spherical": _spherical,
}

#: All constraints between two frames, by kind; a gear acts on coordinates.
CONSTRAINT_TYPES: dict[str, ConstraintType] = {
    kind: _joint_row(kind, closest) for kind, closest in _CLOSEST.items()
}
CONSTRAINT_TYPES["universal"] = CONSTRAINT_TYPES["universal"]._replace(
    wrenches=_universal_wrenches, rate=_universal_rate, bend=_universal_bend
)
CONSTRAINT_TYPES[ROD] = ConstraintType(1, _rod_wrench, _rod_rate, _rod_residual, _rod_bend)
