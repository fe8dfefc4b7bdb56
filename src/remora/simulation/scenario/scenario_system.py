"""Conversion of components and connections of a scenario file to a `System`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from remora.components.component import Component
from remora.components.system import System
from remora.dynamics.kernels.parameter_checks import parameter_faults
from remora.dynamics.kernels.parameters import of_constraint, parameter
from remora.errors import Fault, InvalidValue, ModelError, RemoraError, ShapeError
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.simulation.scenario.file_schema import ListedSettings
from remora.simulation.scenario.python_component import PythonComponentSettings
from remora.simulation.scenario.scenario_loads import Path, Refuse

_COMPONENT = re.compile(r"component '([^']*)'")
_TARGET = re.compile(r"(?:connection to|input) '([^']*)'")


def system_of(
    robot: Robot,
    listed: Sequence[ListedSettings],
    connections: Mapping[str, Any],
    design: Mapping[str, Any],
    refuse: Refuse,
    code: FilePath | None = None,
) -> System | None:
    """Return the system of a scenario, or record its faults.

    Args:
        robot: the robot.
        listed: settings of the components.
        connections: sources of inputs.
        design: numbers of the design by name, where they are not the robot's.
        refuse: receives the faults.
        code: folder of Python code that may be run; None: none may.
    """
    if not listed:
        for target in connections:
            refuse(("connections", target), "there are no components to connect")
        for name in design:
            refuse(("design", name), "there are no components that compute with it")
        return None
    known = _design(robot, design, refuse)
    places: dict[str, int] = {}
    made: dict[str, Component | None] = {}
    for k, settings in enumerate(listed):
        name = settings.name or settings.type_name
        if name in places:
            reason = f"components[{places[name]}] has the name {name!r} as well: set another name"
            refuse(("components", k), reason)
            made[name] = None
            continue
        places[name] = k
        made[name] = _component(robot, settings, name, k, refuse, code)
    sound = {name: component for name, component in made.items() if component is not None}
    if len(sound) < len(made) or known is None:
        return None
    try:
        return System(robot, sound, connections, known if design else None)
    except ModelError as error:
        for fault in error.faults:
            refuse(*_placed(fault, places, connections))
        return None


def _design(robot: Robot, numbers: Mapping[str, Any], refuse: Refuse) -> Robot | None:
    """Return the robot with which control laws compute, or None after recording faults."""
    sound, made = True, robot
    for name, given in numbers.items():
        try:
            signature, change = parameter(robot, name)
            value = finite(name, given)
            if value.shape == () and signature.shape == (1,):
                value = value[None]
            if value.shape != signature.shape:
                raise ShapeError(f"must have the shape {signature.shape}, not {value.shape}")
            if of_constraint(robot, name):
                raise InvalidValue("the constraints of the design are those of the robot")
            faults = [f"{fault.rule}: {given}" for fault in parameter_faults(robot, name, value)]
            if faults:
                raise InvalidValue("; ".join(faults))
            made = change(made, value)
        except (RemoraError, ValueError) as error:
            refuse(("design", name), str(error))
            sound = False
    return made if sound else None


def _component(
    robot: Robot,
    settings: ListedSettings,
    name: str,
    number: int,
    refuse: Refuse,
    code: FilePath | None,
) -> Component | None:
    """Return a component, or record its faults; the arguments are those of `system_of`."""
    try:
        if code is not None and isinstance(settings, PythonComponentSettings):
            return settings.made_of_code(robot, name, code)
        return settings.made(robot, name)
    except ModelError as error:
        for fault in error.faults:
            path = fault.element.split(".")
            refuse(("components", number, "arguments", *path), fault.reason)
    except RemoraError as error:
        refuse(("components", number), str(error))
    return None


def _placed(
    fault: Fault, places: Mapping[str, int], connections: Mapping[str, Any]
) -> tuple[Path, str]:
    """Return the element of the file that a fault of a system is about, and the reason."""
    of_component = _COMPONENT.fullmatch(fault.element)
    if of_component is not None:
        return ("components", places[of_component[1]]), fault.reason
    target = _TARGET.fullmatch(fault.element)
    if target is None:
        return ("components",), f"{fault.element}: {fault.reason}"
    if target[1] in connections:
        return ("connections", target[1]), fault.reason
    name, _, key = target[1].partition(".")
    hint = fault.reason.partition("; connect an output")[0].replace("connect it to", "connect")
    return ("components", places[name]), f"input {key!r}: {hint}"
