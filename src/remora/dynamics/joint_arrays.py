"""Arrays of a whole robot: checks of arguments, batch shapes, assembly from parts by joint."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, stack
from remora.errors import RemoraError, ShapeError
from remora.model.joints import kind
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, velocity


class LoadedState(NamedTuple):
    """A state of a robot and what drives it, checked and of one batch shape.

    Attributes:
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`; ignored for prescribed joints.
        wrenches: external, `(..., nb, 6)`, or None.
        prescribed: accelerations `(..., nv_i)` by joint index.
    """

    q: Array
    v: Array
    tau: Array
    wrenches: Array | None = None
    prescribed: Mapping[int, Array] = MappingProxyType({})

    @property
    def batch(self) -> tuple[int, ...]:
        """The common batch shape of q, v and tau."""
        return batch_shape(self.q, self.v, self.tau)


def checked_arguments(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    third: ArrayLike,
    wrenches: ArrayLike | None,
    name: str,
) -> tuple[Array, Array, Array, Array | None]:
    """Return the arguments checked, with one batch shape."""
    q, v, third = configuration(robot, q), velocity(robot, v), velocity(robot, third, name)
    w = external_wrenches(robot, wrenches)
    batch = batch_shape(q, v, third, *([] if w is None else [w[..., 0, :]]))
    return with_batch(q, batch, 1), with_batch(v, batch, 1), with_batch(third, batch, 1), w


def external_wrenches(robot: Robot, wrenches: ArrayLike | None) -> Array | None:
    """Return external wrenches `(..., nb, 6)` checked; None if there are none."""
    return None if wrenches is None else finite("wrenches", wrenches, len(robot.bodies), 6)


def prescribed_by_index(
    robot: Robot, prescribed: Mapping[str, ArrayLike], batch: tuple[int, ...]
) -> dict[int, Array]:
    """Return prescribed accelerations by joint index, each `(..., nv_i)`, or raise."""
    result: dict[int, Array] = {}
    for name, value in prescribed.items():
        i = robot.joint_index(name)
        joint, nv = robot.joints[i], kind(robot.joints[i]).nv
        if joint.mimic is not None:
            leader = robot.joints[joint.mimic.joint].name
            raise RemoraError(f"joint {name!r} mimics {leader!r}: prescribe {leader!r}")
        what = f"the prescribed acceleration of joint {name!r}"
        array = finite(what, value)
        if nv == 1 and array.ndim <= len(batch):  # one number for every state
            array = array[..., None]
        array = finite(what, array, nv)
        if not set(array.shape[:-1]) <= {1, *batch} or array.ndim > len(batch) + 1:
            raise ShapeError(f"{what} has batch shape {array.shape[:-1]}, the state {batch}")
        result[i] = array
    return result


def gather(robot: Robot, parts: list[Array], batch: tuple[int, ...]) -> Array:
    """Join one array `(..., nv_i)` per joint to `(*batch, nv)`; a follower adds to its leader."""
    entries: list[Array] = [np.zeros(())] * robot.nv
    for joint, part in zip(robot.joints, parts, strict=True):
        for k, place in enumerate(range(robot.nv)[joint.v]):
            entries[place] = entries[place] + part[..., k]
    joined = stack(entries) if entries else np.zeros(0)
    return with_batch(joined, batch, trailing=1)


def columns(robot: Robot, blocks: dict[int, Array], batch: tuple[int, ...]) -> Array:
    """Place each joint's columns `(..., 6, nv_i)` where its speeds are, `(*batch, 6, nv)`.

    What a follower adds, adds to its leader's.
    """
    placed: list[Array] = [np.zeros(6)] * robot.nv
    for j, block in blocks.items():
        for k, place in enumerate(range(robot.nv)[robot.joints[j].v]):
            placed[place] = placed[place] + block[..., :, k]
    joined = stack(placed, axis=-1) if placed else np.zeros((6, 0))
    return with_batch(joined, batch, trailing=2)


def with_batch(result: Array, batch: tuple[int, ...], trailing: int) -> Array:
    """Give a result that happens not to depend on the arguments their batch shape."""
    own = result.shape[: result.ndim - trailing]
    shape = np.broadcast_shapes(own, batch) + result.shape[result.ndim - trailing :]
    return result if shape == result.shape else np.broadcast_to(result, shape).copy()


def batch_shape(*arguments: Array) -> tuple[int, ...]:
    """Return the common batch shape of arguments whose last axis holds the coordinates."""
    batches = [a.shape[:-1] for a in arguments]
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        shown = ", ".join(map(str, batches))
        raise ShapeError(f"the arguments' batch shapes do not broadcast: {shown}") from None
