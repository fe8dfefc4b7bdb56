"""Switching of constraints at the start of a phase: capture, latch, release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.contradictions import owner
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.constraints.step_projection import StartCorrection, start_correction
from remora.dynamics.constraints.switch_equations import (
    Velocities,
    VelocityJump,
    capture_jump,
    impulses_by_name,
    separation_jump,
)
from remora.errors import InvalidValue, RemoraError
from remora.model.robot import Robot
from remora.simulation.inputs.phases import Phase

#: Largest violation of a constraint that begins to act, m, rad, m/s or rad/s; Newton's method
#: removes what is smaller.
CLOSED = 1e-8
#: Maximum number of Newton steps.
MOST_NEWTON_STEPS = 4
#: A Newton step shorter than this is the last one, m or rad.
ROUNDING = 1e-15


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
            name = phase.name or f"phase {k + 1}"
            raise InvalidValue(f"{name}: {error}") from None
        found.append(robot)
    return found


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
    jump = separation_jump(robot, q, v, held, velocities(phase))
    refuse_blocked(phase, jump.misfit)
    return _after(robot, q, jump)


def velocities(phase: Phase) -> Velocities:
    """Return the separation velocities of a phase."""
    return tuple((name, tuple(x.tolist())) for name, x in phase.separation.items())


def refuse_blocked(phase: Phase, misfit: Array) -> None:
    """Raise if bodies cannot move apart as they should."""
    apart = np.max(np.abs(misfit), initial=0.0)
    if apart > CLOSED:
        names = ", ".join(map(repr, phase.separation))
        raise RemoraError(
            f"separation of {names}: other constraints do not let the bodies move apart like that "
            f"({apart:.3g} m/s are left)"
        )


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
    at_start = start_correction(robot, q, v, held)
    refuse_violated(robot, new, at_start.residual, at_start.slip, first)
    q, _, _ = closed(q, at_start, lambda q: start_correction(robot, q, v, held))
    jump = capture_jump(robot, q, v, held)
    refuse_contradiction(robot, jump.misfit)
    return _after(robot, q, jump)


def closed(
    q: Array, first: StartCorrection, correction: Callable[[Array], StartCorrection]
) -> tuple[Array, Array, Array]:
    """Return states on the active constraints, by Newton's method.

    A run is bitwise the same alone and in a batch: each makes its own number of steps.

    Args:
        q: configurations near the constraints, `(..., nq)`.
        first: the correction at q.
        correction: q -> the correction there.

    Returns:
        Configurations `(..., nq)`; velocities `(..., nv)` and misfits `(..., m)` of the last
        correction of each run, see `StartCorrection`.
    """
    by, going = first, np.ones(q.shape[:-1], bool)
    v, misfit = first.v, first.misfit
    for k in range(MOST_NEWTON_STEPS):
        if k:
            by = correction(q)
            v = np.where(going[..., None], by.v, v)
            misfit = np.where(going[..., None], by.misfit, misfit)
        size = np.max(np.abs(by.dq), axis=-1, initial=0.0)
        going = going & (size > 0.0)
        q = np.where(going[..., None], by.q, q)
        going = going & (size >= ROUNDING)
        if not np.any(going):
            break
    return q, v, misfit


def violations(robot: Robot, values: Array) -> dict[str, float]:
    """Return the largest value of each active constraint from those of all rows, `(..., m)`."""
    found, start = dict[str, float](), 0
    for c in active_constraints(robot):
        stop = start + count(c)
        found[c.name] = float(np.max(np.abs(values[..., start:stop]), initial=0.0))
        start = stop
    return found


def refuse_violated(
    robot: Robot, new: Sequence[str], residual: Array, slip: Array, first: bool
) -> None:
    """Raise if constraints do not hold that must; the message names them.

    Args:
        robot: the robot with the constraints that act from now on.
        new: names of those that begin to act.
        residual: φ, `(m,)`.
        slip: G v, `(m,)`.
        first: whether the run begins.
    """
    apart = _beyond(violations(robot, residual))
    if any(name in new for name in apart):
        raise RemoraError(
            f"constraints that are switched on are violated: {_told(apart, 'm or rad')}: bring "
            "their frames together, or set latch=True in the phase to hold the relative pose of "
            "that moment"
        )
    if apart:
        raise RemoraError(
            f"the run begins with violated constraints: {_told(apart, 'm or rad')}; "
            "rm.close_loops(robot, q, v) returns the nearest state that satisfies them"
        )
    sliding = _beyond(violations(robot, slip)) if first else {}
    sliding = {name: off for name, off in sliding.items() if name not in new}
    if sliding:
        raise RemoraError(
            "the run begins with a velocity that violates constraints: "
            f"{_told(sliding, 'm/s or rad/s')}; rm.close_loops(robot, q, v) returns the nearest "
            "state that satisfies them"
        )


def refuse_contradiction(robot: Robot, misfit: Array) -> None:
    """Raise if held joints move against a constraint."""
    if not np.max(np.abs(misfit), initial=0.0) <= CLOSED:  # or NaN
        row = int(np.argmax(np.abs(misfit)))
        raise RemoraError(
            f"contradiction: prescribed or locked joints move against constraint "
            f"{owner(robot, row)!r}, by {np.abs(misfit[row]):.3g} m/s or rad/s"
        )


def _beyond(values: Mapping[str, float]) -> dict[str, float]:
    return {name: off for name, off in values.items() if not off <= CLOSED}


def _told(values: Mapping[str, float], unit: str) -> str:
    return "; ".join(f"{name!r} by {off:.3g} {unit}" for name, off in values.items())


def _after(robot: Robot, q: Array, jump: VelocityJump) -> SwitchedState:
    return SwitchedState(q, jump.v, impulses_by_name(robot, jump.impulses), float(jump.energy))
