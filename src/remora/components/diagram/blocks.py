"""Contents of the blocks of a diagram: texts of a component, its ports, and what they connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.actions import Action, GeneralizedForce, JointForce
from remora.components.layout import ComponentLayout
from remora.components.signals import Signal

#: Longest text in a block, in characters.
LONGEST = 30


@dataclass(frozen=True)
class Port:
    """A row of a block at its left or right edge.

    Attributes:
        kind: `input`, `constant` (an input with numbers), `state` (reads the robot), `output`, or
            `action` (acts on the robot).
        text: what is written in the row.
        source: of an input, `component.output`.
        label: what is written on the wire of an output: unit and size.
        signal: of an output, `component.output`.
    """

    kind: Literal["input", "constant", "state", "output", "action"]
    text: str
    source: str = ""
    label: str = ""
    signal: str = ""


@dataclass(frozen=True)
class DiagramBlock:
    """A component in a diagram.

    Attributes:
        name: its name.
        kind: its class.
        timing: `continuous`, `50 Hz, delay 20 ms`.
        sampled: whether it is sampled.
        left: ports at the left edge.
        right: ports at the right edge.
        events: `crossed: stop`, ..., and the transitions of a state machine.
    """

    name: str
    kind: str
    timing: str
    sampled: bool
    left: tuple[Port, ...]
    right: tuple[Port, ...]
    events: tuple[str, ...]


def blocks_of(
    layouts: Mapping[str, ComponentLayout],
    connections: Mapping[str, str | Array],
    reads_robot: Set[str],
) -> dict[str, DiagramBlock]:
    """Return the blocks of the components of a system by name; see `System` for the arguments."""
    found: dict[str, DiagramBlock] = {}
    for name, layout in layouts.items():
        component, interface = layout.component, layout.interface
        left: list[Port] = []
        for key in interface.inputs:
            source = connections[f"{name}.{key}"]
            if isinstance(source, str):
                left.append(Port("input", short(key), source))
            else:
                numbers = np.array2string(source, precision=4, separator=", ", threshold=4)
                left.append(Port("constant", short(f"{key} = {numbers}")))
        if name in reads_robot:
            left.append(Port("state", "q, v"))
        right = [
            Port("output", short(key), label=label_of(signal), signal=f"{name}.{key}")
            for key, signal in interface.outputs.items()
        ]
        right += [Port("action", short(text)) for text in actions_text(layout.actions)]
        events = [f"{e}: {crossing.action}" for e, crossing in interface.events.items()]
        events = tuple(map(short, (*events, *component.lines)))
        found[name] = DiagramBlock(
            short(name), short(type(component).__name__), timing_text(
                component.sample_time, component.offset, component.delay),
            layout.sampled, tuple(left), tuple(right), events,
        )  # fmt: skip
    return found


def short(text: str) -> str:
    """Return a text, cut if it is long."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def label_of(signal: Signal) -> str:
    """Return unit and size of a signal: `rad/s × 3`."""
    size = " × ".join(map(str, signal.shape))
    return " × ".join(x for x in (signal.unit, size) if x)


def timing_text(sample_time: float | None, offset: float, delay: float) -> str:
    """Return when a component is evaluated: `continuous`, or `50 Hz, delay 20 ms`."""
    if sample_time is None:
        return "continuous"
    rate = 1.0 / sample_time
    text = f"{rate:.4g} Hz" if rate >= 1.0 else f"every {sample_time:.4g} s"
    more = [f"{what} {_duration(t)}" for what, t in (("offset", offset), ("delay", delay)) if t]
    return ", ".join([text, *more])


def _duration(t: float) -> str:
    return f"{t:.4g} s" if t >= 1.0 else f"{1e3 * t:.4g} ms"


def actions_text(actions: Sequence[Action]) -> list[str]:
    """Return the targets of actions, one text for joints and one for each kind of wrench."""
    texts: list[str] = []
    joints = [a.joint for a in actions if isinstance(a, JointForce)]
    if joints:
        texts.append(f"force on {_some(joints, 'joints')}")
    if any(isinstance(a, GeneralizedForce) for a in actions):
        texts.append("force on all joints")
    frames = [a.frame for a in actions if not isinstance(a, (JointForce, GeneralizedForce))]
    if frames:
        texts.append(f"wrench on {_some(frames, 'frames')}")
    return texts


def _some(names: Sequence[str], what: str) -> str:
    unique = list(dict.fromkeys(names))
    listed = ", ".join(unique)
    return listed if len(listed) <= LONGEST - 10 else f"{len(unique)} {what}"
