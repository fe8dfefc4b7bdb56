"""What black boxes receive and return during a run, and its signals in the recording."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.sensor_reading import BaseState, SensorReading
from remora.simulation.recording.quantities import signal_columns
from remora.simulation.recording.recording import Recording

#: A sample is at a tick, not before it, if it is nearer than this part of the period.
SAME_TICK = 1e-6


class BoxExchange:
    """What a black box received and what it returned, tick by tick."""

    def __init__(self, name: str, box: BlackBox, gravity: Array) -> None:
        self.name, self.box, self._gravity = name, box, gravity
        self._times: list[float] = []
        self._twists: list[Array] = []
        self._wrenches: list[Array] = []
        self._docked: list[bool] = []

    def read(self, t: float, twist: Array | None, pose: Array | None) -> SensorReading:
        """Return the reading at a tick.

        Args:
            t: time, s.
            twist: of its base; None for a root.
            pose: of its base; None where it is not known.
        """
        if twist is None:
            return self.box.read(self.name, t, None)
        rate = None  # the mean over the last period
        if self._docked and self._docked[-1] and t > self._times[-1]:
            rate = (twist - self._twists[-1]) / (t - self._times[-1])
        base = BaseState(twist, rate, pose, self._gravity)
        reading = self.box.read(self.name, t, base)
        wrench = self.box.wrench(self.name, reading)  # or an error
        self._keep(t, twist, wrench, True)
        return reading

    def leave(self, t: float) -> None:
        """Note that the black box is not docked, from a tick on."""
        self._keep(t, np.zeros(6), np.zeros(6), False)

    def _keep(self, t: float, twist: Array, wrench: Array, docked: bool) -> None:
        self._times.append(t)
        self._twists.append(twist)
        self._wrenches.append(wrench)
        self._docked.append(docked)

    @property
    def wrench(self) -> Array:
        """The last wrench of the predecessor on the black box, `(6,)`."""
        return self._wrenches[-1]

    def signals(self, times: Array) -> dict[str, Array]:
        """Return the signals at the times of samples, each held from its tick on."""
        if not self._times:
            return {}
        last = np.searchsorted(self._times, times, side="right") - 1
        columns: dict[str, list[Any]] = {"twist": self._twists, "wrench": self._wrenches}
        if not all(self._docked):
            columns["docked"] = [float(docked) for docked in self._docked]
        return {f"{self.name}.{key}": np.array(rows)[last] for key, rows in columns.items()}


def with_signals(run: Recording, exchanges: Iterable[BoxExchange], period: float) -> Recording:
    """Return a recording with the signals of black boxes."""
    signals: dict[str, Array] = {}
    for exchange in exchanges:
        signals |= exchange.signals(run.t + SAME_TICK * period)
    for values in signals.values():
        values.flags.writeable = False
    shapes = {name: (values.shape[1:], "") for name, values in signals.items()}
    return replace(
        run, columns={**run.columns, **signals},
        signal_columns={**run.signal_columns, **signal_columns(shapes)},
    )  # fmt: skip
