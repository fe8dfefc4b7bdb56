"""Errors of poses and twists as screws in a frame's own axes: the logarithm of the error."""

from __future__ import annotations

from typing import NamedTuple

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array
from remora.components.context import Context

#: How the error of a pose is measured.
ERRORS = ("logarithm", "vector")


class ScrewError(NamedTuple):
    """The error of a frame against a reference, in the frame's own axes.

    Attributes:
        pose: the screw that leads from the reference to the frame, `(..., 6)`, rad and m.
        twist: ξ̃ = ξ - Ad(x̃*) ξ_d, `(..., 6)`.
        ahead: Ad(x̃*) ξ̇_d + (Ad(x̃*) ξ_d) × ξ̃, `(..., 6)`: the rate of ξ with which ξ̃ is constant.
    """

    pose: Array
    twist: Array
    ahead: Array


def screw_error(at: Context, frame: str, prefix: str, error: str) -> ScrewError:
    """Return the errors against the inputs `pose`, `twist` and `twist_rate` [SA24, section IV].

    x̃ = x_d* x is the frame's pose seen from the reference. `logarithm` is 2 log x̃ of the one of ±x̃
    with the smaller angle: at most half a turn, hence no unwinding. `vector` is 2 vec(x̃) as it
    stands: zero at x̃ = 1 only, so the same attitude with the opposite sign is answered by a full
    turn (unwinding).
    """
    wanted = at.inputs[f"{prefix}pose"]
    off = dual_quaternion.mul(dual_quaternion.conjugate(wanted), at.pose(frame))
    moved, rate = (
        screw.adjoint_inverse(off, at.inputs[f"{prefix}{name}"]) for name in ("twist", "twist_rate")
    )
    lag = at.twist(frame) - moved
    by = {"logarithm": dual_quaternion.log, "vector": dual_quaternion.vec6}[error]
    return ScrewError(2.0 * by(off), lag, rate + screw.cross(moved, lag))
