"""Instruction scheduling and register allocation for straight-line code on GPUs.

A thread holds values in registers. Every order of the operations that respects their dependencies
computes the same result; the scheduler looks for one with low register pressure, that is with few
live values. If too many remain, values are spilled to memory and reloaded, the one with the
furthest next use first. (The driver's own compiler does far worse on one long basic block.)

On a GPU, operations are cheap and memory accesses expensive. If spilling causes much traffic, the
outputs are computed in several parts that each repeat their common subexpressions.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remora.codegen.ir.graph import CONDITIONS, Graph

#: The driver's compiler fits somewhat more values than there are registers.
_SLACK = 1.4
#: Maximum number of parts for the elements of one output.
_MOST_CHUNKS = 2
_GIVEN = ("input", "const")


class ScheduledOperation(NamedTuple):
    """One step of a thread.

    Attributes:
        what: "do" an operation, "put" (spill) its value, "fetch" (reload) it; an input is fetched
            from the arguments.
        node: index of the operation or input.
        slot: spill slot, -1 for none.
    """

    what: str
    node: int
    slot: int = -1


class SchedulePart(NamedTuple):
    """The steps of a thread for one state.

    Attributes:
        results: the output elements that it computes: (output, element).
        steps: in order.
    """

    results: list[tuple[int, int]]
    steps: list[ScheduledOperation]


class ThreadCost(NamedTuple):
    """Cost model of a thread's memory.

    Attributes:
        registers: number of values that it can hold.
        access: time to spill or reload a value, relative to an operation.
        item: size of a value in bytes.
    """

    registers: int
    access: float
    item: int


def parts(graph: Graph, memory: ThreadCost) -> list[SchedulePart]:
    """Return the steps for a state, in one part if that is cheap enough, otherwise in several."""
    everything = list(_by_columns(graph))
    whole = _part(graph, everything, memory)
    if not accesses(whole):
        return [whole]
    split: list[SchedulePart] = []
    for k in range(len(graph.outputs)):
        own = [place for place in everything if place[0] == k]
        if not own:
            continue
        shared = [
            [_part(graph, chunk, memory) for chunk in _chunks(graph, own, count)]
            for count in range(1, _MOST_CHUNKS + 1)
        ]
        split += min(shared, key=lambda chunks: cost(chunks, memory))
    return min([whole], split, key=lambda chosen: cost(chosen, memory))


def ahead(graph: Graph, first: Sequence[int], memory: ThreadCost) -> SchedulePart:
    """Return one part for all outputs, some of which are computed before the rest.

    Inputs are loaded where they are used, again each time if that is cheaper than keeping them.

    Args:
        graph: the graph.
        first: indices of the outputs that come first.
        memory: cost model.
    """
    everything = list(_by_columns(graph))
    early = needed_for(graph, [graph.results[k][j] for k, j in everything if k in first])
    done = set(early)
    orders = _orders(graph, [graph.results[k][j] for k, j in everything])
    orders = [[*early, *(i for i in order if i not in done)] for order in orders]
    for registers in (int(memory.registers * _SLACK), memory.registers):
        steps = (allocated(graph, order, registers) for order in orders)
        part = SchedulePart(everything, min(steps, key=len))
        if not accesses(part):
            break
    return part


def accesses(part: SchedulePart) -> int:
    """Return the number of spills and reloads."""
    return sum(step.slot >= 0 for step in part.steps)


def slots_of(part: SchedulePart) -> int:
    """Return the number of spill slots."""
    return 1 + max((step.slot for step in part.steps), default=-1)


def cost(chosen: Sequence[SchedulePart], memory: ThreadCost) -> float:
    """Return the cost of some parts in operations; spills beyond the cache size cost more."""
    total = 0.0
    for part in chosen:
        size = memory.item * slots_of(part)
        each = memory.access * math.sqrt(max(1.0, size / 1024))
        total += sum(step.what == "do" for step in part.steps) + each * accesses(part)
    return total


def _by_columns(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield all elements of all outputs, matrices column by column."""
    for k, signature in enumerate(graph.outputs):
        width = signature.shape[-1] if len(signature.shape) > 1 else 1
        for column in range(width):
            yield from ((k, j) for j in range(column, signature.size, width))


def _chunks(
    graph: Graph, places: list[tuple[int, int]], count: int
) -> Iterator[list[tuple[int, int]]]:
    """Yield the elements of an output in `count` groups of columns of about equal work."""
    shape = graph.outputs[places[0][0]].shape
    height = len(places) // shape[-1] if len(shape) > 1 else 1
    columns = [places[k : k + height] for k in range(0, len(places), height)]
    busy = [any(graph.nodes[graph.results[k][j]][0] not in _GIVEN for k, j in c) for c in columns]
    total, done, start = sum(busy), 0, 0
    for number in range(1, count + 1):
        stop = start
        while stop < len(columns) and (number == count or done * count < total * number):
            done += busy[stop]
            stop += 1
        if stop > start:
            yield [place for column in columns[start:stop] for place in column]
        start = stop


def _part(graph: Graph, results: list[tuple[int, int]], memory: ThreadCost) -> SchedulePart:
    """Return the steps that compute some of the outputs, in the best of a few orders.

    If everything fits, all inputs are loaded first, so that their latencies overlap.
    """
    orders = _orders(graph, [graph.results[k][j] for k, j in results])
    orders.sort(key=lambda order: most_alive(graph, order))
    if most_alive(graph, orders[0]) <= memory.registers * _SLACK:
        plain = [ScheduledOperation("do", i) for i in orders[0] if graph.nodes[i][0] != "neg"]
        inputs = dict.fromkeys(k for step in plain for k in _sources(graph, step.node))
        fetched = [ScheduledOperation("fetch", i) for i in inputs if graph.nodes[i][0] == "input"]
        return SchedulePart(results, fetched + plain)
    steps = (allocated(graph, order, memory.registers) for order in orders[:3])
    return SchedulePart(results, min(steps, key=len))


# Registers ---------------------------------------------------------------------------------------


def allocated(graph: Graph, order: Sequence[int], registers: int) -> list[ScheduledOperation]:
    """Return the operations in this order with at most `registers` live values.

    The value with the furthest next use is spilled (Belady), which minimizes the reloads.
    """
    order = [i for i in order if graph.nodes[i][0] != "neg"]
    sources = {i: _sources(graph, i) for i in order}
    uses: dict[int, list[int]] = {}
    for place in reversed(range(len(order))):
        for k in sources[order[place]]:
            uses.setdefault(k, []).append(place)  # the next use is last
    kept: set[int] = set()
    flags: set[int] = set()  # conditions have registers of their own
    slots: dict[int, int] = {}
    free: list[int] = []
    steps: list[ScheduledOperation] = []
    for i in order:
        for k in sources[i]:
            if k not in kept and k not in flags:
                steps.append(ScheduledOperation("fetch", k, slots.get(k, -1)))
                kept.add(k)
        steps.append(ScheduledOperation("do", i))
        for k in sources[i]:
            uses[k].pop()
            if not uses[k]:
                kept.discard(k)
                if k in slots:
                    free.append(slots.pop(k))
        if i in uses and graph.nodes[i][0] in CONDITIONS:
            flags.add(i)
        elif i in uses:
            kept.add(i)
        while len(kept) > registers:
            last: int = max(kept, key=lambda k: (uses[k][-1], k))
            kept.discard(last)
            if graph.nodes[last][0] != "input" and last not in slots:
                slots[last] = free.pop() if free else len(slots)
                steps.append(ScheduledOperation("put", last, slots[last]))
    return steps


def most_alive(graph: Graph, order: Sequence[int]) -> int:
    """Return the maximum number of live values; negation is free."""
    order = [i for i in order if graph.nodes[i][0] != "neg"]
    last: dict[int, int] = {}
    for place, i in enumerate(order):
        for k in _sources(graph, i):
            if graph.nodes[k][0] != "input" and graph.nodes[k][0] not in CONDITIONS:
                last[k] = place
    ends = [0] * len(order)
    for place in last.values():
        ends[place] += 1
    alive = most = 0
    for place, i in enumerate(order):
        alive += (i in last) - ends[place]
        most = max(most, alive)
    return most


def _sources(graph: Graph, i: int) -> list[int]:
    """Return the operands that an operation keeps alive: no constants; negation is free."""
    found: dict[int, None] = {}
    for k in graph.nodes[i][1]:
        k = positive(graph, k)
        if graph.nodes[k][0] != "const":
            found[k] = None
    return list(found)


def positive(graph: Graph, i: int) -> int:
    """Return the node at the start of a chain of negations."""
    while graph.nodes[i][0] == "neg":
        i = graph.nodes[i][1][0]
    return i


# Orders ------------------------------------------------------------------------------------------


def _orders(graph: Graph, wanted: Sequence[int]) -> list[list[int]]:
    """Return a few candidate orders of the operations that some nodes depend on."""
    asked = [needed_for(graph, wanted), _as_wanted(graph, wanted), _as_wanted(graph, wanted[::-1])]
    return [*asked, *(from_the_end(graph, each) for each in asked)]


def needed_for(graph: Graph, wanted: Sequence[int]) -> list[int]:
    """Return the operations that some nodes depend on, in traced order."""
    needed = [False] * len(graph.nodes)
    for i in wanted:
        needed[i] = True
    for i in reversed(range(len(graph.nodes))):
        op, arguments = graph.nodes[i]
        if needed[i] and op not in _GIVEN:
            for k in arguments:
                needed[k] = True
    return [i for i, (op, _) in enumerate(graph.nodes) if needed[i] and op not in _GIVEN]


def from_the_end(graph: Graph, operations: Sequence[int]) -> list[int]:
    """Return the operations in an order built from the last back to the first.

    Among those whose users are all placed, the next one makes the fewest further values live;
    ties are broken by the traced order, last first.
    """
    known = {i: place for place, i in enumerate(operations)}
    arguments = {i: {k for k in graph.nodes[i][1] if k in known} for i in operations}
    users: dict[int, list[int]] = {i: [] for i in operations}
    for i in operations:
        for k in arguments[i]:
            users[k].append(i)
    unplaced = {i: len(users[i]) for i in operations}
    dead = {i: len(arguments[i]) for i in operations}  # arguments that are not live yet
    alive: set[int] = set()

    def cost(i: int) -> tuple[int, int]:
        return dead[i] - (i in alive), -known[i]

    ready = [(*cost(i), i) for i in operations if unplaced[i] == 0]
    heapq.heapify(ready)
    placed: set[int] = set()
    order: list[int] = []
    while ready:
        *stored, i = heapq.heappop(ready)
        if i in placed or tuple(stored) != cost(i):
            continue  # stale heap entry: its cost has changed since
        placed.add(i)
        order.append(i)
        alive.discard(i)
        for k in arguments[i]:
            unplaced[k] -= 1
            if k not in alive:
                alive.add(k)
                for user in users[k]:
                    dead[user] -= 1
                    if unplaced[user] == 0 and user not in placed:
                        heapq.heappush(ready, (*cost(user), user))
            if unplaced[k] == 0:
                heapq.heappush(ready, (*cost(k), k))
    return order[::-1]


def _as_wanted(graph: Graph, wanted: Sequence[int]) -> list[int]:
    """Return the operations in depth-first order of the nodes that need them."""
    seen: set[int] = set()
    order: list[int] = []
    for result in wanted:
        stack = [(result, False)]
        while stack:
            i, ready = stack.pop()
            if i in seen or graph.nodes[i][0] in _GIVEN:
                continue
            if ready:
                seen.add(i)
                order.append(i)
            else:
                stack.append((i, True))
                stack += [(k, False) for k in graph.nodes[i][1] if k not in seen]
    return order
