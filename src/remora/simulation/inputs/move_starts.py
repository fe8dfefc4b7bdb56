"""Where moves start in a batch: from the joints' positions at the start of each phase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.simulation.inputs.moves import Move
from remora.simulation.inputs.phases import Phase, motion_of
from remora.simulation.inputs.profiles import Motion
from remora.simulation.inputs.reach_move import ReachMove


def with_started_moves(
    robot: Robot,
    phases: Sequence[Phase],
    configurations: Callable[[], Array],
    start: float,
    ends_early: bool,
) -> tuple[Phase, ...]:
    """Return phases whose moves are motions from known positions, the same in all runs.

    A position is known at the start if all runs have the same one, at the end of a phase in which
    the joint is prescribed, and while it is locked.

    Args:
        robot: the robot.
        phases: the phases.
        configurations: returns the initial configurations of all runs, `(..., nq)`.
        start: of the first phase, s.
        ends_early: whether events that are watched in all phases may end one.

    Raises:
        RemoraError: if a move starts where the runs differ, or is planned for each run.
    """
    if not any(isinstance(x, Move) for phase in phases for x in phase.prescribed.values()):
        return tuple(phases)
    q = configurations().reshape(-1, robot.nq)
    same = np.all(q == q[:1], axis=0) if len(q) else np.zeros(robot.nq, dtype=bool)
    known: dict[str, Array | None] = {
        joint.name: q[0, joint.q] if len(q) and np.all(same[joint.q]) else None
        for joint in robot.joints
    }
    found: list[Phase] = []
    for k, phase in enumerate(phases):
        motions = {
            name: _started(name, given, known.get(name), phase.name or f"phase {k + 1}")
            for name, given in phase.prescribed.items()
        }
        found.append(replace(phase, prescribed=motions))
        start += phase.duration
        clock = phase.duration if phase.own_clock else start
        early = ends_early or any(event.action != "record" for event in phase.events)
        ends = {name: None if early else motion(clock)[0] for name, motion in motions.items()}
        known = {name: known.get(name) for name in phase.locked} | ends
    return tuple(found)


def _started(name: str, given: object, position: Array | None, phase: str) -> Motion:
    """Return the motion of a joint from its position at the start of a phase."""
    if isinstance(given, ReachMove):
        raise RemoraError(
            f"joint {name!r} in {phase!r}: a reach is planned for one run; in a batch or a "
            "campaign prescribe the motions of rm.plan_reach, or control the arm by a component"
        )
    if not isinstance(given, Move):
        return motion_of(name, given)
    if position is None:
        raise RemoraError(
            f"joint {name!r} in {phase!r}: the move starts at the position of the joint, which "
            "differs from run to run, or is not known before the run; in a batch or a campaign "
            "prescribe or lock the joint in the phase before, without events that end it, or "
            "prescribe an rm.Motion"
        )
    return given.begin(position.copy())
