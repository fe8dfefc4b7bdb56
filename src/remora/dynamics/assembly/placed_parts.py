"""The parts of an assembly in breadth-first order, checked and placed in one state layout.

Subsystems of nested assemblies become parts of the outer one, named `outer/inner`.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.connection import Connection
from remora.dynamics.assembly.robot_module import RobotModule, module_of
from remora.dynamics.assembly.subsystem import Subsystem
from remora.errors import RemoraError, UnknownName
from remora.model.robot import Robot

AnySubsystem: TypeAlias = "Robot | BlackBox | Subsystem"


@dataclass(frozen=True, eq=False)
class Part:
    """A subsystem in its place.

    Attributes:
        name: of the subsystem.
        subsystem: the robot, the black box or the user's object.
        connection: to its predecessor; None for the root.
        parent: index of its predecessor, -1 for the root.
        slot: which of the predecessor's used points it is mounted on.
        points: names of its own connection points that are used, each once.
        module: its recursions, if it is a robot.
        q: slice of its coordinates in the assembly's q.
        v: slice of its speeds in the assembly's v.
        bodies: slice of its bodies among those of all robots.
    """

    name: str
    subsystem: Any
    connection: Connection | None
    parent: int
    slot: int
    points: tuple[str, ...]
    module: RobotModule | None
    q: slice
    v: slice
    bodies: slice

    @property
    def placement(self) -> Array:
        """Pose of its base in the connection point's frame; the identity if its module has it."""
        if self.connection is None or self.module is not None:
            return dual_quaternion.identity()
        return self.connection.placement

    @property
    def black_box(self) -> BlackBox | None:
        """The black box, if it is one."""
        return self.subsystem if isinstance(self.subsystem, BlackBox) else None

    @property
    def count(self) -> int:
        """Number of its joint wrenches: its bodies."""
        return self.bodies.stop - self.bodies.start


class NestedAssembly(Protocol):
    """What nesting reads of an assembly."""

    @property
    def subsystems(self) -> Mapping[str, Any]:
        """Its subsystems by name."""
        ...

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Its connections."""
        ...

    @property
    def root(self) -> str:
        """Name of the root subsystem."""
        ...


def flattened(
    subsystems: Mapping[str, Any], connections: Sequence[Connection]
) -> tuple[dict[str, Any], list[Connection]]:
    """Return subsystems and connections with nested assemblies taken apart.

    A connection to a nested assembly `wing` goes to its root, one from it names a point as
    `arm/tool`: point `tool` of its subsystem `arm`.
    """
    flat: dict[str, Any] = {}
    links: list[Connection] = []
    inner: dict[str, NestedAssembly] = {}
    for name, subsystem in subsystems.items():
        if not _is_assembly(subsystem):
            flat[name] = subsystem
            continue
        inner[name] = subsystem
        flat.update({f"{name}/{part}": item for part, item in subsystem.subsystems.items()})
        for link in subsystem.connections:
            ends = {"child": f"{name}/{link.child}", "parent": f"{name}/{link.parent}"}
            links.append(_changed(link, **ends))
    for link in connections:
        if link.child in inner:
            link = _changed(link, child=f"{link.child}/{inner[link.child].root}")
        if link.parent in inner:
            part, _, point = link.at.rpartition("/")
            if not part:
                raise RemoraError(
                    f"subsystem {link.parent!r} is an assembly; name the connection point of "
                    f"{link.child!r} as 'subsystem/point', not {link.at!r}"
                )
            link = _changed(link, parent=f"{link.parent}/{part}", at=point)
        links.append(link)
    return flat, links


def _is_assembly(subsystem: Any) -> bool:
    return hasattr(subsystem, "parts") and hasattr(subsystem, "connections")


def _changed(link: Connection, **changes: str) -> Connection:
    now: dict[str, Any] = {f.name: getattr(link, f.name) for f in dataclasses.fields(link)}
    now.update(changes)
    return Connection(**now)


def placed(
    subsystems: Mapping[str, AnySubsystem],
    connections: Sequence[Connection],
    before: Mapping[str, Part],
) -> tuple[Part, ...]:
    """Return the parts in breadth-first order [SA24, Algorithm 2].

    Args:
        subsystems: by name.
        connections: one for each subsystem but the root.
        before: parts of another assembly by name, whose modules are reused where nothing changed.
    """
    by_child = _by_child(subsystems, connections)
    order = _breadth_first(subsystems, by_child)
    used: dict[str, list[str]] = {name: [] for name in subsystems}
    for name in order[1:]:
        link = by_child[name]
        if link.at not in used[link.parent]:
            used[link.parent].append(link.at)
    index = {name: i for i, name in enumerate(order)}
    made: dict[tuple[Any, ...], RobotModule] = {}
    parts: list[Part] = []
    nq = nv = nb = 0
    for name in order:
        subsystem, link = subsystems[name], by_child.get(name)
        points = tuple(used[name])
        size = _size(name, subsystem, points, link)
        parts.append(
            Part(
                name, subsystem, link,
                -1 if link is None else index[link.parent],
                0 if link is None else used[link.parent].index(link.at),
                points, _module(name, subsystem, link, points, before.get(name), made),
                slice(nq, nq + size[0]), slice(nv, nv + size[1]), slice(nb, nb + size[2]),
            )
        )  # fmt: skip
        nq, nv, nb = nq + size[0], nv + size[1], nb + size[2]
    return tuple(parts)


def _by_child(
    subsystems: Mapping[str, AnySubsystem], connections: Sequence[Connection]
) -> dict[str, Connection]:
    by_child: dict[str, Connection] = {}
    for link in connections:
        for name in (link.child, link.parent):
            if name not in subsystems:
                raise UnknownName("subsystem", name, subsystems)
        if link.child == link.parent:
            raise RemoraError(f"subsystem {link.child!r} is connected to itself")
        if link.child in by_child:
            raise RemoraError(
                f"subsystem {link.child!r} has two predecessors, "
                f"{by_child[link.child].parent!r} and {link.parent!r}; an assembly is a tree"
            )
        by_child[link.child] = link
    return by_child


def _breadth_first(
    subsystems: Mapping[str, AnySubsystem], by_child: Mapping[str, Connection]
) -> list[str]:
    """Return the names from the root outward; raise on cycles and on several roots."""
    roots = [name for name in subsystems if name not in by_child]
    if len(roots) > 1:
        raise RemoraError(
            f"subsystems {', '.join(map(repr, roots))} have no predecessor; exactly one, the root, "
            "has none: connect the others"
        )
    children: dict[str, list[str]] = {}
    for child, link in by_child.items():
        children.setdefault(link.parent, []).append(child)
    order: list[str] = []
    queue = deque(roots)
    while queue:
        name = queue.popleft()
        order.append(name)
        queue.extend(children.get(name, ()))
    if len(order) < len(subsystems):
        inside = set(order)
        raise RemoraError(
            "subsystems are connected in a cycle: "
            + _cycle(next(n for n in subsystems if n not in inside), by_child)
        )
    return order


def _cycle(start: str, by_child: Mapping[str, Connection]) -> str:
    seen: list[str] = []
    name = start
    while name not in seen:
        seen.append(name)
        name = by_child[name].parent
    return " -> ".join(map(repr, [*seen[seen.index(name) :], name]))


def _size(
    name: str, subsystem: object, points: tuple[str, ...], link: Connection | None
) -> tuple[int, int, int]:
    """Return the numbers of coordinates, speeds and bodies, after checks of type and points."""
    if isinstance(subsystem, Robot):
        return subsystem.nq, subsystem.nv, len(subsystem.bodies)
    if not isinstance(subsystem, (BlackBox, Subsystem)):
        raise RemoraError(
            f"subsystem {name!r} is a {type(subsystem).__name__}; it must be a Robot, an Assembly, "
            "a BlackBox, or have nq, nv, points, point_motions and inverse_dynamics, see "
            "rm.papers.sa24.Subsystem"
        )
    for point in points:
        if point not in subsystem.points:
            raise UnknownName(f"connection point of subsystem {name!r}", point, subsystem.points)
    if link is not None and link.mount is not None:
        raise RemoraError(f"subsystem {name!r} is not a robot; its connection has no mount=")
    if isinstance(subsystem, BlackBox):
        return 0, 0, 0
    return subsystem.nq, subsystem.nv, 0


def _module(
    name: str,
    subsystem: object,
    link: Connection | None,
    points: tuple[str, ...],
    before: Part | None,
    made: dict[tuple[Any, ...], RobotModule],
) -> RobotModule | None:
    """Return the recursions of a robot in its place; equal places of one robot share them."""
    if not isinstance(subsystem, Robot):
        return None
    if (
        before is not None
        and before.subsystem is subsystem
        and before.points == points
        and (before.connection is link or _placed_alike(before.connection, link))
    ):
        return before.module
    mount = None if link is None else link.mount
    placement = dual_quaternion.identity() if link is None else link.placement
    key = (id(subsystem), mount, placement.tobytes(), link is None, points)
    if key not in made:
        made[key] = module_of(name, subsystem, mount, placement, link is None, list(points))
    return made[key]


def _placed_alike(one: Connection | None, other: Connection | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.mount == other.mount and one.placement.tobytes() == other.placement.tobytes()
