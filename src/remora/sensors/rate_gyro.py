"""A rate gyro: the angular velocity of a frame with noise, bias and bias instability."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from remora.algebra.array_ops import Array, ArrayLike
from remora.components.component import Component, Interface
from remora.components.component_settings import SampledSettings
from remora.components.context import Context
from remora.components.parameter_checks import number, vector
from remora.components.signals import Signal, State
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, NotNegative, Rate, RateVector


class RateGyro(Component):
    """A sampled gyroscope with three axes, those of a frame.

    rate = ω + bias + walk + σ n at each tick, with standard normal numbers n, and a bias that walks
    randomly: walk ← walk + drift √T m, T the sample time.

    Output: `rate`, `(3,)`, rad/s. State: `walk`, `(3,)`, rad/s.

    Attributes:
        frame: name of the body or frame it is mounted on.
        bias: constant part of the bias, rad/s, one number or `(3,)`.
        noise: standard deviation σ of a measurement, rad/s.
        drift: rate random walk, rad/s/√s.
    """

    frame: str
    bias: ArrayLike = 0.0
    noise: float = 0.0
    drift: float = 0.0

    def __post_init__(self) -> None:
        """Check."""
        object.__setattr__(self, "bias", vector("the bias of a gyro", self.bias, 3))
        for name in ("noise", "drift"):
            value = number(f"the {name} of a gyro", getattr(self, name), 0.0)
            object.__setattr__(self, name, value)

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


class RateGyroSettings(SampledSettings):
    """The settings of a rate gyro in a scenario file."""

    type: Literal["rate_gyro"]
    frame: FrameName = Field(description="body or frame it is mounted on")
    bias: RateVector = Field(default=[0.0, 0.0, 0.0], description="rad/s or '0.1 deg/s', its axes")
    noise: Rate = Field(default=0.0, ge=0.0, description="standard deviation, rad/s or '0.1 deg/s'")
    drift: NotNegative = Field(default=0.0, description="random walk of the bias, rad/s/√s")

    def made(self, robot: Robot, name: str) -> RateGyro:
        """Return the component."""
        return RateGyro(
            self.frame, self.bias, float(self.noise), self.drift, name=name,
            sample_time=self.sample_time, offset=self.offset, delay=self.delay,
        )  # fmt: skip
