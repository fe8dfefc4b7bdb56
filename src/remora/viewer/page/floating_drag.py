"""Recoil of a floating base while joints are dragged by hand (fourth-order Magnus integration).

With zero momentum the base's twist is R(q) u for joint speeds u [SPART17, eq. 46], and R depends
only on the joints. Along a joint path the base's pose obeys the linear equation X' = X ξ(s) with
known ξ. A fourth-order Magnus expansion solves it with one exponential per step [HLW06, section
IV.7]. The constraint is nonholonomic, so the final base pose is path-dependent: moving one joint
there and back leaves no rotation, moving two joints around a loop does. Satellites can reorient
without wheels in this way.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array
from remora.model.joints import is_free
from remora.model.robot import Robot
from remora.model.state import difference, integrate

#: Longest step of any joint, rad or m: relative error of the base's rotation about 1e-9.
STEP = 0.02


def floats(robot: Robot) -> bool:
    """Return whether the robot recoils: a single base on a free joint, and a model with masses."""
    if not robot.dynamics:
        return False
    return is_free(robot.joints[0]) and sum(j.parent < 0 for j in robot.joints) == 1


def drag_joint(
    robot: Robot, response: Callable[[Array], Array], q: Array, target: Array, step: float = STEP
) -> Array:
    """Return the configuration after the joints move on a straight line from q to `target`.

    Args:
        robot: a robot with one free base.
        response: q `(n, nq)` -> the base's twist per joint speed, `(n, 6, nv - 6)`.
        q: current configuration, `(nq,)`.
        target: configuration with the target joint positions, `(nq,)`; its base is ignored.
        step: longest step of any joint, rad or m.
    """
    way = difference(robot, q, np.concatenate([q[:8], target[8:]]))
    u = way[6:]
    n = max(1, math.ceil(float(np.abs(u).max(initial=0.0)) / step))
    # Two Gauss points per step.
    h, off = 1.0 / n, math.sqrt(3.0) / 6.0
    s = (np.arange(n)[:, None] + 0.5 + np.array([-off, off])).ravel() * h
    along = integrate(robot, np.tile(q, (2 * n, 1)), s[:, None] * way)
    xi = (response(along) @ u).reshape(n, 2, 6)
    a, b = xi[:, 0], xi[:, 1]
    steps = 0.5 * h * (a + b) + math.sqrt(3.0) / 12.0 * h * h * screw.cross(a, b)
    x = q[:8]
    for turn in dual_quaternion.exp(0.5 * steps):
        x = dual_quaternion.mul(x, turn)
    return np.concatenate([dual_quaternion.normalize(x), target[8:]])
