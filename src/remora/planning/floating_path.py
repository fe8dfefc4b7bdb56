"""Straight joint paths of a floating robot: motion of the base, and variation of its final pose.

The joints move along q_m(s) = q_m0 exp(s d), 0 ≤ s ≤ 1, all at once, at zero momentum. The base's
twist per unit of s is V = B(q_m) d [SPART17, eq. 46] whatever the time law, and B depends on the
joints alone. So V is known in advance along the whole path, and the base's pose X' = X V follows by
a Magnus expansion of sixth order with three Gauss points in each of n steps [HLW06, section IV.7].
The end depends on the whole path (nonholonomic). If d changes by δ, the base's end pose changes by
the twist, in the base's own axes there,

    η = ∫ Ad(X(1)⁻¹ X(s)) (B + s ∂(B d)/∂q_m) δ ds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array
from remora.dynamics.floating import base_response, base_response_rate
from remora.dynamics.kernels.kernel_memory import kernel
from remora.model.robot import Robot
from remora.model.state import integrate, log_velocity

#: Gauss points and weights on [0, 1].
_NODES = 0.5 + math.sqrt(15.0) / 10.0 * np.array([-1.0, 0.0, 1.0])
_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
#: The base's end pose changes less than this when the number of steps is doubled.
PATH_ACCURACY = 1e-12
MOST_STEPS = 1024


@dataclass(frozen=True, eq=False)
class JointPath:
    """A straight path of the joints of a floating robot.

    Attributes:
        s: path parameter at the samples, `(n,)`, 0 to 1.
        q: configurations, `(n, nq)`: joints on the straight line, base by conservation of momentum.
        way: tangent vector of the joints from start to end, `(nv - 6,)`, rad or m.
    """

    s: Array
    q: Array
    way: Array


def equal_steps(count: int) -> Array:
    """Return the path parameter at the ends of equal steps, `(count + 1,)`."""
    return np.linspace(0.0, 1.0, count + 1)


def base_motion(robot: Robot, compiled: bool) -> Callable[..., Array]:
    """Return B(q) as a function of arrays, compiled or in NumPy."""
    if not compiled:
        return functools.partial(base_response, robot)
    return kernel(base_response, robot, ("q",))


def base_motion_rate(robot: Robot, compiled: bool) -> Callable[..., Array]:
    """Return Ḃ(q, v) as a function of arrays, compiled or in NumPy."""
    if not compiled:
        return functools.partial(base_response_rate, robot)
    return kernel(base_response_rate, robot, ("q", "v"))


def follow(robot: Robot, q: Array, way: Array, s: Array, response: Callable[..., Array]) -> Array:
    """Return the base's poses at points of a straight path, `(n, 8)`; one step between two points.

    Args:
        robot: a robot with one free base.
        q: configuration at the start, `(nq,)`.
        way: tangent vector of the joints, `(nv - 6,)`.
        s: path parameter at the points, ascending from 0, `(n,)`.
        response: q -> B.
    """
    h = np.diff(s)[:, None]
    V = (response(_along(robot, q, way, _gauss_points(s))) @ way).reshape(-1, 3, 6)
    turns = dual_quaternion.exp(0.5 * _magnus(h, V[:, 0], V[:, 1], V[:, 2]))
    x = [q[:8]]
    for turn in turns:
        x.append(dual_quaternion.mul(x[-1], turn))
    return dual_quaternion.normalize(np.array(x))


def _gauss_points(s: Array) -> Array:
    """Return the Gauss points of the steps between the points s `(n,)`, `(3 n - 3,)`."""
    return (s[:-1, None] + np.diff(s)[:, None] * _NODES).ravel()


def _along(robot: Robot, q: Array, way: Array, s: Array) -> Array:
    """Return configurations on the path; their base stays where it was, for B ignores it."""
    return integrate(robot, q, s[:, None] * np.concatenate([np.zeros(6), way]))


def _magnus(h: Array, a: Array, b: Array, c: Array) -> Array:
    """Return the screw of a step of X' = X V, V at three Gauss points, to sixth order."""
    first, second = h * b, math.sqrt(15.0) / 3.0 * h * (c - a)
    third = 10.0 / 3.0 * h * (c - 2.0 * b + a)
    # V acts from the right, so each commutator has the opposite sign of that for X' = V X.
    once = -screw.cross(first, second)
    twice = screw.cross(first, 2.0 * third + once) / 60.0
    outer = screw.cross(-20.0 * first - third + once, second + twice)
    return first + third / 12.0 - outer / 240.0


def end_of_path(
    robot: Robot, q: Array, way: Array, steps: int, response: Callable[..., Array]
) -> Array:
    """Return the configuration at the end of a straight path, `(nq,)`."""
    x = follow(robot, q, way, equal_steps(steps), response)[-1]
    moved = integrate(robot, q, np.concatenate([np.zeros(6), way]))
    return np.concatenate([x, moved[8:]])


def end_variation(
    robot: Robot,
    q: Array,
    way: Array,
    steps: int,
    response: Callable[..., Array],
    response_rate: Callable[..., Array],
) -> Array:
    """Return W `(nv, nv - 6)`: the velocity of the path's end per rate of `way`.

    The joints' rows are the differential of the exponential map, an identity for joints whose
    coordinates add.
    """
    count, points = way.size, equal_steps(steps)
    s = _gauss_points(points)
    along, full = _along(robot, q, way, s), np.concatenate([np.zeros(6), way])
    rates = np.concatenate([np.zeros((count, 6)), np.eye(count)], axis=1)
    # Row j: the velocity of the joints at s while way[j] changes at unit rate.
    moved = log_velocity(robot, s[:, None, None] * full, s[:, None, None] * rates)
    slope = response_rate(along[:, None, :], moved) @ way
    dV = response(along) + np.swapaxes(slope, -1, -2)
    x = follow(robot, q, way, points, response)
    # Poses at the Gauss points, interpolated by the screw of each step: second order suffices.
    inner = dual_quaternion.sclerp(
        np.repeat(x[:-1], 3, axis=0), np.repeat(x[1:], 3, axis=0), np.tile(_NODES, steps)
    )
    to_end = dual_quaternion.mul(dual_quaternion.conjugate(x[-1]), inner)
    eta = np.einsum(
        "k,kij,kjl->il", np.tile(_WEIGHTS, steps) / steps, screw.adjoint_matrix(to_end), dV
    )
    joints = log_velocity(robot, full, rates)[:, 6:]
    return np.concatenate([eta, joints.T])


def sampled_path(
    robot: Robot, q: Array, way: Array, steps: int, response: Callable[..., Array]
) -> JointPath:
    """Return the path with the base's pose converged to rounding, sampled at `steps` or more."""
    coarse = follow(robot, q, way, equal_steps(steps), response)
    while True:
        steps *= 2
        s = equal_steps(steps)
        fine = follow(robot, q, way, s, response)
        settled = np.max(np.abs(fine[-1] - coarse[-1])) <= PATH_ACCURACY * (
            1.0 + np.max(np.abs(fine[-1]))
        )
        if settled or steps >= MOST_STEPS:
            break
        coarse = fine
    joints = _along(robot, q, way, s)[:, 8:]
    return JointPath(s, np.concatenate([fine, joints], axis=1), way)
