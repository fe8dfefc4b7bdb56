"""Item classes: specialization of steps for items that share their zeros and ones.

Items of one sort with the same pattern of 0, 1 and -1 in their numbers form a class. Values that
depend on the numbers alone are precomputed. Values equal in all members become constants, the rest
columns of a table. A result that is constant, an input, or stored already is not stored again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import Graph, Node, Signature, interpret
from remora.codegen.tree_loops.loops import LEFT, NUMBERS, RECEIVED, Loops, Sweep

#: Maximum number of classes; more are merged, since each is code to compile.
MOST_CLASSES = 16


@dataclass
class ItemClass:
    """Items with the same steps.

    Attributes:
        sort: sort of its members.
        members: the items.
        ends: whether all of them are leaves of the tree.
        table: the members' numbers, `(members, columns)`.
        steps: for each sweep the graph: `numbers` is a row of the table, `left` indexed by offset
            in an item of this class, `received` and `passed` by position in `LoopPlan.passed`.
        leaves: for each sweep the offsets of the results that it stores at the item.
        size: memory of an item, in numbers.
    """

    sort: int
    members: list[int]
    ends: bool
    table: Array = field(default_factory=lambda: np.zeros((0, 0)))
    steps: list[Graph] = field(default_factory=list[Graph])
    leaves: list[list[int]] = field(default_factory=list[list[int]])
    size: int = 0


@dataclass(frozen=True)
class LoopPlan:
    """Loops with their classes.

    Attributes:
        loops: the loops that were classified.
        classes: all classes.
        passed: for each sweep the numbers that are passed on, as positions in a step's `passed`.
        kept_at: for each sweep the offset in every item at which passed numbers are stored, if
            later sweeps use them; None: they live only until they are received.
    """

    loops: Loops
    classes: list[ItemClass]
    passed: list[list[int]]
    kept_at: list[int | None]


def classed(loops: Loops, most: int = MOST_CLASSES) -> LoopPlan:
    """Return the item classes with their specialized steps."""
    has_children = set(loops.parents)
    hoisted = [[_of_numbers_only(step) for step in sweep.steps] for sweep in loops.sweeps]
    values = _evaluated(loops, hoisted)
    classes = [
        ItemClass(sort, members, all(i not in has_children for i in members))
        for sort, members in _groups(loops, values, has_children, most)
    ]
    same = [_same_positions(sweep) for sweep in loops.sweeps]
    for item_class in classes:
        _specialize(item_class, loops, hoisted, values, same)
    positions = _drop_unused(classes, len(loops.sweeps))
    kept_at = _place(classes, loops.sweeps, positions)
    return LoopPlan(loops, classes, positions, kept_at)


# Numbers ----------------------------------------------------------------------------------------


def _of_numbers_only(step: Graph) -> list[int]:
    """Return the nodes that depend on the item's numbers alone and are used by other nodes."""
    alone: set[int] = set()
    known: set[int] = set()  # these, and constants
    users: set[int] = {i for result in step.results for i in result}
    for i, (op, a) in enumerate(step.nodes):
        if op == "const":
            known.add(i)
        elif a[0] == NUMBERS if op == "input" else known.issuperset(a):
            alone.add(i)
            known.add(i)
        elif op != "input":
            users.update(a)
    return sorted(alone & users)


def _evaluated(loops: Loops, hoisted: list[list[list[int]]]) -> list[Array]:
    """Return for each item the values of its `hoisted` nodes, sweeps concatenated."""
    result: list[Array] = [np.zeros(0)] * len(loops.sorts)
    for sort in range(len(loops.sweeps[0].steps)):
        members = [i for i, other in enumerate(loops.sorts) if other == sort]
        if not members:
            continue
        numbers = np.stack([loops.numbers[i] for i in members])
        columns: list[Array] = []
        for sweep, nodes in zip(loops.sweeps, hoisted, strict=True):
            step = sweep.steps[sort]
            part = Graph(step.inputs, (Signature("values", (len(nodes[sort]),)),), step.nodes)
            part.results = [nodes[sort]]
            part = part.rebuilt(lambda _old, new, op, a, _i: new.op(op, *a))
            rest = [np.zeros(s.shape) for s in step.inputs[1:]]
            columns.append(interpret(part, [numbers, *rest])[0])
        rows: Array = np.concatenate(columns, axis=1)
        for n, i in enumerate(members):
            result[i] = rows[n]
    return result


def _groups(
    loops: Loops, values: list[Array], has_children: set[int], most: int
) -> list[tuple[int, list[int]]]:
    """Return sort and members of each class: equal patterns of 0, 1 and -1, merged if too many."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    for i, (sort, row) in enumerate(zip(loops.sorts, values, strict=True)):
        pattern = np.where(np.isin(row, (-1.0, 0.0, 1.0)), row, 2.0).astype(np.int8)
        key = (sort, pattern.tobytes() + bytes([i in has_children]))
        groups.setdefault(key, []).append(i)
    result = sorted(((sort, group) for (sort, _), group in groups.items()), key=lambda g: len(g[1]))
    while len(result) > most:
        sorts = [sort for sort, _ in result]
        pairs = [k for k, sort in enumerate(sorts) if sort in sorts[:k]]
        if not pairs:
            break
        sort, group = result.pop(pairs[0])
        other = sorts.index(sort)
        result[other] = (sort, result[other][1] + group)
        result.sort(key=lambda g: len(g[1]))
    return [(sort, sorted(group)) for sort, group in result]


def _columns(values: Array) -> tuple[list[tuple[float, Node]], Array]:
    """Return each column as ± a constant or a column of a smaller table, and that table."""
    known: dict[bytes, tuple[float, Node]] = {}
    kept: list[Array] = []
    result: list[tuple[float, Node]] = []
    for column in values.T:
        if np.all(column == column[0]):
            result.append((1.0, ("const", (float(column[0]),))))
            continue
        key = column.tobytes()
        if key not in known:
            known[key] = (1.0, ("input", (NUMBERS, len(kept))))
            known[(-column).tobytes()] = (-1.0, known[key][1])
            kept.append(column)
        result.append(known[key])
    return result, np.stack(kept, axis=1) if kept else np.zeros((len(values), 0))


# Steps ------------------------------------------------------------------------------------------

#: A number as ± a constant or an input.
Known = tuple[float, Node]


def _specialize(
    item_class: ItemClass,
    loops: Loops,
    hoisted: list[list[list[int]]],
    values: list[Array],
    same: list[list[int]],
) -> None:
    """Compute the table and the steps of a class; stored results are numbered in order."""
    columns, item_class.table = _columns(np.stack([values[i] for i in item_class.members]))
    left: list[Known] = []
    count = 0
    for sweep, nodes, positions in zip(loops.sweeps, hoisted, same, strict=True):
        known = dict(zip(nodes[item_class.sort], columns, strict=False))
        columns = columns[len(known) :]

        def given(
            array: int,
            element: int,
            inward: bool = sweep.inward,
            positions: list[int] = positions,
            left: list[Known] = left,
        ) -> Known:
            if array == LEFT:
                return left[element]
            if array == RECEIVED:
                if inward and item_class.ends:
                    return 1.0, ("const", (0.0,))
                return 1.0, ("input", (RECEIVED, positions[element]))
            return 1.0, ("input", (array, element))

        step = _rewritten(sweep.steps[item_class.sort], known, given)
        stored: dict[int, int] = {}
        more: list[Known] = []
        for node in step.results[0]:
            sign, node = _unsigned(step, node)
            op, a = step.nodes[node]
            if op == "const" or (op == "input" and a[0] != RECEIVED):
                more.append((sign, (op, a)))
                continue
            if node not in stored:
                stored[node] = count
                count += 1
            more.append((sign, ("input", (LEFT, stored[node]))))
        left = left + more
        step.results[0] = list(stored)
        item_class.steps.append(step)
        item_class.leaves.append(list(stored.values()))


def _rewritten(step: Graph, known: dict[int, Known], given: Callable[[int, int], Known]) -> Graph:
    """Return a step with known nodes replaced and its inputs mapped by `given`."""
    new = Graph(step.inputs, step.outputs)
    place: dict[int, int] = {}

    def put(value: Known) -> int:
        sign, (op, a) = value
        node = new.const(a[0]) if op == "const" else new.input(*a)
        return node if sign > 0 else new.op("neg", node)

    needed = step.needed()
    for i, (op, a) in enumerate(step.nodes):
        if not needed[i]:
            continue
        if i in known:
            place[i] = put(known[i])
        elif op == "const":
            place[i] = new.const(a[0])
        elif op == "input":
            place[i] = put(given(*a))
        else:
            place[i] = _simplified(new, op, [place[k] for k in a])
    new.results = [[place[i] for i in result] for result in step.results]
    return new.rebuilt(lambda _old, fresh, op, a, _i: fresh.op(op, *a))


def _simplified(g: Graph, op: str, a: list[int]) -> int:
    """Return the node of an operation, simplified as CasADi would with known numbers.

    Signs are moved out of products and sums; x/x is 1 and x (y/x) is y.
    """
    (sa, x), (sb, y) = (_unsigned(g, i) for i in (a[0], a[-1]))
    if op == "div" and a[0] == a[1]:
        return g.const(1.0)
    if op == "mul":
        for factor, other in ((x, y), (y, x)):
            if g.nodes[factor][0] == "div" and g.nodes[factor][1][1] == other:
                product = g.nodes[factor][1][0]
                break
        else:
            product = g.op("mul", x, y)
        return product if sa * sb > 0 else g.op("neg", product)
    if op == "add" and sa < 0 and sb < 0:
        return g.op("neg", g.op("add", x, y))
    if op == "sub" and sa < 0:
        return g.op("neg", g.op("add", x, a[1]))
    return g.op(op, *a)


def _unsigned(g: Graph, i: int) -> tuple[float, int]:
    op, a = g.nodes[i]
    return (-1.0, a[0]) if op == "neg" else (1.0, i)


def _same_positions(sweep: Sweep) -> list[int]:
    """Return for each passed number the first that is always equal, as in a symmetric matrix."""
    passing = [step.results[1] for step in sweep.steps if step.results[1]]
    if not passing:
        return list(range(sweep.steps[0].inputs[RECEIVED].size))
    first: dict[tuple[int, ...], int] = {}
    keys = list(zip(*passing, strict=True))
    for k, key in enumerate(keys):
        first.setdefault(key, k)
    return [first[key] for key in keys]


# Storage ----------------------------------------------------------------------------------------


def _used(step: Graph, array: int) -> set[int]:
    """Return the elements of an input that a step uses."""
    nodes = zip(step.nodes, step.needed(), strict=True)
    return {a[1] for (op, a), needed in nodes if needed and op == "input" and a[0] == array}


def _drop_unused(classes: Sequence[ItemClass], sweeps: int) -> list[list[int]]:
    """Remove unused results from all steps; return the positions that are still passed on."""
    wanted: list[set[int]] = [set() for _ in classes]  # stored results used by later sweeps
    positions: list[list[int]] = [[] for _ in range(sweeps)]
    for s in reversed(range(sweeps)):
        passed = [item_class.steps[s].results[1] for item_class in classes]
        for item_class, later in zip(classes, wanted, strict=True):
            pairs = zip(item_class.steps[s].results[0], item_class.leaves[s], strict=True)
            kept = [(node, place) for node, place in pairs if place in later]
            item_class.steps[s].results[0] = [node for node, _ in kept]
            item_class.leaves[s] = [place for _, place in kept]
        while True:  # numbers that are received only to be passed on are not wanted
            for item_class, nodes in zip(classes, passed, strict=True):
                item_class.steps[s].results[1] = [nodes[k] for k in positions[s]] if nodes else []
            union = set[int]().union(
                *(_used(item_class.steps[s], RECEIVED) for item_class in classes)
            )
            if union == set(positions[s]):
                break
            positions[s] = sorted(union)
        for item_class, later in zip(classes, wanted, strict=True):
            later |= _used(item_class.steps[s], LEFT)
    return positions


def _place(
    classes: Sequence[ItemClass], sweeps: Sequence[Sweep], positions: list[list[int]]
) -> list[int | None]:
    """Assign offsets to stored results; first those passed outward and used later."""
    kept_at: list[int | None] = []
    size = 0
    for s, sweep in enumerate(sweeps):
        both = any(
            set(item_class.steps[s].results[0]) & set(item_class.steps[s].results[1])
            for item_class in classes
        )
        kept_at.append(size if both and not sweep.inward else None)
        size += len(positions[s]) if kept_at[s] is not None else 0
    for item_class in classes:
        item_class.size = size
        places: dict[int, int] = {}
        for s, step in enumerate(item_class.steps):
            leaves = dict(zip(step.results[0], item_class.leaves[s], strict=True))
            start = kept_at[s]
            if start is not None:  # passed numbers are stored there anyway
                for k, node in enumerate(step.results[1]):
                    if node in leaves:
                        places[leaves.pop(node)] = start + k
            for number in leaves.values():
                places[number] = item_class.size
                item_class.size += 1
            step.results[0] = list(leaves)
            item_class.leaves[s] = [places[number] for number in leaves.values()]
            item_class.steps[s] = _renumbered(step, places, positions[s])
    return kept_at


def _renumbered(step: Graph, places: dict[int, int], positions: list[int]) -> Graph:
    """Return a step with stored and received numbers at their final offsets."""

    def given(array: int, element: int) -> Known:
        if array == LEFT:
            element = places[element]
        elif array == RECEIVED:
            element = positions.index(element)
        return 1.0, ("input", (array, element))

    return _rewritten(step, {}, given)
