"""Measures of manipulability as kernels: one number for each configuration of a large batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from remora.algebra import singular_values
from remora.algebra.array_ops import Array, ArrayLike, asarray, stack
from remora.analysis.arm import base_speeds
from remora.analysis.manipulability import characteristic_length, ellipsoid_matrix
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.refusals import without_constraints
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import in_coordinates
from remora.model.numbers import finite
from remora.model.robot import FrameLike, Robot
from remora.model.state import configuration, neutral
from remora.model.takes_robot import takes_robot

#: Configurations evaluated in one call of a kernel, so that a map needs little memory.
CHUNK = 1 << 16


def _condition(B: Array) -> Array:
    sigma = singular_values.singular_values(B)
    return sigma[..., 0] / sigma[..., -1]


#: Measures of an ellipsoid matrix B `(..., k, n)`.
MEASURES: Mapping[str, Callable[[Array], Array]] = MappingProxyType({
    "volume": singular_values.volume,
    "condition": _condition,
    "smallest": lambda B: singular_values.singular_values(B)[..., -1],
    "largest": lambda B: singular_values.singular_values(B)[..., 0],
})  # fmt: skip


def measure(
    robot: Robot,
    q: Array,
    frame: FrameLike,
    name: str,
    base: str,
    kind: str,
    subspace: str | ArrayLike,
    length: float,
    joints: Sequence[str] | None = None,
) -> Array:
    """Return a measure of MEASURES `(...)`, on floats and symbols; see `manipulability`.

    Measures of a static ellipsoid are those of S J, whose semi-axes are the reciprocals.
    """
    return MEASURES[name](
        ellipsoid_matrix(robot, q, frame, base, kind, subspace, length, joints=joints)
    )


def check_measure(name: str) -> str:
    """Return the name of a measure, or raise."""
    if name not in MEASURES:
        raise UnknownName("measure", name, MEASURES)
    return name


@takes_robot
@without_constraints
def manipulability_map(
    robot: Robot,
    frame: FrameLike,
    grid: Mapping[str, ArrayLike],
    measure: str = "volume",
    base: str = "fixed",
    kind: str = "kinematic",
    subspace: str | ArrayLike = "translation",
    length: float | None = None,
    joints: Sequence[str] | None = None,
    q: ArrayLike | None = None,
    threads: int = 1,
) -> Array:
    """Return a measure of manipulability over a grid of joint positions.

    Compiled: a million configurations of a seven-joint arm on a floating base take about a second
    on one core.

    Args:
        robot: the robot.
        frame: the name of a body or frame, the index of a body, or a Frame.
        grid: positions by joint, rad or m: `{"shoulder": (n,), "elbow": (m,)}`.
        measure: "volume" (Yoshikawa's), "condition", "smallest" or "largest" semi-axis.
        base: as for `manipulability`, like the following.
        kind: "kinematic" or "dynamic".
        subspace: of the twist.
        length: characteristic length, m.
        joints: names of the joints that move.
        q: configuration of the other joints, `(nq,)`; default: neutral.
        threads: number of CPU threads; 0 for one per processor.

    Returns:
        `(n, m, ...)`, one axis for each joint of the grid, in its order.

    Raises:
        InvalidValue: if the grid is empty.
    """
    check_measure(measure)
    if kind == "static":
        raise InvalidValue(
            "a map of static manipulability is that of the kinematic one: the semi-axes are its "
            "reciprocals"
        )
    axes = grid_axes(robot, grid)
    rest = neutral(robot) if q is None else configuration(robot, q)
    fixed = {
        "frame": frame, "places": tuple(axes), "q0": rest, "name": measure, "base": base,
        "kind": kind, "subspace": subspace, "joints": joints,
        "length": characteristic_length(robot, frame, length),
    }  # fmt: skip
    kernel = compile_function(
        swept_measure, robot, shapes={"swept": (len(axes),)}, fixed=fixed, arguments=("swept",)
    )
    return over_grid(list(axes.values()), lambda swept: kernel(swept, threads=threads))


def grid_axes(robot: Robot, grid: Mapping[str, ArrayLike]) -> dict[int, Array]:
    """Return the positions of a grid by index in q, after checking them."""
    if not grid:
        raise InvalidValue("the grid is empty: give positions of at least one joint")
    axes: dict[int, Array] = {}
    for name, given in grid.items():
        joint = robot.joints[robot.joint_index(name)]
        values = finite(f"the grid of joint {name!r}", given)
        if (
            joint.mimic is not None
            or joint.q.stop - joint.q.start != 1
            or not in_coordinates(joint)
        ):
            raise InvalidValue(f"joint {name!r} has no single coordinate of its own to sweep")
        if joint.q.start < base_speeds(robot):
            raise InvalidValue(f"joint {name!r} is the base")
        if values.ndim != 1 or not values.size:
            raise InvalidValue(f"the grid of joint {name!r} is empty: give positions `(n,)`")
        axes[joint.q.start] = values
    return axes


def swept_measure(
    robot: Robot,
    swept: Array,
    places: Sequence[int],
    q0: Array,
    frame: FrameLike,
    name: str,
    base: str,
    kind: str,
    subspace: str | ArrayLike,
    length: float,
    joints: Sequence[str] | None,
) -> Array:
    """Return a measure `(..., 1)` with the coordinates `places` of q0 at `swept`."""
    q = with_coordinates(q0, places, swept)
    return stack([measure(robot, q, frame, name, base, kind, subspace, length, joints)])


def with_coordinates(q0: Array, places: Sequence[int], values: Array) -> Array:
    """Return q0 `(nq,)` with the coordinates `places` replaced by values `(..., m)`."""
    entries = [asarray(q0)[..., i] for i in range(np.shape(q0)[-1])]
    for k, place in enumerate(places):
        entries[place] = values[..., k]
    return stack(entries)


def over_grid(axes: Sequence[Array], function: Callable[[Array], Any]) -> Array:
    """Return function of every point of a grid, `(n, m, ..., *rest)`; it takes points `(c, d)`.

    The last axis of its results is dropped if it has one entry.
    """
    shape = tuple(len(axis) for axis in axes)
    total = int(np.prod(shape))
    parts: list[Array] = []
    for start in range(0, total, CHUNK):
        number = np.arange(start, min(start + CHUNK, total))
        index = np.unravel_index(number, shape)
        points = np.stack([axis[i] for axis, i in zip(axes, index, strict=True)], axis=-1)
        parts.append(function(points))
    whole = np.concatenate(parts)
    return whole.reshape(shape + (whole.shape[1:] if whole.shape[1:] != (1,) else ()))
