"""Multipliers and wrenches of the active constraints."""

from __future__ import annotations

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array, ArrayLike, stack
from remora.dynamics.constraints import articulated_loops, dense_loops
from remora.dynamics.constraints.constraint_types import constraint_type, count
from remora.dynamics.constraints.loop_kinematics import active_constraints, loops_at, relative_pose
from remora.dynamics.joint_arrays import LoadedState, batch_shape, checked_arguments, with_batch
from remora.dynamics.recursive.outward_pass import moving_links
from remora.dynamics.refusals import finite_result, needs_dynamics
from remora.model.constraint import GEAR
from remora.model.joints import actuation_basis, speeds
from remora.model.robot import Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot


@takes_robot
@needs_dynamics
def constraint_multipliers(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
) -> Array:
    """Return the multipliers λ `(..., m)` of the active constraints, N or N m: Gᵀλ is their force.

    In the order of `constraint_residual`. Where constraints depend on each other λ is the solution
    of the smallest Euclidean norm in SI units; the accelerations do not depend on the choice.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
    """
    state = LoadedState(*checked_arguments(robot, q, v, tau, wrenches, "tau"))
    if not active_constraints(robot):
        return np.zeros((*state.batch, 0))
    mimics = any(joint.mimic is not None for joint in robot.joints)
    solve = dense_loops.hybrid if mimics else articulated_loops.hybrid
    return finite_result(solve(robot, state)[2])


@takes_robot
@needs_dynamics
def constraint_wrenches(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
) -> Array:
    """Return the wrench [f, τ] of every constraint on its child, `(..., nc, 6)`.

    In the axes of the child's constraint frame, about its origin; the parent feels the opposite
    wrench about the same point. Zero for constraints that are not active. Of a gear it is the
    actuation wrench on the driven joint's body, in that body's frame. For dependent constraints
    see `constraint_multipliers`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
    """
    lam = constraint_multipliers(robot, q, v, tau, wrenches)
    q = configuration(robot, q)
    return wrenches_of(robot, q, lam)


def wrenches_of(robot: Robot, q: Array, lam: Array) -> Array:
    """Return the wrench of every constraint on its child for given multipliers, `(..., nc, 6)`.

    Also the impulses [N s, N m s] of the multipliers of `constraint_impulse`.
    """
    parts: list[Array] = []
    start = 0
    for c in robot.constraints:
        if not c.active:
            parts.append(np.zeros(6))
            continue
        own = lam[..., start : start + count(c)]
        start += count(c)
        if c.kind == GEAR:
            joint = robot.joints[c.child]
            V = actuation_basis(joint, q) * speeds(joint, np.ones(robot.nv))
        else:
            x = screw.transform(relative_pose(robot, c, q))
            V = constraint_type(c).wrenches(c, x)
        parts.append(vector.apply(V, own))
    joined = stack(parts, axis=-2) if parts else np.zeros((0, 6))
    return with_batch(joined, batch_shape(q, lam), trailing=2)


def loop_loads(robot: Robot, q: Array, lam: Array) -> Array:
    """Return the wrenches of all active constraints on all bodies, `(..., nb, 6)`, body frames."""
    loads: list[Array] = [np.zeros(6)] * len(robot.bodies)
    start = 0
    for loop in loops_at(robot, moving_links(robot, q, np.zeros(robot.nv))):
        own = lam[..., start : start + loop.V.shape[-1]]
        start += loop.V.shape[-1]
        ends = ((loop.constraint.child, loop.on_child), (loop.constraint.parent, loop.on_parent))
        for body, exerted in () if loop.to_joint else ends:
            if body >= 0:
                loads[body] = loads[body] + vector.apply(exerted(), own)
    return with_batch(stack(loads, axis=-2), batch_shape(q, lam), trailing=2)
