"""What pages tell their scripts: span, phases and events of a run, its time, units of sliders."""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from remora.algebra.array_ops import Array
from remora.simulation.recording.recording import Recording
from remora.viewer.run_tables import PhaseSpan, phase_spans
from remora.viewer.scene.backdrops import BACKDROPS


def timeline_html(run: Recording, slider: str = "", button: str = "") -> str:
    """Return an invisible element from which `timeline_script.js` draws the timeline.

    Args:
        run: the run.
        slider: identifier of the control that a click on the timeline sets; none in a file.
        button: identifier of the button that plays and pauses; none in a file.
    """
    events = [(e.name, float(e.t)) for e in itertools.islice(run.events, 200)]
    return span_html(run.t, slider, button, phase_spans(run), events)


def span_html(
    times: Array,
    slider: str,
    button: str,
    phases: Sequence[PhaseSpan] = (),
    events: Sequence[tuple[str, float]] = (),
) -> str:
    """Return the element of a timeline from the first to the last of `times`, s."""
    data = {
        "start": float(times[0]),
        "end": float(times[-1]),
        "slider": slider,
        "button": button,
        "phases": [span._asdict() for span in phases],
        "events": [{"name": name, "t": t} for name, t in events],
    }
    return _hidden("run", json.dumps(data))


def film_html(factor: float, scene: str) -> str:
    """Return an invisible element that tells `film_script.js` how a file is played.

    Args:
        factor: seconds of the run in a second of the film.
        scene: the scene at first.
    """
    scenes = {name: asdict(look) for name, look in BACKDROPS.items()}
    return _hidden("film", json.dumps({"factor": factor, "scene": scene, "scenes": scenes}))


def now_html(t: float, playing: bool = False) -> str:
    """Return invisible elements that tell the displayed time, and whether it is playing."""
    return _hidden("now", f"{t:.6f}") + _hidden("playing", str(int(playing)))


def units_html(units: Mapping[str, str]) -> str:
    """Return an invisible element that tells the units of sliders, by their identifiers."""
    return _hidden("units", json.dumps(dict(units)))


def _hidden(name: str, value: str) -> str:
    return f'<i hidden data-remora-{name}="{html.escape(value, quote=True)}"></i>'
