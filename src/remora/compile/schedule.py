"""In which order GPU threads do the operations of a graph, and which values wait in memory.

A thread keeps values in registers. Every order of a straight line of operations that respects what
depends on what computes the same: one is sought in which few values are alive at once. Where they
still are too many, it is said which are put away and fetched back, and when: those that are needed
last go first. (The driver's own compiler, which sees one long line, does worse than that by far.)
On a GPU operations are cheap and memory is dear. So where that is much traffic, several threads
share a state, each with some of the outputs, and do again what they have in common; and a thread
forgets, at the graph's waist, all that is quickly made again (forward dynamics' derivatives have
one: all goes through the accelerations).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from remora.compile.graph import Graph

#: The driver's compiler finds room for somewhat more values than there are registers.
_SLACK = 1.4
#: A state's outputs are shared by at most so many threads for each array.
_MOST_CHUNKS = 2
_GIVEN = ("input", "const")


class Step(NamedTuple):
    """One thing that a thread does.

    Attributes:
        what: "do" an operation, "put" its value away, "fetch" it back; an input is fetched from
            the arguments. "forget" all values: what follows makes them again.
        node: number of the operation or input.
        slot: place in memory of what is put away, -1 for none.
    """

    what: str
    node: int
    slot: int = -1


class Part(NamedTuple):
    """What one thread does for a state.

    Attributes:
        results: which numbers of which outputs it makes: (output, element).
        steps: in order.
    """

    results: list[tuple[int, int]]
    steps: list[Step]


class Memory(NamedTuple):
    """What a thread has, and what it pays.

    Attributes:
        registers: how many values it can keep.
        access: time to put a value away or to fetch it, over that of an operation.
        item: bytes of a value.
    """

    registers: int
    access: float
    item: int


def parts(graph: Graph, memory: Memory) -> list[Part]:
    """Return what is to be done for a state: by one thread if that is well, else by several."""
    everything = list(_by_columns(graph))
    whole = _part(graph, everything, memory)
    if _cost(whole, memory) == _operations(whole):
        return [whole]
    split: list[Part] = []
    for k in range(len(graph.outputs)):
        own = [place for place in everything if place[0] == k]
        shared = [
            [_part(graph, chunk, memory) for chunk in _chunks(graph, own, count)]
            for count in range(1, _MOST_CHUNKS + 1)
        ]
        split += min(shared, key=lambda chunks: sum(_cost(part, memory) for part in chunks))
    return min([whole], split, key=lambda chosen: sum(_cost(part, memory) for part in chosen))


def _cost(part: Part, memory: Memory) -> float:
    """Return the time of a part in operations; what does not fit into caches is dearer."""
    accesses = sum(step.what == "put" or step.slot >= 0 for step in part.steps)
    size = memory.item * (1 + max((step.slot for step in part.steps), default=-1))
    return _operations(part) + memory.access * accesses * math.sqrt(max(1.0, size / 1024))


def _operations(part: Part) -> int:
    return sum(step.what == "do" for step in part.steps)


def _by_columns(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield all numbers of all outputs, matrices column by column."""
    for k, signature in enumerate(graph.outputs):
        width = signature.shape[-1] if len(signature.shape) > 1 else 1
        for column in range(width):
            yield from ((k, j) for j in range(column, signature.size, width))


def _chunks(
    graph: Graph, places: list[tuple[int, int]], count: int
) -> Iterator[list[tuple[int, int]]]:
    """Yield the numbers of an output in so many groups with about as much to compute."""
    busy = [graph.nodes[graph.results[k][j]][0] not in _GIVEN for k, j in places]
    total, done, start = sum(busy), 0, 0
    for number in range(1, count + 1):
        stop = start
        while stop < len(places) and (number == count or done * count < total * number):
            done += busy[stop]
            stop += 1
        if stop > start:
            yield places[start:stop]
        start = stop


def _part(graph: Graph, results: list[tuple[int, int]], memory: Memory) -> Part:
    """Return the steps that make some of the outputs, in the best way found."""
    wanted = [graph.results[k][j] for k, j in results]
    direct = Part(results, _steps(graph, wanted, {}, memory))
    needed = set(needed_for(graph, wanted))
    marked = dict.fromkeys(positive(graph, i) for i in graph.waist)
    waist = {i: slot for slot, i in enumerate(i for i in marked if i in needed)}
    if not waist or _cost(direct, memory) == _operations(direct):
        return direct
    steps: list[Step] = []
    for step in _steps(graph, list(waist), {}, memory):
        steps.append(step._replace(slot=step.slot + len(waist)) if step.slot >= 0 else step)
        if step.what == "do" and step.node in waist:
            steps.append(Step("put", step.node, waist[step.node]))
    steps.append(Step("forget", -1))
    steps += _steps(graph, wanted, waist, memory)
    return min(direct, Part(results, steps), key=lambda part: _cost(part, memory))


def _steps(
    graph: Graph, wanted: Sequence[int], given: dict[int, int], memory: Memory
) -> list[Step]:
    """Return steps that make some nodes, in the best of a few orders.

    All that is given is fetched first where everything fits: then the loads are under way together.

    Args:
        graph: the graph.
        wanted: what to make.
        given: slots of what is there already.
        memory: what a thread has.
    """
    traced = needed_for(graph, wanted, given)
    orders = [from_the_end(graph, traced), traced]
    order = min(orders, key=lambda each: most_alive(graph, each))
    if most_alive(graph, order) + len(given) <= memory.registers * _SLACK:
        made = [i for i in order if graph.nodes[i][0] != "neg"]
        needed = dict.fromkeys(k for i in made for k in _sources(graph, i))
        known = set(made)
        fetched = [Step("fetch", k, given.get(k, -1)) for k in needed if k not in known]
        return fetched + [Step("do", i) for i in made]
    orders += [_as_wanted(graph, wanted, given), _as_wanted(graph, wanted[::-1], given)]
    steps = (allocated(graph, each, memory.registers, given) for each in orders)
    return min(steps, key=len)


# Registers ---------------------------------------------------------------------------------------


def allocated(
    graph: Graph, order: Sequence[int], registers: int, given: Mapping[int, int] | None = None
) -> list[Step]:
    """Return operations in the given order with at most so many values in registers.

    The value whose next use is furthest away is put away: no choice needs fewer fetches.

    Args:
        graph: the graph.
        order: of the operations.
        registers: how many values they hold.
        given: slots of values that are there already.
    """
    given = given or {}
    order = [i for i in order if graph.nodes[i][0] != "neg"]
    sources = {i: _sources(graph, i) for i in order}
    uses: dict[int, list[int]] = {}
    for place in reversed(range(len(order))):
        for k in sources[order[place]]:
            uses.setdefault(k, []).append(place)  # the next use stands last
    kept: set[int] = set()
    slots: dict[int, int] = {}
    free: list[int] = []
    steps: list[Step] = []
    for i in order:
        for k in sources[i]:
            if k not in kept:
                steps.append(Step("fetch", k, slots.get(k, given.get(k, -1))))
                kept.add(k)
        steps.append(Step("do", i))
        for k in sources[i]:
            uses[k].pop()
            if not uses[k]:
                kept.discard(k)
                if k in slots:
                    free.append(slots.pop(k))
        if i in uses:
            kept.add(i)
        while len(kept) > registers:
            last = max(kept, key=lambda k: (uses[k][-1], k))
            kept.discard(last)
            if graph.nodes[last][0] != "input" and last not in slots and last not in given:
                slots[last] = free.pop() if free else len(given) + len(slots)
                steps.append(Step("put", last, slots[last]))
    return steps


def most_alive(graph: Graph, order: Sequence[int]) -> int:
    """Return how many results of operations are alive at once, at most; negation is free."""
    order = [i for i in order if graph.nodes[i][0] != "neg"]
    last: dict[int, int] = {}
    for place, i in enumerate(order):
        for k in _sources(graph, i):
            if graph.nodes[k][0] != "input":
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
    """Return the values that an operation needs: constants are none, negation is free."""
    found: dict[int, None] = {}
    for k in graph.nodes[i][1]:
        k = positive(graph, k)
        if graph.nodes[k][0] != "const":
            found[k] = None
    return list(found)


def positive(graph: Graph, i: int) -> int:
    """Return the node that a chain of negations starts from."""
    while graph.nodes[i][0] == "neg":
        i = graph.nodes[i][1][0]
    return i


# Orders ------------------------------------------------------------------------------------------


def needed_for(graph: Graph, wanted: Sequence[int], given: Container[int] = ()) -> list[int]:
    """Return the operations that some nodes depend on, but not what is given, as traced."""
    needed = [False] * len(graph.nodes)
    for i in wanted:
        needed[i] = True
    for i in reversed(range(len(graph.nodes))):
        op, arguments = graph.nodes[i]
        if needed[i] and op not in _GIVEN and i not in given:
            for k in arguments:
                needed[k] = True
    return [
        i
        for i, (op, _) in enumerate(graph.nodes)
        if needed[i] and op not in _GIVEN and i not in given
    ]


def from_the_end(graph: Graph, operations: Sequence[int]) -> list[int]:
    """Return the operations in an order made from the last back to the first.

    Of those whose users are all placed, the one is next that makes the fewest further values alive;
    of several, the one that came last in the graph.
    """
    known = set(operations)
    arguments = {i: known.intersection(graph.nodes[i][1]) for i in operations}
    users: dict[int, list[int]] = {i: [] for i in operations}
    for i in operations:
        for k in arguments[i]:
            users[k].append(i)
    unplaced = {i: len(users[i]) for i in operations}
    dead = {i: len(arguments[i]) for i in operations}  # arguments that are not alive yet
    alive: set[int] = set()

    def cost(i: int) -> tuple[int, int]:
        return dead[i] - (i in alive), -i

    ready = [(*cost(i), i) for i in operations if unplaced[i] == 0]
    heapq.heapify(ready)
    placed: set[int] = set()
    order: list[int] = []
    while ready:
        *stored, i = heapq.heappop(ready)
        if i in placed or tuple(stored) != cost(i):
            continue  # its cost has changed since; it stands in the heap once more
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


def _as_wanted(graph: Graph, wanted: Sequence[int], given: Container[int]) -> list[int]:
    """Return the operations as some nodes ask for them, one node after the other.

    Of the arguments of an operation, the one that comes after most others is made first.
    """
    depth: list[int] = []
    for op, a in graph.nodes:
        below: list[int] = [] if op in _GIVEN else [depth[k] for k in a]
        depth.append(1 + max(below, default=-1))
    seen: set[int] = set()
    order: list[int] = []
    for result in wanted:
        stack = [(result, False)]
        while stack:
            i, ready = stack.pop()
            if i in seen or i in given or graph.nodes[i][0] in _GIVEN:
                continue
            if ready:
                seen.add(i)
                order.append(i)
            else:
                stack.append((i, True))
                arguments: list[int] = sorted(set(graph.nodes[i][1]), key=depth.__getitem__)
                stack += [(k, False) for k in arguments if k not in seen]
    return order
