"""Table of the components of a run, from the settings that are stored with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from remora.model.formats.bounded_xml import shown
from remora.simulation.recording.recording import Recording
from remora.viewer.controller_words import component_settings
from remora.viewer.load_words import LONGEST, loaded
from remora.viewer.run_tables import MOST_ROWS, TextTable


def components(run: Recording) -> TextTable:
    """Return a table of the components: timing, sources of inputs, signals, settings."""
    given, wired = run.settings.get("components"), run.settings.get("connections")
    named: Mapping[str, Any] = given if _is_mapping(given) else {}
    sources: Mapping[str, Any] = wired if _is_mapping(wired) else {}
    rows: list[tuple[str, ...]] = []
    for name, settings in list(named.items())[:MOST_ROWS]:
        own: Mapping[str, Any] = settings if _is_mapping(settings) else {}
        reads = [
            f"{target.removeprefix(name + '.')} ← {_source(source)}"
            for target, source in sources.items() if target.startswith(f"{name}.")
        ]  # fmt: skip
        signals = [
            f"{key.removeprefix(name + '.')} [{column.unit or '1'}]"
            for key, column in run.signal_columns.items() if key.startswith(f"{name}.")
        ]  # fmt: skip
        words = component_settings(run.robot, own)
        kind = f" ({own['made by']})" if own.get("made by") else ""
        cells = (
            f"{name}{kind}", _timing(own), "; ".join(reads), "; ".join(signals), ", ".join(words),
        )  # fmt: skip
        rows.append(tuple(shown(cell, 2 * LONGEST) for cell in cells))
    head = ("component", "timing", "inputs", "signals and states", "settings")
    return TextTable(head, rows, len(named) - len(rows))


def _timing(own: Mapping[str, Any]) -> str:
    if own.get("sample_time") is None:
        return "continuous"
    text = f"every {loaded(own['sample_time'])} s"
    return text + "".join(f", {k} {loaded(own[k])} s" for k in ("offset", "delay") if own.get(k))


def _source(source: Any) -> str:
    return source if isinstance(source, str) else loaded(source)


def _is_mapping(x: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(x, Mapping)
