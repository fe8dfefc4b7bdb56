"""Assembly files: subsystems, by their robot files, and connections in YAML.

name: two arms
gravity: [0, 0, -9.81]          # optional; by default that of the root
subsystems:
hub: {robot: hub.urdf, base: free}
left: {robot: arm.yaml}       # files beside this one, or names of bundled robots
wing: {assembly: wing.yaml}
connections:
- {child: left, parent: hub, at: left_flange}
- {child: wing, parent: hub, at: hub, mount: foot, xyz: [0, 0, 1], rpy: [0, 0, 90 deg]}
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from remora.algebra import pose
from remora.dynamics.assembly.assembly import Assembly
from remora.dynamics.assembly.connection import Connection
from remora.errors import Fault, ModelError, RemoraError
from remora.model.building.validate import Checker
from remora.model.formats.bundled import named_file
from remora.model.formats.load import load
from remora.model.formats.yaml.yaml_tree import read_tree
from remora.model.settings_fields import AngleVector, Settings, refusal
from remora.simulation.scenario import scenario_errors as faults

#: How deep assembly files may name each other.
_DEEPEST = 20

_Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
_Name = Annotated[str, Field(min_length=1, max_length=1000)]


class SubsystemFile(Settings):
    """A subsystem: the file of a robot or of an assembly."""

    robot: _Name | None = None
    assembly: _Name | None = None
    base: _Name | None = None

    @model_validator(mode="after")
    def _one(self) -> SubsystemFile:
        if (self.robot is None) == (self.assembly is None):
            raise refusal("needs either `robot` or `assembly`, a file or a bundled name")
        if self.base is not None and self.robot is None:
            raise refusal("`base` is for robots")
        return self


class ConnectionFile(Settings):
    """A connection; see `rm.papers.sa24.Connection`."""

    child: _Name
    parent: _Name
    at: _Name
    mount: _Name | None = None
    xyz: _Vector = Field(default=[0.0, 0.0, 0.0])
    rpy: AngleVector = Field(default=[0.0, 0.0, 0.0])


class AssemblyFile(Settings):
    """The content of an assembly file."""

    name: _Name = "assembly"
    gravity: _Vector | None = None
    subsystems: dict[str, SubsystemFile]
    connections: list[ConnectionFile] = Field(default=[])


def load_assembly(path: str | os.PathLike[str]) -> Assembly:
    """Load an assembly of robots from a `.yaml` file, or a bundled one by name.

    Args:
        path: the file, see `docs/assembly.md`; or the name of a bundled assembly.

    Raises:
        ModelError: if the file, one of its robots or the assembly is invalid; all faults with their
            lines.
        UnknownName: if there is no bundled assembly of that name.
    """
    return _loaded(path, ())


def _loaded(path: str | os.PathLike[str], above: tuple[Path, ...]) -> Assembly:
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
            if item not in made:
                made[item] = _subsystem(item, file, above)
            parts[name] = made[item]
        except RemoraError as error:
            reason = str(error).replace("\n", "\n  ")
            place = ("subsystems", name)
            check.faults.append(faults.fault_at(root, place, reason, "assembly"))
    if check.faults:
        raise ModelError(source, check.faults)
    links = [
        Connection(c.child, c.parent, c.at, c.mount, pose.from_xyz_rpy(c.xyz, c.rpy))
        for c in settings.connections
    ]
    try:
        return Assembly(parts, links, settings.gravity)
    except RemoraError as error:
        raise ModelError(
            source, [faults.fault_at(root, ("connections",), str(error), "assembly")]
        ) from None


def _subsystem(item: SubsystemFile, file: Path, above: tuple[Path, ...]) -> Any:
    named = item.robot or item.assembly or ""
    bare = not Path(named).suffix and Path(named).name == named
    where = named if bare else file.parent / named
    if item.assembly is not None:
        return _loaded(where, (*above, file.resolve()))
    return load(where, item.base)
