"""Scenario files: a complete run in one YAML file, validated before it starts.

    scenario: 1
    robot: servicer
    start: {joints: {shoulder_pitch: 30 deg}}
    phases:
      - {duration: 10, prescribed: {elbow_pitch: {to: 60 deg}}}

Nothing in a file is executed; Python code that it names is loaded only if the caller allows it
(`python_component`). `file_schema` lists the keys, docs/scenarios.md explains them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.components.run_signals import check_events
from remora.components.system import System
from remora.dynamics.constraints.close_loops import close_loops
from remora.errors import Fault, InvalidValue, ModelError, RemoraError, UnknownName
from remora.model.building.validate import Checker
from remora.model.formats.bundled import bundled, named_file
from remora.model.formats.yaml.yaml_tree import read_tree
from remora.model.robot import Joint, Robot
from remora.model.settings_fields import Text, degrees_of_a_slide
from remora.model.state import neutral, random_state
from remora.simulation.engine.simulate import model_of, simulate
from remora.simulation.inputs.phases import (
    Phase,
    known_events,
    refuse_laws_without_estimate,
    total_duration,
)
from remora.simulation.inputs.run_settings import Integrator, Physics, Record
from remora.simulation.recording.recording import Recording
from remora.simulation.scenario import scenario_errors as faults
from remora.simulation.scenario.file_schema import (
    ListedSettings,
    Numbers,
    PhaseFile,
    ScenarioFile,
    Source,
    StartFile,
)
from remora.simulation.scenario.scenario_loads import Refuse
from remora.simulation.scenario.scenario_phases import phase_of
from remora.simulation.scenario.scenario_robot import (
    RobotSource,
    check_switches,
    declared_constraints,
    robot_of,
)
from remora.simulation.scenario.scenario_system import system_of

#: Maximum number of samples of a scenario.
MOST_SAMPLES = 10_000_000

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, eq=False)
class Scenario:
    """A run that is ready to start, from `rm.load_scenario`.

    Attributes:
        name: name of the scenario.
        description: description of the scenario.
        source: the file.
        robot: the robot.
        q: initial configuration, `(nq,)`.
        v: initial velocity, `(nv,)`.
        phases: the phases.
        integrator: settings of the steps.
        physics: settings of the equations of motion.
        sample: seconds between samples; None: every step.
        seed: seed of the noise, and index of the run.
        system: the robot with the components of the file; None if it lists none.
    """

    name: str
    description: str
    source: Path
    robot: Robot
    q: Array
    v: Array
    phases: tuple[Phase, ...]
    integrator: Integrator
    physics: Physics
    sample: float | None = None
    seed: tuple[int, int] = (0, 0)
    system: System | None = None

    @property
    def duration(self) -> float:
        """Duration if no event ends a phase earlier, s."""
        return total_duration(self.phases)

    def run(
        self,
        out: str | os.PathLike[str] | None = None,
        progress: Any = None,
        resume: bool = False,
        sample: float | None = None,
    ) -> Recording:
        """Simulate and return the recording; see `rm.simulate`.

        Args:
            out: directory in which the run is saved as it progresses.
            progress: True for a bar, False for none, None: a bar on a terminal if it takes long.
            resume: continue the run in `out` if it is incomplete.
            sample: seconds between samples, overrides the file.

        Raises:
            SimulationError: if the run cannot continue; it holds the `time` and the `recording`.
        """
        if sample is None:
            sample = self.sample
        elif self.duration > MOST_SAMPLES * abs(sample) > 0.0:
            raise InvalidValue(f"{sample:g} s between samples are too many samples")
        note = f"scenario {self.name!r}\n{self.description}".rstrip()
        folder = None if out is None else Path(out)
        return simulate(
            self.robot if self.system is None else self.system, self.q, self.v, self.phases,
            integrator=self.integrator, physics=self.physics, seed=self.seed,
            record=Record(sample, folder, resume=resume, note=note, progress=progress),
        )  # fmt: skip


def load_scenario(
    path: str | os.PathLike[str],
    inertia: str | None = None,
    mesh_root: str | os.PathLike[str] | None = None,
    allow_code: bool = False,
) -> Scenario:
    """Load a scenario from a `.yaml` file, or a bundled one by name.

    Nothing in the file is trusted or executed, unless `allow_code` is set. All faults are reported
    in one error, each with its line.

    Args:
        path: the file; or, without suffix and folder, the name of a bundled scenario.
        inertia: treatment of impossible inertias, overrides the file; see `rm.load`.
        mesh_root: folder of the robot's meshes, overrides the file.
        allow_code: whether Python components that the file names may be loaded, which runs their
            code; without it such a file is refused.

    Raises:
        ModelError: if the file or its scenario is invalid.
        UnknownName: if there is no bundled scenario of that name.

    Example:
        >>> rm.load_scenario("unfold").robot.name
        'servicer'
    """
    file = _located(path)
    source = (
        f"bundled scenario {file.stem!r}"
        if file in bundled("scenarios").values()
        else os.fspath(path)
    )
    check = Checker()
    root = read_tree(os.fspath(file), check)
    if not isinstance(root.value, dict):
        check.faults.append(Fault("scenario", "must be a map with keys", root.line))
        raise ModelError(source, check.faults)
    data = faults.plain(root)

    def refuse(path: faults.Path, reason: str) -> None:
        check.faults.append(faults.fault_at(root, path, reason))

    robot = robot_of(data, RobotSource(file.parent, inertia, mesh_root), refuse)
    settings: ScenarioFile | None = None
    try:
        settings = ScenarioFile.model_validate(data, context=robot)
    except ValidationError as error:
        check.faults.extend(faults.faults_of(error, root))
    made: list[Phase | None] = []
    if robot is not None:
        phases = dict(enumerate(settings.phases)) if settings is not None else _sound(data, robot)
        check_switches(robot, phases, declared_constraints(data), settings is not None, refuse)
        made = [phase_of(robot, phase, k, refuse) for k, phase in phases.items()]
    system = None
    if robot is not None:
        acting = (
            (settings.components, settings.connections, settings.design)
            if settings is not None
            else _wired(data, robot)
        )
        code = file.parent if allow_code else None
        system = None if acting is None else system_of(robot, *acting, refuse, code)
    if robot is None or settings is None or check.faults:
        raise _refused(source, check.faults)
    sound = tuple(phase for phase in made if phase is not None)
    try:
        if system is not None:
            names = known_events(system, sound, limits=settings.limits != "ignore")
            check_events(system.event_places, names)
    except UnknownName as error:
        refuse(("connections",), str(error))
    for k, phase in enumerate(sound):
        try:
            refuse_laws_without_estimate(system, [phase])
        except RemoraError as error:
            refuse(("phases", k, "controllers"), str(error))
    q, v = _start(robot, settings.start, settings.seed, refuse)
    steps, physics = _steps(settings, refuse), _physics(robot, settings, refuse)
    if check.faults:
        raise _refused(source, check.faults)
    name = settings.name or file.stem
    return Scenario(
        name, settings.description, file, robot, q, v, sound, steps, physics,
        settings.output.sample, (settings.seed, settings.run), system,
    )  # fmt: skip


def _refused(source: str, found: list[Fault]) -> ModelError:
    return ModelError(source, sorted(dict.fromkeys(found), key=lambda f: f.line or 0))


def _located(path: str | os.PathLike[str]) -> Path:
    file = named_file(path, "scenarios")
    if file.suffix.lower() not in _SUFFIXES and not file.is_dir():
        reason = f"is not a scenario file: its name must end with {' or '.join(_SUFFIXES)}"
        raise ModelError(os.fspath(path), [Fault("file", reason)])
    return file


def _sound(data: dict[str, Any], robot: Robot) -> dict[int, PhaseFile]:
    """Return the phases that can still be checked in a file with faults, by index."""
    sound: dict[int, PhaseFile] = {}
    phases = data.get("phases")
    for k, phase in enumerate(phases if isinstance(phases, list) else ()):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        try:
            sound[k] = PhaseFile.model_validate(phase, context=robot)
        except ValidationError:
            continue
    return sound


def _wired(
    data: dict[str, Any], robot: Robot
) -> tuple[list[ListedSettings], dict[str, Any], dict[str, Any]] | None:
    """Return components, connections and design if a file has its faults elsewhere, or None."""
    try:
        return (
            TypeAdapter(list[ListedSettings]).validate_python(
                data.get("components", []), strict=True, context=robot
            ),
            TypeAdapter(dict[Text, Source]).validate_python(
                data.get("connections", {}), strict=True, context=robot
            ),
            TypeAdapter(dict[Text, Numbers]).validate_python(
                data.get("design", {}), strict=True, context=robot
            ),
        )
    except ValidationError:
        return None


# Initial state -----------------------------------------------------------------------------------


def _start(robot: Robot, settings: StartFile, seed: int, refuse: Refuse) -> tuple[Array, Array]:
    q, v = neutral(robot), np.zeros(robot.nv)
    if settings.random:
        q, v = random_state(robot, seed)
    bases = {("base",): (robot.joints[0], settings.base)} if settings.base is not None else {}
    bases |= {("bases", name): (robot.joints[name], x) for name, x in settings.bases.items()}
    for path, (base, x) in bases.items():
        called = "the base" if path == ("base",) else f"joint {base.name!r}"
        if base.kind != "free":
            refuse(("start", *path), f"{called} is {base.kind}, not free: set it in joints")
        elif path != ("base",) and base is robot.joints[0] and settings.base is not None:
            refuse(("start", *path), "is set in both base and bases")
        else:
            q[base.q] = pose.from_xyz_rpy(np.array(x.xyz), np.array(x.rpy))
            v[base.v] = [*x.omega, *x.velocity]
    for key, by_joint, state in (("joints", settings.joints, q), ("speeds", settings.speeds, v)):
        for name, value in by_joint.items():
            joint = robot.joints[name]
            place = joint.q if key == "joints" else joint.v
            try:
                state[place] = _coordinates(joint, value, place.stop - place.start, key)
            except RemoraError as error:
                refuse(("start", key, name), str(error))
    keep = settings.close_loops
    return (q, v) if keep is False else _closed(robot, q, v, keep, refuse)


def _coordinates(joint: Joint, value: Any, size: int, key: str) -> Array:
    """Return coordinates or speeds of a joint at the start, or raise."""
    numbers = np.atleast_1d(np.array(value, dtype=float))
    wrong = degrees_of_a_slide(joint, value)
    if wrong:
        raise InvalidValue(wrong)
    if joint.kind == "free":
        raise InvalidValue("is a free joint: set start.base or start.bases")
    if numbers.shape != (size,):
        wanted = "one number" if size == 1 else f"{size} numbers"
        raise InvalidValue(f"must be {wanted}, not {numbers.size}")
    if joint.kind != "spherical" or key == "speeds":
        return numbers
    length = float(np.linalg.norm(numbers))
    if abs(length - 1.0) > 1e-6:
        raise InvalidValue(f"must be a unit quaternion, its length is {length:.6g}")
    return numbers / length


def _closed(
    robot: Robot, q: Array, v: Array, keep: bool | list[str], refuse: Refuse
) -> tuple[Array, Array]:
    """Return the closest state that satisfies the constraints."""
    if not any(c.active for c in robot.constraints):
        refuse(("start", "close_loops"), "no constraint is active at the start")
        return q, v
    try:
        return close_loops(robot, q, v, fixed=keep if isinstance(keep, list) else ())
    except RemoraError as error:
        refuse(("start", "close_loops"), str(error))
        return q, v


# Options -----------------------------------------------------------------------------------------


def _steps(settings: ScenarioFile, refuse: Refuse) -> Integrator:
    """Return the settings of the steps, checked."""
    steps, sample = settings.integrator, settings.output.sample
    if steps.name in ("rk4", "variational") and steps.step is None:
        refuse(("integrator",), f"{steps.name} has fixed steps: step is missing")
    if steps.name == "variational" and any(
        p.prescribed or p.locked or p.reach for p in settings.phases
    ):
        refuse(
            ("integrator",), "variational cannot hold joints: nothing may be prescribed or locked"
        )
    duration = sum(phase.duration for phase in settings.phases)
    if sample is not None and duration / sample > MOST_SAMPLES:
        reason = f"gives {duration / sample:.3g} samples; the maximum is {MOST_SAMPLES:,}"
        refuse(("output", "sample"), reason)
    given = steps.model_dump(exclude={"name"}, exclude_none=True)
    try:
        return Integrator(steps.name, **given, step_to_samples=settings.output.step_to_samples)
    except RemoraError as error:
        refuse(("integrator",), str(error))
        return Integrator()


def _physics(robot: Robot, settings: ScenarioFile, refuse: Refuse) -> Physics:
    """Return the settings of the equations of motion, checked."""
    stops = None if settings.stops is None else (settings.stops.stiffness, settings.stops.damping)
    keys = ("limits", "saturate", "slip_speed", "formulation", "model")
    physics = Physics(stops=stops, **{key: getattr(settings, key) for key in keys})
    try:
        model_of(robot, physics)
    except RemoraError as error:
        refuse(("formulation",), str(error))
    return physics
