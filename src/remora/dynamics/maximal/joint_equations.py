"""Algebraic constraint equations of joints and closed chains in the image space [DM93].

The eight components X = (r, d) of the carried body's pose in the joint frame satisfy the two unit
conditions and 6 - nv equations g(X) = 0. These are at most quadratic in X,

    g(X) = k + l X + Xᵀ A X,    ∂g/∂X = l + 2 A X,    d²g/dt² = (∂g/∂X) Ẍ + 2 Ẋᵀ A Ẋ,

so that a joint type is defined by the constant arrays l and A. A constraint of a joint type has the
equations of that type, with X the pose of the child's constraint frame in the parent's; a rod has
[DM93, eq. 29] in space, ½ d·d = ½ (L/2)². The exceptions couple an angle with another coordinate,
which is not polynomial: the thread of a helical joint, and gears. Each is one analytic equation.

Equations are chosen so that ∂g/∂X has full rank at every configuration and no equation repeats a
unit condition, hence every multiplier is unique. (For a revolute joint d = 0 has four components,
of which r·d = 0 is redundant; the three of r*d are independent of it. DM93 notes this redundancy of
its eq. 26.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import quaternion, vector
from remora.algebra.array_ops import (
    Array,
    absolute,
    arctan2,
    asarray,
    concatenate,
    cos,
    less,
    select,
    sin,
    stack,
)
from remora.errors import UnknownName
from remora.model.constraint import ROD, Constraint
from remora.model.joint_types import lookup, plane
from remora.model.robot import Joint

Relation = Joint | Constraint
"""What allows some relative poses of two frames: a joint of the tree, or a constraint."""


class Form(NamedTuple):
    """Equations k + l X + Xᵀ A X = 0 of a pose's eight components.

    Attributes:
        linear: l, `(n, 8)`.
        quadratic: A, `(n, 8, 8)`, symmetric.
        constant: k, `(..., n)`.
    """

    linear: Array
    quadratic: Array
    constant: Array = np.zeros(1)


class Row(NamedTuple):
    """The image-space equations of a joint type or of a rod.

    Attributes:
        form: (joint or constraint) -> its polynomial equations.
        coordinates: (joint, X) -> joint coordinates `(..., nq_i)` of a pose X that satisfies them.
        thread: whether the thread equation is added (helical joint).
    """

    form: Callable[[Relation], Form]
    coordinates: Callable[[Relation, Array], Array]
    thread: bool = False


def values(joint: Relation, X: Array) -> Array:
    """Return g(X), `(..., 6 - nv_i)`: zero where the joint can reach the pose X `(..., 8)`."""
    row = _row(joint)
    l, A, k = row.form(joint)
    g = vector.apply(l, X) + vector.dot(X[..., None, :], _times(A, X))[..., 0] + k
    return concatenate([g, _thread(joint, X)]) if row.thread else g


def jacobian(joint: Relation, X: Array) -> Array:
    """Return ∂g/∂X, `(..., 6 - nv_i, 8)`."""
    row = _row(joint)
    l, A, _ = row.form(joint)
    G = l + 2.0 * _times(A, X)
    return concatenate([G, _thread_gradient(joint, X)[..., None, :]], 2) if row.thread else G


def curvature(joint: Relation, X: Array, X_rate: Array) -> Array:
    """Return the part of d²g/dt² without Ẍ, Ẋᵀ (∂²g/∂X²) Ẋ, `(..., 6 - nv_i)`."""
    row = _row(joint)
    A = row.form(joint).quadratic
    g = 2.0 * vector.dot(X_rate[..., None, :], _times(A, X_rate))[..., 0]
    return concatenate([g, _thread_curvature(joint, X, X_rate)]) if row.thread else g


def coordinates(joint: Relation, X: Array) -> Array:
    """Return the coordinates `(..., nq_i)` at which the joint has the pose X; angles in ±π.

    Full turns of a helical joint follow from its travel; for other joints they cannot be determined
    from the pose.
    """
    return _row(joint).coordinates(joint, X)


def _row(joint: Relation) -> Row:
    if joint.kind not in _ROWS:
        raise UnknownName("kind of joint with algebraic equations", joint.kind, _ROWS)
    return _ROWS[joint.kind]


def _times(A: Array, X: Array) -> Array:
    """Return A X, `(n, 8, 8), (..., 8) -> (..., n, 8)`."""
    return (A @ X[..., None, :, None])[..., 0]


# Forms -----------------------------------------------------------------------------------------

_E4 = np.eye(4)
_E3 = np.eye(3)


def _turned(*directions: Array) -> Form:
    """Return u·vec(r) = 0: no rotation about u, for a rotation about one axis at most."""
    l = np.array([[0.0, *u, 0.0, 0.0, 0.0, 0.0] for u in directions])
    return Form(l, np.zeros((len(l), 8, 8)))


def _shifted(*directions: Array) -> Form:
    """Return u·vec(d) = 0, likewise for the dual part."""
    l = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, *u] for u in directions])
    return Form(l, np.zeros((len(l), 8, 8)))


def _moved(products: Array, directions: tuple[Array, ...]) -> Form:
    """Return 2 u·vec(bilinear product of r and d) = 0."""
    A = np.zeros((len(directions), 8, 8))
    for n, u in enumerate(directions):
        A[n, :4, 4:] = products[..., 1:] @ u  # half of 2 u·, for A is symmetric
        A[n, 4:, :4] = A[n, :4, 4:].T
    return Form(np.zeros((len(directions), 8)), A)


def _place_in_body_axes(*directions: Array) -> Form:
    """Return u·p = 0, p = 2 vec(r* d): the position in the moved body's axes."""
    return _moved(quaternion.mul(quaternion.conjugate(_E4)[:, None], _E4[None]), directions)


def _place_in_joint_axes(*directions: Array) -> Form:
    """Return u·p = 0, p = 2 vec(d r*): the position in the joint's axes."""
    products = quaternion.mul(_E4[None], quaternion.conjugate(_E4)[:, None])
    return _moved(products, directions)


def _crossing(a: Array, b: Array) -> Form:
    """Return a·R(r) b = a·b, homogeneous: the angle between the body's axis b and a is constant."""
    turned = quaternion.mul(
        quaternion.mul(_E4[:, None], quaternion.pure(b)), quaternion.conjugate(_E4)[None]
    )
    B = turned[..., 1:] @ a - np.dot(a, b) * _E4
    A = np.zeros((1, 8, 8))
    A[0, :4, :4] = 0.5 * (B + B.T)
    return Form(np.zeros((1, 8)), A)


def _together(*forms: Form) -> Form:
    return Form(np.concatenate([f[0] for f in forms]), np.concatenate([f[1] for f in forms]))


def _none(joint: Relation) -> Form:
    return Form(np.zeros((0, 8)), np.zeros((0, 8, 8)))


def _fixed(joint: Relation) -> Form:
    return _together(_turned(*_E3), _shifted(*_E3))


def _revolute(joint: Relation) -> Form:
    e1, e2, _ = plane(joint.axes[0])
    return _together(_turned(e1, e2), _place_in_body_axes(*_E3))


def _prismatic(joint: Relation) -> Form:
    e1, e2, _ = plane(joint.axes[0])
    return _together(_turned(*_E3), _shifted(e1, e2))


def _cylindrical(joint: Relation) -> Form:
    e1, e2, _ = plane(joint.axes[0])
    return _together(_turned(e1, e2), _shifted(e1, e2))


def _universal(joint: Relation) -> Form:
    a, b = joint.axes
    return _together(_crossing(a, b), _place_in_body_axes(*_E3))


def _planar(joint: Relation) -> Form:
    e1, e2, n = joint.axes
    return _together(_turned(e1, e2), _place_in_joint_axes(n))


def _cartesian(joint: Relation) -> Form:
    return _turned(*_E3)


def _spherical(joint: Relation) -> Form:
    return _place_in_body_axes(*_E3)


def _rod(rod: Relation) -> Form:
    """Return ½ d·d - ½ (L/2)² = 0: both origins are L apart [DM93, eqs. 29, 32]."""
    assert isinstance(rod, Constraint)
    A = np.zeros((1, 8, 8))
    A[0, 4:, 4:] = 0.5 * _E4
    half = 0.5 * asarray(rod.length)[..., None]
    return Form(np.zeros((1, 8)), A, -0.5 * half * half)


# Angle and travel: threads and gears -------------------------------------------------------------


class Coordinate(NamedTuple):
    """The coordinate of a joint with one degree of freedom at a pose X with rate Ẋ.

    Attributes:
        value: angle within ±π, or travel, `(..., 1)`.
        gradient: by X, `(..., 8)`.
        curvature: the part of its second derivative without Ẍ, `(..., 1)`.
    """

    value: Array
    gradient: Array
    curvature: Array


def coordinate(joint: Joint, X: Array, X_rate: Array) -> Coordinate:
    """Return the coordinate of a joint with one degree of freedom, rotation or translation."""
    value = coordinates(joint, X)
    if rotates(joint):
        return Coordinate(value, _turn_gradient(joint, X), _turn_curvature(joint, X, X_rate))
    return Coordinate(value, _travel_gradient(joint, X), _travel_curvature(joint, X_rate))


def rotates(joint: Joint) -> bool:
    """Tell whether the first coordinate of a joint is an angle."""
    return lookup(joint.kind).freedoms[0].coordinate_unit == "rad"


def gear_value(gear: Constraint, leading: Joint, driven: Joint, gap: Array) -> Array:
    """Return q_child - ratio q_parent - offset, `(..., 1)`, without full turns.

    Poses do not determine full turns: of the values that belong to the same poses the smallest.
    Between two rotations up to ten turns of the leading joint are considered; these are all for a
    ratio of two integers up to 21.
    """
    ratio = asarray(gear.ratio)[..., None]
    if rotates(leading) and rotates(driven):
        gaps = [_without_turns(gap + 2.0 * np.pi * n * ratio, 1.0) for n in range(-10, 11)]
        least = gaps[10]
        for other in gaps:
            least = select(less(absolute(other), absolute(least)), other, least)
        return least
    if rotates(leading) or rotates(driven):
        return _without_turns(gap, 1.0 if rotates(driven) else ratio)
    return gap


def _without_turns(gap: Array, per_radian: Array | float) -> Array:
    """Return the gap within half a turn of zero, `(..., 1)`."""
    angle = gap / per_radian
    return per_radian * arctan2(sin(angle), cos(angle))


def _half_turn(joint: Relation, X: Array) -> tuple[Array, Array]:
    """Return cosine and sine of half the angle about the axis, `(..., 1)`, times |r|."""
    return X[..., :1], vector.dot(X[..., 1:4], joint.axes[0])


def _travel(joint: Relation, X: Array) -> Array:
    """Return the position along the axis, `(..., 1)` [m]."""
    return 2.0 * vector.dot(_vec(_product_with_conjugate(X[..., 4:], X[..., :4])), joint.axes[0])


def _thread(joint: Relation, X: Array) -> Array:
    """Return 2h sin((s/h - θ)/2), `(..., 1)`: travel minus pitch times angle, modulo full turns."""
    c, s = _half_turn(joint, X)
    h = asarray(joint.pitch)[..., None]
    flat = less(h * h, 1e-30)  # zero pitch: no travel
    turns = _travel(joint, X) / select(flat, 1.0, h)
    return select(flat, _travel(joint, X), 2.0 * h * sin(0.5 * turns - arctan2(s, c)))


def _thread_gradient(joint: Relation, X: Array) -> Array:
    """Return the gradient `(..., 8)` of s - h θ."""
    h = asarray(joint.pitch)[..., None]
    return _travel_gradient(joint, X) - h * _turn_gradient(joint, X)


def _thread_curvature(joint: Relation, X: Array, X_rate: Array) -> Array:
    """Return the part of (s - h θ)¨ without Ẍ, `(..., 1)`."""
    h = asarray(joint.pitch)[..., None]
    return _travel_curvature(joint, X_rate) - h * _turn_curvature(joint, X, X_rate)


def _travel_gradient(joint: Relation, X: Array) -> Array:
    """Return the gradient `(..., 8)` of s = 2 a·vec(d r*)."""
    return 2.0 * vector.apply(_place_in_joint_axes(joint.axes[0]).quadratic[0], X)


def _travel_curvature(joint: Relation, X_rate: Array) -> Array:
    """Return the part of s̈ without Ẍ, `(..., 1)`."""
    return vector.dot(X_rate, _travel_gradient(joint, X_rate))


def _turn_gradient(joint: Relation, X: Array) -> Array:
    """Return the gradient `(..., 8)` of θ = 2 atan2(a·vec(r), r0)."""
    c, s = _half_turn(joint, X)
    turn = concatenate([-s, c * joint.axes[0], 0.0 * X[..., 4:]])
    return (2.0 / (c * c + s * s)) * turn


def _turn_curvature(joint: Relation, X: Array, X_rate: Array) -> Array:
    """Return the part of θ̈ without Ẍ, `(..., 1)`."""
    (c, s), (dc, ds) = _half_turn(joint, X), _half_turn(joint, X_rate)
    size = c * c + s * s
    return -4.0 * (c * dc + s * ds) * (c * ds - s * dc) / (size * size)


# Coordinates of a pose ---------------------------------------------------------------------------


def _product_with_conjugate(a: Array, b: Array) -> Array:
    return quaternion.mul(a, quaternion.conjugate(b))


def _vec(a: Array) -> Array:
    return a[..., 1:]


def _angle(joint: Relation, X: Array) -> Array:
    """Return the angle about the axis within ±π, `(..., 1)`."""
    return _twice(*_half_turn(joint, X))


def _twice(c: Array, s: Array) -> Array:
    """Return twice the angle of (c, s), within ±π."""
    return arctan2(2.0 * s * c, c * c - s * s)


def _place(X: Array) -> Array:
    """Return the position in the joint's axes, `(..., 3)`."""
    return 2.0 * _vec(_product_with_conjugate(X[..., 4:], X[..., :4]))


def _helical_angle(joint: Relation, X: Array) -> Array:
    """Return the angle within ±π plus the full turns given by the travel."""
    h = asarray(joint.pitch)[..., None]
    flat = less(h * h, 1e-30)
    turned = select(flat, 0.0, _travel(joint, X) / select(flat, 1.0, h))
    rest = _angle(joint, X) - turned
    return turned + arctan2(sin(rest), cos(rest))


def _universal_angles(joint: Relation, X: Array) -> Array:
    """Return q1 from b in the joint's axes, q2 from a in the body's axes."""
    a, b = joint.axes
    r = X[..., :4]
    first = _turn_about(a, b, quaternion.rotate(r, asarray(b)))
    second = _turn_about(b, a, quaternion.rotate(quaternion.conjugate(r), asarray(a)))
    return stack([first, -second])


def _turn_about(axis: Array, start: Array, end: Array) -> Array:
    """Return the angle about an axis that rotates start to end, `(...)`."""
    u = start - np.dot(axis, start) * axis
    return arctan2(
        vector.dot(np.cross(axis, u), end)[..., 0],
        vector.dot(u, end)[..., 0],
    )


def _planar_coordinates(joint: Relation, X: Array) -> Array:
    e1, e2, n = joint.axes
    p = _place(X)
    angle = _twice(X[..., :1], vector.dot(X[..., 1:4], n))
    return concatenate([vector.dot(p, e1), vector.dot(p, e2), angle])


def _no_coordinates(joint: Relation, X: Array) -> Array:
    return X[..., :0]


def _angle_and_travel(joint: Relation, X: Array) -> Array:
    return concatenate([_angle(joint, X), _travel(joint, X)])


def _cartesian_coordinates(joint: Relation, X: Array) -> Array:
    return _place(X)


def _orientation(joint: Relation, X: Array) -> Array:
    return quaternion.normalize(X[..., :4])


def _pose(joint: Relation, X: Array) -> Array:
    return dq.normalize(X)


#: The algebraic equations of every joint type, by name. Constraints of these types have the same.
EQUATIONS: dict[str, Row] = {
    "fixed": Row(_fixed, _no_coordinates),
    "revolute": Row(_revolute, _angle),
    "prismatic": Row(_prismatic, _travel),
    "helical": Row(_cylindrical, _helical_angle, thread=True),
    "cylindrical": Row(_cylindrical, _angle_and_travel),
    "universal": Row(_universal, _universal_angles),
    "planar": Row(_planar, _planar_coordinates),
    "cartesian": Row(_cartesian, _cartesian_coordinates),
    "spherical": Row(_spherical, _orientation),
    "free": Row(_none, _pose),
}

_ROWS = {**EQUATIONS, ROD: Row(_rod, _no_coordinates)}
