"""The network of an assembly: what its parts exchange, and in which order, written once.

A part has *passes*: pure functions on flat arrays, one for each sweep. A sweep runs the pass of its
name of every part, from the root outward or from the leaves inward, and carries an array from the
ports of a part to the bases of those mounted there, or back. `evaluate` does that in NumPy, also on
symbols; `compiled_assembly` and `docking.module_network` compile the passes of robots one by one
and run the same sweeps as sequences of kernels, with the arrays in one memory (`ModuleMemory`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, concatenate
from remora.codegen.ir.graph import Signature

#: Numbers of an articulated-body inertia with its bias wrench: the lower triangles of A and C, B
#: and p.
LOAD = 27


class Sweep(NamedTuple):
    """A sweep over the parts.

    Attributes:
        inward: whether it runs from the leaves to the root.
        port: name of the array at the ports of a part, one row per port.
        base: name of the array at the base of those mounted there.
        width: numbers of a row.
    """

    inward: bool
    port: str
    base: str
    width: int


#: The sweeps by name, which is also that of the passes.
SWEEPS = {
    "twists": Sweep(False, "points", "base_twist", 6),
    "inertias": Sweep(True, "loads", "felt", LOAD),
    "accelerations": Sweep(False, "rates", "base_rate", 6),
    "motions": Sweep(False, "points", "base_motion", 12),
    "wrenches": Sweep(True, "loads", "felt", 6),
    "poses": Sweep(False, "poses", "base_pose", 8),
}
#: Sweeps of forward dynamics without speeds, forces and gravity, and what they are otherwise.
AT_REST = {"rest": "inertias", "jumps": "accelerations"}
#: The sweeps of forward and of inverse dynamics, in order.
FORWARD = ("twists", "inertias", "accelerations")
INVERSE = ("motions", "wrenches")
#: The array at a port for each array at a base.
AT_PORT = {sweep.base: sweep.port for sweep in SWEEPS.values()}
#: Arrays of a call, of which each part has its rows.
OF_CALL = ("q", "v", "tau", "vdot", "wrenches", "result")


class ModulePass(NamedTuple):
    """One pass of a part as a function of flat arrays.

    Attributes:
        name: of the pass.
        inputs: names and sizes of its arguments, none of them empty.
        outputs: names and sizes of its results, none of them empty.
        function: of the arguments; returns the results.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    function: Callable[..., tuple[Array, ...]]

    def signatures(self) -> list[Signature]:
        """Return the arguments as a kernel takes them."""
        return [Signature(name, (size,)) for name, size in self.inputs]


def module_pass(
    name: str,
    inputs: Sequence[tuple[str, int]],
    outputs: Sequence[tuple[str, int]],
    function: Callable[[dict[str, Array]], tuple[Array, ...]],
) -> ModulePass:
    """Return a pass without its empty arguments and results.

    Args:
        name: of the pass.
        inputs: names and sizes of its arguments.
        outputs: names and sizes of its results.
        function: of the arguments by name; returns all results.
    """
    kept = tuple(item for item in inputs if item[1])
    empty = {key: np.zeros(0) for key, size in inputs if not size}
    wanted = [k for k, (_, size) in enumerate(outputs) if size]

    def on_arrays(*arrays: Array) -> tuple[Array, ...]:
        named = {key: array for (key, _), array in zip(kept, arrays, strict=True)}
        results = function({**named, **empty})
        return tuple(results[k] for k in wanted)

    return ModulePass(name, kept, tuple(item for item in outputs if item[1]), on_arrays)


class Node(NamedTuple):
    """A part of a network with its arrays.

    Attributes:
        parent: index of the part it is mounted on, -1 for the root.
        slot: index of the port there.
        passes: by name.
        arrays: by name: its rows of the arrays of the call; sweeps add the others.
    """

    parent: int
    slot: int
    passes: Mapping[str, ModulePass]
    arrays: dict[str, Array]


def evaluate(nodes: Sequence[Node], sweeps: Iterable[str]) -> None:
    """Run sweeps over parts in breadth-first order; what several parts load a port with adds up."""
    for name in sweeps:
        sweep = SWEEPS[name]
        loads: list[dict[int, Array]] = [{} for _ in nodes]
        order = range(len(nodes))
        for i in reversed(order) if sweep.inward else order:
            node = nodes[i]
            if sweep.inward and loads[i]:
                ports = [loads[i][slot] for slot in sorted(loads[i])]
                node.arrays[sweep.port] = concatenate(ports)
            elif not sweep.inward and node.parent >= 0:
                at_ports, first = nodes[node.parent].arrays[sweep.port], node.slot * sweep.width
                node.arrays[sweep.base] = at_ports[..., first : first + sweep.width]
            if name in node.passes:
                way = node.passes[name]
                results = way.function(*(node.arrays[key] for key, _ in way.inputs))
                node.arrays.update(
                    (key, x) for (key, _), x in zip(way.outputs, results, strict=True)
                )
            if sweep.inward and node.parent >= 0:
                felt, ports_above = node.arrays[sweep.base], loads[node.parent]
                other = ports_above.get(node.slot)
                ports_above[node.slot] = felt if other is None else other + felt


def rows(x: Array, count: int) -> list[Array]:
    """Return the rows of a flat array."""
    width = x.shape[-1] // count if count else 0
    return [x[..., k * width : (k + 1) * width] for k in range(count)]


def flat(values: Sequence[Array]) -> Array:
    """Return rows as one flat array."""
    return concatenate(list(values)) if values else np.zeros(0)


class ModuleMemory:
    """Places of the arrays that compiled modules exchange, one after the other in one memory.

    Attributes:
        first: place of each array, by module and name.
        sizes: size of each array, likewise.
        size: numbers in the memory.
    """

    def __init__(self, arrays: Iterable[Mapping[str, int]], start: int = 0) -> None:
        """Place the arrays.

        Args:
            arrays: sizes by name, for each module.
            start: place of the first one.
        """
        self.sizes = list(arrays)
        self.first: list[dict[str, int]] = []
        self.size = start
        for sizes in self.sizes:
            first: dict[str, int] = {}
            for name, size in sizes.items():
                first[name] = self.size
                self.size += size
            self.first.append(first)


def exchanged(passes: Iterable[ModulePass]) -> dict[str, int]:
    """Return the arrays of a module that others read or that its later passes read: sizes by name.

    Those at its base belong to what it is mounted on.
    """
    pairs = (item for way in passes for item in (*way.inputs, *way.outputs))
    return {name: size for name, size in pairs if name not in OF_CALL and name not in AT_PORT}
