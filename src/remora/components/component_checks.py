"""Checks of the components of a system before they are put together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.components import actions
from remora.components.component import Component, Interface, default_name, parameters
from remora.components.context import DESIGN, context_of
from remora.components.parameter import title
from remora.components.returned_values import checked
from remora.components.signals import STATE
from remora.dynamics.kernels.parameters import value_of
from remora.errors import Fault, RemoraError, SingularMatrix
from remora.model.robot import Robot
from remora.model.state import neutral, random_state

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")


class Example(NamedTuple):
    """What a component does at one state.

    Attributes:
        actions: its actions.
        reads_phase: whether it reads the phase.
    """

    actions: tuple[actions.Action, ...] = ()
    reads_phase: bool = False


def named(
    components: Sequence[Component] | Mapping[str, Component], faults: list[Fault]
) -> dict[str, Component]:
    """Return the components by name; report what is no component, and names used twice."""
    pairs: list[tuple[str, Any]] = []
    if isinstance(components, Mapping):
        pairs = [(str(name), c) for name, c in components.items()]
    elif isinstance(components, Component) or not isinstance(components, Iterable):  # pyright: ignore
        told = f"must be a list or dictionary of components, not {type(components).__name__}"
        faults.append(Fault("components", told))
    else:
        for c in components:
            is_one = isinstance(c, Component)  # pyright: ignore[reportUnnecessaryIsInstance]
            pairs.append((default_name(c) if is_one else "?", c))
    found: dict[str, Component] = {}
    for name, component in pairs:
        where = f"component {name!r}"
        if not isinstance(component, Component):
            told = f"must be a Component, not {type(component).__name__}"
            if isinstance(component, type):
                made = component.__name__
                told = f"must be a Component, not the class {made}: write {made}(...)"
            faults.append(Fault(where, told))
        elif not _NAME.fullmatch(name):
            faults.append(Fault(where, "a name has letters, digits, '_' and '-' only"))
        elif name in found:
            faults.append(Fault(where, "two components have this name; set name= in one of them"))
        else:
            same = [key for key, c in found.items() if type(c) is type(component)]
            if component.alone and same:
                told = f"{same[0]!r} is {title(type(component))}, too: a system has one at most"
                faults.append(Fault(where, told))
            found[name] = component
    return found


def interface(robot: Robot, name: str, component: Component, faults: list[Fault]) -> Interface:
    """Return the interface of a component; report what is wrong with its timing and names."""
    where = f"component {name!r}"
    for key in ("sample_time", "offset", "delay"):
        value: Any = getattr(component, key)
        if value is None and key == "sample_time":
            continue
        low = "positive" if key == "sample_time" else "nonnegative"
        if not _is_time(value) or (value == 0.0 and key == "sample_time"):
            faults.append(Fault(where, f"{key} must be a {low} number of seconds, not {value!r}"))
    if component.sample_time is None and (component.offset or component.delay):
        faults.append(Fault(where, "offset and delay need a sample_time"))
    try:
        found: Any = component.interface(robot)
    except RemoraError as error:
        faults.append(Fault(where, str(error)))
        return Interface()
    except Exception as error:
        faults.append(Fault(where, f"interface raised {type(error).__name__}: {error}"))
        return Interface()
    if not isinstance(found, Interface):
        faults.append(Fault(where, f"interface must return an Interface, not {found!r}"))
        return Interface()
    if component.sample_time is None and found.noise:
        faults.append(Fault(where, "noise needs a sample_time, such as 0.05 (s)"))
    if component.sample_time is not None and (found.continuous or found.events):
        faults.append(
            Fault(where, "a sampled component has no continuous states and no events: leave out "
                  "sample_time, or make two components of it")
        )  # fmt: skip
    try:
        known = parameters(component)
    except RemoraError as error:
        faults.append(Fault(where, str(error)))
        known = {}
    for key, value in known.items():
        if not np.all(np.isfinite(value)):
            faults.append(Fault(where, f"parameter {key!r} must be finite, not {value}"))
    if not all(math.isfinite(t) for t in found.breaks):
        faults.append(Fault(where, f"breaks must be finite times, not {found.breaks}"))
    if component.estimates_state and not set(STATE) <= found.outputs.keys():
        faults.append(Fault(where, "estimates_state needs the outputs 'q' and 'v'"))
    if component.uses_design and {"q", "v"} & found.inputs.keys():
        faults.append(Fault(where, "its inputs cannot be named 'q' or 'v': these are its state"))
    for part in ("inputs", "outputs", "continuous", "discrete", "noise", "events"):
        for key in getattr(found, part):
            if not isinstance(key, str) or not _NAME.fullmatch(key):
                why = f"{key!r} in {part}: a name has letters, digits, '_' and '-' only"
                faults.append(Fault(where, why))
    states = [*found.continuous, *found.discrete]
    for key in {k for k in states if states.count(k) > 1 or k in found.outputs or k in ("q", "v")}:
        faults.append(Fault(where, f"{key!r} names two states or outputs, or the robot's state"))
    return found


def _is_time(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return math.isfinite(value) and value >= 0.0


def _as_designed(robot: Robot, q: Array, interface: Interface) -> dict[str, Array]:
    """Return the inputs that provide the state and numbers of the design, with plain values."""
    found = {"q": q} if "q" in interface.inputs else {}
    for key in interface.inputs:
        if key.startswith(DESIGN):
            found[key] = value_of(robot, key.removeprefix(DESIGN))
    return found


def example(
    robot: Robot, name: str, component: Component, interface: Interface, design: Robot,
    faults: list[Fault],
) -> Example:  # fmt: skip
    """Evaluate a component once; return what it does, report what is wrong.

    At the neutral state, or, where a law is singular there (an outstretched arm), at a random one.
    """
    arrays = {
        "continuous": {k: s.initial for k, s in interface.continuous.items()},
        "discrete": {k: s.initial for k, s in interface.discrete.items()},
        "inputs": {k: np.zeros(s.shape) for k, s in interface.inputs.items()},
        "noise": {k: np.zeros(n) for k, n in interface.noise.items()},
    }
    sampled = component.sample_time is not None
    shapes = {
        "outputs": {k: s.shape for k, s in interface.outputs.items()},
        "derivative": {k: s.shape for k, s in interface.continuous.items()},
        "crossings": dict.fromkeys(interface.events, ()),
        "update": {k: s.shape for k, s in interface.discrete.items()} if sampled else {},
    }

    reads: list[Array] = []

    def phase() -> Array:
        reads.append(np.zeros(2))
        return reads[-1]

    def evaluated(q: Array) -> Example:
        if component.uses_design:
            arrays["inputs"] |= _as_designed(robot, q, interface)
        at = context_of(
            robot, arrays, np.zeros(()), q, np.zeros(robot.nv), sampled, phase, design,
            component.uses_design,
        )  # fmt: skip
        for method, own in shapes.items():
            if own:
                checked(method, own, getattr(component, method)(at))
        found = tuple(actions.listed("act", component.act(at)))
        for action in found:
            actions.check("act", robot, action)
        return Example(found, bool(reads))

    with np.errstate(all="ignore"):
        try:
            try:
                return evaluated(neutral(robot))
            except SingularMatrix:
                return evaluated(random_state(robot, 0)[0])
        except RemoraError as error:
            faults.append(Fault(f"component {name!r}", str(error)))
        except Exception as error:
            faults.append(Fault(f"component {name!r}", f"raised {type(error).__name__}: {error}"))
    return Example()
