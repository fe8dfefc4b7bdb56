"""`rm.close_loops`: the closest state that satisfies the active constraints.

Far from the constraints a Levenberg-Marquardt iteration on the residual, near them Newton's method;
both measure motion in the metric of the mass matrix, dqᵀ M dq, so that the centre of mass of a
free-floating robot stays where it is. The velocity is projected in the same metric.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from remora.algebra import linear, orthogonal, vector
from remora.algebra.array_ops import Array, ArrayLike, is_symbolic
from remora.dynamics.constraints.constraint_types import count, units
from remora.dynamics.constraints.loop_kinematics import (
    active_constraints,
    constraint_jacobian,
    constraint_residual,
)
from remora.dynamics.constraints.projection import row_response
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_of
from remora.dynamics.refusals import needs_dynamics
from remora.errors import InvalidValue, RemoraError
from remora.model.robot import Robot
from remora.model.state import configuration, integrate, velocity
from remora.model.takes_robot import takes_robot

#: Largest residual of a closed loop, m or rad, relative to 1 m and to the distances involved.
LOOP_TOLERANCE = 1e-12
#: Residual below which Newton's method takes over.
_NEAR = 1e-3
#: Iterations from one start, and further starts nearby if these do not succeed.
_ITERATIONS, _STARTS = 60, 4


@takes_robot
@needs_dynamics
def close_loops(
    robot: Robot, q: ArrayLike, v: ArrayLike | None = None, fixed: Iterable[str] = ()
) -> tuple[Array, Array]:
    """Return the closest state q `(..., nq)`, v `(..., nv)` that satisfies the active constraints.

    Args:
        robot: the robot.
        q: configuration to start from, `(..., nq)`.
        v: velocity, `(..., nv)`; zero by default.
        fixed: joints, by name, whose coordinates and speeds stay as they are.

    Raises:
        RemoraError: if no such configuration is found; the message names the constraints that are
            not satisfied at the best one, and by how much.

    Example:
        >>> bar = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
        >>> linkage = rm.Builder("linkage").body("ground", mass=100.0, inertia=(10, 10, 10))
        >>> for name in ("crank", "coupler", "rocker"):
        ...     linkage = linkage.body(name, **bar)
        >>> linkage = (
        ...     linkage.joint("a", "revolute", "ground", "crank")
        ...     .joint("b", "revolute", "crank", "coupler", xyz=(0.4, 0, 0))
        ...     .joint("d", "revolute", "ground", "rocker", xyz=(1, 0, 0))
        ...     .rod("c", "coupler", "rocker", 0.5, parent_xyz=(1, 0, 0), child_xyz=(0.8, 0, 0))
        ...     .build(base="fixed")
        ... )
        >>> q, v = rm.close_loops(linkage, np.array([0.5, 0.5, 1.5]))
        >>> np.allclose(rm.loops.constraint_residual(linkage, q), 0.0, atol=1e-9)
        True
    """
    q = configuration(robot, q)
    v = np.zeros(robot.nv) if v is None else velocity(robot, v)
    if is_symbolic(q) or is_symbolic(v):
        raise InvalidValue("close_loops iterates until it has converged: q and v must be numbers")
    held = {robot.joints[robot.joint_index(name)].name for name in fixed}
    batch = batch_shape(q, v)
    q, v = with_batch(q, batch, trailing=1), with_batch(v, batch, trailing=1)
    if not active_constraints(robot):
        return q, v
    flat = [
        _closed(robot, *state, held)
        for state in zip(q.reshape(-1, robot.nq), v.reshape(-1, robot.nv), strict=True)
    ]
    closed_q, closed_v = (np.array([state[k] for state in flat]) for k in range(2))
    return closed_q.reshape(*batch, robot.nq), closed_v.reshape(*batch, robot.nv)


def _closed(robot: Robot, q: Array, v: Array, held: set[str]) -> tuple[Array, Array]:
    # a mimic joint has the speed of its leader, which is to be counted once
    still = {i for j in held for i in range(robot.nv)[robot.joints[j].v]}
    moving = [i for i in range(robot.nv) if i not in still]
    found = _approached(robot, q, moving)
    error = float(np.max(np.abs(constraint_residual(robot, found)), initial=0.0))
    rng = np.random.default_rng(0)
    for k in range(_STARTS if error > _NEAR and moving else 0):
        step = np.zeros(robot.nv)
        step[moving] = rng.normal(size=len(moving)) * 0.2 * (k + 1)
        other = _approached(robot, integrate(robot, q, step), moving)
        off = float(np.max(np.abs(constraint_residual(robot, other))))
        if off < error:
            found, error = other, off
        if error <= _NEAR:
            break
    if error <= _NEAR:
        found = _polished(robot, found, held)
    phi = constraint_residual(robot, found)
    if np.max(np.abs(phi), initial=0.0) > LOOP_TOLERANCE * _size(robot, found):
        raise RemoraError(_unsatisfied(robot, phi))
    rows, motion = row_response(robot, found, held)
    rate = constraint_jacobian(robot, found) @ v
    x, _, misfit = orthogonal.minimum_norm(rows, -rate)
    if np.max(np.abs(misfit), initial=0.0) > 1e-8 * (1.0 + np.max(np.abs(rate))):
        names = ", ".join(repr(joint.name) for joint in robot.joints if joint.name in held)
        raise RemoraError(f"the speeds of the joints {names} contradict the constraints")
    return found, v + motion(x)


def _approached(robot: Robot, q: Array, moving: list[int]) -> Array:
    """Return a configuration of small residual near q, or where no step makes it smaller."""
    damping = 1e-3
    phi = constraint_residual(robot, q)
    for _ in range(_ITERATIONS if moving else 0):
        if np.max(np.abs(phi)) < 0.1 * _NEAR:
            break
        J = _slopes(robot, q, moving)
        H = mass_matrix_of(robot, q)[np.ix_(moving, moving)]
        for _ in range(12):
            # the step of smallest |J dq + φ|² + damping dqᵀ H dq, scaled to a mean inertia of one
            scale = np.trace(H) / len(moving)
            normal = J.T @ J + damping * H / scale
            dq = linear.solve(normal, vector.apply(-J.T, phi)[:, None])[:, 0]
            dq = dq * min(1.0, 1.0 / float(np.max(np.abs(dq), initial=1e-300)))
            step = np.zeros(robot.nv)
            step[moving] = dq
            next_q = integrate(robot, q, step)
            next_phi = constraint_residual(robot, next_q)
            if np.sum(next_phi**2) < np.sum(phi**2):
                damping = max(0.2 * damping, 1e-12)
                break
            damping *= 5.0
        else:
            break
        gained = 1.0 - np.sum(next_phi**2) / np.sum(phi**2)
        q, phi = next_q, next_phi
        if gained < 1e-6:  # a stationary point: the loops do not close here
            break
    return q


def _slopes(robot: Robot, q: Array, moving: list[int]) -> Array:
    """Return the derivative of the residual along the moving speeds, by differences, `(m, n)`."""
    h = 1e-6
    steps = h * np.eye(robot.nv)[moving]
    up = constraint_residual(robot, integrate(robot, q, steps))
    down = constraint_residual(robot, integrate(robot, q, -steps))
    return (up - down).T / (2.0 * h)


def _polished(robot: Robot, q: Array, held: set[str]) -> Array:
    """Return q after Newton steps, until the residual does not become smaller."""
    error = np.inf
    for _ in range(30):
        phi = constraint_residual(robot, q)
        now = float(np.max(np.abs(phi)))
        if not now < 0.5 * error and now < LOOP_TOLERANCE:
            break
        error = now
        rows, motion = row_response(robot, q, held)
        q = integrate(robot, q, motion(orthogonal.minimum_norm(rows, -phi)[0]))
    return q


def _size(robot: Robot, q: Array) -> float:
    """Return 1 m plus the largest distance between joint frames, for rounding errors."""
    lengths = [float(np.linalg.norm(joint.placement[..., 4:])) for joint in robot.joints]
    return 1.0 + 2.0 * sum(lengths) + float(np.max(np.abs(q), initial=0.0))


def _unsatisfied(robot: Robot, phi: Array) -> str:
    """Return which constraints are not satisfied, and by how much."""
    parts: list[str] = []
    start = 0
    for c in active_constraints(robot):
        own = phi[start : start + count(c)]
        start += count(c)
        kinds = np.array(units(robot, c))
        worst = {unit: float(np.linalg.norm(own[kinds == unit])) for unit in dict.fromkeys(kinds)}
        if max(worst.values()) > 1e-9:
            shown = " and ".join(f"{x:.3g} {unit}" for unit, x in worst.items())
            parts.append(f"{c.name!r} ({c.kind}) by {shown}")
    return (
        f"the constraints of robot {robot.name!r} cannot be satisfied together from this start; at "
        f"the best configuration found these are off: {'; '.join(parts)}"
    )
