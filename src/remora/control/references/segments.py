"""Segments of a path: when each begins, how long it takes, and how far it is travelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, asarray, stack
from remora.control.references.time_laws import Travel, shortest_time, time_law
from remora.errors import InvalidValue
from remora.model.arguments import each


def segment_times(
    what: str,
    law: str,
    count: int,
    durations: Any,
    limits: Sequence[tuple[Array, Any]],
    accelerations: Sequence[tuple[Array, Any]],
) -> tuple[Array, Array]:
    """Return durations and ramps `(count,)` of segments, as given or the shortest within limits.

    Args:
        what: the reference, for messages.
        law: time law.
        count: number of segments.
        durations: s, one for all or one by segment, and not shorter than limits that are given
            allow; None: the shortest within the limits.
        limits: lengths `(count, n)` with the largest speed of each, one or `(n,)`, or None.
        accelerations: likewise, with the largest accelerations.
    """
    time_law(law)
    rates, quickest = _slowest(what, count, limits), _slowest(what, count, accelerations)
    fast = all(limit is None for _, limit in limits)
    if durations is None:
        if fast:
            raise InvalidValue(f"{what} needs durations, or a largest speed")
        return _shortest(law, rates, quickest)
    given = each(f"durations of {what}", durations, count)
    if np.any(given <= 0.0):
        raise InvalidValue(f"durations of {what} must be positive, not {durations!r}")
    if fast and all(limit is None for _, limit in accelerations):
        return given, 0.25 * given
    least, ramps = _shortest(law, rates, quickest)
    if np.any(given < least * (1.0 - 1e-9)):
        told = ", ".join(f"{x:.4g}" for x in least)
        raise InvalidValue(
            f"durations of {what} exceed its limits of speed or acceleration: at least {told} s "
            f"are needed, not {durations!r}"
        )
    return given, ramps * (given / least)  # the shortest motion, slowed down


def _shortest(law: str, rates: list[float], accelerations: list[float]) -> tuple[Array, Array]:
    """Return the shortest durations and their ramps within limits of ṡ and s̈."""
    found = [shortest_time(law, r, a) for r, a in zip(rates, accelerations, strict=True)]
    return np.array([x[0] for x in found]), np.array([x[1] for x in found])


def _slowest(what: str, count: int, limits: Sequence[tuple[Array, Any]]) -> list[float]:
    """Return the largest ṡ or s̈ of every segment that keeps all limits; 1e6 where nothing moves."""
    found = np.full(count, np.inf)
    for lengths, limit in limits:
        if limit is None:
            continue
        most = each(f"limits of {what}", limit, lengths.shape[-1])
        if np.any(most <= 0.0):
            raise InvalidValue(f"limits of {what} must be positive, not {limit!r}")
        size = np.abs(lengths)
        own = np.min(np.where(size > 0.0, most / np.where(size > 0.0, size, 1.0), np.inf), axis=-1)
        found = np.minimum(found, own)
    unlimited = all(limit is None for _, limit in limits)
    return found.tolist() if unlimited else np.minimum(found, 1e6).tolist()


def travelled(t: Array, law: str, start: float, durations: Array, ramps: Array) -> Travel:
    """Return how far each segment is travelled, `(..., count)`; one begins where another ends."""
    begins: list[Any] = [start + 0.0 * durations[..., 0]]
    for i in range(durations.shape[-1] - 1):
        begins.append(begins[-1] + durations[..., i])
    return time_law(law)(asarray(t)[..., None] - stack(begins), durations, ramps)


def breaks(start: float, durations: Array, ramps: Array) -> tuple[float, ...]:
    """Return the times at which acceleration or jerk jumps, s."""
    ends = start + np.cumsum(durations)
    times = [start]
    for end, duration, ramp in zip(ends, durations, ramps, strict=True):
        times += [end - duration + ramp, end - ramp, end]
    return tuple(sorted({float(x) for x in times}))
