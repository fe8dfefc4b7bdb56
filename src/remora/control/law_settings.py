"""Settings of a law in a scenario file: its fields become the arguments of the component."""

from __future__ import annotations

from typing import Any, ClassVar

from remora.components.component import TIMING, Component
from remora.components.component_settings import ComponentSettings
from remora.model.robot import Robot


class LawComponentSettings(ComponentSettings):
    """Settings whose fields have the names of the component's fields."""

    component: ClassVar[type[Component]]

    def made(self, robot: Robot, name: str) -> Component:
        """Return the component."""
        return self.with_values(name)

    def with_values(self, name: str, **others: Any) -> Component:
        """Return the component, with some of its fields replaced; None leaves a field out."""
        fields: list[tuple[str, Any]] = [*self]
        given: dict[str, Any] = {
            key: _plain(value) for key, value in fields if key not in ("type", *TIMING)
        }
        given = {key: x for key, x in {**given, **others}.items() if x is not None}
        return self.component(
            **given, name=name, sample_time=self.sample_time, offset=self.offset, delay=self.delay
        )


def _plain(value: Any) -> Any:
    """Return a value of a file as a plain number or tuple; angles in degrees are in rad already."""
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return float(value) if isinstance(value, float) else value
