"""Schema of constraints and captures in scenario files."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, field_validator

from remora.model.building.constraint_drafts import KINDS
from remora.model.settings_fields import (
    Angle,
    AngleVector,
    FrameName,
    Positive,
    Settings,
    Text,
    Vector,
    refusal,
)
from remora.simulation.scenario.scenario_loads import form_of


def _form(value: Any) -> str:
    return "list" if form_of(value) == "list" else "one"


#: The name of a constraint, or several.
ConstraintNames: TypeAlias = Annotated[
    Annotated[Text, Tag("one")] | Annotated[list[Text], Tag("list")], Discriminator(_form)
]
#: A speed along z of the constraint's frame on the parent, or a velocity in its axes.
Separation: TypeAlias = Annotated[
    Annotated[float, Tag("one")] | Annotated[Vector, Tag("list")], Discriminator(_form)
]


class ConstraintFile(Settings):
    """A constraint that the scenario adds to its robot, as of `rm.loops.add_constraint`."""

    name: Text = Field(description="unique among the constraints")
    kind: Text = Field(description=f"one of {', '.join(KINDS)}")
    parent: Text | None = Field(
        description="body or frame, null for the inertial frame; of a gear: the leading joint"
    )
    child: Text | None = Field(
        description="another body or frame, or null; of a gear: the driven joint"
    )
    parent_xyz: Vector | None = Field(default=None, description="constraint frame there, m")
    parent_rpy: AngleVector | None = Field(default=None, description="rad, or '30 deg'")
    child_xyz: Vector | None = Field(default=None, description="constraint frame there, m")
    child_rpy: AngleVector | None = Field(default=None, description="rad, or '30 deg'")
    axis: Vector | None = Field(default=None, description="in the parent's constraint frame")
    axis2: Vector | None = Field(default=None, description="of a universal constraint")
    pitch: float | None = Field(default=None, description="of a helical one, m per rad")
    length: Positive | None = Field(default=None, description="of a rod, m")
    ratio: float | None = Field(default=None, description="of a gear")
    offset: Angle | None = Field(default=None, description="of a gear: rad, m, or '30 deg'")
    active: bool | None = Field(default=None, description="whether it acts from the start; true")


class CaptureFile(Settings):
    """A capture: the fixture comes within reach of the grapple, aligned and slow enough."""

    grapple: FrameName = Field(description="body or frame that captures")
    fixture: FrameName = Field(description="body or frame that is captured")
    distance: Positive = Field(description="largest distance of both origins, m")
    angle: Annotated[Angle, Field(gt=0.0)] = Field(
        default=math.pi, description="largest angle between both frames: rad, or '30 deg'"
    )
    speed: Positive = Field(description="largest relative speed of both origins, m/s")
    missed: Literal["record", "next", "stop"] = Field(
        default="record", description="what the run does when the fixture leaves the distance again"
    )

    @field_validator("angle")
    @classmethod
    def _at_most_half_a_turn(cls, angle: float) -> float:
        if angle > math.pi:
            raise refusal("must be at most half a turn, 180 deg")
        return angle
