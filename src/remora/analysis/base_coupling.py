"""Coupling of base and arm: recoil of the base, and momentum that wheels must store.

At zero momentum the vehicle's twist is R v_m with R = -H_0⁻¹ H_0m [SPART17, eq. 46]. The coupling
factor is the largest singular value of R's rotational or translational rows: the fastest that the
vehicle turns or moves for joint speeds of unit norm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import pose, singular_values, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, stack
from remora.analysis.arm import arm_speeds, check_base
from remora.analysis.measures import grid_axes, over_grid, with_coordinates
from remora.dynamics.floating import base_response
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.kinematics import poses
from remora.dynamics.momentum import centroidal_momentum_matrix
from remora.errors import InvalidValue, UnknownName
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, neutral, velocity
from remora.model.takes_robot import takes_robot

#: Parts of the vehicle's motion: rows of its twist [ω, v].
PARTS = {"rotation": slice(0, 3), "translation": slice(3, 6)}


class Coupling(NamedTuple):
    """Coupling of a floating base with its arm.

    Attributes:
        response: vehicle's ω (or v, in its own axes) per joint speed, `(..., 3, n)`.
        factor: coupling factor, the largest singular value of `response`, `(...)`.
        worst: joint speeds of unit norm that disturb the vehicle most, `(..., n)`.
        per_joint: rate of the vehicle per unit speed of each joint, `(..., n)`.
    """

    response: Array
    factor: Array
    worst: Array
    per_joint: Array


@takes_robot
def coupling(
    robot: Robot,
    q: ArrayLike,
    part: str = "rotation",
    joints: Sequence[str] | None = None,
) -> Coupling:
    """Return the angular velocity of a floating base per joint speed, at zero momentum.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        part: "rotation", rad/s, or "translation", m/s of the base frame's origin.
        joints: names of the joints that move; default: all but the base.
    """
    return coupling_of(_response(robot, configuration(robot, q), part, joints))


def coupling_of(response: Array) -> Coupling:
    """Return factor, worst joint speeds and each joint's part of a response `(..., 3, n)`."""
    U, sigma = singular_values.left_svd(response)
    back = (vector.transpose(response) @ U[..., :, :1])[..., 0]
    size = np.sqrt(vector.dot(back, back))
    return Coupling(
        response, sigma[..., 0], back / np.where(size > 0.0, size, 1.0), _column_norms(response)
    )


@takes_robot
def coupling_map(
    robot: Robot,
    grid: Mapping[str, ArrayLike],
    part: str = "rotation",
    joints: Sequence[str] | None = None,
    q: ArrayLike | None = None,
    threads: int = 1,
) -> Array:
    """Return the coupling factor and each joint's part of it over a grid of joint positions.

    Args:
        robot: a robot with a free base.
        grid: positions by joint, rad or m: `{"shoulder": (n,), "elbow": (m,)}`.
        part: "rotation" or "translation".
        joints: names of the joints that move; default: all but the base.
        q: configuration of the other joints, `(nq,)`; default: neutral.
        threads: number of CPU threads; 0 for one per processor.

    Returns:
        `(n, m, ..., 1 + joints)`: the factor, then the vehicle's rate per unit speed of each joint.
    """
    check_base(robot, "floating")
    _part(part)
    axes = grid_axes(robot, grid)
    rest = neutral(robot) if q is None else configuration(robot, q)
    fixed = {"places": tuple(axes), "q0": rest, "part": part, "joints": joints}
    kernel: Any = compile_function(
        swept_coupling, robot, shapes={"swept": (len(axes),)}, fixed=fixed, arguments=("swept",)
    )
    return over_grid(list(axes.values()), lambda swept: kernel(swept, threads=threads))


def swept_coupling(
    robot: Robot, swept: Array, places: Sequence[int], q0: Array, part: str,
    joints: Sequence[str] | None,
) -> Array:  # fmt: skip
    """Return factor and per-joint rates `(..., 1 + n)` with coordinates `places` at `swept`."""
    response = _response(robot, with_coordinates(q0, places, swept), part, joints)
    factor = singular_values.singular_values(response)[..., 0]
    return concatenate([stack([factor]), _column_norms(response)])


class DisturbanceBudget(NamedTuple):
    """What each joint did to the vehicle in a manoeuvre.

    Attributes:
        names: what contributed: the joints' speeds by name, then "momentum" for what the total
            momentum adds, such as that of external loads or of the start.
        rotation: ∫ω dt of each contribution in inertial axes, `(m, 3)`, rad. They add up to the
            integral of the vehicle's angular velocity.
        translation: displacement of the base frame's origin by each, `(m, 3)`, m.
        total: their sum, [rotation, translation], `(6,)`.
        peak: largest angular rate that each caused, `(m,)`, rad/s.
        travel: ∫|ω| dt of each, `(m,)`, rad: what it did without regard to cancellation.
    """

    names: tuple[str, ...]
    rotation: Array
    translation: Array
    total: Array
    peak: Array
    travel: Array


@takes_robot
def disturbance_budget(robot: Robot, t: ArrayLike, q: ArrayLike, v: ArrayLike) -> DisturbanceBudget:
    """Return what each joint's motion contributed to the vehicle's motion in a run.

    ω_0 = R_1 v_1 + ... + R_n v_n and a rest that the total momentum causes. Each is turned to
    inertial axes and integrated over the run (Simpson's rule on unequal steps).

    Args:
        robot: a robot with a free base.
        t: times of the samples, `(k,)`, s, increasing.
        q: configurations, `(k, nq)`.
        v: velocities, `(k, nv)`.
    """
    check_base(robot, "floating")
    times = finite("t", t)
    q, v = configuration(robot, q), velocity(robot, v)
    if times.ndim != 1 or len(times) < 3 or q.shape[:-1] != times.shape or len(v) != len(times):
        raise InvalidValue("t, q and v must be (k,), (k, nq) and (k, nv) with at least 3 samples")
    if not np.all(np.diff(times) > 0.0):
        raise InvalidValue("the times t must increase")
    shares = base_response(robot, q) * v[:, None, 6:]
    rest = v[:, :6] - shares.sum(axis=-1)
    twists = np.concatenate([shares, rest[..., None]], axis=-1)  # (k, 6, m)
    R = pose.to_rotation_matrix(poses(robot, q)[:, 0])
    turned = np.concatenate([R @ twists[:, :3], R @ twists[:, 3:]], axis=1)
    whole = _integral(times, turned).T
    size = np.linalg.norm(twists[:, :3], axis=1)
    names = (*_speed_names(robot), "momentum")
    return DisturbanceBudget(
        names, whole[:, :3], whole[:, 3:], whole.sum(axis=0), size.max(axis=0),
        _integral(times, size),
    )  # fmt: skip


@takes_robot
def momentum_demand(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return the angular momentum that wheels must store to keep the vehicle from turning.

    `(..., 3)`, N m s, about the system's centre of mass, inertial axes: that of the arm's speeds
    while the vehicle does not turn and the total linear momentum is zero.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`; only the joints' speeds count.
    """
    check_base(robot, "floating")
    q, v = configuration(robot, q), velocity(robot, v)
    # about the centre of mass, the velocity of the vehicle has no angular momentum
    return vector.apply(centroidal_momentum_matrix(robot, q)[..., 3:, 6:], v[..., 6:])


@takes_robot
def wheel_margin(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    axes: ArrayLike,
    capacity: ArrayLike,
) -> Array:
    """Return how often the arm's demand fits into the wheels' momentum envelope, `(...)`.

    The envelope is the zonotope `{Σ h_i a_i, |h_i| ≤ H_i}`. A margin of 1 is on its surface, below
    1 the wheels saturate and the vehicle turns; infinite without demand.

    Args:
        robot: a robot with a free base.
        q: configurations, `(..., nq)`.
        v: velocities, `(..., nv)`.
        axes: spin axes of the wheels in the base frame, `(w, 3)`, of unit length.
        capacity: largest momentum of each wheel, `(w,)`, N m s.

    Raises:
        InvalidValue: if the wheels do not span three directions.
    """
    q = configuration(robot, q)
    demand = momentum_demand(robot, q, v)
    R = pose.to_rotation_matrix(poses(robot, q)[..., 0, :])
    own = vector.apply(vector.transpose(R), demand)
    normals, support = wheel_envelope(axes, capacity)
    load = np.abs(own @ normals.T) / support
    with np.errstate(divide="ignore"):
        return 1.0 / load.max(axis=-1)


def wheel_envelope(axes: ArrayLike, capacity: ArrayLike) -> tuple[Array, Array]:
    """Return the faces of the wheels' momentum envelope: unit normals `(f, 3)` and distances.

    A momentum h is inside where `|n · h| ≤ distance` for every face. The normals are a_i × a_j, the
    distance of each is `Σ H_k |n · a_k|`.

    Args:
        axes: spin axes of the wheels, `(w, 3)`, of unit length.
        capacity: largest momentum of each wheel, `(w,)`, N m s.
    """
    a, H = finite("axes", axes, 3), finite("capacity", capacity)
    if a.ndim != 2 or H.shape != (len(a),):
        raise InvalidValue(f"axes must be (w, 3) and capacity (w,), not {a.shape} and {H.shape}")
    if np.any(np.abs(np.linalg.norm(a, axis=-1) - 1.0) > 1e-6) or np.any(H <= 0.0):
        raise InvalidValue("axes must be of unit length and capacities positive")
    i, j = np.triu_indices(len(a), 1)
    normals = np.cross(a[i], a[j])
    size = np.linalg.norm(normals, axis=-1)
    normals = normals[size > 1e-9] / size[size > 1e-9, None]
    if len(a) < 3 or np.linalg.matrix_rank(a, 1e-9) < 3:
        raise InvalidValue("the wheels' axes must span three directions")
    return normals, np.abs(normals @ a.T) @ H


def _part(part: str) -> slice:
    if part not in PARTS:
        raise UnknownName("part of the vehicle's motion", part, PARTS)
    return PARTS[part]


def _response(robot: Robot, q: Array, part: str, joints: Sequence[str] | None) -> Array:
    rows = _part(part)
    columns = [k - 6 for k in arm_speeds(robot, joints)]
    return base_response(robot, q)[..., rows, :][..., :, columns]


def _column_norms(A: Array) -> Array:
    squares = [vector.dot(A[..., :, k], A[..., :, k])[..., 0] for k in range(A.shape[-1])]
    return np.sqrt(stack(squares))


def _speed_names(robot: Robot) -> tuple[str, ...]:
    names = [""] * robot.nv
    for joint in robot.joints:
        places = range(robot.nv)[joint.v]
        for k, place in enumerate(places):
            if joint.mimic is None:
                names[place] = joint.name if len(places) == 1 else f"{joint.name} {k}"
    return tuple(names[6:])


def _integral(t: Array, x: Array) -> Array:
    """Return ∫x dt over samples `(k, ...)`: parabolas through three neighbours, both sides meaned.

    Exact for cubics on equal steps in the interior; a trapezoid corrected by second differences.
    """
    h = np.diff(t)
    shape = (-1,) + (1,) * (x.ndim - 1)
    slope = np.diff(x, axis=0) / h.reshape(shape)
    curve = np.diff(slope, axis=0) / (0.5 * (h[1:] + h[:-1])).reshape(shape)
    near = np.concatenate([curve[:1], 0.5 * (curve[1:] + curve[:-1]), curve[-1:]])
    weight = (h**3 / 12.0).reshape(shape)
    trapezoid = 0.5 * (x[1:] + x[:-1]) * h.reshape(shape)
    return (trapezoid - weight * near).sum(axis=0)
