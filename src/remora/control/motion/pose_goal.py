"""Goal of a frame: desired pose, twist and twist rate, and the errors of the frame against them."""

from __future__ import annotations

from typing import NamedTuple

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array, concatenate
from remora.algebra.vector import cross
from remora.components.context import Context
from remora.components.signals import Signal

#: A pose that is not connected is an error; at rest, twist and its rate are zero.
POSE_INPUTS = {"pose": Signal(8), "twist": Signal(6, default=0.0)}
ACCELERATED_POSE_INPUTS = {**POSE_INPUTS, "twist_rate": Signal(6, default=0.0)}


class PoseGoal(NamedTuple):
    """Where a frame is to be, in inertial axes at its origin, angular part first.

    Attributes:
        error: [rotation vector from the frame to the goal, p_d - p], `(..., 6)`, rad and m.
        rate: desired [ω, ṗ], `(..., 6)`.
        acceleration: desired [ω̇, p̈], `(..., 6)`.
        actual: the frame's own [ω, ṗ], `(..., 6)`.
    """

    error: Array
    rate: Array
    acceleration: Array
    actual: Array


def base_inputs(accelerated: bool = False) -> dict[str, Signal]:
    """Return the inputs of a goal of the base: `base_pose`, by default the inertial frame, ..."""
    found = {
        "base_pose": Signal(8, default=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        "base_twist": Signal(6, default=0.0),
    }
    return {**found, "base_twist_rate": Signal(6, default=0.0)} if accelerated else found


def pose_goal(at: Context, frame: str, prefix: str = "") -> PoseGoal:
    """Return goal and errors of a frame from the inputs `pose`, `twist` and `twist_rate`.

    The inputs are those of a reference: the pose of the desired frame in the inertial frame, its
    twist in its own axes, and the rate of the twist's components. The rotation vector of the error
    has at most half a turn, whichever of ±pose is given: there is no unwinding. A prefix `base_`
    stands before the names of the inputs.
    """
    x, wanted, twist = at.pose(frame), at.inputs[f"{prefix}pose"], at.inputs[f"{prefix}twist"]
    known = f"{prefix}twist_rate" in tuple(at.inputs)
    rate = at.inputs[f"{prefix}twist_rate"] if known else 0.0 * twist
    r, r_wanted = pose.rotation(x), pose.rotation(wanted)
    off = quaternion.mul(r_wanted, quaternion.conjugate(r))
    moved = pose.translation(wanted) - pose.translation(x)
    omega = twist[..., :3]
    turning = concatenate([0.0 * omega, cross(omega, twist[..., 3:])])
    return PoseGoal(
        concatenate([2.0 * quaternion.log(off), moved]),
        both_turned(r_wanted, twist),
        both_turned(r_wanted, rate + turning),
        both_turned(r, at.twist(frame)),
    )


def both_turned(r: Array, s: Array) -> Array:
    """Return a pair of vectors `(..., 6)`, both turned by the quaternion r."""
    return concatenate([quaternion.rotate(r, s[..., :3]), quaternion.rotate(r, s[..., 3:])])
