"""Phases: consecutive parts of a run, each with its own loads, held joints and events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.component import Component
from remora.components.system import System
from remora.errors import RemoraError
from remora.model.arguments import by_name, flag, is_several, names, seconds, shown, word
from remora.model.joints import kind
from remora.model.robot import Joint, Robot
from remora.simulation.inputs.events import Event, limit_names, listed_events
from remora.simulation.inputs.loads import LoadLike, Sum, described, kept
from remora.simulation.inputs.moves import Move
from remora.simulation.inputs.profiles import Motion
from remora.simulation.inputs.reach_move import ReachMove


@dataclass(frozen=True)
class Phase:
    """A part of a run with its own loads, held joints and events.

    Loads are numbers, functions (t, q, v), a `Profile`, a `Pulse` or a controller; torques also as
    a dictionary of these by joint, wrenches by body.

    Attributes:
        duration: s; an event may end the phase earlier.
        torque: generalized forces of the drives, `(nv,)`, ordered as v; N m or N.
        base_wrench: [f, τ] on body 0, in its frame about its origin, `(6,)`; N, N m.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(nb, 6)`.
        prescribed: motion by joint: a `Motion`, or a function of time.
        locked: joints that are held at their position; one name, or several.
        events: events of this phase.
        own_clock: whether functions, profiles, motions and the conditions of the phase's events
            receive the time since the start of the phase; otherwise since the start of the run.
        impulse: whether an impulse brings a moving joint to its prescribed speed when it becomes
            locked or prescribed (conserves momentum, not energy); otherwise that is an error.
        name: name of the phase.
        activate: constraints that are switched on at the start of the phase; one name, or several.
            The relative velocity that they forbid is removed by the impulse that they transmit
            (a rigid capture): momentum is conserved, energy is lost.
        release: constraints that are switched off at the start of the phase.
        latch: whether constraints that are switched on take the relative pose of that moment;
            otherwise their frames must be where the constraint allows them to be.
        separation: by the name of a released constraint: speed with which its child moves away, a
            number along the z axis of the constraint's frame on the parent, or a vector `(3,)` in
            its axes, m/s.
        after_event: whether the phase is entered only if an event with action `next` ended the
            phase before; otherwise the run ends there.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> push = rm.Phase(0.5, torque={"elbow_pitch": 2.0}, name="push")
        >>> drift = rm.Phase(1.0, name="drift")
        >>> run = rm.simulate(robot, q, v, [push, drift])
        >>> run.duration
        1.5
    """

    duration: float
    torque: LoadLike = None
    base_wrench: LoadLike = None
    wrenches: LoadLike = None
    prescribed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    locked: str | Sequence[str] = ()
    events: Sequence[Event] = ()
    own_clock: bool = False
    impulse: bool = False
    name: str = ""
    activate: str | Sequence[str] = ()
    release: str | Sequence[str] = ()
    latch: bool = False
    separation: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after_event: bool = False

    def __post_init__(self) -> None:
        """Check everything that does not depend on a robot."""
        found = {
            "duration": seconds("the duration of a phase", self.duration),
            "torque": kept(self.torque),
            "base_wrench": kept(self.base_wrench),
            "wrenches": kept(self.wrenches),
            "prescribed": by_name("prescribed", self.prescribed),
            "locked": names("locked", self.locked),
            "events": listed_events("events", self.events),
            "own_clock": flag("own_clock", self.own_clock),
            "activate": _constraint_names("activate", self.activate),
            "release": _constraint_names("release", self.release),
            "latch": flag("latch", self.latch),
            "separation": _separation(self.separation),
            "after_event": flag("after_event", self.after_event),
            "impulse": flag("impulse", self.impulse),
            "name": word("the name of a phase", self.name),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)
        both = [name for name in self.locked if name in self.prescribed]
        if both:
            raise RemoraError(f"contradiction: joint {both[0]!r} is both locked and prescribed")
        both = [name for name in self.activate if name in self.release]
        if both:
            raise RemoraError(
                f"contradiction: constraint {both[0]!r} is both activated and released"
            )
        for name in self.separation:
            if name not in self.release:
                raise RemoraError(
                    f"constraint {name!r} has a separation speed, but is not released in the phase"
                )
        if self.latch and not self.activate:
            raise RemoraError("latch=True is for constraints that a phase activates: name them")

    @property
    def switches(self) -> bool:
        """Whether constraints are switched at the start of the phase."""
        return bool(self.activate or self.release)

    def described(self) -> dict[str, Any]:
        """Return a plain description of the phase."""
        switched: dict[str, Any] = {
            "activate": list(self.activate),
            "release": list(self.release),
            "latch": self.latch,
            "separation": {name: x.tolist() for name, x in self.separation.items()},
            "after_event": self.after_event,
        }
        return {
            "name": self.name,
            "duration": self.duration,
            "torque": described(self.torque),
            "base_wrench": described(self.base_wrench),
            "wrenches": described(self.wrenches),
            "prescribed": {name: described(m) for name, m in self.prescribed.items()},
            "locked": list(self.locked),
            "events": [e.described() for e in self.events],
            "own_clock": self.own_clock,
            "impulse": self.impulse,
            **{key: value for key, value in switched.items() if value},
        }


def _separation(given: Any) -> dict[str, Array]:
    """Return separation velocities `(3,)` by the name of the constraint, or raise."""
    found: dict[str, Array] = {}
    for name, value in by_name("separation", given).items():
        try:
            speed = np.array(value, dtype=float)
        except (TypeError, ValueError):
            speed = np.full(2, np.nan)
        if speed.shape not in ((), (3,)) or not np.all(np.isfinite(speed)):
            raise RemoraError(
                f"separation of {name!r} must be a speed or a velocity of three numbers, m/s, not "
                f"{value!r}"
            )
        found[name] = np.array([0.0, 0.0, float(speed)]) if speed.ndim == 0 else speed
    return found


def held_joints(robot: Robot, phase: Phase, q: Array) -> dict[str, Motion]:
    """Return the motions of the prescribed and locked joints by name, or raise."""
    motions: dict[str, Motion] = {}
    for name, given in phase.prescribed.items():
        joint = _holdable(robot, name)
        if isinstance(given, ReachMove):
            given = given.begin_in(robot, q)
        elif isinstance(given, Move):
            given = given.begin(q[joint.q].copy())
        motions[name] = motion_of(name, given)
    for name in phase.locked:
        joint = _holdable(robot, name)
        place, rest = q[joint.q].copy(), np.zeros(joint.v.stop - joint.v.start)

        def still(t: float, place: Array = place, rest: Array = rest) -> Any:
            return place, rest, rest

        motions[name] = Motion(still)
    return motions


def check_reach(robot: Robot, phase: Phase, q: Array, v: Array) -> None:
    """Raise if a reach begins on a base that drifts, see `Reach.check`."""
    for reach in {m.reach for m in phase.prescribed.values() if isinstance(m, ReachMove)}:
        reach.check(robot, q, v)


def traced_motions(robot: Robot, phase: Phase) -> dict[str, Motion | None]:
    """Return the motions of the prescribed joints by name, and None for locked ones, or raise.

    For batches, in which `with_started_moves` has replaced the moves.
    """
    motions: dict[str, Motion | None] = {}
    for name, given in phase.prescribed.items():
        _holdable(robot, name)
        motions[name] = motion_of(name, given)
    for name in phase.locked:
        _holdable(robot, name)
        motions[name] = None
    return motions


def motion_of(name: str, given: Any) -> Motion:
    """Return the motion of a joint that is prescribed by a Motion or a function, or raise."""
    if isinstance(given, Motion):
        return given
    if not callable(given):
        raise RemoraError(
            f"joint {name!r} must be prescribed by a Motion or a function of the time, not "
            f"{type(given).__name__}"
        )
    return Motion(given)


def _holdable(robot: Robot, name: str) -> Joint:
    joint = robot.joints[robot.joint_index(name)]
    if joint.mimic is not None:
        leader = robot.joints[joint.mimic.joint].name
        raise RemoraError(f"joint {name!r} mimics {leader!r}: hold that one")
    if kind(joint).nv == 0:
        raise RemoraError(f"joint {name!r} is fixed: there is nothing to hold")
    return joint


def known_events(
    system: System, phases: Sequence[Phase], events: Sequence[Event] = (), limits: bool = False
) -> list[str]:
    """Return the names of all events that a run may have.

    Args:
        system: the robot with its components.
        phases: the phases.
        events: events that are watched in all phases.
        limits: whether joint limits are watched.
    """
    found = [str(event) for event in system.events]
    found += [event.name for part in (events, *(p.events for p in phases)) for event in part]
    return [*found, *(limit_names(system.robot) if limits else ())]


def refuse_laws_without_estimate(system: System | None, phases: Iterable[Phase]) -> None:
    """Raise if a law that acts as a load would read the true state beside an estimate of it."""
    if system is None:
        return
    estimates = [name for name, c in system.components.items() if c.estimates_state]
    for phase in phases if estimates else ():
        for law in _listed(phase.torque):
            if isinstance(law, Component) and law.uses_design:
                raise RemoraError(
                    f"torque: {type(law).__name__} would read the true state, which the system "
                    f"estimates in {estimates[0]!r}: make it a component of the system"
                )


def _listed(load: Any) -> list[Any]:
    """Return the parts of a load."""
    if not isinstance(load, Sum):
        return [load]
    return [part for own in load.parts for part in _listed(own)]


def is_phases(duration: Any) -> bool:
    """Whether the duration of a run is given by phases."""
    return isinstance(duration, Phase) or is_several(duration)


def total_duration(phases: Iterable[Phase]) -> float:
    """Return the sum of the durations, s, in the order in which runs add them.

    `sum` of Python 3.12 and later compensates its rounding errors, so that its end of a run would
    not be that of the last phase.
    """
    total = 0.0
    for phase in phases:
        total += phase.duration
    return total


def phases_of(
    duration: float | Phase | Sequence[Phase] | None, torque: LoadLike, wrenches: LoadLike,
    prescribed: Mapping[str, Any] | None, locked: str | Sequence[str],
) -> tuple[Phase, ...]:  # fmt: skip
    """Return the phases of a run, or raise; a duration in seconds is one phase with these loads."""
    if duration is None:
        raise RemoraError("duration is missing: rm.simulate(robot, q, v, duration=10.0)")
    prescribed = by_name("prescribed", prescribed)
    if not is_phases(duration):
        time = seconds("duration", duration)
        return (
            Phase(time, torque=torque, wrenches=wrenches, prescribed=prescribed, locked=locked),
        )
    found: tuple[Any, ...] = (duration,) if isinstance(duration, Phase) else tuple(duration)  # pyright: ignore[reportArgumentType]
    if not found or not all(isinstance(p, Phase) for p in found):
        raise RemoraError(
            "duration must be a number of seconds, or one or more rm.Phase(...), not "
            f"{shown(duration)}"
        )
    if any(x is not None for x in (torque, wrenches)) or prescribed or locked:
        raise RemoraError("with phases, pass loads, prescribed and locked joints in each phase")
    return found


def _constraint_names(name: str, given: Any) -> tuple[str, ...]:
    """Return one or several names of constraints, each of them once."""
    found = names(name, given, "constraints", "grasp")
    twice = [x for k, x in enumerate(found) if x in found[:k]]
    if twice:
        raise RemoraError(f"{name} names constraint {twice[0]!r} twice")
    return found
