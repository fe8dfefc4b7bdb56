"""Constant tables with the memory offsets of every item, read row by row by tree loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remora.codegen.tree_loops.item_classes import LoopPlan
from remora.codegen.tree_loops.loops import RECEIVED


@dataclass(frozen=True)
class Tables:
    """Offsets in scratch memory, in vectors of lanes.

    Attributes:
        sweeps: for each sweep, columns of numbers by name, one entry per item in its order.
        numbers: the tables of all classes, concatenated.
        zeros: number of leading zeros, for items without input in a class that receives some.
        climb: for each row of a climb its starting point, as columns by name.
        width: how many numbers a climb starts with.
        buffer: offset of the row buffer of the output.
        size: size of the scratch memory without the arguments.
    """

    sweeps: list[dict[str, list[int]]]
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]]
    zeros: int
    climb: dict[str, list[int]]
    width: int
    buffer: int
    size: int


def tables(plan: LoopPlan) -> Tables:
    """Lay out a plan's items and slots: zeros first, then slots, then items."""
    loops, classes = plan.loops, plan.classes
    order = _preorder(loops.parents)
    kind = {i: k for k, c in enumerate(classes) for i in c.members}
    slots = [
        _slots(order[::-1] if sweep.inward else order, loops.parents, sweep.inward)
        for sweep in loops.sweeps
    ]
    zeros, start = _sizes(plan, slots)
    kept, start = _consecutive(order, start, lambda i: classes[kind[i]].size)
    width = loops.sweeps[-1].steps[0].inputs[RECEIVED].size
    count = loops.rows
    begins, start = _consecutive(range(len(count)), start, lambda i: count[i] * (width + count[i]))
    members = [i for c in classes for i in c.members]
    numbers, _ = _consecutive(members, 0, lambda i: classes[kind[i]].table.shape[1])
    places = {"class": kind, "numbers": numbers, "kept": kept}
    if count:
        after = {i: k for k, i in enumerate(order)}
        parent = {i: after.get(p, -1) for i, p in enumerate(loops.parents)}
        places |= {"rows": begins, "parent": parent}
    size = start + (loops.outputs[0].shape[0] if count else 0)
    return Tables(
        [_columns(plan, s, used, order, places, zeros) for s, used in enumerate(slots)],
        np.concatenate([c.table.reshape(-1) for c in classes]), zeros,
        _climb(plan, places, width), width, start, size,
    )  # fmt: skip


def _sizes(plan: LoopPlan, slots: Sequence[_Slots]) -> tuple[int, int]:
    """Return the number of zeros, and of zeros and slots: all sweeps use the same."""
    widths = [len(positions) for positions in plan.passed]
    sweeps = list(zip(widths, plan.loops.sweeps, slots, plan.kept_at, strict=True))
    zeros = max((width for width, sweep, _, _ in sweeps if sweep.inward), default=0)
    rooms = (used.count * width for width, _, used, kept_at in sweeps if kept_at is None)
    return zeros, zeros + max(rooms, default=0)


def _consecutive(
    items: Iterable[int], start: int, size: Callable[[int], int]
) -> tuple[dict[int, int], int]:
    """Return the place of each item, one behind the other, and where they end."""
    places: dict[int, int] = {}
    for i in items:
        places[i] = start
        start += size(i)
    return places, start


def _columns(
    plan: LoopPlan, s: int, slots: _Slots, order: Sequence[int],
    places: Mapping[str, Mapping[int, int]], zeros: int,
) -> dict[str, list[int]]:  # fmt: skip
    """Return the columns of sweep s, items in its order.

    Args:
        plan: the loops and their classes.
        s: index of the sweep.
        slots: slots of its passed numbers.
        order: the items, parents before children.
        places: numbers of the items that are the same in all sweeps, by column.
        zeros: number of leading zeros.
    """
    loops, kept, kept_at = plan.loops, places["kept"], plan.kept_at[s]
    width = len(plan.passed[s])
    turn = order[::-1] if loops.sweeps[s].inward else order
    columns = {name: places[name] for name in ("class", "numbers", "kept")}
    columns["first"] = {i: int(slots.first[i]) for i in turn}
    if kept_at is None:
        columns["received"] = {i: zeros + width * k for i, k in slots.received.items()}
        columns["passed"] = {i: zeros + width * slots.passed.get(i, 0) for i in turn}
    else:
        columns["received"] = {i: kept.get(loops.parents[i], 0) + kept_at for i in turn}
        columns["passed"] = {i: kept[i] + kept_at for i in turn}
    columns |= {f"at {name}": dict(enumerate(at)) for name, at in loops.places.items()}
    columns |= places
    return {name: [column.get(i, 0) for i in turn] for name, column in columns.items()}


def _climb(
    plan: LoopPlan, places: Mapping[str, Mapping[int, int]], width: int
) -> dict[str, list[int]]:
    """Return the starting point of each row of a climb.

    `first`: column of the first of the `count` entries of its diagonal block; `start`: offset of
    the numbers it starts with and of these entries; `up`: the ancestor, as a row of the climb's
    table, or -1.
    """
    columns: dict[str, list[int]] = {name: [] for name in ("row", "first", "count", "start", "up")}
    loops = plan.loops
    for i, count in enumerate(loops.rows):
        start = loops.places["out"][i]
        for k in range(count):
            columns["row"].append(start + k)
            columns["first"].append(start)
            columns["count"].append(count if loops.shared else k + 1)
            columns["start"].append(places["rows"][i] + k * (width + count))
            columns["up"].append(places["parent"][i])
    return columns


@dataclass(frozen=True)
class _Slots:
    """Slots for passed numbers, by item; `first`: whether the slot was empty before."""

    received: dict[int, int]
    passed: dict[int, int]
    first: dict[int, bool]
    count: int


def _slots(order: list[int], parents: Sequence[int], inward: bool) -> _Slots:
    """Assign a slot to passed numbers for as long as an item has yet to receive them."""
    waiting: dict[int, int] = {}  # how many items have yet to receive from an item
    for p in parents:
        waiting[p] = waiting.get(p, 0) + 1
    free: list[int] = []
    held: dict[int, int] = {}
    received: dict[int, int] = {}
    passed: dict[int, int] = {}
    first: dict[int, bool] = {}
    count = 0

    def room() -> int:
        nonlocal count
        if free:
            return free.pop()
        count += 1
        return count - 1

    for i in order:
        source = i if inward else parents[i]
        if source in held:
            received[i] = held[source]
            waiting[source] = 0 if inward else waiting[source] - 1
            if not waiting[source]:  # a step loads before it stores: the slot is free at once
                free.append(held.pop(source))
        target = parents[i] if inward else i
        first[i] = target not in held
        if target >= 0:
            if first[i]:
                held[target] = room()
            passed[i] = held[target]
            if not inward and not waiting.get(i):
                free.append(held.pop(i))
    return _Slots(received, passed, first, count)


def _preorder(parents: Sequence[int]) -> list[int]:
    """Return the items in depth-first order, parents before children."""
    children: dict[int, list[int]] = {}
    for i, p in enumerate(parents):
        children.setdefault(p, []).append(i)
    order: list[int] = []
    stack = children.get(-1, [])[::-1]
    while stack:
        i = stack.pop()
        order.append(i)
        stack += children.get(i, [])[::-1]
    return order
