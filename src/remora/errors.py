"""The exceptions and warnings that Remora raises; all errors for bad input are `RemoraError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


class RemoraError(Exception):
    """Base of every error that Remora raises for bad input."""


class ModelWarning(UserWarning):
    """A robot file has an irregularity that affects what can be computed."""


class SimulationWarning(UserWarning):
    """A run deviates from the defaults or may not be what the user intended."""


class ShapeError(RemoraError, ValueError):
    """An array has the wrong shape or type."""


class InvalidValue(RemoraError, ValueError):
    """A value is outside its domain (not finite, not unit, singular, ...)."""


class SingularMatrix(InvalidValue):
    """A matrix that must be inverted is singular."""


class UnknownName(RemoraError, LookupError):
    """A name is not in a table; the message has the closest known name and lists all of them.

    Attributes:
        known: the known names.
    """

    known: tuple[str, ...]

    def __init__(
        self,
        what: str,
        name: object,
        known: Iterable[str],
        synonyms: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Report an unknown `name` (or index) of a `what`, and the `known` names.

        Args:
            what: what the name is of.
            name: the name.
            known: the known names.
            synonyms: other words, in lower case, and the names that they may mean.
        """
        self.known = tuple(known)
        called, hint = repr(name), ""
        if isinstance(name, str):
            called = f"named {name!r}"
            meant = (synonyms or {}).get(name.lower(), ())
            close = [other for other in meant if other in self.known]
            close = close or difflib.get_close_matches(name, self.known, 1, cutoff=0.7)
            hint = f"did you mean {close[0]!r}? " if close else ""
        names = ", ".join(self.known) or "(none)"
        super().__init__(f"no {what} {called}; {hint}known: {names}")


@dataclass(frozen=True)
class Fault:
    """One fault of a robot description: its location and the reason for the refusal.

    Attributes:
        element: the faulty element, such as `<link name="arm">` or `joint 'elbow'`.
        reason: what is wrong and what is allowed.
        line: the line in the file, if known.
    """

    element: str
    reason: str
    line: int | None = None

    def __str__(self) -> str:
        """Return `line 12, <link name="arm">: mass ...`."""
        place = f"line {self.line}, " if self.line is not None else ""
        return f"{place}{self.element}: {self.reason}"


class ModelError(RemoraError):
    """A robot description is invalid; all faults are reported at once.

    Attributes:
        source: the file, or the name of the description.
        faults: every fault found.
    """

    #: Maximum number of faults listed in the message; a hostile file may have a million.
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
    """A run could not be continued; the results up to that time are in `recording`.

    Attributes:
        reason: why it stopped.
        time: the simulated time at which it stopped, s.
        recording: the results so far (a `Recording`, or a `Batch` for a batch), or None.
    """

    def __init__(self, reason: str, time: float, recording: object = None) -> None:
        """State the reason and the time."""
        super().__init__(f"at t = {time:.9g} s: {reason}")
        self.reason = reason
        self.time = time
        self.recording = recording
