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


def phase_of(robot: Robot, settings: PhaseFile, number: int, refuse: Refuse) -> Phase | None:
    """Return a phase, or record its faults.

    Args:
        robot: the robot.
        settings: the phase in the file.
        number: index of the phase.
        refuse: receives the faults.
    """
    faults = 0

    def fault(path: Path, reason: str) -> None:
        nonlocal faults
        faults += 1
        refuse(("phases", number, *path), reason)

    torque: dict[str, Any] = {}
    for name, value in settings.torque.items():
        joint = robot.joints[name]
        size = joint.v.stop - joint.v.start
        torque[name] = load(value, size, settings.duration, ("torque", name), fault)
    wrenches: dict[str, Any] = {}
    for name, value in settings.wrenches.items():
        wrenches[name] = load(value, 6, settings.duration, ("wrenches", name), fault)
    base = None
    if settings.base_wrench is not None:
        base = load(settings.base_wrench, 6, settings.duration, ("base_wrench",), fault)
    moves: dict[str, Any] = {}
    for name, move in settings.prescribed.items():
        path = ("prescribed", name)
        moves[name] = _move(robot.joints[name], move, settings.duration, path, fault)
    if settings.reach is not None:
        moves = {**_reach(robot, settings, settings.reach, fault), **moves}
    held = {*moves, *settings.locked}
    laws = _laws(robot, settings, held, fault)
    _contradictions(settings, held, fault)
    _switching(settings, number, fault)
    events: list[Event] = []
    for k, until in enumerate(settings.until):
        if until.capture is not None:
            events += _capture(robot, until, until.capture, ("until", k), fault)
        else:
            events.append(_event(robot, until, ("until", k), settings.duration, fault))
    if faults:
        return None
    return Phase(
        settings.duration,
        torque=Sum(*laws, torque) if laws else torque or None,
        base_wrench=base,
        wrenches=wrenches or None,
        prescribed=moves,
        locked=tuple(dict.fromkeys(settings.locked)),
        events=tuple(events),
        own_clock=True,
        impulse=settings.impulse,
        name=settings.name or "",
        activate=settings.activated,
        release=settings.released,
        latch=settings.latch,
        separation=settings.separation,
        after_event=settings.after_event,
    )


def _laws(robot: Robot, settings: PhaseFile, held: set[str], fault: Refuse) -> list[Any]:
    made: list[Any] = []
    recoils = settings.reach is not None and settings.reach.base == "floating"
    for k, controller in enumerate(settings.controllers):
        try:
            law = controller.made(robot)
        except RemoraError as error:
            fault(("controllers", k), str(error))
            continue
        for name in held & set(law.joints):
            fault(("controllers", k), f"contradiction: joint {name!r} is held, it cannot be driven")
        if recoils and robot.joints[0].name in law.joints:
            fault(("controllers", k), _PUSHED)
        made.append(law)
    return made


def _contradictions(settings: PhaseFile, held: set[str], fault: Refuse) -> None:
    for k, name in enumerate(settings.locked):
        if name in settings.prescribed:
            fault(("locked", k), f"contradiction: joint {name!r} is both locked and prescribed")
    for name in held & set(settings.torque):
        reason = (
            f"contradiction: joint {name!r} is prescribed or locked, so its torque is computed "
            "and cannot be an input"
        )
        fault(("torque", name), reason)


def _switching(settings: PhaseFile, number: int, fault: Refuse) -> None:
    """Record contradictions of switching within a phase."""
    for key, names in (("activate", settings.activated), ("release", settings.released)):
        for k, name in enumerate(names):
            if name in names[:k]:
                fault((key, k), f"constraint {name!r} is named twice")
    for name in settings.released:
        if name in settings.activated:
            reason = f"contradiction: constraint {name!r} is both activated and released"
            fault(("release",), reason)
    for name in settings.separation:
        if name not in settings.released:
            reason = f"constraint {name!r} is not released in this phase: it cannot separate bodies"
            fault(("separation", name), reason)
    if settings.latch and not settings.activated:
        fault(("latch",), "is for constraints that the phase activates: name them in activate")
    if settings.after_event and number == 0:
        fault(("after_event",), "there is no phase before the first one")


_PUSHED = "contradiction: in a reach with a floating base no other forces may act on the robot"


def _reach(robot: Robot, settings: PhaseFile, reach: ReachFile, fault: Refuse) -> dict[str, Any]:
    """Return the motions of a reach by joint."""
    for name in settings.prescribed:
        reason = f"contradiction: joint {name!r} is part of the reach; lock it, or leave it out"
        fault(("prescribed", name), reason)
    if reach.base == "floating":
        for key in ("base_wrench", "wrenches"):
            if getattr(settings, key):
                fault((key,), _PUSHED)
        if robot.joints[0].name in settings.torque:
            fault(("torque", robot.joints[0].name), _PUSHED)
        if robot.joints[0].kind != "free":
            fault(
                ("reach", "base"), f"the base is {robot.joints[0].kind}, not free: set base: fixed"
            )
    goal: Any = reach.goal
    if isinstance(goal, PoseFile):
        goal = pose.from_xyz_rpy(np.array(goal.xyz), np.array(goal.rpy))
    elif isinstance(goal, str) and robot.frame(goal).body >= 0:
        fault(("reach", "goal"), f"{goal!r} moves with a body: give a position or a pose")
    made = Reach(reach.frame, goal, settings.duration, reach.base, reach.path, settings.locked)
    return made.moves(robot)


# Motions -----------------------------------------------------------------------------------------


def _move(joint: Joint, settings: MoveFile, duration: float, path: Path, fault: Refuse) -> Any:
    size = joint.q.stop - joint.q.start
    if not in_coordinates(joint):
        fault(
            path,
            f"a {joint.kind} joint rotates by a quaternion: no file can prescribe it",
        )
        return None
    values = settings.through.values if settings.through is not None else []
    amplitude = None if settings.sine is None else settings.sine.amplitude
    wrong = degrees_of_a_slide(joint, settings.to, *values, amplitude)
    if wrong:
        fault(path, wrong)
    if settings.sine is not None:
        wave = sine(settings.sine, size, 0.0, (*path, "sine"), fault)
        return Move.sine(wave.amplitude, wave.omega, wave.phase)
    if settings.through is not None:
        points, inner = settings.through, (*path, "through")
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
    start, stop = settings.start or 0.0, duration if settings.stop is None else settings.stop
    if not start < stop <= duration:
        reason = f"must lie within the phase's {duration:g} s, not from {start:g} to {stop:g} s"
        fault((*path, "start" if settings.stop is None else "stop"), reason)
        return None
    return Move.to(sized(settings.to, size, (*path, "to"), fault), start, stop)


# Events ------------------------------------------------------------------------------------------


def _event(robot: Robot, settings: UntilFile, path: Path, duration: float, fault: Refuse) -> Event:
    """Return the event of a condition, whose function is positive above the limit."""
    key = settings.key
    limit: float = getattr(settings, key)
    plain = settings.model_dump(exclude_none=True)
    condition: TimeCondition | JointCondition | FrameCondition
    direction = -1 if key in ("below", "speed_below", "nearer", "turning_below") else 1
    if settings.joint is not None:
        condition = _of_joint(robot.joints[settings.joint], key, limit, plain, path, fault)
        subject = f"{settings.joint} {key.replace('_', ' ')}"
    elif settings.frame is not None:
        point = None if settings.point is None else tuple(settings.point)
        condition = FrameCondition(robot, settings.frame, point, limit, plain)
        subject = f"{settings.frame} {key.replace('_', ' ')}"
    else:
        if limit >= duration:
            fault((*path, "time"), f"is {limit:g} s, the phase lasts {duration:g} s")

        condition = TimeCondition(limit, plain)
        subject = "time"
    return Event(condition, settings.name or f"{subject} {limit:.6g}", settings.action, direction)


def _capture(
    robot: Robot, settings: UntilFile, capture: CaptureFile, path: Path, fault: Refuse
) -> list[Event]:
    """Return the events `captured` and `missed`; the action of the file is that of `captured`."""
    try:
        captured, missed = capture_events(robot, name=settings.name or "", **capture.model_dump())
    except RemoraError as error:
        fault((*path, "capture"), str(error))
        return []
    return [dataclasses.replace(captured, action=settings.action), missed]


def _of_joint(
    joint: Joint, key: str, limit: float, settings: dict[str, Any], path: Path, fault: Refuse
) -> JointCondition:
    if not in_coordinates(joint) or joint.v.stop - joint.v.start != 1:
        fault((*path, "joint"), f"joint {joint.name!r} ({joint.kind}) must have one coordinate")
    wrong = degrees_of_a_slide(joint, limit)
    if wrong:
        fault((*path, key), wrong)
    fast = key not in ("above", "below")
    ratio, offset = (1.0, 0.0) if joint.mimic is None else (joint.mimic.ratio, joint.mimic.offset)
    place = joint.v.start if fast else joint.q.start  # of a follower: its leader's
    return JointCondition(place, fast, ratio, 0.0 if fast else offset, limit, settings)
