"""A servo of joint rates: torques with which joints move at commanded rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.algebra.vector import apply
from remora.components.actions import Action
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter_checks import limited, number
from remora.control.law_settings import LawComponentSettings
from remora.control.motion import controlled_motion as motion
from remora.control.motion.gains import gains, listed_gains
from remora.control.motion.joint_signals import joint_forces, joint_signal
from remora.errors import UnknownName
from remora.model.robot import Robot
from remora.model.settings_fields import JointName, Positive


class JointRateServo(Component):
    """Torques with which joints follow commanded rates, with the dynamics of the base in them.

    τ_c = H* (v̇_d + k (v_d - v_c)) + h*, with H* = H_cc - H_c0 H_0⁻¹H_0c and
    h* = h_c - H_c0 H_0⁻¹h_0 for a floating base, H_cc and h_c otherwise: v_c follows v_d with the
    time constant 1/k, uncoupled, at any momentum.

    Inputs: `rate` v_d, `(k,)`; `acceleration` v̇_d, zero by default. Output: `torque`, `(k,)`.

    Valid for exact mass properties; friction and springs of joints are not compensated. Sampled
    with the time h it is stable for k h < 2, and k h = 1 is deadbeat.

    Attributes:
        joints: names of the joints; all by default.
        gain: k, 1/s, one or one by joint.
        base: `fixed`, `flying` or `floating`.
        limit: of each torque, N m or N; None: no limit.
    """

    joints: Sequence[str] = ()
    gain: ArrayLike = 20.0
    base: str = "floating"
    limit: float | None = None

    def __post_init__(self) -> None:
        """Check."""
        if self.base not in motion.BASES:
            raise UnknownName("base", self.base, motion.BASES)
        object.__setattr__(self, "gain", listed_gains("gain of a servo", self.gain))
        if self.limit is not None:
            most = number("limit of a servo", self.limit, 0.0, above=True)
            object.__setattr__(self, "limit", most)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        names = motion.joint_names(robot, self.joints)
        torque = joint_signal(robot, names, "force_unit")
        if asarray(self.gain).shape != (1,):
            gains("gain of a servo", self.gain, torque.size)
        return Interface(
            inputs={
                "rate": joint_signal(robot, names, "speed_unit"),
                "acceleration": joint_signal(robot, names, "acceleration_unit", 0.0),
            },
            outputs={"torque": torque},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques."""
        names = motion.joint_names(at.robot, self.joints)
        places = motion.speed_places(at.robot, names)
        force = motion.controlled_dynamics(at, places, self.base).force
        lag = at.inputs["rate"] - at.v[..., places]
        wanted = at.inputs["acceleration"] + self.gain * lag
        tau = apply(force.matrix, wanted) + force.offset
        return {
            "torque": tau if self.limit is None else limited(tau, -1.0 * self.limit, self.limit)
        }

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the joints."""
        names = motion.joint_names(at.robot, self.joints)
        return joint_forces(at.robot, names, self.outputs(at)["torque"])


class JointRateServoSettings(LawComponentSettings):
    """The settings of a joint_rate_servo component in a scenario file."""

    component: ClassVar[type[Component]] = JointRateServo
    type: Literal["joint_rate_servo"]
    joints: list[JointName] = Field(default=[], description="joints; default: all")
    gain: Positive = Field(default=20.0, description="1/s")
    base: Literal["fixed", "flying", "floating"] = "floating"
    limit: Positive | None = Field(default=None, description="of each torque, N m or N")
