"""Configurations and velocities by the names of joints, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.errors import InvalidValue, ShapeError, UnknownName
from remora.model import state
from remora.model.arguments import by_name
from remora.model.joints import kind
from remora.model.numbers import finite
from remora.model.robot import Joint, Robot
from remora.model.takes_robot import takes_robot


@takes_robot
def configuration(
    robot: Robot,
    joints: Mapping[str, ArrayLike] | None = None,
    base: ArrayLike | None = None,
    xyz: ArrayLike | None = None,
    rpy: ArrayLike | None = None,
    q0: ArrayLike | None = None,
) -> Array:
    """Return the configuration `(..., nq)` with given coordinates of joints, by name.

    All arrays may have leading batch dimensions and may be symbolic. `by_joint` is the inverse.

    Args:
        robot: the robot.
        joints: by joint: a number `(...)` for one coordinate, rad or m, otherwise `(..., nq_i)`.
        base: coordinates of joint 0; of a free base its pose, `(..., 8)`; or give `xyz` and `rpy`.
        xyz: position of a free base, `(..., 3)`, m.
        rpy: its roll, pitch, yaw, `(..., 3)`, rad.
        q0: configuration of what is not given, `(..., nq)`; default: `rm.neutral`.

    Raises:
        UnknownName: for a name that is not a joint; the message lists the joints.
        InvalidValue: for a joint without coordinates of its own (fixed or mimic), for a joint given
            twice, or for a quaternion that is not of unit length.
        ShapeError: for a wrong number of coordinates.

    Example:
        >>> robot = rm.load("servicer")
        >>> q = rm.configuration(robot, {"elbow_pitch": -1.0}, xyz=(0.0, 0.0, 10.0))
        >>> float(q[robot.joints["elbow_pitch"].q][0])
        -1.0
    """
    first = robot.joints[0]
    if (xyz is not None or rpy is not None) and (base is not None or first.kind != "free"):
        reason = "base and xyz or rpy are both given; give one of them" if base is not None else (
            f"xyz and rpy are for a free base; that of {robot.name!r} is {first.kind}: use base="
        )  # fmt: skip
        raise InvalidValue(reason)
    if xyz is not None or rpy is not None:
        position = finite("xyz", (0.0, 0.0, 0.0) if xyz is None else xyz, 3)
        angles = finite("rpy", (0.0, 0.0, 0.0) if rpy is None else rpy, 3)
        base = _pose(position, angles)
    rest = state.neutral(robot) if q0 is None else q0
    parts = _parts(robot, by_name("joints", joints), base, "q")
    return state.configuration(robot, _assembled(robot, parts, finite("q0", rest, robot.nq), "q"))


@takes_robot
def velocity(
    robot: Robot,
    joints: Mapping[str, ArrayLike] | None = None,
    base: ArrayLike | None = None,
    v0: ArrayLike | None = None,
) -> Array:
    """Return the velocity `(..., nv)` with given speeds of joints, by name; for forces as well.

    Args:
        robot: the robot.
        joints: by joint: a number `(...)` for one speed, rad/s or m/s, otherwise `(..., nv_i)`.
        base: speeds of joint 0; of a free base its twist [ω, v] in its own axes, `(..., 6)`.
        v0: velocity of what is not given, `(..., nv)`; default: zero.

    Raises:
        UnknownName: for a name that is not a joint; the message lists the joints.
        InvalidValue: for a joint without speeds of its own (fixed or mimic), or given twice.
        ShapeError: for a wrong number of speeds.
    """
    rest = np.zeros(robot.nv) if v0 is None else v0
    parts = _parts(robot, by_name("joints", joints), base, "v")
    return state.velocity(robot, _assembled(robot, parts, finite("v0", rest, robot.nv), "v"))


@takes_robot
def by_joint(robot: Robot, x: ArrayLike) -> dict[str, Array]:
    """Return a configuration, velocity or force as one array per joint, by name.

    One coordinate (or speed) is `(...)`, several are `(..., k)`. Fixed and mimic joints have none
    of their own and are left out, so that `configuration(robot, by_joint(robot, q))` is q.

    Args:
        robot: the robot.
        x: q `(..., nq)`, or v, vdot or tau `(..., nv)`.

    Raises:
        ShapeError: if x has neither size.
    """
    array = finite("x", x)
    sizes = {robot.nq: "q", robot.nv: "v"}  # if both are equal, so are the slices
    if array.ndim == 0 or array.shape[-1] not in sizes:
        raise ShapeError(
            f"x must be (..., {robot.nq}) as q or (..., {robot.nv}) as v, not {array.shape}"
        )
    which = sizes[array.shape[-1]]
    found = {j.name: array[..., getattr(j, which)] for j in _own(robot, which)}
    return {name: part[..., 0] if part.shape[-1] == 1 else part for name, part in found.items()}


def _pose(position: Array, angles: Array) -> Array:
    batch = _batch(position, angles)
    return pose.from_xyz_rpy(
        np.broadcast_to(position, (*batch, 3)), np.broadcast_to(angles, (*batch, 3))
    )


def _own(robot: Robot, which: str) -> list[Joint]:
    """Return the joints with coordinates (`q`) or speeds (`v`) of their own."""
    return [j for j in robot.joints if j.mimic is None and _size(j, which) > 0]


def _size(joint: Joint, which: str) -> int:
    return kind(joint).nq if which == "q" else kind(joint).nv


def _parts(
    robot: Robot, joints: dict[str, ArrayLike], base: ArrayLike | None, which: str
) -> dict[str, Array]:
    """Return the given coordinates or speeds of each joint, `(..., k)`, checked."""
    if base is not None:
        first = robot.joints[0].name
        if first in joints:
            raise InvalidValue(f"joint {first!r} is the base: pass it as base= or by name, once")
        joints[first] = base
    parts: dict[str, Array] = {}
    for name, value in joints.items():
        if name not in robot.joints:
            raise UnknownName("joint", name, robot.joints.names)
        joint = robot.joints[name]
        if joint.mimic is not None:
            leader = robot.joints[joint.mimic.joint].name
            raise InvalidValue(f"joint {name!r} mimics {leader!r}: give that one")
        size = _size(joint, which)
        if size == 0:
            raise InvalidValue(f"joint {name!r} is fixed: it cannot move")
        given = finite(f"joint {name!r}", value)
        if size == 1:  # a number, as `by_joint` returns it
            parts[name] = given[..., None]
        elif given.ndim and given.shape[-1] == size:
            parts[name] = given
        else:
            wanted = f"(..., {size})"
            raise ShapeError(f"joint {name!r} ({joint.kind}) must be {wanted}, not {given.shape}")
    return parts


def _assembled(robot: Robot, parts: Mapping[str, Array], rest: Array, which: str) -> Array:
    batch = _batch(rest, *parts.values())
    pieces = [
        np.broadcast_to(
            parts.get(joint.name, rest[..., getattr(joint, which)]), (*batch, _size(joint, which))
        )
        for joint in _own(robot, which)
    ]
    return concatenate(pieces) if pieces else np.zeros((*batch, 0))


def _batch(*arrays: Array) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    except ValueError:
        shapes = sorted({array.shape[:-1] for array in arrays})
        raise ShapeError(f"the batch shapes {', '.join(map(str, shapes))} do not match") from None
