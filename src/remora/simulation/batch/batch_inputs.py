"""Arguments of a batch: checks, names, and loads converted to functions that can be compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.gpu.cuda_kernel import on_host
from remora.codegen.ir.graph import Signature
from remora.dynamics.kernels.parameter_checks import (
    ParameterFault,
    parameter_faults,
    unit_placements,
)
from remora.dynamics.kernels.parameters import parameter
from remora.errors import RemoraError, ShapeError
from remora.identity.digest import digest
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.simulation.batch.batch_loop import Law, gathered, law
from remora.simulation.inputs.loads import is_mapping
from remora.simulation.inputs.profiles import Profile, Pulse

#: Argument names that are reserved in load functions.
TAKEN = ("t", "q", "v")


class BatchInputs(NamedTuple):
    """Arguments of all runs.

    Attributes:
        batch: batch shape of the runs.
        arrays: arguments of the program: q, v, inputs of the loads, robot parameters.
        torque: load function of the drives.
        wrenches: load function of the external wrenches, or None.
        inputs: names and shapes of the inputs of the loads.
        parameters: the robot parameters that differ, by name.
        faults: physically impossible values among them.
        breaks: times at which the loads are not smooth, s.
        constants: text that identifies the loads if they are numbers; None if one is a function.
    """

    batch: tuple[int, ...]
    arrays: list[Any]
    torque: Law
    wrenches: Law | None
    inputs: tuple[Signature, ...]
    parameters: dict[str, Any]
    faults: list[ParameterFault]
    breaks: list[float]
    constants: str | None


def batch_inputs(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    torque: Any,
    wrenches: Any,
    inputs: Mapping[str, ArrayLike],
    parameters: Mapping[str, ArrayLike],
    dtype: str | None,
) -> BatchInputs:
    """Return the checked arguments of a batch.

    Args:
        robot: the robot.
        q: configurations, `(..., nq)`.
        v: velocities, `(..., nv)`.
        torque: see `simulate_batch`.
        wrenches: see `simulate_batch`.
        inputs: arrays for the load functions by name.
        parameters: robot parameters by name.
        dtype: dtype to convert all numbers to; None for GPU arrays, which are used as they are.
    """

    def taken(name: str, x: ArrayLike) -> Any:
        return x if dtype is None else finite(name, x).astype(dtype)

    if dtype is not None:
        q = configuration(robot, q).astype(dtype)
        v = velocity(robot, v).astype(dtype)
    faults, own = _checked_parameters(robot, parameters, dtype)
    data = {name: taken(f"input {name!r}", x) for name, x in inputs.items()}
    for name in data:
        if name in TAKEN or name in own:
            raise RemoraError(f"an input cannot be called {name!r}: that is taken")
        if not name.isidentifier():
            raise RemoraError(f"an input must be named as an argument of a function, not {name!r}")
    laws: dict[str, Law | None] = {}
    shapes = {"torque": (robot.nv,), "wrenches": (len(robot.bodies), 6)}
    batches: list[tuple[int, ...]] = [
        _in_front("q", q, (robot.nq,)),
        _in_front("v", v, (robot.nv,)),
        *(_in_front(name, x, parameter(robot, name)[0].shape) for name, x in own.items()),
    ]
    for what, load in (("torque", torque), ("wrenches", wrenches)):
        if load is None or callable(load) or is_mapping(load):
            laws[what] = _law(robot, what, load, shapes[what])
            continue
        array = taken(what, load)
        if array.shape == shapes[what]:
            laws[what] = law(load, shapes[what], what)
        else:  # each run has its own
            batches.append(_in_front(what, array, shapes[what]))
            data[what], laws[what] = array, _itself(what)
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        raise ShapeError(f"the runs' batch shapes do not broadcast: {batches}") from None
    if batch == () and data:
        batch = tuple(next(iter(data.values())).shape[:1])
    for name, x in data.items():
        if tuple(x.shape[: len(batch)]) != batch:
            raise ShapeError(
                f"{name!r} must have the runs' batch shape {batch} in front, not {tuple(x.shape)}"
            )
    signatures = tuple(Signature(n, tuple(x.shape[len(batch) :])) for n, x in data.items())
    driven = laws["torque"]
    assert driven is not None
    arrays = [q, v, *data.values(), *own.values()]
    breaks = [t for load in (torque, wrenches) for t in _breaks(load)]
    loads = (torque, wrenches)
    told = None if any(callable(x) or is_mapping(x) for x in loads) else _told(loads, data)
    return BatchInputs(
        batch, arrays, driven, laws["wrenches"], signatures, own, faults, breaks, told
    )


def _checked_parameters(
    robot: Robot, parameters: Mapping[str, ArrayLike], dtype: str | None
) -> tuple[list[ParameterFault], dict[str, Any]]:
    """Return the faults of robot parameters, and the parameters as the batch takes them."""
    faults: list[ParameterFault] = []
    own: dict[str, Any] = {}
    for name, x in parameters.items():
        what = f"parameter {name!r}"
        values = on_host(x, what) if dtype is None else finite(what, x).astype(float)
        _in_front(what, values, parameter(robot, name)[0].shape)
        found = parameter_faults(robot, name, values)
        faults += found
        if dtype is None:
            own[name] = x
            continue
        if name.rpartition(".")[2] == "placement" and not found:
            values = unit_placements(values)
        own[name] = values.astype(dtype)
    return faults, own


def _told(loads: tuple[Any, Any], data: dict[str, Any]) -> str:
    """Return a text of the loads that are the same numbers for all runs, for the cache key."""
    shared = [
        None if x is None or name in data else np.asarray(x, float)
        for name, x in zip(("torque", "wrenches"), loads, strict=True)
    ]
    return digest(shared, sorted(data))


def _breaks(load: Any) -> list[float]:
    parts = list(load.values()) if is_mapping(load) else [load]
    return [t for part in parts if isinstance(part, (Profile, Pulse)) for t in part.breaks]


def _in_front(name: str, x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch shape of an array with this shape per run."""
    split = x.ndim - len(shape)
    if split < 0 or tuple(x.shape[split:]) != shape:
        wanted = ", ".join(["...", *map(str, shape)])
        raise ShapeError(f"{name} must have shape ({wanted}), not {tuple(x.shape)}")
    return tuple(x.shape[:split])


def _law(robot: Robot, what: str, load: Any, shape: tuple[int, ...]) -> Law | None:
    if load is None and what == "wrenches":
        return None
    if not is_mapping(load):
        return law(load, shape, what)
    if what != "torque":
        raise RemoraError(f"{what} of a batch cannot be given by name")
    parts: dict[int, Law] = {}
    for name, own in load.items():
        joint = robot.joints[robot.joint_index(name)]
        if joint.mimic is not None:
            raise RemoraError(f"joint {name!r} mimics another: give the torque to that one")
        if joint.v.stop - joint.v.start != 1:
            raise RemoraError(f"joint {name!r} has several speeds: give the torque as one vector")
        parts[joint.v.start] = law(own, (), f"torque of {name!r}")
    return gathered(parts, robot.nv)


def _itself(name: str) -> Law:
    def own(t: Array, q: Array, v: Array, **others: Array) -> Array:
        return others[name]

    return own
