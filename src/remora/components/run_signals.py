"""What components see of a run: its phase, the events that have occurred, and the true motion.

These are components, `phase`, `events` and `motion`, whose discrete states the run sets: at the
start of a phase, at an event, and before ticks. So they are part of z, and whatever carries z
(single runs, batches, checkpoints) carries them. A `System` adds them where an input is connected
to one of their outputs, or a component reads `at.phase` or `at.phase_time`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from remora.algebra.array_ops import Array, asarray, concatenate, less, select
from remora.components.component import Component, Interface
from remora.components.layout import ComponentLayout
from remora.components.signals import Signal, State
from remora.errors import Fault, UnknownName

if TYPE_CHECKING:
    from remora.components.context import Context
    from remora.model.robot import Robot

#: Names of the components.
PHASE, EVENTS, INPUTS, MOTION = "phase", "events", "inputs", "motion"
#: Sources of what sensors of acceleration and load measure, see `MotionSignals`.
ACCELERATION, WRENCHES = f"{MOTION}.acceleration", f"{MOTION}.wrenches"
#: Ends of the names of outputs that are times.
TIME = "_time"


class PhaseSignals(Component):
    """The phase of a run: its index, from 0, and the time since its start."""

    def interface(self, robot: Robot) -> Interface:
        """Return the outputs, and the states that the run sets."""
        return Interface(
            outputs={"index": Signal(), "time": Signal((), "s")},
            discrete={"number": State(0.0), "start": State(0.0, "s")},
        )

    def outputs(self, at: Context) -> dict[str, Array]:
        """Return index and time."""
        return {"index": at.memory["number"], "time": at.t - at.memory["start"]}


class EventSignals(Component):
    """Events of a run: for each 1 once it has occurred, otherwise 0, and when it first did.

    Attributes:
        keys: the events, by `event_key` of their names.
    """

    keys: tuple[str, ...]

    def interface(self, robot: Robot) -> Interface:
        """Return the outputs, and the states that the run sets."""
        outputs: dict[str, Signal] = {}
        states: dict[str, State] = {}
        for key in self.keys:
            outputs |= {key: Signal(), f"{key}{TIME}": Signal((), "s")}
            states |= {f"{key}-seen": State(0.0), f"{key}-when": State(0.0, "s")}
        return Interface(outputs=outputs, discrete=states)

    def outputs(self, at: Context) -> dict[str, Array]:
        """Return whether and when each event has occurred; the time is 0 before."""
        found: dict[str, Array] = {}
        for key in self.keys:
            found |= {key: at.memory[f"{key}-seen"], f"{key}{TIME}": at.memory[f"{key}-when"]}
        return found


class MotionSignals(Component):
    """The true acceleration of the robot and the wrenches on its bodies, for sensors.

    `acceleration`, `(nv,)`, is v̇ by the equations of motion with all loads: those of components,
    held since their last ticks, of the phase, of passive joints, stops and constraints. `wrenches`,
    `(nb, 6)`, are those on the bodies from outside and of constraints, [f, τ] in their own frames
    about their origins. Both are computed before the ticks of the components that read them.

    Attributes:
        keys: those of the two that are read.
    """

    keys: tuple[str, ...]

    def interface(self, robot: Robot) -> Interface:
        """Return the outputs, and the states that the run sets."""
        shapes = {"acceleration": (robot.nv,), "wrenches": (len(robot.bodies), 6)}
        return Interface(
            outputs={key: Signal(shapes[key]) for key in self.keys},
            discrete={f"{key}-now": State(np.zeros(shapes[key])) for key in self.keys},
        )

    def outputs(self, at: Context) -> dict[str, Array]:
        """Return the values."""
        return {key: at.memory[f"{key}-now"] for key in self.keys}


class InputSignals(Component):
    """Inputs of other components that are set from outside during a run, see `rm.Simulation`.

    Attributes:
        values: first value of each input `"component.input"`, with its unit.
    """

    values: tuple[tuple[str, Any, str], ...]

    def interface(self, robot: Robot) -> Interface:
        """Return the outputs, and the states that the run sets."""
        return Interface(
            outputs={event_key(n): Signal(x.shape, unit) for n, x, unit in self.values},
            discrete={f"{event_key(n)}-set": State(x, unit) for n, x, unit in self.values},
        )

    def outputs(self, at: Context) -> dict[str, Array]:
        """Return the values."""
        names = [event_key(name) for name, _, _ in self.values]
        return {name: at.memory[f"{name}-set"] for name in names}


def input_places(
    layouts: Mapping[str, ComponentLayout],
) -> dict[str, tuple[slice, tuple[int, ...]]]:
    """Return where in z the inputs are that are set from outside, and their shapes, by name."""
    found: dict[str, tuple[slice, tuple[int, ...]]] = {}
    for layout in layouts.values():
        if isinstance(layout.component, InputSignals):
            start = layout.discrete.start
            for name, value, _ in layout.component.values:
                found[name] = slice(start, start + value.size), value.shape
                start += value.size
    return found


def event_key(name: str) -> str:
    """Return the name of an event as that of a signal: other characters than A-z, 0-9, - are _."""
    key = re.sub(r"[^A-Za-z0-9_\-]", "_", name)
    return key if re.match(r"[A-Za-z_]", key) else f"_{key}"


def run_signals(known: Iterable[str], connect: Mapping[str, Any]) -> dict[str, Component]:
    """Return the components of this file that connections name as sources.

    Args:
        known: names of the other components: a source of the same name is theirs.
        connect: sources of inputs.
    """
    taken = {*known}
    sources = [x.partition(".") for x in connect.values() if isinstance(x, str)]
    names = (PHASE, EVENTS, MOTION)
    outputs = {name: [key for own, _, key in sources if own == name] for name in names}
    found: dict[str, Component] = {}
    if outputs[MOTION] and MOTION not in taken:
        known_keys = (key for key in ("acceleration", "wrenches") if key in outputs[MOTION])
        found[MOTION] = MotionSignals(tuple(known_keys))
    if outputs[PHASE] and PHASE not in taken:
        found[PHASE] = PhaseSignals()
    if outputs[EVENTS] and EVENTS not in taken:
        keys = dict.fromkeys(key.removesuffix(TIME) for key in outputs[EVENTS])
        found[EVENTS] = EventSignals(tuple(keys))
    return found


def motion_readers(
    components: Mapping[str, Component],
    connections: Mapping[str, str | Array],
    faults: list[Fault],
) -> frozenset[str]:
    """Return the names of the components that read the true motion; faults are appended.

    Args:
        components: the components by name.
        connections: source of every input.
        faults: faults are appended.
    """
    own = [name for name, c in components.items() if isinstance(c, MotionSignals)]
    found: set[str] = set()
    for target, source in connections.items():
        if isinstance(source, str) and source.partition(".")[0] in own:
            name = target.partition(".")[0]
            found.add(name)
            why = ""
            if components[name].sample_time is None:
                why = "is known at ticks only: give the component a sample_time"
            elif components[name].uses_design:
                why = "is the true motion, which control laws do not know: connect a sensor"
            if why:
                faults.append(Fault(f"input {target!r}", f"its source {source!r} {why}"))
    return frozenset(found)


def motion_place(layouts: Mapping[str, ComponentLayout]) -> tuple[slice, tuple[str, ...]] | None:
    """Return where in z the true motion is, and which parts of it; None: nobody reads it."""
    for layout in layouts.values():
        if isinstance(layout.component, MotionSignals):
            return layout.discrete, layout.component.keys
    return None


def phase_place(layouts: Mapping[str, ComponentLayout]) -> slice | None:
    """Return where index and start of the phase are in z; None: nobody reads them."""
    places = (x.discrete for x in layouts.values() if isinstance(x.component, PhaseSignals))
    return next(places, None)


def event_places(layouts: Mapping[str, ComponentLayout]) -> dict[str, int]:
    """Return where in z the states of events that components read begin, by `event_key`."""
    for layout in layouts.values():
        if isinstance(layout.component, EventSignals):
            keys = layout.component.keys
            return {key: layout.discrete.start + 2 * k for k, key in enumerate(keys)}
    return {}


def entered(place: slice | None, z: Any, phase: int, t: Any) -> Any:
    """Return z at the start of a phase.

    Args:
        place: see `phase_place`.
        z: discrete states, `(..., nz)`, an array of NumPy or CuPy.
        phase: index of the phase.
        t: time, s, `(..., 1)` or a number.
    """
    if place is None:
        return z
    changed = z.copy()
    changed[..., place.start] = phase
    changed[..., place.start + 1 : place.stop] = t
    return changed


def occurred(places: Mapping[str, int], z: Array, fired: Mapping[str, Any], t: Array) -> Array:
    """Return z after events, on numbers or symbols.

    Args:
        places: see `event_places`.
        z: discrete states, `(nz,)`.
        fired: 1 for an event that occurs now, otherwise 0, `(1,)`, by the names of events.
        t: time, `(1,)`, s.
    """
    for name, now in fired.items():
        k = places.get(event_key(name))
        if k is not None:
            seen, when = z[k : k + 1], z[k + 1 : k + 2]
            first = less(0.5, asarray(now) * (1.0 - seen))
            own = select(first, 1.0, seen), select(first, t, when)
            z = concatenate([z[:k], *own, z[k + 2 :]])
    return z


def check_events(places: Mapping[str, int], names: Iterable[str]) -> None:
    """Raise if components read an event that does not exist.

    Args:
        places: see `event_places`.
        names: names of the events of a run.
    """
    known = {event_key(name): name for name in names}
    for key in places:
        if key not in known:
            raise UnknownName("event as a signal: events", key, known)
