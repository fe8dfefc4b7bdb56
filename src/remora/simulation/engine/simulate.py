"""`rm.simulate`: simulation of one run of a robot."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
from remora.model.arguments import by_name, flag, is_several, natural, number, whole, word
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.simulation.engine.interrupts import interruptible, uninterrupted
from remora.simulation.engine.phase_dynamics import RunSettings
from remora.simulation.engine.reduced_phase_dynamics import with_model
from remora.simulation.engine.rounding import check_rounding
from remora.simulation.engine.run_loop import RunLoop, RunPlan
from remora.simulation.engine.step_faults import StepperSettings
from remora.simulation.engine.stiffness import (
    MOST_EXPLICIT,
    STABLE,
    stiffest,
    warn_of_unstable_steps,
)
from remora.simulation.inputs.arguments import path, seconds, stop_numbers
from remora.simulation.inputs.arguments import times as times_of
from remora.simulation.inputs.events import Event, listed_events
from remora.simulation.inputs.loads import LoadLike, described
from remora.simulation.inputs.phases import Phase, known_events, listed
from remora.simulation.inputs.start_limits import warn_of_starts_beyond_limits
from remora.simulation.integrators.table import INTEGRATORS
from remora.simulation.program.phase_entry import phase_robots
from remora.simulation.recording.quantities import signal_columns
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.fingerprint import Acting, acting, acting_rows, fingerprint
from remora.simulation.storage.recorder import Recorder
from remora.simulation.storage.resume import StoppedRun, stopped_run

#: Tightest useful tolerance.
SMALLEST = 1e-15
#: Maximum number of samples of a run.
MOST_SAMPLES = 1e8
LIMITS = ("record", "stop", "ignore")


def simulate(
    robot: Robot | System,
    q: ArrayLike,
    v: ArrayLike,
    duration: float | None = None,
    *,
    torque: LoadLike = None,
    base_wrench: LoadLike = None,
    wrenches: LoadLike = None,
    prescribed: Mapping[str, Any] | None = None,
    locked: str | Sequence[str] = (),
    events: Sequence[Event] = (),
    phases: Sequence[Phase] | None = None,
    integrator: str | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    step: float | None = None,
    max_step: float = math.inf,
    max_steps: int = 1_000_000,
    sample: float | ArrayLike | None = None,
    step_to_samples: bool = False,
    breaks: Sequence[float] = (),
    limits: Literal["record", "stop", "ignore"] = "record",
    stops: float | tuple[float, float] | None = None,
    saturate: bool = False,
    slip_speed: float = 1e-3,
    formulation: str | None = None,
    model: Literal["full", "reduced"] = "full",
    start: float = 0.0,
    out: str | Path | None = None,
    resume: bool = False,
    assume_unchanged: bool = False,
    note: str = "",
    progress: Any = None,
    seed: int = 0,
    run: int = 0,
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
        duration: s; not with `phases`.
        torque: generalized forces of the drives, `(nv,)`, ordered as v (a free base: [torque,
            force]): numbers, a function (t, q, v), a `Profile`, a `Pulse`, a controller (see
            `ZeroOrderHold`); or a dictionary of these by joint. N m or N.
        base_wrench: [f, τ] on body 0, in its frame, about its origin, `(6,)`, in the same forms.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(nb, 6)`, in the
            same forms, or a dictionary by body.
        prescribed: motion by joint: a `Motion`, or a function of time. The actuation it requires is
            recorded as the joint's torque.
        locked: joints that are held at their initial position; one name, or several. Their
            actuation is recorded too.
        events: event conditions.
        phases: instead of the arguments above, several phases (`Phase`) in sequence.
        integrator: `dop853` (8th order) or `dopri5` (5th), adaptive; `radau` (5th), adaptive and
            implicit, for stiff springs, dampers and stops; `rk4`, fixed steps; `variational`, 2nd
            order, fixed steps, conserves momentum to rounding and bounds the energy error. Default:
            `dop853`; `radau`, with a `SimulationWarning`, if the robot's damping or friction
            would keep its steps too short.
        rtol: relative error tolerance of a step, for each coordinate and speed.
        atol: absolute error tolerance of a step.
        step: fixed step size; for adaptive methods the initial one (by default 1 ms), s.
        max_step: maximum step size, s.
        max_steps: maximum number of steps of an adaptive method in a phase, beyond which the run
            fails: this ends runs that a controller destabilizes.
        sample: seconds between samples, or the times of all samples `(n,)`; None: every step.
        step_to_samples: whether steps end at every sample; otherwise dense output is used.
        breaks: times at which your functions are not smooth; no step crosses them, s.
        limits: if a joint violates its position or speed limits, `record` an event or `stop` the
            run; a joint that starts beyond its range gives a `SimulationWarning`. `ignore`: none
            of these.
        stops: elastic stops at the joint limits: stiffness, or (stiffness, damping), see
            `stop_forces`.
        saturate: whether drives are limited to the joints' effort limits.
        slip_speed: regularization speed of dry friction, see `friction_forces`.
        formulation: forward-dynamics formulation; `articulated` (ABA), or `composite` (CRBA) for
            robots with mimic joints, by default.
        model: `full`, or `reduced` for a free-floating robot without external forces: the six base
            speeds are not states but follow from the initial momentum [FPG11, eqs. 18, 19].
        start: initial time, s.
        out: directory in which the run is saved as it progresses, for `rm.open_run`.
        resume: continue an incomplete run in `out` from its last checkpoint on
            disk; recorded samples are not changed, and the rest is bitwise identical to an
            uninterrupted run. A complete run is returned. A run of another robot or with other
            settings is refused with a list of differences: your functions, controllers and motions
            are compared by value (byte code, default arguments, closures, attributes, the globals
            they name). In an empty or missing directory the run starts from the beginning.
        assume_unchanged: with `resume`, assume that objects that cannot be compared by value (open
            files, generators, locks, objects of C libraries) are unchanged, and accept a stateful
            controller: it resumes with the state in which it is passed, so the rest of the run is
            not bitwise identical. Everything else is still compared.
        note: text stored with the settings; in a report its first line is the title, what follows
            the description. A resumed run keeps the note it was started with.
        progress: True for a bar, False for none; None: a bar on a terminal if the run takes long;
            or a function that receives a `Status`.
        seed: of the noise of components, from 0 to 2⁶⁴ - 1.
        run: index of the run in a study: a run of a batch is repeated alone with its seed and
            index.

    Raises:
        SimulationError: if the run cannot continue; it holds the `time` and the `recording`.
    """
    made = prepare_run(
        robot, q, v, duration, torque=torque, base_wrench=base_wrench, wrenches=wrenches,
        prescribed=prescribed, locked=locked, events=events, phases=phases,
        integrator=integrator, rtol=rtol, atol=atol, step=step, max_step=max_step,
        max_steps=max_steps, sample=sample, step_to_samples=step_to_samples, breaks=breaks,
        limits=limits, stops=stops, saturate=saturate, slip_speed=slip_speed,
        formulation=formulation, model=model, start=start, note=note, seed=seed, run=run,
    )  # fmt: skip
    resume, out = flag("resume", resume), path("out", out)
    left, settings = None, made.settings
    if resume:
        if out is None:
            raise RemoraError("to resume a run, name the directory it is in: out='...'")
        left = stopped_run(out, made.plan.model.robot, settings, made.acts(), assume_unchanged)
        if left is not None:
            settings["note"] = left.run.settings["note"]
        if left is not None and left.run.status == "complete":
            return left.run
    elif assume_unchanged:
        raise RemoraError("assume_unchanged needs resume=True")
    with uninterrupted():
        recorder = made.recorder(out, left)
    with interruptible():
        return RunLoop(made.plan, recorder, made.start, made.q, made.v, progress).go()


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
            robot, self.settings, out, left=left, acts=None if out is None else self.acts,
            signals={} if system is None else signal_columns(system.signals),
        )  # fmt: skip


def prepare_run(
    robot: Robot | System,
    q: ArrayLike,
    v: ArrayLike,
    duration: float | None = None,
    *,
    torque: LoadLike = None,
    base_wrench: LoadLike = None,
    wrenches: LoadLike = None,
    prescribed: Mapping[str, Any] | None = None,
    locked: str | Sequence[str] = (),
    events: Sequence[Event] = (),
    phases: Sequence[Phase] | None = None,
    integrator: str | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    step: float | None = None,
    max_step: float = math.inf,
    max_steps: int = 1_000_000,
    sample: float | ArrayLike | None = None,
    step_to_samples: bool = False,
    breaks: Sequence[float] = (),
    limits: Literal["record", "stop", "ignore"] = "record",
    stops: float | tuple[float, float] | None = None,
    saturate: bool = False,
    slip_speed: float = 1e-3,
    formulation: str | None = None,
    model: Literal["full", "reduced"] = "full",
    start: float = 0.0,
    note: str = "",
    seed: int = 0,
    run: int = 0,
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
    seed, run = natural("seed", seed, SEED_BITS), natural("run", run, RUN_BITS)
    if phases is None and duration is None:
        raise RemoraError("duration is missing: rm.simulate(robot, q, v, duration=10.0)")
    events = listed_events("events", events)
    start, breaks = number("start", start, "0.0, in s"), times_of("breaks", breaks)
    saturate = flag("saturate", saturate)
    step_to_samples, note = flag("step_to_samples", step_to_samples), word("note", note)
    given = Phase(
        duration=0.0 if duration is None else seconds("duration", duration),
        torque=torque,
        base_wrench=base_wrench,
        wrenches=wrenches,
        prescribed=by_name("prescribed", prescribed),
        locked=locked,
        events=() if phases is not None else events,
    )
    if phases is not None and given.described() != Phase(0.0).described():
        raise RemoraError(
            "with phases, pass loads, prescribed and locked joints and the duration in each phase"
        )
    if not math.isfinite(start):
        raise InvalidValue(f"start must be a finite number of seconds, not {start}")
    parts = (given,) if phases is None else listed(phases)
    q, v = _checked_state(robot, q, v)
    equations = model_of(robot, formulation, slip_speed, stops, saturate)._replace(system=system)
    constrained = [r for r in phase_robots(robot, parts) if active_constraints(r)]
    end = start + sum(p.duration for p in parts)
    if integrator is None:
        integrator = "dop853"
        if model == "full":  # the reduced model has explicit methods only
            integrator = _usual_integrator(robot, q, parts, end - start, slip_speed)
    if constrained:
        _refuse_constrained(constrained[0], model)
    equations = with_model(equations, model, integrator, parts, q, v)
    stepping = _stepping(integrator, rtol, atol, step, max_step, max_steps)
    if integrator in ("dop853", "dopri5") and not constrained:
        check_rounding(robot, q, v, rtol, atol, end - start, max_steps, 3)
    if stepping.step is not None and math.isfinite(stepping.integrator.stable):
        longest = min(stepping.step, end - start)
        warn_of_unstable_steps(robot, q, longest, _always_held(robot, parts), stacklevel=3)
    if not isinstance(limits, str) or limits not in LIMITS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnknownName("treatment of limits", limits, LIMITS)
    if limits == "record":  # `stop` refuses such a start
        warn_of_starts_beyond_limits(robot, q, 3)
    times = sample_times(sample, start, end)
    settings = {
        "q": q.tolist(), "v": v.tolist(), "start": start, "duration": end - start,
        "integrator": integrator, "rtol": rtol, "atol": atol, "step": step,
        "max_step": None if math.isinf(max_step) else max_step,
        "sample": None if sample is None else np.asarray(sample).tolist(),
        "step_to_samples": step_to_samples, "breaks": list(breaks), "limits": limits,
        "stops": [equations.passive.stiffness, equations.passive.damping], "saturate": saturate,
        "slip_speed": slip_speed, "formulation": equations.formulation,
        "events": [e.described() for e in events],
        "phases": [p.described() for p in parts], "note": note,
    }  # fmt: skip
    if model != "full":
        settings["model"] = model
    if system is not None:
        if integrator == "variational" and system.nx:
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
    everywhere = () if phases is None else events
    landings = breaks if system is None else (*breaks, *system.breaks)
    plan = RunPlan(equations, stepping, parts, everywhere, watched, times, step_to_samples,
                   landings, seed, run)  # fmt: skip

    def acts() -> Acting:
        given = acting(parts, everywhere, single=phases is None)
        if system is not None:
            given["system"] = fingerprint("system", system.identity_parts()[1:])
        return given | acting_rows(robot, equations.formulation)

    return PreparedRun(plan, settings, start, q, v, acts)


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


def model_of(
    robot: Robot,
    formulation: str | None,
    slip_speed: float,
    stops: Any,
    saturate: bool,
) -> RunSettings:
    """Return the checked constant settings of a run."""
    able = [name for name, row in FORMULATIONS.items() if row.hybrid is not None]
    refuse_kinematic(robot, "a simulation")
    formulation = usual_formulation(robot) if formulation is None else formulation
    if formulation not in able:
        raise UnknownName("formulation of forward dynamics", formulation, able)
    stiffness, damping = stop_numbers(stops)
    slip_speed = number("slip_speed", slip_speed, "1e-3")
    if not (math.isfinite(slip_speed) and slip_speed >= 0.0):
        raise InvalidValue(f"slip_speed must be finite and not negative, not {slip_speed}")
    return RunSettings(
        robot, formulation, PassiveParameters(slip_speed, stiffness, damping), saturate
    )


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


def _stepping(
    integrator: str,
    rtol: float,
    atol: float,
    step: float | None,
    max_step: float,
    max_steps: int,
) -> StepperSettings:
    if not isinstance(integrator, str) or integrator not in INTEGRATORS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnknownName("integrator", integrator, INTEGRATORS)
    row = INTEGRATORS[integrator]
    rtol, atol = number("rtol", rtol, "1e-10"), number("atol", atol, "1e-12")
    step = None if step is None else number("step", step, "0.01, in s")
    max_step, max_steps = number("max_step", max_step, "0.1, in s"), whole("max_steps", max_steps)
    for name, x in (("rtol", rtol), ("atol", atol)):
        if not (math.isfinite(x) and x >= 0.0):
            raise InvalidValue(f"{name} must be finite and not negative, not {x}")
    if max(rtol, atol) < SMALLEST:
        raise InvalidValue(f"rtol or atol must be at least {SMALLEST:g}: below is only rounding")
    if atol == 0.0:
        raise InvalidValue("atol must be positive: coordinates and speeds pass zero")
    if step is None and row.error_order == 0:
        raise RemoraError(f"{integrator!r} has fixed steps: pass step=0.01, in s")
    for name, x in (("step", step), ("max_step", max_step)):
        if x is not None and not x > 0.0:
            raise InvalidValue(f"{name} must be positive, not {x} s")
    if not max_steps > 0:
        raise InvalidValue(f"max_steps must be positive, not {max_steps}")
    return StepperSettings(row, rtol, atol, step, max_step, max_steps)


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
