"""Settings of a signal source in a scenario file."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from remora.components.component_settings import ComponentSettings
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.simulation.inputs.signal_source import SignalSource
from remora.simulation.scenario.load_schema import Load, LoadFile
from remora.simulation.scenario.scenario_loads import Path, load, sine


class SignalSourceSettings(ComponentSettings):
    """The settings of a signal source in a scenario file; times count from the run's start."""

    type: Literal["signal_source"]
    value: Load = Field(description="numbers, or a map: pulse, sine or profile")
    unit: Annotated[str, Field(max_length=40)] = Field(default="", description="of the signal")

    def made(self, robot: Robot, name: str) -> SignalSource:
        """Return the component."""
        faults: list[str] = []

        def refuse(path: Path, reason: str) -> None:
            place = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in path)
            faults.append(f"{place[1:]}: {reason}")

        shape = np.shape(_first(self.value))
        size = math.prod(shape)
        function: Any
        if isinstance(self.value, LoadFile) and self.value.sine is not None:
            function = sine(self.value.sine, size, 0.0, ("value", "sine"), refuse)
        else:
            function = load(self.value, size, math.inf, ("value",), refuse)
        if faults:
            raise RemoraError("; ".join(faults))
        return SignalSource(
            function, self.unit, shape=shape, name=name, sample_time=self.sample_time,
            offset=self.offset, delay=self.delay,
        )  # fmt: skip


def _first(given: Any) -> Any:
    """Return numbers of a load, for their shape."""
    if not isinstance(given, LoadFile):
        return given
    if given.profile is not None:
        return given.profile.values[0]
    if given.sine is not None:
        return given.sine.amplitude
    assert given.pulse is not None
    sine_of_pulse = given.pulse.sine
    return given.pulse.value if sine_of_pulse is None else sine_of_pulse.amplitude
