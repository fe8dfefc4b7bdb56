"""A servo of joint rates: torques with which joints move at commanded rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra.array_ops import Array, ArrayLike, clip
from remora.algebra.vector import apply
from remora.components.actions import Action
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import (
    check_joint_numbers,
    joint_forces,
    joint_names,
    joint_signal,
    speed_places,
)
from remora.components.parameter import parameter
from remora.control.motion import controlled_motion as motion
from remora.model.robot import Robot


class JointRateServo(Component):
    """Torques with which joints follow commanded rates, with the dynamics of the base in them.

    τ_c = H* (v̇_d + k (v_d - v_c)) + h*, with H* = H_cc - H_c0 H_0⁻¹H_0c and
    h* = h_c - H_c0 H_0⁻¹h_0 for a floating base, H_cc and h_c otherwise: v_c follows v_d with the
    time constant 1/k, uncoupled, at any momentum. A grasped body is part of H_0 and h_0.

    Inputs: `rate` v_d, `(k,)`; `acceleration` v̇_d, zero by default. Output: `torque`, `(k,)`.

    Valid for exact mass properties; friction and springs of joints are not compensated. Sampled
    with the time h it is stable for k h < 2, and k h = 1 is deadbeat.
    """

    uses_design = True

    joints: Sequence[str] = parameter("its joints; all by default", "joints", default=())
    gain: ArrayLike = parameter(
        "k, one, or one by joint", "by joint", default=20.0, unit="1/s", above=0.0
    )
    base: str = parameter("of the robot", "choice", default="floating", choices=motion.BASES)
    limit: float | None = parameter("of each torque", default=None, unit="N m or N", above=0.0)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        names = joint_names(robot, self.joints)
        torque = joint_signal(robot, names, "force_unit")
        check_joint_numbers(self, torque.size)
        return Interface(
            inputs={
                "rate": joint_signal(robot, names, "speed_unit"),
                "acceleration": joint_signal(robot, names, "acceleration_unit", 0.0),
            },
            outputs={"torque": torque},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques."""
        names = joint_names(at.robot, self.joints)
        places = speed_places(at.robot, names)
        force = motion.controlled_dynamics(at, places, self.base).force
        lag = at.inputs["rate"] - at.v[..., places]
        wanted = at.inputs["acceleration"] + self.gain * lag
        tau = apply(force.matrix, wanted) + force.offset
        return {"torque": tau if self.limit is None else clip(tau, -1.0 * self.limit, self.limit)}

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the joints."""
        names = joint_names(at.robot, self.joints)
        return joint_forces(at.robot, names, self.outputs(at)["torque"])
