"""Dual-quaternion tracking of the base's pose by a wrench on it."""

from __future__ import annotations

from collections.abc import Mapping

from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.algebra.vector import apply
from remora.components.actions import JointForce
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.control.motion import controlled_motion as motion
from remora.control.motion.screw_error import ERRORS, screw_error
from remora.errors import InvalidValue
from remora.model.joints import is_free
from remora.model.robot import Robot

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
    """

    uses_design = True

    kp: ArrayLike = parameter(
        "k_p, one or six, rotation first", "numbers", unit="1/s²", above=0.0, size=6
    )
    kv: ArrayLike = parameter("k_v, likewise", "numbers", unit="1/s", above=0.0, size=6)
    error: str = parameter(
        "of the pose; `vector` unwinds: for comparison", "choice", default="logarithm",
        choices=ERRORS,
    )  # fmt: skip
    torque_only: bool = parameter("whether only the torque acts", "flag", default=False)
    acts: bool = parameter("whether it acts; else it is an output only", "flag", default=True)

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
        needed = motion.controlled_dynamics(at, range(6), "flying").force
        wrench = apply(needed.matrix, rate) + needed.offset
        if self.torque_only:
            wrench = concatenate([wrench[..., :3], 0.0 * wrench[..., 3:]])
        return {"wrench": wrench, "error": own.pose}

    def act(self, at: Context) -> JointForce | None:
        """Return the wrench on the base."""
        if not self.acts:
            return None
        return JointForce(at.robot.joints[0].name, self.outputs(at)["wrench"])
