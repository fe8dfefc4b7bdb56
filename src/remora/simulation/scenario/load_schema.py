"""Schema of loads in scenario files: numbers, pulses, sines and profiles over time."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

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


# Loads -------------------------------------------------------------------------------------------


class SineFile(Settings):
    """amplitude × sin(2π frequency t + phase), t since the phase (or the pulse) began."""

    amplitude: Numbers = Field(description="in the unit of what it is")
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
