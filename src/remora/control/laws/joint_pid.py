"""PID control of joints with feed-forward, a limit and anti-windup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, clip
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
from remora.components.signals import State
from remora.model.robot import Robot


class JointPID(Component):
    """A PID controller of joint positions, sampled, with anti-windup by back-calculation [AH06].

    u = k_p e + k_i ∫e + k_d (q̇_d - q̇) + τ_f, e = q_d - q, and τ = u limited to ±limit. At each
    tick ∫e⁺ = ∫e + h (e + (τ - u)/k_p): what the limit cuts off is taken back from the integral.

    Inputs: `position` q_d, `(k,)`; `velocity` q̇_d and `feedforward` τ_f, zero by default. Output:
    `torque`, `(k,)`. Discrete state: `integral`.

    Valid for gains that stabilize the coupled arm: of a joint with the inertia I and k_i below
    k_p k_d / I. A reference that jumps saturates the torque without winding up the integral.
    """

    uses_design = True
    sampled = True
    kp: ArrayLike = parameter("one, or one by joint", "by joint", unit="N m/rad or N/m", above=0.0)
    ki: ArrayLike = parameter("likewise", "by joint", unit="N m/(rad s) or N/(m s)", minimum=0.0)
    kd: ArrayLike = parameter("likewise", "by joint", unit="N m s/rad or N s/m", minimum=0.0)
    joints: Sequence[str] = parameter("its joints; all by default", "joints", default=())
    limit: float | None = parameter("of each torque", default=None, unit="N m or N", above=0.0)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        names = joint_names(robot, self.joints)
        position, torque = (
            joint_signal(robot, names, "coordinate_unit"),
            joint_signal(robot, names, "force_unit"),
        )
        check_joint_numbers(self, position.size)
        return Interface(
            inputs={
                "position": position,
                "velocity": joint_signal(robot, names, "speed_unit", 0.0),
                "feedforward": joint_signal(robot, names, "force_unit", 0.0),
            },
            outputs={"torque": torque},
            discrete={"integral": State(np.zeros(position.size))},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques."""
        return {"torque": self._law(at)[2]}

    def update(self, at: Context) -> Mapping[str, Array]:
        """Return the integral at the next tick."""
        error, demand, torque = self._law(at)
        assert self.sample_time is not None
        change = error + (torque - demand) / self.kp
        return {"integral": at.memory["integral"] + self.sample_time * change}

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the joints."""
        names = joint_names(at.robot, self.joints)
        return joint_forces(at.robot, names, self._law(at)[2])

    def _law(self, at: Context) -> tuple[Array, Array, Array]:
        """Return the error, the demanded and the limited torques."""
        names = joint_names(at.robot, self.joints)
        error = at.inputs["position"] - at.q[..., coordinate_places(at.robot, names)]
        lag = at.inputs["velocity"] - at.v[..., speed_places(at.robot, names)]
        demand = self.kp * error + self.ki * at.memory["integral"] + self.kd * lag
        demand = demand + at.inputs["feedforward"]
        if self.limit is None:
            return error, demand, demand
        return error, demand, clip(demand, -1.0 * self.limit, self.limit)
