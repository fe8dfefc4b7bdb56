"""Encoders and tachometers of joints, also of reaction wheels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.joint_signals import (
    coordinate_places,
    joint_names,
    joint_signal,
    speed_places,
)
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.model.robot import Robot
from remora.sensors.sensor import ScaledSensor


class JointEncoders(ScaledSensor, unit="rad or m", size=0):
    """Sampled encoders of joints, with the speeds that they derive.

    Position (1 + scale) q + bias + walk + σ n, rounded to multiples of the resolution; speed
    v + σ_v m, at each tick, with standard normal numbers n and m. For speeds with errors of their
    own see `Tachometers`.

    Outputs: `positions`, `(k,)`, rad or m; `speeds`, `(k,)`, rad/s or m/s.
    """

    quantity = "positions"
    joints: Sequence[str] = parameter("its joints; all by default", "joints", default=())
    speed_noise: ArrayLike = parameter(
        "standard deviation σ_v of speeds", "by joint", default=0.0, unit="rad/s or m/s",
        minimum=0.0,
    )  # fmt: skip

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        own = super().interface(robot)
        speeds: Signal = joint_signal(robot, joint_names(robot, self.joints), "speed_unit")
        return replace(
            own,
            outputs={**own.outputs, "speeds": speeds},
            noise={**own.noise, "speeds": speeds.size},
        )

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return joint_signal(robot, joint_names(robot, self.joints), "coordinate_unit")

    def true(self, at: Context) -> Array:
        """Return the positions."""
        return at.q[..., coordinate_places(at.robot, joint_names(at.robot, self.joints))]

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the measured positions and speeds."""
        v = at.v[..., speed_places(at.robot, joint_names(at.robot, self.joints))]
        speeds = v + asarray(self.speed_noise) * at.noise["speeds"]
        return {**super().outputs(at), "speeds": speeds}


class Tachometers(ScaledSensor, unit="rad/s or m/s", size=0):
    """Sampled tachometers of joints, such as those of reaction wheels.

    Speed (1 + scale) v + bias + walk + σ n, within ±limit and rounded to multiples of the
    resolution, at each tick.

    Output: `speeds`, `(k,)`, rad/s or m/s.
    """

    quantity = "speeds"
    joints: Sequence[str] = parameter("its joints; all by default", "joints", default=())

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return joint_signal(robot, joint_names(robot, self.joints), "speed_unit")

    def true(self, at: Context) -> Array:
        """Return the speeds."""
        return at.v[..., speed_places(at.robot, joint_names(at.robot, self.joints))]
