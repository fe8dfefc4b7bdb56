"""States in the layouts of other libraries: Pinocchio, MuJoCo, SPART.

The libraries differ in the order of the coordinates, the position of the quaternion's scalar part,
and the axes and reference point of the base's velocity. A `Layout` converts configurations,
velocities, accelerations and generalized forces in both directions, for any batch shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.errors import RemoraError
from remora.model.formats.mjcf.mjcf_names import body_names, joint_addresses
from remora.model.joint_types import JOINT_TYPES
from remora.model.joints import kind
from remora.model.layouts.layout import Entry, Layout, Rule, accounted, entry
from remora.model.numbers import finite
from remora.model.robot import Joint, Robot
from remora.model.takes_robot import takes_robot

_I3, _O3 = np.eye(3), np.zeros((3, 3))


# Coordinates ---------------------------------------------------------------------------------


def _same(q: Array) -> Array:
    return q


def _xyzw(r: Array) -> Array:
    return np.roll(r, -1, axis=-1)


def _wxyz(r: Array) -> Array:
    return np.roll(r, 1, axis=-1)


def _blocks(a: Array, b: Array, c: Array, d: Array) -> Array:
    return concatenate([concatenate([a, b]), concatenate([c, d])], trailing=2)


# Pinocchio -----------------------------------------------------------------------------------

_PINOCCHIO = {
    "revolute": Rule(1, _same, _same),
    "prismatic": Rule(1, _same, _same),
    "helical": Rule(1, _same, _same),
    "universal": Rule(2, _same, _same),
    "cartesian": Rule(3, _same, _same),
    "spherical": Rule(4, _xyzw, _wxyz),
    "free": Rule(
        7,
        lambda x: concatenate([pose.translation(x), _xyzw(x[..., :4])]),
        lambda y: pose.from_parts(_wxyz(y[..., 3:]), y[..., :3]),
        lambda q: _blocks(_O3, _I3, _I3, _O3),
    ),
    "planar": Rule(
        4,
        lambda q: concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])]),
        lambda y: concatenate([y[..., :2], np.arctan2(y[..., 3:], y[..., 2:3])]),
        lambda q: _turned_back(q[..., 2]),
        lambda q, v: vector.apply(_turned_back_rate(q[..., 2], v[..., 2]), v),
    ),
}
#: Pinocchio's joint types for a URDF `continuous` joint.
_UNBOUNDED = Rule(
    2,
    lambda q: concatenate([np.cos(q), np.sin(q)]),
    lambda y: np.arctan2(y[..., 1:], y[..., :1]),
)


def _turned_back(theta: Array) -> Array:
    """Return the matrix that gives the planar joint's in-plane velocity in body axes."""
    c, s, o = np.cos(theta), np.sin(theta), np.zeros_like(theta)
    rows = [[c, s, o], [-s, c, o], [o, o, o + 1.0]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _turned_back_rate(theta: Array, rate: Array) -> Array:
    c, s, o = np.cos(theta) * rate, np.sin(theta) * rate, np.zeros_like(theta)
    rows = [[-s, c, o], [-c, -s, o], [o, o, o]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


@takes_robot
def pinocchio(robot: Robot, model: Any) -> Layout:
    """Return the layout of a Pinocchio model of the same robot.

    Joints are matched by name; joint 0, the base, with Pinocchio's first joint regardless of name.
    Free base: `[x y z, qx qy qz qw]` and `[v, ω]` in body axes; continuous joints: cosine and
    sine; planar joints: x, y, cosine, sine and velocities in body axes.

    Args:
        robot: the robot.
        model: a `pinocchio.Model`.
    """
    names = {str(name): i for i, name in enumerate(model.names) if i > 0}
    entries: list[Entry] = []
    for joint in _independent(robot):
        i = names.get(joint.name, 1 if joint is robot.joints[0] else None)
        if i is None or not names:
            raise RemoraError(f"Pinocchio's model has no joint {joint.name!r}; {sorted(names)}")
        rule = _rule(_PINOCCHIO, joint, "Pinocchio")
        nq, q0, v0 = int(model.nqs[i]), int(model.idx_qs[i]), int(model.idx_vs[i])
        if joint.kind == "revolute" and nq == 2:
            rule = _UNBOUNDED
        _same_size(joint, rule.nq, nq, "Pinocchio")
        entries.append(entry(joint, rule, q0, v0))
    return accounted(robot, int(model.nq), int(model.nv), entries)


# MuJoCo --------------------------------------------------------------------------------------


def _mujoco_free(placement: Array) -> Rule:
    """Return the rule of a free joint: MuJoCo uses the pose in the world frame.

    Velocities are linear in world axes, then angular in body axes.
    """

    def to_q(x: Array) -> Array:
        y = dual_quaternion.mul(placement, x)
        return concatenate([pose.translation(y), y[..., :4]])

    def from_q(y: Array) -> Array:
        world = pose.from_parts(y[..., 3:], y[..., :3])
        return dual_quaternion.mul(dual_quaternion.conjugate(placement), world)

    def T(x: Array) -> Array:
        R = pose.to_rotation_matrix(dual_quaternion.mul(placement, x))
        return _blocks(_O3, R, _I3, _O3)

    def bias(x: Array, v: Array) -> Array:
        r = quaternion.mul(placement[..., :4], x[..., :4])
        turning = quaternion.rotate(r, vector.cross(v[..., :3], v[..., 3:]))
        return concatenate([turning, np.zeros_like(turning)])

    return Rule(7, to_q, from_q, T, bias)


_MUJOCO = {
    name: Rule(JOINT_TYPES[name].nq, _same, _same)
    for name in (
        "revolute", "prismatic", "cylindrical", "universal", "planar", "cartesian", "spherical",
    )
}  # fmt: skip


@takes_robot
def mujoco(robot: Robot, model: Any) -> Layout:
    """Return the layout of a MuJoCo model of the same robot.

    Joints are matched by the names that the MJCF reader assigns, also for unnamed joints; a joint
    with a different name in MuJoCo is matched by the body it carries. Free base:
    `[x y z, qw qx qy qz]` and `[v in world axes, ω in body axes]`; its forces likewise.

    Args:
        robot: the robot.
        model: a `mujoco.MjModel`.
    """
    entries: list[Entry] = []
    addresses = joint_addresses(model)
    bodies = {name: i for i, name in enumerate(body_names(model)) if name}
    for joint in _independent(robot):
        at = addresses.get(joint.name)
        if at is None:
            body = robot.bodies[robot.joint_index(joint.name)].name
            at = _of_body(joint, body, bodies.get(body), model)
        free = joint.kind == "free"
        rule = _mujoco_free(joint.placement) if free else _rule(_MUJOCO, joint, "MuJoCo")
        entries.append(entry(joint, rule, *at))
    return accounted(robot, int(model.nq), int(model.nv), entries)


def _of_body(joint: Joint, body: str, index: int | None, model: Any) -> tuple[int, int]:
    """Return the first coordinate and speed index of a MuJoCo body."""
    if index is None:
        raise RemoraError(f"MuJoCo's model has no joint {joint.name!r} and no body {body!r}")
    first = int(model.body_jntadr[index])
    if first < 0:
        raise RemoraError(f"MuJoCo's body {body!r} has no joint; joint {joint.name!r} has")
    _same_size(joint, kind(joint).nv, int(model.body_dofnum[index]), "MuJoCo")
    return int(model.jnt_qposadr[first]), int(model.jnt_dofadr[first])


# SPART ---------------------------------------------------------------------------------------

_SPART = {name: Rule(1, _same, _same) for name in ("revolute", "prismatic")}


@takes_robot
def spart(robot: Robot, base_inertial: ArrayLike | None = None) -> Layout:
    """Return SPART's layout: base pose and velocity at the centre of mass, then the joints.

    Configuration `[r0 (3), quaternion of R0 scalar last (4), qm]`; velocity `[ω in the axes of the
    base's inertial frame, ṙ in inertial axes, um]` and forces likewise `[torque, force, taum]`.

    Args:
        robot: a robot with a free base, in any placement, and revolute and prismatic joints.
        base_inertial: pose of the base link's URDF `<inertial>` frame in the link's frame, `(8,)`;
            by default the one in the file (`Body.inertial_frame`), also if fixed links were merged
            into the base: SPART's base frame is that of the base link alone.

    Raises:
        RemoraError: if the robot has another base or other joint types.
    """
    base, others = robot.joints[0], _independent(robot)[1:]
    if any(j.parent < 0 for j in robot.joints[1:]):
        raise RemoraError(f"SPART supports one base; robot {robot.name!r} has several")
    if base.kind != "free" or any(j.kind not in _SPART for j in others):
        raise RemoraError("SPART supports a free base and revolute and prismatic joints only")
    placed = base.placement
    offset = (
        robot.bodies[0].inertial_placement
        if base_inertial is None
        else finite("base_inertial", base_inertial, 8)
    )
    back = dual_quaternion.conjugate(offset)
    R_i = pose.to_rotation_matrix(offset)
    c = pose.translation(offset)

    def to_q(x: Array) -> Array:
        y = dual_quaternion.mul(dual_quaternion.mul(placed, x), offset)
        return concatenate([pose.translation(y), _xyzw(y[..., :4])])

    def from_q(y: Array) -> Array:
        com = pose.from_parts(_wxyz(y[..., 3:]), y[..., :3])
        return dual_quaternion.mul(
            dual_quaternion.conjugate(placed), dual_quaternion.mul(com, back)
        )

    def T(x: Array) -> Array:
        R = pose.to_rotation_matrix(dual_quaternion.mul(placed, x))
        top = concatenate([vector.transpose(R_i), _O3])
        return concatenate([top, concatenate([-R @ vector.skew(c), R])], trailing=2)

    def bias(x: Array, v: Array) -> Array:
        omega = v[..., :3]
        moving = vector.cross(omega, v[..., 3:] + vector.cross(omega, c))
        turned = quaternion.rotate(quaternion.mul(placed[..., :4], x[..., :4]), moving)
        return concatenate([np.zeros_like(turned), turned])

    entries = [entry(base, Rule(7, to_q, from_q, T, bias), 0, 0)]
    entries += [entry(j, _SPART[j.kind], 7 + i, 6 + i) for i, j in enumerate(others)]
    return accounted(robot, robot.nq - 1, robot.nv, entries)


# Shared --------------------------------------------------------------------------------------


def _independent(robot: Robot) -> list[Joint]:
    return [j for j in robot.joints if j.mimic is None and kind(j).nv > 0]


def _rule(rules: dict[str, Rule], joint: Joint, library: str) -> Rule:
    if joint.kind not in rules:
        known = ", ".join(rules)
        raise RemoraError(f"{library} has no {joint.kind} joint ({joint.name!r}); known: {known}")
    return rules[joint.kind]


def _same_size(joint: Joint, ours: int, theirs: int, library: str) -> None:
    if ours != theirs:
        raise RemoraError(
            f"joint {joint.name!r} ({joint.kind}) should have {ours} numbers in {library}'s model, "
            f"it has {theirs}: not the same robot"
        )
