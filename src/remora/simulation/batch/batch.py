"""`rm.simulate_batch`: thousands of fixed-step runs at once, with the whole loop compiled."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_array
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_ptx import CudaProgram
from remora.codegen.ir.arguments import DTYPES
from remora.dynamics.forces.stops import stop_overlaps
from remora.dynamics.kernels.cache_keys import value_key
from remora.dynamics.kernels.compiled import TARGETS, compile_function
from remora.dynamics.kernels.parameters import parameter
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.errors import InvalidValue, RemoraError, SimulationError, UnknownName
from remora.model.robot import Robot
from remora.model.takes_robot import check_robot
from remora.simulation.batch.batch_inputs import BatchInputs, batch_inputs
from remora.simulation.batch.batch_loop import COUNT, START, STEP, Forces, batch_program
from remora.simulation.batch.batch_loop_with_stops import batch_program_with_stops
from remora.simulation.engine.interrupts import interruptible
from remora.simulation.engine.phase_dynamics import RunSettings
from remora.simulation.engine.progress import batch_bar
from remora.simulation.engine.simulate import model_of, sample_times
from remora.simulation.engine.stiffness import warn_of_unstable_steps
from remora.simulation.inputs.arguments import by_name, number, seconds, whole
from remora.simulation.inputs.arguments import times as times_of
from remora.simulation.inputs.loads import LoadLike
from remora.simulation.integrators.tableaus import RK4

#: Runs per thread between two updates of the progress bar.
BLOCK = 256
#: Offset from the ends of a step where loads are discontinuous there, in units in the last place.
NUDGE = 16.0
FAILURES = ("raise", "keep")
#: Invalid robot parameters that an error message lists.
MOST_FAULTS = 5
#: Maximum number of steps of a run.
MOST_STEPS = 1e12
#: Maximum number of cached compiled programs.
MOST_KEPT = 32


@dataclass(frozen=True, eq=False)
class Batch:
    """Many runs of one robot.

    Attributes:
        robot: the robot.
        t: times of the samples, `(n,)`, s.
        q: configurations, `(..., n, nq)`, the runs' batch shape in front.
        v: velocities, `(..., n, nv)`.
        parameters: robot parameters that differ from run to run, by name.
        ok: which runs finished with finite numbers and physically possible robot parameters,
            `(...)`.
        status: `complete` or `interrupted`.
    """

    robot: Robot
    t: Array
    q: Any
    v: Any
    parameters: dict[str, Array]
    ok: Array
    status: str

    def __len__(self) -> int:
        """Return the number of runs."""
        return self.ok.size

    def evaluate(self, function: Callable[..., Any], **fixed: Any) -> Any:
        """Evaluate a library function, or your own, at all samples: `(..., n, *shape)`.

        `batch.evaluate(rm.momentum)`, `batch.evaluate(rm.frame_pose, target="tool")`; each run
        with its own robot parameters. For batches on the CPU.

        Args:
            function: f(robot, q) or f(robot, q, v), with more arguments in `fixed`.
            **fixed: values of the function's other parameters.
        """
        asked = inspect.signature(function).parameters
        needed = [name for name in ("q", "v") if name in asked]
        kernel = compile_function(
            function, self.robot, arguments=needed, fixed=fixed, parameters=tuple(self.parameters)
        )
        states = {"q": self.q, "v": self.v}
        own = [
            np.expand_dims(value, axis=value.ndim - _trailing(self.robot, name))
            if value.ndim > _trailing(self.robot, name) else value
            for name, value in self.parameters.items()
        ]  # fmt: skip
        return kernel(*(states[name] for name in needed), *own, threads=0)

    def __repr__(self) -> str:
        """Return a summary."""
        failed = int(np.size(self.ok) - np.count_nonzero(self.ok))
        shown = f", {failed} failed" if failed else ""
        return (
            f"Batch of {self.robot.name!r}: {len(self)} runs, {self.t.size} samples to "
            f"{self.t[-1]:g} s, {self.status}{shown}"
        )


def simulate_batch(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    *,
    step: float,
    torque: LoadLike = None,
    wrenches: LoadLike = None,
    inputs: Mapping[str, ArrayLike] | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    sample: float | ArrayLike | None = None,
    breaks: Sequence[float] = (),
    stops: float | tuple[float, float] | None = None,
    slip_speed: float = 1e-3,
    formulation: str | None = None,
    start: float = 0.0,
    dtype: str = "float64",
    target: str = "cpu",
    threads: int = 0,
    failures: str = "raise",
    progress: Any = None,
) -> Batch:
    """Simulate many runs of a robot: RK4 with a fixed step size, entirely in machine code.

    Equivalent to `simulate` with `integrator="rk4"`: a Munthe-Kaas method on the configuration
    manifold [MK99] with compensated (Kahan) summation [K65]. A run is bitwise identical in any
    batch. Loads are compiled too: functions are traced, so they must be written on arrays (NumPy's
    functions, `rm.algebra`) without `if` on values (use `rm.algebra.array_ops.select`).

    Args:
        robot: the robot; its damping, dry friction and springs are included.
        q: initial configurations, `(..., nq)`.
        v: initial velocities, `(..., nv)`.
        duration: s.
        step: maximum step size, s; steps are shortened to end at every sample.
        torque: generalized forces of the drives: numbers `(nv,)`, or `(..., nv)` for each run; a
            function (t, q, v, and `inputs` by name) -> `(nv,)`; a `Profile` or `Pulse`; or a
            dictionary of these by joint.
        wrenches: external, [f, τ] on each body in its own frame about its origin: numbers
            `(nb, 6)`, or `(..., nb, 6)` for each run; or a function -> `(nb, 6)`.
        inputs: arrays that differ from run to run, by the names of the functions' arguments; batch
            shape first. They are rounded to `dtype`.
        parameters: robot parameters that differ from run to run: `"mass"`, `"arm.mass"`,
            `"elbow.damping"`, ..., see `rm.compile`.
        sample: seconds between samples, or the times of all samples `(n,)`; None: start and end.
        breaks: times at which loads are not smooth: steps end there, s.
        stops: elastic stops at the joint limits, see `simulate`.
        slip_speed: regularization speed of dry friction, see `friction_forces`.
        formulation: forward-dynamics formulation, see `simulate`.
        start: initial time, s.
        dtype: `float64` or `float32`, for states and equations; times, and what your functions
            compute from them, are `float64` in both.
        target: "cpu", or "cuda" for arrays in GPU memory.
        threads: CPU threads; 0: one per core.
        failures: for a run that does not stay finite: `raise` a SimulationError that holds the
            batch, or `keep` it with `ok` False. For a run with physically impossible robot
            parameters (a mass that is not positive, a placement that is not a unit dual
            quaternion): `raise`, or `keep` it with `ok` False and NaN for its states.
        progress: True for a progress bar, False for none; None: a bar on a terminal.

    Raises:
        SimulationError: if a run does not stay finite.
        InvalidValue: if robot parameters are physically impossible.
    """
    check_robot("simulate_batch", robot, q, v)
    for name, value, known in (
        ("target", target, TARGETS), ("failures", failures, FAILURES), ("dtype", dtype, DTYPES)
    ):  # fmt: skip
        if not isinstance(value, str) or value not in known:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnknownName(name, value, known)
    duration, step = seconds("duration", duration), number("step", step, "0.01, in s")
    if not (math.isfinite(step) and step > 0.0):
        raise InvalidValue(f"step must be a positive number of seconds, not {step}")
    start, breaks = number("start", start, "0.0, in s"), times_of("breaks", breaks)
    if not math.isfinite(start):
        raise InvalidValue(f"start must be a finite number of seconds, not {start}")
    threads = whole("threads", threads)
    if threads < 0:
        raise InvalidValue(f"threads must be a number of threads, or 0, not {threads}")
    if not fits_straight_line(robot):
        raise RemoraError(
            f"a batch is compiled as a straight line, for at most {LARGEST_STRAIGHT_LINE} bodies; "
            f"{robot.name!r} has {len(robot.bodies)}: use rm.simulate"
        )
    model = model_of(robot, formulation, slip_speed, stops, saturate=False)
    own = batch_inputs(
        robot, q, v, torque, wrenches, by_name("inputs", inputs), by_name("parameters", parameters),
        None if target == "cuda" else dtype,
    )  # fmt: skip
    if own.faults and failures == "raise":
        shown = "; ".join(map(str, own.faults[:MOST_FAULTS]))
        more = len(own.faults) - MOST_FAULTS
        raise InvalidValue(
            f"impossible numbers of {robot.name!r}: {shown}"
            + (f"; and {more} more" if more > 0 else "")
            + " (failures='keep' does the other runs)"
        )
    if target == "cpu" and not own.parameters and math.prod(own.batch):
        first = np.asarray(own.arrays[0], float).reshape(-1, robot.nq)[0]
        warn_of_unstable_steps(robot, first, min(step, duration), (), stacklevel=2)
    end = start + duration
    given_times = None if sample is None else sample_times(sample, start, end)
    times = np.array([start]) if given_times is None else given_times
    if times[-1] < end:
        times = np.append(times, end)
    if duration / step > MOST_STEPS:
        raise InvalidValue(f"{duration:g} s in steps of {step:g} s are more than {MOST_STEPS:g}")
    breaks = (*breaks, *own.breaks)
    table = _timetable(times, step, breaks)
    nudge = NUDGE * float(np.finfo(float).eps) if breaks else 0.0  # times are always float64
    kernel = _kernel(robot, own, model, nudge, dtype, target)
    if isinstance(kernel, CudaProgram):
        results, status = kernel(*own.arrays, tables=table.passed), "complete"
    else:
        with interruptible():
            results, status = _in_blocks(kernel, own, table, threads, progress)
    return _finished(robot, times, results, own, table, failures, status)


class _Timetable(NamedTuple):
    """Intervals of a batch: their starts, steps, and which of their samples are recorded."""

    starts: Array
    steps: Array
    counts: Array
    kept: Array

    @property
    def passed(self) -> dict[str, Array]:
        return {START: self.starts, STEP: self.steps, COUNT: self.counts}


def _timetable(times: Array, step: float, breaks: Sequence[float]) -> _Timetable:
    """Return intervals that end at every sample and every break."""
    inner = [float(t) for t in breaks if times[0] < t < times[-1]]
    knots = np.unique(np.concatenate([times, inner]))
    lengths = np.diff(knots)
    counts = np.maximum(np.ceil(lengths / step - 1e-6), 1.0)
    # the first interval has no steps: its sample is the initial state
    starts = np.concatenate([knots[:1], knots[:-1]])
    steps = np.concatenate([[step], lengths / counts])
    whole = np.concatenate([[0], counts.astype(np.int64)])
    return _Timetable(starts, steps, whole, np.isin(knots, times))


def _kernel(
    robot: Robot, own: BatchInputs, model: RunSettings, nudge: float, dtype: str, target: str
) -> ProgramKernel | CudaProgram:
    """Return the compiled program; cached unless it contains a user's function."""
    forces = Forces(own.torque, own.wrenches, own.inputs)
    name, parameters = f"simulate_{robot.name}", tuple(own.parameters)

    def made() -> Program:
        passive, formulation = model.passive, model.formulation
        if passive.stiffness > 0.0 and stop_overlaps(robot, np.zeros(robot.nq)).size:
            return batch_program_with_stops(
                robot, forces, parameters, formulation, passive, nudge, dtype
            )
        return batch_program(robot, RK4, forces, parameters, formulation, passive, nudge, dtype)

    settings = (own.constants, parameters, model.formulation, model.passive, nudge, robot.name)
    inputs = [(s.name, s.shape) for s in own.inputs]
    key = None if own.constants is None else value_key(batch_program, robot, RK4, inputs, *settings)
    if key is None:
        return (
            CudaProgram(made(), name, dtype)
            if target == "cuda"
            else ProgramKernel(made(), name, dtype)
        )
    if (key, dtype, target) not in _kept:
        while len(_kept) >= MOST_KEPT:
            _kept.pop(next(iter(_kept)))
        if target == "cuda":
            _kept[key, dtype, target] = CudaProgram(made(), name, dtype)
        else:
            _kept[key, dtype, target] = ProgramKernel(made, name, dtype, key)
    return _kept[key, dtype, target]


_kept: dict[tuple[str, str, str], ProgramKernel | CudaProgram] = {}

# Running ------------------------------------------------------------------------------------------


def _in_blocks(
    kernel: ProgramKernel, own: BatchInputs, table: _Timetable, threads: int, progress: Any
) -> tuple[tuple[Array, Array], str]:
    """Run in blocks, so that progress is shown and finished runs survive an interrupt."""
    runs, kept = math.prod(own.batch), np.flatnonzero(table.kept)
    sizes = [s.shape for s in kernel.outputs]
    try:
        q, v = (np.full((runs, kept.size, *size), np.nan, kernel.dtype) for size in sizes)
    except MemoryError:
        numbers = runs * kept.size * sum(math.prod(s) for s in sizes)
        raise RemoraError(
            f"the samples of {runs} runs need {numbers * 8 / 1e9:.1f} GB: take fewer samples"
        ) from None
    rows = [
        np.broadcast_to(a, (*own.batch, *s.shape)).reshape((runs, *s.shape))
        for a, s in zip(own.arrays, kernel.inputs, strict=True)
    ]
    block = BLOCK * (threads or os.cpu_count() or 1)
    status = "complete"
    with batch_bar(runs, progress) as advance:
        try:
            for first in range(0, runs, block):
                part = slice(first, min(first + block, runs))
                found = kernel(*(a[part] for a in rows), tables=table.passed, threads=threads)
                for whole, some in zip((q, v), found, strict=True):
                    whole[part] = some[:, kept]
                advance(part.stop - part.start)
        except KeyboardInterrupt:
            status = "interrupted"
            warnings.warn("interrupted: the runs that are done are kept", RuntimeWarning, 4)
    shape = (*own.batch, kept.size)
    return (q.reshape((*shape, *sizes[0])), v.reshape((*shape, *sizes[1]))), status


def _finished(
    robot: Robot,
    times: Array,
    results: Any,
    own: BatchInputs,
    table: _Timetable,
    failures: str,
    status: str,
) -> Batch:
    """Return the batch, or raise if a run failed."""
    q: Any
    v: Any
    q, v = results
    on_host = is_array(q)
    if not on_host:
        kept = np.flatnonzero(table.kept)
        if kept.size < table.kept.size:
            q, v = q[..., kept, :], v[..., kept, :]
    impossible = np.zeros(own.batch, bool)
    for fault in own.faults:
        impossible |= np.broadcast_to(fault.runs, own.batch)
    if own.faults:  # results of the equations with such numbers are meaningless
        q[impossible], v[impossible] = math.nan, math.nan
    finite: Any = (abs(q).sum(axis=-1) + abs(v).sum(axis=-1)) < math.inf
    ok = finite.all(axis=-1)
    if not on_host:
        ok, finite = ok.get(), finite.get()
    batch = Batch(robot, times, q, v, own.parameters, np.asarray(ok), status)
    failed = int(np.size(ok) - np.count_nonzero(ok))
    if failed and failures == "raise" and status == "complete":
        bad = np.argwhere(~finite)
        first = bad[np.argmin(bad[:, -1])]
        name = ", ".join(map(str, first[:-1].tolist()))
        raise SimulationError(
            f"{failed} of {np.size(ok)} runs do not stay finite, the first of them run [{name}]: "
            "its step is too long, or what acts drives it to infinity (failures='keep' returns the "
            "others)",
            float(times[first[-1]]),
            batch,
        )
    return batch


def _trailing(robot: Robot, name: str) -> int:
    return len(parameter(robot, name)[0].shape)
