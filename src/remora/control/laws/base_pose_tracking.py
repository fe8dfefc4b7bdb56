"""Dual-quaternion tracking of the base's pose by a wrench on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.algebra.vector import apply
from remora.components.actions import JointForce
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.signals import Signal
from remora.control.law_settings import LawComponentSettings
from remora.control.motion.gains import gains
from remora.control.motion.screw_error import ERRORS, screw_error
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import is_free
from remora.model.robot import Robot
from remora.model.settings_fields import Positive

POSE = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]


class BasePoseTracking(Component):
    """A wrench on a free base that makes it follow a pose [VT18, section 1; SA24, section IV].

    v̇_0 = -k_p 2 log x̃ - k_v ξ̃ + Ad(x̃*) ξ̇_d + (Ad(x̃*) ξ_d) × ξ̃, with x̃ = x_d* x and
    ξ̃ = ξ - Ad(x̃*) ξ_d, and [τ, f] = H_0 v̇_0 + h_0: the base is the frame of the whole robot with
    its joints not accelerating. Rotation and translation are one error, a screw.

    Inputs: `base_pose`, by default the inertial frame, `base_twist`, `base_twist_rate`. Outputs:
    `wrench`, `(6,)`, [torque, force] on the base in body axes; `error`, `(6,)`, the screw 2 log x̃.

    Valid for any error except half a turn exactly, where the shorter way is ambiguous and noise
    decides; there the torque jumps. Accelerations of joints are a disturbance: use
    `CoordinatedTracking`, or `BaseReactionCompensation`. `error="vector"` unwinds, see
    `remora.control.motion.screw_error`; it is there for comparison.

    Attributes:
        kp: k_p, 1/s², one or six, three of rotation, three of translation.
        kv: k_v, 1/s, likewise.
        error: `logarithm` or `vector`.
        torque_only: only the torque acts.
        acts: whether it acts on the base; else the wrench is an output only.
    """

    kp: ArrayLike
    kv: ArrayLike
    error: str = "logarithm"
    torque_only: bool = False
    acts: bool = True

    def __post_init__(self) -> None:
        """Check."""
        if self.error not in ERRORS:
            raise UnknownName("error of a pose", self.error, ERRORS)
        for name in ("kp", "kv"):
            value = gains(f"{name} of a pose tracking", getattr(self, name), 6)
            object.__setattr__(self, name, value)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        base = robot.joints[0]
        if not is_free(base):
            raise InvalidValue(f"the base is {base.kind}: a pose needs a free one")
        return Interface(
            inputs={
                "base_pose": Signal(8, default=POSE),
                "base_twist": Signal(6, default=0.0),
                "base_twist_rate": Signal(6, default=0.0),
            },
            outputs={"wrench": Signal(6), "error": Signal(6)},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the wrench and the error."""
        own = screw_error(at, at.robot.bodies[0].name, "base_", self.error)
        rate = own.ahead - self.kp * own.pose - self.kv * own.twist
        wrench = apply(at.mass_matrix[..., :6, :6], rate) + at.bias_force[..., :6]
        if self.torque_only:
            wrench = concatenate([wrench[..., :3], 0.0 * wrench[..., 3:]])
        return {"wrench": wrench, "error": own.pose}

    def act(self, at: Context) -> JointForce | None:
        """Return the wrench on the base."""
        if not self.acts:
            return None
        return JointForce(at.robot.joints[0].name, self.outputs(at)["wrench"])


class BasePoseTrackingSettings(LawComponentSettings):
    """The settings of a base_pose_tracking component in a scenario file."""

    component: ClassVar[type[Component]] = BasePoseTracking
    type: Literal["base_pose_tracking"]
    kp: Positive = Field(description="1/s²")
    kv: Positive = Field(description="1/s")
    error: Literal["logarithm", "vector"] = Field(
        default="logarithm", description="vector unwinds: for comparison"
    )
    torque_only: bool = Field(default=False, description="only the torque acts")
    acts: bool = Field(default=True, description="whether it acts, or is an output only")
