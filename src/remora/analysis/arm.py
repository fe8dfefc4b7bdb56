"""The arm of an analysis: which joints move a frame, on a base that is fixed, flying or floating.

| base | what moves | Jacobian | inertia |
| --- | --- | --- | --- |
| `fixed` | the joints; the vehicle is held | J_m | H_m |
| `flying` | the joints and the vehicle, which is actuated | [J_0 J_m] | H |
| `floating` | the joints; the vehicle recoils at zero momentum | J* | H* |
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra import linear, pose, vector
from remora.algebra.array_ops import Array, concatenate
from remora.dynamics.floating import base_response
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.kinematics import frame_pose, jacobian
from remora.dynamics.refusals import refuse_constraints, require_free_base
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import is_free, kind
from remora.model.robot import FrameLike, Robot
from remora.model.topology import ancestors

#: What the vehicle does while the arm moves.
BASES = ("fixed", "flying", "floating")


def base_speeds(robot: Robot) -> int:
    """Return how many of the speeds v are the vehicle's: 6 on a free base, else 0."""
    return 6 if is_free(robot.joints[0]) else 0


def arm_speeds(robot: Robot, joints: Sequence[str] | None = None) -> list[int]:
    """Return the indices in v of the arm's joints.

    Args:
        robot: the robot.
        joints: names of the joints that move; the others are locked. Default: all but the base.
    """
    if joints is None:
        return list(range(base_speeds(robot), robot.nv))
    found: list[int] = []
    for name in named_joints(joints):
        joint = robot.joints[robot.joint_index(name)]
        places = list(range(robot.nv)[joint.v])
        if joint is robot.joints[0] and is_free(joint):
            raise InvalidValue(f"joint {name!r} is the base; `joints` names those of the arm")
        if not places:
            raise InvalidValue(f"joint {name!r} does not move: its kind is {joint.kind!r}")
        found += [place for place in places if place not in found]
    if not found:
        raise InvalidValue("joints is empty: name at least one joint that moves, or leave it out")
    return found


def named_joints(joints: Sequence[str]) -> Sequence[str]:
    """Return a list of names; a single name, which would be read letter by letter, is refused."""
    if isinstance(joints, str):
        raise InvalidValue(f"joints={joints!r} must be a list of names: joints=[{joints!r}]")
    return joints


def moving_joints(robot: Robot, frame: FrameLike) -> list[int]:
    """Return the indices of the joints of the arm that move a frame, from the base outward.

    Raises:
        InvalidValue: if no joint of the arm moves the frame, or the robot has active constraints.
    """
    refuse_constraints(robot, "this analysis")
    frame = robot.frame(frame)
    found = [
        j
        for j in sorted(ancestors(robot, frame.body) if frame.body >= 0 else [])
        if kind(robot.joints[j]).nv and not (j == 0 and is_free(robot.joints[j]))
    ]
    if not found:
        on = "the inertial frame" if frame.body < 0 else f"body {robot.bodies[frame.body].name!r}"
        moved = [f.name for f in robot.frames if f.body >= 0 and _is_moved(robot, f.body)]
        moved += [b.name for i, b in enumerate(robot.bodies) if _is_moved(robot, i)]
        raise InvalidValue(
            f"no joint of the arm of robot {robot.name!r} moves the frame {frame.name!r}, which is "
            f"fixed to {on}; moved are: {', '.join(moved) or 'none'}"
        )
    return found


def last_moved_frame(robot: Robot) -> str:
    """Return the name of the last frame, or else body, that a joint of the arm moves."""
    for name in [*reversed(robot.frames.names), *reversed(robot.bodies.names)]:
        body = robot.frame(name).body
        if body >= 0 and _is_moved(robot, body):
            return name
    raise InvalidValue(f"robot {robot.name!r} has no joint that moves a frame")


def _is_moved(robot: Robot, body: int) -> bool:
    return any(
        kind(robot.joints[j]).nv and not (j == 0 and is_free(robot.joints[j]))
        for j in ancestors(robot, body)
    )


def check_base(robot: Robot, base: str) -> str:
    """Return `base` if the robot's base can be that, or raise."""
    if base not in BASES:
        raise UnknownName("base", base, BASES)
    if base != "fixed":
        require_free_base(robot)
    return base


def arm_jacobian(
    robot: Robot,
    q: Array,
    frame: FrameLike,
    base: str = "fixed",
    point: Array | None = None,
    joints: Sequence[str] | None = None,
    axes: str = "inertial",
) -> Array:
    """Return the Jacobian `(..., 6, n)` of a frame's twist [ω, v] by what moves it.

    J_m of a fixed, [J_0 J_m] of a flying and J* = J_m - J_0 H_0⁻¹ H_0m of a floating base
    [SPART17, eqs. 25, 46].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        frame: the name of a body or frame, the index of a body, or a Frame.
        base: a row of the table above.
        point: in the frame, `(3,)`, m.
        joints: names of the joints that move; default: all but the base.
        axes: "inertial", or "frame" for the frame's own axes.
    """
    here = np.zeros(3) if point is None else point
    J = jacobian(robot, q, frame, here)
    columns = arm_speeds(robot, joints)
    arm = J[..., :, columns]
    if base == "flying":
        arm = concatenate([J[..., :, :6], arm])
    elif base == "floating":
        free = [k - 6 for k in columns]
        arm = arm + J[..., :, :6] @ base_response(robot, q)[..., :, free]
    return arm if axes == "frame" else _in_inertial_axes(frame_pose(robot, q, frame), arm)


def arm_inertia(
    robot: Robot, q: Array, base: str = "fixed", joints: Sequence[str] | None = None
) -> Array:
    """Return the inertia `(..., n, n)` that belongs to the columns of `arm_jacobian`.

    H_m of a fixed, H of a flying and H* = H_m - H_0mᵀ H_0⁻¹ H_0m of a floating base.
    """
    H = mass_matrix(robot, q)
    columns = arm_speeds(robot, joints)
    if base == "flying":
        columns = [*range(6), *columns]
    Hm = H[..., columns, :][..., :, columns]
    if base != "floating":
        return Hm
    coupling = H[..., :6, columns]
    return linear.mirror(Hm - vector.transpose(coupling) @ linear.solve(H[..., :6, :6], coupling))


def arm_length(robot: Robot, frame: FrameLike) -> float:
    """Return the length of the arm, m: Σ of the distances between successive joints and the frame.

    From the first joint that moves the frame outward, at zero positions of sliding joints. It is
    the default characteristic length, which makes angular and linear rates comparable.
    """
    frame = robot.frame(frame)
    first = moving_joints(robot, frame)[0]
    links = [robot.joints[j].placement for j in ancestors(robot, frame.body) if j > first]
    steps = [pose.translation(placement) for placement in (*links, frame.placement)]
    return float(sum(np.linalg.norm(step.astype(float)) for step in steps))


def _in_inertial_axes(x: Array, J: Array) -> Array:
    R = pose.to_rotation_matrix(x)
    return concatenate([R @ J[..., :3, :], R @ J[..., 3:, :]], trailing=2)
