"""An event that occurred during a run."""

from __future__ import annotations

from dataclasses import dataclass

from remora.algebra.array_ops import Array


@dataclass(frozen=True, eq=False)
class RecordedEvent:
    """An event that occurred during a run.

    Attributes:
        t: its time, s.
        name: name of the event.
        action: action taken.
        q: configuration at t, `(nq,)`.
        v: velocity at t, `(nv,)`.
    """

    t: float
    name: str
    action: str
    q: Array
    v: Array
