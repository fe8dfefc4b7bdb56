"""Dual-quaternion tracking of an end-effector's pose by the joints."""

from __future__ import annotations

from collections.abc import Mapping

from remora.algebra import least_squares
from remora.algebra.array_ops import Array, ArrayLike
from remora.algebra.vector import apply
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.control.laws.operational_law import OperationalLaw
from remora.control.motion import controlled_motion as motion
from remora.control.motion.screw_error import ERRORS, screw_error


class FramePoseTracking(OperationalLaw):
    """Joint torques that make a frame follow a pose, with a screw as its error [SA24, section IV].

    ξ̇ = -k_p 2 log x̃ - k_v ξ̃ + Ad(x̃*) ξ̇_d + (Ad(x̃*) ξ_d) × ξ̃, resolved to joint accelerations a by
    damped least squares with ξ̇ = A a + b in the frame's own axes, -k v_c in the null space, and
    τ_c = H* a + h*. SA24's own law, Γ_u = Γ_g + Jᵀ swap(U), is a Jacobian transpose without the
    inertia; this one linearizes: 2 log x̃ decays as of a linear oscillator.

    Inputs: `pose`, `twist`, `twist_rate` of a reference. Outputs: `torque`, `(k,)`; `error`,
    `(6,)`, the screw 2 log x̃ in the frame's axes.

    Valid as `BasePoseTracking`, with exact mass properties, where A has full rank; `damping` bounds
    the accelerations near a singular pose.
    """

    kp: ArrayLike = parameter(
        "k_p, one or six, rotation first", "numbers", unit="1/s²", above=0.0, size=6
    )
    kv: ArrayLike = parameter("k_v, likewise", "numbers", unit="1/s", above=0.0, size=6)
    error: str = parameter(
        "of the pose; `vector` unwinds: for comparison", "choice", default="logarithm",
        choices=ERRORS,
    )  # fmt: skip

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques and the error."""
        places = self.places(at)
        own = screw_error(at, self.frame, "", self.error)
        rate = own.ahead - self.kp * own.pose - self.kv * own.twist
        dynamics = motion.controlled_dynamics(at, places, self.base)
        map_ = motion.own_accelerations(at, self.frame, places, dynamics)
        inverse = least_squares.damped_inverse(map_.matrix, self.damping)
        rest = -self.joint_damping * at.v[..., places]
        a = apply(inverse, rate - map_.offset)
        a = a + least_squares.projected(map_.matrix, inverse, rest)
        tau = apply(dynamics.force.matrix, a) + dynamics.force.offset
        return {"torque": tau, "error": own.pose}
