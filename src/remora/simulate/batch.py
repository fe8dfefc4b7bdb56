"""`rm.simulate_batch`: thousands of runs at once, the whole loop inside the machine code."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.namespace import Array, ArrayLike, is_array
from remora.compile.graph import Signature
from remora.compile.march_cpu import MarchKernel
from remora.compile.march_ptx import CudaMarch
from remora.dynamics.compiled import TARGETS, compile_function
from remora.dynamics.parameters import parameter
from remora.errors import RemoraError, ShapeError, SimulationError, UnknownName, ValueRefused
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.simulate.marching import Forces, Law, gathered, law, march
from remora.simulate.progress import batch_bar
from remora.simulate.run import model_of, sample_times
from remora.simulate.tableaus import RK4

#: Runs that are computed between two looks at the progress, for each thread.
BLOCK = 256
#: By which fraction of a step its ends are seen from within, where loads jump at them.
NUDGE = 1e-9
FAILURES = ("raise", "keep")


@dataclass(frozen=True, eq=False)
class Batch:
    """Many runs of one robot.

    Attributes:
        robot: the robot.
        t: times of the samples, `(n,)`, s.
        q: configurations, `(..., n, nq)`, the runs' batch shape in front.
        v: velocities, `(..., n, nv)`.
        parameters: numbers of the robot that differ from run to run, by name.
        ok: which runs came to their end with finite numbers, `(...)`.
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
        """Return a function of the library, or your own, of all samples: `(..., n, *shape)`.

        `batch.evaluate(rm.momentum)`, `batch.evaluate(rm.frame_pose, target="tool")`; each run
        with its own numbers of the robot. For batches on the processor.

        Args:
            function: f(robot, q) or f(robot, q, v), with more arguments in `fixed`.
            **fixed: values of the function's other parameters.
        """
        needed = [
            name for name in ("q", "v")
            if name in function.__code__.co_varnames[: function.__code__.co_argcount]
        ]  # fmt: skip
        kernel = compile_function(
            function, self.robot, arguments=needed, fixed=fixed, parameters=tuple(self.parameters)
        )
        states = {"q": self.q, "v": self.v}
        own = [
            np.expand_dims(value, axis=self.ok.ndim) if value.ndim > _trailing(self.robot, name)
            else value
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
    torque: Any = None,
    wrenches: Any = None,
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
    """Return many runs of a robot: RK4 with steps of one length, all inside machine code.

    As `simulate` with `integrator="rk4"`: on the manifold [MK99], with sums that carry their
    rounding [K65]. A run has the same bits whoever shares the batch. What acts is compiled too:
    functions are traced, so they must be written on arrays (NumPy's functions, `rm.algebra`) and
    cannot ask a value in an `if` (use `rm.algebra.namespace.select`).

    Args:
        robot: the robot; its damping and dry friction count.
        q: configurations at the start, `(..., nq)`.
        v: velocities at the start, `(..., nv)`.
        duration: s.
        step: longest step, s; steps are made to end at every sample.
        torque: generalized forces of the drives: numbers `(nv,)`, or `(..., nv)` for each run; a
            function (t, q, v, and `inputs` by name) -> `(nv,)`; or a dictionary of numbers and such
            functions by joint.
        wrenches: external, [f, τ] on each body in its own frame about its origin: numbers
            `(nb, 6)`, or `(..., nb, 6)` for each run; or a function -> `(nb, 6)`.
        inputs: arrays that differ from run to run, by the names under which the functions get them;
            the runs' batch shape in front.
        parameters: numbers of the robot that differ from run to run: `"mass"`, `"arm.mass"`,
            `"elbow.damping"`, ..., see `rm.compile`.
        sample: seconds between samples, or the times of all samples `(n,)`; None: start and end.
        breaks: times at which what acts is not smooth: steps end there, s.
        stops: elastic stops at the joints' limits, see `simulate`.
        slip_speed: of dry friction, see `passive_forces`.
        formulation: of forward dynamics, see `simulate`.
        start: time at the start, s.
        dtype: `float64` or `float32`.
        target: "cpu", or "cuda" for arrays in the memory of a GPU.
        threads: of the processor; 0: one per core.
        failures: what happens where a run does not stay finite: `raise` a SimulationError that has
            the batch, or `keep` it with `ok` False.
        progress: True for a bar, False for none; None: a bar on a terminal.

    Raises:
        SimulationError: if a run does not stay finite.
    """
    for name, value, known in (("target", target, TARGETS), ("failures", failures, FAILURES)):
        if value not in known:
            raise UnknownName(name, value, known)
    if not (math.isfinite(step) and step > 0.0):
        raise ValueRefused(f"step must be a positive number of seconds, not {step}")
    if not (math.isfinite(duration) and duration >= 0.0):
        raise ValueRefused(f"duration must be a number of seconds, not {duration}")
    model = model_of(robot, formulation, slip_speed, stops, saturate=False)
    given = _Given(robot, q, v, torque, wrenches, inputs or {}, parameters or {}, target)
    end = start + duration
    times = np.array([start, end]) if sample is None else sample_times(sample, start, end)
    assert times is not None
    if times[-1] < end:
        times = np.append(times, end)
    table = _timetable(times, step, breaks)
    forces = Forces(given.torque, given.wrenches, given.signatures)
    made = march(
        robot, RK4, forces, given.parameters, model.formulation, model.passive,
        NUDGE if breaks else 0.0,
    )  # fmt: skip
    name = f"simulate_{robot.name}"
    if target == "cuda":
        results = CudaMarch(made, name, dtype)(*given.arrays, **table.passed)
        status = "complete"
    else:
        kernel = MarchKernel(made, name, dtype)
        results, status = _in_blocks(kernel, given, table, threads, progress)
    return _finished(robot, times, results, given.own, table, failures, status)


# What is given ------------------------------------------------------------------------------------


class _Given:
    """Arguments of all runs, checked and named.

    Attributes:
        arrays: q, v, inputs, parameters: what the march takes.
        torque: its law.
        wrenches: their law, or None.
        signatures: names and shapes of the inputs of the laws.
        parameters: names of the robot's numbers that differ.
        own: their values.
        batch: shape of the runs.
    """

    def __init__(
        self,
        robot: Robot,
        q: ArrayLike,
        v: ArrayLike,
        torque: Any,
        wrenches: Any,
        inputs: Mapping[str, ArrayLike],
        parameters: Mapping[str, ArrayLike],
        target: str,
    ) -> None:
        on_host = target == "cpu"
        q = configuration(robot, q) if on_host else q
        v = velocity(robot, v) if on_host else v
        known = {name: parameter(robot, name)[0] for name in parameters}
        convert: Callable[[Any], Any] = np.asarray if on_host else lambda x: x
        values: dict[str, Any] = {n: convert(x) for n, x in parameters.items()}
        batches = [q.shape[:-1], v.shape[:-1]]
        batches += [
            x.shape[: x.ndim - len(known[name].shape)] for name, x in values.items()
        ]  # fmt: skip
        extra: dict[str, Any] = {n: convert(x) for n, x in inputs.items()}
        try:
            batch = np.broadcast_shapes(*batches)
        except ValueError:
            raise ShapeError(f"the runs' batch shapes do not broadcast: {batches}") from None
        if batch == () and extra:
            batch = tuple(next(iter(extra.values())).shape[:1])
        laws: dict[str, Law | None] = {"wrenches": None}
        for what, load, shape in (
            ("torque", torque, (robot.nv,)), ("wrenches", wrenches, (len(robot.bodies), 6)),
        ):  # fmt: skip
            if what == "wrenches" and load is None:
                continue
            laws[what], array = self._law(robot, what, load, shape, batch, convert)
            if array is not None:
                extra[what] = array
                batch = np.broadcast_shapes(batch, array.shape[: array.ndim - len(shape)])
        for name, x in extra.items():
            if x.shape[: len(batch)] != batch:
                raise ShapeError(
                    f"input {name!r} must have the runs' batch shape {batch} in front, not "
                    f"{x.shape}"
                )
        clash = {"q", "v", "t"} & set(extra)
        if clash:
            raise RemoraError(f"an input cannot be called {sorted(clash)[0]!r}")
        self.batch, self.own = batch, values
        torque_law = laws["torque"]
        assert torque_law is not None
        self.torque, self.wrenches = torque_law, laws["wrenches"]
        self.signatures = tuple(
            Signature(name, tuple(x.shape[len(batch) :])) for name, x in extra.items()
        )
        self.parameters = tuple(parameters)
        self.arrays: list[Any] = [q, v, *extra.values(), *values.values()]

    def _law(
        self,
        robot: Robot,
        what: str,
        load: Any,
        shape: tuple[int, ...],
        batch: tuple[int, ...],
        convert: Callable[[Any], Any],
    ) -> tuple[Law, Any]:
        """Return a load's law, and its array where each run has numbers of its own."""
        if isinstance(load, Mapping):
            if what != "torque":
                raise RemoraError(f"{what} of a batch cannot be given by name")
            return _by_joint(robot, load), None  # pyright: ignore[reportUnknownArgumentType]
        if load is None or callable(load):
            return law(load, shape, what), None
        array = convert(load)
        if array.shape == shape:
            return law(load, shape, what), None
        if array.shape[array.ndim - len(shape) :] != shape:
            raise ShapeError(f"{what} must have shape {shape}, or one for each run")

        def own(t: Array, q: Array, v: Array, **others: Array) -> Array:
            return others[what]

        return own, array


def _by_joint(robot: Robot, loads: Mapping[str, Any]) -> Law:
    parts: dict[int, Law] = {}
    for name, load in loads.items():
        joint = robot.joints[robot.joint_index(name)]
        if joint.v.stop - joint.v.start != 1:
            raise RemoraError(f"joint {name!r} has several speeds: give the torque as one vector")
        parts[joint.v.start] = law(load, (), f"torque of {name!r}")
    return gathered(parts, robot.nv)


class _Timetable(NamedTuple):
    """Intervals of a march: when each starts, its steps, and which of its samples are kept."""

    starts: Array
    steps: Array
    counts: Array
    kept: Array

    @property
    def passed(self) -> dict[str, Array]:
        return {"starts": self.starts, "steps": self.steps, "counts": self.counts}


def _timetable(times: Array, step: float, breaks: Sequence[float]) -> _Timetable:
    """Return intervals that end at every sample and every break."""
    inner = [float(t) for t in breaks if times[0] < t < times[-1]]
    knots = np.unique(np.concatenate([times, inner]))
    lengths = np.diff(knots)
    counts = np.maximum(np.ceil(lengths / step - 1e-6), 1.0)
    # the first interval has no steps: its sample is the start
    starts = np.concatenate([knots[:1], knots[:-1]])
    steps = np.concatenate([[step], lengths / counts])
    whole = np.concatenate([[0], counts.astype(np.int64)])
    return _Timetable(starts, steps, whole, np.isin(knots, times))


# Running ------------------------------------------------------------------------------------------


def _in_blocks(
    kernel: MarchKernel, given: _Given, table: _Timetable, threads: int, progress: Any
) -> tuple[tuple[Array, Array], str]:
    """March all runs, some at a time, so that progress is seen and what is done is kept."""
    runs, kept = math.prod(given.batch), np.flatnonzero(table.kept)
    sizes = [s.shape for s in kernel.outputs]
    try:
        q, v = (np.full((runs, kept.size, *size), np.nan, kernel.dtype) for size in sizes)
    except MemoryError:
        numbers = runs * kept.size * sum(math.prod(s) for s in sizes)
        raise RemoraError(
            f"the samples of {runs} runs need {numbers * 8 / 1e9:.1f} GB: take fewer samples"
        ) from None
    signatures = kernel.inputs
    rows = [
        np.broadcast_to(a, (*given.batch, *s.shape)).reshape((runs, *s.shape))
        if a.ndim > len(s.shape) else a
        for a, s in zip(given.arrays, signatures, strict=True)
    ]  # fmt: skip
    block = BLOCK * (threads or os.cpu_count() or 1)
    status = "complete"
    with batch_bar(runs, progress) as advance:
        try:
            for first in range(0, runs, block):
                part = slice(first, min(first + block, runs))
                own = [a[part] if a.ndim > len(s.shape) else a
                       for a, s in zip(rows, signatures, strict=True)]  # fmt: skip
                alone = all(a.ndim == len(s.shape) for a, s in zip(own, signatures, strict=True))
                found = kernel(*own, **table.passed, threads=threads)
                for whole, some in zip((q, v), found, strict=True):
                    whole[part] = some[None][:, kept] if alone else some[:, kept]
                advance(part.stop - part.start)
        except KeyboardInterrupt:
            status = "interrupted"
            warnings.warn("interrupted: the runs that are done are kept", RuntimeWarning, 4)
    shape = (*given.batch, kept.size)
    return (q.reshape((*shape, -1)), v.reshape((*shape, -1))), status


def _finished(
    robot: Robot,
    times: Array,
    results: Any,
    parameters: dict[str, Array],
    table: _Timetable,
    failures: str,
    status: str,
) -> Batch:
    """Return the batch, or raise where a run failed."""
    q: Any
    v: Any
    q, v = results
    on_host = is_array(q)
    if not on_host:
        kept = np.flatnonzero(table.kept)
        if kept.size < table.kept.size:
            q, v = q[..., kept, :], v[..., kept, :]
    finite: Any = (abs(q).sum(axis=-1) + abs(v).sum(axis=-1)) < math.inf
    ok = finite.all(axis=-1)
    if not on_host:
        ok, finite = ok.get(), finite.get()
    batch = Batch(robot, times, q, v, parameters, np.asarray(ok), status)
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
