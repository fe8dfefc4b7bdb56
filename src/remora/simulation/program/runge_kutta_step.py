"""The step of a run: the stages of an explicit Runge-Kutta method, and the compensated update.

The state of a step is y = [u, v, x, work] in the chart about q at its start [MK99]; the rates kᵢ in
the stages are those of `RunBlocks.evaluate`. A step keeps all of them, for its error estimate, its
dense output and the first stage of the next step (`stages`), or in lockstep only the last one and
their sum so far, which needs less memory per run (`chained_stages`). Both write `change`, which
`add_change` adds to the state.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from remora.algebra.array_ops import Array, less, select
from remora.codegen.integration.statements import Block, For, If, Run, Statement, unchanged
from remora.model.state import compensated_sum, integrate
from remora.simulation.program.run_blocks import RunBlocks, wide_run


def stages(
    blocks: RunBlocks, rates: Sequence[str], additional: Sequence[Statement]
) -> list[Statement]:
    """Return the statements of all stages, from `t` over `length`, with a cell for each rate.

    Reads `fresh`: without it, the first stage is the last one of the step before.

    Args:
        blocks: the blocks of the run; their tableau is the method.
        rates: cells of the rates: of the stages, at the end of the step, and of the additional
            stages for dense output.
        additional: statements that decide whether an additional stage is evaluated: they set `use`.
    """
    tableau, width = blocks.tableau, len(rates)
    count, size = len(tableau.b), blocks.size
    weights = np.zeros((width, width))
    weights[:count, :count], weights[count, :count] = tableau.a, tableau.b
    weights[count + 1 :] = tableau.dense_a[: width - count - 1, :width]
    c = np.array([*tableau.c, 1.0, *tableau.dense_c])[:width]
    rows = np.concatenate([c[:, None], _inward(blocks, c)[:, None], np.eye(width)], axis=1)

    def begin(fresh: Array, row: Array) -> tuple[Array, ...]:
        chosen = [row[2 + i : 3 + i] for i in range(width)]
        return (select(less(0.5, chosen[0]), fresh, 1.0), *chosen)

    def change_of(i: int) -> Run:
        used: list[int] = np.flatnonzero(weights[i]).tolist()

        def change(length: Array, *K: Array) -> Array:
            return length * weighted(weights[i][used], K) if K else np.zeros(size)

        reads = ("length", *(rates[k] for k in used))
        to = ("change", "moved") if i == count else ("moved",)

        def last(length: Array, *K: Array) -> tuple[Array, Array]:
            return change(length, *K), change(length, *K)

        return Run(Block(last if i == count else change, reads, to, each=bool(used)))

    flags = [f"at {i}" for i in range(width)]
    stage: list[Statement] = [
        *([blocks.stage_times("t", "length", "row", 0)] if blocks.timed else []),
        wide_run(begin, ("fresh", "row"), ("use", *flags)),
        *additional,
        *(If(flag, [change_of(i)]) for i, flag in enumerate(flags)),
        Run(Block(functools.partial(_placed, blocks), ("q", "v", "x", "moved"), _PLACED)),
        *blocks.held_stage(),
        # the first stage is the last one of the step before, unless something has changed
        If("use", [
            *blocks.evaluate(),
            *(If(flag, [Run(Block(unchanged, ("k",), (rates[i],)))])
              for i, flag in enumerate(flags)),
        ]),
    ]  # fmt: skip
    return [For(rows, stage)]


def chained_stages(blocks: RunBlocks, t: str, h: str) -> list[Statement]:
    """Return the statements of the stages of a method in which each needs the last rate only.

    Args:
        blocks: the blocks of the run; their tableau is the method.
        t: name of the wide time at the start of the step.
        h: name of the step size, a wide number.
    """
    tableau, count = blocks.tableau, len(blocks.tableau.b)
    below = np.array([tableau.a[i, i - 1] if i else 0.0 for i in range(count)])
    assert np.array_equal(np.diag(below[1:], -1), tableau.a), "each stage needs the last only"
    before = np.concatenate([[0.0], tableau.b[:-1]])
    #: Weight of the last rate in the stage and in the change; c; offset from the ends of the step.
    rows = np.stack([below, before, tableau.c, _inward(blocks, tableau.c)], axis=1)
    last = float(tableau.b[-1])

    def chained(
        q: Array, v: Array, x: Array, k: Array, change: Array, h: Array, row: Array
    ) -> tuple[Array, ...]:
        ahead, weight = row[:1] * h, row[1:2] * h
        return change + weight * k, *_placed(blocks, q, v, x, ahead * k)

    def zero() -> Array:
        return np.zeros(blocks.size)

    def total(k: Array, change: Array, h: Array) -> Array:
        return change + last * h * k

    stage: list[Statement] = [
        *([blocks.stage_times(t, h, "row", 2)] if blocks.timed else []),
        Run(Block(chained, ("q", "v", "x", "k", "change", h, "row"), ("change", *_PLACED))),
        *blocks.held_stage(),
        *blocks.evaluate(),
    ]
    begin = Run(Block(zero, (), ("change",)))
    return [begin, For(rows, stage), Run(Block(total, ("k", "change", h), ("change",)))]


#: What `_placed` returns.
_PLACED = ("qs", "us", "vs", "xs")


def _placed(blocks: RunBlocks, q: Array, v: Array, x: Array, dy: Array) -> tuple[Array, ...]:
    """Return q, u, v and x of a stage, after a change of y."""
    robot, nv, nx = blocks.equations.robot, blocks.equations.robot.nv, blocks.equations.system.nx
    us, vs, xs = dy[:nv], v + dy[nv : 2 * nv], x + dy[2 * nv : 2 * nv + nx]
    return integrate(robot, q, us), us, vs, xs


def _inward(blocks: RunBlocks, c: Array) -> Array:
    """Return how far inside the ends of a step loads are evaluated, relative to time."""
    return blocks.nudge * np.where(c == 0.0, 1.0, np.where(c == 1.0, -1.0, 0.0))


def weighted(weights: Array, K: Sequence[Array]) -> Array:
    """Return Σ wᵢ Kᵢ over as many rates as there are weights."""
    total = weights[:1] * K[0]
    for i in range(1, len(weights)):
        total = total + weights[i : i + 1] * K[i]
    return total


def add_change(blocks: RunBlocks, suffix: str = "") -> Run:
    """Return the statement that adds `change` to the state, by compensated (Kahan) sums.

    Args:
        blocks: the blocks of the run.
        suffix: of the names of what it writes.
    """
    robot, names = blocks.equations.robot, [s.name for s in blocks.summed]
    rests = [f"rest {name}" for name in names]

    def added(change: Array, *state: Array) -> tuple[Array, ...]:
        return compensated_sum(robot, change, state[: len(names)], state[len(names) :])

    ends = [f"{name}{suffix}" for name in (*names, *rests)]
    return Run(Block(added, ("change", *names, *rests), ends))
