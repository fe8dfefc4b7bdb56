"""Loops over the items of a tree: what is computed once for each item, item after item.

A straight-line graph of a large tree grows with it. Here a step is a graph of its own, for a sort
of items, and runs once for each item: outward, parents first, with what the parent passed on; or
inward, with the sum of what the children did. What a step leaves at its item, later steps find.
`classes` makes the steps cheap, `rolled` writes them as loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from remora.algebra.namespace import Array
from remora.codegen.ir.graph import Graph, Signature

#: The first inputs of a step's graph: the item's numbers, what was left there, what was received.
NUMBERS, LEFT, RECEIVED = range(3)
ROLES = ("numbers", "left", "received")


@dataclass(frozen=True)
class Sweep:
    """One way through the tree.

    Attributes:
        inward: children before parents; else parents first.
        climbs: neither: from every row of the symmetric output up over all ancestors of its item.
            Each receives six numbers or so from the one below and gives its entries of the row.
            It comes last; where the rows begin, `Loops.rows` says.
        steps: for each sort of item a graph with the inputs `numbers`, `left` (by all sweeps
            before, one after the other), `received` and the item's share of each argument, and
            with the outputs `left`, `passed` and the item's share of the output; before a climb,
            instead, for each of its rows what the climb first receives and the row's own entries.
    """

    inward: bool
    steps: tuple[Graph, ...]
    climbs: bool = False


@dataclass(frozen=True)
class Loops:
    """A computation over a tree.

    Attributes:
        inputs: arrays that go in.
        outputs: arrays that come out.
        parents: of each item, -1 for none.
        sorts: of each item, which of a sweep's graphs is its step.
        numbers: of each item, as its graphs take them.
        places: where an item's share of an array starts, by the array's name.
        sweeps: in order.
        shared: whether items share places in the outputs: then they add up.
        rows: how many rows of the output belong to each item, if it is climbed for.
    """

    inputs: tuple[Signature, ...]
    outputs: tuple[Signature, ...]
    parents: tuple[int, ...]
    sorts: tuple[int, ...]
    numbers: tuple[Array, ...]
    places: dict[str, tuple[int, ...]]
    sweeps: tuple[Sweep, ...]
    shared: bool = False
    rows: tuple[int, ...] = ()
