"""Dual-quaternion tracking of an end-effector's pose by the joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from remora.algebra import least_squares
from remora.algebra.array_ops import Array, ArrayLike
from remora.algebra.vector import apply
from remora.components.component import Component
from remora.components.context import Context
from remora.control.laws.operational_law import OperationalLaw, OperationalLawSettings
from remora.control.motion import controlled_motion as motion
from remora.control.motion.gains import gains
from remora.control.motion.screw_error import ERRORS, screw_error
from remora.errors import UnknownName
from remora.model.settings_fields import Positive


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

    Attributes:
        frame: name of the frame.
        kp: k_p, 1/s², one or six, three of rotation, three of translation.
        kv: k_v, 1/s, likewise.
        joints: names of the controlled joints; all by default.
        base: `fixed`, `flying` or `floating`.
        damping: λ of the least squares.
        joint_damping: k, 1/s, in the null space.
        error: `logarithm` or `vector`.
    """

    kp: ArrayLike
    kv: ArrayLike
    error: str = "logarithm"

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if self.error not in ERRORS:
            raise UnknownName("error of a pose", self.error, ERRORS)
        for name in ("kp", "kv"):
            value = gains(f"{name} of a pose tracking", getattr(self, name), 6)
            object.__setattr__(self, name, value)

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


class FramePoseTrackingSettings(OperationalLawSettings):
    """The settings of a frame_pose_tracking component in a scenario file."""

    component: ClassVar[type[Component]] = FramePoseTracking
    type: Literal["frame_pose_tracking"]
    kp: Positive = Field(description="1/s²")
    kv: Positive = Field(description="1/s")
    error: Literal["logarithm", "vector"] = "logarithm"
