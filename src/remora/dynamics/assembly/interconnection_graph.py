"""The weighted graph of an assembly and its interconnection matrix A [SA24, eqs. 2-5].

A vertex is a subsystem. A dashed edge carries twists and their rates, a solid edge wrenches; the
weight of a solid edge from j to i is the block A_ij. Everything at body or joint k of a subsystem
stands in the frame of body k, about its origin (SA24 takes centres of mass and the frames of the
preceding links).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array, concatenate, stack
from remora.dynamics.assembly.composition import Arguments, PartLoads
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.robot_module import (
    InverseState,
    RobotModule,
    finish_inverse,
    start_inverse,
)
from remora.dynamics.joint_arrays import with_batch
from remora.dynamics.recursive.outward_pass import BodyMotion
from remora.errors import RemoraError, UnknownName

#: Largest number of subsystems whose matrix is printed.
_SHOWN = 12
#: Largest number of numbers in a dense A.
_DENSE = 50_000_000


@dataclass(frozen=True, eq=False)
class InterconnectionGraph:
    """The weighted graph of an assembly at a state.

    Attributes:
        names: the vertices, in breadth-first order.
        black_boxes: names of those that are black boxes.
        parents: index of the predecessor of each vertex, -1 for the root.
        rows: rows of A of each vertex, one per body.
        blocks: weights of the solid edges: A_ij by (i, j), `(..., n_i, 6)`: wrenches [f, τ] at the
            joints of i due to j; A_ii = W_i(Ξ_i), A_ij = Γ_ji for a successor j.
        twists: weights of the dashed edges by (from, to), `(..., n_i, 12)`: twists and rates at the
            bodies of i; (i, i) is Ξ_ii, (p_i, i) is Ξ_{p_i, i}. Their sum is Ξ_i. Rates contain
            minus the acceleration of gravity, which enters at the root.
    """

    names: tuple[str, ...]
    black_boxes: frozenset[str]
    parents: tuple[int, ...]
    rows: tuple[slice, ...]
    blocks: dict[tuple[int, int], Array]
    twists: dict[tuple[int, int], Array]

    @property
    def A(self) -> Array:
        """The interconnection matrix, `(..., n, s, 6)` [SA24, eq. 4]."""
        n, s = self.rows[-1].stop, len(self.names)
        batch = np.broadcast_shapes(*(block.shape[:-2] for block in self.blocks.values()))
        if n * s * 6 * int(np.prod(batch)) > _DENSE:
            raise RemoraError(f"A of {n} joints and {s} subsystems is large; use graph.blocks")
        zero = np.zeros(6)
        columns: list[Array] = []
        for j in range(s):
            column = [
                self.blocks[i, j][..., k, :] if (i, j) in self.blocks else zero
                for i, rows in enumerate(self.rows)
                for k in range(rows.stop - rows.start)
            ]
            columns.append(stack(column, axis=-2) if column else np.zeros((0, 6)))
        return with_batch(stack(columns, axis=-2), batch, trailing=3)

    @property
    def total(self) -> Array:
        """Γ_total = A 1, the wrenches at all joints, `(..., n, 6)` [SA24, eq. 5]."""
        sums: dict[int, Array] = {}
        for (i, _), block in self.blocks.items():
            sums[i] = block if i not in sums else sums[i] + block
        return concatenate([sums[i] for i in sorted(sums)], trailing=2)

    @property
    def labels(self) -> tuple[str, ...]:
        """Short labels of the vertices: the names where they are short, else 1, 2, ..."""
        if all(len(name) <= 2 for name in self.names):
            return self.names
        return tuple(str(i + 1) for i in range(len(self.names)))

    def of(self, name: str) -> Array:
        """Return Γ_i `(..., n_i, 6)` of one subsystem: the sum of its row of A."""
        if name not in self.names:
            raise UnknownName("subsystem", name, self.names)
        i = self.names.index(name)
        none = np.zeros((self.rows[i].stop - self.rows[i].start, 6))
        return sum((b for (row, _), b in self.blocks.items() if row == i), start=none)

    def plot(self, **options: Any) -> Any:
        """Return a matplotlib Figure of the graph, as SA24's Figures 3, 4 and 7.

        Args:
            **options: `title`, and `size` of the figure in inches.
        """
        # Figures are above dynamics, so the function is imported at the call.
        draw = importlib.import_module("remora.viewer.figures.interconnection_figure")
        return draw.interconnection_figure(self, **options)

    def __str__(self) -> str:
        """Return the vertices and the pattern of A."""
        s, n = len(self.names), self.rows[-1].stop
        lines = [f"graph of {s} subsystems, {n} joints; Γ_total = A 1"]
        if s > _SHOWN:
            return lines[0] + f"; {len(self.blocks)} blocks of A are not zero"
        kinds = [(" (black box)" if name in self.black_boxes else "") for name in self.names]
        if self.labels != self.names or self.black_boxes:
            lines += [
                f"  {label}: {name}{kind}"
                for label, name, kind in zip(self.labels, self.names, kinds, strict=True)
            ]
        cells = [
            [self._cell(i, j) for j in range(s)]
            for i in range(s)
            if self.names[i] not in self.black_boxes
        ]
        width = max((len(cell) for row in cells for cell in row), default=1)
        for k, row in enumerate(cells):
            head = "A = [" if k == 0 else "    ["
            lines.append(head + "  ".join(cell.ljust(width) for cell in row).rstrip() + "]")
        return "\n".join(lines)

    def _cell(self, i: int, j: int) -> str:
        if (i, j) not in self.blocks:
            return "0"
        return f"W{self.labels[i]}" if i == j else f"Γ{self.labels[j]},{self.labels[i]}"


def interconnection_graph(
    parts: Sequence[Part], loads: Sequence[PartLoads], arguments: Arguments
) -> InterconnectionGraph:
    """Return the graph of an assembly from its inverse dynamics."""
    blocks: dict[tuple[int, int], Array] = {}
    twists: dict[tuple[int, int], Array] = {}
    states: dict[int, InverseState] = {}
    for i, (part, load) in enumerate(zip(parts, loads, strict=True)):
        module = part.module
        if module is None:
            if part.black_box is None:
                raise RemoraError(
                    f"subsystem {part.name!r} ({type(part.subsystem).__name__}) does not return "
                    "the wrenches at its joints; the graph needs robots and black boxes"
                )
            continue
        q, v, vdot, wrenches = arguments.of(part)
        motion = load.motion or arguments.ground
        state = states[i] = start_inverse(module, q, v, vdot, motion, wrenches)
        alone, _ = finish_inverse(module, state, [None] * len(part.points))
        blocks[i, i] = _rows([joint.W for joint in alone], arguments.batch)
        total = [concatenate([m.twist, m.rate]) for m in state.motions]
        if load.motion is None:
            twists[i, i] = _rows(total, arguments.batch)
            continue
        carried = _carried(module, state, load.motion)
        twists[part.parent, i] = _rows(carried, arguments.batch)
        added = [a - b for a, b in zip(total, carried, strict=True)]
        twists[i, i] = _rows(added, arguments.batch)
    for j, (part, load) in enumerate(zip(parts, loads, strict=True)):
        above = None if part.parent < 0 else parts[part.parent]
        if above is None or above.module is None or load.base is None:
            continue
        felt = _transmitted(above.module, states[part.parent], part.slot, load.base)
        blocks[part.parent, j] = _rows(felt, arguments.batch)
    return InterconnectionGraph(
        tuple(part.name for part in parts),
        frozenset(part.name for part in parts if part.black_box is not None),
        tuple(part.parent for part in parts),
        tuple(part.bodies for part in parts),
        blocks,
        twists,
    )


def _rows(values: list[Array], batch: tuple[int, ...]) -> Array:
    return with_batch(stack(values, axis=-2), batch, trailing=2)


def _transmitted(module: RobotModule, state: InverseState, slot: int, load: Array) -> list[Array]:
    """Return Γ_ji: the wrench at a point at every joint, zero beyond the point [SA24, eq. 8]."""
    frame = module.points[slot]
    felt: list[Array] = [np.zeros(6)] * len(module.joints)
    W, body = screw.to_outer(screw.transform(frame.placement), load), frame.body
    while body >= 0:
        felt[body] = W
        W, body = screw.to_outer(state.bodies[body].X, W), module.robot.joints[body].parent
    return felt


def _carried(module: RobotModule, state: InverseState, base: BodyMotion) -> list[Array]:
    """Return Ξ_{p_i, i}: the base's twist and its rate at every body [SA24, eqs. 6, 7]."""
    carried: list[BodyMotion] = []
    for joint, at, body in zip(module.robot.joints, state.contexts, state.bodies, strict=True):
        before = base if joint.parent < 0 else carried[joint.parent]
        relative = vector.apply(body.S, at.v[..., joint.v])
        twist = screw.to_inner(body.X, before.twist)
        rate = screw.to_inner(body.X, before.rate) - screw.cross(relative, twist)
        carried.append(BodyMotion(twist, rate))
    return [concatenate([motion.twist, motion.rate]) for motion in carried]
