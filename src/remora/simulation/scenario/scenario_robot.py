"""The robot of a scenario: loaded from its file, or combined from several, with its constraints."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from remora.errors import ModelError, RemoraError
from remora.model.building.added_constraints import add_constraint
from remora.model.combine import combine
from remora.model.constraint import GEAR
from remora.model.formats import load as robots
from remora.model.robot import Robot
from remora.model.settings_fields import no_such
from remora.simulation.scenario.constraint_schema import ConstraintFile
from remora.simulation.scenario.file_schema import PhaseFile, RobotFile
from remora.simulation.scenario.scenario_loads import Path as Place
from remora.simulation.scenario.scenario_loads import Refuse

_ENDS = ("name", "kind", "parent", "child")


@dataclass(frozen=True)
class RobotSource:
    """Where the robots of a scenario come from.

    Attributes:
        folder: of the scenario file.
        inertia: treatment of impossible inertias that overrides the file, or None.
        mesh_root: folder of the meshes that overrides the file, or None.
    """

    folder: Path
    inertia: str | None = None
    mesh_root: str | os.PathLike[str] | None = None


def robot_of(data: Mapping[str, Any], source: RobotSource, refuse: Refuse) -> Robot | None:
    """Return the robot of a scenario, or None and faults (none that the schema check reports).

    Args:
        data: the content of the file.
        source: where files are, and what overrides the file.
        refuse: receives the faults.
    """
    if "robot" in data and "combine" in data:
        refuse(("combine",), "a scenario has either robot or combine, not both")
        return None
    if "combine" not in data:
        if "robot" not in data:
            refuse((), "robot is missing; or combine, with several robots by prefix")
            return None
        robot = _loaded(data["robot"], ("robot",), source, refuse)
    else:
        robot = _combined(data["combine"], source, refuse)
    return None if robot is None else _constrained(robot, data.get("constraints"), refuse)


def _combined(content: Any, source: RobotSource, refuse: Refuse) -> Robot | None:
    if not isinstance(content, dict):
        return None
    listed = cast(dict[Any, Any], content)
    parts: dict[Any, Any] = {
        name: _loaded(part, ("combine", str(name)), source, refuse) for name, part in listed.items()
    }
    if any(robot is None for robot in parts.values()):
        return None
    try:
        return combine(parts)
    except RemoraError as error:
        refuse(("combine",), str(error))
        return None


def _loaded(content: Any, place: Place, source: RobotSource, refuse: Refuse) -> Robot | None:
    if isinstance(content, str):
        settings = RobotFile(file=content) if content else None
    else:
        try:
            settings = RobotFile.model_validate(content)
        except ValidationError:
            return None
    if settings is None:
        return None
    named = not Path(settings.file).suffix and Path(settings.file).name == settings.file
    root = source.mesh_root
    if root is None and settings.mesh_root is not None:
        root = source.folder / settings.mesh_root
    try:
        return robots.load(
            settings.file if named else source.folder / settings.file,
            settings.base,
            settings.merge_fixed,
            settings.gravity,
            root,
            source.inertia or settings.inertia,
        )
    except RemoraError as error:
        refuse(place, str(error).replace("\n", "\n  "))
        return None


# Constraints -------------------------------------------------------------------------------------


def _constrained(robot: Robot, content: Any, refuse: Refuse) -> Robot:
    """Return the robot with the constraints of the file; those with faults are left out."""
    listed = cast(list[Any], content) if isinstance(content, list) else []
    for k, item in enumerate(listed):
        try:
            settings = ConstraintFile.model_validate(item)
        except ValidationError:
            continue
        robot = _added(robot, settings, ("constraints", k), refuse)
    return robot


def _added(robot: Robot, settings: ConstraintFile, place: Place, refuse: Refuse) -> Robot:
    faulty = False
    for role, end in (("parent", settings.parent), ("child", settings.child)):
        wrong = _unknown_end(robot, settings.kind, end)
        if wrong:
            faulty = True
            refuse((*place, role), wrong)
    if faulty:
        return robot
    options = settings.model_dump(exclude=set(_ENDS), exclude_none=True)
    try:
        return add_constraint(
            robot, settings.name, settings.kind, settings.parent, settings.child, **options
        )
    except ModelError as error:
        for fault in error.faults:
            refuse(place, fault.reason)
    except RemoraError as error:
        refuse(place, str(error))
    return robot


def _unknown_end(robot: Robot, kind: str, end: str | None) -> str:
    """Return what is wrong with the name of an end, or an empty text."""
    if kind == GEAR:
        if end is None:
            return "must be a joint: a gear couples two of them"
        known = robot.joints.names
        return "" if end in known else no_such("joint", end, known)
    known = (*robot.bodies.names, *robot.frames.names)
    return "" if end is None or end in known else no_such("body or frame", end, known)


def check_switches(
    robot: Robot,
    phases: Mapping[int, PhaseFile],
    declared: Sequence[str],
    whole: bool,
    refuse: Refuse,
) -> None:
    """Record the faults of switching: unknown constraints, and those that are on or off already.

    Args:
        robot: the robot with its constraints.
        phases: the phases that could be read, by index.
        declared: names of constraints that the file lists, also of those with faults.
        whole: whether all phases could be read; otherwise it is not known what is on.
        refuse: receives the faults.
    """
    known = (*robot.constraints.names, *(x for x in declared if x not in robot.constraints))
    active = {c.name: c.active for c in robot.constraints}
    for k, phase in phases.items():
        for key, names, on in (
            ("activate", phase.activated, True),
            ("release", phase.released, False),
        ):
            for i, name in enumerate(names):
                place = ("phases", k, key, *((i,) if isinstance(getattr(phase, key), list) else ()))
                if name not in known:
                    refuse(place, no_such("constraint", name, known))
                elif whole and active.get(name) == on:
                    word = "on" if on else "off"
                    refuse(place, f"constraint {name!r} is already {word} when this phase begins")
        for names, on in ((phase.activated, True), (phase.released, False)):
            active.update({name: on for name in names if name in active})


def declared_constraints(data: Mapping[str, Any]) -> list[str]:
    """Return the names of the constraints that a file lists, with faults or not."""
    content: Any = data.get("constraints")
    items = cast(list[Any], content) if isinstance(content, list) else []
    names = [cast(dict[Any, Any], x).get("name") for x in items if isinstance(x, dict)]
    return [name for name in names if isinstance(name, str)]
