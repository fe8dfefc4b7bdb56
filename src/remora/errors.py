"""Errors raised for bad input: every refusal is a `RemoraError`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class RemoraError(Exception):
    """Base of every error that Remora raises for bad input."""


class ModelWarning(UserWarning):
    """A robot file has something odd that concerns what its robot can compute."""


class SimulationWarning(UserWarning):
    """A run is made otherwise than by default, or may not be what was meant."""


class ShapeError(RemoraError, ValueError):
    """An array has the wrong shape or type."""


class InvalidValue(RemoraError, ValueError):
    """A value is out of its domain (not finite, not unit, singular, ...)."""


class UnknownName(RemoraError, LookupError):
    """A name that is not in a table; the text lists the names that are."""

    def __init__(self, what: str, name: object, known: Iterable[str]) -> None:
        """State which `what` was asked for by `name` (or index) and which are `known`."""
        names = ", ".join(known) or "(none)"
        called = f"named {name!r}" if isinstance(name, str) else repr(name)
        super().__init__(f"no {what} {called}; known: {names}")


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a robot: where it stands and why it is refused.

    Attributes:
        element: what is at fault, such as `<link name="arm">` or `joint 'elbow'`.
        reason: what is wrong and what is allowed.
        line: the line in the file, where one is known.
    """

    element: str
    reason: str
    line: int | None = None

    def __str__(self) -> str:
        """Return `line 12, <link name="arm">: mass ...`."""
        place = f"line {self.line}, " if self.line is not None else ""
        return f"{place}{self.element}: {self.reason}"


class ModelError(RemoraError):
    """A robot description is refused; all its faults are in one report.

    Attributes:
        source: the file, or what the description was called.
        faults: every fault found.
    """

    #: How many faults the text spells out; a hostile file may hold a million.
    SHOWN = 20

    def __init__(self, source: str, faults: Sequence[Fault]) -> None:
        """Report `faults` of the description `source`."""
        self.source = source
        self.faults = tuple(faults)
        count = f"{len(self.faults)} faults" if len(self.faults) != 1 else "1 fault"
        lines = [f"{source}: {count}", *(f"  {fault}" for fault in self.faults[: self.SHOWN])]
        if len(self.faults) > self.SHOWN:
            lines.append(f"  ... and {len(self.faults) - self.SHOWN} more")
        super().__init__("\n".join(lines))


class SimulationError(RemoraError):
    """A run could not go on; what was computed until then is kept.

    Attributes:
        reason: why.
        time: the simulated time at which it stopped, s.
        recording: the run until then (a `Recording`; of a batch a `Batch`), or None.
    """

    def __init__(self, reason: str, time: float, recording: object = None) -> None:
        """State the reason and the time."""
        super().__init__(f"at t = {time:.9g} s: {reason}")
        self.reason = reason
        self.time = time
        self.recording = recording
