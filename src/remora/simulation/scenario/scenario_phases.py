"""Conversion of the phases of a scenario file to `Phase` objects."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.errors import RemoraError
from remora.model.joints import in_coordinates
from remora.model.robot import Joint, Robot
from remora.model.settings_fields import degrees_of_a_slide
from remora.simulation.inputs.capture import capture_events
from remora.simulation.inputs.events import Event
from remora.simulation.inputs.loads import Sum
from remora.simulation.inputs.moves import Move
from remora.simulation.inputs.phases import Phase
from remora.simulation.inputs.reach_move import Reach
from remora.simulation.scenario.constraint_schema import CaptureFile
from remora.simulation.scenario.file_schema import (
    MoveFile,
    PhaseFile,
    PoseFile,
    ReachFile,
    UntilFile,
)
from remora.simulation.scenario.scenario_conditions import (
    FrameCondition,
    JointCondition,
    TimeCondition,
)
from remora.simulation.scenario.scenario_loads import Path, Refuse, load, sine, sized


def phase_of(robot: Robot, told: PhaseFile, number: int, refuse: Refuse) -> Phase | None:
    """Return a phase, or record its faults.

    Args:
        robot: the robot.
        told: the phase in the file.
        number: index of the phase.
        refuse: receives the faults.
    """
    faults = 0

    def fault(path: Path, reason: str) -> None:
        nonlocal faults
        faults += 1
        refuse(("phases", number, *path), reason)

    torque: dict[str, Any] = {}
    for name, given in told.torque.items():
        joint = robot.joints[name]
        size = joint.v.stop - joint.v.start
        torque[name] = load(given, size, told.duration, ("torque", name), fault)
    wrenches: dict[str, Any] = {}
    for name, given in told.wrenches.items():
        wrenches[name] = load(given, 6, told.duration, ("wrenches", name), fault)
    base = None
    if told.base_wrench is not None:
        base = load(told.base_wrench, 6, told.duration, ("base_wrench",), fault)
    moves: dict[str, Any] = {}
    for name, move in told.prescribed.items():
        path = ("prescribed", name)
        moves[name] = _move(robot.joints[name], move, told.duration, path, fault)
    if told.reach is not None:
        moves = {**_reach(robot, told, told.reach, fault), **moves}
    held = {*moves, *told.locked}
    laws = _laws(robot, told, held, fault)
    _contradictions(told, held, fault)
    _switching(told, number, fault)
    events: list[Event] = []
    for k, until in enumerate(told.until):
        if until.capture is not None:
            events += _capture(robot, until, until.capture, ("until", k), fault)
        else:
            events.append(_event(robot, until, ("until", k), told.duration, fault))
    if faults:
        return None
    return Phase(
        told.duration,
        torque=Sum(*laws, torque) if laws else torque or None,
        base_wrench=base,
        wrenches=wrenches or None,
        prescribed=moves,
        locked=tuple(dict.fromkeys(told.locked)),
        events=tuple(events),
        own_clock=True,
        impulse=told.impulse,
        name=told.name or "",
        activate=told.activated,
        release=told.released,
        latch=told.latch,
        separation=told.separation,
        after_event=told.after_event,
    )


def _laws(robot: Robot, told: PhaseFile, held: set[str], fault: Refuse) -> list[Any]:
    made: list[Any] = []
    recoils = told.reach is not None and told.reach.base == "floating"
    for k, settings in enumerate(told.controllers):
        try:
            law = settings.made(robot)
        except RemoraError as error:
            fault(("controllers", k), str(error))
            continue
        for name in held & set(law.joints):
            fault(("controllers", k), f"contradiction: joint {name!r} is held, it cannot be driven")
        if recoils and robot.joints[0].name in law.joints:
            fault(("controllers", k), _PUSHED)
        made.append(law)
    return made


def _contradictions(told: PhaseFile, held: set[str], fault: Refuse) -> None:
    for k, name in enumerate(told.locked):
        if name in told.prescribed:
            fault(("locked", k), f"contradiction: joint {name!r} is both locked and prescribed")
    for name in held & set(told.torque):
        reason = (
            f"contradiction: joint {name!r} is prescribed or locked, so its torque is computed "
            "and cannot be an input"
        )
        fault(("torque", name), reason)


def _switching(told: PhaseFile, number: int, fault: Refuse) -> None:
    """Record contradictions of switching within a phase."""
    for key, names in (("activate", told.activated), ("release", told.released)):
        for k, name in enumerate(names):
            if name in names[:k]:
                fault((key, k), f"constraint {name!r} is named twice")
    for name in told.released:
        if name in told.activated:
            reason = f"contradiction: constraint {name!r} is both activated and released"
            fault(("release",), reason)
    for name in told.separation:
        if name not in told.released:
            reason = f"constraint {name!r} is not released in this phase: it cannot push apart"
            fault(("separation", name), reason)
    if told.latch and not told.activated:
        fault(("latch",), "is for constraints that the phase activates: name them in activate")
    if told.after_event and number == 0:
        fault(("after_event",), "there is no phase before the first one")


_PUSHED = "contradiction: in a reach with a floating base nothing else may push the robot"


def _reach(robot: Robot, told: PhaseFile, reach: ReachFile, fault: Refuse) -> dict[str, Any]:
    """Return the motions of a reach by joint."""
    for name in told.prescribed:
        reason = f"contradiction: joint {name!r} is part of the reach; lock it, or leave it out"
        fault(("prescribed", name), reason)
    if reach.base == "floating":
        for key in ("base_wrench", "wrenches"):
            if getattr(told, key):
                fault((key,), _PUSHED)
        if robot.joints[0].name in told.torque:
            fault(("torque", robot.joints[0].name), _PUSHED)
        if robot.joints[0].kind != "free":
            fault(("reach", "base"), f"the base is {robot.joints[0].kind}, not free: say fixed")
    goal: Any = reach.goal
    if isinstance(goal, PoseFile):
        goal = pose.from_xyz_rpy(np.array(goal.xyz), np.array(goal.rpy))
    elif isinstance(goal, str) and robot.frame(goal).body >= 0:
        fault(("reach", "goal"), f"{goal!r} moves with a body: give a position or a pose")
    made = Reach(reach.frame, goal, told.duration, reach.base, reach.path, told.locked)
    return made.moves(robot)


# Motions -----------------------------------------------------------------------------------------


def _move(joint: Joint, told: MoveFile, duration: float, path: Path, fault: Refuse) -> Any:
    size = joint.q.stop - joint.q.start
    if not in_coordinates(joint):
        fault(path, f"a {joint.kind} joint turns by a quaternion: no file can prescribe it")
        return None
    values = told.through.values if told.through is not None else []
    amplitude = None if told.sine is None else told.sine.amplitude
    wrong = degrees_of_a_slide(joint, told.to, *values, amplitude)
    if wrong:
        fault(path, wrong)
    if told.sine is not None:
        wave = sine(told.sine, size, 0.0, (*path, "sine"), fault)
        return Move.sine(wave.amplitude, wave.omega, wave.phase)
    if told.through is not None:
        points, inner = told.through, (*path, "through")
        rows = [sized(x, size, (*inner, "values", k), fault) for k, x in enumerate(points.values)]
        if len(rows) != len(points.times):
            fault(inner, f"needs as many values as times, not {len(rows)} and {len(points.times)}")
        elif np.any(np.diff(points.times) <= 0.0):
            fault((*inner, "times"), "must ascend")
        elif points.times[-1] > duration:
            reason = f"end after {points.times[-1]:g} s, the phase lasts {duration:g} s"
            fault((*inner, "times"), reason)
        else:
            return Move.through(points.times, np.array(rows))
        return None
    start, stop = told.start or 0.0, duration if told.stop is None else told.stop
    if not start < stop <= duration:
        reason = f"must lie within the phase's {duration:g} s, not from {start:g} to {stop:g} s"
        fault((*path, "start" if told.stop is None else "stop"), reason)
        return None
    return Move.to(sized(told.to, size, (*path, "to"), fault), start, stop)


# Events ------------------------------------------------------------------------------------------


def _event(robot: Robot, told: UntilFile, path: Path, duration: float, fault: Refuse) -> Event:
    """Return the event of a condition, whose function is positive above the limit."""
    key = told.key
    limit: float = getattr(told, key)
    plain = told.model_dump(exclude_none=True)
    condition: TimeCondition | JointCondition | FrameCondition
    direction = -1 if key in ("below", "speed_below", "nearer", "turning_below") else 1
    if told.joint is not None:
        condition = _of_joint(robot.joints[told.joint], key, limit, plain, path, fault)
        subject = f"{told.joint} {key.replace('_', ' ')}"
    elif told.frame is not None:
        point = None if told.point is None else tuple(told.point)
        condition = FrameCondition(robot, told.frame, point, limit, plain)
        subject = f"{told.frame} {key.replace('_', ' ')}"
    else:
        if limit >= duration:
            fault((*path, "time"), f"is {limit:g} s, the phase lasts {duration:g} s")

        condition = TimeCondition(limit, plain)
        subject = "time"
    return Event(condition, told.name or f"{subject} {limit:.6g}", told.action, direction)


def _capture(
    robot: Robot, told: UntilFile, capture: CaptureFile, path: Path, fault: Refuse
) -> list[Event]:
    """Return the events `captured` and `missed`; the action of the file is that of `captured`."""
    try:
        captured, missed = capture_events(robot, name=told.name or "", **capture.model_dump())
    except RemoraError as error:
        fault((*path, "capture"), str(error))
        return []
    return [dataclasses.replace(captured, action=told.action), missed]


def _of_joint(
    joint: Joint, key: str, limit: float, told: dict[str, Any], path: Path, fault: Refuse
) -> JointCondition:
    if not in_coordinates(joint) or joint.v.stop - joint.v.start != 1:
        fault((*path, "joint"), f"joint {joint.name!r} ({joint.kind}) has not one coordinate")
    wrong = degrees_of_a_slide(joint, limit)
    if wrong:
        fault((*path, key), wrong)
    fast = key not in ("above", "below")
    ratio, offset = (1.0, 0.0) if joint.mimic is None else (joint.mimic.ratio, joint.mimic.offset)
    place = joint.v.start if fast else joint.q.start  # of a follower: its leader's
    return JointCondition(place, fast, ratio, 0.0 if fast else offset, limit, told)
