"""Encoders and tachometers of joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra.array_ops import Array, ArrayLike
from remora.algebra.selections import floor
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import (
    check_joint_numbers,
    coordinate_places,
    joint_names,
    joint_signal,
    speed_places,
)
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.model.robot import Robot


class JointEncoders(Component):
    """Sampled encoders and tachometers of joints.

    Position q + bias + σ n, rounded to multiples of the resolution; speed v + σ_v m, at each tick,
    with standard normal numbers n and m.

    Outputs: `positions`, `(k,)`, rad or m; `speeds`, `(k,)`, rad/s or m/s.
    """

    sampled = True
    joints: Sequence[str] = parameter("its joints; all by default", "joints", default=())
    bias: ArrayLike = parameter("one, or one by joint", "by joint", default=0.0, unit="rad or m")
    noise: ArrayLike = parameter(
        "standard deviation σ of positions", "by joint", default=0.0, unit="rad or m", minimum=0.0
    )
    speed_noise: ArrayLike = parameter(
        "standard deviation σ_v of speeds", "by joint", default=0.0, unit="rad/s or m/s",
        minimum=0.0,
    )  # fmt: skip
    resolution: float | None = parameter(
        "step of positions; exact by default", default=None, unit="rad or m", above=0.0
    )

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        names = joint_names(robot, self.joints)
        positions = joint_signal(robot, names, "coordinate_unit")
        check_joint_numbers(self, positions.size)
        speeds: Signal = joint_signal(robot, names, "speed_unit")
        return Interface(
            outputs={"positions": positions, "speeds": speeds},
            noise={"positions": positions.size, "speeds": speeds.size},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the measured positions and speeds."""
        names = joint_names(at.robot, self.joints)
        q = at.q[..., coordinate_places(at.robot, names)]
        q = q + self.bias + self.noise * at.noise["positions"]
        if self.resolution is not None:
            q = self.resolution * floor(q / self.resolution + 0.5)
        v = at.v[..., speed_places(at.robot, names)]
        return {"positions": q, "speeds": v + self.speed_noise * at.noise["speeds"]}
