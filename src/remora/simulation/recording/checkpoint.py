"""Checkpoints: the complete state of a run between two steps, for a bitwise identical resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array


class PhaseCheckpoint(NamedTuple):
    """State of the phase loop that determines the next step, besides the state of the run.

    Attributes:
        asked: number of samples of each controller.
        orders: last command of each controller (zero-order hold).
        segment: interval without discontinuities, s.
        program: state of the program of the phase, all its cells in a row.
        ended: the event that has ended the phase, in a run that pauses there; never on disk.
    """

    asked: list[int]
    orders: list[Array]
    segment: tuple[float, float]
    program: Array
    ended: Any = None


class Checkpoint(NamedTuple):
    """A point between two steps of a run.

    Attributes:
        samples: number of samples recorded before it.
        events: number of events recorded before it.
        next: index of the next sample time.
        phase: index of the phase.
        entered: configuration at the start of the phase, `(nq,)`.
        t: time, s.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        work: `(3,)`, J.
        x: continuous states of the components, `(nx,)`.
        z: discrete states of the components, `(nz,)`.
        updates: number of updates of each entry of the system's schedule.
        carried: compensation terms of q, v, work and x (Kahan summation).
        inside: state of the phase loop.
        changed: parts of loads that have changed since the start: state that is not saved.
    """

    samples: int
    events: int
    next: int
    phase: int
    entered: Array
    t: float
    q: Array
    v: Array
    work: Array
    x: Array
    z: Array
    updates: list[int]
    carried: tuple[Array, Array, Array, Array]
    inside: PhaseCheckpoint
    changed: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return it as JSON-compatible data, exact to the last bit of a float."""
        return {**_plain(self._asdict()), "inside": _plain(self.inside._asdict())}


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    def value(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return x.tolist()
        return [value(part) for part in x] if type(x) in (list, tuple) else x

    return {name: value(x) for name, x in fields.items()}


def from_plain(data: Mapping[str, Any]) -> Checkpoint:
    """Return the checkpoint of data written by `plain`."""

    def array(x: Any) -> Array:
        return np.array(x, dtype=float)

    inner: Mapping[str, Any] = data["inside"]
    start, stop = inner["segment"]
    inside = PhaseCheckpoint(
        asked=[int(k) for k in inner["asked"]],
        orders=[array(x) for x in inner["orders"]],
        segment=(float(start), float(stop)),
        program=array(inner["program"]),
    )
    rest, rest_v, rest_work, rest_x = data["carried"]
    return Checkpoint(
        samples=int(data["samples"]),
        events=int(data["events"]),
        next=int(data["next"]),
        phase=int(data["phase"]),
        entered=array(data["entered"]),
        t=float(data["t"]),
        q=array(data["q"]),
        v=array(data["v"]),
        work=array(data["work"]),
        x=array(data["x"]),
        z=array(data["z"]),
        updates=[int(k) for k in data["updates"]],
        carried=(array(rest), array(rest_v), array(rest_work), array(rest_x)),
        inside=inside,
        changed=tuple(str(name) for name in data["changed"]),
    )
