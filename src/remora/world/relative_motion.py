"""Motion of one frame relative to another: pose, velocity of its origin, angular velocity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion, screw
from remora.algebra.array_ops import Array
from remora.components.context import Context


class RelativeMotion(NamedTuple):
    """Motion of frame b seen from frame a, in the axes of a.

    Attributes:
        pose: x_ab, `(..., 8)`.
        position: origin of b, `(..., 3)`, m.
        rotation: rotation vector of b, of at most half a turn, `(..., 3)`, rad.
        velocity: rate of `position`, `(..., 3)`, m/s.
        rate: angular velocity of b relative to a, `(..., 3)`, rad/s.
    """

    pose: Array
    position: Array
    rotation: Array
    velocity: Array
    rate: Array


def relative_motion(pose_a: Array, twist_a: Array, pose_b: Array, twist_b: Array) -> RelativeMotion:
    """Return the motion of frame b relative to frame a.

    ξ_ab = Ad(x_ab) ξ_b - ξ_a in the axes of a, about its origin; ṗ = v_ab + ω_ab × p.

    Args:
        pose_a: pose of a in the inertial frame, `(..., 8)`.
        twist_a: twist [ω, v] of a in its own axes, `(..., 6)`.
        pose_b: pose of b in the inertial frame, `(..., 8)`.
        twist_b: twist [ω, v] of b in its own axes, `(..., 6)`.
    """
    x = dual_quaternion.mul(dual_quaternion.conjugate(pose_a), pose_b)
    p, r = pose.translation(x), pose.rotation(x)
    moved = screw.shift(screw.adjoint(x, twist_b) - twist_a, -p)  # about the origin of b
    return RelativeMotion(x, p, 2.0 * quaternion.log(r), moved[..., 3:], moved[..., :3])


def motion_between(at: Context, a: str, b: str) -> RelativeMotion:
    """Return the motion of frame b relative to frame a; both may be fixed in the inertial frame."""
    twists = [np.zeros(6) if at.robot.frame(name).body < 0 else at.twist(name) for name in (a, b)]
    return relative_motion(at.pose(a), twists[0], at.pose(b), twists[1])
