"""Initial states of components in every run of a batch: declared by their interfaces, or given.

An interface may compute initial values from parameters of the component and from numbers of the
robot. Where these differ by run, so do the states. Whether an interface depends on them is found
out with symbols in their place; if it does, it is made for every run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.ir.graph import Signature
from remora.codegen.ir.trace import symbols_of
from remora.components.component import Interface
from remora.components.layout import ComponentLayout
from remora.components.signals import State
from remora.components.system import System
from remora.components.wiring import with_estimates
from remora.errors import RemoraError, ShapeError, UnknownName
from remora.identity.digest import digest, digest_or_none
from remora.model.numbers import finite


def initial_states(
    system: System,
    initial: Mapping[str, ArrayLike],
    parameters: Mapping[str, Array],
    possible: Array,
) -> tuple[tuple[Array, Array], list[tuple[int, ...]]]:
    """Return x and z at the start with their batch shapes, and these batch shapes.

    Args:
        system: the system.
        initial: initial states that are given, by name `"component.state"`.
        parameters: parameters that differ by run, by name, `(..., *shape)`.
        possible: in which runs they are physically possible, `(...)`; the other runs begin with the
            declared states.

    Raises:
        RemoraError: if parameters change more of an interface than initial values.
    """
    values: dict[str, Array] = {}
    for name, layout in system.layouts.items():
        for state, array in _by_run(system, name, layout, parameters, possible).items():
            values[f"{name}.{state}"] = array
    places = _places(system)
    for name, value in initial.items():
        if name not in places:
            raise UnknownName("state of a component", name, places)
        values[name] = finite(f"initial {name!r}", value).astype(float)
    front = [in_front(f"initial {name!r}", x, places[name][2]) for name, x in values.items()]
    try:
        batch = np.broadcast_shapes(*front) if front else ()
    except ValueError:
        raise ShapeError(f"the batch shapes of initial states do not broadcast: {front}") from None
    found = {"x": system.initial_x, "z": system.initial_z}
    for name, array in values.items():
        kind, place, shape = places[name]
        whole = np.array(np.broadcast_to(found[kind], (*batch, found[kind].shape[-1])))
        whole[..., place] = array.reshape((*array.shape[: array.ndim - len(shape)], -1))
        found[kind] = whole
    return (found["x"], found["z"]), front


def in_front(name: str, x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch shape of an array with this shape per run."""
    split = x.ndim - len(shape)
    if split < 0 or tuple(x.shape[split:]) != shape:
        wanted = ", ".join(["...", *map(str, shape)])
        raise ShapeError(f"{name} must have shape ({wanted}), not {tuple(x.shape)}")
    return tuple(x.shape[:split])


def _places(system: System) -> dict[str, tuple[str, slice, tuple[int, ...]]]:
    """Return the place of each state in x or z, and its shape, by name."""
    found: dict[str, tuple[str, slice, tuple[int, ...]]] = {}
    for name, layout in system.layouts.items():
        for kind, begin, shapes in (
            ("x", layout.x.start, layout.continuous_shapes),
            ("z", layout.discrete.start, layout.discrete_shapes),
        ):
            for key, shape in shapes.items():
                size = math.prod(shape)
                found[f"{name}.{key}"] = kind, slice(begin, begin + size), shape
                begin += size
    return found


def _by_run(
    system: System, name: str, layout: ComponentLayout, parameters: Mapping[str, Array],
    possible: Array,
) -> dict[str, Array]:  # fmt: skip
    """Return the initial states of a component that differ by run, by name, `(..., *shape)`."""
    shapes = {
        n: system.shape_of(n) for n in parameters
        if system.owner_of(n) != "component" or n.rpartition(".")[0] == name
    }  # fmt: skip
    own = digest(layout.interface)
    read = {n: s for n, s in shapes.items() if _reads(system, name, n, s, own)}
    if not read:
        return {}
    fronts = [in_front(n, parameters[n], shape) for n, shape in read.items()]
    try:
        batch = np.broadcast_shapes(*fronts, possible.shape)
    except ValueError:  # reported with the batch shapes of all arguments
        return {}
    fine = np.broadcast_to(possible, batch).ravel()
    rows = [
        np.broadcast_to(parameters[n], (*batch, *shape)).reshape((math.prod(batch), -1))
        for n, shape in read.items()
    ]
    distinct, which = np.unique(np.concatenate(rows, axis=-1), axis=0, return_inverse=True)
    which = which.ravel()
    used = set(which[fine].tolist())
    made: list[Interface] = []
    for k, row in enumerate(distinct):
        split = np.split(row, np.cumsum([math.prod(s) for s in read.values()])[:-1])
        values = {n: x.reshape(s) for (n, s), x in zip(read.items(), split, strict=True)}
        made.append(_interface(system, name, values) if k in used else layout.interface)
    found: dict[str, Array] = {}
    for part in ("continuous", "discrete"):
        for key in getattr(layout.interface, part):
            each = np.stack([np.asarray(getattr(i, part)[key].initial, float) for i in made])
            if np.any(each != each[:1]) or np.any(each[0] != _initial(layout.interface, part, key)):
                found[key] = each[which].reshape((*batch, *each.shape[1:]))
    return found


def _initial(interface: Interface, part: str, key: str) -> Array:
    return np.asarray(getattr(interface, part)[key].initial, float)


def _reads(system: System, component: str, name: str, shape: tuple[int, ...], own: str) -> bool:
    """Return whether an interface may depend on a parameter: not if it is the same for a symbol."""
    (symbol,) = symbols_of([Signature("p", shape)])[1]
    try:
        return digest_or_none(_changed(system, component, {name: symbol})) != own
    except Exception:  # it needs numbers
        return True


def _changed(system: System, name: str, values: Mapping[str, Array]) -> Interface:
    """Return the interface of a component with other numbers, by the names of parameters."""
    made = system.acting_with(values)
    component, inputs = made.components[name], made.layouts[name].interface.inputs
    interface = component.interface(made.robot_of(component))
    added = {key: signal for key, signal in inputs.items() if key not in interface.inputs}
    return with_estimates(interface, added)


def _interface(system: System, name: str, values: Mapping[str, Array]) -> Interface:
    """Return the interface of a component with the numbers of a run, or raise."""
    layout = system.layouts[name]
    text = ", ".join(f"{n} = {np.array2string(x, separator=', ')}" for n, x in values.items())
    try:
        found = _changed(system, name, values)
    except Exception as error:
        raise RemoraError(
            f"component {name!r} cannot have the parameters of a run, {text}: {error}"
        ) from error
    if digest(_structure(found)) != digest(_structure(layout.interface)):
        raise RemoraError(
            f"{text} changes the interface of component {name!r}, not only the initial values of "
            "its states, so it cannot differ by run: simulate the runs one by one"
        )
    return found


def _structure(interface: Interface) -> Interface:
    """Return an interface with all initial values zero."""

    def empty(states: Mapping[str, State]) -> dict[str, State]:
        return {k: State(np.zeros(np.shape(s.initial)), s.unit) for k, s in states.items()}

    return dataclasses.replace(
        interface, continuous=empty(interface.continuous), discrete=empty(interface.discrete)
    )
