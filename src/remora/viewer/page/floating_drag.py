"""Joints dragged by hand while the base floats: where the base ends up.

Without momentum the base's twist is R(q) u for joint speeds u [SPART17, eq. 46], and R depends on
the joints alone. So along a path of the joints the base's pose obeys X' = X ξ(s) with a known ξ, a
linear equation that Magnus' series of fourth order solves by an exponential a step [HLW06, section
IV.7]. Where the base ends depends on the path: a joint there and back turns nothing, two joints
around a loop do. That is real, and how satellites can turn without wheels.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.namespace import Array
from remora.model.joints import is_free
from remora.model.robot import Robot
from remora.model.state import difference, integrate

#: Longest step of any joint, rad or m: an error of about 1e-9 of the base's turn.
STEP = 0.02


def floats(robot: Robot) -> bool:
    """Tell whether the robot has one base, a free one, that recoils: a model with masses."""
    if not robot.dynamics:
        return False
    return is_free(robot.joints[0]) and sum(j.parent < 0 for j in robot.joints) == 1


def drag_joint(
    robot: Robot, response: Callable[[Array], Array], q: Array, target: Array, step: float = STEP
) -> Array:
    """Return the configuration after the joints went straight from q to those of `target`.

    Args:
        robot: a robot with one free base.
        response: q `(n, nq)` -> the base's twist per joint speed, `(n, 6, nv - 6)`.
        q: where it is, `(nq,)`.
        target: where the joints are to go, `(nq,)`; its base is not looked at.
        step: longest step of any joint, rad or m.
    """
    way = difference(robot, q, np.concatenate([q[:8], target[8:]]))
    u = way[6:]
    n = max(1, math.ceil(float(np.abs(u).max(initial=0.0)) / step))
    # Two Gauss points in each step.
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
