"""The check that the active constraints do not contradict each other or the prescribed motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import Array, absolute, is_symbolic, less, select
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.loop_kinematics import (
    active_constraints,
    constraint_bias,
    constraint_jacobian,
)
from remora.dynamics.joint_arrays import LoadedState
from remora.errors import InvalidValue
from remora.model.robot import Robot

#: Misfit of dependent equations, relative to the accelerations, beyond which they contradict.
CONTRADICTION = 1e-6


def checked_misfit(
    robot: Robot, state: LoadedState, x: Array, misfit: Array, b: Array, vdots: Sequence[Array]
) -> Array:
    """Return x, or raise if dependent equations require different accelerations.

    Such equations contradict the prescribed motion or each other, or connect masses too different
    for floating-point numbers. Symbols have no values: there x is infinite in compiled code.

    Args:
        robot: the robot.
        state: with the prescribed accelerations.
        x: solution, `(..., n)`.
        misfit: of dependent equations, `(..., m)`.
        b: right-hand side, `(..., m)`.
        vdots: accelerations of the joints without constraints.
    """
    size = _largest(b)
    for part in (*vdots, *state.prescribed.values(), state.v * state.v):
        size = size + _largest(part)
    excess = absolute(misfit) - CONTRADICTION * size
    if is_symbolic(excess):
        return select(less(0.0, _worst(excess)), np.inf, x)
    if np.any(excess > 0.0):
        row = int(np.argmax(np.max(excess.reshape(-1, excess.shape[-1]), axis=0)))
        held = ", ".join(repr(robot.joints[i].name) for i in state.prescribed)
        other = f" or the prescribed motion of {held}" if held else ""
        raise InvalidValue(
            f"constraint {owner(robot, row)!r} contradicts the other constraints{other}: their "
            f"accelerations differ by {np.max(np.abs(misfit)):.3g} (m/s² or rad/s²); see "
            "rm.close_loops; or it connects masses too different"
        )
    return x


def satisfying(robot: Robot, q: Array, v: Array, vdot: Array, free: Array) -> Array:
    """Return accelerations, or raise if they do not satisfy the constraints.

    Equations that a factorization took for dependent may contradict the others, or connect masses
    too different for it. Symbols have no values: there vdot is infinite in compiled code.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: accelerations, `(..., nv)`.
        free: accelerations without the constraints, `(..., nv)`.
    """
    gap = vector.apply(constraint_jacobian(robot, q), vdot) - constraint_bias(robot, q, v)
    size = _largest(vdot) + _largest(free) + _largest(v * v)
    excess = absolute(gap) - CONTRADICTION * size
    if is_symbolic(excess):
        return select(less(0.0, _worst(excess)), np.inf, vdot)
    if np.any(excess > 0.0):
        row = int(np.argmax(np.max(excess.reshape(-1, excess.shape[-1]), axis=0)))
        raise InvalidValue(
            f"constraint {owner(robot, row)!r} is not satisfied: it contradicts other constraints "
            "or the prescribed motion, or connects masses too different for the formulation "
            "'newton_euler'; use formulation='articulated'"
        )
    return vdot


def owner(robot: Robot, row: int) -> str:
    """Return the name of the active constraint that an equation belongs to."""
    names = [c.name for c in active_constraints(robot) for _ in range(count(c))]
    return names[row]


def _worst(x: Array) -> Array:
    """Return the largest component `(..., 1)` on any scalar."""
    worst = x[..., :1]
    for i in range(1, x.shape[-1]):
        worst = select(less(worst, x[..., i : i + 1]), x[..., i : i + 1], worst)
    return worst


def _largest(x: Array) -> Array:
    """Return the sum of absolute values `(..., 1)`."""
    return np.sum(absolute(x), axis=-1, keepdims=True)
