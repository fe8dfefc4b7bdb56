"""A joint within a robot: its slices of q and v, pose, motion subspace and wrenches.

The behaviour of a joint type is a row of the table in `joint_types`; no other file tests for a
joint's type. Mimic joints are handled here.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.array_ops import Array, concatenate, is_symbolic
from remora.algebra.screw import Transform
from remora.model.joint_types import JointType, lookup
from remora.model.robot import Joint


def kind(joint: Joint) -> JointType:
    """Return the joint's row of the table."""
    return lookup(joint.kind)


def coordinates(joint: Joint, q: Array) -> Array:
    """Return the joint's own coordinates out of the robot's, `(..., nq) -> (..., nq_i)`."""
    own = q[..., joint.q]
    return own if joint.mimic is None else joint.mimic.ratio * own + joint.mimic.offset


def speeds(joint: Joint, v: Array) -> Array:
    """Return the joint's own speeds out of the robot's, `(..., nv) -> (..., nv_i)`."""
    return _geared(joint, v[..., joint.v])


def rotor_inertia(joint: Joint) -> Array:
    """Return the rotor inertia `(..., nv_i)` reflected to the speeds v[joint.v].

    A mimic joint moves with ratio · v, so its leader's effective inertia is ratio² · I [kg m² or
    kg].
    """
    return _geared(joint, _geared(joint, joint.rotor_inertia))


def has_rotor(joint: Joint) -> bool:
    """Return whether a joint has a rotor inertia, or may have one: it is a symbol."""
    return is_symbolic(joint.rotor_inertia) or bool(np.any(joint.rotor_inertia != 0.0))


def _geared(joint: Joint, x: Array) -> Array:
    """Return x times the joint's speed per unit speed of the robot: a mimic joint's ratio."""
    return x if joint.mimic is None else joint.mimic.ratio * x


def relative_pose(joint: Joint, q: Array) -> Array:
    """Return the body's pose in its parent's frame for the robot's q: placement · pose(q)."""
    return dual_quaternion.mul(joint.placement, kind(joint).pose(joint, coordinates(joint, q)))


def relative_transform(joint: Joint, q: Array) -> Transform:
    """Return `relative_pose` as rotation matrix and position.

    The placement's constant matrix is kept separate from the motion's, which is sparse.
    """
    fixed = screw.transform(joint.placement)
    moved = screw.transform(kind(joint).pose(joint, coordinates(joint, q)))
    return Transform(fixed.R @ moved.R, fixed.p + vector.apply(fixed.R, moved.p))


def motion_subspace(joint: Joint, q: Array) -> Array:
    """Return the motion subspace S: (twist relative to the parent) = S v[joint.v], body frame."""
    return _geared(joint, kind(joint).screws(joint, coordinates(joint, q)))


def reaction_basis(joint: Joint, q: Array) -> Array:
    """Return V `(..., 6, 6 - nv_i)`, the wrenches of the constraint, body frame [VT18, Table 4]."""
    return kind(joint).reactions(joint, coordinates(joint, q))


def actuation_basis(joint: Joint, q: Array) -> Array:
    """Return V_act `(..., 6, nv_i)` with SᵀV_actˢ = 1: the wrench of unit generalized forces.

    V_act = (D (DᵀD)⁻¹)ˢ with D the screws that the actuator acts on, S itself for most joint types.
    For a joint about or along z this is VT18's V_act [VT18, Table 5].
    """
    row = kind(joint)
    D = _geared(joint, (row.drive or row.screws)(joint, coordinates(joint, q)))
    if D.shape[-1] == 0:
        return D
    Dt = vector.transpose(D)
    dual = vector.transpose(linear.solve(Dt @ D, Dt))
    return concatenate([dual[..., 3:, :], dual[..., :3, :]], trailing=2)


def motion_subspace_rate(joint: Joint, q: Array, v: Array) -> Array | None:
    """Return dS/dt for the robot's q and v, or None where S is constant."""
    rate = kind(joint).rate
    if rate is None:
        return None
    return _geared(joint, rate(joint, coordinates(joint, q), speeds(joint, v)))


def motion_subspace_second_rate(joint: Joint, q: Array, v: Array, vdot: Array) -> Array | None:
    """Return d²S/dt² for the robot's q, v and vdot, or None where S is constant."""
    second = kind(joint).second_rate
    if second is None:
        return None
    own = coordinates(joint, q), speeds(joint, v), speeds(joint, vdot)
    return _geared(joint, second(joint, *own))


def in_coordinates(joint: Joint) -> bool:
    """Tell whether the joint's speeds are the rates of its coordinates."""
    return kind(joint).nq == kind(joint).nv


def is_free(joint: Joint) -> bool:
    """Tell whether the joint has all six degrees of freedom."""
    return kind(joint).nv == 6


def is_rigid(joint: Joint) -> bool:
    """Tell whether the joint allows no motion."""
    return kind(joint).nv == 0


def turns_about_axis(joint: Joint) -> bool:
    """Tell whether the joint rotates about one axis fixed in its frame."""
    row = kind(joint)
    return row.axes == 1 and row.freedoms[0].angular


def slides_only(joint: Joint) -> bool:
    """Tell whether all degrees of freedom of the joint are translations."""
    row = kind(joint)
    return row.nv > 0 and not any(freedom.angular for freedom in row.freedoms)
