"""Program of a batch: a Runge-Kutta method on the configuration manifold for many runs.

    for each interval, with a sample at its end:
        repeat as often as it has steps:
            for each stage:
                prepare     the state of the stage, from the rates k of the stage before
                evaluate    the loads and the rates
            finish          the state at the end of the step

A run carries q and v with the compensation terms of their Kahan sums, the rates k of the last
stage, and the weighted sum of the stages so far. Only methods in which each stage depends on the
previous stage alone can be written this way; RK4 is one.

In single precision, loads that depend on time are a block of their own, in double precision.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, absolute, asarray, stack, total_and_rest
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    ForEach,
    Repeat,
    Run,
    Sample,
    Statement,
)
from remora.codegen.ir.graph import Signature
from remora.codegen.ir.trace import trace
from remora.codegen.llvm.lowering import used_inputs
from remora.dynamics.forces.equations_of_motion import PassiveParameters, actuation
from remora.dynamics.kernels.parameters import parameter
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.model.state import increment, integrate, log_rate
from remora.simulation.inputs.profiles import Profile, Pulse
from remora.simulation.integrators.tableaus import Tableau

#: Tables of a batch: start time, step size and number of steps of each interval. Names with a space
#: cannot be those of a user's inputs, which are arguments of functions.
START, STEP, COUNT = "interval start", "step size", "step count"
TABLES = (START, STEP, COUNT)
#: The number of the step in its interval, and the coefficients of a stage.
INDEX, ROW = "step index", "stage row"
#: (t, q, v, others by name) -> a load, on arrays of numbers or symbols.
Law = Callable[..., Array]


class Forces(NamedTuple):
    """Loads that act in every run.

    Attributes:
        torque: generalized forces of the drives as a function, `(nv,)`.
        wrenches: external wrenches as a function, `(nb, 6)`, or None.
        inputs: arrays that differ from run to run and are passed to the functions by name.
    """

    torque: Law
    wrenches: Law | None
    inputs: tuple[Signature, ...]

    def at(self, t: Array, q: Array, v: Array, others: Mapping[str, Array]) -> tuple[Array, ...]:
        """Return the generalized forces, and the wrenches if there are any."""
        tau = self.torque(t, q, v, **others)
        if self.wrenches is None:
            return (tau,)
        return tau, self.wrenches(t, q, v, **others)


def batch_program(
    robot: Robot,
    tableau: Tableau,
    forces: Forces,
    parameters: Sequence[str],
    formulation: str,
    passive: PassiveParameters,
    nudge: float,
    dtype: str = "float64",
) -> Program:
    """Return the program of a robot, with samples of q and v.

    Args:
        robot: the robot.
        tableau: the Runge-Kutta method.
        forces: the loads.
        parameters: robot parameters that differ from run to run, see `rm.compile`.
        formulation: forward-dynamics formulation.
        passive: passive joint forces.
        nudge: offset from the ends of a step at which loads are evaluated, relative to time.
        dtype: precision of the kernel.
    """
    q, v = Cell("q", (robot.nq,)), Cell("v", (robot.nv,))
    extra = [parameter(robot, name) for name in parameters]
    data = [*forces.inputs, *(s for s, _ in extra)]
    names = [s.name for s in data]
    laws = names[: len(forces.inputs)]
    speeds = ("rate u", "rate v", "sum u", "sum v", "stage u", "stage v", "rest v")
    cells = [q, v, *(Cell(name, q.shape) for name in ("stage q", "rest q"))]
    cells += [Cell(name, v.shape) for name in speeds]
    acting = load_cells(robot, forces)
    cells += acting
    load_names = [s.name for s in acting]

    def prepare(
        q: Array, v: Array, ku: Array, kv: Array, au: Array, av: Array, h: Array, row: Array
    ) -> tuple[Array, ...]:
        ahead, before = row[:1] * h, row[1:2] * h  # (1,): all numbers here stay arrays
        us = ahead * ku
        return au + before * ku, av + before * kv, integrate(robot, q, us), us, v + ahead * kv

    def loads(
        qs: Array, vs: Array, start: Array, h: Array, index: Array, row: Array, *others: Array
    ) -> tuple[Array, ...]:
        now = start + index * h
        within = row[3:] * (absolute(now) + h)  # at the ends of a step, evaluate just inside
        t = (now + row[2:3] * h + within).reshape(())
        return forces.at(t, qs, vs, dict(zip(laws, others, strict=True)))

    def rates(qs: Array, us: Array, vs: Array, *others: Array) -> tuple[Array, ...]:
        changed = robot
        for (_, change), value in zip(extra, others[len(acting) :], strict=True):
            changed = change(changed, value)
        wrenches = others[1] if len(acting) > 1 else None
        vdot, _ = actuation(
            changed, qs, vs, others[0], wrenches, formulation=formulation, passive=passive
        )
        return log_rate(robot, us, vs), vdot

    def finish(
        q: Array, v: Array, rest_q: Array, rest_v: Array, ku: Array, kv: Array, au: Array,
        av: Array, h: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        last = float(tableau.b[-1]) * h
        u, dv = au + last * ku, av + last * kv
        q, rest_q = total_and_rest(q, increment(robot, q, u) + rest_q)
        v, rest_v = total_and_rest(v, dv + rest_v)
        nothing = np.zeros(robot.nv)
        return q, v, rest_q, rest_v, nothing, nothing

    k = ("rate u", "rate v", "sum u", "sum v")
    stage = [
        Run(Block(
            prepare, ("q", "v", *k, STEP, ROW),
            ("sum u", "sum v", "stage q", "stage u", "stage v"),
        )),
        *rate_blocks(
            Block(loads, ("stage q", "stage v", START, STEP, INDEX, ROW, *laws), load_names),
            Block(
                rates, ("stage q", "stage u", "stage v", *load_names, *names[len(laws) :]), k[:2]
            ),
            {s.name: s for s in (*cells, *data)}, dtype,
        ),
    ]  # fmt: skip
    step: list[Statement] = [
        For(stage_rows(tableau, nudge), stage, name=ROW),
        Run(Block(
            finish, ("q", "v", "rest q", "rest v", *k, STEP),
            ("q", "v", "rest q", "rest v", "sum u", "sum v"),
        )),
    ]  # fmt: skip
    return Program([q, v, *data], cells, in_intervals(step), TABLES)


def in_intervals(step: Sequence[Statement]) -> list[Statement]:
    """Return the body of a batch from the statements of a step: all steps, with samples."""

    def state(q: Array, v: Array) -> tuple[Array, Array]:
        return q, v

    sample = Sample(Block(state, ("q", "v"), ("q", "v")))
    return [ForEach([Repeat(COUNT, step, index=INDEX), sample])]


def load_cells(robot: Robot, forces: Forces) -> list[Cell]:
    """Return the cells of the loads."""
    cells = [Cell("load tau", (robot.nv,))]
    if forces.wrenches is not None:
        cells.append(Cell("load wrenches", (len(robot.bodies), 6)))
    return cells


def rate_blocks(
    loads: Block, rates: Block, known: Mapping[str, Signature], dtype: str, width: int = 4
) -> list[Statement]:
    """Return the blocks that compute the rates of a stage from the loads, as one if possible.

    In single precision, loads that depend on time are computed in double precision.

    Args:
        loads: writes the cells of the loads.
        rates: reads them.
        known: cells and inputs by name.
        dtype: precision of the kernel.
        width: number of coefficients of a stage.
    """
    known = {**known, ROW: Signature(ROW, (width,))}
    if dtype == "float32" and _reads_time(loads, known):
        return [Run(replace(loads, wide=True)), Run(rates)]
    reads = tuple(dict.fromkeys((*loads.reads, *rates.reads)))
    reads = tuple(name for name in reads if name not in loads.writes)

    def both(*values: Array) -> Any:
        given = dict(zip(reads, values, strict=True))
        found = loads.function(*(given[name] for name in loads.reads))
        given |= dict(zip(loads.writes, found, strict=True))
        return rates.function(*(given[name] for name in rates.reads))

    return [Run(Block(both, reads, rates.writes))]


def _reads_time(loads: Block, known: Mapping[str, Signature]) -> bool:
    """Return whether loads depend on time."""
    known = {**known, **{n: Signature(n, (1,)) for n in (START, STEP, INDEX)}}
    graph = trace(loads.function, [known[name] for name in loads.reads])
    used = zip(graph.inputs, used_inputs(graph), strict=True)
    return any(is_used and s.name in (START, INDEX) for s, is_used in used)


def stage_rows(tableau: Tableau, nudge: float) -> Array:
    """Return per stage: weight of the previous k in its state and in the sum, two for time."""
    stages = len(tableau.b)
    below = np.array([tableau.a[i, i - 1] if i else 0.0 for i in range(stages)])
    if not np.array_equal(np.diag(below[1:], -1), tableau.a):
        raise RemoraError("a batch needs a method whose stages depend on the stage before alone")
    before = np.concatenate([[0.0], tableau.b[:-1]])
    inward = nudge * np.where(tableau.c == 0.0, 1.0, np.where(tableau.c == 1.0, -1.0, 0.0))
    return np.stack([below, before, tableau.c, inward], axis=1)


def law(given: Any, shape: tuple[int, ...], what: str) -> Law:
    """Return a load as a function on arrays that can be compiled.

    Args:
        given: None, numbers, a function (t, q, v, and others by name), a `Profile`, a `Pulse`.
        shape: shape of its value.
        what: its name, for error messages.
    """
    if hasattr(given, "sample_time"):
        raise RemoraError(
            f"{what} of a batch cannot be a controller that samples: give the law itself, which "
            "then acts without a pause, or use rm.simulate"
        )
    if callable(given):
        function, names = _on_arrays(given), _named(given)

        def traced(t: Array, q: Array, v: Array, **others: Array) -> Array:
            own = {n: x for n, x in others.items() if names is None or n in names}
            returned: Any = function(t, q, v, **own)
            try:
                value = asarray(returned)
            except (TypeError, ValueError):
                kind = type(returned).__name__
                raise RemoraError(f"{what} must be numbers {shape}, not {kind}") from None
            if value.size == 1 and math.prod(shape) == 1:
                value = value.reshape(shape)  # a single symbol has no shape
            if value.shape != shape:
                raise RemoraError(f"{what} must have shape {shape}, not {value.shape}")
            return value

        return traced
    fixed = np.zeros(shape) if given is None else np.asarray(given, dtype=float)

    def constant(t: Array, q: Array, v: Array, **others: Array) -> Array:
        return fixed

    return constant


def _on_arrays(given: Any) -> Callable[..., Any]:
    """Return a load as a function (t, q, v) that also accepts symbols."""
    if isinstance(given, (Profile, Pulse)):
        profile = given

        def value(t: Array, q: Array, v: Array) -> Array:
            return profile.traced(t)

        return value
    return given


def _named(given: Any) -> frozenset[str] | None:
    """Return the names of the inputs that a function takes; None: all."""
    if isinstance(given, (Profile, Pulse)):
        return frozenset()
    parameters = inspect.signature(given).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)


def gathered(parts: Mapping[int, Law], size: int) -> Law:
    """Return the load function of a vector of that size from those of its components."""

    def value(t: Array, q: Array, v: Array, **others: Array) -> Array:
        numbers = [
            parts[i](t, q, v, **others).reshape(()) if i in parts else np.zeros(())
            for i in range(size)
        ]
        return stack(numbers)

    return value
