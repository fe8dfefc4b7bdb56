"""Settings of components in scenario files: what all of them have in common."""

from __future__ import annotations

from abc import abstractmethod

from pydantic import Field

from remora.components.component import Component
from remora.model.robot import Robot
from remora.model.settings_fields import NotNegative, Positive, Settings, Text


class ComponentSettings(Settings):
    """Settings of a component: name and timing; subclasses add `type` and the rest."""

    name: Text | None = Field(default=None, description="name in the system; default: the type")
    sample_time: Positive | None = Field(default=None, description="s; default: continuous")
    offset: NotNegative = Field(default=0.0, description="time of the first tick, s")
    delay: NotNegative = Field(default=0.0, description="from a tick until it takes effect, s")

    @abstractmethod
    def made(self, robot: Robot, name: str) -> Component:
        """Return the component, named `name`; raise a RemoraError if a setting is wrong."""


class SampledSettings(ComponentSettings):
    """Settings of a component that must be sampled."""

    sample_time: Positive = Field(description="s")  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


class ContinuousSettings(Settings):
    """Settings of a component that is always continuous."""

    name: Text | None = Field(default=None, description="name in the system; default: the type")

    @abstractmethod
    def made(self, robot: Robot, name: str) -> Component:
        """Return the component, named `name`; raise a RemoraError if a setting is wrong."""
