"""Pydantic field types of settings files: numbers, angles, and names of a robot's parts.

A plain number is in SI units (rad, m, rad/s, ...). An angle may also be given in degrees, as
`30 deg`, a rate as `5 deg/s`. Names are checked against the robot in the validation context, if
there is one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from remora.model.degrees import NUMBER, Degrees, in_degrees
from remora.model.joints import kind
from remora.model.robot import Joint, Robot

#: Maximum length of a name or path.
MAX_TEXT = 1000


class Settings(BaseModel):
    """A map with known keys; types are not converted, and unknown keys are refused.

    Validators are built when they are first needed, which keeps `import remora` short.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, frozen=True, defer_build=True
    )


def refusal(reason: str) -> PydanticCustomError:
    """Return the validation error for a value."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason})


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown name: the closest match, and all known names."""
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"no {what} named {name[:60]!r}; {hint}known: {', '.join(names[:50]) or '(none)'}"


#: pydantic's error types -> our messages; {…} are filled in from the error's context.
WORDS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a map",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be {ge:g} or greater",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "model_attributes_type": "must be a map",
    "model_type": "must be a map",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "string_type": "must be text",
}


# Numbers ----------------------------------------------------------------------------------------


def _in_degrees(unit: str, accepted: str | None = None) -> WrapValidator:
    def converted(value: Any, check: Callable[[Any], float]) -> float:
        if not isinstance(value, str):
            return check(value)
        found = in_degrees(value, accepted or unit)
        if found is None:
            shown = value if len(value) <= 40 else value[:37] + "..."
            raise refusal(f"must be a number, or degrees such as '30 {unit}', not {shown!r}")
        return Degrees(check(float(found)))

    return WrapValidator(converted)


def degrees_of_a_slide(joint: Joint, *values: Any) -> str:
    """Return the fault of an angle given for a joint that only translates, or an empty text."""

    def in_degrees(value: Any) -> bool:
        return isinstance(value, Degrees) or (
            _is_list(value) == "list" and any(map(in_degrees, value))
        )

    if joint.kind in ("prismatic", "cartesian") and any(map(in_degrees, values)):
        return f"joint {joint.name!r} is {joint.kind}: it moves by metres, not by degrees"
    return ""


def _text_or_number(unit: str) -> WithJsonSchema:
    text = {"type": "string", "pattern": rf"^{NUMBER}\s*{unit}$"}
    return WithJsonSchema({"anyOf": [{"type": "number"}, text]})


#: `Degrees` are written as plain numbers, in rad; without this a union with lists warns.
_AS_NUMBER = PlainSerializer(float, return_type=float)
#: A number, or a text such as `30 deg`.
Angle: TypeAlias = Annotated[float, _in_degrees("deg"), _text_or_number("deg"), _AS_NUMBER]
#: A number, or a text such as `5 deg/s`.
Rate: TypeAlias = Annotated[float, _in_degrees("deg/s"), _text_or_number("deg/s"), _AS_NUMBER]
#: A number, or a text such as `30 deg` or `5 deg/s`.
AngleOrRate: TypeAlias = Annotated[
    float, _in_degrees("deg", "deg(?:/s)?"), _text_or_number("deg(/s)?"), _AS_NUMBER
]
PositiveRate: TypeAlias = Annotated[Rate, Field(gt=0.0)]
Positive: TypeAlias = Annotated[float, Field(gt=0.0)]
NotNegative: TypeAlias = Annotated[float, Field(ge=0.0)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


def _is_list(value: Any) -> str:
    return "list" if isinstance(value, list) else "one"


#: One number, or one per degree of freedom of a joint.
Numbers: TypeAlias = Annotated[
    Annotated[float, Tag("one")] | Annotated[list[float], Tag("list")],
    Discriminator(_is_list),
]
Angles: TypeAlias = Annotated[
    Annotated[Angle, Tag("one")] | Annotated[list[Angle], Tag("list")],
    Discriminator(_is_list),
]
#: The same in any unit, with angles and rates also in degrees.
AnglesOrRates: TypeAlias = Annotated[
    Annotated[AngleOrRate, Tag("one")] | Annotated[list[AngleOrRate], Tag("list")],
    Discriminator(_is_list),
]
Rates: TypeAlias = Annotated[
    Annotated[Rate, Tag("one")] | Annotated[list[Rate], Tag("list")],
    Discriminator(_is_list),
]
Vector: TypeAlias = Annotated[list[float], Field(min_length=3, max_length=3)]
AngleVector: TypeAlias = Annotated[list[Angle], Field(min_length=3, max_length=3)]
RateVector: TypeAlias = Annotated[list[Rate], Field(min_length=3, max_length=3)]


# Names ------------------------------------------------------------------------------------------


def _robot(info: ValidationInfo) -> Robot | None:
    return info.context if isinstance(info.context, Robot) else None


def _moving_joint(name: str, info: ValidationInfo) -> str:
    robot = _robot(info)
    if robot is None:
        return name
    if name not in robot.joints:
        raise refusal(no_such("joint", name, robot.joints.names))
    joint = robot.joints[name]
    if joint.mimic is not None:
        leader = robot.joints[joint.mimic.joint].name
        raise refusal(f"joint {name!r} mimics {leader!r}: set it on that joint")
    if kind(joint).nv == 0:
        raise refusal(f"joint {name!r} is fixed: it cannot move")
    return name


def _body(name: str, info: ValidationInfo) -> str:
    robot = _robot(info)
    if robot is not None and name not in robot.bodies:
        raise refusal(no_such("body", name, robot.bodies.names))
    return name


def _frame(name: str, info: ValidationInfo) -> str:
    robot = _robot(info)
    if robot is not None and name not in robot.bodies and name not in robot.frames:
        known = [*robot.bodies.names, *robot.frames.names]
        raise refusal(no_such("body or frame", name, known))
    return name


#: The name of a joint that moves independently (not fixed, not a mimic joint).
JointName: TypeAlias = Annotated[str, AfterValidator(_moving_joint)]
BodyName: TypeAlias = Annotated[str, AfterValidator(_body)]
#: The name of a body or of a frame on one.
FrameName: TypeAlias = Annotated[str, AfterValidator(_frame)]
