"""Program of a batch with joint stops: each run subdivides its steps at contact events.

A step of the batch is made in one or more RK4 passes. In each pass the set of touched stops is
frozen, so that the rates are smooth. A pass covers the rest of the step; in contact, its length is
limited by an error estimate, the difference from the third-order formula that also uses the rates
at its end. Within a pass, coordinates are interpolated by Hermite cubics. Where one of them first
reaches a stop, or comes back from it, the pass ends and the contact state changes. The state there
is that of the cubics, whose error is of fourth order in the step size, as is the global error of
RK4.

A run that needs more than `MOST_PASSES` passes for one step ends with non-finite numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra import hermite
from remora.algebra.array_ops import Array, absolute, less, select, sqrt, total_and_rest
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import Block, Cell, For, Run, Statement, While
from remora.dynamics.forces.equations_of_motion import PassiveParameters, actuation
from remora.dynamics.forces.stops import stop_overlaps, stop_rates
from remora.dynamics.kernels.parameters import parameter
from remora.model.robot import Robot
from remora.model.state import increment, integrate, log_rate
from remora.simulation.batch.batch_loop import (
    INDEX,
    ROW,
    START,
    STEP,
    TABLES,
    Forces,
    in_intervals,
    load_cells,
    rate_blocks,
    stage_rows,
)
from remora.simulation.integrators.tableaus import RK4

#: Error tolerance of a pass in contact, relative to the largest speed.
TOLERANCE = 1e-7
#: The same in single precision, limited by rounding.
TOLERANCE_SINGLE = 1e-5
#: Maximum number of passes of a step.
MOST_PASSES = 20_000
#: A length longer than any pass, s.
_ENDLESS = 1e30
#: Bisection and Newton iterations that locate a root of a cubic.
_HALVINGS, _NEWTON_STEPS = 10, 5


def batch_program_with_stops(
    robot: Robot,
    forces: Forces,
    parameters: Sequence[str],
    formulation: str,
    passive: PassiveParameters,
    nudge: float,
    dtype: str,
) -> Program:
    """Return the program of a robot with joint stops; see `batch_loop.batch_program`."""
    nq, nv = robot.nq, robot.nv
    stops = stop_overlaps(robot, np.zeros(nq)).size
    extra = [parameter(robot, name) for name in parameters]
    data = [*forces.inputs, *(s for s, _ in extra)]
    names = [s.name for s in data]
    laws = names[: len(forces.inputs)]
    acting = load_cells(robot, forces)
    load_names = [s.name for s in acting]
    q, v = Cell("q", (nq,)), Cell("v", (nv,))
    k = ("rate u", "rate v", "sum u", "sum v", "first rate v", "fourth rate v")
    length = ("rest of step", "longest pass")
    cells = [
        q, v, Cell("stage q", (nq,)), Cell("rest q", (nq,)),
        *(Cell(name, (nv,)) for name in (*k, "stage u", "stage v", "rest v")),
        *(Cell(name, (1,)) for name in (*length, "pass count")),
        Cell("stop contact", (stops,)), *acting,
    ]  # fmt: skip
    tolerance = TOLERANCE if dtype == "float64" else TOLERANCE_SINGLE
    rounding = 64.0 * float(np.finfo(dtype).eps)
    rows = _rows(nudge)

    def start(q: Array, v: Array) -> tuple[Array, ...]:
        over, rate = stop_overlaps(robot, q), stop_rates(robot, v)
        into = select(less(0.0, rate), 1.0, 0.0)
        contact = select(less(0.0, over), 1.0, select(less(over, 0.0), 0.0, into))
        return contact, np.full(1, _ENDLESS)

    def prepare(
        q: Array, v: Array, ku: Array, kv: Array, au: Array, av: Array, kv_first: Array,
        kv_fourth: Array, left: Array, longest: Array, whole: Array, row: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        h = _smaller(left * whole, longest)
        ahead, before, end = row[:1] * h, row[1:2] * h, row[4:5]
        au, av = au + before * ku, av + before * kv
        us, vs = ahead * ku + end * au, v + ahead * kv + end * av
        kv_first = select(less(0.5, row[5:6]), kv, kv_first)
        kv_fourth = select(less(0.5, end), kv, kv_fourth)
        return au, av, integrate(robot, q, us), us, vs, kv_first, kv_fourth

    def loads(
        qs: Array, vs: Array, left: Array, longest: Array, start: Array, whole: Array,
        index: Array, row: Array, *others: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        now, h = start + index * whole, _smaller(left * whole, longest)
        within = row[3:4] * (absolute(now) + whole)
        t = (now + (1.0 - left) * whole + row[2:3] * h + within).reshape(())
        return forces.at(t, qs, vs, dict(zip(laws, others, strict=True)))

    def rates(qs: Array, us: Array, vs: Array, contact: Array, *others: Array) -> tuple[Array, ...]:
        changed = robot
        for (_, change), value in zip(extra, others[len(acting) :], strict=True):
            changed = change(changed, value)
        wrenches = others[1] if len(acting) > 1 else None
        vdot, _ = actuation(
            changed, qs, vs, others[0], wrenches, formulation=formulation, passive=passive,
            contact=contact,
        )  # fmt: skip
        return log_rate(robot, us, vs), vdot

    def finish(
        q: Array, v: Array, rest_q: Array, rest_v: Array, ku: Array, kv: Array, au: Array,
        av: Array, kv_first: Array, kv_fourth: Array, left: Array, longest: Array, passes: Array,
        contact: Array, whole: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        h = _smaller(left * whole, longest)
        touching = less(0.5, np.sum(contact, keepdims=True))
        # error estimate: the third-order formula with the rates at the end [h/10 (k4 - k5)]
        error = 0.1 * h * _largest(kv_fourth - kv)
        ratio = error / (tolerance * _larger(_largest(v), _largest(v + av)) + 1e-30)
        fine = select(touching, select(less(ratio, 1.0), 1.0, 0.0), 1.0)
        growth = 0.9 / sqrt(sqrt(_larger(_smaller(ratio, 1e4), 1e-4)))
        growth = _larger(_smaller(growth, 4.0), 0.2)
        growth = select(less(ratio, 1e4), growth, 0.2)  # also for NaN
        # where joints reach or leave stops
        side = 2.0 * contact - 1.0
        begin = side * stop_overlaps(robot, q)
        end = side * stop_overlaps(robot, integrate(robot, q, au))
        slopes = [side * stop_rates(robot, x) * h for x in (v, v + av)]
        places = first_fall(_larger(begin, 0.0), slopes[0], end, slopes[1], rounding)
        x = np.ones(1)
        for i in range(stops):
            x = _smaller(x, places[i : i + 1])
        x = _larger(x, rounding)
        # the state there
        u = hermite.value(x, au, h * v, h * ku)
        dv = hermite.value(x, av, h * kv_first, h * kv)
        q1, rest_q1 = total_and_rest(q, increment(robot, q, u) + rest_q)
        v1, rest_v1 = total_and_rest(v, dv + rest_v)
        changed = fine * select(less(places, x * (1.0 + 1e-9)), 1.0, 0.0)
        met = select(less(x, 1.0), changed, 0.0)
        contact1 = contact + met * (1.0 - 2.0 * contact)
        rest = select(less(x, 1.0), left - x * h / whole, left - h / whole)
        rest = select(less(h, left * whole), rest, select(less(x, 1.0), rest, 0.0))
        left1 = select(less(0.5, fine), select(less(rest, rounding), 0.0, rest), left)
        longest1 = select(touching, h * growth, _ENDLESS)
        free = less(np.sum(contact1, keepdims=True), 0.5)
        longest1 = select(free, _ENDLESS, longest1)
        count = select(less(0.0, left1), passes + 1.0, 0.0)
        stuck = less(float(MOST_PASSES), count)
        v1 = select(less(0.5, fine), v1, v)
        v1 = select(stuck, 1.0 / (0.0 * v1), v1)
        zero = np.zeros(nv)
        return (
            select(less(0.5, fine), q1, q), v1,
            select(less(0.5, fine), rest_q1, rest_q), select(less(0.5, fine), rest_v1, rest_v),
            zero, zero, select(stuck, 0.0, left1), longest1, select(stuck, 0.0, count), contact1,
        )  # fmt: skip

    stage = [
        Run(Block(
            prepare, ("q", "v", *k, *length, STEP, ROW),
            ("sum u", "sum v", "stage q", "stage u", "stage v", *k[4:]),
        )),
        *rate_blocks(
            Block(
                loads, ("stage q", "stage v", *length, START, STEP, INDEX, ROW, *laws), load_names
            ),
            Block(
                rates,
                ("stage q", "stage u", "stage v", "stop contact", *load_names, *names[len(laws) :]),
                k[:2],
            ),
            {s.name: s for s in (*cells, *data)}, dtype, rows.shape[1],
        ),
    ]  # fmt: skip
    states = ("q", "v", "rest q", "rest v")
    one_pass: list[Statement] = [
        For(rows, stage, name=ROW),
        Run(Block(
            finish, (*states, *k, *length, "pass count", "stop contact", STEP),
            (*states, "sum u", "sum v", *length, "pass count", "stop contact"),
        )),
    ]  # fmt: skip
    step = [Run(Block(lambda: np.ones(1), (), length[:1])), While(length[0], one_pass)]
    begin = Run(Block(start, ("q", "v"), ("stop contact", length[1])))
    return Program([q, v, *data], cells, [begin, *in_intervals(step)], TABLES)


def _rows(nudge: float) -> Array:
    """Return the rows of RK4, one for the rates at the end, and a flag for the second stage."""
    stages = stage_rows(RK4, nudge)
    end = np.array([0.0, RK4.b[-1], 1.0, -nudge])
    rows = np.vstack([stages, end])
    last, second = np.arange(5) == 4, np.arange(5) == 1
    return np.concatenate([rows, np.stack([last, second], axis=1).astype(float)], axis=1)


def first_fall(f0: Array, s0: Array, f1: Array, s1: Array, rounding: float) -> Array:
    """Return where cubics on [0, 1] first fall below zero, `(m,)`; 2 where they do not.

    The cubic p has p(0) = f0 ≥ 0, p'(0) = s0, p(1) = f1, p'(1) = s1. If its minimum lies inside
    and is negative, the root is before it; otherwise, if f1 is negative, it is the only root.

    Args:
        f0: values at 0, `(m,)`.
        s0: slopes at 0.
        f1: values at 1.
        s1: slopes at 1.
        rounding: tolerance below zero, relative to the values and slopes.
    """
    c2, c3 = 3.0 * (f1 - f0) - 2.0 * s0 - s1, 2.0 * (f0 - f1) + s0 + s1

    def value(x: Array) -> Array:
        return f0 + x * (s0 + x * (c2 + x * c3))

    discriminant = c2 * c2 - 3.0 * c3 * s0
    root = sqrt(_larger(discriminant, 0.0))
    by_sum = c2 + root  # the minimum is -s0/(c2 + √D) = (√D - c2)/(3 c3)
    convex = less(0.0, c2)
    top = select(convex, -s0, root - c2)
    bottom = select(convex, by_sum, 3.0 * c3)
    sign = select(less(bottom, 0.0), -1.0, 1.0)
    whole = absolute(bottom)
    inside = less(0.0, sign * top) * less(sign * top, whole) * less(0.0, discriminant)
    lowest = select(inside, sign * top / select(less(0.0, whole), whole, 1.0), 1.0)
    least = -rounding * (absolute(f0) + absolute(f1) + absolute(s0) + absolute(s1))
    dips = less(value(lowest), least)
    low, high = 0.0 * f0, select(dips, lowest, 1.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = less(value(middle), 0.0)
        low, high = select(below, low, middle), select(below, middle, high)
    x = high
    for _ in range(_NEWTON_STEPS):
        slope = s0 + x * (2.0 * c2 + 3.0 * x * c3)
        better = x - value(x) / select(less(slope, 0.0), slope, -1e30)
        x = _larger(_smaller(better, high), low)
    falls = less(f1, least)
    return select(dips, x, select(falls, x, 2.0))


def _smaller(a: Array, b: Array | float) -> Array:
    return select(less(a, b), a, b)


def _larger(a: Array, b: Array | float) -> Array:
    return select(less(b, a), a, b)


def _largest(x: Array) -> Array:
    """Return the largest absolute value, `(1,)`."""
    size = absolute(x)
    found = size[:1]
    for i in range(1, x.shape[0]):
        found = _larger(size[i : i + 1], found)
    return found
