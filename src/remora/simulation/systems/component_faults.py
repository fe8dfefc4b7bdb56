"""Names of components whose results are not finite, or are the largest, for error messages."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.actions import Action, JointForce, Wrench
from remora.components.evaluation import Instant
from remora.components.layout import ComponentLayout, unpacked
from remora.components.system import System

#: A force or torque beyond this, N or N m, is named as what drives a run to infinity.
HUGE = 1e6


def name_of_nan(now: Instant) -> str:
    """Return which component returns NaN or infinity at an instant, or an empty string."""
    followers: list[str] = []
    for name, layout in now.system.layouts.items():
        for key in layout.interface.outputs:
            if _bad(now.signals[f"{name}.{key}"]):
                fault = f"output {key!r} of component {name!r} is not finite"
                if not _bad_input(now, name, layout):
                    return fault
                followers.append(fault)  # it passes on what another component returns
    if followers:
        return followers[0]
    for name, layout in now.system.layouts.items():
        for action in now.actions_of(name):
            if _bad(action.numbers()):
                return f"{_described(action)} of component {name!r} is not finite"
        if layout.interface.continuous:
            for key, value in now.derivative_of(name).items():
                if _bad(value):
                    return f"the derivative of state {key!r} of component {name!r} is not finite"
    return ""


def name_of_largest(now: Instant) -> str:
    """Return which component exerts the largest force or torque, if it is huge, or nothing."""
    most, found = HUGE, ""
    for name in now.system.layouts:
        for action in now.actions_of(name):
            size = float(np.max(np.abs(action.numbers()), initial=0.0))
            if size > most:
                most, found = size, f"{_described(action)} of component {name!r}"
    return f"{found} is the largest there, {most:.3g}" if found else ""


def name_in_memory(system: System, z: Array) -> str:
    """Return which result of a component makes its discrete states not finite."""
    for name, layout in system.layouts.items():
        for key, value in unpacked(layout.discrete_shapes, z[layout.discrete]).items():
            if _bad(value):
                return f"discrete state {key!r} of component {name!r} is not finite"
        for results in _results(layout, z):
            for key, value in layout.outputs_of(results).items():
                if _bad(value):
                    return f"output {key!r} of component {name!r} is not finite"
            for action in layout.actions_of(results):
                if _bad(action.numbers()):
                    return f"{_described(action)} of component {name!r} is not finite"
    return "a discrete state of a component is not finite"


def _bad_input(now: Instant, name: str, layout: ComponentLayout) -> bool:
    """Return whether an input of a component is not finite."""
    sources = [now.system.connections[f"{name}.{key}"] for key in layout.interface.inputs]
    return any(_bad(now.signals[s]) for s in sources if isinstance(s, str))


def _results(layout: ComponentLayout, z: Array) -> Iterator[Array]:
    """Yield the results of a component that wait or are in effect."""
    size = layout.effective.stop - layout.effective.start
    held = z[layout.waiting.start : layout.effective.stop]
    for k in range(math.floor(held.size / size) if size else 0):
        yield held[k * size : (k + 1) * size]


def _bad(value: Array) -> bool:
    return not np.all(np.isfinite(value))


def _described(action: Action) -> str:
    if isinstance(action, Wrench):
        return f"the wrench on {action.frame!r}"
    return f"the force on joint {action.joint!r}" if isinstance(action, JointForce) else (
        "the generalized force"
    )  # fmt: skip
