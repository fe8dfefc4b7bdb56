"""`rm.simulate_batch`: thousands of runs at once, with the whole closed loop compiled."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.gpu import cuda_kernel
from remora.codegen.ir.arguments import DTYPES
from remora.codegen.ir.philox import RUN_BITS
from remora.components.component import Component
from remora.components.run_signals import check_events
from remora.components.system import System
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.kernels.compiled import TARGETS
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.arguments import number
from remora.model.robot import Robot
from remora.model.takes_robot import check_robot
from remora.simulation.batch.batch_faults import note_faults, note_lockstep_faults
from remora.simulation.batch.batch_inputs import BatchInputs, batch_inputs, whole_numbers
from remora.simulation.batch.batch_loads import BatchLoads, is_per_run
from remora.simulation.batch.batch_outcome import finished_batch
from remora.simulation.batch.batch_phases import (
    BatchPhase,
    BatchRuns,
    BatchSettings,
    carried_states,
)
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.batch.phase_starts import start_phase
from remora.simulation.batch.result import Batch
from remora.simulation.batch.runs_in_turn import runs_in_turn
from remora.simulation.batch.single_run import RunArguments
from remora.simulation.engine.interrupts import interruptible
from remora.simulation.engine.phase_dynamics import RunSettings, effort_limits
from remora.simulation.engine.progress import batch_bar
from remora.simulation.engine.reduced_phase_dynamics import with_model
from remora.simulation.engine.rounding import check_rounding
from remora.simulation.engine.simulate import model_of, sample_times
from remora.simulation.engine.stiffness import warn_of_unstable_steps
from remora.simulation.inputs.events import Action, Event, joint_limits, listed_events
from remora.simulation.inputs.loads import LoadLike
from remora.simulation.inputs.move_starts import with_started_moves
from remora.simulation.inputs.phases import (
    Phase,
    is_phases,
    known_events,
    phases_of,
    refuse_laws_without_estimate,
    total_duration,
    traced_motions,
)
from remora.simulation.inputs.robot_loads import LOADS, load_of, load_shape, refuse_torque_of_held
from remora.simulation.inputs.run_settings import (
    Integrator,
    Physics,
    Record,
    Runs,
    Target,
    integrator_of,
    physics_of,
    record_of,
    runs_of,
    stop_numbers,
    target_of,
)
from remora.simulation.inputs.start_limits import warn_of_starts_beyond_limits
from remora.simulation.integrators import tableaus
from remora.simulation.integrators.step_control import refuse_unresolved
from remora.simulation.program.event_conditions import conditions
from remora.simulation.program.event_search import INTERRUPTED, NEXT, RUNNING
from remora.simulation.program.phase_entry import PhaseEntry, of_runs, phase_robots
from remora.simulation.program.run_equations import (
    Break,
    Forces,
    RunEquations,
    input_name,
)
from remora.simulation.program.run_program import StepControl

#: Target of batches whose runs are made one after the other, with what cannot be compiled.
PYTHON = "python"
#: Invalid robot parameters that an error message lists.
MOST_FAULTS = 5
#: rtol and atol of batches with fixed steps whose robots have stops.
STOP_TOLERANCE = {"float64": (1e-9, 1e-11), "float32": (2e-5, 1e-6)}
#: Maximum number of steps of a run with stops.
MOST_STOP_STEPS = 1_000_000


def simulate_batch(
    system: System | Robot,
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
    runs: Runs | int | None = None,
    target: Target | str = "cpu",
) -> Batch:
    """Simulate many runs of a robot or a system, entirely in machine code.

    Equivalent to `simulate` run by run: Munthe-Kaas Runge-Kutta methods on the configuration
    manifold [MK99] with compensated (Kahan) summation [K65]. A run is bitwise identical in any
    batch. Components and loads are compiled too: functions are traced, so they must be written on
    arrays (NumPy's functions, `rm.algebra`) without `if` on values (use
    `rm.algebra.array_ops.select`).

    Args:
        system: the robot, or a system with components; the robot's damping, dry friction and
            springs are included.
        q: initial configurations, `(..., nq)`.
        v: initial velocities, `(..., nv)`.
        duration: s; or one or several phases (`Phase`) in sequence, each with its own duration,
            loads, held joints and events. An event with the action `next` ends a phase early, in
            each run at its own time.
        torque: generalized forces of the drives: numbers `(nv,)`, or `(..., nv)` for each run; a
            function (t, q, v, and `inputs` by name) -> `(nv,)`; a `Profile` or `Pulse`; a
            controller; a `Sum` of these; or a dictionary of these by joint.
        wrenches: external, [f, τ] on each body in its own frame about its origin: numbers
            `(nb, 6)`, or `(..., nb, 6)` for each run; a function -> `(nb, 6)`; or by body.
        prescribed: motions by joint: a `Motion`, or a function of time.
        locked: joints that are held at their position.
        events: conditions watched in all phases, besides the events of components.
        integrator: how steps are made: the name of a method, or an `Integrator` with tolerances and
            step sizes. `rk4` with fixed steps is the default and needs a step size; with `dopri5`
            and `dop853` each run controls its own steps.
        physics: treatment of joint limits, stops and effort limits, and the form of the equations
            of motion: a `Physics`. By default joint limits are ignored: runs that watch them have
            steps of their own.
        record: seconds between samples, or the times of all samples `(n,)`; or a `Record`. Default:
            start and end.
        start: initial time, s.
        runs: number of runs, where no array has a batch shape; or `Runs`: parameters, inputs and
            initial states that differ from run to run, and the seed of the noise.
        target: `cpu`, `cuda` or `python`; or a `Target` with the precision and the threads.

    Raises:
        SimulationError: if a run does not stay finite.
        InvalidValue: if robot parameters are physically impossible.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> torque = np.zeros((100, robot.nv))
        >>> torque[:, 6] = np.linspace(0.0, 1.0, 100)  # N m, on the first joint of the arm
        >>> runs = rm.simulate_batch(
        ...     robot, q, v, 1.0, torque=torque, integrator=rm.Integrator(step=0.01)
        ... )
        >>> runs.q.shape
        (100, 2, 15)
    """
    if not isinstance(system, System):
        check_robot("simulate_batch", system, q, v)
        system = System(system)
    robot = system.robot
    steps, physics, record = integrator_of(integrator), physics_of(physics), record_of(record)
    runs, on = runs_of(runs), target_of(target)
    target, dtype = on.processor, on.dtype
    for name, value, known in (("target", target, (*TARGETS, PYTHON)), ("dtype", dtype, DTYPES)):
        if not isinstance(value, str) or value not in known:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnknownName(name, value, known)
    if record.folder is not None:
        raise RemoraError("a batch is saved when it is complete: batch.save('folder')")
    for name, used in (("note", record.note), ("progress", callable(record.progress))):
        if used:
            raise RemoraError(f"Record({name}={getattr(record, name)!r}) is for a single run")
    steps = steps.by("rk4")
    method = steps.method
    assert method is not None
    in_turn = target == PYTHON or steps.row.tableau.hosted
    if in_turn:
        _refuse_in_turn(steps, on, runs)
    else:
        _refuse_untraceable(system)
    control = StepControl.of(steps)
    start, breaks = number("start", start, "0.0, in s"), steps.breaks
    if not math.isfinite(start):
        raise InvalidValue(f"start must be a finite number of seconds, not {start}")
    if not (fits_straight_line(robot) or in_turn) and (
        target == "cuda" or dtype != "float64" or stop_numbers(physics.stops)[0]
    ):
        raise RemoraError(
            f"{robot.name!r} has {len(robot.bodies)} bodies; batches of robots with more than "
            f"{LARGEST_STRAIGHT_LINE} run in float64 on the CPU, without stops; others need "
            "target='python'"
        )
    one_phase = not is_phases(duration)
    parts = phases_of(duration, torque, wrenches, prescribed, locked)
    refuse_laws_without_estimate(system, parts)
    robots = phase_robots(robot, parts)
    if not in_turn:
        _refuse_constraints(robots, dtype)
    duration = total_duration(parts)
    equations = model_of(robot, physics)
    limits = physics.limits or "ignore"
    watching = None if limits == "ignore" else limits
    per_run = {
        what: (getattr(parts[0], what), load_shape(robot, what))
        for what in LOADS
        if one_phase and is_per_run(getattr(parts[0], what), load_shape(robot, what))
    }
    own = batch_inputs(
        system, q, v, per_run, runs.inputs or {}, runs.parameters or {}, runs.initial or {},
        runs.count, None if target == "cuda" else dtype,
    )  # fmt: skip
    _refuse_impossible(robot, own, record.failures)
    warn_of_starts_beyond_limits(robot, to_host(own.q))
    watched = listed_events("events", events)
    check_events(system.event_places, known_events(system, parts, watched))
    end = start + duration
    times = sample_times(record.sample, start, end)
    times = np.array([start]) if times is None else times
    if times[-1] < end:
        times = np.append(times, end)
    known = _signals(system, record.signals)
    count = math.prod(own.batch)
    index = np.arange(count).reshape(own.batch) if runs.index is None else runs.index
    index = whole_numbers("index", index, RUN_BITS, own.batch).flatten()
    arguments = None
    if target != "cuda":
        arguments = RunArguments(
            _rows(np, own.q, own.batch, 1), _rows(np, own.v, own.batch, 1),
            index, parts, steps, replace(physics, limits=limits), start, runs.seed, times, watched,
            next((f"it has {what}" for what, used in (
                ("inputs=", bool(runs.inputs)), ("initial=", bool(runs.initial)),
                ("dtype float32", dtype != "float64")) if used), ""),
            {what: _rows(np, own.data[what], own.batch, len(shape))
             for what, (_, shape) in per_run.items()},
        )  # fmt: skip
    settings = BatchSettings(
        control, known, times, start, dtype, target, on.threads, record.max_events
    )
    if in_turn:
        assert arguments is not None
        for part in parts:
            refuse_torque_of_held(robot, (*part.prescribed, *part.locked), part.torque)
            for what in (name for name in LOADS if name not in per_run):
                load_of(robot, what, getattr(part, what))  # or an error
        watches = known_events(system, parts, watched, watching is not None)
        with batch_bar(count, record.progress) as advance, interruptible():
            made = runs_in_turn(system, own, settings, arguments, watches, advance)
        status = "interrupted" if made.interrupted else "complete"
        found = finished_batch(system, own, settings, made, record.failures, status, True)
        return found.with_arguments(system, arguments)
    equations = _with_momentum(equations, physics.model, method, parts, system, own)
    early = any(event.action != "record" for event in watched)
    parts = with_started_moves(robot, parts, lambda: to_host(own.q), start, early)
    if target == "cpu" and not own.parameters and math.prod(own.batch) and not control.adaptive:
        first = np.asarray(own.q, float).reshape(-1, robot.nq)[0]
        held = {*parts[0].prescribed, *parts[0].locked}
        warn_of_unstable_steps(robot, first, min(control.step, duration), held, stacklevel=2)
    if control.adaptive and target == "cpu" and dtype == "float64" and math.prod(own.batch):
        one_q, one_v = (
            np.asarray(x, float).reshape(-1, n)[0]
            for x, n in ((own.q, robot.nq), (own.v, robot.nv))
        )
        check_rounding(robot, one_q, one_v, steps.rtol, steps.atol, duration, steps.max_steps)
    steps.check_steps(duration)
    plan: list[BatchPhase] = []
    for k, part in enumerate(parts):
        before = robots[k - 1] if k else robot
        latched = {x for p in plan for x in p.entry.latches.values()}
        entry = phase_entry(system, k, part, (before, robots[k]), own, latched)
        now = system.acting_on(robots[k])
        plan.append(
            batch_phase(now, part, own, equations, breaks, tuple(per_run), watched, entry, watching)
        )
    if any(p.equations.stops for p in plan) and not control.adaptive:
        control = _in_contact(control, dtype)
    updates = [u for phase in plan for u in phase.equations.system.schedule]
    refuse_unresolved(start, end, [phase.duration for phase in plan], updates)
    settings = replace(settings, control=control)
    with interruptible():
        made = _run(system, plan, equations.momentum, own, settings, runs.seed, index, record)
    return made if arguments is None else made.with_arguments(system, arguments)


def _refuse_constraints(robots: Sequence[Robot], dtype: str) -> None:
    """Raise if constraints act that this batch cannot take into account."""
    acting = [(robot, c.name) for robot in robots for c in active_constraints(robot)]
    if not acting:
        return
    robot, name = acting[0]
    if dtype != "float64":
        raise RemoraError(
            f"constraint {name!r} acts: float32 is too coarse to keep it; use "
            "rm.Target(dtype='float64')"
        )
    if not fits_straight_line(robot):
        raise RemoraError(
            f"constraint {name!r} acts, and {robot.name!r} has {len(robot.bodies)} bodies: batches "
            f"of robots with more than {LARGEST_STRAIGHT_LINE} have no constraints; use "
            "target='python'"
        )


def _refuse_in_turn(steps: Integrator, on: Target, runs: Runs) -> None:
    """Raise if a batch whose runs Python makes asks for what only compiled runs have."""
    what = "target='python'"
    if steps.row.tableau.hosted:
        what = f"integrator={steps.method!r}"
    for wanted, given in (
        ("target='cuda'", on.processor == "cuda"), (f"dtype={on.dtype!r}", on.dtype != "float64"),
        ("inputs=", bool(runs.inputs)), ("initial=", bool(runs.initial)),
    ):  # fmt: skip
        if given:
            raise RemoraError(
                f"runs with {what} are made by Python, one after the other: without {wanted}"
            )


def _refuse_untraceable(system: System) -> None:
    for name, error in system.untraceable.items():
        raise RemoraError(
            f"component {name!r} cannot be compiled, so it runs in rm.simulate, and in batches "
            f"with target='python' only: {error}"
        )


def _in_contact(control: StepControl, dtype: str) -> StepControl:
    """Return the control for a robot with stops: steps of at most the fixed length.

    A fixed step is too long where a joint is pressed into its stop, and not smooth where it meets
    it.
    """
    rtol, atol = STOP_TOLERANCE[dtype]
    return StepControl(tableaus.DOPRI5, control.step, rtol, atol, control.step, MOST_STOP_STEPS)


def _with_momentum(
    model: RunSettings, name: str, integrator: str, phases: tuple[Phase, ...], system: System,
    own: BatchInputs,
) -> RunSettings:  # fmt: skip
    """Return the model by name; the reduced one with the momentum of each run, `(runs, 6)`."""
    if name == "full":
        return model
    robots = phase_robots(system.robot, phases)
    constrained = next((c.name for r in robots for c in active_constraints(r)), None)
    if constrained is not None:
        raise RemoraError(f"model={name!r} has no constraints ({constrained!r}): use model='full'")
    numbers = {n: _rows(np, to_host(x), own.batch, len(system.shape_of(n)))
               for n, x in own.parameters.items() if system.owner_of(n) == "robot"}  # fmt: skip
    acting = system if system.components else None
    of_model = model._replace(system=acting, robot=of_runs(model.robot, numbers))
    q, v = (np.asarray(_rows(np, to_host(x), own.batch, 1), float) for x in (own.q, own.v))
    return model._replace(momentum=with_model(of_model, name, integrator, phases, q, v).momentum)


def _refuse_impossible(robot: Robot, own: BatchInputs, failures: str) -> None:
    if own.faults and failures == "raise":
        shown = "; ".join(map(str, own.faults[:MOST_FAULTS]))
        more = len(own.faults) - MOST_FAULTS
        raise InvalidValue(
            f"impossible numbers of {robot.name!r}: {shown}"
            + (f"; and {more} more" if more > 0 else "")
            + " (rm.Record(failures='keep') does the other runs)"
        )


def _signals(system: System, names: Sequence[str] | None) -> tuple[str, ...]:
    known = system.signals
    if names is None:
        return tuple(known)
    for name in names:
        if name not in known:
            raise UnknownName("signal", name, known)
    return tuple(names)


def phase_entry(
    system: System, index: int, phase: Phase, robots: tuple[Robot, Robot], own: BatchInputs,
    latched: Collection[str],
) -> PhaseEntry:  # fmt: skip
    """Return what happens at the start of a phase.

    Args:
        system: the system.
        index: of the phase.
        phase: the phase.
        robots: before the phase and in it.
        own: arguments of the runs.
        latched: parameters that were latched in phases before.
    """
    known = [name for name in own.parameters if system.owner_of(name) == "robot"]
    parameters = tuple(dict.fromkeys((*known, *sorted(latched))))
    return PhaseEntry(index, phase, *robots, parameters, tuple(traced_motions(system.robot, phase)))


def batch_phase(
    system: System, phase: Phase, own: BatchInputs, model: RunSettings, breaks: Sequence[float],
    per_run: Sequence[str], events: Sequence[Event], entry: PhaseEntry,
    limits: Action | None = None,
) -> BatchPhase:  # fmt: skip
    """Return a phase with its loads as functions and components."""
    loads = BatchLoads(system.robot, per_run)
    given = [getattr(phase, what) for what in LOADS]
    for what, load in zip(LOADS, given, strict=True):
        loads.add(what, load)
    robot, whole_system = system.robot, system
    if entry.index:  # those of the whole batch are not first watched here
        events = [replace(event, at_start=False) for event in events]
    added = [*loads.components, *conditions(robot, events, phase.events)]
    if added:
        new: dict[str, Component] = {}
        for k, component in enumerate(added):
            name = component.name or f"load_{k}"
            taken = name in system.components or name in new
            new[f"{name}_{k}" if taken else name] = component
        whole_system = system.with_components(new)
        _refuse_untraceable(whole_system)
    from_phase = frozenset(n for n in whole_system.components if n not in system.components)
    whole_system = whole_system.with_separate_updates(from_phase)
    held = traced_motions(robot, phase)
    refuse_torque_of_held(robot, held, phase.torque)
    motions = [m.breaks for m in held.values() if m is not None]
    forces = Forces(loads.torque, loads.wrenches, own.inputs)
    latched = (*entry.parameters, *entry.latches.values())
    parameters = tuple(dict.fromkeys((*own.parameters, *latched)))
    equations = RunEquations(
        whole_system, forces, parameters, model.formulation, model.passive, held,
        phase.own_clock,
        from_phase if entry.index else frozenset(whole_system.components),
        tuple(effort_limits(robot).tolist()) if model.saturate else None,
        None if limits is None else joint_limits(robot, limits, entry.index == 0),
        reduced=model.momentum is not None,
        hosted=frozenset[str]() if fits_straight_line(robot) else frozenset({"dynamics"}),
    )  # fmt: skip
    of_phase = (b for part in (loads.breaks, *motions) for b in part)
    all_breaks = (
        *(Break(t) for t in (*breaks, *system.breaks)),
        *(Break(t, phase.own_clock) for t in of_phase),
    )
    plain = not whole_system.components and not held and all(
        x is None or not (callable(x) or isinstance(x, Mapping)) for x in given
    )  # fmt: skip
    return BatchPhase(equations, phase.duration, all_breaks, from_phase, plain, entry)


def _run(
    system: System, plan: Sequence[BatchPhase], momentum: Any, own: BatchInputs,
    settings: BatchSettings, seed: int, index: Array, record: Record,
) -> Batch:  # fmt: skip
    """Perform all phases and return the batch."""
    count = math.prod(own.batch)
    on_gpu = settings.target == "cuda"
    xp: Any = cuda_kernel.cupy_with_device() if on_gpu else np
    data = {
        **{
            input_name(s.name): _rows(xp, own.data[s.name], own.batch, len(s.shape))
            for s in own.inputs
        },
        **{
            s.name: _rows(xp, x, own.batch, len(s.shape))
            for s, x in zip(
                plan[0].equations.parameter_signatures, own.parameters.values(), strict=False
            )  # those of latches follow
        },
        "seed": np.array([float(seed & 0xFFFFFFFF), float(seed >> 32)]),
        "run": index.reshape(count, 1).astype(float),
    }
    if momentum is not None:
        data["momentum"] = xp.asarray(np.reshape(momentum, (count, 6)))
    state = {
        name: _rows(xp, x, own.batch, 1)
        for name, x in (("q", own.q), ("v", own.v), ("x", own.x), ("z", own.z))
    }
    for name in ("q", "v", "x"):
        state[f"rest {name}"] = xp.zeros_like(state[name])
    dtype = settings.dtype
    state = {name: xp.asarray(x, dtype=dtype) for name, x in state.items()}
    runs = BatchRuns(settings, count, state, data, xp)
    free = settings.control.adaptive or any(
        p.equations.system.events
        or p.equations.limits
        or p.entry.phase.after_event
        or p.equations.reduced
        for p in plan
    )
    status, begin, before = "complete", settings.start, None
    begins = xp.full((count, 1), settings.start)
    total = count * len(plan)
    with batch_bar(total, record.progress) as advance:
        try:
            runs.begin(plan, free)
            for phase in plan:
                carried_states(system, before, phase, runs, count, xp)
                before = phase
                start_phase(phase, runs, dtype, xp)
                if free:
                    runs.status = xp.where(runs.status == float(NEXT), float(RUNNING), runs.status)
                    runs.free(phase, begins, advance)
                    note_faults(phase.equations, runs)
                    begins = runs.t
                else:
                    again = runs.lockstep(phase, begin, advance)
                    if not runs.interrupted:
                        note_lockstep_faults(phase.equations, runs, again)
                    begin = begin + phase.duration
                if runs.interrupted:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            status = "interrupted"
            last = runs.interrupted and before is plan[-1]  # it knows which runs it has finished
            going = (runs.status == float(RUNNING)) | (runs.status == float(NEXT))
            runs.status = xp.where(going & (not last), float(INTERRUPTED), runs.status)
            warnings.warn("interrupted: the runs that are done are kept", RuntimeWarning, 4)
    return finished_batch(system, own, settings, runs, record.failures, status, free)


def _rows(xp: Any, x: Any, batch: tuple[int, ...], trailing: int) -> Any:
    """Return an array with one leading axis, the runs.

    Args:
        xp: NumPy or CuPy.
        x: `(..., *shape)`; what is in front broadcasts to the batch shape.
        batch: batch shape.
        trailing: number of axes of a run's value.
    """
    shape = tuple(x.shape[x.ndim - trailing :])
    whole = xp.broadcast_to(xp.asarray(x), (*batch, *shape))
    return whole.reshape((math.prod(batch), *shape))
