"""Compiled assemblies: the kernels of the modules, called in sequence without retracing.

Every distinct module (a robot, its mounting and the points it is used with) is traced and compiled
once, separately; equal modules share their kernels, in the process and in the cache on disk. An
assembly only makes a table of calls, in which modules exchange motions and articulated-body
inertias through memory. A changed assembly compiles the modules that changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import (
    Array,
    ArrayLike,
    asarray,
    concatenate,
    is_symbolic,
    refuse_other_arrays,
)
from remora.codegen.kernel import Kernel
from remora.codegen.llvm.fast_call import address
from remora.codegen.llvm.kernel_sequence import ArrayPlace, KernelSequence
from remora.dynamics.assembly.module_functions import (
    LOAD,
    ModulePass,
    forward_passes,
    inverse_passes,
)
from remora.dynamics.assembly.module_kernels import Passes, module_kernel
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.joint_arrays import batch_shape
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.dynamics.refusals import refuse_mimic_joints
from remora.errors import RemoraError, ShapeError
from remora.identity.table import Table
from remora.model.robot import Frame

#: Scratch memory of a chunk, bytes: a part of the second-level cache (fastest of 32 kB to 1 MB).
_CACHE = 160 * 1024
#: States in a chunk: at least a vector register's lanes, at most what a loop overhead needs.
_SMALLEST, _LARGEST = 8, 512


class CompiledAssembly:
    """The dynamics of an assembly as machine code; all its parts must be robots.

    `inverse_dynamics(q, v, vdot)` and `forward_dynamics(q, v, tau)` take arrays of any batch shape.
    Values are not checked: NaN in, NaN out.

    Attributes:
        nq: number of coordinates.
        nv: number of speeds.
        modules: number of distinct modules, each compiled once.
    """

    def __init__(self, parts: Sequence[Part], gravity: Array) -> None:
        """Store the parts; kernels are compiled when first used.

        Args:
            parts: of the assembly.
            gravity: acceleration in the inertial frame, `(3,)`.
        """
        for part in parts:
            if part.module is None:
                what = "a black box" if part.black_box is not None else "not a robot"
                raise RemoraError(
                    f"subsystem {part.name!r} is {what}: only assemblies of robots are compiled"
                )
            if not fits_straight_line(part.module.robot):
                raise RemoraError(
                    f"subsystem {part.name!r} has {part.count} bodies; a module is compiled for at "
                    f"most {LARGEST_STRAIGHT_LINE}: split it (rm.papers.sa24.split_robot)"
                )
        self._parts = tuple(parts)
        self._ground = concatenate([np.zeros(3), -gravity])
        self.nq, self.nv = parts[-1].q.stop, parts[-1].v.stop
        self._successors: list[list[int]] = [[] for _ in parts]
        self._place = [0] * len(parts)  # of a part among its predecessor's successors
        for i, part in enumerate(parts):
            if part.parent >= 0:
                self._place[i] = len(self._successors[part.parent])
                self._successors[part.parent].append(i)
        kinds: dict[tuple[Any, ...], int] = {}
        self._kind = [kinds.setdefault(self._identity(i), len(kinds)) for i in range(len(parts))]
        self.modules = len(kinds)
        self._made: dict[str, KernelSequence] = {}
        self._changes = Table.changes
        self._kernels: list[Kernel] = []  # kept alive: sequences have their addresses

    def _identity(self, i: int) -> tuple[Any, ...]:
        module = self._parts[i].module
        assert module is not None
        points = tuple((f.body, f.placement.tobytes()) for f in self._points(i))
        return id(module.robot), module.ground, points

    def _points(self, i: int) -> list[Frame]:
        """Return the points of a part, one entry per successor."""
        module = self._parts[i].module
        assert module is not None
        return [module.points[self._parts[k].slot] for k in self._successors[i]]

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
        """Return tau `(..., nv)`; see `Assembly.inverse_dynamics`."""
        return self._call("inverse", q, v, vdot)

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """Return vdot `(..., nv)`; see `Assembly.forward_dynamics`."""
        return self._call("forward", q, v, tau)

    def _call(self, which: str, q: ArrayLike, v: ArrayLike, w: ArrayLike) -> Array:
        rows: list[Any] = [q, v, w]
        if not self._fit(rows):
            names = ("q", "v", "tau" if which == "forward" else "vdot")
            sizes = (self.nq, self.nv, self.nv)
            arrays = [_shaped(n, x, s) for n, x, s in zip(names, rows, sizes, strict=True)]
            batch = batch_shape(*arrays)
            rows = [_in_rows(x, batch) for x in arrays]
        if self._changes != Table.changes:  # a row of a table was replaced
            self._made.clear()
            self._changes = Table.changes
        found: Array = np.empty((*rows[0].shape[:-1], self.nv))
        states = math.prod(found.shape[:-1])
        if states and self.nv:
            sequence = self._made.get(which) or self._make(which)
            sequence.run([address(x) for x in (*rows, found)], states)
        return found

    def _fit(self, rows: list[Any]) -> bool:
        """Tell whether arguments can be taken as they are, without the cost of conversions."""
        for x in rows:
            if type(x) is not np.ndarray or x.dtype != np.float64 or not x.flags.c_contiguous:
                return False
        q, v, w = rows
        batch = q.shape[:-1]
        return (
            q.shape == (*batch, self.nq)
            and v.shape == (*batch, self.nv)
            and w.shape == v.shape
            and bool(q.ndim)
        )

    def _make(self, which: str) -> KernelSequence:
        build = {"inverse": self._inverse_steps, "forward": self._forward_steps}[which]
        steps, scratch = build()
        chunk = _CACHE // max(8 * scratch, 1) // _SMALLEST * _SMALLEST
        chunk = int(np.clip(chunk, _SMALLEST, _LARGEST))
        self._made[which] = KernelSequence(steps, scratch, chunk)
        return self._made[which]

    # Sequences -------------------------------------------------------------------------------

    def _forward_steps(self) -> tuple[list[tuple[int, list[ArrayPlace]]], int]:
        for part in self._parts:
            refuse_mimic_joints(part.subsystem, "articulated")
        kernels = self._compiled(forward_passes)
        memory = [
            next((s for n, s in ways["inertias"][1].outputs if n == "memory"), 0)
            if "inertias" in ways
            else 0
            for ways in (kernels[k] for k in self._kind)
        ]
        rooms, scratch = self._rooms({"points": 6, "loads": LOAD, "rates": 6}, {"memory": memory})
        order = range(len(self._parts))
        steps: list[tuple[int, list[ArrayPlace]]] = []
        for name, indices in (
            ("twists", order), ("inertias", reversed(order)), ("accelerations", order),
        ):  # fmt: skip
            steps += self._steps(name, indices, kernels, rooms)
        return steps, scratch

    def _inverse_steps(self) -> tuple[list[tuple[int, list[ArrayPlace]]], int]:
        kernels = self._compiled(inverse_passes)
        own = [6 * part.count if self._successors[i] else 0 for i, part in enumerate(self._parts)]
        rooms, scratch = self._rooms({"points": 12, "loads": 6}, {"own": own})
        order = range(len(self._parts))
        steps = self._steps("motions", order, kernels, rooms)
        return steps + self._steps("wrenches", reversed(order), kernels, rooms), scratch

    def _rooms(
        self, by_point: dict[str, int], others: dict[str, list[int]]
    ) -> tuple[dict[str, list[int]], int]:
        """Return the offset of each part's intermediate arrays, and their total size."""
        rooms: dict[str, list[int]] = {name: [] for name in (*by_point, *others)}
        at = 0
        for i in range(len(self._parts)):
            for name, width in by_point.items():
                rooms[name].append(at)
                at += width * len(self._successors[i])
            for name, sizes in others.items():
                rooms[name].append(at)
                at += sizes[i]
        return rooms, at

    def _steps(
        self,
        name: str,
        indices: Iterable[int],
        kernels: list[dict[str, tuple[Kernel, ModulePass]]],
        rooms: dict[str, list[int]],
    ) -> list[tuple[int, list[ArrayPlace]]]:
        steps: list[tuple[int, list[ArrayPlace]]] = []
        for i in indices:
            ways = kernels[self._kind[i]]
            if name in ways:
                kernel, way = ways[name]
                places = [
                    self._array(i, key, size, rooms) for key, size in (*way.inputs, *way.outputs)
                ]
                steps.append((kernel.chunk_address, places))
        return steps

    def _array(self, i: int, key: str, size: int, rooms: dict[str, list[int]]) -> ArrayPlace:
        """Return where a module finds an array: of the call, its own, or its predecessor's."""
        part = self._parts[i]
        of_call = {
            "q": (1, part.q, self.nq), "v": (2, part.v, self.nv), "tau": (3, part.v, self.nv),
            "vdot": (3, part.v, self.nv), "result": (4, part.v, self.nv),
        }  # fmt: skip
        if key in of_call:
            which, where, stride = of_call[key]
            return ArrayPlace(which, where.start, stride)
        above = {"base_twist": "points", "base_motion": "points", "base_rate": "rates",
                 "felt": "loads"}  # fmt: skip
        if key in above:
            count = len(self._successors[part.parent])
            first = rooms[above[key]][part.parent]
            return ArrayPlace(0, first, size * count, size * self._place[i])
        return ArrayPlace(0, rooms[key][i], size)

    def _compiled(self, passes: Passes) -> list[dict[str, tuple[Kernel, ModulePass]]]:
        """Return the kernels of every distinct module, by the name of the pass."""
        found: list[dict[str, tuple[Kernel, ModulePass]]] = []
        for i, kind in enumerate(self._kind):
            if kind < len(found):
                continue
            module = self._parts[i].module
            assert module is not None
            module = replace(module, points=tuple(self._points(i)))
            ways: dict[str, tuple[Kernel, ModulePass]] = {}
            for way in passes(module, self._ground):
                kernel = module_kernel(module, way, passes, self._ground)
                self._kernels.append(kernel)
                ways[way.name] = kernel, way
            found.append(ways)
        return found


def _shaped(name: str, x: ArrayLike, size: int) -> Array:
    refuse_other_arrays(x, name)
    array = asarray(x)
    if is_symbolic(array):
        raise ShapeError(f"{name} holds symbols; a compiled assembly takes numbers")
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{name} must have shape (..., {size}), not {array.shape}")
    return array


def _in_rows(x: Array, batch: tuple[int, ...]) -> Array:
    return np.require(np.broadcast_to(x, (*batch, x.shape[-1])), np.float64, ["C", "A"])
