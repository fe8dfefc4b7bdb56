"""A rate gyro: the angular velocity of a frame with noise, bias and bias instability."""

from __future__ import annotations

import math
from collections.abc import Mapping

from remora.algebra.array_ops import Array, ArrayLike
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal, State
from remora.errors import RemoraError
from remora.model.robot import Robot


class RateGyro(Component):
    """A sampled gyroscope with three axes, those of a frame.

    rate = ω + bias + walk + σ n at each tick, with standard normal numbers n, and a bias that walks
    randomly: walk ← walk + drift √T m, T the sample time.

    Output: `rate`, `(3,)`, rad/s. State: `walk`, `(3,)`, rad/s.
    """

    sampled = True
    frame: str = parameter("body or frame it is mounted on", "frame")
    bias: ArrayLike = parameter(
        "constant part of the bias, its axes", "numbers", default=0.0, unit="rad/s", size=3
    )
    noise: float = parameter(
        "standard deviation σ of a measurement", default=0.0, unit="rad/s", minimum=0.0
    )
    drift: float = parameter("random walk of the bias", default=0.0, unit="rad/s/√s", minimum=0.0)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the frame does not move."""
        if robot.frame(self.frame).body < 0:
            raise RemoraError(f"frame {self.frame!r} is fixed in the inertial frame")
        return Interface(
            outputs={"rate": Signal(3, "rad/s")},
            discrete={"walk": State((0.0, 0.0, 0.0), "rad/s")},
            noise={"rate": 3, "walk": 3},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the measured angular velocity."""
        true = at.angular_velocity(self.frame)
        return {"rate": true + self.bias + at.memory["walk"] + self.noise * at.noise["rate"]}

    def update(self, at: Context) -> Mapping[str, Array]:
        """Return the next bias."""
        assert self.sample_time is not None
        step = self.drift * math.sqrt(self.sample_time)
        return {"walk": at.memory["walk"] + step * at.noise["walk"]}
