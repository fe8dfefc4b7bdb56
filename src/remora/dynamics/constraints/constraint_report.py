"""`rm.loops.constraint_report`: rank, remaining freedoms, dependent equations of constraints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_symbolic
from remora.dynamics.constraints.close_loops import close_loops
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.loop_kinematics import active_constraints, constraint_residual
from remora.dynamics.constraints.projection import row_response
from remora.dynamics.refusals import WITH_CONSTRAINTS, needs_dynamics
from remora.errors import InvalidValue, RemoraError
from remora.model.robot import Robot
from remora.model.state import configuration, integrate, neutral
from remora.model.takes_robot import takes_robot

#: Residual above which loops count as open, m or rad.
OPEN = 1e-8


class ConstraintReport(NamedTuple):
    """What the active constraints of a robot do at a configuration.

    Attributes:
        equations: number of equations, m.
        rank: number of independent ones.
        freedoms: degrees of freedom that remain, nv - rank.
        dependent: by constraint name, how many of its equations depend on those before it.
        residual: largest residual, m or rad.
        warnings: what a user should know: dependent constraints, a locked robot.
    """

    equations: int
    rank: int
    freedoms: int
    dependent: dict[str, int]
    residual: float
    warnings: tuple[str, ...]


@takes_robot
@needs_dynamics
def constraint_report(robot: Robot, q: ArrayLike | None = None) -> ConstraintReport:
    """Return rank, remaining degrees of freedom and redundancy of the active constraints.

    Args:
        robot: the robot.
        q: configuration, `(nq,)`; by default a generic one near the neutral configuration that
            satisfies the constraints, so that symmetric positions do not hide the rank.

    Raises:
        RemoraError: if q is not given and the constraints cannot be satisfied.
    """
    if q is None:
        aside = 0.1 * np.random.default_rng(0).normal(size=robot.nv)
        q = close_loops(robot, integrate(robot, neutral(robot), aside))[0]
    q = configuration(robot, q)
    if is_symbolic(q) or q.ndim != 1:
        raise InvalidValue(f"constraint_report takes one configuration (nq,), not {q.shape}")
    active = active_constraints(robot)
    if not active:
        return ConstraintReport(0, 0, robot.nv, {}, 0.0, ())
    owners = [c.name for c in active for _ in range(count(c))]
    lost = _dependent(robot, q, owners)
    rank = len(owners) - sum(lost.values())
    warnings: list[str] = []
    if lost:
        shown = ", ".join(f"{name!r} ({n} of {owners.count(name)})" for name, n in lost.items())
        warnings.append(
            f"constraints are redundant: equations of {shown} depend on the others; of all "
            "reactions that fit, the ones of smallest norm are computed"
        )
    if rank == robot.nv:
        names = ", ".join(repr(c.name) for c in active)
        warnings.append(f"constraints lock all motion: {names}")
    residual = float(np.max(np.abs(constraint_residual(robot, q)), initial=0.0))
    hidden = _hidden(robot, q, owners, lost) if residual > OPEN else {}
    if hidden:
        names = ", ".join(map(repr, hidden))
        warnings.append(
            f"the loops are open by {residual:.3g} m or rad: equations of {names} that depend on "
            "the others where the loops are closed are taken for independent here, which locks or "
            "falsifies the motion; rm.close_loops(robot, q, v) closes them"
        )
    return ConstraintReport(len(owners), rank, robot.nv - rank, lost, residual, tuple(warnings))


def _dependent(robot: Robot, q: Array, owners: list[str]) -> dict[str, int]:
    """Return by constraint name how many of its equations depend on those before it."""
    lost: dict[str, int] = {}
    for name, keep in zip(owners, row_response(robot, q)[0].kept, strict=True):
        if not keep:
            lost[name] = lost.get(name, 0) + 1
    return lost


def _hidden(robot: Robot, q: Array, owners: list[str], lost: dict[str, int]) -> dict[str, int]:
    """Return equations that are dependent only where the loops are closed, by constraint."""
    try:
        there = _dependent(robot, close_loops(robot, q)[0], owners)
    except RemoraError:  # they cannot be closed: nothing to compare with
        return {}
    return {name: n - lost.get(name, 0) for name, n in there.items() if n > lost.get(name, 0)}


def refuse_redundant(robot: Robot, what: str) -> None:
    """Raise if a function in float32 would need to distinguish dependent equations from others."""
    if what not in WITH_CONSTRAINTS or not active_constraints(robot):
        return
    dependent = constraint_report(robot).dependent
    if dependent:
        names = ", ".join(map(repr, dependent))
        raise InvalidValue(
            f"{what} in float32: the equations of the constraints {names} depend on others, and "
            "float32 is too coarse to decide this at every state; use dtype='float64'"
        )
