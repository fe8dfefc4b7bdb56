"""Loads in scenario files: their schema, and their conversion to numbers, `Pulse` and `Profile`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from remora.algebra.array_ops import Array
from remora.errors import RemoraError
from remora.model.settings_fields import (
    Angle,
    Angles,
    NotNegative,
    Numbers,
    Positive,
    Rate,
    Settings,
    refusal,
)
from remora.simulation.inputs.moves import Sine
from remora.simulation.inputs.profiles import Profile, Pulse

#: Keys and indices from the top of the file to an element.
Path: TypeAlias = Sequence[str | int]
#: (path, reason) -> records a fault.
Refuse = Callable[[Path, str], None]


def one_of(settings: Settings, *names: str) -> str:
    """Return the one key that is present, or raise."""
    present = [name for name in names if getattr(settings, name) is not None]
    if len(present) != 1:
        words = " and ".join(present) if present else "none of them"
        raise refusal(f"must have one of {', '.join(names)}; it has {words}")
    return present[0]


def form_of(value: Any) -> str:
    """Return which form a value has: `map`, `list` or `one`."""
    if isinstance(value, (dict, Settings)):
        return "map"
    return "list" if isinstance(value, list) else "one"


class SineFile(Settings):
    """amplitude × sin(2π frequency t + phase), t since the phase (or the pulse) began."""

    amplitude: Numbers = Field(description="in the unit of the load")
    frequency: float | None = Field(default=None, ge=0.0, description="Hz")
    omega: Rate | None = Field(
        default=None, ge=0.0, description="rad/s or '5 deg/s', instead of frequency"
    )
    phase: Angle = Field(default=0.0, description="rad, or '90 deg'")

    @model_validator(mode="after")
    def _check(self) -> SineFile:
        one_of(self, "frequency", "omega")
        return self


class SineMoveFile(SineFile):
    """The sine of a joint's motion."""

    amplitude: Angles = Field(description="rad, m, or '30 deg'")  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


class PulseFile(Settings):
    """A value, or a sine that begins with it, between two times; nothing outside."""

    start: NotNegative = Field(description="s since the phase began")
    stop: Positive = Field(description="s since the phase began")
    value: Numbers | None = Field(default=None, description="N m, N, or [f, τ] in N, N m")
    sine: SineFile | None = None

    @model_validator(mode="after")
    def _check(self) -> PulseFile:
        one_of(self, "value", "sine")
        if self.stop <= self.start:
            raise refusal(f"must stop after it starts, not from {self.start:g} to {self.stop:g} s")
        return self


class ProfileFile(Settings):
    """Values between given times, nothing before the first and after the last."""

    times: list[NotNegative] = Field(min_length=2, description="ascending, s since the phase began")
    values: list[Numbers] = Field(min_length=2, description="as many as times")
    kind: Literal["linear", "hold", "cubic"] = Field(
        default="linear", description="straight lines, steps, or a smooth curve between the values"
    )


class LoadFile(Settings):
    """A load that changes with time: one of these keys."""

    pulse: PulseFile | None = None
    sine: SineFile | None = None
    profile: ProfileFile | None = None

    @model_validator(mode="after")
    def _check(self) -> LoadFile:
        one_of(self, "pulse", "sine", "profile")
        return self


#: A number, numbers, or a map that describes the change over time.
Load: TypeAlias = Annotated[
    Annotated[float, Tag("one")]
    | Annotated[list[float], Tag("list")]
    | Annotated[LoadFile, Tag("map")],
    Discriminator(form_of),
]


# Conversion --------------------------------------------------------------------------------------


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
