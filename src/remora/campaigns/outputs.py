"""Outputs of the runs of a study: numbers computed from the samples of a batch, and criteria.

The state in which a run ended counts as its last sample, so that a run that is stopped by an event
between two samples has the numbers of that moment.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array
from remora.campaigns.study_schema import BandFile, CriterionFile, OutputFile, QuantityFile
from remora.components.system import System
from remora.dynamics.kinematics import frame_pose, frame_twist
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import in_coordinates, kind
from remora.model.robot import Robot
from remora.simulation.batch.result import Batch

#: Units in which angles are shown.
DEGREES = {"rad": "deg", "rad/s": "deg/s"}


class BlockSamples:
    """The samples of a block, with the motion of frames computed once.

    Attributes:
        batch: the batch, in memory of the host.
    """

    def __init__(self, batch: Batch, threads: int = 0) -> None:
        """Take a batch and the number of CPU threads; 0: one per core."""
        self.batch, self._threads = batch, threads
        self._known: dict[tuple[str, str], Array] = {}

    @functools.cached_property
    def end(self) -> BlockSamples:
        """The state in which each run ended, as a block with one sample."""
        last = self.batch.final
        signals = {name: x[:, None] for name, x in last.signals.items()}
        only = replace(self.batch, q=last.q[:, None], v=last.v[:, None], signals=signals)
        return BlockSamples(only, self._threads)

    def of_frame(self, frame: str, what: str) -> Array:
        """Return `position`, `velocity` or `angular_velocity` of a frame, inertial, `(n, m, 3)`."""
        if (frame, what) not in self._known:
            fixed = {"frame": frame}
            self._known[frame, what] = self.batch.evaluated(MOTIONS[what], fixed, self._threads)
        return self._known[frame, what]


def position(robot: Robot, q: Array, frame: str) -> Array:
    """Return the position of a frame in the inertial frame, `(..., 3)`, m."""
    return pose.translation(frame_pose(robot, q, frame))


def velocity(robot: Robot, q: Array, v: Array, frame: str) -> Array:
    """Return the velocity of a frame's origin in inertial axes, `(..., 3)`, m/s."""
    turned = pose.rotation(frame_pose(robot, q, frame))
    return quaternion.rotate(turned, frame_twist(robot, q, v, frame)[..., 3:])


def angular_velocity(robot: Robot, q: Array, v: Array, frame: str) -> Array:
    """Return the angular velocity of a frame in inertial axes, `(..., 3)`, rad/s."""
    turned = pose.rotation(frame_pose(robot, q, frame))
    return quaternion.rotate(turned, frame_twist(robot, q, v, frame)[..., :3])


#: Numbers of a rigid capture, by name in study files, with their units.
CAPTURE_UNITS = {
    "time": "s",
    "impulse": "N s",
    "angular_impulse": "N m s",
    "energy_loss": "J",
}
#: Motion of a frame, by name in study files; compiled as one kernel each.
MOTIONS = {"position": position, "velocity": velocity, "angular_velocity": angular_velocity}


@dataclass(frozen=True)
class Quantity:
    """A number of a run over time.

    Attributes:
        name: its name in the study.
        settings: what it is.
        unit: SI unit.
        shown_unit: unit in reports.
    """

    name: str
    settings: QuantityFile
    unit: str
    shown_unit: str

    @property
    def freedoms(self) -> int | None:
        """Number of measurements or states of NIS or NEES; None: it is another quantity."""
        return self.settings.freedoms if isinstance(self.settings, BandFile) else None

    def shown(self, x: Array) -> Array:
        """Return values in the unit of reports."""
        return np.degrees(x) if self.shown_unit != self.unit else x

    def of(self, samples: BlockSamples) -> Array:
        """Return the values at all samples, `(runs, n)`."""
        settings = self.settings
        values = _SUBJECTS[settings.subject].values
        assert values is not None
        x = values(settings, samples).reshape((*samples.batch.q.shape[:2], -1))
        if settings.minus is not None:
            x = x - np.asarray(settings.minus, float)
        if settings.element is not None:
            return x[..., settings.element]
        return x[..., 0] if x.shape[-1] == 1 else np.sqrt(np.sum(x * x, axis=-1))


class _Subject(NamedTuple):
    """What a quantity is a number of.

    Attributes:
        size_and_unit: number of elements and SI unit, after checks against the system.
        values: the values at all samples; None: it has a value once in a run, see `Output`.
    """

    size_and_unit: Callable[[System, QuantityFile], tuple[int, str]]
    values: Callable[[QuantityFile, BlockSamples], Array] | None = None


def _signal(system: System, settings: QuantityFile) -> tuple[int, str]:
    if settings.signal not in system.signals:
        raise UnknownName("signal", str(settings.signal), system.signals)
    shape, unit = system.signals[settings.signal]
    return math.prod(shape), unit


def _signal_values(settings: QuantityFile, samples: BlockSamples) -> Array:
    return np.asarray(samples.batch.signals[settings.signal or ""], float)


def _coordinate(system: System, settings: QuantityFile) -> tuple[int, str]:
    joint = system.robot.joints[settings.joint or ""]
    if not in_coordinates(joint):
        raise InvalidValue(f"joint {joint.name!r} ({joint.kind}) has a quaternion")
    freedoms = kind(joint).freedoms
    return len(freedoms), freedoms[0].coordinate_unit


def _coordinate_values(settings: QuantityFile, samples: BlockSamples) -> Array:
    batch = samples.batch
    return batch.q[..., batch.robot.joints[settings.joint or ""].q]


def _speed(system: System, settings: QuantityFile) -> tuple[int, str]:
    freedoms = kind(system.robot.joints[settings.speed or ""]).freedoms
    return len(freedoms), freedoms[0].speed_unit


def _speed_values(settings: QuantityFile, samples: BlockSamples) -> Array:
    batch = samples.batch
    return batch.v[..., batch.robot.joints[settings.speed or ""].v]


def _frame(system: System, settings: QuantityFile) -> tuple[int, str]:
    return 3, {"position": "m", "velocity": "m/s", "angular_velocity": "rad/s"}[settings.of]


def _frame_values(settings: QuantityFile, samples: BlockSamples) -> Array:
    x = samples.of_frame(settings.frame or "", settings.of)
    return x - np.array(settings.point) if settings.point is not None else x


def _capture(system: System, settings: QuantityFile) -> tuple[int, str]:
    known = system.robot.constraints.names
    if settings.capture not in known:
        raise UnknownName("constraint", str(settings.capture), known)
    return 1, CAPTURE_UNITS[settings.of]


def _event(system: System, settings: QuantityFile) -> tuple[int, str]:
    return 1, "s"


#: By the field of `QuantityFile` that is set.
_SUBJECTS = {
    "signal": _Subject(_signal, _signal_values),
    "joint": _Subject(_coordinate, _coordinate_values),
    "speed": _Subject(_speed, _speed_values),
    "frame": _Subject(_frame, _frame_values),
    "capture": _Subject(_capture),
    "event": _Subject(_event),
}


def quantity(system: System, name: str, settings: QuantityFile, unit: str | None) -> Quantity:
    """Return a quantity after checking it against the system, or raise."""
    size, own = _SUBJECTS[settings.subject].size_and_unit(system, settings)
    if settings.element is not None and settings.element >= size:
        raise InvalidValue(f"has {size} elements: there is no element {settings.element}")
    if settings.minus is not None and np.size(settings.minus) not in (1, size):
        raise InvalidValue(f"minus must be one number, or {size}")
    allowed = [u for u in (own, DEGREES.get(own)) if u]
    if unit is not None and unit not in (own, *allowed):
        names = " or ".join(map(repr, allowed))
        raise InvalidValue(f"unit must be {names or 'left out'}, not {unit!r}")
    return Quantity(name, settings, own, own if unit is None else unit)


@dataclass(frozen=True)
class Output:
    """One number of a run.

    Attributes:
        quantity: what is measured.
        at: time, s; or None.
        take: `final`, `max`, `min`, `mean` or time `integral` of the samples and the end, or
            `event`.
        given: event that must occur for a run to have this number; or None.
    """

    quantity: Quantity
    at: float | None
    take: str
    given: str | None = None

    @property
    def name(self) -> str:
        """Its name in the study."""
        return self.quantity.name

    def of(self, samples: BlockSamples) -> Array:
        """Return the number of each run, `(runs,)`; NaN where the run ended before."""
        found = self._of_all(samples)
        if self.given is None:
            return found
        return np.where(np.isnan(first_time(samples.batch, self.given)), np.nan, found)

    def _of_all(self, samples: BlockSamples) -> Array:
        settings, batch = self.quantity.settings, samples.batch
        if settings.event is not None:
            return first_time(batch, settings.event)
        if settings.capture is not None:
            return first_capture(batch, settings.capture, settings.of)
        x = self.quantity.of(samples)
        if self.at is not None:
            return x[:, int(np.argmin(np.abs(batch.t - self.at)))]
        known = np.isfinite(x)
        last = x.shape[-1] - 1 - np.argmax(known[:, ::-1], axis=-1)
        final, t = self.quantity.of(samples.end)[:, 0], batch.t[last]
        none = ~known.any(axis=-1) & ~np.isfinite(final)
        after = np.isfinite(final) & (batch.end > t)  # the end is no sample
        final = np.where(np.isfinite(final), final, x[np.arange(len(x)), last])
        if self.take == "final":
            found = final
        elif self.take == "integral":  # by trapezoids, until the run ends
            parts = 0.5 * (x[:, 1:] + x[:, :-1]) * np.diff(batch.t)
            found = np.where(known[:, 1:] & known[:, :-1], parts, 0.0).sum(axis=-1)
            more = 0.5 * (x[np.arange(len(x)), last] + final) * (batch.end - t)
            found = found + np.where(after & known.any(axis=-1), more, 0.0)
        elif self.take == "mean":
            total = np.where(known, x, 0.0).sum(axis=-1) + np.where(after, final, 0.0)
            found = total / np.maximum(known.sum(axis=-1) + after, 1)
        else:
            fill = -np.inf if self.take == "max" else np.inf
            best, better = (np.max, np.fmax) if self.take == "max" else (np.min, np.fmin)
            found = better(best(np.where(known, x, fill), axis=-1), final)
        return np.where(none, np.nan, found)


def first_time(batch: Batch, event: str) -> Array:
    """Return when an event first occurred in each run, `(runs,)`, s; NaN if it did not."""
    assert batch.events is not None
    return batch.events.first[..., batch.events.names.index(event)]


def first_capture(batch: Batch, constraint: str, what: str) -> Array:
    """Return a number of the first capture by a constraint in each run, `(runs,)`, or NaN.

    Args:
        batch: the runs.
        constraint: name of the constraint that is activated.
        what: see `CAPTURE_UNITS`.
    """
    found = np.full(batch.q.shape[0], np.nan)
    for switch in batch.switches:
        if constraint in switch.activated:
            pull = np.asarray(switch.impulses.get(constraint, np.zeros((len(found), 6))), float)
            pull = np.where(np.isnan(switch.t)[:, None], np.nan, pull)
            numbers = {
                "time": switch.t,
                "impulse": np.sqrt(np.sum(pull[:, :3] ** 2, axis=-1)),
                "angular_impulse": np.sqrt(np.sum(pull[:, 3:] ** 2, axis=-1)),
                "energy_loss": switch.energy_loss,
            }
            found = np.where(np.isnan(found), np.asarray(numbers[what], float), found)
    return found


def output(system: System, name: str, settings: OutputFile) -> Output:
    """Return an output after checking it against the system, or raise."""
    momentary = settings.event is not None or settings.capture is not None
    take = "event" if momentary else settings.take or "final"
    own = quantity(system, name, settings, settings.unit)
    if take == "integral":
        if settings.unit is not None:
            raise InvalidValue("the unit of an integral is that of the quantity times s: leave out")
        unit = own.unit.removesuffix("/s") if own.unit.endswith("/s") else f"{own.unit} s".strip()
        own = replace(own, unit=unit, shown_unit=unit)
    return Output(own, settings.at, take, settings.given)


@dataclass(frozen=True)
class Criterion:
    """A success criterion.

    Attributes:
        name: its name in the study.
        settings: the comparison.
    """

    name: str
    settings: CriterionFile

    def holds(self, outputs: Mapping[str, Array], samples: BlockSamples) -> Array:
        """Return in which runs it holds, `(runs,)`; NaN fails every comparison."""
        settings = self.settings
        if settings.event is not None:
            return np.isfinite(first_time(samples.batch, settings.event)) == settings.occurs
        x = outputs[settings.output or ""]
        above = x > settings.above if settings.above is not None else ~np.isnan(x)
        below = x < settings.below if settings.below is not None else ~np.isnan(x)
        return above & below

    def described(self, outputs: Mapping[str, Output]) -> str:
        """Return the comparison as text, in the units of reports."""
        settings = self.settings
        if settings.event is not None:
            return f"{settings.event} {'occurs' if settings.occurs else 'does not occur'}"
        own = outputs[settings.output or ""].quantity

        def shown(x: float) -> str:
            return f"{float(own.shown(np.array(x))):.6g} {own.shown_unit}".strip()

        parts = [f"{shown(settings.above)} <"] if settings.above is not None else []
        parts.append(own.name)
        parts += [f"< {shown(settings.below)}"] if settings.below is not None else []
        return " ".join(parts)
