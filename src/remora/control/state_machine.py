"""A state machine: modes of a mission, with transitions on signals, events and timers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra.array_ops import Array, asarray, concatenate, less, select
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import ANY_UNIT, Signal, State
from remora.errors import InvalidValue, UnknownName
from remora.model.robot import Robot

#: What a transition looks like, for messages.
FORM = "'hold -> retreat: gripper.force > 20 and after 5'"
_NAME = r"[A-Za-z_][\w\-]*(?:\.[A-Za-z_][\w\-]*)?"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_TRANSITION = re.compile(r"\s*([A-Za-z_]\w*|\*)\s*->\s*([A-Za-z_]\w*)\s*:\s*(.+)")
_LEVEL = re.compile(rf"({_NAME})\s*([<>])\s*({_NUMBER})(?:\s+for\s+({_NUMBER}))?")
_FLAG = re.compile(rf"(not\s+)?({_NAME})(?:\s+for\s+({_NUMBER}))?")
_TIMER = re.compile(rf"after\s+({_NUMBER})")
#: Outputs besides those of the modes.
_OWN = ("mode", "time")


@dataclass(frozen=True)
class Guard:
    """A condition of a transition.

    Attributes:
        signal: source, or name of an input; empty: a timer, which counts from the mode's start.
        above: whether the signal must be above the level; otherwise below.
        level: in the unit of the signal.
        duration: for how long without interruption, s.
    """

    signal: str
    above: bool = True
    level: float = 0.5
    duration: float = 0.0

    @property
    def key(self) -> str:
        """Name of the input."""
        return re.sub(r"\W", "_", self.signal)


@dataclass(frozen=True)
class Transition:
    """A transition from one mode, or from all others, to another.

    Attributes:
        source: name of the mode; `*`: all others.
        target: name of the mode.
        guards: the conditions, all of which must hold.
        text: as it was written.
    """

    source: str
    target: str
    guards: tuple[Guard, ...]
    text: str


class StateMachine(Component):
    """Named modes, with transitions on signals, events and timers.

    A transition is a text such as `"close -> hold: events.grip_captured"`. After the colon are
    conditions, joined by `and`:

        range < 0.05            a signal is below, or above, a level
        guide.range < 0.05      the same of an output, which is connected by this
        range < 0.05 for 2      for 2 s without interruption
        events.grip_captured    a signal is 1 (above 0.5); `not` before it: 0
        after 30                30 s after the mode began

    The first mode is that at the start. At each tick the first transition of the list whose source
    is the mode and whose conditions hold is made, one at most. `*` as the source is any other mode.

    Inputs: the signals of the conditions, numbers; those with a dot are connected to the source of
    this name. Outputs: `mode`, the index of the mode, from 0; `time` since it began, s; and, by
    the name of each mode, 1 in this mode, otherwise 0. States: `current`, `ticks`, `counts`.
    """

    sampled = True
    modes: Sequence[str] = parameter("names of the modes; the first is that at the start", "texts")
    transitions: Sequence[str] = parameter(
        "transitions, `source -> target: conditions`; the first whose conditions hold is made",
        "texts",
    )

    def __post_init__(self) -> None:
        """Check modes and transitions."""
        super().__post_init__()
        for name in self.modes:
            if not re.fullmatch(r"[A-Za-z_]\w*", name) or name in _OWN:
                raise InvalidValue(
                    f"a mode must be a name of letters, digits and _, other than "
                    f"{' and '.join(_OWN)}, not {name!r}"
                )
        if len(set(self.modes)) != len(self.modes) or not self.modes:
            raise InvalidValue(f"modes must differ, not {', '.join(self.modes) or 'be none'}")
        reached = {self.modes[0]}
        for _ in self.modes:
            reached |= {t.target for t in self.made if t.source == "*" or t.source in reached}
        unreached = [name for name in self.modes if name not in reached]
        if unreached:
            raise InvalidValue(f"no transition leads to mode {unreached[0]!r}")
        keys: dict[str, str] = {}
        for guard in (g for t in self.made for g in t.guards if g.signal):
            if keys.setdefault(guard.key, guard.signal) != guard.signal:
                raise InvalidValue(
                    f"the signals {keys[guard.key]!r} and {guard.signal!r} have the same input "
                    f"{guard.key!r}"
                )

    @property
    def made(self) -> tuple[Transition, ...]:
        """The transitions."""
        return tuple(_transition(text, self.modes) for text in self.transitions)

    @property
    def lines(self) -> tuple[str, ...]:
        """The transitions, for block diagrams."""
        return tuple(f"{t.source} → {t.target}" for t in self.made)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        guards = [g for t in self.made for g in t.guards]
        inputs = {
            g.key: Signal((), ANY_UNIT, source=g.signal if "." in g.signal else None)
            for g in guards if g.signal
        }  # fmt: skip
        flags = {name: Signal() for name in self.modes}
        counts = {"counts": State(np.zeros(len(guards)))} if guards else {}
        return Interface(
            inputs=inputs,
            outputs={"mode": Signal(), "time": Signal((), "s"), **flags},
            discrete={"current": State(0.0), "ticks": State(0.0), **counts},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the mode after the transition of this tick."""
        mode, ticks, _ = self._after(at)
        flags = {
            name: select(_is(mode, k), 1.0, 0.0) for k, name in enumerate(self.modes)
        }  # fmt: skip
        return {"mode": mode, "time": ticks * self._tick, **flags}

    def update(self, at: Context) -> Mapping[str, Array]:
        """Return mode, ticks in it at the next tick, and ticks for which conditions have held."""
        mode, ticks, counts = self._after(at)
        found = {"current": mode, "ticks": ticks + 1.0}
        return found | ({"counts": concatenate([c[..., None] for c in counts])} if counts else {})

    @property
    def _tick(self) -> float:
        assert self.sample_time is not None
        return self.sample_time

    def _after(self, at: Context) -> tuple[Array, Array, list[Array]]:
        """Return the mode, ticks since it began, and of each condition the ticks it has held."""
        before, ticks = at.memory["current"], at.memory["ticks"]
        counts: list[Array] = []
        now: list[Array] = []  # of a mode that begins at this tick
        mode, free = before, asarray(1.0)
        for transition in self.made:
            source = transition.source
            k = self.modes.index(transition.target)
            holds = free
            if source == "*":
                holds = holds * select(_is(before, k), 0.0, 1.0)
            else:
                holds = holds * select(_is(before, self.modes.index(source)), 1.0, 0.0)
            for guard in transition.guards:
                held, seen_now = ticks, asarray(0.0)
                needed = math.ceil(guard.duration / self._tick * (1.0 - 1e-9))
                if guard.signal:
                    seen, level = at.inputs[guard.key], guard.level
                    true = less(level, seen) if guard.above else less(seen, level)
                    seen_now = select(true, 1.0, 0.0)
                    held = seen_now * (at.memory["counts"][..., len(counts)] + 1.0)
                    needed += 1  # it holds from the first tick at which it is seen
                counts.append(held)
                now.append(seen_now)
                holds = holds * select(less(needed - 0.5, held), 1.0, 0.0)
            mode = select(less(0.5, holds), float(k), mode)
            free = free * (1.0 - holds)
        changed = less(free, 0.5)
        counts = [select(changed, new, c) for new, c in zip(now, counts, strict=True)]
        return mode, select(changed, 0.0, ticks), counts


def _is(mode: Array, k: int) -> Array:
    """Return whether the mode is that of an index."""
    return less((mode - k) * (mode - k), 0.25)


def _transition(text: str, modes: Sequence[str]) -> Transition:
    """Return the transition of a text, or raise."""
    found = _TRANSITION.fullmatch(text)
    if not found:
        raise InvalidValue(f"a transition must be like {FORM}, not {text!r}")
    source, target, conditions = found.groups()
    for name in (source, target):
        if name not in modes and not (name == source == "*"):
            raise UnknownName(f"mode in the transition {text!r}", name, modes)
    if source == target:
        raise InvalidValue(f"the transition {text!r} leads to the mode where it begins")
    parts = re.split(r"\s+and\s+", conditions.strip())
    return Transition(source, target, tuple(_guard(part, text) for part in parts), text)


def _guard(condition: str, text: str) -> Guard:
    """Return a condition of a transition, or raise."""
    if timer := _TIMER.fullmatch(condition):
        made = Guard("", duration=float(timer[1]))
    elif level := _LEVEL.fullmatch(condition):
        made = Guard(level[1], level[2] == ">", float(level[3]), float(level[4] or 0.0))
    elif (flag := _FLAG.fullmatch(condition)) and flag[2] not in ("not", "after", "for", "and"):
        made = Guard(flag[2], not flag[1], 0.5, float(flag[3] or 0.0))
    else:
        raise InvalidValue(
            f"condition {condition!r} of the transition {text!r} must be like 'range < 0.05', "
            "'guide.range > 1 for 2', 'events.captured', 'not ready' or 'after 30'"
        )
    if made.duration < 0.0:
        raise InvalidValue(f"the time in the transition {text!r} must not be negative")
    return made
