"""Changes of a modular robot during a run: modules that dock, undock and are swapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from remora.algebra import dual_quaternion, pose, screw
from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.assembly.connection import Connection
from remora.dynamics.assembly.docking.modular_robot import ModularRobot
from remora.errors import InvalidValue, RemoraError
from remora.model.numbers import finite

#: When a change happens: at a time, s, or at the first tick at which (t, q, v) -> bool is true.
When = float | Callable[[float, Array, Array], bool]
#: Largest distance and angle between the frames of a module that docks without latch, m and rad.
CLOSED = 1e-8


@dataclass(frozen=True, eq=False)
class Attach:
    """A module docks: a rigid capture, with the impulse that its dock transmits.

    Attributes:
        when: time, s, or a condition (t, q, v) -> bool; it happens at the first tick from then on.
        module: the module that docks; a root, with what is docked to it.
        parent: the module that it docks to.
        at: the port of the parent, a body or frame.
        mount: the frame on the module's base body that lies there; default: that body.
        placement: pose of the mount in the port's frame, `(8,)`; the identity by default.
        latch: hold the relative pose of that moment instead; otherwise the frames must coincide to
            1e-8 m and rad.
        place: the module is put there, moving with the port, as one that is taken from a store: no
            impulse.
    """

    when: When
    module: str
    parent: str
    at: str
    mount: str | None = None
    placement: ArrayLike | None = None
    latch: bool = False
    place: bool = False

    def __post_init__(self) -> None:
        """Check what contradicts itself."""
        if self.latch and self.place:
            raise InvalidValue(f"Attach of {self.module!r}: latch=True or place=True, not both")


@dataclass(frozen=True, eq=False)
class Detach:
    """A module undocks, with all modules docked to it.

    Attributes:
        when: see `Attach`.
        module: the module that undocks.
        separation: velocity of its mount relative to the port, in the port's axes, `(3,)`, m/s,
            made by an impulse between both; None: no impulse.
    """

    when: When
    module: str
    separation: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class Swap:
    """A module undocks and another one docks at its port.

    Attributes:
        when: see `Attach`.
        module: the module that undocks.
        by: the module that docks.
        mount: of the new module; see `Attach`.
        placement: see `Attach`.
        latch: see `Attach`.
        place: see `Attach`.
        separation: see `Detach`.
    """

    when: When
    module: str
    by: str
    mount: str | None = None
    placement: ArrayLike | None = None
    latch: bool = False
    place: bool = False
    separation: ArrayLike | None = None


Change = Attach | Detach | Swap


@dataclass(frozen=True, eq=False)
class ModuleChange:
    """What happened when a module docked or undocked.

    Attributes:
        t: time, s.
        module: the module.
        attached: whether it docked.
        parent: the other module.
        at: its port.
        impulse: on the module, [f, τ] in the port's frame, about its origin, `(6,)`, N s, N m s.
        energy_loss: kinetic energy lost when it docked, J.
        separation_work: kinetic energy gained when it undocked, J.
        placement: pose of the mount in the port's frame, `(8,)`.
    """

    t: float
    module: str
    attached: bool
    parent: str
    at: str
    impulse: Array
    energy_loss: float
    separation_work: float
    placement: Array


class Docking:
    """A modular robot during a run, with the docks that are closed.

    Attributes:
        robot: the modular robot.
        network: its modules.
        links: the docks that are closed, by child.
        done: what happened so far.
    """

    def __init__(
        self, robot: ModularRobot, q: ArrayLike, v: ArrayLike, changes: tuple[Change, ...]
    ) -> None:
        """Compile all modules with the ports that docks and changes use."""
        self.robot, self.done = robot, list[ModuleChange]()
        self.network = robot.network(q, v, _used(robot, changes))
        self.links = {dock.child: dock for dock in robot.docks}

    def apply(self, t: float, change: Change) -> None:
        """Make a change."""
        if isinstance(change, Attach):
            link = Connection(
                change.module, change.parent, change.at, change.mount, change.placement
            )
            self._attach(t, link, change)
            return
        seat = self._link(change)
        self._detach(t, change.module, change.separation)
        if isinstance(change, Swap):
            link = Connection(change.by, seat.parent, seat.at, change.mount, change.placement)
            self._attach(t, link, change)

    def _link(self, change: Detach | Swap) -> Connection:
        if change.module not in self.links:
            shown = ", ".join(map(repr, self.links)) or "none"
            raise RemoraError(f"module {change.module!r} is not docked; docked are: {shown}")
        return self.links[change.module]

    def _attach(self, t: float, link: Connection, change: Attach | Swap) -> None:
        network, i = self.network, self.network.index[link.child]
        seat = self.robot.seat_in(network, link)
        network.order.check_free(i, seat, link.at)
        if change.place:
            network.place(i, seat, self.robot.placement(link))
        else:
            there = dual_quaternion.mul(
                dual_quaternion.conjugate(network.port_pose(seat)), network.base_pose(i)
            )
            link = _met(link, self.robot.placement(link), there, change.latch)
        jump = network.dock(i, seat, self.robot.placement(link))
        self.links[link.child] = link
        self.done.append(
            ModuleChange(t, link.child, True, link.parent, link.at, jump.impulse, 0.0 - jump.energy,
                         0.0, link.placement)
        )  # fmt: skip

    def _detach(self, t: float, module: str, separation: ArrayLike | None) -> None:
        link, i = self.links.pop(module), self.network.index[module]
        push = None
        if separation is not None:
            velocity = finite(f"separation of {module!r}", separation, 3)
            moved = np.concatenate([np.zeros(3), velocity])
            push = screw.adjoint_inverse(self.robot.placement(link), moved)
        jump = self.network.undock(i, push)
        self.done.append(
            ModuleChange(t, module, False, link.parent, link.at, jump.impulse, 0.0, jump.energy,
                         link.placement)
        )  # fmt: skip


def _used(robot: ModularRobot, changes: tuple[Change, ...]) -> list[Connection]:
    """Return every dock that changes may close, so that its port is compiled."""
    found: list[Connection] = list(robot.docks)
    for change in changes:
        if isinstance(change, Attach):
            found.append(
                Connection(change.module, change.parent, change.at, change.mount, change.placement)
            )
    swaps = [change for change in changes if isinstance(change, Swap)]
    for _ in swaps:  # a module that was swapped in may be swapped, too
        for swap in swaps:
            ports = {(link.parent, link.at) for link in found if link.child == swap.module}
            known = {(link.parent, link.at) for link in found if link.child == swap.by}
            found += [
                Connection(swap.by, parent, at, swap.mount, swap.placement)
                for parent, at in sorted(ports - known)
            ]
    return found


def _met(link: Connection, nominal: Array, there: Array, latch: bool) -> Connection:
    """Return a dock with the pose that the module has there, if it latches; else check the pose.

    Args:
        link: the dock.
        nominal: pose of the base body in the port's frame that the dock asks for, `(8,)`.
        there: the pose it has.
        latch: whether to take the latter.
    """
    off = dual_quaternion.mul(dual_quaternion.conjugate(nominal), there)
    if latch:
        held = dual_quaternion.normalize(dual_quaternion.mul(nominal, off))
        mount = dual_quaternion.mul(dual_quaternion.conjugate(nominal), link.placement)
        placement = dual_quaternion.normalize(dual_quaternion.mul(held, mount))
        return Connection(link.child, link.parent, link.at, link.mount, placement)
    distance = float(np.linalg.norm(pose.translation(off)))
    angle = 2.0 * float(np.arctan2(np.linalg.norm(off[1:4]), abs(off[0])))
    if max(distance, angle) > CLOSED:
        raise RemoraError(
            f"module {link.child!r} is not where it would dock, at {link.at!r} of {link.parent!r}: "
            f"off by {distance:.3g} m and {angle:.3g} rad; bring its frame there, or say "
            "latch=True to hold the pose of that moment, or place=True to put it there"
        )
    return link
