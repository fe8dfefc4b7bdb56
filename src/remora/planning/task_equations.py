"""The equations of tasks: error, Jacobian and bias of each kind, one row of a table.

A task has an error e(q) that vanishes at its goal, and a Jacobian J(q) with J v the velocity of
what it is about: while J v = k e the error decays as ė = -k e. The bias is J̇ v, so that J v̇ + J̇ v
is the task's acceleration. Orientations have rotation vectors φ = 2 log(r* r_goal) as errors, in
the frame's own axes, and their Jacobian is that of the angular velocity: Jᵀφ is the exact gradient
of -½φ², since φ is an eigenvector of the differential of the logarithm. Positions are in inertial
axes, or in those of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion, screw, vector
from remora.algebra.array_ops import Array, asarray, concatenate, constant
from remora.dynamics.joint_arrays import with_batch
from remora.dynamics.kinematics import (
    accelerations,
    frame_pose,
    jacobian,
    jacobian_rate,
    poses,
    twists,
)
from remora.dynamics.momentum import center_of_mass, center_of_mass_jacobian
from remora.errors import UnknownName
from remora.model.joints import is_free, kind
from remora.model.robot import Frame, Robot
from remora.model.state import difference


@dataclass(frozen=True)
class TaskSpec:
    """What a task is about, without its goal and weights: static in compiled code.

    Attributes:
        kind: a key of `TASK_EQUATIONS`.
        frame: the frame that moves, or None.
        reference: the frame relative to which it moves, or None for the inertial frame.
        axis: a unit vector in the frame, for directions.
    """

    kind: str
    frame: Frame | None = None
    reference: Frame | None = None
    axis: tuple[float, float, float] | None = None


class TaskEquation(NamedTuple):
    """One row of the table.

    Attributes:
        goal: size of the goal for a robot.
        angular: for a robot, whether each row of the error is an angle (else a length).
        error: robot, q, spec, goal -> e `(..., m)`.
        jacobian: robot, q, spec -> J `(..., m, nv)`.
        bias: robot, q, v, spec -> J̇ v `(..., m)`.
    """

    goal: Callable[[Robot], int]
    angular: Callable[[Robot], tuple[bool, ...]]
    error: Callable[[Robot, Array, TaskSpec, Array], Array]
    jacobian: Callable[[Robot, Array, TaskSpec], Array]
    bias: Callable[[Robot, Array, Array, TaskSpec], Array]


def equation(spec: TaskSpec) -> TaskEquation:
    """Return the row of a task."""
    if spec.kind not in TASK_EQUATIONS:
        raise UnknownName("kind of task", spec.kind, TASK_EQUATIONS)
    return TASK_EQUATIONS[spec.kind]


def task_errors(robot: Robot, q: Array, goals: Array, specs: tuple[TaskSpec, ...]) -> Array:
    """Return the errors of all tasks, one after the other, `(..., m)`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        goals: the goals of all tasks, one after the other, `(..., k)`.
        specs: the tasks.
    """
    parts: list[Array] = [np.zeros((*q.shape[:-1], 0))]
    at = 0
    for spec in specs:
        row, size = equation(spec), equation(spec).goal(robot)
        parts.append(row.error(robot, q, spec, goals[..., at : at + size]))
        at += size
    return concatenate(parts)


def task_jacobian(robot: Robot, q: Array, specs: tuple[TaskSpec, ...]) -> Array:
    """Return the Jacobians of all tasks, one below the other, `(..., m, nv)`."""
    none = np.zeros((*q.shape[:-1], 0, robot.nv))
    parts = [equation(spec).jacobian(robot, q, spec) for spec in specs]
    return concatenate([none, *parts], trailing=2)


def task_biases(robot: Robot, q: Array, v: Array, specs: tuple[TaskSpec, ...]) -> Array:
    """Return J̇ v of all tasks, one after the other, `(..., m)`."""
    none = np.zeros((*q.shape[:-1], 0))
    return concatenate([none, *(equation(spec).bias(robot, q, v, spec) for spec in specs)])


def task_terms(
    robot: Robot, q: Array, goals: Array, specs: tuple[TaskSpec, ...]
) -> tuple[Array, Array]:
    """Return errors and Jacobians of all tasks."""
    return task_errors(robot, q, goals, specs), task_jacobian(robot, q, specs)


# Frames ------------------------------------------------------------------------------------------


def _pose(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    """Return the pose of the task's frame in its reference, `(..., 8)`."""
    assert spec.frame is not None
    x = frame_pose(robot, q, spec.frame)
    if spec.reference is None:
        return x
    return dual_quaternion.mul(dual_quaternion.conjugate(frame_pose(robot, q, spec.reference)), x)


def _twist_jacobian(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    """Return the Jacobian of the frame's twist relative to its reference, the frame's axes."""
    assert spec.frame is not None
    J = jacobian(robot, q, spec.frame)
    if spec.reference is None:
        return J
    moving = screw.transform(_pose(robot, q, spec))
    return J - screw.columns_to_inner(moving, jacobian(robot, q, spec.reference))


def _twist_bias(robot: Robot, q: Array, v: Array, spec: TaskSpec) -> Array:
    """Return the rate of that twist's components at v̇ = 0, `(..., 6)`.

    The reference's twist ζ, seen from the frame, changes by Ad(ζ̇) - ξ × Ad(ζ), ξ the relative
    twist.
    """
    assert spec.frame is not None
    rate = vector.apply(jacobian_rate(robot, q, v, spec.frame), v)
    if spec.reference is None:
        return rate
    x = _pose(robot, q, spec)
    own = vector.apply(jacobian_rate(robot, q, v, spec.reference), v)
    zeta = screw.adjoint_inverse(x, vector.apply(jacobian(robot, q, spec.reference), v))
    xi = vector.apply(_twist_jacobian(robot, q, spec), v)
    return rate - screw.adjoint_inverse(x, own) + screw.cross(xi, zeta)


def _rotation_error(x: Array, goal: Array) -> Array:
    """Return the rotation vector from orientation x to the goal, in the frame's axes."""
    return 2.0 * quaternion.log(quaternion.mul(quaternion.conjugate(x[..., :4]), goal))


def _pose_error(robot: Robot, q: Array, spec: TaskSpec, goal: Array) -> Array:
    x = _pose(robot, q, spec)
    distance = pose.translation(goal) - pose.translation(x)
    return concatenate([_rotation_error(x, goal[..., :4]), distance])


def _pose_jacobian(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    J = _twist_jacobian(robot, q, spec)
    R = pose.to_rotation_matrix(_pose(robot, q, spec))
    return concatenate([J[..., :3, :], R @ J[..., 3:, :]], trailing=2)


def _pose_bias(robot: Robot, q: Array, v: Array, spec: TaskSpec) -> Array:
    xi = vector.apply(_twist_jacobian(robot, q, spec), v)
    rate = _twist_bias(robot, q, v, spec)
    R = pose.to_rotation_matrix(_pose(robot, q, spec))
    along = rate[..., 3:] + vector.cross(xi[..., :3], xi[..., 3:])
    return concatenate([rate[..., :3], vector.apply(R, along)])


def _position_error(robot: Robot, q: Array, spec: TaskSpec, goal: Array) -> Array:
    return goal - pose.translation(_pose(robot, q, spec))


def _position_jacobian(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    return _pose_jacobian(robot, q, spec)[..., 3:, :]


def _position_bias(robot: Robot, q: Array, v: Array, spec: TaskSpec) -> Array:
    return _pose_bias(robot, q, v, spec)[..., 3:]


def _attitude_error(robot: Robot, q: Array, spec: TaskSpec, goal: Array) -> Array:
    return _rotation_error(_pose(robot, q, spec), goal)


def _attitude_jacobian(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    return _twist_jacobian(robot, q, spec)[..., :3, :]


def _attitude_bias(robot: Robot, q: Array, v: Array, spec: TaskSpec) -> Array:
    return _twist_bias(robot, q, v, spec)[..., :3]


def _direction_error(robot: Robot, q: Array, spec: TaskSpec, goal: Array) -> Array:
    """Return goal - R a: the chord between two unit vectors, 2 sin(angle/2) long."""
    axis = np.array(spec.axis)
    return goal - quaternion.rotate(_pose(robot, q, spec)[..., :4], axis)


def _direction_jacobian(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    R = pose.to_rotation_matrix(_pose(robot, q, spec))
    axis = vector.skew(np.array(spec.axis))
    return -(R @ axis) @ _attitude_jacobian(robot, q, spec)


def _direction_bias(robot: Robot, q: Array, v: Array, spec: TaskSpec) -> Array:
    R = pose.to_rotation_matrix(_pose(robot, q, spec))
    axis = np.array(spec.axis)
    omega = vector.apply(_attitude_jacobian(robot, q, spec), v)
    turned = vector.cross(omega, vector.cross(omega, axis))
    return vector.apply(R, turned + vector.cross(_attitude_bias(robot, q, v, spec), axis))


# Whole robot -------------------------------------------------------------------------------------


def posture_columns(robot: Robot) -> list[int]:
    """Return the speeds of all joints but free bases: those that a posture is about."""
    based = [j for j in robot.joints if j.parent < 0 and is_free(j)]
    excluded = {i for j in based for i in range(robot.nv)[j.v]}
    return [i for i in range(robot.nv) if i not in excluded]


def _posture_error(robot: Robot, q: Array, spec: TaskSpec, goal: Array) -> Array:
    return difference(robot, q, goal)[..., posture_columns(robot)]


def _posture_jacobian(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    rows = constant(np.eye(robot.nv)[posture_columns(robot)], like=q)
    return with_batch(rows, q.shape[:-1], trailing=2)


def _posture_bias(robot: Robot, q: Array, v: Array, spec: TaskSpec) -> Array:
    return 0.0 * v[..., posture_columns(robot)]


def _posture_angular(robot: Robot) -> tuple[bool, ...]:
    kept = set(posture_columns(robot))
    angular = [False] * robot.nv
    for joint in robot.joints:
        if joint.mimic is None:
            angular[joint.v] = [freedom.angular for freedom in kind(joint).freedoms]
    return tuple(a for i, a in enumerate(angular) if i in kept)


def _com_error(robot: Robot, q: Array, spec: TaskSpec, goal: Array) -> Array:
    return goal - center_of_mass(robot, q)


def _com_jacobian(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    return center_of_mass_jacobian(robot, q)


def _com_bias(robot: Robot, q: Array, v: Array, spec: TaskSpec) -> Array:
    """Return the acceleration of the centre of mass at v̇ = 0: Σ m_i a_i / m."""
    x, xi, rate = poses(robot, q), twists(robot, q, v), accelerations(robot, q, v, 0.0 * v)
    total: Array = np.zeros(3)
    for i, body in enumerate(robot.bodies):
        omega, velocity = xi[..., i, :3], xi[..., i, 3:]
        at_com = vector.cross(rate[..., i, :3], body.com)
        at_com = at_com + vector.cross(omega, vector.cross(omega, body.com) + velocity)
        own = quaternion.rotate(x[..., i, :4], rate[..., i, 3:] + at_com)
        total = total + asarray(body.mass)[..., None] * own
    return total / asarray(robot.mass)[..., None]


def _base_error(robot: Robot, q: Array, spec: TaskSpec, goal: Array) -> Array:
    return 0.0 * q[..., : _base_size(robot)]


def _base_jacobian(robot: Robot, q: Array, spec: TaskSpec) -> Array:
    rows = constant(np.eye(robot.nv)[robot.joints[0].v], like=q)
    return with_batch(rows, q.shape[:-1], trailing=2)


def _base_bias(robot: Robot, q: Array, v: Array, spec: TaskSpec) -> Array:
    return 0.0 * v[..., robot.joints[0].v]


def _base_size(robot: Robot) -> int:
    return robot.joints[0].v.stop - robot.joints[0].v.start


def _base_angular(robot: Robot) -> tuple[bool, ...]:
    return tuple(freedom.angular for freedom in kind(robot.joints[0]).freedoms)


def _attitude_rows_error(robot: Robot, q: Array, spec: TaskSpec, goal: Array) -> Array:
    return 0.0 * _pose(robot, q, spec)[..., :3]


_ANGLES, _LENGTHS = (True,) * 3, (False,) * 3


def _numbers(count: int) -> Callable[[Robot], int]:
    return lambda robot: count


def _rows(angular: tuple[bool, ...]) -> Callable[[Robot], tuple[bool, ...]]:
    return lambda robot: angular


def _all_coordinates(robot: Robot) -> int:
    return robot.nq


#: All kinds of tasks.
TASK_EQUATIONS: dict[str, TaskEquation] = {
    "pose": TaskEquation(
        _numbers(8), _rows(_ANGLES + _LENGTHS), _pose_error, _pose_jacobian, _pose_bias
    ),
    "position": TaskEquation(
        _numbers(3), _rows(_LENGTHS), _position_error, _position_jacobian, _position_bias
    ),
    "attitude": TaskEquation(
        _numbers(4), _rows(_ANGLES), _attitude_error, _attitude_jacobian, _attitude_bias
    ),
    "direction": TaskEquation(
        _numbers(3), _rows(_ANGLES), _direction_error, _direction_jacobian, _direction_bias
    ),
    "posture": TaskEquation(
        _all_coordinates, _posture_angular, _posture_error, _posture_jacobian, _posture_bias
    ),
    "center of mass": TaskEquation(
        _numbers(3), _rows(_LENGTHS), _com_error, _com_jacobian, _com_bias
    ),
    "base at rest": TaskEquation(
        _numbers(0), _base_angular, _base_error, _base_jacobian, _base_bias
    ),
    "base does not turn": TaskEquation(
        _numbers(0), _rows(_ANGLES), _attitude_rows_error, _attitude_jacobian, _attitude_bias
    ),
}
