"""Constraints added to a robot that is already built, and gears in place of mimic joints."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion
from remora.errors import InvalidValue, ModelError
from remora.model.arguments import known_options
from remora.model.building.constraint_drafts import ConstraintEnds, DescribesConstraints
from remora.model.building.tree import BodyDraft, Carrier, FrameDraft, JointDraft
from remora.model.building.validate import Checker, Place
from remora.model.constraint import GEAR, ROD, Constraint
from remora.model.joints import kind
from remora.model.named import Named
from remora.model.numbers import frozen
from remora.model.robot import Joint, Robot
from remora.model.takes_robot import takes_robot

_GIVEN = ("self", "name", "kind", "parent", "child", "place", "ends")


@takes_robot
def add_constraint(
    robot: Robot, name: str, kind: str, parent: str | None, child: str | None, **options: Any
) -> Robot:
    """Return the robot with one more constraint.

    Args:
        robot: the robot.
        name: of the constraint, unique among constraints.
        kind: a key of JOINT_TYPES except `free`, or `rod` or `gear`.
        parent: a body or a frame; None for the inertial frame; for a gear: the leading joint.
        child: another body or a frame on one; for a gear: the driven joint.
        **options: as for `Builder.constraint`, `Builder.rod` and `Builder.gear`: `parent_xyz`,
            `child_xyz`, `axis`, `length`, `ratio`, `active`, ...

    Raises:
        ModelError: with every fault found.
        UnknownName: for an option that this kind does not have.
    """
    check = Checker()
    described = DescribesConstraints(check, robot.constraints.names)
    describe: Any = {ROD: described.rod, GEAR: described.gear}.get(kind, described.constraint)
    given = (name, parent, child) if kind in (ROD, GEAR) else (name, kind, parent, child)
    parameters = inspect.signature(describe).parameters
    known = [key for key in parameters if key not in _GIVEN]
    known += ConstraintEnds.__annotations__ if "ends" in parameters else []
    known_options(f"option of a {kind} constraint", options, known)
    if kind == ROD and "length" not in options:
        raise InvalidValue(f"rod {name!r} needs its length: length=...")
    describe(*given, **options)

    bodies = [BodyDraft(b, Place(f"body {b.name!r}")) for b in robot.bodies]
    names = {i: b.name for i, b in enumerate(robot.bodies)}
    joints = [
        JointDraft(j.name, j.kind, names.get(j.parent), names[i], Place(f"joint {j.name!r}"), j,
                   None if j.mimic is None else (robot.joints[j.mimic.joint].name, 1.0, 0.0))
        for i, j in enumerate(robot.joints)
    ]  # fmt: skip
    frames = {
        f.name: FrameDraft(f.name, names.get(f.body), Place(f"frame {f.name!r}"), f.placement)
        for f in robot.frames
    }
    described.check_constraints({b.body.name: b for b in bodies}, joints, frames, frozenset())
    added: list[Any] = []
    if not check.faults:
        here = dual_quaternion.identity()
        carriers = {name: Carrier(name, here) for name in (None, *names.values())}
        kept = list(zip(bodies, joints, strict=True))
        added = described.indexed_constraints(kept, carriers, frames)
    if check.faults:
        raise ModelError(f"robot {robot.name!r}", check.faults)
    return robot.replace(constraints=Named([*robot.constraints, *added], "constraint"))


@takes_robot
def mimic_to_gears(robot: Robot) -> Robot:
    """Return the robot with a gear in place of every mimic joint's relation.

    A mimic joint has no coordinate of its own, which is exact and cheap, but its forces act on the
    leading joint and `articulated`, `newton_euler`, `decoupled` and `image_space` do not support
    it. With gears every joint has its own coordinates, all formulations apply, and the gear's
    multiplier is the load of the transmission. nq and nv grow by one per mimic joint; a gear has
    the name of its driven joint.

    Args:
        robot: the robot; without mimic joints it is returned as it is.
    """
    if all(joint.mimic is None for joint in robot.joints):
        return robot
    joints: list[Joint] = []
    gears: list[Constraint] = []
    taken = set(robot.constraints.names)
    nq = nv = 0
    for i, joint in enumerate(robot.joints):
        row = kind(joint)
        q, v = slice(nq, nq + row.nq), slice(nv, nv + row.nv)
        nq, nv = q.stop, v.stop
        joints.append(dataclasses.replace(joint, q=q, v=v, mimic=None))
        if joint.mimic is not None:
            name = joint.name
            while name in taken:
                name = f"{name}_gear"
            taken.add(name)
            gears.append(_gear(name, joint.mimic.joint, i, joint.mimic.ratio, joint.mimic.offset))
    return dataclasses.replace(
        robot,
        joints=Named(joints, "joint"),
        constraints=Named([*robot.constraints, *gears], "constraint"),
    )


def _gear(name: str, leading: int, driven: int, ratio: float, offset: float) -> Constraint:
    here, zero = frozen(dual_quaternion.identity()), frozen(np.zeros(()))
    return Constraint(
        name=name,
        kind=GEAR,
        parent=leading,
        child=driven,
        parent_placement=here,
        child_placement=here,
        axes=frozen(np.zeros((0, 3))),
        pitch=zero,
        length=zero,
        ratio=frozen(np.asarray(ratio)),
        offset=frozen(np.asarray(offset)),
    )
