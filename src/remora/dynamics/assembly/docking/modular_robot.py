"""`rm.ModularRobot`: robots in one world that dock to each other and undock during a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.connection import Connection
from remora.dynamics.assembly.docking.module_network import ModuleNetwork
from remora.dynamics.assembly.docking.module_order import Seat
from remora.dynamics.assembly.docking.module_variants import check_dockable
from remora.dynamics.assembly.robot_module import point_of
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.combine import combine
from remora.model.constraint import Constraint
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, neutral


class ModularRobot:
    """Modules in one world, some of them docked to others.

    A module is a robot, or a black box, which is known only by the wrench that it reports. To dock,
    a robot needs a base body on one free joint: docked, this body is held by a port of its carrier,
    a body or frame, and the free joint's coordinates and speeds follow. They keep their places in
    the state, which stacks those of the robots: q `(nq,)`, v `(nv,)`, as in `rm.combine`. A port
    carries one module. A black box has no state, docks to a robot without impulse, and carries
    nothing.

    Attributes:
        modules: the robots, by name.
        boxes: the black boxes, by name.
        docks: who is docked at the start: a `Connection` with the port `at` of the parent, the
            frame `mount` of the child (default: its base body) and its pose in the port's frame.
        box_docks: the same of black boxes.
        gravity: `(3,)`, m/s², the same for all modules.
        nq: number of coordinates.
        nv: number of speeds.
    """

    def __init__(
        self,
        modules: Mapping[str, Robot | BlackBox],
        docks: Iterable[Connection | Sequence[Any]] = (),
    ) -> None:
        """Check modules and docks.

        Raises:
            RemoraError: naming the module: one that cannot dock, unknown names, a port that is
                taken, docks in a circle, different gravity.
        """
        boxes = {name: m for name, m in modules.items() if isinstance(m, BlackBox)}
        robots: dict[str, Any] = {name: m for name, m in modules.items() if name not in boxes}
        whole = combine(robots)
        self.modules: Mapping[str, Robot] = MappingProxyType(robots)
        self.boxes: Mapping[str, BlackBox] = MappingProxyType(boxes)
        links = [d if isinstance(d, Connection) else Connection(*d) for d in docks]
        self.docks = tuple(link for link in links if link.child not in boxes)
        self.box_docks = tuple(link for link in links if link.child in boxes)
        self.gravity, self.nq, self.nv = whole.gravity, whole.nq, whole.nv
        starts = np.cumsum([[0, 0], *([r.nq, r.nv] for r in robots.values())], axis=0).tolist()
        self._slices = {
            name: (slice(a[0], b[0]), slice(a[1], b[1]))
            for name, a, b in zip(robots, starts, starts[1:], strict=False)
        }
        for dock in links:
            self.check_dock(dock)
        taken: dict[tuple[str, str], str] = {}
        for dock in links:  # of two robots, the order of modules says more
            other = taken.setdefault((dock.parent, dock.at), dock.child)
            if other != dock.child and (other in boxes or dock.child in boxes):
                raise RemoraError(taken_port(dock, other))
            if dock.child in boxes and sum(link.child == dock.child for link in links) > 1:
                raise RemoraError(f"module {dock.child!r} is docked twice")
        object.__setattr__(self, "_sealed", True)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse changes: modules dock and undock during a run (`rm.simulate_assembly`)."""
        if getattr(self, "_sealed", False):
            raise AttributeError(f"a ModularRobot is immutable; {name!r} cannot be set")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor arguments, for copies and pickles."""
        return ModularRobot, self.identity_parts()

    def identity_parts(self) -> tuple[Any, ...]:
        """Return its identity by value."""
        return {**self.modules, **self.boxes}, (*self.docks, *self.box_docks)

    def __eq__(self, other: object) -> bool:
        """Tell whether two of them have equal modules and docks."""
        if not isinstance(other, ModularRobot):
            return NotImplemented
        own, others = self.identity_parts(), other.identity_parts()
        return list(own[0]) == list(others[0]) and own == others

    def __hash__(self) -> int:
        """Return a hash that equal ones share."""
        return hash((tuple(self.modules), self.docks))

    def q_of(self, module: str) -> slice:
        """Return the slice of a module's coordinates in q."""
        return self._slices[self._known(module)][0]

    def v_of(self, module: str) -> slice:
        """Return the slice of a module's speeds in v."""
        return self._slices[self._known(module)][1]

    def neutral(self) -> Array:
        """Return the configuration `(nq,)` with all joints at zero and docked modules in place."""
        q = concatenate([neutral(robot) for robot in self.modules.values()])
        return self.settle(q, np.zeros(self.nv))[0]

    def settle(self, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """Return a state in which docked modules are where their docks are, and move with them.

        Args:
            q: configuration, `(nq,)`; that of docked bases is not read.
            v: velocity, `(nv,)`.
        """
        network = self.network(q, v)
        return network.q.copy(), network.v.copy()

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """Return vdot `(nv,)`, docked bases included.

        Args:
            q: configuration, `(nq,)`; that of docked bases is not read.
            v: velocity, `(nv,)`.
            tau: generalized forces, `(nv,)`; those on docked bases, [τ, f], act on the body.
        """
        if self.box_docks:
            raise RemoraError(
                f"module {self.box_docks[0].child!r} is a black box: its wrench is known in runs "
                "(rm.simulate_assembly)"
            )
        network = self.network(q, v)
        return network.accelerations(network.q, network.v, finite("tau", tau, self.nv))

    def to_robot(self) -> Robot:
        """Return the modules as one robot, with a fixed constraint for every dock.

        The constraints have the names of the docked modules, bodies and joints those of
        `rm.combine`.
        """
        for name in self.boxes:
            raise RemoraError(f"module {name!r} is a black box: no robot can be made of it")
        docks = {dock.child: dock for dock in self.docks}
        return self.with_docks(docks, docks)

    def with_docks(self, docks: Mapping[str, Connection], closed: Collection[str]) -> Robot:
        """Return the modules as one robot, with a fixed constraint for every dock of a list.

        Args:
            docks: by the name of the constraint.
            closed: names of those that act.
        """
        robot, welds = combine(self.modules), list[Constraint]()
        for name, dock in docks.items():
            port = robot.frame(f"{dock.parent}/{dock.at}")
            mount = robot.frame(f"{dock.child}/{dock.mount or self._base(dock.child)}")
            on_parent = dual_quaternion.mul(port.placement, dock.placement)
            zero, one = np.zeros(()), np.ones(())
            welds.append(
                Constraint(name, "fixed", port.body, mount.body, on_parent, mount.placement,
                           np.zeros((0, 3)), zero, zero, one, zero, name in closed)
            )  # fmt: skip
        return robot.replace(constraints=welds) if welds else robot

    def network(
        self, q: ArrayLike, v: ArrayLike, others: Iterable[Connection] = ()
    ) -> ModuleNetwork:
        """Return the modules with a state and their docks closed, for runs.

        Args:
            q: configuration, `(nq,)`.
            v: velocity, `(nv,)`.
            others: further docks that may be used.
        """
        q, v = finite("q", q, self.nq), finite("v", v, self.nv)
        if q.ndim != 1 or v.ndim != 1:
            raise InvalidValue("one state at a time: q (nq,) and v (nv,)")
        for name, robot in self.modules.items():
            configuration(robot, q[self.q_of(name)])
        ports: dict[str, list[str]] = {name: [] for name in self.modules}
        links = [*self.docks, *others]
        for link in links:
            self.check_dock(link)
            if link.at not in ports[link.parent]:
                ports[link.parent].append(link.at)
        ground = concatenate([np.zeros(3), -self.gravity])
        network = ModuleNetwork(self.modules, ports, [link.child for link in links], ground)
        network.q[:], network.v[:] = q, v
        for link in _parents_first(self.docks):
            i, seat = network.index[link.child], self.seat_in(network, link)
            network.order.check_free(i, seat, link.at)
            network.close(i, seat, self.placement(link))
        network.synchronize()
        return network

    def seat_in(self, network: ModuleNetwork, link: Connection) -> Seat:
        """Return where a connection docks."""
        parent = network.index[link.parent]
        return Seat(parent, network.ports[parent].index(link.at))

    def placement(self, link: Connection) -> Array:
        """Return the pose of a child's base body in the port's frame, `(8,)`."""
        robot = self.modules[link.child]
        mount = point_of(link.child, robot, link.mount or self._base(link.child))
        return dual_quaternion.mul(link.placement, dual_quaternion.conjugate(mount.placement))

    def check_dock(self, link: Connection) -> None:
        """Raise unless a connection names a port, and a frame on the base body of its child."""
        if link.parent in self.boxes:
            raise RemoraError(
                f"module {link.parent!r} is a black box: {link.child!r} cannot dock to it"
            )
        if link.child in self.boxes:
            if link.mount is not None:
                raise RemoraError(f"module {link.child!r} is a black box: its dock has no mount=")
            point_of(link.parent, self.modules[self._known(link.parent)], link.at)
            return
        child, parent = (self.modules[self._known(n)] for n in (link.child, link.parent))
        if link.child == link.parent:
            raise RemoraError(f"module {link.child!r} cannot dock to itself")
        point_of(link.parent, parent, link.at)
        check_dockable(link.child, child)
        mount = point_of(link.child, child, link.mount or self._base(link.child))
        if mount.body != 0:
            raise RemoraError(
                f"module {link.child!r} docks by its base body {child.bodies[0].name!r}; "
                f"{link.mount!r} is on another"
            )

    def _base(self, module: str) -> str:
        return self.modules[module].bodies[0].name

    def _known(self, module: str) -> str:
        if module not in self.modules:
            raise UnknownName("module", module, {**self.modules, **self.boxes})
        return module

    def __repr__(self) -> str:
        """Return the modules and where they are docked."""
        count = len(self.modules) + len(self.boxes)
        lines = [f"ModularRobot: {count} modules, nq={self.nq}, nv={self.nv}"]
        docks = (*self.docks, *self.box_docks)
        at = {dock.child: f"  at {dock.at!r} of {dock.parent!r}" for dock in docks}
        for name, robot in self.modules.items():
            bodies = "1 body" if len(robot.bodies) == 1 else f"{len(robot.bodies)} bodies"
            lines.append(f"  {name} ({bodies}, nv={robot.nv}){at.get(name, '')}")
        lines += [f"  {name} (black box){at.get(name, '')}" for name in self.boxes]
        return "\n".join(lines)


def taken_port(link: Connection, other: str) -> str:
    """Return what is wrong with a dock at a port that another module is docked at."""
    return f"port {link.at!r} of module {link.parent!r} is taken by {other!r}"


def _parents_first(docks: Sequence[Connection]) -> list[Connection]:
    """Return docks so that a module docks before others dock to it; circles stay at the end."""
    left, ordered = list(docks), list[Connection]()
    waiting = {dock.child for dock in docks}
    while left:
        ready = [dock for dock in left if dock.parent not in waiting] or left
        ordered += ready
        waiting -= {dock.child for dock in ready}
        left = [dock for dock in left if dock not in ready]
    return ordered
