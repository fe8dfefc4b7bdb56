"""A robot as text: its tree and constraints as tables, and all of its numbers as JSON data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from remora.algebra.array_ops import Array
from remora.dynamics.constraints.constraint_report import ConstraintReport, constraint_report
from remora.errors import RemoraError
from remora.model.constraint import GEAR, ROD, Constraint
from remora.model.formats.bounded_xml import shown
from remora.model.joints import kind
from remora.model.limit_text import range_text
from remora.model.robot import Joint, Robot
from remora.model.robot_fields import FIELDS, Field


def print_robot(robot: Robot, console: Console) -> None:
    """Print the tree, the totals, frames, constraints and warnings of a robot."""
    print_tree(robot, console)
    count = "1 body" if len(robot.bodies) == 1 else f"{len(robot.bodies)} bodies"
    console.print(
        f"[bold]{_text(robot.name)}[/]: {count}, nq = {robot.nq}, nv = {robot.nv}, "
        f"total mass {float(robot.mass):.6g} kg"
    )
    if not robot.dynamics:
        console.print("kinematics only: loaded without masses and inertias")
    if np.any(robot.gravity):
        console.print(f"gravity {_vector(robot.gravity)} m/s²")
    if robot.frames:
        carried = (f"{f.name} (on {_carrier(robot, f.body)})" for f in robot.frames)
        console.print("frames: " + ", ".join(map(_text, carried)))
    if robot.constraints:
        print_constraints(robot, console)
    for warning in robot.warnings:
        console.print(f"[yellow]warning:[/] {_text(warning)}")


def print_constraints(robot: Robot, console: Console) -> None:
    """Print the constraints as a table, the remaining degrees of freedom, and redundant ones."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("constraint", "kind", "between", ""):
        table.add_column(name, no_wrap=True)
    for c in robot.constraints:
        ends = " and ".join(_text(end_name(robot, c, end)) for end in (c.parent, c.child))
        table.add_row(_text(c.name), c.kind, ends, _numbers(c) if c.active else "off")
    console.print(table, crop=False)
    report = reported(robot)
    if isinstance(report, str):
        console.print(f"[yellow]warning:[/] {_text(report)}")
        return
    console.print(
        f"{report.freedoms} of {robot.nv} degrees of freedom remain: {report.equations} equations, "
        f"{report.rank} independent"
    )
    for warning in report.warnings:
        console.print(f"[yellow]warning:[/] {_text(warning)}")


def reported(robot: Robot) -> ConstraintReport | str:
    """Return the report of the active constraints, or why there is none."""
    if not robot.dynamics:
        return "the rank of the constraints is not determined for a kinematics-only model"
    try:
        return constraint_report(robot)
    except RemoraError as error:
        return str(error)


def end_name(robot: Robot, constraint: Constraint, end: int) -> str:
    """Return the body or, for a gear, the joint at one end of a constraint."""
    return robot.joints[end].name if constraint.kind == GEAR else _carrier(robot, end)


def _numbers(constraint: Constraint) -> str:
    """Return the number that belongs to the kind of a constraint."""
    if constraint.kind == ROD:
        return f"{float(constraint.length):.6g} m"
    if constraint.kind == GEAR:
        return f"ratio {float(constraint.ratio):.6g}"
    return ""


def print_tree(robot: Robot, console: Console) -> None:
    """Print the robot's tree as a table with one row per body, indented less on a narrow console.

    Lines that are still too wide are wrapped by the terminal; nothing is truncated.
    """
    unbounded = console.options.update(width=10_000)
    table, width = _tree_table(robot, indent=2), console.width
    if console.measure(table, options=unbounded).maximum > width:
        table = _tree_table(robot, indent=1)
        table.width = console.measure(table, options=unbounded).maximum
    console.print(table, crop=False)


def _tree_table(robot: Robot, indent: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "body", "kg", "joint", "kind", "q", "v", "limits"):
        number = name in ("", "kg", "q", "v")
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    depth = {-1: -1}
    for i, (body, joint) in enumerate(zip(robot.bodies, robot.joints, strict=True)):
        depth[i] = depth[joint.parent] + 1
        table.add_row(
            str(i),
            _branch(indent, depth[i]) + _text(body.name),
            f"{float(body.mass):.4g}",
            _text(joint.name),
            joint.kind,
            _span(joint.q),
            _span(joint.v),
            _text(_limits(robot, joint)),
        )
    return table


def as_dictionary(robot: Robot) -> dict[str, Any]:
    """Return all parameters of a robot except its shapes as plain lists; infinite limits: None."""
    counts = {"nq": robot.nq, "nv": robot.nv, "mass": float(robot.mass)}
    values = _values(robot, robot)
    values = {"name": values.pop("name"), **counts, **values, "warnings": list(robot.warnings)}
    if any(c.active for c in robot.constraints):
        report = reported(robot)
        values["constraint_report"] = report if isinstance(report, str) else report._asdict()
    return values


def _values(robot: Robot, item: Any) -> dict[str, Any]:
    """Return the fields of a part of the robot, including those of its limits."""
    values: dict[str, Any] = {}
    for row in FIELDS[item.part]:
        value = getattr(item, row.name)
        if row.name == "limits":
            values |= _values(robot, value)
        elif row.name != "geometry" and row.holds not in ("plain", "derived"):
            of_gear = getattr(item, "kind", "") == GEAR
            values[row.name] = _plain(robot, value, row, item.part, of_gear)
    return values


def _plain(robot: Robot, value: Any, row: Field, part: str, of_gear: bool) -> Any:
    """Return a field as a JSON value."""
    if row.holds == "parts":
        return [_values(robot, item) for item in value]
    if row.holds == "part":
        return None if value is None else _values(robot, value)
    if row.holds == "slice":
        return [value.start, value.stop]
    if row.holds == "joint":
        return robot.joints[int(value)].name
    if row.holds == "end":
        return robot.joints[int(value)].name if of_gear else _carrier(robot, value)
    if row.holds == "body" and part == "frame":
        return _carrier(robot, value)
    if row.bounds:
        return [float(x) if math.isfinite(x) else None for x in value]
    return np.asarray(value).tolist() if row.holds == "numbers" else value


def _text(text: str) -> str:
    """Escape text from a file: rich markup and terminal control sequences."""
    return escape(shown(text, 1000))


def _branch(indent: int, depth: int) -> str:
    return "" if depth == 0 else " " * indent * (depth - 1) + "└ "


def _span(part: slice) -> str:
    if part.stop == part.start:
        return "-"
    if part.stop == part.start + 1:
        return str(part.start)
    return f"{part.start}:{part.stop}"


def _limits(robot: Robot, joint: Joint) -> str:
    """Return the position limits in degrees or metres, or the joint that a mimic joint follows."""
    if joint.mimic is not None:
        return f"{joint.mimic.ratio:g} x {robot.joints[joint.mimic.joint].name}"
    if kind(joint).nv != 1:
        return ""
    low, high = float(joint.limits.lower[0]), float(joint.limits.upper[0])
    return range_text(low, high, kind(joint).freedoms[0].angular)


def _vector(values: Array) -> str:
    return "(" + ", ".join(f"{x:.6g}" for x in values) + ")"


def _carrier(robot: Robot, body: int) -> str:
    return "the inertial frame" if body < 0 else robot.bodies[body].name
