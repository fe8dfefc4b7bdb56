"""Recordings of sensors in CSV files.

The first line names the columns: `t`, `wrench[0]` to `wrench[5]`, and for every point, here `arm`,
`arm.twist[0]` to `[5]`, `arm.rate[0]` to `[5]`, and `arm.pose[0]` to `[7]` where it was measured.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator

import numpy as np

from remora.algebra.array_ops import Array, asarray
from remora.dynamics.assembly.sensor_reading import PointReading
from remora.dynamics.assembly.sensor_recording import SensorRecording
from remora.errors import Fault, ModelError, RemoraError
from remora.model.formats.bounded_reading import chunks

#: Maximum file size, bytes.
LARGEST = 256 * 1024 * 1024


def recording_text(recording: SensorRecording) -> str:
    """Return a recording as CSV, which `load_recording` reads back bit for bit."""
    columns: dict[str, Array] = {"t": recording.t}
    for name, values in _arrays(recording):
        columns |= {f"{name}[{k}]": values[:, k] for k in range(values.shape[1])}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(repr, row) for row in np.stack(list(columns.values()), axis=1).tolist())
    return text.getvalue()


def _arrays(recording: SensorRecording) -> Iterator[tuple[str, Array]]:
    if recording.wrench is not None:
        yield "wrench", recording.wrench
    for name, point in recording.points.items():
        yield f"{name}.twist", asarray(point.twist)
        yield f"{name}.rate", asarray(point.rate)
        if point.pose is not None:
            yield f"{name}.pose", asarray(point.pose)


def load_recording(path: str | os.PathLike[str], max_gap: float | None = None) -> SensorRecording:
    """Return the recording in a CSV file.

    Args:
        path: the file.
        max_gap: see `SensorRecording`.

    Raises:
        ModelError: naming the file, and the line or column that is wrong.
    """
    source = os.fspath(path)
    table = _table(source)
    t, left = table.pop("t", None), dict(table)
    if t is None:
        raise _wrong(source, "has no column 't', the times in s")
    wrench = _taken(source, left, "wrench", 6)
    points: dict[str, PointReading] = {}
    for name in [key.removesuffix(".twist[0]") for key in table if key.endswith(".twist[0]")]:
        twist, rate = (_taken(source, left, f"{name}.{what}", 6) for what in ("twist", "rate"))
        if rate is None or twist is None:
            raise _wrong(source, f"has no columns '{name}.rate[0]' to '[5]' of the point {name!r}")
        points[name] = PointReading(twist, rate, _taken(source, left, f"{name}.pose", 8))
    if left:
        known = "t, wrench[0..5], POINT.twist[0..5], POINT.rate[0..5], POINT.pose[0..7]"
        raise _wrong(source, f"has an unknown column {next(iter(left))!r}; known: {known}")
    try:
        return SensorRecording(t, wrench, points, max_gap)
    except RemoraError as error:
        raise _wrong(source, str(error)) from None


def _table(source: str) -> dict[str, Array]:
    try:
        text = b"".join(chunks(source, LARGEST)).decode("utf-8")
        lines = list(csv.reader(io.StringIO(text), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _wrong(source, f"is no CSV file: {error}") from None
    names = lines[0] if lines else []
    if len(set(names)) < len(names):
        raise _wrong(source, "names a column twice", 1)
    rows: list[list[float]] = []
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(names):
            what = f"has {len(line)} values for {len(names)} columns"
            raise _wrong(source, what, number)
        try:
            rows.append([float(value) for value in line])
        except ValueError as error:
            raise _wrong(source, str(error), number) from None
    values = np.array(rows).reshape(len(rows), len(names))
    return {name: values[:, k] for k, name in enumerate(names)}


def _taken(source: str, left: dict[str, Array], name: str, size: int) -> Array | None:
    """Take the columns of an array out of those that are left; None if there are none."""
    keys = [f"{name}[{k}]" for k in range(size)]
    if keys[0] not in left:
        return None
    missing = [key for key in keys if key not in left]
    if missing:
        raise _wrong(source, f"has no column {missing[0]!r}")
    return np.stack([left.pop(key) for key in keys], axis=1)


def _wrong(source: str, what: str, line: int | None = None) -> ModelError:
    return ModelError(source, [Fault("recording", what, line)])
