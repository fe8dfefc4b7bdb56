"""`rm.simulate`: simulation of one run of a robot."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_symbolic
from remora.codegen.ir.philox import RUN_BITS, SEED_BITS
from remora.components.run_signals import check_events
from remora.components.system import System
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.forces.equations_of_motion import PassiveParameters
from remora.dynamics.formulations import FORMULATIONS, usual_formulation
from remora.dynamics.refusals import refuse_kinematic
from remora.errors import InvalidValue, RemoraError, ShapeError, SimulationWarning, UnknownName
from remora.model.arguments import is_several, natural, number
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.simulation.engine.interrupts import interruptible, uninterrupted
from remora.simulation.engine.phase_dynamics import RunSettings
from remora.simulation.engine.reduced_phase_dynamics import with_model
from remora.simulation.engine.rounding import check_rounding
from remora.simulation.engine.run_loop import RunLoop, RunPlan
from remora.simulation.engine.stiffness import (
    MOST_EXPLICIT,
    STABLE,
    stiffest,
    warn_of_unstable_steps,
)
from remora.simulation.inputs.events import Event, listed_events
from remora.simulation.inputs.loads import LoadLike, described
from remora.simulation.inputs.phases import (
    Phase,
    is_phases,
    known_events,
    phases_of,
    refuse_laws_without_estimate,
    total_duration,
)
from remora.simulation.inputs.run_settings import (
    Integrator,
    Physics,
    Record,
    integrator_of,
    physics_of,
    record_of,
    stop_numbers,
)
from remora.simulation.inputs.start_limits import warn_of_starts_beyond_limits
from remora.simulation.program.phase_entry import phase_robots
from remora.simulation.recording.quantities import signal_columns
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.fingerprint import Acting, acting, acting_rows, fingerprint
from remora.simulation.storage.recorder import Recorder
from remora.simulation.storage.resume import StoppedRun, stopped_run

#: Maximum number of samples of a run.
MOST_SAMPLES = 1e8


def simulate(
    robot: Robot | System,
    q: ArrayLike,
    v: ArrayLike,
    duration: float | Phase | Sequence[Phase] | None = None,
    *,
    torque: LoadLike = None,
    wrenches: LoadLike = None,
    prescribed: Mapping[str, Any] | None = None,
    locked: str | Sequence[str] = (),
    events: Sequence[Event] = (),
    integrator: Integrator | str | None = None,
    physics: Physics | None = None,
    record: Record | float | ArrayLike | None = None,
    start: float = 0.0,
    seed: int | tuple[int, int] = 0,
) -> Recording:
    """Simulate a robot or a system from the state (q, v) and return the recording.

    v̇ = forward dynamics, q̇ = v on the configuration manifold: each step is made in the tangent
    space at its start and mapped back by exp (a Munthe-Kaas method), so that unit quaternions stay
    normalized [MK99]. The right-hand side is compiled. Compensated (Kahan) summation [K65].

    Args:
        robot: the robot; its damping, dry friction and springs are included. Or a `System`, a robot
            with components: their continuous states are integrated with the robot's, sampled ones
            are updated at their ticks, and all signals are recorded. Their loads and those of the
            arguments below add up.
        q: initial configuration, `(nq,)`.
        v: initial velocity, `(nv,)`.
        duration: s; or one or several phases (`Phase`) in sequence, each with its own duration,
            loads and held joints.
        torque: generalized forces of the drives, `(nv,)`, ordered as v (a free base: [torque,
            force]): numbers, a function (t, q, v), a `Profile`, a `Pulse`, a controller (see
            `ZeroOrderHold`); or a dictionary of these by joint. N m or N.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(nb, 6)`, in the
            same forms, or a dictionary by body.
        prescribed: motion by joint: a `Motion`, or a function of time. The actuation it requires is
            recorded as the joint's torque.
        locked: joints that are held at their initial position; one name, or several. Their
            actuation is recorded too.
        events: event conditions, of all phases.
        integrator: how steps are made: the name of a method, or an `Integrator` with tolerances and
            step sizes. Default: `dop853` with rtol 1e-10; `radau`, with a `SimulationWarning`, if
            the robot's damping or friction would keep its steps too short.
        physics: treatment of joint limits, stops and effort limits, and the form of the equations
            of motion: a `Physics`. By default joint limits are recorded as events.
        record: seconds between samples, or the times of all samples `(n,)`; or a `Record`, which
            also saves and resumes runs. Default: every step, in memory.
        start: initial time, s.
        seed: of the noise of components, from 0 to 2⁶⁴ - 1; or (seed, index of the run in a study):
            so a run of a batch is repeated alone.

    Raises:
        SimulationError: if the run cannot continue; it holds the `time` and the `recording`.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> push = {"shoulder_pitch": rm.Pulse(0.0, 0.5, 10.0)}  # 10 N m for half a second
        >>> run = rm.simulate(robot, q, v, duration=2.0, torque=push, record=0.5)
        >>> np.degrees(run.joint("shoulder_pitch").q).round(2)
        array([ 0.  ,  7.84, 22.4 , 35.31, 47.15])
    """
    record = record_of(record)
    made = prepare_run(
        robot, q, v, duration, torque=torque, wrenches=wrenches, prescribed=prescribed,
        locked=locked, events=events, integrator=integrator, physics=physics, record=record,
        start=start, seed=seed,
    )  # fmt: skip
    made.warn_of_start()
    return made.run(record)


class PreparedRun(NamedTuple):
    """A run whose arguments are checked.

    Attributes:
        plan: its settings for the run loop.
        settings: its settings as they are stored.
        start: s.
        q: initial configuration, `(nq,)`.
        v: initial velocity, `(nv,)`.
        acts: returns the present fingerprints of the loads.
    """

    plan: RunPlan
    settings: dict[str, Any]
    start: float
    q: Array
    v: Array
    acts: Callable[[], Acting]

    def recorder(self, out: str | Path | None = None, left: StoppedRun | None = None) -> Recorder:
        """Return a recorder in memory, or also on disk; see `Recorder`."""
        robot, system = self.plan.model.robot, self.plan.model.system
        return Recorder(
            robot, self.settings, out, stopped=left,
            fingerprints=None if out is None else self.acts,
            signals={} if system is None else signal_columns(system.signals),
        )  # fmt: skip

    def warn_of_start(self) -> None:
        """Warn the caller's caller if joints that are watched start beyond their limits."""
        if self.plan.limits is not None:
            warn_of_starts_beyond_limits(self.plan.model.robot, self.q, 3)

    def run(self, record: Record) -> Recording:
        """Make the run; one that is stored already is read."""
        refuse_batch_settings(record)
        left, settings, folder = None, self.settings, record.folder
        if record.resume:
            assert folder is not None
            robot, trusted = self.plan.model.robot, record.assume_unchanged
            left = stopped_run(folder, robot, settings, self.acts(), trusted)
            if left is not None:
                settings["note"] = left.run.settings["note"]
            if left is not None and left.run.status == "complete":
                return left.run
        with uninterrupted():
            recorder = self.recorder(folder, left)
        with interruptible():
            return RunLoop(self.plan, recorder, self.start, self.q, self.v, record.progress).go()


def prepare_run(
    robot: Robot | System,
    q: ArrayLike,
    v: ArrayLike,
    duration: float | Phase | Sequence[Phase] | None = None,
    *,
    torque: LoadLike = None,
    wrenches: LoadLike = None,
    prescribed: Mapping[str, Any] | None = None,
    locked: str | Sequence[str] = (),
    events: Sequence[Event] = (),
    integrator: Integrator | str | None = None,
    physics: Physics | None = None,
    record: Record | float | ArrayLike | None = None,
    start: float = 0.0,
    seed: int | tuple[int, int] = 0,
) -> PreparedRun:
    """Check the arguments of `simulate` and return the run that they describe."""
    system = None
    if isinstance(robot, System):
        system, robot = robot if robot.components else None, robot.robot
    if not isinstance(robot, Robot):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RemoraError(
            f"the first argument must be a robot or a system, not {robot!r}: "
            "rm.simulate(rm.load(...), q, v, ...)"
        )
    seed, run = seed if isinstance(seed, tuple) and len(seed) == 2 else (seed, 0)
    seed, run = natural("seed", seed, SEED_BITS), natural("run", run, RUN_BITS)
    events, start = listed_events("events", events), number("start", start, "0.0, in s")
    if not math.isfinite(start):
        raise InvalidValue(f"start must be a finite number of seconds, not {start}")
    steps, physics, record = integrator_of(integrator), physics_of(physics), record_of(record)
    single = not is_phases(duration)
    parts = phases_of(duration, torque, wrenches, prescribed, locked)
    if single:
        parts = (replace(parts[0], events=events),)
    q, v = _checked_state(robot, q, v)
    equations = model_of(robot, physics)._replace(system=system)
    model = physics.model
    constrained = [r for r in phase_robots(robot, parts) if active_constraints(r)]
    end = start + total_duration(parts)
    method = "dop853"
    if steps.method is None and model == "full":  # the reduced model has explicit methods only
        method = _usual_integrator(robot, q, parts, end - start, physics.slip_speed)
    steps = steps.by(method)
    steps.check_steps(end - start)
    method = steps.method
    assert method is not None
    if constrained:
        _refuse_constrained(constrained[0], model)
    equations = with_model(equations, model, method, parts, q, v)
    if method in ("dop853", "dopri5") and not constrained:
        check_rounding(robot, q, v, steps.rtol, steps.atol, end - start, steps.max_steps, 3)
    if steps.step is not None and math.isfinite(steps.row.stable):
        longest = min(steps.step, end - start)
        warn_of_unstable_steps(robot, q, longest, _always_held(robot, parts), stacklevel=3)
    limits = physics.limits or "record"
    times = sample_times(record.sample, start, end)
    settings = {
        "q": q.tolist(), "v": v.tolist(), "start": start, "duration": end - start,
        "integrator": method, "rtol": steps.rtol, "atol": steps.atol, "step": steps.step,
        "max_step": None if math.isinf(steps.max_step) else steps.max_step,
        "sample": None if record.sample is None else np.asarray(record.sample).tolist(),
        "step_to_samples": steps.step_to_samples, "breaks": list(steps.breaks), "limits": limits,
        "stops": [equations.passive.stiffness, equations.passive.damping],
        "saturate": physics.saturate, "slip_speed": physics.slip_speed,
        "formulation": equations.formulation, "events": [e.described() for e in events],
        "phases": [p.described() for p in parts], "note": record.note,
    }  # fmt: skip
    if model != "full":
        settings["model"] = model
    if system is not None:
        if method == "variational" and system.nx:
            states = [n for n, layout in system.layouts.items() if layout.continuous_shapes]
            raise RemoraError(
                "the variational integrator has no continuous states of components "
                f"({', '.join(states)}); choose another integrator"
            )
        settings |= {
            "components": described(dict(system.components)),
            "connections": described(dict(system.connections)), "seed": seed, "run": run,
        }  # fmt: skip
    watched = None if limits == "ignore" else limits
    if system is not None:
        names = known_events(system, parts, events, watched is not None)
        check_events(system.event_places, names)
    refuse_laws_without_estimate(system, parts)
    everywhere = () if single else events
    breaks = tuple(steps.breaks)
    landings = breaks if system is None else (*breaks, *system.breaks)
    plan = RunPlan(equations, steps, parts, everywhere, watched, times, landings, seed, run)

    def acts() -> Acting:
        given = acting(parts, everywhere, single=single)
        if system is not None:
            _, design, *rest = system.identity_parts()
            given["system"] = fingerprint("system", tuple(rest))
            if design is not None:
                given["design"] = fingerprint("design", design)
        return given | acting_rows(robot, equations.formulation)

    return PreparedRun(plan, settings, start, q, v, acts)


def refuse_batch_settings(record: Record) -> None:
    """Raise if a single run has settings that only batches have."""
    default = Record()
    for name in ("signals", "max_events", "failures"):
        if getattr(record, name) != getattr(default, name):
            raise RemoraError(f"Record({name}=...) is for rm.simulate_batch, not for a single run")


def _checked_state(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Return one state as floats, or raise."""
    if robot.nv == 0:
        raise RemoraError(f"robot {robot.name!r} cannot move: it has no degree of freedom")
    q, v = configuration(robot, q), velocity(robot, v)
    if is_symbolic(q) or is_symbolic(v):
        raise ShapeError("a run needs numbers for q and v, not symbols")
    if q.ndim != 1 or v.ndim != 1:
        raise ShapeError(
            f"one run begins with one state, not with {q.shape} and {v.shape}; for many at once "
            "see rm.simulate_batch"
        )
    return q, v


def _refuse_constrained(robot: Robot, model: str) -> None:
    """Raise if a run with constraints has a model that does not support them."""
    names = ", ".join(repr(c.name) for c in active_constraints(robot))
    if model != "full":
        raise RemoraError(f"model={model!r} has no constraints ({names}): use model='full'")


def model_of(robot: Robot, physics: Physics) -> RunSettings:
    """Return the checked constant settings of a run."""
    able = [name for name, row in FORMULATIONS.items() if row.hybrid is not None]
    refuse_kinematic(robot, "a simulation")
    formulation = usual_formulation(robot) if physics.formulation is None else physics.formulation
    if formulation not in able:
        raise UnknownName("formulation of forward dynamics", formulation, able)
    stiffness, damping = stop_numbers(physics.stops)
    passive = PassiveParameters(physics.slip_speed, stiffness, damping)
    return RunSettings(robot, formulation, passive, physics.saturate)


def _usual_integrator(
    robot: Robot,
    q: Array,
    phases: Sequence[Phase],
    duration: float,
    slip_speed: float,
) -> str:
    """Return the integrator of a run that names none: `dop853`, for stiff robots `radau`."""
    found = stiffest(robot, q, slip_speed, _always_held(robot, phases))
    steps = 0.0 if found is None else found.rate * duration / STABLE
    if found is None or steps <= MOST_EXPLICIT:
        return "dop853"
    warnings.warn(
        f"robot {robot.name!r} is stiff: {found.described()}, for which an explicit method would "
        f"need some {steps:.0e} steps; integrator='radau' is used",
        SimulationWarning,
        stacklevel=4,
    )
    return "radau"


def _always_held(robot: Robot, phases: Sequence[Phase]) -> list[str]:
    """Return the names of the joints whose motion is given in every phase."""
    given = [{*phase.prescribed, *phase.locked} for phase in phases]
    return [name for name in robot.joints.names if all(name in names for names in given)]


def sample_times(sample: float | ArrayLike | None, start: float, end: float) -> Array | None:
    """Return the times of the samples, the start first, or None for every step."""
    if sample is None:
        return None
    if not is_several(sample) and getattr(sample, "ndim", 0) == 0:
        interval = number("sample", sample, "0.1, in s, or the times of all samples")
        if not (math.isfinite(interval) and interval > 0.0):
            raise InvalidValue(f"sample must be a positive number of seconds, not {interval}")
        count = (end - start) / interval
        if count > MOST_SAMPLES:
            raise InvalidValue(f"a sample every {interval:g} s are more than {MOST_SAMPLES:g}")
        times = start + interval * np.arange(math.floor(count * (1.0 + 1e-12)) + 1)
        if abs(times[-1] - end) < 1e-6 * interval:
            times[-1] = end
        return times
    try:
        times = np.array(sample, dtype=float)
    except (TypeError, ValueError):
        raise InvalidValue(
            f"sample must be seconds between samples, or times of all, not {sample!r}"
        ) from None
    if times.ndim != 1 or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0):
        raise InvalidValue("the times of samples must be finite and ascend")
    if times.size and (times[0] < start or times[-1] > end + 1e-12 * abs(end)):
        raise InvalidValue(f"times of samples must lie between {start:g} and {end:g} s")
    return times if times.size and times[0] == start else np.concatenate([[start], times])
