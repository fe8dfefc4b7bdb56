"""Modules that dock and undock: their kernels in tables whose rows are exchanged when they do.

Every module has its place in one memory, `room`. A sweep runs the kernels of all modules in turn
(`kernel_sequence`), with the function of a dock before or after a docked one. Docking replaces the
rows of one module and runs the rows of those that carry it: articulated-body inertias are computed
along the path to the root only, and nothing is traced or compiled.

An impulse at a dock follows from the same recursion at rest, with jumps of velocity in the place of
accelerations. A module that docks moves by δ relative to the port; with I the articulated-body
inertia of its tree it takes the impulse I (a - δ) for a jump a of the port, so that its new carrier
feels the inertia I and the bias -I δ.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array
from remora.codegen.llvm.fast_call import address
from remora.codegen.llvm.kernel_sequence import ArrayPlace, KernelSequence, entry
from remora.dynamics.assembly.docking.module_order import ModuleOrder, Seat
from remora.dynamics.assembly.docking.module_variants import (
    BASE_Q,
    BASE_V,
    Variant,
    check_module,
    dock_kernel,
    docked,
    floating,
)
from remora.dynamics.assembly.module_passes import unpacked_load
from remora.dynamics.assembly.network import AT_REST, FORWARD, LOAD, SWEEPS, ModuleMemory, Sweep
from remora.dynamics.recursive.articulated_body import inertia_wrench
from remora.model.robot import Robot

#: The function of a dock for each array at the base of a docked module.
_DOCKS = {"base_twist": "motion", "base_rate": "motion", "base_pose": "pose", "felt": "load"}
#: Arrays of a module that can dock, besides those of its passes.
_AT_BASE = {"felt": LOAD, "base_twist": 6, "base_rate": 6, "base_pose": 8, "placement": 8,
            "offset": 6}  # fmt: skip
#: Arrays of a call: the room, then those of the state.
_ROOM, _Q, _V, _TAU, _RESULT = range(1, 6)
#: The sweeps over modules.
_KINDS = (*FORWARD, "poses", *AT_REST)


class Jump(NamedTuple):
    """What an impulse at a dock did.

    Attributes:
        impulse: on the module, [f, τ] in the port's frame, about its origin, `(6,)`.
        energy: kinetic energy gained; negative if lost, J.
    """

    impulse: Array
    energy: float


class _Bases(NamedTuple):
    """Where the numbers of some docked modules' bases are, a row of indices for each.

    Attributes:
        modules: the modules.
        q: of the coordinates, `(n, 8)`.
        v: of the speeds, `(n, 6)`.
        pose: in the room, `(n, 8)`.
        twist: in the room, `(n, 6)`.
        rate: in the room, `(n, 6)`.
    """

    modules: list[int]
    q: Array
    v: Array
    pose: Array
    twist: Array
    rate: Array


class ModuleNetwork:
    """Modules with their state, and who is docked where.

    Attributes:
        names: of the modules.
        q: state, `(nq,)`; coordinates of docked bases are up to date after `synchronize`.
        v: `(nv,)`.
        q_of: slices of q, by module.
        v_of: slices of v, by module.
        order: who is docked where.
        calls: number of kernels of modules that were run.
    """

    def __init__(
        self,
        modules: Mapping[str, Robot],
        ports: Mapping[str, Sequence[str]],
        docking: Iterable[str],
        ground: Array,
    ) -> None:
        """Compile the modules, or take their kernels from the cache, and place them in memory.

        Args:
            modules: by name; all of them are roots.
            ports: names of the points of each that others may dock at.
            docking: names of the modules that may dock.
            ground: minus the acceleration of gravity, `(6,)`.
        """
        self.names, robots = list(modules), list(modules.values())
        self.index = {name: i for i, name in enumerate(self.names)}
        self.ports = [list(ports.get(name, ())) for name in self.names]
        self.order = ModuleOrder(self.names)
        self.calls = 0
        self.q_of, self.v_of = _slices([r.nq for r in robots]), _slices([r.nv for r in robots])
        made: dict[tuple[Any, ...], Variant] = {}
        may_dock = set(docking)
        self._floating: list[Variant] = []
        self._docked: list[Variant | None] = []
        for name, robot, at in zip(self.names, robots, self.ports, strict=True):
            key = (id(robot), *at)
            if key not in made:
                check_module(name, robot)
                made[key] = floating(name, robot, at, ground)
            self._floating.append(made[key])
            key = ("docked", *key)
            if name in may_dock and key not in made:
                made[key] = docked(name, robot, at, ground)
            self._docked.append(made[key] if name in may_dock else None)
        self._base_placements = np.array([robot.joints[0].placement for robot in robots])
        self._ground = ground
        self._allocate()
        count = range(len(self.names))
        self._rows = {kind: [self._row(i, kind) for i in count] for kind in _KINDS}
        self._docks: dict[str, list[Array | None]] = {
            kind: [None for _ in count] for kind in _KINDS
        }
        self._sequences: dict[str, KernelSequence] = {}
        self._bases: _Bases | None = None
        self._resting = False

    def _allocate(self) -> None:
        """Place the arrays of every module, as large as its larger role needs them."""
        arrays: list[dict[str, int]] = []
        for floats, docks in zip(self._floating, self._docked, strict=True):
            sizes = dict(floats.arrays)
            if docks is not None:
                sizes |= {name: max(n, sizes.get(name, 0)) for name, n in docks.arrays.items()}
                sizes |= _AT_BASE
            arrays.append(sizes)
        # first zeros, of which every array that is zero is a part
        self._memory = ModuleMemory(arrays, max(LOAD, *(v.stop - v.start for v in self.v_of)))
        nq, nv = int(self.q_of[-1].stop), int(self.v_of[-1].stop)
        self._room: Array = np.zeros(self._memory.size)
        self.q: Array = np.zeros(nq)
        self.v: Array = np.zeros(nv)
        self._tau: Array = np.zeros(nv)
        self._result: Array = np.zeros(nv)
        of_call = (self._room, self.q, self.v, self._tau, self._result)
        self._call = [address(array) for array in of_call]

    # Rows of the tables ----------------------------------------------------------------------

    def _variant(self, i: int) -> Variant:
        variant = self._floating[i] if self.order.seats[i] is None else self._docked[i]
        assert variant is not None
        return variant

    def _row(self, i: int, kind: str) -> Array | None:
        """Return the entry of a module in the table of a sweep; None if it has nothing to do."""
        variant = self._variant(i)
        if kind not in variant.kernels:
            return None
        kernel, way = variant.kernels[kind]
        skip_q, skip_v = variant.skipped
        q, v = self.q_of[i].start + skip_q, self.v_of[i].start + skip_v
        zero = ArrayPlace(_ROOM, 0, 0)
        of_call = {
            "q": ArrayPlace(_Q, q, 0), "v": ArrayPlace(_V, v, 0), "tau": ArrayPlace(_TAU, v, 0),
            "result": ArrayPlace(_RESULT, v, 0),
        }  # fmt: skip
        if kind in AT_REST:
            of_call |= {"v": zero, "tau": zero, "base_twist": zero}
        names = [name for name, _ in (*way.inputs, *way.outputs)]
        places = [of_call.get(name) or self._place(i, name) for name in names]
        return entry(kernel.chunk_address, places)

    def _dock(self, i: int, kind: str) -> Array:
        """Return the entry of a docked module's dock."""
        sweep, seat = _sweep(kind), self.order.seats[i]
        assert seat is not None
        zero = ArrayPlace(_ROOM, 0, 0)
        at_port = self._place(seat.parent, sweep.port, seat.port * sweep.width)
        placement, base = self._place(i, "placement"), self._place(i, sweep.base)
        offset = self._place(i, "offset") if kind in AT_REST else zero
        push = zero if kind in AT_REST else ArrayPlace(_TAU, self.v_of[i].start, 0)
        dock = _DOCKS[sweep.base]
        places = {
            "motion": [placement, at_port, offset, base],
            "load": [placement, base, push, offset, at_port],
            "pose": [placement, at_port, base],
        }[dock]
        return entry(dock_kernel(dock).chunk_address, places)

    def _place(self, i: int, name: str, column: int = 0) -> ArrayPlace:
        return ArrayPlace(_ROOM, self._memory.first[i][name] + column, 0)

    def _array(self, i: int, name: str) -> Array:
        """Return an array of a module, which may be written."""
        first = self._memory.first[i][name]
        return self._room[first : first + self._memory.sizes[i][name]]

    def _at_port(self, seat: Seat, kind: str) -> Array:
        """Return a row of an array at ports, which may be written."""
        sweep = _sweep(kind)
        row = slice(seat.port * sweep.width, (seat.port + 1) * sweep.width)
        return self._array(seat.parent, sweep.port)[row]

    def _renew(self, i: int) -> None:
        """Replace the rows of a module that docked or undocked."""
        for kind in _KINDS:
            self._rows[kind][i] = self._row(i, kind)
            self._docks[kind][i] = None if self.order.seats[i] is None else self._dock(i, kind)
        self._sequences.clear()
        self._bases = None

    # Sweeps ----------------------------------------------------------------------------------

    def _entries(self, kind: str, modules: Iterable[int]) -> list[Array]:
        rows, docks = self._rows[kind], self._docks[kind]
        pairs = ((rows[i], docks[i]) for i in modules)
        inward = _sweep(kind).inward
        entries = [e for row, dock in pairs for e in ((row, dock) if inward else (dock, row))]
        return [e for e in entries if e is not None]

    def _sweep(self, kind: str, modules: Sequence[int] | None = None) -> None:
        """Run the kernels of all modules, or of some in their order."""
        if modules is None:
            sequence = self._sequences.get(kind)
            if sequence is None:
                order = self.order.everything()
                order = order[::-1] if _sweep(kind).inward else order
                sequence = KernelSequence.of_entries(self._entries(kind, order))
                self._sequences[kind] = sequence
        else:
            sequence = KernelSequence.of_entries(self._entries(kind, modules))
        self.calls += len(self.names) if modules is None else len(modules)
        sequence.run(self._call, 1)

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        """Return vdot `(nv,)`; that of docked bases, which follow their carriers, is zero."""
        self.q[:], self.v[:], self._tau[:] = q, v, tau
        self._resting = False
        for kind in ("twists", "inertias", "accelerations"):
            self._sweep(kind)
        return self._result.copy()

    def accelerations(self, q: Array, v: Array, tau: Array) -> Array:
        """Return vdot `(nv,)` with that of docked bases."""
        vdot, bases = self.forward_dynamics(q, v, tau), self._docked_bases()
        rate = self._room[bases.rate]
        if np.any(self._ground != 0.0):
            self._sweep("poses")
            rate = rate - screw.adjoint_inverse(self._room[bases.pose], self._ground)
        vdot[bases.v] = rate
        return vdot

    def synchronize(self) -> None:
        """Compute the coordinates and speeds of docked bases from those of their carriers."""
        self._sweep("twists")
        self._sweep("poses")
        self._take(self._docked_bases())

    def settle(self, q: Array, v: Array) -> None:
        """Set the state; that of docked bases is not read."""
        self.q[:], self.v[:] = q, v
        self._resting = False
        self.synchronize()

    def settled(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return a state in which docked bases follow their carriers."""
        self.settle(q, v)
        return self.q.copy(), self.v.copy()

    def _docked_bases(self) -> _Bases:
        if self._bases is None:
            self._bases = self._bases_of([i for i, s in enumerate(self.order.seats) if s])
        return self._bases

    def _bases_of(self, modules: Sequence[int]) -> _Bases:
        firsts = [(self.q_of[i].start, self.v_of[i].start, *(self._memory.first[i][name] for name in
                  ("base_pose", "base_twist", "base_rate"))) for i in modules]  # fmt: skip
        starts = np.array(firsts, dtype=int).reshape(-1, 5)
        sizes = (BASE_Q, BASE_V, BASE_Q, BASE_V, BASE_V)
        places = (starts[:, k : k + 1] + np.arange(size) for k, size in enumerate(sizes))
        return _Bases(list(modules), *places)

    def _take(self, bases: _Bases) -> None:
        """Take over the poses and twists that sweeps have computed at docked bases."""
        x = dual_quaternion.conjugate(self._base_placements[bases.modules])
        q = dual_quaternion.mul(x, self._room[bases.pose])
        same = np.sum(q[:, :4] * self.q[bases.q][:, :4], axis=1, keepdims=True) >= 0.0
        self.q[bases.q] = np.where(same, q, -q)
        self.v[bases.v] = self._room[bases.twist]

    def _base(self, i: int) -> tuple[slice, slice]:
        q, v = self.q_of[i].start, self.v_of[i].start
        return slice(q, q + BASE_Q), slice(v, v + BASE_V)

    # Docking ---------------------------------------------------------------------------------

    def port_pose(self, seat: Seat) -> Array:
        """Return the pose of a port in the inertial frame, `(8,)`."""
        self._sweep("poses", self.order.path(seat.parent)[::-1])
        return self._at_port(seat, "poses").copy()

    def base_pose(self, i: int) -> Array:
        """Return the pose of a root module's base body in the inertial frame, `(8,)`."""
        return dual_quaternion.mul(self._base_placements[i], self.q[self._base(i)[0]])

    def placement(self, i: int) -> Array:
        """Return the pose of a docked module's base body in the port's frame, `(8,)`."""
        return self._array(i, "placement").copy()

    def port_twist(self, seat: Seat) -> Array:
        """Return the twist of a port, in its frame, `(6,)`."""
        self._sweep("twists", self.order.path(seat.parent)[::-1])
        return self._at_port(seat, "twists").copy()

    def place(self, i: int, seat: Seat, placement: Array) -> None:
        """Put a root module where it would be docked, with the motion of the port.

        Args:
            i: the module.
            seat: where.
            placement: pose of its base body in the port's frame, `(8,)`.
        """
        pose = dual_quaternion.mul(self.port_pose(seat), placement)
        base_q, base_v = self._base(i)
        x = dual_quaternion.conjugate(self._base_placements[i])
        self.q[base_q] = dual_quaternion.normalize(dual_quaternion.mul(x, pose))
        self.v[base_v] = screw.adjoint_inverse(placement, self.port_twist(seat))

    def rest(self) -> None:
        """Compute the articulated-body inertias of all modules at q, unless they are known."""
        if not self._resting:
            self._sweep("rest")
            self._resting = True

    def dock(self, i: int, seat: Seat, placement: Array) -> Jump:
        """Dock a root module, with the impulse that removes its motion relative to the port.

        Args:
            i: the module.
            seat: where; it must be free.
            placement: pose of its base body in the port's frame, `(8,)`.
        """
        self.rest()
        carried = screw.adjoint_inverse(placement, self.port_twist(seat))
        relative = self.v[self._base(i)[1]] - carried
        self.close(i, seat, placement)
        return self._jump(i, relative)

    def close(self, i: int, seat: Seat, placement: Array) -> None:
        """Dock a root module without an impulse; the arguments are those of `dock`."""
        self.order.dock(i, seat)
        self._array(i, "placement")[:] = placement
        self._result[self._base(i)[1]] = 0.0
        self._renew(i)

    def undock(self, i: int, separation: Array | None = None) -> Jump:
        """Undock a module and what it carries.

        Args:
            i: the module.
            separation: twist of its base body relative to the port after it, in the frame of the
                base body, `(6,)`; None: no impulse.
        """
        self.rest()
        seat = self.order.seats[i]
        assert seat is not None
        push, jump = np.zeros(6), Jump(np.zeros(6), 0.0)
        if separation is not None:
            push = separation
            jump = self._jump(i, -push)
            jump = jump._replace(energy=-jump.energy)  # the relative motion is not lost but made
        path = self.order.path(i)
        for kind in ("twists", "poses"):
            self._sweep(kind, path[::-1])
        self._take(self._bases_of([i]))
        self.v[self._base(i)[1]] += push
        self.order.undock(i)
        self._at_port(seat, "inertias")[:] = 0.0
        self._renew(i)
        self._sweep("rest", [i])
        self._sweep("rest", path[1:])
        return jump

    def _jump(self, i: int, relative: Array) -> Jump:
        """Apply the impulse at a dock that changes the relative motion there by -relative.

        Only inertias from the module to the root of its tree are computed, and jumps of what is in
        the tree.
        """
        path = self.order.path(i)
        if not np.any(relative != 0.0):
            self._sweep("rest", path)
            return Jump(np.zeros(6), 0.0)
        self._array(i, "offset")[:] = relative
        self._sweep("rest", path)
        self._result[:] = 0.0
        self._sweep("jumps", self.order.tree(path[-1]))
        inertia = unpacked_load(self._array(i, "felt"))._replace(p=np.zeros(6))
        impulse = inertia_wrench(inertia, self._array(i, "base_rate"))
        self.v += self._result
        self._result[:] = 0.0
        self._array(i, "offset")[:] = 0.0
        self._sweep("rest", path)
        energy = 0.5 * float(screw.power(relative, impulse))
        return Jump(screw.adjoint(self._array(i, "placement"), impulse), energy)


def _sweep(kind: str) -> Sweep:
    return SWEEPS[AT_REST.get(kind, kind)]


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(ends)]
