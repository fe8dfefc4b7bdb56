"""What the timeline at the bottom of a page shows: span, phases and events of a run."""

from __future__ import annotations

import html
import itertools
import json
from typing import NamedTuple

from remora.simulation.recording.recording import Recording
from remora.viewer.run_tables import described_phases, phase_starts


class PhaseSpan(NamedTuple):
    """A phase on the timeline: name, start and end, s."""

    name: str
    start: float
    end: float


def phase_spans(run: Recording) -> list[PhaseSpan]:
    """Return the phases that a run reached; none if it has only one without a name."""
    given, starts = described_phases(run), [float(t) for t in phase_starts(run)]
    names = [
        str((given[k].get("name") if k < len(given) else None) or f"phase {k + 1}")
        for k in range(len(starts))
    ]
    ends = [*starts[1:], float(run.t[-1])]
    spans = [PhaseSpan(n, a, b) for n, a, b in zip(names, starts, ends, strict=False)]
    return [] if len(spans) == 1 and spans[0].name == "phase 1" else spans


def timeline_html(run: Recording, slider: str) -> str:
    """Return an invisible element from which `page_script.js` draws the timeline.

    Args:
        run: the run.
        slider: identifier of the slider that a click on the timeline moves.
    """
    told = {
        "start": float(run.t[0]),
        "end": float(run.t[-1]),
        "slider": slider,
        "phases": [span._asdict() for span in phase_spans(run)],
        "events": [{"name": e.name, "t": float(e.t)} for e in itertools.islice(run.events, 200)],
    }
    return f'<i hidden data-remora-run="{html.escape(json.dumps(told), quote=True)}"></i>'


def now_html(t: float) -> str:
    """Return an invisible element with the displayed time."""
    return f'<i hidden data-remora-now="{t:.6f}"></i>'
