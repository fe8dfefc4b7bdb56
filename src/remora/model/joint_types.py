"""The table of joint types: pose, motion subspace and tangent maps of each type.

A new joint type is one row; no algorithm tests for a type by name. A row gives the pose of the
moved body frame in the joint frame, the motion subspace S(q), whose columns are the body's twist
per unit speed in the body frame, and its rate dS/dt:

    x = pose(q),    twist = S(q) v,    d(twist)/dt = S v̇ + Ṡ v,    Ṡ = rate(q, v).

If nq = nv the speeds are the rates of the coordinates. The speeds of a spherical joint are the
body's angular velocity, those of a free joint its twist. A constant S has no rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion, tangent, vector
from remora.algebra.array_ops import Array, concatenate, constant, stack
from remora.errors import UnknownName
from remora.identity.table import Table
from remora.model.degrees_of_freedom import (
    ANGULAR_VELOCITY,
    DUAL_QUATERNION,
    LINEAR_VELOCITY,
    QUATERNION,
    Freedom,
    rotation,
    translation,
)
from remora.model.robot import Joint


def _same(q: Array, dq: Array) -> Array:
    return dq


def _minus(q0: Array, q1: Array) -> Array:
    return q1 - q0


@dataclass(frozen=True)
class JointType:
    """A row of the table: all properties of one joint type.

    Attributes:
        nq: number of coordinates.
        nv: number of speeds.
        axes: how many axes its description needs.
        pose: (joint, q `(..., nq)`) -> pose in the joint frame `(..., 8)`.
        screws: (joint, q) -> the motion subspace S `(..., 6, nv)`, body frame.
        reactions: (joint, q) -> V `(..., 6, 6 - nv)`: basis of the constraint wrenches [f, τ],
            which do no work on the joint's motion, SᵀVˢ = 0 [VT18, Table 4].
        rate: (joint, q, v) -> dS/dt `(..., 6, nv)`; None where S is constant.
        neutral: the coordinates of the zero position, `(nq,)`.
        freedoms: names and units of the degrees of freedom, `nv` of them.
        increment: (q, dq `(..., nv)`) -> the increment of q for a tangent vector dq.
        difference: (q0, q1) -> the dq that moves q0 to q1.
        random: (generator) -> coordinates, angles in ±π, lengths in ±1 m.
        quaternion: slice of q that holds a unit quaternion, if any.
        normalize: (q) -> q scaled to unit length; None if every q is valid.
        dual: slice of q that is orthogonal to that quaternion, if any.
        drive: (joint, q) -> the screws `(..., 6, nv)` that the actuator acts on; None: S.
        log_rate: (dq, v) -> the rate of dq at which q moved by dq has the speeds v (dexp⁻¹).
        speeds: (dq, rate) -> the speeds of q moved by dq while dq changes at `rate` (dexp).
        second_rate: (joint, q, v, v̇) -> d²S/dt² `(..., 6, nv)`; None where S is constant. S may
            depend on q only if the speeds are the rates of the coordinates.
    """

    nq: int
    nv: int
    axes: int
    pose: Callable[[Joint, Array], Array]
    screws: Callable[[Joint, Array], Array]
    reactions: Callable[[Joint, Array], Array]
    rate: Callable[[Joint, Array, Array], Array] | None
    random: Callable[[np.random.Generator], Array]
    neutral: tuple[float, ...]
    freedoms: tuple[Freedom, ...]
    increment: Callable[[Array, Array], Array] = _same
    difference: Callable[[Array, Array], Array] = _minus
    quaternion: slice | None = None
    normalize: Callable[[Array], Array] | None = None
    dual: slice | None = None
    drive: Callable[[Joint, Array], Array] | None = None
    second_rate: Callable[[Joint, Array, Array, Array], Array] | None = None
    log_rate: Callable[[Array, Array], Array] = _same
    speeds: Callable[[Array, Array], Array] = _same

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of each coordinate, `nq` of them."""
        if self.quaternion is not None:
            return QUATERNION if self.nq == 4 else DUAL_QUATERNION
        return tuple((freedom.name, freedom.coordinate_unit) for freedom in self.freedoms)


def lookup(name: str) -> JointType:
    """Return a row by name; the error for an unknown name lists the known ones."""
    if name not in list(JOINT_TYPES):  # a list: the name may be unhashable
        raise UnknownName("kind of joint", name, JOINT_TYPES)
    return JOINT_TYPES[name]


def plane(normal: Array) -> Array:
    """Return unit vectors e1, e2, n `(3, 3)`: for a normal along z, these are x, y, z."""
    k = (int(np.argmax(np.abs(normal))) + 1) % 3
    e1 = np.eye(3)[k] - normal[k] * normal
    e1 = e1 / np.linalg.norm(e1)
    return np.stack([e1, np.cross(normal, e1), normal])


# The rows ------------------------------------------------------------------------------------


def _turn(axis: Array, angle: Array) -> Array:
    return quaternion.from_axis_angle(axis, angle)


def _shift(axis: Array, length: Array) -> Array:
    return pose.from_translation(axis * length[..., None])


def _columns(*columns: tuple[Array, Array]) -> Array:
    """Stack screws, each given by its angular and its linear vector, as columns."""
    return stack([concatenate([a, b]) for a, b in columns], axis=-1)


_0 = np.zeros(3)
_E = np.eye(3)


def _forces(*directions: Array) -> list[tuple[Array, Array]]:
    return [(e, _0) for e in directions]


def _torques(*directions: Array) -> list[tuple[Array, Array]]:
    return [(_0, e) for e in directions]


def _no_pose(joint: Joint, q: Array) -> Array:
    return constant(dual_quaternion.identity(), like=q)


def _no_screws(joint: Joint, q: Array) -> Array:
    return np.zeros((6, 0))


def _all_wrenches(joint: Joint, q: Array) -> Array:
    return np.eye(6)


def _no_wrenches(joint: Joint, q: Array) -> Array:
    return np.zeros((6, 0))


def _revolute_pose(joint: Joint, q: Array) -> Array:
    return pose.from_quaternion(_turn(joint.axes[0], q[..., 0]))


def _revolute_screws(joint: Joint, q: Array) -> Array:
    return _columns((joint.axes[0], _0))


def _revolute_reactions(joint: Joint, q: Array) -> Array:
    return _columns(*_forces(*_E), *_torques(*plane(joint.axes[0])[:2]))


def _prismatic_pose(joint: Joint, q: Array) -> Array:
    return _shift(joint.axes[0], q[..., 0])


def _prismatic_screws(joint: Joint, q: Array) -> Array:
    return _columns((_0, joint.axes[0]))


def _prismatic_reactions(joint: Joint, q: Array) -> Array:
    return _columns(*_forces(*plane(joint.axes[0])[:2]), *_torques(*_E))


def _helical_pose(joint: Joint, q: Array) -> Array:
    a = joint.axes[0]
    return pose.from_parts(_turn(a, q[..., 0]), a * joint.pitch[..., None] * q[..., :1])


def _helical_screws(joint: Joint, q: Array) -> Array:
    a = joint.axes[0]
    return _columns((a, a * joint.pitch[..., None]))


def _helical_reactions(joint: Joint, q: Array) -> Array:
    """Return forces and torques normal to the axis, and a thrust with its thread's torque."""
    e1, e2, a = plane(joint.axes[0])
    along = [(a, -a * joint.pitch[..., None])]
    return _columns(*_forces(e1, e2), *_torques(e1, e2), *along)


def _helical_drive(joint: Joint, q: Array) -> Array:
    """Return the rotation: the actuator applies a torque, the thread's thrust is a reaction."""
    return _columns((joint.axes[0], _0))


def _cylindrical_pose(joint: Joint, q: Array) -> Array:
    a = joint.axes[0]
    return pose.from_parts(_turn(a, q[..., 0]), a * q[..., 1:2])


def _cylindrical_screws(joint: Joint, q: Array) -> Array:
    a = joint.axes[0]
    return _columns((a, _0), (_0, a))


def _cylindrical_reactions(joint: Joint, q: Array) -> Array:
    e1, e2, _ = plane(joint.axes[0])
    return _columns(*_forces(e1, e2), *_torques(e1, e2))


def _universal_pose(joint: Joint, q: Array) -> Array:
    a, b = joint.axes
    return pose.from_quaternion(quaternion.mul(_turn(a, q[..., 0]), _turn(b, q[..., 1])))


def _universal_screws(joint: Joint, q: Array) -> Array:
    """Return the first axis in the body frame, rotated by minus the second angle, and b."""
    a, b = joint.axes
    return _columns((quaternion.rotate(_turn(b, -q[..., 1]), a), _0), (b, _0))


def _universal_rate(joint: Joint, q: Array, v: Array) -> Array:
    a, b = joint.axes
    seen = quaternion.rotate(_turn(b, -q[..., 1]), a)
    return _columns((vector.cross(seen, b * v[..., 1:2]), _0), (_0, _0))


def _universal_second_rate(joint: Joint, q: Array, v: Array, vdot: Array) -> Array:
    a, b = joint.axes
    seen = quaternion.rotate(_turn(b, -q[..., 1]), a)
    return _columns((_second_rate(seen, b, v[..., 1:2], vdot[..., 1:2]), _0), (_0, _0))


def _second_rate(seen: Array, axis: Array, rate: Array, second: Array) -> Array:
    """Return d²/dt² of a fixed vector in the frame of a body that rotates about an axis."""
    turning = vector.cross(seen, axis)
    return turning * second + vector.cross(turning, axis) * rate * rate


def _universal_reactions(joint: Joint, q: Array) -> Array:
    """Return all forces, and the torque about the normal of the two axes, body frame."""
    a, b = joint.axes
    normal = np.cross(a, b) / np.linalg.norm(np.cross(a, b))
    seen = quaternion.rotate(_turn(b, -q[..., 1]), normal)
    return _columns(*_forces(*_E), *_torques(seen))


def _planar_pose(joint: Joint, q: Array) -> Array:
    e1, e2, n = joint.axes
    p = e1 * q[..., 0:1] + e2 * q[..., 1:2]
    return pose.from_parts(_turn(n, q[..., 2]), p)


def _planar_screws(joint: Joint, q: Array) -> Array:
    """Return the in-plane directions, fixed in the joint frame, in the rotated body's frame."""
    e1, e2, n = joint.axes
    back = _turn(n, -q[..., 2])
    return _columns((_0, quaternion.rotate(back, e1)), (_0, quaternion.rotate(back, e2)), (n, _0))


def _planar_rate(joint: Joint, q: Array, v: Array) -> Array:
    e1, e2, n = joint.axes
    back, spin = _turn(n, -q[..., 2]), n * v[..., 2:3]
    d1, d2 = (vector.cross(quaternion.rotate(back, e), spin) for e in (e1, e2))
    return _columns((_0, d1), (_0, d2), (_0, _0))


def _planar_second_rate(joint: Joint, q: Array, v: Array, vdot: Array) -> Array:
    e1, e2, n = joint.axes
    back, rate, second = _turn(n, -q[..., 2]), v[..., 2:3], vdot[..., 2:3]
    d1, d2 = (_second_rate(quaternion.rotate(back, e), n, rate, second) for e in (e1, e2))
    return _columns((_0, d1), (_0, d2), (_0, _0))


def _planar_reactions(joint: Joint, q: Array) -> Array:
    e1, e2, n = joint.axes
    return _columns(*_forces(n), *_torques(e1, e2))


def _cartesian_pose(joint: Joint, q: Array) -> Array:
    return pose.from_translation(q)


def _cartesian_screws(joint: Joint, q: Array) -> Array:
    return np.eye(6)[:, 3:]


def _cartesian_reactions(joint: Joint, q: Array) -> Array:
    return np.eye(6)[:, 3:]


def _spherical_pose(joint: Joint, q: Array) -> Array:
    return pose.from_quaternion(q)


def _spherical_screws(joint: Joint, q: Array) -> Array:
    return np.eye(6)[:, :3]


def _spherical_reactions(joint: Joint, q: Array) -> Array:
    return np.eye(6)[:, :3]


def _spherical_increment(q: Array, dq: Array) -> Array:
    return quaternion.mul(q, quaternion.exp_minus_one(0.5 * dq))


def _spherical_difference(q0: Array, q1: Array) -> Array:
    return 2.0 * quaternion.log(quaternion.mul(quaternion.conjugate(q0), q1))


def _free_pose(joint: Joint, q: Array) -> Array:
    return q


def _free_screws(joint: Joint, q: Array) -> Array:
    return np.eye(6)


def _free_increment(q: Array, dq: Array) -> Array:
    return dual_quaternion.mul(q, dual_quaternion.exp_minus_one(0.5 * dq))


def _free_difference(q0: Array, q1: Array) -> Array:
    return 2.0 * dual_quaternion.log(dual_quaternion.mul(dual_quaternion.conjugate(q0), q1))


def _uniform(*half_widths: float) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.uniform(-1.0, 1.0, len(half_widths)) * np.array(half_widths)


def _random_quaternion(rng: np.random.Generator) -> Array:
    return quaternion.normalize(rng.normal(size=4))


def _random_pose(rng: np.random.Generator) -> Array:
    return pose.from_parts(_random_quaternion(rng), rng.uniform(-1.0, 1.0, 3))


_PI = float(np.pi)
_ONE = (1.0, 0.0, 0.0, 0.0)

#: All joint types, by name.
JOINT_TYPES: Table[str, JointType] = Table({
    "fixed": JointType(0, 0, 0, _no_pose, _no_screws, _all_wrenches, None, _uniform(), (), ()),
    "revolute": JointType(
        1, 1, 1, _revolute_pose, _revolute_screws, _revolute_reactions, None, _uniform(_PI), (0.0,),
        (rotation(),),
    ),
    "prismatic": JointType(
        1, 1, 1, _prismatic_pose, _prismatic_screws, _prismatic_reactions, None, _uniform(1.0),
        (0.0,), (translation(),),
    ),
    "helical": JointType(
        1, 1, 1, _helical_pose, _helical_screws, _helical_reactions, None, _uniform(_PI), (0.0,),
        (rotation(),), drive=_helical_drive,
    ),
    "cylindrical": JointType(
        2, 2, 1, _cylindrical_pose, _cylindrical_screws, _cylindrical_reactions, None,
        _uniform(_PI, 1.0), (0.0, 0.0), (rotation("angle"), translation("travel")),
    ),
    "universal": JointType(
        2, 2, 2, _universal_pose, _universal_screws, _universal_reactions, _universal_rate,
        _uniform(_PI, _PI), (0.0, 0.0), (rotation("angle1"), rotation("angle2")),
        second_rate=_universal_second_rate,
    ),
    "planar": JointType(
        3, 3, 1, _planar_pose, _planar_screws, _planar_reactions, _planar_rate,
        _uniform(1.0, 1.0, _PI), (0.0,) * 3,
        (translation("x"), translation("y"), rotation("angle")), second_rate=_planar_second_rate,
    ),
    "cartesian": JointType(
        3, 3, 0, _cartesian_pose, _cartesian_screws, _cartesian_reactions, None,
        _uniform(1.0, 1.0, 1.0), (0.0,) * 3, (translation("x"), translation("y"), translation("z")),
    ),
    "spherical": JointType(
        4, 3, 0, _spherical_pose, _spherical_screws, _spherical_reactions, None,
        _random_quaternion, _ONE, ANGULAR_VELOCITY, _spherical_increment, _spherical_difference,
        slice(0, 4), quaternion.normalize, log_rate=tangent.rotation_vector_rate,
        speeds=tangent.angular_velocity,
    ),
    "free": JointType(
        8, 6, 0, _free_pose, _free_screws, _no_wrenches, None, _random_pose,
        (*_ONE, 0.0, 0.0, 0.0, 0.0), (*ANGULAR_VELOCITY, *LINEAR_VELOCITY), _free_increment,
        _free_difference, slice(0, 4), dual_quaternion.normalize, slice(4, 8),
        log_rate=tangent.screw_rate, speeds=tangent.twist,
    ),
})  # fmt: skip
