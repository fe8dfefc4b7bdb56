"""Configurations and velocities of a robot: checked, made, moved along the tangent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from remora.algebra import dual_quaternion, quaternion
from remora.algebra.namespace import Array, ArrayLike, concatenate, is_symbolic
from remora.errors import ValueRefused
from remora.model.joints import kind
from remora.model.robot import Joint, Robot
from remora.model.validate import UNIT_TOLERANCE, finite


def configuration(robot: Robot, q: ArrayLike) -> Array:
    """Return q as an array `(..., nq)` of finite numbers with unit quaternions, or raise."""
    q = finite("q", q, robot.nq)
    if is_symbolic(q):
        return q
    for joint in robot.joints:
        part = kind(joint).quaternion
        if part is None:
            continue
        own = q[..., joint.q]
        off = np.max(np.abs(np.sum(own[..., part] ** 2, axis=-1) - 1.0), initial=0.0)
        if off > 2.0 * UNIT_TOLERANCE:
            raise ValueRefused(
                f"q[{joint.q.start}:{joint.q.start + 4}], the quaternion of joint {joint.name!r}, "
                f"is not of unit length (|r|² is off by {off:.3g}); see rm.normalize"
            )
        if joint.kind == "free":
            mixed = np.abs(np.sum(own[..., :4] * own[..., 4:], axis=-1))
            size = 1.0 + np.sqrt(np.sum(own[..., 4:] ** 2, axis=-1))
            if np.any(mixed > UNIT_TOLERANCE * size):
                raise ValueRefused(
                    f"q[{joint.q.start}:{joint.q.stop}] of joint {joint.name!r} is no pose: its "
                    "dual part is not orthogonal to its real part; see rm.normalize"
                )
    return q


def velocity(robot: Robot, v: ArrayLike, name: str = "v") -> Array:
    """Return v (or an acceleration, or a force, by `name`) as an array `(..., nv)`, or raise."""
    return finite(name, v, robot.nv)


def neutral(robot: Robot) -> Array:
    """Return the configuration q `(nq,)` in which no joint is moved."""
    return _gathered(robot, lambda joint: np.array(kind(joint).neutral))


def random_state(
    robot: Robot, seed: int | np.random.Generator, batch: tuple[int, ...] = ()
) -> tuple[Array, Array]:
    """Return a random configuration `(*batch, nq)` and velocity `(*batch, nv)`.

    Angles are uniform in ±π, lengths in ±1 m, orientations uniform over all; within the joint
    limits where those are finite. Speeds are normal with unit variance.
    """
    rng = np.random.default_rng(seed)
    count = int(np.prod(batch))
    rows = [_gathered(robot, lambda j: _random_coordinates(j, rng)) for _ in range(count)]
    q = np.reshape(np.array(rows), (*batch, robot.nq)) if count else np.zeros((*batch, robot.nq))
    return q, rng.normal(size=(*batch, robot.nv))


def integrate(robot: Robot, q: ArrayLike, dq: ArrayLike) -> Array:
    """Return q moved by the tangent vector dq `(..., nv)`: the velocity dq held for unit time.

    A free joint moves along the screw of its twist, a spherical one about its angular velocity;
    all other coordinates add.
    """
    q, dq = configuration(robot, q), velocity(robot, dq, "dq")
    batch = np.broadcast_shapes(q.shape[:-1], dq.shape[:-1])
    return _gathered(robot, lambda j: kind(j).integrate(q[..., j.q], dq[..., j.v]), *batch)


def difference(robot: Robot, q0: ArrayLike, q1: ArrayLike) -> Array:
    """Return the shortest dq `(..., nv)` with integrate(robot, q0, dq) = q1 (up to sign)."""
    q0, q1 = configuration(robot, q0), configuration(robot, q1)
    batch = np.broadcast_shapes(q0.shape[:-1], q1.shape[:-1])
    return _gathered(robot, lambda j: kind(j).difference(q0[..., j.q], q1[..., j.q]), *batch)


def normalize(robot: Robot, q: ArrayLike) -> Array:
    """Return q with its quaternions and dual quaternions scaled back to unit."""
    q = finite("q", q, robot.nq)
    unit = {"free": dual_quaternion.normalize, "spherical": quaternion.normalize}

    def part(joint: Joint) -> Array:
        own = q[..., joint.q]
        return unit[joint.kind](own) if joint.kind in unit else own

    return _gathered(robot, part, *q.shape[:-1])


def _gathered(robot: Robot, part: Callable[[Joint], Array], *batch: int) -> Array:
    """Join one array per joint that has coordinates of its own (followers have none)."""
    parts = [part(j) for j in robot.joints if j.mimic is None and kind(j).nq > 0]
    return concatenate(parts) if parts else np.zeros((*batch, 0))


def _random_coordinates(joint: Joint, rng: np.random.Generator) -> Array:
    q = kind(joint).random(rng)
    if kind(joint).nq != kind(joint).nv:
        return q
    lower, upper = joint.limits.lower, joint.limits.upper
    bounded = np.isfinite(lower) & np.isfinite(upper)
    low, high = np.where(bounded, lower, 0.0), np.where(bounded, upper, 0.0)
    return np.where(bounded, rng.uniform(low, high), q)
