"""Kinematics of bodies and frames: poses, twists, accelerations, Jacobians.

Twists and their rates are in the body's own frame: `[ω, v]` with v the velocity of the frame's
origin, and `[ω̇, v̇]` the time derivatives of those components (so the acceleration of the origin
is v̇ + ω × v).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, stack
from remora.dynamics.joint_arrays import batch_shape, columns, with_batch
from remora.dynamics.recursive.outward_pass import BodyMotion, accelerating, moving
from remora.dynamics.recursive.tree_passes import JointContext, Pass, run
from remora.errors import UnknownName
from remora.model import joints
from remora.model.numbers import finite
from remora.model.robot import Frame, FrameLike, Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot
from remora.model.topology import ancestors

#: Axes that Jacobians and twists can be given in: the frame's own, or those of the inertial frame.
AXES = ("body", "world")
_OTHER_WORDS = {
    **dict.fromkeys(("inertial", "global", "local_world_aligned", "base"), ("world",)),
    **dict.fromkeys(("local", "own", "tool", "frame"), ("body",)),
}


@takes_robot
def poses(robot: Robot, q: ArrayLike) -> Array:
    """Return the pose of every body in the inertial frame, `(..., nb, 8)`.

    x_i = x_parent · placement_i · x_joint(q_i), outward from the base [SPART17, eqs. 2, 3].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    left = run(robot, POSES, q=q)[1][0]
    return with_batch(stack([here.pose for here in left], axis=-2), batch_shape(q), trailing=2)


@takes_robot
def twists(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return the twist [ω, v] of every body in its own frame, `(..., nb, 6)`.

    ω_i = x* ω_parent x + S_i v_i, outward from the base [VT18, eq. 46; SPART17, eq. 11].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    batch = batch_shape(q, v)
    left = run(robot, TWISTS, q=q, v=v)[1][0]
    return with_batch(stack([here.twist for here in left], axis=-2), batch, trailing=2)


@takes_robot
def accelerations(robot: Robot, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
    """Return the rate of every body's twist, the time derivative of its components `(..., nb, 6)`.

    ω̇_i = x* ω̇_parent x + S_i v̇_i + Ṡ_i v_i + (x* ω_parent x) × S_i v_i [VT18, eqs. 48, 64].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of the components of v, `(..., nv)`.
    """
    q, v, vdot = configuration(robot, q), velocity(robot, v), velocity(robot, vdot, "vdot")
    batch = batch_shape(q, v, vdot)
    left = run(robot, ACCELERATIONS, q=q, v=v, vdot=vdot)[1][0]
    return with_batch(stack([here.rate for here in left], axis=-2), batch, trailing=2)


class BodyPose(NamedTuple):
    """The pose of a body in the inertial frame, `(..., 8)`."""

    pose: Array


def _place(at: JointContext, _: Any, parent: Array | None) -> tuple[BodyPose, Array]:
    relative = joints.relative_pose(at.joint, at.q)
    x = relative if parent is None else dual_quaternion.mul(parent, relative)
    return BodyPose(x), x


def _accelerate(
    at: JointContext, _: Any, parent: BodyMotion | None
) -> tuple[BodyMotion, BodyMotion]:
    """Return the motion of a body; the inertial frame is at rest regardless of gravity."""
    motion = accelerating(at._replace(ground=np.zeros(6)), (), parent)[1]
    return motion, motion


POSES = (Pass(inward=False, step=_place),)
TWISTS = (Pass(inward=False, step=moving),)
ACCELERATIONS = (Pass(inward=False, step=_accelerate),)


@takes_robot
def frame_pose(robot: Robot, q: ArrayLike, frame: FrameLike) -> Array:
    """Return the pose of a body or frame in the inertial frame, `(..., 8)`."""
    q = configuration(robot, q)
    frame = robot.frame(frame)
    x = frame.placement
    for i in ancestors(robot, frame.body):
        x = dual_quaternion.mul(joints.relative_pose(robot.joints[i], q), x)
    return with_batch(x, batch_shape(q), trailing=1)


@takes_robot
def jacobian(
    robot: Robot,
    q: ArrayLike,
    frame: FrameLike,
    point: ArrayLike = (0.0, 0.0, 0.0),
    axes: str = "body",
) -> Array:
    """Return J `(..., 6, nv)` with twist = J v: [ω, v], v the velocity of the frame's origin.

    The block of joint j is x_jf* S_j x_jf, f the frame: J of [SPART17, eq. 25; FPG11, eq. B.1].
    In world axes both halves are rotated, [R ω, R v]; v is still that of the frame's origin.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        frame: the name of a body or frame, the index of a body, or a Frame.
        point: in the frame, `(3,)`, m; the axes stay the frame's.
        axes: `body`: the frame's own axes; `world`: the inertial ones.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.random_state(robot, seed=0)
        >>> J = rm.jacobian(robot, q, "tool")
        >>> np.allclose(J @ v, rm.frame_twist(robot, q, v, "tool"))
        True
    """
    q, world = configuration(robot, q), _in_world(axes)
    frame = _at_point(robot, frame, point)
    batch = batch_shape(q, frame.placement)
    blocks: dict[int, Array] = {}
    x = frame.placement
    for j in ancestors(robot, frame.body):
        blocks[j] = screw.columns_to_inner(
            screw.transform(x), joints.motion_subspace(robot.joints[j], q)
        )
        x = dual_quaternion.mul(joints.relative_pose(robot.joints[j], q), x)
    J = columns(robot, blocks, batch)
    return _rotated(pose.to_rotation_matrix(x), J) if world else J


@takes_robot
def jacobian_rate(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    frame: FrameLike,
    point: ArrayLike = (0.0, 0.0, 0.0),
    axes: str = "body",
) -> Array:
    """Return J̇ `(..., 6, nv)` with d(twist)/dt = J v̇ + J̇ v, twist in the same axes.

    The block of joint j is x_jf* Ṡ_j x_jf - ω_{f/j} × (x_jf* S_j x_jf); in world axes
    d(R J)/dt = R (J̇ + ω × J).

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        frame: the name of a body or frame, the index of a body, or a Frame.
        point: in the frame, `(3,)`, m; the axes stay the frame's.
        axes: `body`: the frame's own axes; `world`: the inertial ones.
    """
    q, v, world = configuration(robot, q), velocity(robot, v), _in_world(axes)
    frame = _at_point(robot, frame, point)
    batch = batch_shape(q, v, frame.placement)
    blocks: dict[int, Array] = {}
    x = frame.placement
    relative = np.zeros(6)  # twist of the frame relative to body j, in the frame's axes
    for j in ancestors(robot, frame.body):
        joint = robot.joints[j]
        seen = screw.columns_to_inner(screw.transform(x), joints.motion_subspace(joint, q))
        block = -screw.cross(relative[..., None, :], vector.transpose(seen))
        dS = joints.motion_subspace_rate(joint, q, v)
        rate = vector.transpose(block)
        blocks[j] = rate if dS is None else rate + screw.columns_to_inner(screw.transform(x), dS)
        relative = relative + vector.apply(seen, v[..., joint.v])
        x = dual_quaternion.mul(joints.relative_pose(joint, q), x)
    rate = columns(robot, blocks, batch)
    if not world:
        return rate
    turning = vector.skew(relative[..., :3])  # relative to the inertial frame by now
    J = jacobian(robot, q, frame)
    return _rotated(pose.to_rotation_matrix(x), rate + _rotated(turning, J))


@takes_robot
def frame_twist(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    frame: FrameLike,
    point: ArrayLike = (0.0, 0.0, 0.0),
    axes: str = "body",
) -> Array:
    """Return the twist [ω, v] of a body, frame or point, `(..., 6)`; see `jacobian`."""
    q, v = configuration(robot, q), velocity(robot, v)
    batch_shape(q, v)
    return vector.apply(jacobian(robot, q, frame, point, axes), v)


@takes_robot
def frame_acceleration(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    frame: FrameLike,
    point: ArrayLike = (0.0, 0.0, 0.0),
    axes: str = "body",
) -> Array:
    """Return the rate of `frame_twist`'s components, J v̇ + J̇ v, `(..., 6)`.

    In world axes these are the angular acceleration and the acceleration of the frame's origin.
    """
    vdot = velocity(robot, vdot, "vdot")
    moved = vector.apply(jacobian(robot, q, frame, point, axes), vdot)
    rate = jacobian_rate(robot, q, v, frame, point, axes)
    return moved + vector.apply(rate, velocity(robot, v))


def _at_point(robot: Robot, frame: FrameLike, point: ArrayLike) -> Frame:
    frame = robot.frame(frame)
    shifted = pose.from_translation(finite("point", point, 3))
    return Frame(frame.name, frame.body, dual_quaternion.mul(frame.placement, shifted))


def _in_world(axes: str) -> bool:
    """Return whether world axes are meant, or raise."""
    if axes not in AXES:
        raise UnknownName("axes", axes, AXES, _OTHER_WORDS)
    return axes == "world"


def _rotated(R: Array, S: Array) -> Array:
    """Return both halves of the columns of S `(..., 6, k)` multiplied by R `(..., 3, 3)`."""
    return concatenate([R @ S[..., :3, :], R @ S[..., 3:, :]], trailing=2)
