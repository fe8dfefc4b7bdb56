"""Arguments of a batch: checks, names and batch shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.gpu.cuda_kernel import on_host
from remora.codegen.ir.graph import Signature
from remora.components.system import System
from remora.dynamics.kernels.parameter_checks import (
    ParameterFault,
    unit_placements,
)
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.model.numbers import finite
from remora.model.state import configuration, velocity
from remora.simulation.batch.host_arrays import on_device
from remora.simulation.batch.initial_states import in_front, initial_states

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
        dtype: dtype to convert all numbers to; None for a batch on a GPU, which uses arrays that
            are there as they are.
    """
    robot = system.robot

    def taken(name: str, x: ArrayLike) -> Any:
        return x if on_device(x, dtype) else finite(name, x).astype(dtype or float)

    if not on_device(q, dtype):
        q = configuration(robot, q).astype(dtype or float)
    if not on_device(v, dtype):
        v = velocity(robot, v).astype(dtype or float)
    faults, own, shapes, numbers = _checked_parameters(system, parameters, dtype)
    given = {name: taken(f"input {name!r}", x) for name, x in inputs.items()}
    for name in given:
        if name in TAKEN or name in own:
            raise RemoraError(f"an input cannot be called {name!r}: that is taken")
        if not name.isidentifier():
            raise RemoraError(f"an input must be named as an argument of a function, not {name!r}")
    states, front = initial_states(system, initial, numbers, _possible(faults))
    batches = [
        in_front("q", q, (robot.nq,)),
        in_front("v", v, (robot.nv,)),
        *(in_front(name, x, shapes[name]) for name, x in own.items()),
        *front,
    ]
    if runs is not None:
        batches.append((runs,))
    data: dict[str, Any] = {}
    for name, (load, shape) in loads.items():
        data[name] = taken(name, load)
        batches.append(in_front(name, data[name], shape))
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


def _possible(faults: Sequence[ParameterFault]) -> Array:
    """Return in which runs no parameter is impossible, `(...)`."""
    try:
        return ~np.logical_or.reduce(np.broadcast_arrays(False, *(f.runs for f in faults)))
    except ValueError:  # reported with the batch shapes of all arguments
        return np.ones((), bool)


def _checked_parameters(
    system: System, parameters: Mapping[str, ArrayLike], dtype: str | None
) -> tuple[
    list[ParameterFault], dict[str, Any], dict[str, tuple[int, ...]], dict[str, Array]
]:  # fmt: skip
    """Return the faults of parameters, the parameters as the batch takes them, shapes, numbers."""
    faults: list[ParameterFault] = []
    own: dict[str, Any] = {}
    numbers: dict[str, Array] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, x in parameters.items():
        what, owner = f"parameter {name!r}", system.owner_of(name)
        of_device = on_device(x, dtype)
        values = on_host(x, what) if of_device else finite(what, x).astype(float)
        shapes[name] = shape = system.shape_of(name)
        if shape == (1,) and (not values.ndim or values.shape[-1] != 1):
            values = values[..., None]  # one number of each run
            given: Any = x
            x = given.reshape(values.shape) if of_device else values
        numbers[name] = values
        in_front(what, values, shape)
        found = system.faults_of(name, values)
        faults += found
        if of_device:
            own[name] = x
            continue
        if owner != "component" and name.endswith("placement") and not found:
            values = unit_placements(values)
        own[name] = values.astype(dtype or float)
    return faults, own, shapes, numbers


def whole_numbers(name: str, given: Any, bits: int, runs: Sequence[int]) -> Array:
    """Return whole numbers from 0 to 2^bits - 1 of this batch shape, or raise."""
    array = np.asarray(given)
    if array.dtype.kind not in "iu" or np.any(array < 0) or np.any(array >= 2**bits):
        raise InvalidValue(f"{name} must be whole numbers from 0 to 2^{bits} - 1, not {given!r}")
    try:
        return np.broadcast_to(array, tuple(runs))
    except ValueError:
        raise ShapeError(
            f"{name} must have the batch shape {tuple(runs)}, not {array.shape}"
        ) from None
