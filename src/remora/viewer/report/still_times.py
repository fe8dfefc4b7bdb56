"""At which times of a run stills are taken: its ends, captures, phases and events."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from remora.simulation.recording.recording import Recording
from remora.viewer.load_words import short
from remora.viewer.run_tables import described_phases, phase_starts

#: Number of stills of a run that lasts: two rows of three.
COUNT = 6
#: Moments closer together than this part of the run are one.
CLOSE = 0.04


class StillTime(NamedTuple):
    """A moment of a run that is shown.

    Attributes:
        t: s.
        caption: what happens then; empty between events.
    """

    t: float
    caption: str


def still_times(run: Recording) -> list[StillTime]:
    """Return the moments to show, in order: start, end, captures, phases, events, and between.

    Where there are too many, captures and releases count most, then phases, then events.
    """
    first, last = float(run.t[0]), float(run.t[-1])
    if last <= first:
        return [StillTime(first, "")]
    chosen = [StillTime(first, "start"), StillTime(last, "end")]
    for moment in _candidates(run):
        near = [c for c in chosen if abs(c.t - moment.t) < CLOSE * (last - first)]
        if not near and len(chosen) < COUNT and first < moment.t < last:
            chosen.append(moment)
    while len(chosen) < COUNT:
        chosen.sort()
        gaps = [(b.t - a.t, a.t) for a, b in itertools.pairwise(chosen)]
        size, start = max(gaps)
        chosen.append(StillTime(start + 0.5 * size, ""))
    return sorted(chosen)


def _candidates(run: Recording) -> list[StillTime]:
    given, starts = described_phases(run), phase_starts(run)
    found: list[StillTime] = []
    named = {float(e.t): short(e.name) for e in run.events}
    for s in run.switches:
        if float(s.t) in named:
            found.append(StillTime(float(s.t), named[float(s.t)]))
            continue
        on = ", ".join(short(x) for x in s.activated)
        off = ", ".join(short(x) for x in s.released)
        words = [f"{on} on" if on else "", f"{off} off" if off else ""]
        found.append(StillTime(float(s.t), "; ".join(w for w in words if w)))
    for k, t in enumerate(starts):
        name = str(given[k].get("name") or "") if k < len(given) else ""
        found.append(StillTime(float(t), f"{short(name) or f'phase {k + 1}'} begins"))
    found += [StillTime(float(e.t), short(e.name)) for e in run.events]
    return found
