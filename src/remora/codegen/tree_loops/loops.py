"""Tree loops: a computation over a tree as sweeps whose step runs once per item.

A straight-line graph grows with the tree. Here a step is a graph of its own for each sort of item.
An outward sweep visits parents first, and a step receives the numbers its parent passed on; an
inward sweep visits children first, and a step receives the sum over its children. Later steps can
read what a step stored at its item. `item_classes` specializes the steps, `loop_lowering` emits the
loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import Graph, Signature

#: First inputs of a step's graph: the item's numbers, values stored at it, values received.
NUMBERS, LEFT, RECEIVED = range(3)
ROLES = ("numbers", "left", "received")


@dataclass(frozen=True)
class Sweep:
    """One traversal of the tree.

    Attributes:
        inward: children before parents; otherwise parents first.
        climbs: neither: from every row of the symmetric output up over all ancestors of its item.
            Each receives about six numbers from the one below and computes its entries of the row.
            It is the last sweep; `Loops.rows` says where the rows begin.
        steps: for each sort of item a graph with the inputs `numbers`, `left` (stored by all
            earlier sweeps, concatenated), `received` and the item's part of each argument, and
            with the outputs `left`, `passed` and the item's part of the output; before a climb,
            instead, for each of its rows the numbers it starts with and the row's own entries.
    """

    inward: bool
    steps: tuple[Graph, ...]
    climbs: bool = False


@dataclass(frozen=True)
class Loops:
    """A computation over a tree.

    Attributes:
        inputs: input arrays.
        outputs: output arrays.
        parents: parent of each item, -1 for none.
        sorts: for each item, the index of its step in a sweep.
        numbers: parameters of each item, as its graphs take them.
        places: offset of an item's part of an array, by the array's name.
        sweeps: in order.
        shared: whether items share elements of the outputs, so that results are added.
        rows: number of output rows of each item, if there is a climb.
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
