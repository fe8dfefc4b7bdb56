"""Configurations and velocities of a robot: checks, random states, motion along the tangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from remora.algebra.array_ops import (
    Array,
    ArrayLike,
    concatenate,
    is_symbolic,
    total_and_rest,
)
from remora.errors import InvalidValue
from remora.model.joints import kind
from remora.model.numbers import UNIT_TOLERANCE, finite
from remora.model.robot import Joint, Robot
from remora.model.takes_robot import takes_robot


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
        real = own[..., part]
        off = np.max(np.abs(np.einsum("...i,...i", real, real) - 1.0), initial=0.0)
        if off > 2.0 * UNIT_TOLERANCE:
            raise InvalidValue(
                f"q[{joint.q.start}:{joint.q.start + 4}], the quaternion of joint {joint.name!r}, "
                f"is not of unit length (|r|² is off by {off:.3g}); see rm.normalize"
            )
        dual = kind(joint).dual
        if dual is not None:
            moment = own[..., dual]
            mixed = np.abs(np.einsum("...i,...i", real, moment))
            size = 1.0 + np.sqrt(np.einsum("...i,...i", moment, moment))
            if np.any(mixed > UNIT_TOLERANCE * size):
                raise InvalidValue(
                    f"q[{joint.q.start}:{joint.q.stop}] of joint {joint.name!r} is not a pose: its "
                    "dual part is not orthogonal to its real part; see rm.normalize"
                )
    return q


def velocity(robot: Robot, v: ArrayLike, name: str = "v") -> Array:
    """Return v (or an acceleration, or a force, by `name`) as an array `(..., nv)`, or raise."""
    return finite(name, v, robot.nv)


@takes_robot
def neutral(robot: Robot) -> Array:
    """Return the configuration q `(nq,)` with all joints at their zero position."""
    return _gathered(robot, lambda joint: np.array(kind(joint).neutral))


@takes_robot
def random_state(
    robot: Robot, seed: int | np.random.Generator, batch: int | tuple[int, ...] = ()
) -> tuple[Array, Array]:
    """Return a random configuration `(*batch, nq)` and velocity `(*batch, nv)`.

    Angles are uniform in ±π, lengths in ±1 m, orientations uniform over all. A coordinate with two
    finite limits is uniform between them. With a single limit, values beyond it are moved to within
    π (1 m) of it. Speeds are normal with unit variance.

    Args:
        robot: the robot.
        seed: a number or a generator.
        batch: the batch shape; a number n is (n,).

    Raises:
        InvalidValue: if `batch` has a negative number.
    """
    batch = (int(batch),) if isinstance(batch, (int, np.integer)) else batch
    if any(n < 0 for n in batch):
        raise InvalidValue(f"batch={batch!r}; no number of it may be negative")
    rng = np.random.default_rng(seed)
    count = int(np.prod(batch))
    rows = [_gathered(robot, lambda j: _random_coordinates(j, rng)) for _ in range(count)]
    q = np.reshape(np.array(rows), (*batch, robot.nq)) if count else np.zeros((*batch, robot.nq))
    return q, rng.normal(size=(*batch, robot.nv))


@takes_robot
def integrate(robot: Robot, q: ArrayLike, dq: ArrayLike) -> Array:
    """Return q moved by the tangent vector dq `(..., nv)`: the velocity dq held for unit time.

    A free joint moves along the screw of its twist, a spherical one about its angular velocity;
    all other coordinates add.
    """
    return configuration(robot, q) + increment(robot, q, dq)


def increment(robot: Robot, q: ArrayLike, dq: ArrayLike) -> Array:
    """Return integrate(robot, q, dq) - q `(..., nq)`, without cancellation for small dq.

    Used for compensated (Kahan) summation of steps: the rounding error of q is carried to the next.
    """
    q, dq = configuration(robot, q), velocity(robot, dq, "dq")
    batch = np.broadcast_shapes(q.shape[:-1], dq.shape[:-1])
    return _gathered(robot, lambda j: kind(j).increment(q[..., j.q], dq[..., j.v]), *batch)


def compensated_sum(
    robot: Robot, change: Array, state: Sequence[Array], rests: Sequence[Array]
) -> tuple[Array, ...]:
    """Return a state after a change, by Kahan summation [K65]: its parts, then what rounding left.

    Args:
        robot: the robot.
        change: a tangent vector of q, followed by what is added to the other parts, `(..., n)`.
        state: q `(..., nq)`, then parts that add, such as v.
        rests: compensation terms of the sums so far, one for each part.
    """
    (q, *others), start = state, robot.nv
    sums = [total_and_rest(q, increment(robot, q, change[..., :start]) + rests[0])]
    for own, rest in zip(others, rests[1:], strict=True):
        stop = start + own.shape[-1]
        sums.append(total_and_rest(own, change[..., start:stop] + rest))
        start = stop
    return (*(total for total, _ in sums), *(rest for _, rest in sums))


def log_rate(robot: Robot, dq: ArrayLike, v: ArrayLike) -> Array:
    """Return the rate of dq `(..., nv)` at which integrate(robot, q, dq) has the velocity v.

    Where coordinates add, the rate is v; see `remora.algebra.tangent` for quaternions.
    """
    dq, v = velocity(robot, dq, "dq"), velocity(robot, v)
    batch = np.broadcast_shapes(dq.shape[:-1], v.shape[:-1])
    return _gathered(robot, lambda j: kind(j).log_rate(dq[..., j.v], v[..., j.v]), *batch)


def runge_kutta_step(
    velocity: Callable[[float, Array], Array],
    q: Array,
    h: Array | float,
    moved: Callable[[Array, Array], Array],
    in_chart: Callable[[Array, Array], Array],
    first: Array | None = None,
) -> Array:
    """Return q after a fourth-order step of q̇ = v(s, q) in the tangent space at q [MK99].

    Args:
        velocity: v(s, q) `(..., nv)`, s the part of the step, 0 to 1.
        q: configuration at the start, `(..., nq)`.
        h: length of the step.
        moved: `integrate` of the robot: q, dq -> q.
        in_chart: `log_rate` of the robot: dq, v -> rate of dq.
        first: v at the start, where it is known.
    """
    k1 = velocity(0.0, q) if first is None else first

    def stage(s: float, u: Array) -> Array:
        return in_chart(u, velocity(s, moved(q, u)))

    k2 = stage(0.5, 0.5 * h * k1)
    k3 = stage(0.5, 0.5 * h * k2)
    k4 = stage(1.0, h * k3)
    return moved(q, h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))


def log_velocity(robot: Robot, dq: ArrayLike, rate: ArrayLike) -> Array:
    """Return the velocity v `(..., nv)` of integrate(robot, q, dq) while dq changes at `rate`.

    The inverse of `log_rate`.
    """
    dq, rate = velocity(robot, dq, "dq"), velocity(robot, rate, "rate")
    batch = np.broadcast_shapes(dq.shape[:-1], rate.shape[:-1])
    return _gathered(robot, lambda j: kind(j).speeds(dq[..., j.v], rate[..., j.v]), *batch)


@takes_robot
def difference(robot: Robot, q0: ArrayLike, q1: ArrayLike) -> Array:
    """Return the shortest dq `(..., nv)` with integrate(robot, q0, dq) = q1 (up to sign)."""
    q0, q1 = configuration(robot, q0), configuration(robot, q1)
    batch = np.broadcast_shapes(q0.shape[:-1], q1.shape[:-1])
    return _gathered(robot, lambda j: kind(j).difference(q0[..., j.q], q1[..., j.q]), *batch)


@takes_robot
def normalize(robot: Robot, q: ArrayLike) -> Array:
    """Return q with its quaternions and dual quaternions normalized.

    Raises:
        InvalidValue: if a quaternion is nearly zero (shorter than 1e-6), or so long that the square
            of its length overflows.
    """
    q = finite("q", q, robot.nq)

    def part(joint: Joint) -> Array:
        own, row = q[..., joint.q], kind(joint)
        if row.quaternion is not None:
            _check_direction(joint, own[..., row.quaternion])
        return own if row.normalize is None else row.normalize(own)

    return _gathered(robot, part, *q.shape[:-1])


def _check_direction(joint: Joint, r: Array) -> None:
    """Refuse a quaternion that is nearly zero or whose length overflows."""
    if is_symbolic(r):
        return
    with np.errstate(over="ignore"):
        square = np.sum(r**2, axis=-1)
    if not np.all((square >= UNIT_TOLERANCE**2) & (square < np.inf)):
        raise InvalidValue(
            f"q[{joint.q.start}:{joint.q.start + 4}], the quaternion of joint {joint.name!r}, is "
            "zero, or too short or too long to be scaled to unit length"
        )


def _gathered(robot: Robot, part: Callable[[Joint], Array], *batch: int) -> Array:
    """Concatenate one array per joint that has its own coordinates (mimic joints have none)."""
    parts = [part(j) for j in robot.joints if j.mimic is None and kind(j).nq > 0]
    return concatenate(parts) if parts else np.zeros((*batch, 0))


def _random_coordinates(joint: Joint, rng: np.random.Generator) -> Array:
    q = kind(joint).random(rng)
    if kind(joint).nq != kind(joint).nv:
        return q
    lower, upper = joint.limits.lower, joint.limits.upper
    bounded = np.isfinite(lower) & np.isfinite(upper)
    low, high = np.where(bounded, lower, 0.0), np.where(bounded, upper, 0.0)
    t = rng.uniform(size=q.shape)
    between = np.clip((1.0 - t) * low + t * high, low, high)  # high - low might overflow
    q = np.where(q < lower, lower + np.abs(q), q)
    q = np.where(q > upper, upper - np.abs(q), q)
    return np.where(bounded, between, q)
