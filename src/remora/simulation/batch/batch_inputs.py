"""Arguments of a batch: checks, names and batch shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.gpu.cuda_kernel import on_host
from remora.codegen.ir.graph import Signature
from remora.codegen.ir.trace import symbols_of
from remora.components.component import Component
from remora.components.system import System
from remora.dynamics.kernels.parameter_checks import (
    ParameterFault,
    parameter_faults,
    unit_placements,
)
from remora.dynamics.kernels.parameters import parameter
from remora.errors import InvalidValue, RemoraError, ShapeError, UnknownName
from remora.identity.digest import digest, digest_or_none
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, velocity

#: Argument names that are reserved in load functions.
TAKEN = ("t", "q", "v")


class BatchInputs(NamedTuple):
    """Arguments of all runs.

    Attributes:
        batch: batch shape of the runs.
        q: configurations, `(..., nq)`.
        v: velocities, `(..., nv)`.
        x: continuous states of the components, `(..., nx)`.
        z: discrete states of the components, `(..., nz)`.
        data: arrays that load functions take by name, and loads that differ by run.
        inputs: names and shapes of `data`.
        parameters: robot and component parameters that differ, by name.
        faults: physically impossible values among them.
    """

    batch: tuple[int, ...]
    q: Any
    v: Any
    x: Array
    z: Array
    data: dict[str, Any]
    inputs: tuple[Signature, ...]
    parameters: dict[str, Any]
    faults: list[ParameterFault]


def batch_inputs(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    loads: Mapping[str, tuple[ArrayLike, tuple[int, ...]]],
    inputs: Mapping[str, ArrayLike],
    parameters: Mapping[str, ArrayLike],
    initial: Mapping[str, ArrayLike],
    runs: int | None,
    dtype: str | None,
) -> BatchInputs:
    """Return the checked arguments of a batch.

    Args:
        system: the robot and its components.
        q: configurations, `(..., nq)`.
        v: velocities, `(..., nv)`.
        loads: loads that are numbers which differ from run to run, by name, with their shapes.
        inputs: arrays for the load functions by name.
        parameters: robot and component parameters by name.
        initial: initial states of components by name.
        runs: number of runs, if it is not to be inferred from the batch shapes.
        dtype: dtype to convert all numbers to; None for GPU arrays, which are used as they are.
    """
    robot = system.robot

    def taken(name: str, x: ArrayLike) -> Any:
        return x if dtype is None else finite(name, x).astype(dtype)

    if dtype is not None:
        q = configuration(robot, q).astype(dtype)
        v = velocity(robot, v).astype(dtype)
    faults, own, shapes = _checked_parameters(system, parameters, dtype)
    given = {name: taken(f"input {name!r}", x) for name, x in inputs.items()}
    for name in given:
        if name in TAKEN or name in own:
            raise RemoraError(f"an input cannot be called {name!r}: that is taken")
        if not name.isidentifier():
            raise RemoraError(f"an input must be named as an argument of a function, not {name!r}")
    states, front = _initial(system, initial)
    batches = [
        _in_front("q", q, (robot.nq,)),
        _in_front("v", v, (robot.nv,)),
        *(_in_front(name, x, shapes[name]) for name, x in own.items()),
        *front,
    ]
    if runs is not None:
        batches.append((runs,))
    data: dict[str, Any] = {}
    for name, (load, shape) in loads.items():
        data[name] = taken(name, load)
        batches.append(_in_front(name, data[name], shape))
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        raise ShapeError(f"the runs' batch shapes do not broadcast: {batches}") from None
    if batch == () and given:
        batch = tuple(next(iter(given.values())).shape[:1])
    data = {**given, **data}
    for name, x in data.items():
        if tuple(x.shape[: len(batch)]) != batch:
            raise ShapeError(
                f"{name!r} must have the runs' batch shape {batch} in front, not {tuple(x.shape)}"
            )
    signatures = tuple(Signature(n, tuple(x.shape[len(batch) :])) for n, x in data.items())
    return BatchInputs(batch, q, v, *states, data, signatures, own, faults)


def _checked_parameters(
    system: System, parameters: Mapping[str, ArrayLike], dtype: str | None
) -> tuple[list[ParameterFault], dict[str, Any], dict[str, tuple[int, ...]]]:
    """Return the faults of parameters, the parameters as the batch takes them, their shapes."""
    faults: list[ParameterFault] = []
    own: dict[str, Any] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    robot, of_components = system.robot, system.parameters
    for name, x in parameters.items():
        what = f"parameter {name!r}"
        in_robot = _of_robot(system, name)
        if name in of_components and in_robot is not None:
            raise RemoraError(
                f"{what} is a parameter of the robot and of a component: rename the component"
            )
        values = on_host(x, what) if dtype is None else finite(what, x).astype(float)
        if in_robot is None:
            if name not in of_components:
                _unknown(system, name)
            shapes[name] = of_components[name].shape
            _in_front(what, values, shapes[name])
            _refuse_interface(system, name, values.reshape((-1, *shapes[name])))
            own[name] = x if dtype is None else values.astype(dtype)
            continue
        shapes[name] = in_robot
        _in_front(what, values, in_robot)
        found = parameter_faults(robot, name, values)
        faults += found
        if not found:
            _refuse_interface_of_robot(system, name, values.reshape((-1, *in_robot)))
        if dtype is None:
            own[name] = x
            continue
        if name.endswith("placement") and not found:
            values = unit_placements(values)
        own[name] = values.astype(dtype)
    return faults, own, shapes


def _refuse_interface(system: System, name: str, values: Array) -> None:
    """Raise if a parameter that differs by run changes the interface of its component.

    Args:
        system: the system.
        name: name of the parameter.
        values: `(runs, *shape)`; the smallest and the largest are tried.
    """
    if not values.size:
        return
    component, _, key = name.rpartition(".")
    order = values.reshape((len(values), -1))[:, :1].sum(axis=-1)
    for k in {int(np.argmin(order)), int(np.argmax(order))}:
        if system.changes_interface(component, {key: np.asarray(values[k], dtype=float)}):
            raise RemoraError(
                f"parameter {name!r} changes the interface of component {component!r}, such as the "
                "initial value of a state, so it cannot differ by run: give initial states as "
                "initial="
            )


def _refuse_interface_of_robot(system: System, name: str, values: Array) -> None:
    """Raise if a number of the robot that differs by run changes the interface of a component.

    Args:
        system: the system.
        name: name of the parameter.
        values: `(runs, *shape)`.
    """
    signature, change = parameter(system.robot, name)
    symbolic = change(system.robot, symbols_of([signature])[1][0])
    for component, layout in system.layouts.items():
        own = digest(layout.interface)
        if _interface_digest(layout.component, symbolic) == own:
            continue  # it does not read the number
        for value in np.unique(values, axis=0):
            if _interface_digest(layout.component, change(system.robot, value)) != own:
                raise RemoraError(
                    f"parameter {name!r} changes the interface of component {component!r}, such as "
                    "the initial value of a state, so it cannot differ by run: give initial states "
                    "as initial=, or simulate the runs one by one"
                )


def _interface_digest(component: Component, robot: Robot) -> str | None:
    """Return the digest of the interface on a robot; None: it has none, or cannot be made."""
    try:
        return digest_or_none(component.interface(robot))
    except Exception:  # it needs numbers
        return None


def _of_robot(system: System, name: str) -> tuple[int, ...] | None:
    try:
        return parameter(system.robot, name)[0].shape
    except UnknownName:
        return None


def _unknown(system: System, name: str) -> None:
    """Raise the error for an unknown parameter, with those of the components."""
    try:
        parameter(system.robot, name)
    except UnknownName as error:
        raise UnknownName("parameter", name, (*error.known, *system.parameters)) from None


def _initial(
    system: System, initial: Mapping[str, ArrayLike]
) -> tuple[tuple[Array, Array], list[tuple[int, ...]]]:
    """Return x and z at the start with their batch shapes, and these batch shapes."""
    places: dict[str, tuple[str, slice, tuple[int, ...]]] = {}
    for name, layout in system.layouts.items():
        for kind, begin, shapes in (
            ("x", layout.x.start, layout.continuous_shapes),
            ("z", layout.discrete.start, layout.discrete_shapes),
        ):
            for key, shape in shapes.items():
                size = int(np.prod(shape))
                places[f"{name}.{key}"] = kind, slice(begin, begin + size), shape
                begin += size
    front: list[tuple[int, ...]] = []
    taken: dict[str, Array] = {}
    for name, value in initial.items():
        if name not in places:
            raise UnknownName("state of a component", name, places)
        array = finite(f"initial {name!r}", value).astype(float)
        front.append(_in_front(f"initial {name!r}", array, places[name][2]))
        taken[name] = array
    try:
        batch = np.broadcast_shapes(*front) if front else ()
    except ValueError:
        raise ShapeError(f"the batch shapes of initial states do not broadcast: {front}") from None
    found = {"x": system.initial_x, "z": system.initial_z}
    for name, array in taken.items():
        kind, place, shape = places[name]
        whole = np.array(np.broadcast_to(found[kind], (*batch, found[kind].shape[-1])))
        flat = array.reshape((*array.shape[: array.ndim - len(shape)], -1))
        whole[..., place] = flat
        found[kind] = whole
    return (found["x"], found["z"]), front


def _in_front(name: str, x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch shape of an array with this shape per run."""
    split = x.ndim - len(shape)
    if split < 0 or tuple(x.shape[split:]) != shape:
        wanted = ", ".join(["...", *map(str, shape)])
        raise ShapeError(f"{name} must have shape ({wanted}), not {tuple(x.shape)}")
    return tuple(x.shape[:split])


def whole_numbers(name: str, given: Any, bits: int, runs: Sequence[int]) -> Array:
    """Return whole numbers from 0 to 2^bits - 1 of this batch shape as float64, or raise."""
    array = np.asarray(given)
    if array.dtype.kind not in "iu" or np.any(array < 0) or np.any(array >= 2**bits):
        raise InvalidValue(f"{name} must be whole numbers from 0 to 2^{bits} - 1, not {given!r}")
    try:
        return np.broadcast_to(array, tuple(runs)).astype(float)
    except ValueError:
        raise ShapeError(
            f"{name} must have the batch shape {tuple(runs)}, not {array.shape}"
        ) from None
