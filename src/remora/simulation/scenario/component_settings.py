"""Settings of components in scenario files, made from the parameters that their fields carry.

`component_settings` returns the pydantic class of a component class: a key for every parameter,
with its type, range and description. `FORMS` has a row for every kind of parameter.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, create_model

from remora.algebra import pose, quaternion
from remora.components.component import TIMING, Component
from remora.components.joint_signals import joint_names
from remora.components.parameter import OF_SIGNAL, ROW_SETS, ROWS, Parameter, declared, title
from remora.errors import InvalidValue, RemoraError
from remora.model.degrees import in_degrees
from remora.model.robot import Robot
from remora.model.settings_fields import (
    Angle,
    AngleOrRate,
    AngleVector,
    FrameName,
    JointName,
    NotNegative,
    Positive,
    Rate,
    Settings,
    Text,
    Vector,
    degrees_of_a_slide,
    no_such,
)
from remora.simulation.scenario.scenario_loads import Load, LoadFile, Path, form_of, load, sine

#: For types that are made while running, which static checks do not follow.
_annotated: Any = Annotated
_literal: Any = Literal
_list_of: Any = list
_dict_of: Any = dict
_limits: Any = Field
_model: Any = create_model


class ComponentSettings(Settings):
    """Settings of a component: name and timing; subclasses add `type` and the parameters."""

    component: ClassVar[type[Component]]
    type_name: ClassVar[str]
    name: Text | None = Field(default=None, description="name in the system; default: the type")
    sample_time: Positive | None = Field(default=None, description="s; default: continuous")
    offset: NotNegative = Field(default=0.0, description="time of the first tick, s")
    delay: NotNegative = Field(default=0.0, description="from a tick until it takes effect, s")

    def made(self, robot: Robot, name: str) -> Component:
        """Return the component, named `name`; raise a RemoraError if a setting is wrong."""
        timing = {key: getattr(self, key) for key in ("sample_time", "offset", "delay")}
        return self.component(**arguments(self, self.component, robot), **timing, name=name)


class LawSettings(Settings):
    """Settings of a control law of a phase; subclasses add `law` and the parameters."""

    component: ClassVar[type[Component]]
    sample_time: Positive = Field(description="s")

    def made(self, robot: Robot) -> Any:
        """Return the law."""
        return self.component(
            **arguments(self, self.component, robot), sample_time=self.sample_time
        )


def component_settings(component: type[Component], name: str) -> type[ComponentSettings]:
    """Return the class of the settings of a component, whose `type` is `name`."""
    fields = parameter_fields(component, declared(component))
    if component.sampled:
        fields["sample_time"] = (Positive, Field(description="s"))
    made: type[ComponentSettings] = _model(
        f"{component.__name__}Settings", __base__=ComponentSettings, __module__=__name__,
        __doc__=f"The settings of {title(component)} in a scenario file.",
        type=(_literal[name], ...), **fields,
    )  # fmt: skip
    made.component, made.type_name = component, name
    return made


def law_settings(component: type[Component], name: str) -> type[LawSettings]:
    """Return the class of the settings of a law of a phase, whose `law` is `name`."""
    apart = {
        key: parameter for key, parameter in declared(component).items() if not parameter.in_system
    }
    made: type[LawSettings] = _model(
        f"{component.__name__}LawSettings", __base__=LawSettings, __module__=__name__,
        __doc__=f"The settings of {title(component)} as a control law of a phase.",
        law=(_literal[name], ...), **parameter_fields(component, apart),
    )  # fmt: skip
    made.component = component
    return made


def code_settings(component: type[Component]) -> type[Settings]:
    """Return the class of the arguments of a component that is Python code of the user."""
    return _model(
        f"{component.__name__}Arguments", __base__=Settings,
        **parameter_fields(component, taken(component)),
    )  # fmt: skip


def taken(component: type[Component]) -> dict[str, Parameter]:
    """Return what a class of the user takes: declared parameters, and other arguments by type."""
    result: dict[str, Parameter] = {}
    known = declared(component)
    for name, argument in inspect.signature(component).parameters.items():
        if name in ("robot", *TIMING) or argument.kind in (
            argument.VAR_KEYWORD,
            argument.VAR_POSITIONAL,
        ):
            continue
        number = argument.annotation in ("float", float)
        plain = Parameter("", "number", OF_SIGNAL) if number else Parameter("", "any")
        result[name] = known.get(name, plain)
    return result


def parameter_fields(
    component: type[Component], parameters: Mapping[str, Parameter]
) -> dict[str, Any]:
    """Return type and description of the settings of a component, by their keys in files."""
    fields: dict[str, Any] = {}
    signature = inspect.signature(component).parameters
    for name, parameter in parameters.items():
        default = signature[name].default
        kind = FORMS[parameter.kind].type(parameter)
        if parameter.kind == "orientation":
            default = [0.0, 0.0, 0.0]
        if isinstance(default, tuple):
            default = list[Any](default)  # pyright: ignore[reportUnknownArgumentType]
        if default is inspect.Parameter.empty:
            default = ...
        kind = kind | None if parameter.optional else kind
        fields[parameter.key or name] = (
            kind,
            Field(default=default, description=_description(parameter)),
        )
    return fields


def settings_of(component: type[Component]) -> dict[str, tuple[Parameter, str]]:
    """Return the parameters of a component and their defaults in words, by their keys in files."""
    result: dict[str, tuple[Parameter, str]] = {}
    for key, (_, field) in parameter_fields(component, declared(component)).items():
        parameter = next(x for name, x in declared(component).items() if (x.key or name) == key)
        default = field.default
        words = "required" if field.is_required() else f"`{json.dumps(default)}`"
        result[key] = (parameter, "" if default is None or default in ("", []) else words)
    return result


def _description(parameter: Parameter) -> str:
    degrees = {"rad": ", or '30 deg'", "rad/s": ", or '5 deg/s'"}
    unit = "rad" if parameter.kind == "orientation" else parameter.unit
    more = degrees.get(unit.partition(" or ")[0], "")
    doc = "roll, pitch, yaw " + parameter.doc if parameter.kind == "orientation" else parameter.doc
    return f"{doc}; {unit}{more}" if unit else doc


def arguments(
    settings: Settings,
    component: type[Component],
    robot: Robot,
    parameters: Mapping[str, Parameter] | None = None,
) -> dict[str, Any]:
    """Return what a component is made with, from the settings of a file."""
    result: dict[str, Any] = {}
    signature = inspect.signature(component).parameters
    for name, parameter in (declared(component) if parameters is None else parameters).items():
        key = parameter.key or name
        needed = signature[name].default is inspect.Parameter.empty
        if key not in type(settings).model_fields or not (
            needed or key in settings.model_fields_set
        ):
            continue
        try:
            value = _value(FORMS[parameter.kind], getattr(settings, key), settings, robot)
        except RemoraError as error:
            raise InvalidValue(f"{key}: {error}") from error
        result.update(value if parameter.kind == "load" else {name: value})
    return {**result, "robot": robot} if "robot" in signature else result


def _value(form: Form, value: Any, settings: Settings, robot: Robot) -> Any:
    return value if form.value is None or value is None else form.value(value, settings, robot)


class WaypointSettings(Settings):
    """A pose in a scenario file."""

    xyz: Vector = Field(default=[0.0, 0.0, 0.0], description="m, inertial axes")
    rpy: AngleVector = Field(default=[0.0, 0.0, 0.0], description="rad, or '30 deg'")

    @property
    def pose(self) -> Any:
        """The pose, `(8,)`."""
        return pose.from_xyz_rpy(self.xyz, self.rpy)


@dataclass(frozen=True)
class Form:
    """How a kind of parameter is written in a file.

    Attributes:
        type: returns the type of the setting.
        value: returns the value of the field, from that of the file; None: it is the same.
    """

    type: Callable[[Parameter], Any]
    value: Callable[[Any, Settings, Robot], Any] | None = None


# Types --------------------------------------------------------------------------------------------


def _number(parameter: Parameter) -> Any:
    """Return the type of one number: in range, in degrees where its unit is an angle."""
    bases: dict[str, Any] = {"rad": Angle, "rad/s": Rate, OF_SIGNAL: AngleOrRate}
    base = bases.get(parameter.unit.partition(" or ")[0], float)
    limits = {"ge": parameter.minimum, "gt": parameter.above, "le": parameter.maximum}
    limits = {key: limit for key, limit in limits.items() if limit is not None}
    return _annotated[base, _limits(**limits)] if limits else base


def _list(item: Any, size: int = 0, least: int = 1) -> Any:
    """Return the type of a list of `size` items, or of at least some."""
    if not size and not least:
        return _list_of[item]
    return _annotated[_list_of[item], Field(min_length=size or least, max_length=size or None)]


def _map(key: Any, item: Any) -> Any:
    """Return the type of a map with at least one entry."""
    return _annotated[_dict_of[key, item], Field(min_length=1)]


def _forms(**types: Any) -> Any:
    """Return the type of a value that is `one`, a `list`, a list of lists (`rows`) or a `map`."""

    def form(value: Any) -> str:
        result = form_of(value)
        if result == "list" and "rows" in types and any(isinstance(x, list) for x in value):
            result = "rows"
        return result if result in types else next(iter(types))

    forms = [_annotated[parameter, Tag(tag)] for tag, parameter in types.items()]
    return _annotated[functools.reduce(lambda a, b: a | b, forms), Discriminator(form)]


def _choice(parameter: Parameter) -> Any:
    return _literal[parameter.choices]


def _rows(parameter: Parameter) -> Any:
    return _forms(one=_literal[tuple(ROW_SETS)], list=_list(_literal[ROWS], least=0))


def _numbers(parameter: Parameter) -> Any:
    return _forms(one=_number(parameter), list=_list(_number(parameter), parameter.size))


def _by_joint(parameter: Parameter) -> Any:
    """Return the type of one number, one by joint in a list, or by the name of a joint."""
    number = _number(parameter)
    return _forms(one=number, list=_list(number), map=_map(JointName, _numbers(parameter)))


def _matrix(parameter: Parameter) -> Any:
    number, size = _number(parameter), parameter.size
    return _forms(one=number, list=_list(number, size), rows=_list(_list(float, size), size))


# Values -------------------------------------------------------------------------------------------


def _in_order(value: Any, settings: Settings, robot: Robot) -> Any:
    """Return numbers by the name of a joint in the order of the controlled joints."""
    if not isinstance(value, Mapping):
        return value
    by_name: Mapping[str, Any] = dict[str, Any](value)  # pyright: ignore[reportUnknownArgumentType]
    names = joint_names(robot, getattr(settings, "joints", ()))
    for name in by_name:
        if name not in names:
            raise RemoraError(no_such("controlled joint", name, names))
    result: list[float] = []
    for name in names:
        if name not in by_name:
            raise RemoraError(f"no value for joint {name!r}")
        joint = robot.joints[name]
        wrong = degrees_of_a_slide(joint, by_name[name])
        if wrong:
            raise RemoraError(wrong)
        result += np.broadcast_to(by_name[name], joint.v.stop - joint.v.start).tolist()
    return result


def _places(value: Mapping[str, Any], settings: Settings, robot: Robot) -> Any:
    """Return coordinates by the name of a joint, none in degrees for a joint that slides."""
    for name, place in value.items():
        wrong = degrees_of_a_slide(robot.joints[name], place)
        if wrong:
            raise RemoraError(wrong)
    return value


def _orientation(rpy: Any, settings: Settings, robot: Robot) -> Any:
    return quaternion.from_rpy(np.array(rpy))


def _poses(waypoints: Any, settings: Settings, robot: Robot) -> Any:
    return [waypoint.pose for waypoint in waypoints]


def _frame_poses(targets: Any, settings: Settings, robot: Robot) -> Any:
    return {name: target.pose for name, target in targets.items()}


def _plain(value: Any, settings: Settings, robot: Robot) -> Any:
    """Return a value of the file with its angles in rad."""
    if isinstance(value, str):
        angle = in_degrees(value, "deg(?:/s)?")
        return value if angle is None else float(angle)
    if isinstance(value, list):
        return [_plain(item, settings, robot) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: _plain(item, settings, robot) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def _load(value: Any, settings: Settings, robot: Robot) -> Any:
    """Return numbers or a function of time since the start of the run, in their shape."""
    faults: list[str] = []

    def refuse(path: Path, reason: str) -> None:
        place = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in path)
        faults.append(f"{place[1:]}: {reason}")

    shape = np.shape(_first(value))
    size = math.prod(shape)
    if isinstance(value, LoadFile) and value.sine is not None:
        function: Any = sine(value.sine, size, 0.0, ("value", "sine"), refuse)
    else:
        function = load(value, size, math.inf, ("value",), refuse)
    if faults:
        raise RemoraError("; ".join(faults))
    return {"value": function, "shape": shape}


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


# The table ----------------------------------------------------------------------------------------

#: How each kind of parameter is written in a file.
FORMS: dict[str, Form] = {
    "number": Form(_number),
    "whole": Form(lambda parameter: _annotated[int, _limits(ge=parameter.minimum)]),
    "flag": Form(lambda parameter: bool),
    "text": Form(lambda parameter: _annotated[str, Field(max_length=40)]),
    "choice": Form(_choice),
    "choices": Form(lambda parameter: _list(_choice(parameter), least=0)),
    "texts": Form(lambda parameter: _list(_annotated[str, Field(max_length=200)])),
    "frame": Form(lambda parameter: FrameName),
    "frames": Form(lambda parameter: _list(FrameName, parameter.size, int(parameter.minimum or 0))),
    "joints": Form(lambda parameter: _list(JointName, least=int(parameter.minimum or 0))),
    "rows": Form(_rows),
    "numbers": Form(_numbers),
    "vector": Form(lambda parameter: _list(_number(parameter), parameter.size)),
    "direction": Form(lambda parameter: Vector),
    "orientation": Form(lambda parameter: AngleVector, _orientation),
    "matrix": Form(_matrix),
    "by joint": Form(_by_joint, _in_order),
    "joint limits": Form(_by_joint, _in_order),
    "joint gains": Form(_by_joint),
    "joint places": Form(lambda parameter: _map(JointName, _numbers(parameter)), _places),
    "places": Form(lambda parameter: _list(_list(_number(parameter), least=0), least=2)),
    "poses": Form(lambda parameter: _list(WaypointSettings, least=2), _poses),
    "frame poses": Form(lambda parameter: _map(FrameName, WaypointSettings), _frame_poses),
    "durations": Form(_numbers),
    "load": Form(lambda parameter: Load, _load),
    "any": Form(lambda parameter: Any, _plain),
}
