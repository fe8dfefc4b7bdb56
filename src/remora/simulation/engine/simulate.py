"""`rm.simulate`: a robot moved through time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from remora.algebra.namespace import Array, ArrayLike, is_symbolic
from remora.dynamics.forces.equations_of_motion import Passive
from remora.dynamics.formulations import FORMULATIONS, usual_formulation
from remora.dynamics.refusals import refuse_kinematic
from remora.errors import (
    InvalidValue,
    RemoraError,
    ShapeError,
    SimulationWarning,
    UnknownName,
)
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.simulation.engine.interrupts import interruptible, uninterrupted
from remora.simulation.engine.phase_loop import StepperSettings
from remora.simulation.engine.reduced_run import with_model
from remora.simulation.engine.run_loop import RunLoop, RunPlan
from remora.simulation.engine.run_model import RobotModel
from remora.simulation.engine.stiffness import (
    MOST_EXPLICIT,
    STABLE,
    stiffest,
    warn_of_unstable_steps,
)
from remora.simulation.inputs.arguments import (
    by_name,
    flag,
    is_several,
    number,
    path,
    seconds,
    stop_numbers,
    whole,
    word,
)
from remora.simulation.inputs.arguments import times as times_of
from remora.simulation.inputs.events import Event, listed_events
from remora.simulation.inputs.loads import LoadLike
from remora.simulation.inputs.phases import Phase, listed
from remora.simulation.integrators.table import INTEGRATORS
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.fingerprint import Acting, acting
from remora.simulation.storage.recorder import Recorder
from remora.simulation.storage.resume import stopped_run

#: The tightest tolerance that makes sense.
SMALLEST = 1e-15
#: The most samples of a run.
MOST_SAMPLES = 1e8
LIMITS = ("record", "stop", "ignore")


def simulate(
    robot: Robot,
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
) -> Recording:
    """Return the recording of a run: the robot moved from (q, v) by what acts on it.

    v̇ = forward dynamics, q̇ = v on the configuration manifold: each step is made in the tangent
    space of its start and carried back by exp, so that unit quaternions stay unit by themselves
    [MK99]. The right-hand side is machine code. Sums carry their rounding on [K65].

    Args:
        robot: the robot; its damping and dry friction count.
        q: configuration at the start, `(nq,)`.
        v: velocity at the start, `(nv,)`.
        duration: s; not with `phases`.
        torque: generalized forces of the drives, `(nv,)`, ordered as v (a free base: [torque,
            force]): numbers, a function (t, q, v), a `Profile`, a `Pulse`, a controller (see
            `ZeroOrderHold`); or a dictionary of these by joint. N m or N.
        base_wrench: [f, τ] on body 0, its frame, about its origin, `(6,)`, in the same ways.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(nb, 6)`, in the
            same ways, a dictionary by body.
        prescribed: by joint how it moves: a `Motion`, or a function of the time. The actuation it
            needs is recorded as its torque.
        locked: joints that are held where they are, in the same way; one name, or several.
        events: conditions to be watched.
        phases: instead of all these, several phases (`Phase`) one after another.
        integrator: `dop853` (8th order) or `dopri5` (5th), adaptive; `radau` (5th), adaptive and
            implicit, for stiff springs, dampers and stops; `rk4`, fixed steps; `variational`, 2nd
            order, fixed steps, keeps momentum to rounding and energy bounded for ever. Default:
            `dop853`; `radau`, with a `SimulationWarning`, where the robot's damping or friction
            would keep its steps too short.
        rtol: error allowed in a step, relative to the size of each coordinate and speed.
        atol: error allowed in a step, absolute.
        step: length of the fixed steps; for adaptive methods of the first, s.
        max_step: longest step, s.
        max_steps: steps of an adaptive method in a phase, after which the run is an error: so one
            whose controller drives it faster and faster does not go on for ever.
        sample: seconds between samples, or the times of all samples `(n,)`; None: every step.
        step_to_samples: whether steps end at every sample; else samples come from the dense output.
        breaks: times at which your functions are not smooth; no step passes them, s.
        limits: when a joint passes a limit of its range or of its speed `record` notes it, `stop`
            ends the run.
        stops: elastic stops at the joints' limits: stiffness, or (stiffness, damping), see
            `stop_forces`.
        saturate: whether the drives give no more than the joints' effort limits.
        slip_speed: of dry friction, see `passive_forces`.
        formulation: of forward dynamics; `articulated`, or `composite` for robots with mimic
            joints, by default.
        model: `full`, or `reduced` for a free-floating robot that nothing pushes: the base's six
            speeds are no states but follow from the momentum of the start [FPG11, eqs. 18, 19].
        start: time at the start, s.
        out: a directory to save the run in as it goes, for `rm.open_run`.
        resume: continue the run in `out` if it did not come to its end, from its last checkpoint on
            disk; what was recorded before stays as it is, and the rest is the same to the last bit
            as without the stop. A complete run is returned. One of another robot or with other
            settings is refused, with what differs: your functions, controllers and motions are
            compared by value (byte code, default arguments, closures, attributes, the globals
            they name). An empty or missing directory is where the run begins.
        assume_unchanged: with `resume`, take for unchanged what cannot be compared by value (open
            files, generators, locks, objects of C libraries) and accept a controller that
            remembers something: it resumes with the memory that it is given with, so the rest of
            the run is not the same to the last bit. Everything else is compared all the same.
        note: a text to be kept in the settings.
        progress: True for a bar, False for none; None: a bar on a terminal if it takes long; or a
            function that gets a `Status`.

    Raises:
        SimulationError: where the run cannot go on; it has the `time` and the `recording`.
    """
    if not isinstance(robot, Robot):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RemoraError(f"a robot is moved, not {robot!r}: rm.simulate(rm.load(...), q, v, ...)")
    if phases is None and duration is None:
        raise RemoraError("say how long: rm.simulate(robot, q, v, duration=10.0)")
    events = listed_events("events", events)
    start, breaks = number("start", start, "0.0, in s"), times_of("breaks", breaks)
    saturate, resume = flag("saturate", saturate), flag("resume", resume)
    step_to_samples, note = flag("step_to_samples", step_to_samples), word("note", note)
    out = path("out", out)
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
        raise RemoraError("with phases, say in each of them what acts and how long it takes")
    if not math.isfinite(start):
        raise InvalidValue(f"start must be a finite number of seconds, not {start}")
    parts = (given,) if phases is None else listed(phases)
    q, v = _checked_state(robot, q, v)
    equations = model_of(robot, formulation, slip_speed, stops, saturate)
    end = start + sum(p.duration for p in parts)
    if integrator is None:
        integrator = "dop853"
        if model == "full":  # the reduced model has explicit methods only
            integrator = _usual_integrator(robot, q, parts, end - start, slip_speed)
    equations = with_model(equations, model, integrator, parts, q, v)
    stepping = _stepping(integrator, rtol, atol, step, max_step, max_steps)
    if stepping.step is not None and math.isfinite(stepping.integrator.stable):
        longest = min(stepping.step, end - start)
        warn_of_unstable_steps(robot, q, longest, _always_held(robot, parts), stacklevel=2)
    if not isinstance(limits, str) or limits not in LIMITS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnknownName("treatment of limits", limits, LIMITS)
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
    watched = None if limits == "ignore" else limits
    everywhere = () if phases is None else events
    plan = RunPlan(equations, stepping, parts, everywhere, watched, times, step_to_samples, breaks)

    def acts() -> Acting:
        return acting(parts, everywhere, single=phases is None)

    left = None
    if resume:
        if out is None:
            raise RemoraError("to resume a run, name the directory it is in: out='...'")
        left = stopped_run(out, robot, settings, acts(), assume_unchanged)
        if left is not None and left.run.status == "complete":
            return left.run
    elif assume_unchanged:
        raise RemoraError("assume_unchanged is for runs that are resumed: say resume=True, too")
    with uninterrupted():
        recorder = Recorder(robot, settings, out, left=left, acts=None if out is None else acts)
    with interruptible():
        return RunLoop(plan, recorder, start, q, v, progress).go()


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


def model_of(
    robot: Robot,
    formulation: str | None,
    slip_speed: float,
    stops: Any,
    saturate: bool,
) -> RobotModel:
    """Return what stays the same throughout a run, checked."""
    able = [name for name, row in FORMULATIONS.items() if row.hybrid is not None]
    refuse_kinematic(robot, "a simulation")
    formulation = usual_formulation(robot) if formulation is None else formulation
    if formulation not in able:
        raise UnknownName("formulation of forward dynamics", formulation, able)
    stiffness, damping = stop_numbers(stops)
    slip_speed = number("slip_speed", slip_speed, "1e-3")
    if not (math.isfinite(slip_speed) and slip_speed >= 0.0):
        raise InvalidValue(f"slip_speed must be finite and not negative, not {slip_speed}")
    return RobotModel(robot, formulation, Passive(slip_speed, stiffness, damping), saturate)


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
        stacklevel=3,
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
        raise RemoraError(f"{integrator!r} makes steps of one length: say step=0.01, in s")
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
