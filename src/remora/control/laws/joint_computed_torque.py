"""Computed torque in joint space: joints follow a motion as uncoupled oscillators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra.array_ops import Array, ArrayLike
from remora.algebra.vector import apply
from remora.components.actions import Action
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import (
    check_joint_numbers,
    coordinate_places,
    joint_forces,
    joint_names,
    joint_signal,
    speed_places,
)
from remora.components.parameter import parameter
from remora.control.motion import controlled_motion as motion
from remora.model.robot import Robot


class JointComputedTorque(Component):
    """Torques with which joints follow a motion [LWP80].

    τ_c = H* (q̈_d + k_d (q̇_d - q̇) + k_p (q_d - q)) + h*; H* and h* are those of the joints with a
    floating base, H* = H_cc - H_c0 H_0⁻¹H_0c, or H_cc and h_c for a fixed or flying one. The error
    obeys ë + k_d ė + k_p e = 0 in every joint, at any momentum.

    Inputs: `position`, `velocity`, `acceleration` of a joint reference, `(k,)`; the last two are
    zero by default. Output: `torque`, `(k,)`.

    Valid for exact mass properties, without friction; a mass error acts as a disturbance that
    k_p keeps small. A reference that jumps gives a torque that jumps: use a path with limits.
    """

    uses_design = True

    kp: ArrayLike = parameter("one, or one by joint", "by joint", unit="1/s²", above=0.0)
    kd: ArrayLike = parameter(
        "likewise; 2 √kp is critical damping", "by joint", unit="1/s", above=0.0
    )
    joints: Sequence[str] = parameter("its joints; all by default", "joints", default=())
    base: str = parameter("of the robot", "choice", default="floating", choices=motion.BASES)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        names = joint_names(robot, self.joints)
        position = joint_signal(robot, names, "coordinate_unit")
        check_joint_numbers(self, position.size)
        return Interface(
            inputs={
                "position": position,
                "velocity": joint_signal(robot, names, "speed_unit", 0.0),
                "acceleration": joint_signal(robot, names, "acceleration_unit", 0.0),
            },
            outputs={"torque": joint_signal(robot, names, "force_unit")},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques."""
        names = joint_names(at.robot, self.joints)
        places = speed_places(at.robot, names)
        force = motion.controlled_dynamics(at, places, self.base).force
        off = at.inputs["position"] - at.q[..., coordinate_places(at.robot, names)]
        lag = at.inputs["velocity"] - at.v[..., places]
        wanted = at.inputs["acceleration"] + self.kp * off + self.kd * lag
        return {"torque": apply(force.matrix, wanted) + force.offset}

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the joints."""
        names = joint_names(at.robot, self.joints)
        return joint_forces(at.robot, names, self.outputs(at)["torque"])
