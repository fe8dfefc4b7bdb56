"""Step loop of a batch with joint stops: each run subdivides its steps at contact events.

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
from remora.codegen.integration.step_loop import Block, StepLoop
from remora.codegen.ir.graph import Signature
from remora.dynamics.forces.equations_of_motion import PassiveParameters, actuation
from remora.dynamics.forces.stops import stop_overlaps, stop_rates
from remora.dynamics.kernels.parameters import parameter
from remora.model.robot import Robot
from remora.model.state import increment, integrate, log_rate
from remora.simulation.batch.batch_loop import Forces, load_cells, reads_time, stage_rows
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


def stop_loop(
    robot: Robot,
    forces: Forces,
    parameters: Sequence[str],
    formulation: str,
    passive: PassiveParameters,
    nudge: float,
    dtype: str,
) -> StepLoop:
    """Return the step loop of a robot with joint stops; see `batch_loop.step_loop`."""
    nq, nv = robot.nq, robot.nv
    stops = stop_overlaps(robot, np.zeros(nq)).size
    extra = [parameter(robot, name) for name in parameters]
    data = [*forces.inputs, *(s for s, _ in extra)]
    names = [s.name for s in data]
    laws = names[: len(forces.inputs)]
    loaded = load_cells(robot, forces)
    q, v = Signature("q", (nq,)), Signature("v", (nv,))
    speeds = ("ku", "kv", "au", "av", "us", "vs", "rest_v", "kv_first", "kv_fourth")
    cells = [
        q, v, Signature("qs", (nq,)), Signature("rest_q", (nq,)),
        *(Signature(name, (nv,)) for name in speeds),
        *(Signature(name, (1,)) for name in ("left", "longest", "passes")),
        Signature("contact", (stops,)), *data,
    ]  # fmt: skip
    fixed = len(cells)  # followed by the loads, if these are a block of their own
    tolerance = TOLERANCE if dtype == "float64" else TOLERANCE_SINGLE
    rounding = 64.0 * float(np.finfo(dtype).eps)

    def start(q: Array, v: Array, *others: Array) -> tuple[Array, ...]:
        over, rate = stop_overlaps(robot, q), stop_rates(robot, v)
        into = select(less(0.0, rate), 1.0, 0.0)
        contact = select(less(0.0, over), 1.0, select(less(over, 0.0), 0.0, into))
        zero, nothing = np.zeros(nv), np.zeros(1)
        return (
            q, v, q, np.zeros(nq), *[zero] * len(speeds), nothing, nothing + _ENDLESS, nothing,
            contact, *others, *(np.zeros(s.shape) for s in cells[fixed:]),
        )  # fmt: skip

    def prepare(
        q: Array, v: Array, ku: Array, kv: Array, au: Array, av: Array, kv_first: Array,
        kv_fourth: Array, left: Array, longest: Array, clock: Array, row: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        h = _smaller(left * clock[1:], longest)
        ahead, before, end = row[:1] * h, row[1:2] * h, row[4:5]
        au, av = au + before * ku, av + before * kv
        us, vs = ahead * ku + end * au, v + ahead * kv + end * av
        kv_first = select(less(0.5, row[5:6]), kv, kv_first)
        kv_fourth = select(less(0.5, end), kv, kv_fourth)
        return au, av, integrate(robot, q, us), us, vs, kv_first, kv_fourth

    def loads(
        qs: Array, vs: Array, left: Array, longest: Array, clock: Array, row: Array, *others: Array
    ) -> tuple[Array, Array | None]:
        now, whole = clock[:1], clock[1:]
        h = _smaller(left * whole, longest)
        within = row[3:4] * (absolute(now) + whole)
        t = (now + (1.0 - left) * whole + row[2:3] * h + within).reshape(())
        given = dict(zip(laws, others, strict=True))
        tau = forces.torque(t, qs, vs, **given)
        return tau, None if forces.wrenches is None else forces.wrenches(t, qs, vs, **given)

    def rates(
        qs: Array, us: Array, vs: Array, contact: Array, tau: Array, wrenches: Array | None,
        numbers: Sequence[Array],
    ) -> tuple[Array, ...]:  # fmt: skip
        changed = robot
        for (_, change), value in zip(extra, numbers, strict=True):
            changed = change(changed, value)
        vdot, _ = actuation(
            changed, qs, vs, tau, wrenches, formulation=formulation, passive=passive,
            contact=contact,
        )  # fmt: skip
        return log_rate(robot, us, vs), vdot

    def evaluate(
        qs: Array, us: Array, vs: Array, left: Array, longest: Array, contact: Array, clock: Array,
        row: Array, *others: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        own, numbers = others[: len(laws)], others[len(laws) :]
        return rates(qs, us, vs, contact, *loads(qs, vs, left, longest, clock, row, *own), numbers)

    def timed(*arrays: Array) -> tuple[Array, ...]:
        return tuple(x for x in loads(*arrays) if x is not None)

    def evaluate_loaded(
        qs: Array, us: Array, vs: Array, contact: Array, *others: Array
    ) -> tuple[Array, ...]:
        pushed = others[1] if len(loaded) > 1 else None
        return rates(qs, us, vs, contact, others[0], pushed, others[len(loaded) :])

    def finish(
        q: Array, v: Array, rest_q: Array, rest_v: Array, ku: Array, kv: Array, au: Array,
        av: Array, kv_first: Array, kv_fourth: Array, left: Array, longest: Array, passes: Array,
        contact: Array, clock: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        whole = clock[1:]
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
        # the state there, if the pass is made at all
        taken = select(less(0.0, left), fine, 0.0)
        u = hermite.value(x, au, h * v, h * ku)
        dv = hermite.value(x, av, h * kv_first, h * kv)
        q1, rest_q1 = total_and_rest(q, increment(robot, q, u) + rest_q)
        v1, rest_v1 = total_and_rest(v, dv + rest_v)
        changed = taken * select(less(places, x * (1.0 + 1e-9)), 1.0, 0.0)
        met = select(less(x, 1.0), changed, 0.0)
        contact1 = contact + met * (1.0 - 2.0 * contact)
        rest = select(less(x, 1.0), left - x * h / whole, left - h / whole)
        rest = select(less(h, left * whole), rest, select(less(x, 1.0), rest, 0.0))
        left1 = select(less(0.5, taken), select(less(rest, rounding), 0.0, rest), left)
        longest1 = select(touching, h * growth, _ENDLESS)
        free = less(np.sum(contact1, keepdims=True), 0.5)
        longest1 = select(free, _ENDLESS, select(less(0.0, left), longest1, longest))
        count = select(less(0.0, left1), passes + 1.0, 0.0)
        stuck = less(float(MOST_PASSES), count)
        v1 = select(less(0.5, taken), v1, v)
        v1 = select(stuck, 1.0 / (0.0 * v1), v1)
        zero = np.zeros(nv)
        return (
            select(less(0.5, taken), q1, q), v1,
            select(less(0.5, taken), rest_q1, rest_q), select(less(0.5, taken), rest_v1, rest_v),
            zero, zero, select(stuck, 0.0, left1), longest1, select(stuck, 0.0, count), contact1,
        )  # fmt: skip

    def sample(q: Array, v: Array) -> tuple[Array, Array]:
        return q, v

    ks = ("ku", "kv", "au", "av", "kv_first", "kv_fourth")
    length = ("left", "longest")
    rows = _rows(nudge)
    reads = ("qs", "us", "vs", *length, "contact", "clock", "row", *names)
    then, cells_of_loads = Block(evaluate, reads, ("ku", "kv")), [s.name for s in loaded]
    first = Block(timed, ("qs", "vs", *length, "clock", "row", *laws), cells_of_loads)
    apart = dtype == "float32" and reads_time(first, {s.name: s for s in cells}, rows.shape[1])
    if apart:
        cells += loaded
        reads = ("qs", "us", "vs", "contact", *cells_of_loads, *names[len(laws) :])
        then = Block(evaluate_loaded, reads, ("ku", "kv"))
    return StepLoop.traced(
        [q, v, *data],
        cells,
        rows,
        start=Block(start, ("q", "v", *names), [s.name for s in cells]),
        prepare=Block(
            prepare, ("q", "v", *ks, *length, "clock", "row"),
            ("au", "av", "qs", "us", "vs", "kv_first", "kv_fourth"),
        ),
        evaluate=then,
        finish=Block(
            finish, ("q", "v", "rest_q", "rest_v", *ks, *length, "passes", "contact", "clock"),
            ("q", "v", "rest_q", "rest_v", "au", "av", *length, "passes", "contact"),
        ),
        sample=Block(sample, ("q", "v"), ("q", "v")),
        timed=first if apart else None,
        again="left",
    )  # fmt: skip


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
