"""Reaction wheels: a torque on the base by the motors of any number of wheels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra import least_squares, pose, quaternion
from remora.algebra.array_ops import Array, asarray, clip, less, select, stack
from remora.algebra.vector import apply
from remora.components.actions import Action
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import joint_forces
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import InvalidValue
from remora.model.joints import turns_about_axis
from remora.model.robot import Robot


class ReactionWheels(Component):
    """Motor torques of wheels that together exert a demanded torque on the base [MC14].

    u = -S⁺ T - (1 - S⁺S) k I (Ω - Ω_d): S `(3, n)` are the spin axes in the base's axes, S⁺ their
    pseudo-inverse, T the demand; the second part is null motion, which brings speeds towards Ω_d
    without a torque on the base. u is limited to ±max_torque, and a wheel at ±max_speed takes no
    torque that spins it further: there is a rest of the demand that is not met. The wheels are
    bodies on revolute joints of the base; their gyroscopic torques are those of the robot.

    Inputs: `command` T, `(3,)`, N m, base axes; `external`, `(3,)`, torque that other actuators
    exert at the same time and the wheels are to take up, zero by default, subtracted from T.
    Outputs: `torque`, `(3,)`, -S u, what the wheels exert; `momentum`, `(3,)`, N m s, S I Ω;
    `speed`, `(n,)`, rad/s.

    Valid for wheels on the base that are balanced about their axes; drag is not modelled.
    """

    joints: Sequence[str] = parameter(
        "of the wheels, three or more with axes that span space", "joints", minimum=3
    )
    max_torque: float = parameter("of each motor", unit="N m", above=0.0)
    max_speed: float = parameter("of each wheel", unit="rad/s", above=0.0)
    null_gain: float = parameter("k of the null motion", default=0.0, unit="1/s", minimum=0.0)
    speeds: float = parameter("Ω_d of all wheels", default=0.0, unit="rad/s")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the wheels cannot turn the base about every axis."""
        for name in self.joints:
            joint = robot.joints[robot.joint_index(name)]
            if not turns_about_axis(joint) or joint.parent != 0 or joint.mimic is not None:
                raise InvalidValue(f"joint {name!r} is not a revolute joint of the base")
        axes: Any = spin_axes(robot, self.joints)
        if axes.dtype != object and np.linalg.matrix_rank(axes, tol=1e-6) < 3:
            raise InvalidValue(f"the axes of {', '.join(self.joints)} do not span space")
        return Interface(
            inputs={"command": Signal(3, "N m"), "external": Signal(3, "N m", default=0.0)},
            outputs={
                "torque": Signal(3, "N m"),
                "momentum": Signal(3, "N m s"),
                "speed": Signal(len(self.joints), "rad/s"),
            },
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return torque, momentum and speeds of the wheels."""
        speeds, inertias, axes = self._wheels(at)
        return {
            "torque": -apply(axes, self._motors(at)),
            "momentum": apply(axes, inertias * speeds),
            "speed": speeds,
        }

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the motors."""
        return joint_forces(at.robot, self.joints, self._motors(at))

    def _wheels(self, at: Context) -> tuple[Array, Array, Array]:
        """Return speeds and spin inertias `(..., n)`, and axes `(..., 3, n)`."""
        places = [at.robot.joints[name].v.start for name in self.joints]
        return (
            at.v[..., places],
            spin_inertias(at.robot, self.joints),
            spin_axes(at.robot, self.joints),
        )

    def _motors(self, at: Context) -> Array:
        """Return the motor torques, which are computed with axes and inertias of the design."""
        speeds, inertias, axes = self._wheels(at.design)
        inverse = least_squares.damped_inverse(axes)
        demand = -apply(inverse, at.inputs["command"] - at.inputs["external"])
        null = -self.null_gain * inertias * (speeds - self.speeds)
        motors = demand + least_squares.projected(axes, inverse, null)
        motors = clip(motors, -1.0 * self.max_torque, self.max_torque)
        fast, slow = less(self.max_speed, speeds), less(speeds, -1.0 * self.max_speed)
        motors = select(fast, select(less(0.0, motors), 0.0, motors), motors)
        return select(slow, select(less(motors, 0.0), 0.0, motors), motors)


def spin_axes(robot: Robot, joints: Sequence[str]) -> Array:
    """Return the axes of wheels in the base's axes, `(..., 3, n)`."""
    found = [
        quaternion.rotate(
            pose.rotation(robot.joints[x].placement), asarray(robot.joints[x].axes[0])
        )
        for x in joints
    ]
    return stack(found, axis=-1)


def spin_inertias(robot: Robot, joints: Sequence[str]) -> Array:
    """Return the inertias of wheels about their axes with rotors, `(..., n)`, kg m²."""
    found: list[Array] = []
    for name in joints:
        joint, body = robot.joints[name], robot.bodies[robot.joint_index(name)]
        axis = asarray(joint.axes[0])
        about = (axis * apply(asarray(body.inertia), axis)).sum(axis=-1)
        found.append(asarray(about) + asarray(joint.rotor_inertia)[..., 0])
    return stack(found)
