"""Switching of constraints at the start of a phase: capture, latch, release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion, vector
from remora.algebra.array_ops import Array
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.loop_kinematics import (
    Moving,
    active_constraints,
    constraint_jacobian,
    constraint_residual,
    loops_at,
    relative_pose,
)
from remora.dynamics.constraints.step_projection import held_impulse, step_projection
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.recursive.outward_pass import moving_links
from remora.errors import InvalidValue, RemoraError
from remora.model import joints
from remora.model.constraint import GEAR, ROD, Constraint
from remora.model.robot import Robot
from remora.model.state import integrate
from remora.simulation.inputs.phases import Phase

#: Largest violation of a constraint that begins to act, m, rad, m/s or rad/s; Newton's method
#: removes what is smaller.
CLOSED = 1e-8
#: Maximum number of Newton steps.
MOST_NEWTON_STEPS = 4


class SwitchedState(NamedTuple):
    """The state after constraints began to act or were released.

    Attributes:
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        impulses: impulse of each constraint that acted, see `ConstraintSwitch`.
        energy: change of the kinetic energy, J.
    """

    q: Array
    v: Array
    impulses: Mapping[str, Array]
    energy: float


def phase_robots(robot: Robot, phases: Sequence[Phase]) -> list[Robot]:
    """Return the robot of each phase, without latched numbers, or raise.

    Raises:
        RemoraError: for a constraint that is unknown, already on or already off; the message names
            the phase.
    """
    found: list[Robot] = []
    for k, phase in enumerate(phases):
        try:
            robot = robot.with_active(on=phase.activate, off=phase.release)
        except RemoraError as error:
            name = phase.name or f"phase {k}"
            raise InvalidValue(f"{name}: {error}") from None
        found.append(robot)
    return found


def latched_numbers(robot: Robot, name: str, q: Array) -> dict[str, Array]:
    """Return the numbers with which a constraint holds its bodies where they are, by field.

    The frame on the child is placed where the frame on the parent is, so that a joint of any type
    is at zero; a rod takes its present length, a gear its present offset.

    Args:
        robot: the robot.
        name: of the constraint.
        q: configuration, `(..., nq)`.
    """
    c = robot.constraints[name]
    if c.kind == GEAR:
        leading, driven = (joints.coordinates(robot.joints[i], q) for i in (c.parent, c.child))
        return {"offset": (driven - c.ratio * leading)[..., 0]}
    x = relative_pose(robot, c, q)
    if c.kind == ROD:
        p = pose.translation(x)
        return {"length": np.sqrt(vector.dot(p, p)[..., 0])}
    placed = dual_quaternion.mul(c.child_placement, dual_quaternion.conjugate(x))
    return {"child_placement": dual_quaternion.normalize(placed)}


def separated(
    robot: Robot, phase: Phase, q: Array, v: Array, held: tuple[str, ...]
) -> SwitchedState:
    """Return the state after released constraints push their bodies apart.

    The impulse acts through the released constraints, in the directions that they held, so that
    momentum is conserved; constraints that remain active are respected.

    Args:
        robot: the robot before the release.
        phase: has the separation velocities.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        held: joints that are prescribed or locked.
    """
    if not phase.separation:
        return SwitchedState(q, v, {}, 0.0)
    targets: list[Array] = []
    for c in active_constraints(robot):
        wanted = phase.separation.get(c.name)
        size = count(c)
        if wanted is None:
            targets.append(np.zeros(size))
        elif c.kind == GEAR:
            raise RemoraError(f"constraint {c.name!r} is a gear: it cannot push bodies apart")
        else:
            loop = loops_at(robot.with_active(off=_others(robot, c)), _links(robot, q))[0]
            r = pose.rotation(relative_pose(robot, c, q))
            velocity = quaternion.rotate(quaternion.conjugate(r), wanted)
            targets.append(loop.Lambda @ np.concatenate([np.zeros(3), velocity]))
    target, G = np.concatenate(targets), constraint_jacobian(robot, q)
    moving = np.linalg.lstsq(G, target, rcond=None)[0]
    apart = np.max(np.abs(G @ moving - target), initial=0.0)
    if apart > CLOSED:
        names = ", ".join(map(repr, phase.separation))
        raise RemoraError(
            f"separation of {names}: other constraints do not let the bodies move apart like that "
            f"({apart:.3g} m/s are left)"
        )
    change, multipliers, _ = held_impulse(robot, q, v - moving, held)
    return _after(robot, q, v, v + change, multipliers)


def captured(
    robot: Robot, new: Sequence[str], q: Array, v: Array, held: tuple[str, ...], first: bool
) -> SwitchedState:
    """Return the state after all active constraints act.

    Args:
        robot: the robot with the constraints that act from now on.
        new: names of those that begin to act, whose relative velocity an impulse removes.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        held: joints that are prescribed or locked.
        first: whether the run begins: then the velocity must satisfy constraints that do not begin
            to act.

    Raises:
        RemoraError: if a constraint is violated; the message names it.
    """
    if not active_constraints(robot):
        return SwitchedState(q, v, {}, 0.0)
    _refuse_open(robot, q, new)
    if first:
        _refuse_sliding(robot, q, v, new)
    for _ in range(MOST_NEWTON_STEPS):
        dq, _ = step_projection(robot, q, v, held)
        if np.max(np.abs(dq), initial=0.0) == 0.0:
            break
        q = integrate(robot, q, dq)
        if np.max(np.abs(dq)) < 1e-15:
            break
    change, multipliers, misfit = held_impulse(robot, q, v, held)
    if np.max(np.abs(misfit), initial=0.0) > CLOSED:
        row = int(np.argmax(np.abs(misfit)))
        raise RemoraError(
            f"contradiction: prescribed or locked joints move against constraint "
            f"{_owner(robot, row)!r}, by {np.abs(misfit[row]):.3g} m/s or rad/s"
        )
    return _after(robot, q, v, v + change, multipliers)


def violations(robot: Robot, values: Array) -> dict[str, float]:
    """Return the largest value of each active constraint from those of all rows, `(..., m)`."""
    found, start = dict[str, float](), 0
    for c in active_constraints(robot):
        stop = start + count(c)
        found[c.name] = float(np.max(np.abs(values[..., start:stop]), initial=0.0))
        start = stop
    return found


def _refuse_open(robot: Robot, q: Array, new: Sequence[str]) -> None:
    open_ones = {
        name: off
        for name, off in violations(robot, constraint_residual(robot, q)).items()
        if not off <= CLOSED
    }
    if not open_ones:
        return
    told = "; ".join(f"{name!r} by {off:.3g} m or rad" for name, off in open_ones.items())
    if any(name in new for name in open_ones):
        raise RemoraError(
            f"constraints that are switched on are violated: {told}: bring their frames together, "
            "or say latch=True in the phase to hold the relative pose of that moment"
        )
    raise RemoraError(
        f"the run begins with violated constraints: {told}; rm.close_loops(robot, q, v) returns "
        "the nearest state that satisfies them"
    )


def _refuse_sliding(robot: Robot, q: Array, v: Array, new: Sequence[str]) -> None:
    slip = violations(robot, constraint_jacobian(robot, q) @ v)
    sliding = {name: off for name, off in slip.items() if name not in new and not off <= CLOSED}
    if sliding:
        told = "; ".join(f"{name!r} by {off:.3g} m/s or rad/s" for name, off in sliding.items())
        raise RemoraError(
            f"the run begins with a velocity that violates constraints: {told}; "
            "rm.close_loops(robot, q, v) returns the nearest state that satisfies them"
        )


def _after(robot: Robot, q: Array, before: Array, v: Array, multipliers: Array) -> SwitchedState:
    """Return the state after an impulse, with the impulses on the children."""
    impulses, start = dict[str, Array](), 0
    loops = loops_at(robot, _links(robot, q))
    for c, loop in zip(active_constraints(robot), loops, strict=True):
        stop = start + count(c)
        own = multipliers[start:stop]
        impulses[c.name] = own if c.kind == GEAR else loop.V @ own
        start = stop
    # a difference of kinetic energies without their cancellation
    energy = 0.5 * float((v + before) @ mass_matrix(robot, q) @ (v - before))
    return SwitchedState(q, v, impulses, energy)


def _links(robot: Robot, q: Array) -> Sequence[Moving]:
    return moving_links(robot, q, np.zeros(robot.nv))


def _others(robot: Robot, c: Constraint) -> list[str]:
    return [other.name for other in active_constraints(robot) if other.name != c.name]


def _owner(robot: Robot, row: int) -> str:
    for c in active_constraints(robot):
        if row < count(c):
            return c.name
        row -= count(c)
    raise IndexError(row)
