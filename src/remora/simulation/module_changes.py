"""Changes of a modular robot during a run: modules that dock, undock and are swapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from remora.algebra import dual_quaternion, pose, screw
from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.assembly.connection import Connection
from remora.dynamics.assembly.docking.modular_robot import ModularRobot, taken_port
from remora.dynamics.momentum import kinetic_energy, potential_energy
from remora.errors import InvalidValue, RemoraError
from remora.model.arguments import number
from remora.model.combine import combine
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.simulation.docked_boxes import DockedBoxes
from remora.simulation.program.phase_entry import CLOSED
from remora.simulation.recording.constraint_switch import ConstraintSwitch

#: When a change happens: at a time, s, or at the first tick at which (t, q, v) -> bool is true.
When = float | Callable[[float, Array, Array], bool]


@dataclass(frozen=True, eq=False)
class Attach:
    """A module docks: a rigid capture, with the impulse that its dock transmits.

    Attributes:
        when: time, s, or a condition (t, q, v) -> bool; it happens at the first tick from then on.
        module: the module that docks; a root, with what is docked to it; or a black box, which
            docks without impulse and takes no `mount`, `latch` or `place`.
        parent: the module that it docks to.
        at: the port of the parent, a body or frame.
        mount: the frame on the module's base body that lies there; default: that body.
        placement: pose of the mount in the port's frame, `(8,)`; the identity by default.
        latch: hold the relative pose at that moment instead; otherwise the frames must coincide, as
            those of a constraint that is switched on.
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
        """Check what does not depend on a robot."""
        _check(self)


@dataclass(frozen=True, eq=False)
class Detach:
    """A module undocks, with all modules docked to it.

    Attributes:
        when: see `Attach`.
        module: the module that undocks.
        separation: velocity of its mount relative to the port, in the port's axes, `(3,)`, m/s,
            made by an impulse between both; None: no impulse. Not of black boxes.
    """

    when: When
    module: str
    separation: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Check what does not depend on a robot."""
        _check(self)


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

    def __post_init__(self) -> None:
        """Check what does not depend on a robot."""
        _check(self)


Change = Attach | Detach | Swap


def _check(change: Change) -> None:
    what = f"{type(change).__name__} of {change.module!r}"
    if not callable(change.when):
        number(f"{what}: when", change.when, "2.5, in s, or a function (t, q, v) -> bool")
    if not isinstance(change, Detach) and change.latch and change.place:
        raise InvalidValue(f"{what}: latch=True or place=True, not both")


class Docking:
    """A modular robot during a run, with the docks that are closed.

    Attributes:
        robot: the modular robot.
        network: its modules.
        changes: that may happen.
        links: the docks that are closed, by child.
        switches: what happened so far.
        placing: by phase, energy that modules gained when they were placed, J.
        boxes: the black boxes.
    """

    def __init__(
        self, robot: ModularRobot, q: ArrayLike, v: ArrayLike, changes: tuple[Change, ...],
        start: float,
    ) -> None:  # fmt: skip
        """Compile all modules with the ports that docks and changes use."""
        self.robot, self.changes = robot, changes
        self.boxes = DockedBoxes(robot, start)
        self.network = robot.network(q, v, _used(robot, changes))
        self.links = {dock.child: dock for dock in robot.docks}
        self.switches: list[ConstraintSwitch] = []
        self.placing: dict[int, float] = {}
        self._changed: set[int] = set()
        #: Every dock that was closed, by the name of its constraint.
        self._docks = {dock.child: dock for dock in robot.docks}
        self._names = {dock.child: dock.child for dock in robot.docks}

    def whole(self) -> Robot:
        """Return the robot of the recording: every dock is a constraint, on if it was at first."""
        return self.robot.with_docks(self._docks, [dock.child for dock in self.robot.docks])

    def _energy(self) -> float:
        """Return the kinetic and potential energy of all modules, J."""
        self.network.synchronize()
        robot, q, v = combine(self.robot.modules), self.network.q, self.network.v
        return float(kinetic_energy(robot, q, v) + potential_energy(robot, q))

    def switched(self, phase: int) -> bool:
        """Tell whether a dock was closed or opened at the start of a phase."""
        return phase in self._changed

    def apply(self, t: float, phase: int, change: Change) -> None:
        """Make a change, at the start of a phase."""
        self._changed.add(phase)
        if isinstance(change, Attach):
            link = Connection(
                change.module, change.parent, change.at, change.mount, change.placement
            )
            self._attach(t, phase, link, change)
            return
        docked = {**self.links, **self.boxes.links}
        if change.module not in docked:
            shown = ", ".join(map(repr, docked)) or "none"
            raise RemoraError(f"module {change.module!r} is not docked; docked are: {shown}")
        seat = docked[change.module]
        self._detach(t, phase, change.module, change.separation)
        if isinstance(change, Swap):
            link = Connection(change.by, seat.parent, seat.at, change.mount, change.placement)
            self._attach(t, phase, link, change)

    def _attach_box(self, link: Connection, change: Attach | Swap) -> None:
        if change.latch or change.place:
            raise RemoraError(
                f"module {link.child!r} is a black box, whose motion is not known: it docks "
                "without latch and place"
            )
        for other in self.links.values():
            if (other.parent, other.at) == (link.parent, link.at):
                raise RemoraError(taken_port(link, other.child))
        self.boxes.dock(link)

    def _attach(self, t: float, phase: int, link: Connection, change: Attach | Swap) -> None:
        if link.child in self.robot.boxes:
            self._attach_box(link, change)
            return
        self.boxes.refuse_taken(link)
        network, i = self.network, self.network.index[link.child]
        seat, nominal = self.robot.seat_in(network, link), self.robot.placement(link)
        network.order.check_free(i, seat, link.at)
        held = nominal
        if change.place:
            before = self._energy()
            network.place(i, seat, nominal)
            self.placing[phase] = self.placing.get(phase, 0.0) + self._energy() - before
        else:
            there = dual_quaternion.mul(
                dual_quaternion.conjugate(network.port_pose(seat)), network.base_pose(i)
            )
            if change.latch:
                held = dual_quaternion.normalize(there)
            else:
                _refuse_open(link, nominal, there)
        jump, name = network.dock(i, seat, held), self._named(link)
        self.links[link.child], self._names[link.child] = link, name
        latched: dict[str, dict[str, Array]] = {}
        if change.latch or any(name in switch.latched for switch in self.switches):
            mount = dual_quaternion.mul(dual_quaternion.conjugate(held), link.placement)
            latched[name] = {"child_placement": dual_quaternion.normalize(mount)}
        impulse = screw.adjoint_inverse(link.placement, jump.impulse)
        self.switches.append(
            ConstraintSwitch(
                t, phase, (name,), (), {name: impulse}, 0.0 - jump.energy, 0.0, latched
            )
        )

    def _detach(self, t: float, phase: int, module: str, separation: ArrayLike | None) -> None:
        if module in self.boxes.links:
            if separation is not None:
                raise RemoraError(
                    f"module {module!r} is a black box, whose mass is not known: it undocks "
                    "without separation"
                )
            self.boxes.undock(module, t)
            return
        link, name, i = self.links.pop(module), self._names[module], self.network.index[module]
        push = None
        if separation is not None:
            velocity = finite(f"separation of {module!r}", separation, 3)
            moved = np.concatenate([np.zeros(3), velocity])
            push = screw.adjoint_inverse(self.network.placement(i), moved)
        jump = self.network.undock(i, push)
        impulse = screw.adjoint_inverse(link.placement, jump.impulse)
        self.switches.append(
            ConstraintSwitch(t, phase, (), (name,), {name: impulse}, 0.0, jump.energy)
        )

    def _named(self, link: Connection) -> str:
        """Return the name of a dock's constraint: the module's, with its place if it has others."""
        places = f"{link.child}@{link.parent}/{link.at}", link.mount or "base"
        for name in (link.child, places[0], ":".join(places)):
            known = self._docks.setdefault(name, link)
            if known == link:
                return name
        raise RemoraError(f"module {link.child!r} docks at {link.at!r} in two different places")


def _used(robot: ModularRobot, changes: tuple[Change, ...]) -> list[Connection]:
    """Return every dock that changes may close, so that its port is compiled."""
    docks: list[Connection] = [*robot.docks, *robot.box_docks]
    for change in changes:
        if isinstance(change, Attach):
            docks.append(
                Connection(change.module, change.parent, change.at, change.mount, change.placement)
            )
    swaps = [change for change in changes if isinstance(change, Swap)]
    for _ in swaps:  # a module that was swapped in may be swapped, too
        for swap in swaps:
            ports = {(link.parent, link.at) for link in docks if link.child == swap.module}
            known = {(link.parent, link.at) for link in docks if link.child == swap.by}
            docks += [
                Connection(swap.by, parent, at, swap.mount, swap.placement)
                for parent, at in sorted(ports - known)
                if parent != swap.by
            ]
    for dock in docks:
        robot.check_dock(dock)
    return [dock for dock in docks if dock.child not in robot.boxes]


def _refuse_open(link: Connection, nominal: Array, there: Array) -> None:
    """Raise unless a module is where it would dock.

    Args:
        link: the dock.
        nominal: pose of the base body in the port's frame when docked, `(8,)`.
        there: the pose it has.
    """
    off = dual_quaternion.mul(dual_quaternion.conjugate(nominal), there)
    distance = float(np.linalg.norm(pose.translation(off)))
    angle = 2.0 * float(np.arctan2(np.linalg.norm(off[1:4]), abs(off[0])))
    if max(distance, angle) > CLOSED:
        raise RemoraError(
            f"module {link.child!r} is not where it would dock, at {link.at!r} of {link.parent!r}: "
            f"off by {distance:.3g} m and {angle:.3g} rad; bring its frame there, or set "
            "latch=True to hold the pose of that moment, or place=True to put it there"
        )
