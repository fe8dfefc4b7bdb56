"""Assembly files: subsystems, by their robot files, and connections in YAML.

name: two arms
gravity: [0, 0, -9.81]          # optional; by default that of the root
subsystems:
hub: {robot: hub.urdf, base: free}
left: {robot: arm.yaml}       # files beside this one, or names of bundled robots
wing: {assembly: wing.yaml}
load: {box: load.csv, sensor: actuation, max_gap: 0.02}     # a black box with recorded data
gripper: {box: live, points: [palm], max_age: 0.01}         # or a program, see load_assembly
connections:
- {child: left, parent: hub, at: left_flange}
- {child: wing, parent: hub, at: hub, mount: foot, xyz: [0, 0, 1], rpy: [0, 0, 90 deg]}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from remora.algebra import pose
from remora.atomic_files import write_text
from remora.dynamics.assembly.assembly import Assembly
from remora.dynamics.assembly.black_box import BlackBox, LiveSource
from remora.dynamics.assembly.connection import Connection
from remora.dynamics.assembly.sensor_file import load_recording, recording_text
from remora.dynamics.assembly.sensor_recording import SensorRecording
from remora.errors import Fault, ModelError, RemoraError, UnknownName
from remora.model.building.validate import Checker
from remora.model.formats.bundled import named_file
from remora.model.formats.load import load
from remora.model.formats.yaml.yaml_tree import read_tree
from remora.model.formats.yaml.yaml_write import robot_to_yaml, yaml_numbers, yaml_text
from remora.model.settings_fields import AngleVector, Settings, refusal
from remora.simulation.scenario import scenario_errors as faults

#: The key `box` of a black box whose program is passed when the file is loaded.
LIVE = "live"
#: How deep assembly files may name each other.
_DEEPEST = 20

_Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
_Name = Annotated[str, Field(min_length=1, max_length=1000)]


class SubsystemFile(Settings):
    """A subsystem: the file of a robot, of an assembly, or the data of a black box."""

    robot: _Name | None = None
    assembly: _Name | None = None
    box: _Name | None = Field(default=None, description="a CSV file, or `live`, a program")
    base: _Name | None = None
    points: list[_Name] | None = None
    sensor: Literal["reaction", "actuation"] | None = None
    accelerometer: bool | None = None
    max_age: float | None = Field(default=None, ge=0.0)
    max_gap: float | None = Field(default=None, gt=0.0)

    @model_validator(mode="after")
    def _one(self) -> SubsystemFile:
        if sum(which is not None for which in (self.robot, self.assembly, self.box)) != 1:
            raise refusal(
                "needs either `robot` or `assembly`, a file or a bundled name, or `box`, a CSV "
                "file or live"
            )
        if self.base is not None and self.robot is None:
            raise refusal("`base` is for robots")
        for key in ("points", "sensor", "accelerometer", "max_age", "max_gap"):
            if self.box is None and getattr(self, key) is not None:
                raise refusal(f"`{key}` is for black boxes, which have the key `box`")
        if self.box == LIVE and self.max_gap is not None:
            raise refusal("`max_gap` is for recordings; of a live box, set `max_age`")
        if self.box not in (None, LIVE) and self.max_age is not None:
            raise refusal("`max_age` is for live boxes; of a recording, set `max_gap`")
        return self


class ConnectionFile(Settings):
    """A connection; see `rm.papers.sa24.Connection`."""

    child: _Name
    parent: _Name
    at: _Name
    mount: _Name | None = None
    xyz: _Vector = Field(default=[0.0, 0.0, 0.0])
    rpy: AngleVector = Field(default=[0.0, 0.0, 0.0])
    placement: Annotated[list[float], Field(min_length=8, max_length=8)] | None = None

    @model_validator(mode="after")
    def _one(self) -> ConnectionFile:
        if self.placement is not None and {"xyz", "rpy"} & self.model_fields_set:
            raise refusal("`placement` stands for xyz and rpy: give either")
        return self

    def connection(self) -> Connection:
        """Return it."""
        x = self.placement
        pose_in_port = pose.from_xyz_rpy(self.xyz, self.rpy) if x is None else np.array(x)
        return Connection(self.child, self.parent, self.at, self.mount, pose_in_port)


class AssemblyFile(Settings):
    """The content of an assembly file."""

    name: _Name = "assembly"
    gravity: _Vector | None = None
    subsystems: dict[str, SubsystemFile]
    connections: list[ConnectionFile] = Field(default=[])


def load_assembly(
    path: str | os.PathLike[str], boxes: Mapping[str, LiveSource] | None = None
) -> Assembly:
    """Load an assembly of robots and black boxes from a `.yaml` file, or a bundled one by name.

    Args:
        path: the file, see `docs/assembly.md`; or the name of a bundled assembly.
        boxes: programs of the live black boxes, by subsystem, `(t, base) -> SensorReading`; those
            of a nested assembly are named `wing/gripper`.

    Raises:
        ModelError: if the file, one of its robots or the assembly is invalid; all faults with their
            lines.
        UnknownName: if there is no bundled assembly of that name, or no live black box of a name.
    """
    left = dict(boxes or {})
    assembly = _loaded(path, (), "", left)
    for name in left:
        live = [n for n, s in assembly.subsystems.items() if _is_live(s)]
        raise UnknownName("live black box", name, live)
    return assembly


def _is_live(subsystem: object) -> bool:
    return isinstance(subsystem, BlackBox) and not isinstance(subsystem.source, SensorRecording)


def _loaded(
    path: str | os.PathLike[str],
    above: tuple[Path, ...],
    prefix: str,
    boxes: dict[str, LiveSource],
) -> Assembly:
    file = named_file(path, "assemblies")
    source = os.fspath(file)
    if file.resolve() in above or len(above) >= _DEEPEST:
        raise ModelError(source, [Fault("file", "assembly files name each other in a circle")])
    check = Checker()
    root = read_tree(source, check)
    if not isinstance(root.value, dict):
        raise ModelError(source, [Fault("assembly", "must be a map with keys", root.line)])
    try:
        settings = AssemblyFile.model_validate(faults.plain(root))
    except ValidationError as error:
        schema = AssemblyFile.model_json_schema()
        raise ModelError(source, list(faults.faults_of(error, root, schema, "assembly"))) from None
    parts: dict[str, Any] = {}
    made: dict[SubsystemFile, Any] = {}  # equal entries are one robot, compiled once
    for name, item in settings.subsystems.items():
        try:
            if item.robot is None:
                parts[name] = _other(item, file, above, prefix + name, boxes)
                continue
            if item not in made:
                made[item] = load(_place(item.robot, file), item.base)
            parts[name] = made[item]
        except RemoraError as error:
            reason = str(error).replace("\n", "\n  ")
            place = ("subsystems", name)
            check.faults.append(faults.fault_at(root, place, reason, "assembly"))
    if check.faults:
        raise ModelError(source, check.faults)
    links = [c.connection() for c in settings.connections]
    try:
        return Assembly(parts, links, settings.gravity)
    except RemoraError as error:
        raise ModelError(
            source, [faults.fault_at(root, ("connections",), str(error), "assembly")]
        ) from None


def _place(named: str, file: Path) -> str | Path:
    """Return a file beside the one that names it, or the name of a bundled one."""
    bare = not Path(named).suffix and Path(named).name == named
    return named if bare else file.parent / named


def _other(
    item: SubsystemFile,
    file: Path,
    above: tuple[Path, ...],
    name: str,
    boxes: dict[str, LiveSource],
) -> Assembly | BlackBox:
    """Return a nested assembly or a black box; what it takes is removed from `boxes`."""
    if item.assembly is not None:
        place = _place(item.assembly, file)
        return _loaded(place, (*above, file.resolve()), f"{name}/", boxes)
    assert item.box is not None
    if item.box == LIVE:
        if name not in boxes:
            raise RemoraError(
                f"is a live black box: pass its program, boxes={{{name!r}: function}} of "
                "rm.load_assembly"
            )
        source = boxes.pop(name)
    else:
        source = load_recording(file.parent / item.box, item.max_gap)
    points = item.points
    if points is None:
        points = list(source.points) if isinstance(source, SensorRecording) else []
    return BlackBox(
        source, tuple(points), item.sensor or "reaction", bool(item.accelerometer), item.max_age
    )


def save_assembly(assembly: Assembly, path: str | os.PathLike[str]) -> None:
    """Write an assembly as a YAML file that `load_assembly` reads back exactly.

    Beside it are written a file for every distinct robot, `STEM.SUBSYSTEM.yaml`, and one for every
    recording, `STEM.SUBSYSTEM.csv`; files that exist are replaced. Nested assemblies are written as
    subsystems `wing/arm`. A live black box is written as such: its program is passed again to
    `load_assembly(..., boxes=)`.

    Args:
        assembly: of robots and black boxes.
        path: the file, `.yaml`.

    Raises:
        RemoraError: for a subsystem that is neither, or a file that cannot be written.
    """
    file = Path(path)
    if not isinstance(assembly, Assembly):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(assembly).__name__
        raise RemoraError(f"an Assembly can be written to a file, not {kind}")
    if file.suffix not in (".yaml", ".yml"):
        raise RemoraError(f"{str(file)!r}: an assembly is written to a .yaml file")
    lines = [f"gravity: {yaml_numbers('gravity', assembly.gravity, 3)}", "subsystems:"]
    beside: dict[str, str] = {}
    robots: dict[str, str] = {}  # names of files by their text
    for part in assembly.parts:
        stem = f"{file.stem}.{re.sub(r'[^A-Za-z0-9_-]', '_', part.name)}"
        while f"{stem}.yaml" in beside or f"{stem}.csv" in beside:
            stem += "_"
        item: dict[str, str] = {}
        if part.module is not None:
            text = robot_to_yaml(part.subsystem, folder=file.parent)
            name = robots.setdefault(text, f"{stem}.yaml")
            beside[name], item["robot"] = text, yaml_text(name)
        elif part.black_box is not None:
            box, name = part.black_box, f"{stem}.csv"
            item = {"box": LIVE, "points": f"[{', '.join(map(yaml_text, box.points))}]"}
            item |= {"sensor": box.sensor, "accelerometer": str(box.accelerometer).lower()}
            if isinstance(box.source, SensorRecording):
                beside[name], item["box"] = recording_text(box.source), yaml_text(name)
                gap = box.source.max_gap
                item |= {} if gap is None else {"max_gap": repr(gap)}
            elif box.max_age is not None:
                item["max_age"] = repr(box.max_age)
        else:
            what = type(part.subsystem).__name__
            raise RemoraError(f"subsystem {part.name!r} is a {what}; only robots and black boxes "
                              "can be saved")  # fmt: skip
        lines.append(f"  {yaml_text(part.name)}: {_map(item)}")
    lines.append("connections:" if assembly.connections else "connections: []")
    for link in assembly.connections:
        item = {"child": link.child, "parent": link.parent, "at": link.at}
        item |= {} if link.mount is None else {"mount": link.mount}
        item = {key: yaml_text(value) for key, value in item.items()}
        item["placement"] = yaml_numbers(f"placement of {link.child!r}", link.placement, 8)
        lines.append(f"  - {_map(item)}")
    for name, text in beside.items():
        write_text(file.with_name(name), text)
    write_text(file, "\n".join(lines) + "\n")


def _map(item: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in item.items()) + "}"
