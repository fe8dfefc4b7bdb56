"""Constant tables with the memory offsets of every item, read row by row by tree loops."""

from __future__ import annotations

from collections.abc import Sequence
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
    loops = plan.loops
    order = _preorder(loops.parents)
    number = {i: k for k, i in enumerate(order)}
    kind = {i: k for k, own in enumerate(plan.classes) for i in own.members}
    widths = [len(positions) for positions in plan.passed]
    inward = [w for w, sweep in zip(widths, loops.sweeps, strict=True) if sweep.inward]
    zeros = max(inward, default=0)
    slots = [
        _slots(order if not sweep.inward else order[::-1], loops.parents, sweep.inward)
        for sweep in loops.sweeps
    ]
    room = max(
        (s.count * p for s, p, k in zip(slots, widths, plan.kept_at, strict=True) if k is None),
        default=0,
    )
    kept: dict[int, int] = {}
    place = zeros + room
    for i in order:
        kept[i] = place
        place += plan.classes[kind[i]].size
    width_of_climb = loops.sweeps[-1].steps[0].inputs[RECEIVED].size
    begins: dict[int, int] = {}
    for i, count in enumerate(loops.rows):
        begins[i] = place
        place += count * (width_of_climb + count)
    buffer_size = loops.outputs[0].shape[0] if loops.rows else 0
    place += buffer_size
    numbers = np.concatenate([own.table.reshape(-1) for own in plan.classes])
    rows: dict[int, int] = {}
    start = 0
    for own in plan.classes:
        for n, i in enumerate(own.members):
            rows[i] = start + n * own.table.shape[1]
        start += own.table.size
    sweeps: list[dict[str, list[int]]] = []
    for sweep, own, width, kept_at in zip(loops.sweeps, slots, widths, plan.kept_at, strict=True):
        turn = order[::-1] if sweep.inward else order
        columns = {
            "class": [kind[i] for i in turn],
            "numbers": [rows[i] for i in turn],
            "kept": [kept[i] for i in turn],
            "first": [int(own.first[i]) for i in turn],
        }
        if kept_at is None:
            columns["received"] = [
                zeros + width * own.received[i] if i in own.received else 0 for i in turn
            ]
            columns["passed"] = [zeros + width * own.passed.get(i, 0) for i in turn]
        else:
            columns["received"] = [kept.get(loops.parents[i], 0) + kept_at for i in turn]
            columns["passed"] = [kept[i] + kept_at for i in turn]
        for name, places in loops.places.items():
            columns[f"at {name}"] = [places[i] for i in turn]
        if loops.rows:
            columns["rows"] = [begins[i] for i in turn]
            columns["parent"] = [number.get(loops.parents[i], -1) for i in turn]
        sweeps.append(columns)
    climb = _climb(plan, begins, width_of_climb, number)
    return Tables(sweeps, numbers, zeros, climb, width_of_climb, place - buffer_size, place)


def _climb(
    plan: LoopPlan, begins: dict[int, int], width: int, number: dict[int, int]
) -> dict[str, list[int]]:
    """Return the starting point of each row of a climb.

    `row` and `first` entry of its own, of which it has `count`; `own`: offset of the numbers it
    starts with and of these entries; `up`: the ancestor, as a row of the climb's table, or -1.
    """
    columns: dict[str, list[int]] = {name: [] for name in ("row", "first", "count", "own", "up")}
    loops = plan.loops
    for i, count in enumerate(loops.rows):
        start = loops.places["out"][i]
        for k in range(count):
            columns["row"].append(start + k)
            columns["first"].append(start)
            columns["count"].append(count if loops.shared else k + 1)
            columns["own"].append(begins[i] + k * (width + count))
            columns["up"].append(number.get(loops.parents[i], -1))
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
