"""What sensors have in common: the chain of errors between the true value and the measured one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from remora.algebra import quaternion
from remora.algebra.array_ops import Array, ArrayLike, arctan2, asarray, clip, less, select
from remora.algebra.selections import floor
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import check_joint_numbers
from remora.components.parameter import declared, parameter
from remora.components.run_signals import ACCELERATION
from remora.components.signals import Signal, State
from remora.errors import RemoraError
from remora.model.robot import Robot


def scaled(true: Array, scale: ArrayLike, misalignment: ArrayLike | None = None) -> Array:
    """Return (1 + s) ∘ R(m)ᵀ y: a value as axes see it that are turned and have scale factors.

    Args:
        true: y, `(..., n)`.
        scale: errors s of the scale factors.
        misalignment: rotation vector m of the sensor's axes; None: n is not 3.
    """
    if misalignment is not None:
        true = quaternion.rotate(quaternion.exp(-0.5 * asarray(misalignment)), true)
    return true * (1.0 + asarray(scale))


def digitized(value: Array, limit: ArrayLike | None, resolution: ArrayLike | None) -> Array:
    """Return a value within ±limit, rounded to a multiple of the resolution; None: exact."""
    if limit is not None:
        value = clip(value, -asarray(limit), limit)
    return value if resolution is None else resolution * floor(value / resolution + 0.5)


def lost(pair: Array, probability: ArrayLike) -> Array:
    """Return the condition, true with a probability, of two standard normal numbers `(..., 2)`.

    Their direction arctan2(n₁, n₀) is uniform in (-π, π].
    """
    return less(arctan2(pair[..., 1], pair[..., 0]), math.pi * (2.0 * asarray(probability) - 1.0))


class Sensor(Component):
    """A sampled sensor: a true value with errors.

    A measurement is what the sensor makes of the true value, with bias + walk + σ n added. n are
    standard normal numbers of each tick, and the bias walks randomly: walk ← walk + drift √T m, T
    the sample time. A measurement that is lost, or of what is out of sight, leaves the last one;
    then `valid` is 0, otherwise 1. `sample_time` is the rate of the sensor, `delay` its latency.

    Subclasses give the unit and the number of elements, 0 for one by joint:
    `class RateGyro(VectorSensor, unit="rad/s", size=3)`.
    """

    sampled = True
    #: Whether what it measures can be out of sight, see `seen`.
    sees: ClassVar[bool] = False
    #: Whether noise and drift are the same about all axes.
    isotropic: ClassVar[bool] = False
    #: Name of the output.
    quantity: ClassVar[str] = ""
    bias: ArrayLike = parameter("constant part of the bias", default=0.0, kw_only=True)
    drift: ArrayLike = parameter("random walk of the bias", default=0.0, kw_only=True, minimum=0.0)
    noise: ArrayLike = parameter(
        "standard deviation σ of a measurement", default=0.0, kw_only=True, minimum=0.0
    )
    dropout: float | None = parameter(
        "probability that a measurement is lost; none is by default", default=None, kw_only=True,
        minimum=0.0, maximum=1.0,
    )  # fmt: skip

    def __init_subclass__(cls, unit: str = "", size: int | None = None, **options: Any) -> None:
        """Declare the errors with the unit and size of this sensor."""
        if size is not None:
            units = {"drift": f"{unit}/√s" if " or " not in unit else _by_root(unit)}
            units |= dict.fromkeys(("bias", "noise", "resolution", "limit"), unit)
            units |= {"scale": ""}
            own = inspect.get_annotations(cls)
            for name, known in declared(cls.__mro__[1]).items():
                if name in units and name not in own:
                    default: Any = None if known.optional else 0.0
                    one = cls.isotropic and name in ("noise", "drift")
                    kind = "number" if one else "numbers" if size else "by joint"
                    field = parameter(
                        known.doc, kind, default=default, kw_only=True, unit=units[name],
                        size=0 if one else size,
                        minimum=known.minimum, above=known.above,
                    )  # fmt: skip
                    setattr(cls, name, field)
                    plain = "float" if one else "ArrayLike"
                    own[name] = f"{plain} | None" if known.optional else plain
            cls.__annotations__ = own
        super().__init_subclass__(**options)

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        raise NotImplementedError

    def true(self, at: Context) -> Array:
        """Return the true value."""
        raise NotImplementedError

    def error_signal(self, robot: Robot) -> Signal:
        """Return the signal of its errors; that of the measurement by default."""
        return self.signal(robot)

    def inputs(self, robot: Robot) -> dict[str, Signal]:
        """Return the inputs; none by default."""
        return {}

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if numbers do not fit the measurement."""
        signal, errors = self.signal(robot), self.error_signal(robot)
        check_joint_numbers(self, errors.size)
        outputs = {self.quantity: signal}
        states = {"walk": State(np.zeros(errors.size), errors.unit)}
        noise = {"noise": errors.size, "walk": errors.size}
        if self._misses:
            outputs["valid"] = Signal()
            states["last"] = State(np.zeros(signal.shape), signal.unit)
        if self.dropout is not None:
            noise["dropout"] = 2
        return Interface(self.inputs(robot), outputs, discrete=states, noise=noise)

    @property
    def _misses(self) -> bool:
        """Whether there can be ticks without a measurement."""
        return self.sees or self.dropout is not None

    def seen(self, at: Context) -> Array:
        """Return 1 while what it measures is in sight, otherwise 0; where `sees` is true."""
        return np.ones(())

    def measured(self, at: Context) -> Array:
        """Return what is measured if it is not lost."""
        return self.true(at) + self.error(at)

    def error(self, at: Context) -> Array:
        """Return bias + walk + σ n."""
        return asarray(self.bias) + at.memory["walk"] + asarray(self.noise) * at.noise["noise"]

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the measurement."""
        value = self.measured(at)
        if not self._misses:
            return {self.quantity: value}
        valid = self.seen(at)
        if self.dropout is not None:
            valid = select(lost(at.noise["dropout"], self.dropout), 0.0, valid)
        kept = select(less(0.5, valid[..., None]), value, at.memory["last"])
        return {self.quantity: kept, "valid": valid}

    def update(self, at: Context) -> Mapping[str, Array]:
        """Return the next bias, and the measurement that a lost one leaves."""
        assert self.sample_time is not None
        step = asarray(self.drift) * math.sqrt(self.sample_time)
        changed = {"walk": at.memory["walk"] + step * at.noise["walk"]}
        if self._misses:
            changed["last"] = self.outputs(at)[self.quantity]
        return changed


class ScaledSensor(Sensor):
    """A sensor of quantities with a scale: scale factors, range and resolution.

    Errors of the scale factors come first, then what is added; the result is limited to the range
    and rounded.
    """

    scale: ArrayLike = parameter("error of the scale factor", default=0.0, kw_only=True)
    limit: ArrayLike | None = parameter(
        "of the range, either way; none by default", default=None, kw_only=True, above=0.0
    )
    resolution: ArrayLike | None = parameter(
        "step of measurements; exact by default", default=None, kw_only=True, above=0.0
    )

    def measured(self, at: Context) -> Array:
        """Return what is measured if it is not lost."""
        value = scaled(self.true(at), self.scale, self.turned()) + self.error(at)
        return digitized(value, self.limit, self.resolution)

    def turned(self) -> ArrayLike | None:
        """Return the misalignment of its axes; None: it has none."""
        return None


class VectorSensor(ScaledSensor):
    """A sensor with three axes of equal noise, which may be turned from those of its frame."""

    isotropic = True
    misalignment: ArrayLike = parameter(
        "of its axes from those of the frame, a rotation vector", "numbers", default=0.0,
        kw_only=True, unit="rad", size=3,
    )  # fmt: skip

    def turned(self) -> ArrayLike | None:
        """Return the misalignment of its axes."""
        return self.misalignment


def on_a_body(robot: Robot, frame: str) -> None:
    """Raise if a frame does not move."""
    if robot.frame(frame).body < 0:
        raise RemoraError(f"frame {frame!r} is fixed in the inertial frame")


def true_acceleration(robot: Robot) -> Signal:
    """Return the input for the true acceleration of the robot, or raise if it cannot move."""
    if not robot.nv:
        raise RemoraError(f"robot {robot.name!r} has no degrees of freedom: nothing accelerates")
    return Signal(robot.nv, source=ACCELERATION)


def _by_root(unit: str) -> str:
    """Return the units of a random walk, of joints that turn and slide."""
    return " or ".join(f"{part}/√s" for part in unit.split(" or "))
