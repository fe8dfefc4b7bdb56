"""Stiffness estimate from damping and friction, and the joint that causes it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.refusals import refuse_undefined
from remora.errors import InvalidValue, SimulationWarning
from remora.model.robot import Robot

#: Stability limit of the step size of an explicit method, times the fastest decay rate (dop853).
STABLE = 6.0
#: The same of RK4, on the negative real axis.
STABLE_RK4 = 2.785
#: More explicit steps than this, all of them short for stability alone: an implicit method is used.
MOST_EXPLICIT = 50_000
#: For robots with more degrees of freedom, stiffness is not estimated.
LARGEST = 300


class Stiffest(NamedTuple):
    """The fastest decaying mode of damping and friction.

    Attributes:
        joint: name of the joint with the largest share in it.
        rate: decay rate, 1/s.
        damping: damping of that joint, the largest of its degrees of freedom, N m s/rad or N s/m.
        friction: friction of that joint, N m or N.
    """

    joint: str
    rate: float
    damping: float
    friction: float

    def described(self) -> str:
        """Return the joint and its numbers as text."""
        return (
            f"the stiffest joint is {self.joint!r} (damping {self.damping:g}, friction "
            f"{self.friction:g}), whose motion decays at {self.rate:.3g} 1/s"
        )


def stiffest(
    robot: Robot, q: Array, slip_speed: float, held: Collection[str] = ()
) -> Stiffest | None:
    """Return the fastest decay at q: the largest eigenvalue of H⁻¹ D; None without friction.

    D is the slope of `friction_forces` at rest: damping and friction/slip_speed.

    Args:
        robot: the robot.
        q: configuration, `(nq,)`.
        slip_speed: regularization speed of dry friction, rad/s or m/s.
        held: names of the joints with prescribed motion.
    """
    d, owner = _slopes(robot, slip_speed, held)
    places = np.flatnonzero(d > 0.0)
    if not 0 < places.size <= robot.nv <= LARGEST:
        return None
    fixed = {i for name in held for i in range(robot.nv)[robot.joints[name].v]}
    free = [i for i in range(robot.nv) if i not in fixed]
    H, root = mass_matrix(robot, q)[np.ix_(free, free)], np.sqrt(d[free])
    try:
        rates, motions = np.linalg.eigh(root[:, None] * np.linalg.solve(H, np.diag(root)))
    except np.linalg.LinAlgError:
        refuse_undefined(robot)
        raise InvalidValue(f"the mass matrix of robot {robot.name!r} is singular") from None
    joint = robot.joints[owner[free[int(np.argmax(np.abs(motions[:, -1])))]]]
    damping, friction = float(np.max(joint.damping)), float(np.max(joint.friction))
    return Stiffest(joint.name, float(rates[-1]), damping, friction)


def warn_of_unstable_steps(
    robot: Robot, q: Array, step: float, held: Collection[str], stacklevel: int
) -> None:
    """Warn where RK4 in steps of that length makes motions grow that damping should stop.

    Dry friction is not looked at: it makes such steps chatter, but nothing grow.

    Args:
        robot: the robot.
        q: configuration, `(nq,)`.
        step: s.
        held: names of the joints whose motion is given.
        stacklevel: of the warning, as seen from the caller.
    """
    found = stiffest(robot, q, math.inf, held)
    if found is None or found.rate * step <= STABLE_RK4:
        return
    warnings.warn(
        f"steps of {step:g} s are unstable for robot {robot.name!r}: {found.described()}; make "
        f"`step` at most {STABLE_RK4 / found.rate:.2g} s",
        SimulationWarning,
        stacklevel=stacklevel + 1,
    )


def _slopes(robot: Robot, slip_speed: float, held: Collection[str]) -> tuple[Array, dict[int, int]]:
    """Return D's diagonal `(nv,)`, and the index of the joint that adds most to each entry."""
    d, most = np.zeros((2, robot.nv))
    owner: dict[int, int] = {}
    for k, joint in enumerate(robot.joints):
        if joint.name in held:
            continue
        ratio = 1.0 if joint.mimic is None else joint.mimic.ratio
        dry = joint.friction / slip_speed if slip_speed > 0.0 else 0.0 * joint.friction
        for i, slope in zip(
            range(robot.nv)[joint.v], ratio**2 * (joint.damping + dry), strict=True
        ):
            d[i] += slope
            if slope > most[i] or i not in owner:
                most[i], owner[i] = slope, k
    return d, owner
