"""Conversion of loads in scenario files to numbers, `Pulse` and `Profile` objects."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import RemoraError
from remora.simulation.inputs.moves import Sine
from remora.simulation.inputs.profiles import Profile, Pulse
from remora.simulation.scenario.load_schema import LoadFile, SineFile

#: Keys and indices from the top of the file to an element.
Path: TypeAlias = Sequence[str | int]
#: (path, reason) -> records a fault.
Refuse = Callable[[Path, str], None]


def sized(value: Any, size: int, path: Path, fault: Refuse) -> Array:
    """Return numbers as an array of that size; otherwise zeros and a fault."""
    array = np.atleast_1d(np.asarray(value, dtype=float))
    if array.shape != (size,):
        wanted = "one number" if size == 1 else f"{size} numbers"
        fault(path, f"must be {wanted}, not {array.size}")
        return np.zeros(size)
    return array


def sine(settings: SineFile, size: int, start: float, path: Path, fault: Refuse) -> Sine:
    """Return a sine that begins at a time."""
    amplitude = sized(settings.amplitude, size, (*path, "amplitude"), fault)
    return Sine(amplitude, omega_of(settings), settings.phase, start)


def omega_of(settings: SineFile) -> float:
    """Return the angular frequency, rad/s."""
    if settings.omega is not None:
        return settings.omega
    return 2.0 * math.pi * (settings.frequency or 0.0)


def load(value: Any, size: int, duration: float, path: Path, fault: Refuse) -> Any:
    """Return a load in the form that `rm.simulate` takes."""
    if not isinstance(value, LoadFile):
        return sized(value, size, path, fault)
    if value.sine is not None:
        return Pulse(0.0, duration, sine(value.sine, size, 0.0, (*path, "sine"), fault))
    if value.pulse is not None:
        pulse, inner = value.pulse, (*path, "pulse")
        if pulse.start >= duration:
            reason = f"begins after {pulse.start:g} s, the phase lasts {duration:g} s"
            fault((*inner, "start"), reason)
        amount: Any
        if pulse.sine is not None:
            amount = sine(pulse.sine, size, pulse.start, (*inner, "sine"), fault)
        else:
            amount = sized(pulse.value, size, (*inner, "value"), fault)
        return Pulse(pulse.start, pulse.stop, amount)
    assert value.profile is not None
    profile, inner = value.profile, (*path, "profile")
    rows = [sized(x, size, (*inner, "values", k), fault) for k, x in enumerate(profile.values)]
    try:
        return Profile(profile.times, np.array(rows), profile.kind)
    except RemoraError as error:
        fault((*inner, "times"), str(error))
        return None
