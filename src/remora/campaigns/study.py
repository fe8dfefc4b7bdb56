"""Studies: a scenario whose numbers differ from run to run, from a YAML file."""

from __future__ import annotations

import csv
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from pydantic import ValidationError

from remora.algebra.array_ops import Array
from remora.campaigns import targets as places
from remora.campaigns.dispersions import (
    SAMPLINGS,
    Dispersion,
    Dispersions,
    correlation_factor,
    dispersion,
)
from remora.campaigns.outputs import Criterion, Output, Quantity, output, quantity
from remora.campaigns.study_schema import DispersionFile, StudyFile, schema
from remora.components.system import System
from remora.errors import Fault, InvalidValue, ModelError, RemoraError, UnknownName
from remora.identity.digest import digest
from remora.model.building.validate import Checker
from remora.model.formats.bundled import bundled, named_file
from remora.model.formats.yaml.yaml_tree import YamlNode, read_tree
from remora.simulation.batch.batch_loads import BatchLoads
from remora.simulation.inputs.phases import known_events
from remora.simulation.inputs.robot_loads import LOADS
from remora.simulation.inputs.run_settings import Integrator, Physics
from remora.simulation.recording.export import pandas
from remora.simulation.scenario import scenario_errors as faults
from remora.simulation.scenario.scenario import Scenario, load_scenario

#: Maximum number of bytes of a table.
MOST_BYTES = 2**30
#: Maximum number of bytes of a name between two slashes: that of a folder.
LONGEST = 200


@dataclass(frozen=True, eq=False)
class Study:
    """A campaign that is ready to start, from `rm.load_study`.

    Attributes:
        name: name of the study.
        description: description of the study.
        source: the file.
        text: content of the file.
        scenario: the scenario of all runs.
        system: its robot with all components.
        runs: number of runs.
        seed: of dispersions and noise.
        dispersions: numbers that differ from run to run.
        targets: where they belong, by name.
        outputs: numbers computed of each run, by name.
        bands: numbers over time, by name.
        success: success criteria, by name.
        integrator: settings of the steps.
        physics: settings of the equations of motion.
        times: of the samples, s, `(n,)`.
        dtype: `float64` or `float32`.
    """

    name: str
    description: str
    source: Path
    text: str
    scenario: Scenario
    system: System
    runs: int
    seed: int
    dispersions: Dispersions
    targets: dict[str, places.Target]
    outputs: dict[str, Output]
    bands: dict[str, Quantity]
    success: dict[str, Criterion]
    integrator: Integrator
    physics: Physics
    times: Array
    dtype: str = "float64"

    def inputs(self, start: int, stop: int) -> tuple[dict[str, Array], places.RunInputs]:
        """Return the dispersed numbers of runs by name, `(n,)`, and the inputs they make."""
        values = self.dispersions.draw(start, stop)
        scenario = self.scenario
        if not values:
            n = stop - start
            q, v = np.tile(scenario.q, (n, 1)), np.tile(scenario.v, (n, 1))
            return values, places.RunInputs(q, v, {})
        return values, places.inputs_of(self.system, scenario.q, scenario.v, self.targets, values)

    def identity(self) -> dict[str, str]:
        """Return a digest of each part on which results depend, by name."""
        parts: dict[str, Any] = {
            "robot": self.system.robot,
            "design": self.system.design,
            "components": dict(self.system.components),
            "connections": dict(self.system.connections),
            "scenario": self.scenario.source.read_bytes(),  # phases, controllers and conditions
            "start": (self.scenario.q, self.scenario.v),
            "runs": self.runs,
            "seed": self.seed,
            "sampling": SAMPLINGS[self.dispersions.sampling],
            "disperse": [
                (d.name, d.kind, dict(d.numbers), d.relation, d.nominal, d.rows)
                for d in self.dispersions.items
            ],
            "correlate": list(self.dispersions.correlated),
            "outputs": {n: o.quantity.settings.model_dump() for n, o in self.outputs.items()},
            "bands": {n: b.settings.model_dump() for n, b in self.bands.items()},
            "success": {n: c.settings.model_dump() for n, c in self.success.items()},
            "options": (self.integrator, self.physics, self.times, self.dtype),
        }
        return {name: digest(part) for name, part in parts.items()}


def load_study(path: str | os.PathLike[str], runs: int | None = None) -> Study:
    """Load a study from a `.yaml` file, or a bundled one by name.

    Nothing in the file is trusted or executed. All faults are reported in one error, each with its
    line.

    Args:
        path: the file; or, without suffix and folder, the name of a bundled study.
        runs: number of runs, overrides the file.

    Raises:
        ModelError: if the file, its scenario or its study is invalid.
        UnknownName: if there is no bundled study of that name.
    """
    if runs is not None and runs < 1:
        raise InvalidValue(f"runs must be 1 or greater, not {runs}")
    file = named_file(path, "studies")
    check = Checker()
    root = read_tree(os.fspath(file), check)
    source = (
        f"bundled study {file.stem!r}" if file in bundled("studies").values() else os.fspath(path)
    )
    if not isinstance(root.value, dict):
        raise ModelError(source, [Fault("study", "must be a map with keys", root.line)])
    data = faults.plain(root)
    if runs is not None:
        data["runs"] = runs
    found: list[Fault] = []
    scenario = _scenario(data.get("scenario"), file.parent, root, found)
    settings: StudyFile | None = None
    robot = None if scenario is None else scenario.robot
    try:
        settings = StudyFile.model_validate(data, context=robot)
    except ValidationError as error:
        found += faults.faults_of(error, root, schema(), "study")
    if scenario is not None and settings is not None:
        study = _checked(file, settings, scenario, root, found)
        if study is not None and not found:
            return study
    raise ModelError(source, sorted(dict.fromkeys(found), key=lambda f: f.line or 0))


def _scenario(given: Any, folder: Path, root: YamlNode, found: list[Fault]) -> Scenario | None:
    if not isinstance(given, str) or not given:
        return None  # the schema reports it
    named = not Path(given).suffix and Path(given).name == given
    try:
        return load_scenario(given if named else folder / given)
    except RemoraError as error:
        found.append(faults.fault_at(root, ("scenario",), str(error).replace("\n", "\n  ")))
        return None


def _checked(
    file: Path, settings: StudyFile, scenario: Scenario, root: YamlNode, found: list[Fault]
) -> Study | None:
    """Return the study; record what does not fit the scenario."""

    def refuse(path: faults.Path, reason: str) -> None:
        found.append(faults.fault_at(root, path, reason, "study"))

    system = System(scenario.robot) if scenario.system is None else scenario.system
    targets: dict[str, places.Target] = {}
    items: list[Dispersion] = []
    for name, how in settings.disperse.items():
        try:
            targets[name] = places.target(system, scenario.q, scenario.v, name)
            rows = _table(file.parent, how, settings.runs)
            items.append(dispersion(name, how, targets[name].nominal, rows))
        except RemoraError as error:
            refuse(("disperse", name), str(error))
    groups = _groups(settings, [d.name for d in items], refuse)
    outputs: dict[str, Output] = {}
    bands: dict[str, Quantity] = {}
    events = known_events(system, scenario.phases)
    for name, own in settings.outputs.items():
        try:
            outputs[name] = output(system, name, own)
            _known_event(own.event, events)
            _known_event(own.given, events)
            if own.at is not None and own.at > scenario.duration:
                raise InvalidValue(f"at {own.at:g} s the run is over: it takes "
                                   f"{scenario.duration:g} s")  # fmt: skip
        except RemoraError as error:
            refuse(("outputs", name), str(error))
    for name, own in settings.bands.items():
        try:
            bands[name] = quantity(system, name, own, own.unit)
        except RemoraError as error:
            refuse(("bands", name), str(error))
    success: dict[str, Criterion] = {}
    for name, own in settings.success.items():
        if own.output is not None and own.output not in settings.outputs:
            refuse(("success", name), str(UnknownName("output", own.output, settings.outputs)))
        try:
            _known_event(own.event, events)
        except RemoraError as error:
            refuse(("success", name), str(error))
        success[name] = Criterion(name, own)
    _refuse_names(settings, refuse)
    _refuse_phases(scenario, refuse)
    steps, times = _steps(settings, scenario, refuse), _times(settings, scenario, outputs)
    limits = "stop" if scenario.physics.limits == "stop" else "ignore"
    draws = Dispersions(tuple(items), settings.sampling, settings.seed, settings.runs, groups)
    return Study(
        settings.name or file.stem, settings.description, file,
        file.read_text(encoding="utf-8"), scenario, system, settings.runs, settings.seed, draws,
        targets, outputs, bands, success, steps,
        replace(scenario.physics, limits=limits), times, settings.dtype,
    )  # fmt: skip


#: Columns that every study has.
RESERVED = ("run", "ok", "outcome", "end", "success")


def _refuse_names(settings: StudyFile, refuse: Any) -> None:
    """Record names that two things have, or that cannot be those of stored arrays."""
    parts = {
        "disperse": settings.disperse,
        "outputs": settings.outputs,
        "success": settings.success,
    }
    columns = Counter(name for part in parts.values() for name in part)
    for name, count in columns.items():
        if count > 1 or name in RESERVED:
            refuse(
                (), f"{name!r} names two of dispersions, outputs and criteria, or is a column of "
                "every study",
            )  # fmt: skip
    paths = [(key, name, name) for key, part in parts.items() for name in part]
    paths += [("bands", name, f"bands/{name}") for name in settings.bands]
    folders = (
        {"bands": "bands"} if settings.bands else {}
    )  # that arrays lie in, with what is in them
    for _, name, path in paths:
        for parent in PurePosixPath(path).parents:
            if str(parent) not in (".", "bands"):
                folders.setdefault(str(parent), name)
    for key, name, path in paths:
        fault = _path_fault(name)
        if not fault and path in folders:
            fault = f"cannot be stored beside {folders[path]!r}: rename one of them"
        if fault:
            refuse((key, name), fault)


def _path_fault(name: str) -> str:
    """Return why a name cannot be the path of a stored array; empty if it can."""
    pieces = name.split("/")
    if any(piece in ("", ".", "..", "zarr.json") for piece in pieces) or "\\" in name:
        return (
            "cannot be stored: no part of it between / may be empty, '.', '..' or zarr.json, "
            "and it must not contain a backslash"
        )
    if any(len(piece.encode()) > LONGEST or not piece.isprintable() for piece in pieces):
        return f"must be printable, with at most {LONGEST} bytes between two /"
    return ""


def _refuse_phases(scenario: Scenario, refuse: Any) -> None:
    """Record what the phases of a scenario have that batches do not."""
    for k, phase in enumerate(scenario.phases):
        called = f"its phase {phase.name!r}" if phase.name else f"its phase {k + 1}"
        loads = BatchLoads(scenario.robot, ())
        try:
            for what in LOADS:
                loads.add(what, getattr(phase, what))
        except RemoraError as error:
            refuse(("scenario",), f"{called}: {error}")


def _groups(
    settings: StudyFile, names: list[str], refuse: Any
) -> tuple[tuple[tuple[int, ...], Array], ...]:
    made: list[tuple[tuple[int, ...], Array]] = []
    used: set[str] = set()
    for k, group in enumerate(settings.correlate):
        try:
            for name in group.names:
                if name not in settings.disperse:
                    raise UnknownName("dispersed number", name, settings.disperse)
                if name in used or group.names.count(name) > 1:
                    raise InvalidValue(f"{name!r} is in two groups of correlated numbers")
                if settings.disperse[name].distribution == "table":
                    raise InvalidValue(f"{name!r} comes from a table and cannot be correlated")
            used |= {*group.names}
            factor = correlation_factor(group.names, group.matrix)
            if all(name in names for name in group.names):
                made.append((tuple(names.index(name) for name in group.names), factor))
        except RemoraError as error:
            refuse(("correlate", k), str(error))
    return tuple(made)


def _table(folder: Path, how: DispersionFile, runs: int) -> Array | None:
    """Return a column of a table, `(rows,)`, or None, or raise."""
    if how.table is None:
        return None
    root = folder.resolve()
    file = (root / how.table.file).resolve()
    if not file.is_relative_to(root):
        raise RemoraError(f"{how.table.file}: lies outside of the folder of the study")
    if not file.is_file():
        raise RemoraError(f"{how.table.file}: there is no such file")
    if file.stat().st_size > MOST_BYTES:
        raise RemoraError(f"{how.table.file}: is larger than {MOST_BYTES >> 20} MiB")
    column = how.table.column
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as stream:
            rows = csv.DictReader(stream)
            if column not in (rows.fieldnames or ()):
                raise UnknownName(f"column of {how.table.file}", column, rows.fieldnames or ())
            text = [row[column] for row in rows]
        try:
            values = np.array(text, float)
        except (TypeError, ValueError) as error:
            raise RemoraError(f"{how.table.file}: column {column!r}: {error}") from None
    elif file.suffix == ".parquet":
        frame = pandas().read_parquet(file)
        if column not in frame.columns:
            raise UnknownName(f"column of {how.table.file}", column, list(frame.columns))
        values = frame[column].to_numpy(float)
    else:
        raise RemoraError(f"{how.table.file}: must be .csv or .parquet")
    if values.size < runs:
        raise RemoraError(f"{how.table.file}: has {values.size} rows for {runs} runs")
    if not np.all(np.isfinite(values)):
        raise RemoraError(f"{how.table.file}: column {column!r} has numbers that are not finite")
    return values[:runs]


def _known_event(event: str | None, known: list[str]) -> None:
    if event is not None and event not in known:
        raise UnknownName("event", event, known)


def _steps(settings: StudyFile, scenario: Scenario, refuse: Any) -> Integrator:
    """Return the settings of the steps, checked."""
    own = scenario.integrator
    steps = replace(own, method=own.method or "dop853", step=settings.step or own.step)
    if steps.method == "rk4" and steps.step is None:
        refuse(("step",), "rk4 needs a step")
    return steps


def _times(settings: StudyFile, scenario: Scenario, outputs: dict[str, Output]) -> Array:
    """Return the times of the samples, s."""
    sample = settings.sample if settings.sample is not None else scenario.sample
    times = {0.0, scenario.duration, *(o.at for o in outputs.values() if o.at is not None)}
    if sample is not None:
        count = int(scenario.duration / sample * (1.0 + 1e-12))
        times |= {sample * k for k in range(count + 1)}
    return np.array(sorted(times))
