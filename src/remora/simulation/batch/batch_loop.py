"""Step loop of a batch: a Runge-Kutta method on the configuration manifold for many runs.

A run carries q and v with the compensation terms of their Kahan sums, the rates k of the last
stage, and the weighted sum of the stages so far. Only methods in which each stage depends on the
previous stage alone can be written this way; RK4 is one.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, absolute, asarray, stack, total_and_rest
from remora.codegen.integration.step_loop import Block, StepLoop
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


def step_loop(
    robot: Robot,
    tableau: Tableau,
    forces: Forces,
    parameters: Sequence[str],
    formulation: str,
    passive: PassiveParameters,
    nudge: float,
    dtype: str = "float64",
) -> StepLoop:
    """Return the step loop of a robot.

    Args:
        robot: the robot.
        tableau: the Runge-Kutta method.
        forces: the loads.
        parameters: robot parameters that differ from run to run, see `rm.compile`.
        formulation: forward-dynamics formulation.
        passive: passive joint forces.
        nudge: offset from the ends of a step at which loads are evaluated, relative to time.
        dtype: precision of the loop. In `float32`, loads that depend on time are computed in
            double precision, see `remora.codegen.integration.step_loop`.
    """
    q, v = Signature("q", (robot.nq,)), Signature("v", (robot.nv,))
    extra = [parameter(robot, name) for name in parameters]
    data = [*forces.inputs, *(s for s, _ in extra)]
    names = [s.name for s in data]
    laws = names[: len(forces.inputs)]
    loaded = load_cells(robot, forces)
    speeds = [Signature(name, v.shape) for name in ("ku", "kv", "au", "av", "us", "vs", "rest_v")]
    cells = [q, v, Signature("qs", q.shape), Signature("rest_q", q.shape), *speeds, *data]

    def start(q: Array, v: Array, *others: Array) -> tuple[Array, ...]:
        nothing = np.zeros(robot.nv)
        unset = [np.zeros(s.shape) for s in cells[11 + len(data) :]]
        return (q, v, q, np.zeros(robot.nq), *[nothing] * 7, *others, *unset)

    def prepare(
        q: Array, v: Array, ku: Array, kv: Array, au: Array, av: Array, clock: Array, row: Array
    ) -> tuple[Array, ...]:
        h = clock[1:]  # (1,): all numbers here stay arrays
        ahead, before = row[:1] * h, row[1:2] * h
        us = ahead * ku
        return au + before * ku, av + before * kv, integrate(robot, q, us), us, v + ahead * kv

    def loads(
        qs: Array, vs: Array, clock: Array, row: Array, *others: Array
    ) -> tuple[Array, Array | None]:
        now, h = clock[:1], clock[1:]
        within = row[3:] * (absolute(now) + h)  # at the ends of a step, evaluate just inside
        t = (now + row[2:3] * h + within).reshape(())
        given = dict(zip(laws, others, strict=True))
        tau = forces.torque(t, qs, vs, **given)
        return tau, None if forces.wrenches is None else forces.wrenches(t, qs, vs, **given)

    def rates(
        qs: Array,
        us: Array,
        vs: Array,
        tau: Array,
        wrenches: Array | None,
        numbers: Sequence[Array],
    ) -> tuple[Array, ...]:
        changed = robot
        for (_, change), value in zip(extra, numbers, strict=True):
            changed = change(changed, value)
        vdot, _ = actuation(
            changed, qs, vs, tau, wrenches, formulation=formulation, passive=passive
        )
        return log_rate(robot, us, vs), vdot

    def evaluate(
        qs: Array, us: Array, vs: Array, clock: Array, row: Array, *others: Array
    ) -> tuple[Array, ...]:
        own, numbers = others[: len(laws)], others[len(laws) :]
        return rates(qs, us, vs, *loads(qs, vs, clock, row, *own), numbers)

    def timed(qs: Array, vs: Array, clock: Array, row: Array, *others: Array) -> tuple[Array, ...]:
        return tuple(x for x in loads(qs, vs, clock, row, *others) if x is not None)

    def evaluate_loaded(qs: Array, us: Array, vs: Array, *others: Array) -> tuple[Array, ...]:
        pushed = others[1] if len(loaded) > 1 else None
        return rates(qs, us, vs, others[0], pushed, others[len(loaded) :])

    def finish(
        q: Array, v: Array, rest_q: Array, rest_v: Array, ku: Array, kv: Array, au: Array,
        av: Array, clock: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        last = float(tableau.b[-1]) * clock[1:]
        u, dv = au + last * ku, av + last * kv
        q, rest_q = total_and_rest(q, increment(robot, q, u) + rest_q)
        v, rest_v = total_and_rest(v, dv + rest_v)
        nothing = np.zeros(robot.nv)
        return q, v, rest_q, rest_v, nothing, nothing

    def sample(q: Array, v: Array) -> tuple[Array, Array]:
        return q, v

    stage = ("q", "v", "ku", "kv", "au", "av", "clock", "row")
    whole = ("q", "v", "rest_q", "rest_v", "ku", "kv", "au", "av", "clock")
    first = Block(timed, ("qs", "vs", "clock", "row", *laws), [s.name for s in loaded])
    apart = dtype == "float32" and reads_time(first, {s.name: s for s in cells})
    then = Block(evaluate, ("qs", "us", "vs", "clock", "row", *names), ("ku", "kv"))
    if apart:
        cells += loaded
        reads = ("qs", "us", "vs", *(s.name for s in loaded), *names[len(laws) :])
        then = Block(evaluate_loaded, reads, ("ku", "kv"))
    return StepLoop.traced(
        [q, v, *data],
        cells,
        stage_rows(tableau, nudge),
        start=Block(start, ("q", "v", *names), [s.name for s in cells]),
        prepare=Block(prepare, stage, ("au", "av", "qs", "us", "vs")),
        evaluate=then,
        finish=Block(finish, whole, ("q", "v", "rest_q", "rest_v", "au", "av")),
        sample=Block(sample, ("q", "v"), ("q", "v")),
        timed=first if apart else None,
    )


def load_cells(robot: Robot, forces: Forces) -> list[Signature]:
    """Return the cells of the loads, if these are computed in a block of their own."""
    cells = [Signature("load tau", (robot.nv,))]
    if forces.wrenches is not None:
        cells.append(Signature("load wrenches", (len(robot.bodies), 6)))
    return cells


def reads_time(block: Block, known: Mapping[str, Signature], width: int = 4) -> bool:
    """Return whether the loads depend on time; `width`: number of coefficients of a row."""
    known = {**known, "clock": Signature("clock", (2,)), "row": Signature("row", (width,))}
    graph = trace(block.function, [known[name] for name in block.reads])
    return used_inputs(graph)[list(block.reads).index("clock")]


def stage_rows(tableau: Tableau, nudge: float) -> Array:
    """Return per stage: weight of the previous k in its state and in the sum, two for time."""
    stages = len(tableau.b)
    below = np.array([tableau.a[i, i - 1] if i else 0.0 for i in range(stages)])
    if not np.array_equal(np.diag(below[1:], -1), tableau.a):
        raise RemoraError("only methods whose stages need the stage before them alone can march")
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
