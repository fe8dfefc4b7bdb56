"""`rm.papers.sa24.split_robot`: a robot cut at joints into subsystems."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.assembly.assembly import Assembly
from remora.dynamics.assembly.connection import Connection
from remora.errors import RemoraError
from remora.model.robot import Frame, Joint, Named, Robot
from remora.model.takes_robot import takes_robot


class SplitRobot(NamedTuple):
    """A robot cut into subsystems, and where its states went.

    Attributes:
        assembly: the subsystems, connected as in the robot.
        q: `q[..., split.q]` is the assembly's configuration of the robot's q.
        v: the same for velocities, accelerations and forces.
        bodies: `wrenches[..., split.bodies, :]` for external wrenches.
    """

    assembly: Assembly
    q: Array
    v: Array
    bodies: Array


@takes_robot
def split_robot(robot: Robot, joints: Iterable[str] | Mapping[str, str]) -> SplitRobot:
    """Return a robot cut into subsystems at some of its joints.

    A joint belongs to the subsystem of the body it carries; it becomes the first joint of a new
    subsystem, mounted on the body it was mounted on.

    Args:
        robot: the robot.
        joints: names of the joints to cut at; a mapping also names the new subsystems. By default
            a subsystem has the name of its first body; the root subsystem that of the base.

    Raises:
        RemoraError: at a joint of the base, twice at one joint, or between a mimic joint and its
            leading joint.
    """
    if robot.constraints:
        raise RemoraError(f"{robot.name!r} has constraints (closed loops): it cannot be cut")
    names: dict[str, str] = dict(joints) if isinstance(joints, Mapping) else {}  # pyright: ignore[reportUnknownArgumentType]
    cuts: dict[int, str] = {}
    index = {joint.name: i for i, joint in enumerate(robot.joints)}
    for name in joints:
        i = index[name] if name in index else robot.joint_index(name)
        if robot.joints[i].parent < 0 or i in cuts:
            why = "it is cut there already" if i in cuts else "nothing precedes the base"
            raise RemoraError(f"{robot.name!r} cannot be cut at joint {name!r}: {why}")
        cuts[i] = names.get(name, robot.bodies[i].name)
    owner: list[int] = []  # of each body, the first body of its subsystem; -1: the root's
    for i, joint in enumerate(robot.joints):
        owner.append(i if i in cuts else -1 if joint.parent < 0 else owner[joint.parent])
    members: dict[int, list[int]] = {k: [] for k in (-1, *cuts)}
    for i, first_body in enumerate(owner):
        members[first_body].append(i)
    _check_mimics(robot, owner)
    called = {-1: robot.bodies[0].name, **cuts}
    if len(set(called.values())) < len(called):
        raise RemoraError(f"names of subsystems must differ: {sorted(called.values())}")
    parts = {called[k]: _piece(robot, called[k], k, members[k]) for k in members}
    links = [
        Connection(called[k], called[owner[parent]], robot.bodies[parent].name)
        for k in cuts
        for parent in [robot.joints[k].parent]
    ]
    assembly = Assembly(parts, links, robot.gravity)
    order = {called[k]: members[k] for k in members}
    bodies = [i for name in assembly.names for i in order[name]]
    leading = [robot.joints[i] for i in bodies if robot.joints[i].mimic is None]
    q = [k for joint in leading for k in range(joint.q.start, joint.q.stop)]
    v = [k for joint in leading for k in range(joint.v.start, joint.v.stop)]
    return SplitRobot(assembly, *(np.array(index, dtype=int) for index in (q, v, bodies)))


def _check_mimics(robot: Robot, owner: list[int]) -> None:
    for i, joint in enumerate(robot.joints):
        if joint.mimic is not None and owner[i] != owner[joint.mimic.joint]:
            leader = robot.joints[joint.mimic.joint].name
            raise RemoraError(
                f"{robot.name!r}: mimic joint {joint.name!r} and its leading joint {leader!r} "
                "would come into different subsystems"
            )


def _piece(robot: Robot, name: str, first: int, members: list[int]) -> Robot:
    """Return one subsystem as a robot; its base frame is that of the body it is mounted on."""
    place = {old: new for new, old in enumerate(members)}
    joints: list[Joint] = []
    nq = nv = 0
    slices: dict[int, tuple[slice, slice]] = {}
    for old in members:
        joint = robot.joints[old]
        mimic = joint.mimic
        if mimic is None:
            q, v = joint.q.stop - joint.q.start, joint.v.stop - joint.v.start
            slices[old] = slice(nq, nq + q), slice(nv, nv + v)
            nq, nv = nq + q, nv + v
        else:
            slices[old] = slices[mimic.joint]
            mimic = dataclasses.replace(mimic, joint=place[mimic.joint])
        parent = place.get(joint.parent, -1)
        own_q, own_v = slices[old]
        joints.append(dataclasses.replace(joint, parent=parent, q=own_q, v=own_v, mimic=mimic))
    frames = [
        Frame(frame.name, place.get(frame.body, -1), frame.placement)
        for frame in robot.frames
        if frame.body in place or (frame.body < 0 and first < 0)
    ]
    return Robot(
        name,
        Named([robot.bodies[i] for i in members], "body"),
        Named(joints, "joint"),
        Named(frames, "frame"),
        robot.gravity if first < 0 else np.zeros(3),
        dynamics=robot.dynamics,
    )
