"""Reaches that begin where the robot is at the start of a phase: planned when the phase begins."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.kernels.kernel_memory import kernel
from remora.errors import RemoraError
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.simulation.inputs.moves import Move
from remora.simulation.inputs.profiles import Motion
from remora.simulation.inputs.reach import plan_reach

#: A floating base may drift by this much during a reach, m or rad: what rounding leaves.
DRIFT = 1e-6


class Reach:
    """A reach of a frame, see `rm.plan_reach`, from the configuration at the start of a phase.

    Attributes:
        told: a plain description.
    """

    def __init__(
        self,
        frame: str,
        goal: Any,
        duration: float,
        base: Literal["fixed", "floating"] = "floating",
        path: Literal["line", "joints"] = "line",
        locked: Sequence[str] = (),
    ) -> None:
        """Store.

        Args:
            frame: the frame that reaches.
            goal: pose `(8,)`, position `(3,)`, or the name of a frame that is fixed.
            duration: s.
            base: whether the base recoils.
            path: of the frame, or of the joints.
            locked: names of joints that do not move.
        """
        goal = goal if isinstance(goal, str) else np.asarray(goal, dtype=float)
        self._given = frame, goal, float(duration), base, path, tuple(locked)
        shown = goal if isinstance(goal, str) else goal.tolist()
        self.told = {"reach": frame, "goal": shown, "base": base, "path": path}

    def identity_parts(self) -> tuple[Any, ...]:
        """Return its identity by value."""
        return self._given

    def moves(self, robot: Robot) -> dict[str, ReachMove]:
        """Return a motion for each joint that takes part, for `prescribed=` of a phase."""
        *_, base, _, locked = self._given
        found: dict[str, ReachMove] = {}
        for joint in robot.joints:
            based = joint.parent < 0 and (base == "floating" or kind(joint).nv == 6)
            if not based and kind(joint).nv and joint.mimic is None and joint.name not in locked:
                found[joint.name] = ReachMove(self, joint.name)
        return found

    def motions(self, robot: Robot, q: Array) -> dict[str, Motion]:
        """Return the motions from a configuration, by joint."""
        frame, goal, *others = self._given
        place = goal if isinstance(goal, str) else tuple(goal.tolist())
        return _planned(robot, tuple(q.tolist()), frame, place, *others)

    def check(self, robot: Robot, q: Array, v: Array) -> None:
        """Raise if a floating base drifts: its motion would not be the one that is planned."""
        _, _, duration, base, _, _ = self._given
        if base != "floating":
            return
        n = robot.joints[0].v.stop
        H: Array = kernel(mass_matrix, robot, ("q",))(q)
        drift = float(np.abs(np.linalg.solve(H[:n, :n], H[:n] @ v)).max(initial=0.0)) * duration
        if drift > DRIFT:
            raise RemoraError(
                f"a reach needs zero momentum at its start: the base would drift by {drift:.3g} m "
                f"or rad in its {duration:g} s; bring it to rest before, or hold it and say "
                "base: fixed"
            )


@functools.lru_cache(maxsize=4)  # every joint of a phase asks for the same plan
def _planned(
    robot: Robot,
    q: tuple[float, ...],
    frame: str,
    goal: str | tuple[float, ...],
    duration: float,
    base: Literal["fixed", "floating"],
    path: Literal["line", "joints"],
    locked: tuple[str, ...],
) -> dict[str, Motion]:
    plan = plan_reach(robot, q, frame, goal, duration, base=base, path=path, locked=locked)
    return plan.motions


class ReachMove(Move):
    """Motion of one joint in a reach.

    Attributes:
        reach: the reach.
        joint: name of the joint.
    """

    def __init__(self, reach: Reach, joint: str) -> None:
        """Store."""
        super().__init__(self._refuse, reach.told)
        self.reach, self.joint = reach, joint

    def identity_parts(self) -> tuple[Any, ...]:
        """Return its identity by value."""
        return self.reach, self.joint

    def begin_in(self, robot: Robot, q: Array) -> Motion:
        """Return the motion from a configuration of the whole robot, `(nq,)`."""
        return self.reach.motions(robot, q)[self.joint]

    def _refuse(self, q: Array) -> Motion:
        raise RemoraError(f"joint {self.joint!r}: a reach begins from the whole robot's q")
