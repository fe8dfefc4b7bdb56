"""A free-floating base: its response to the arm, and the generalized Jacobian.

At zero momentum the base responds to joint speeds with v_0 = -H_0⁻¹ H_0m v_m [SPART17, eq. 46]. H_0
and H_0m are the base's rows of the mass matrix. Their rates are those of C + Cᵀ, since Ḣ - 2C is
skew-symmetric.
"""

from __future__ import annotations

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.dynamics.joint_arrays import (
    LoadedState,
    batch_shape,
    columns,
    external_wrenches,
    with_batch,
)
from remora.dynamics.kinematics import jacobian, jacobian_rate, poses
from remora.dynamics.momentum import momentum_per_speed
from remora.dynamics.recursive import articulated_body, recursive_newton_euler
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_of
from remora.dynamics.recursive.coriolis import coriolis_matrix_of
from remora.dynamics.refusals import needs_dynamics, require_free_base
from remora.errors import ShapeError
from remora.model.joints import kind
from remora.model.numbers import finite
from remora.model.robot import FrameLike, Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot


@takes_robot
@needs_dynamics
def generalized_jacobian(
    robot: Robot,
    q: ArrayLike,
    frame: FrameLike,
    point: ArrayLike = (0.0, 0.0, 0.0),
    axes: str = "body",
) -> Array:
    """Return J* `(..., 6, nv - 6)`: the frame's twist per joint speed while the base floats.

    At zero momentum the base responds to joint speeds with v_0 = -H_0⁻¹ H_0m v_m, so
    J* = J_m - J_0 H_0⁻¹ H_0m [SPART17, eq. 46].

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        frame: the name of a body or frame, the index of a body, or a Frame.
        point: in the frame, `(3,)`, m.
        axes: `body`: the frame's own axes; `world`: the inertial ones; see `jacobian`.

    Example:
        >>> robot = rm.load("servicer")
        >>> q = rm.neutral(robot)
        >>> rm.generalized_jacobian(robot, q, "tool").shape
        (6, 7)
    """
    J = jacobian(robot, q, frame, point, axes)
    return J[..., :, 6:] + J[..., :, :6] @ base_response(robot, q)


@takes_robot
@needs_dynamics
def base_response(robot: Robot, q: ArrayLike) -> Array:
    """Return -H_0⁻¹ H_0m `(..., 6, nv - 6)`: the base's twist per joint speed at zero momentum.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
    """
    require_free_base(robot)
    q = configuration(robot, q)
    x = poses(robot, q)
    x_base = dual_quaternion.conjugate(x[..., 0, :])
    blocks = {
        j: screw.columns_to_outer(screw.transform(dual_quaternion.mul(x_base, x[..., j, :])), block)
        for j, block in enumerate(momentum_per_speed(robot, q))
    }
    A = columns(robot, blocks, batch_shape(q))
    H = concatenate([A[..., 3:, :], A[..., :3, :]], trailing=2)  # [L, P], like the base forces
    return -linear.solve(H[..., :, :6], H[..., :, 6:])


@takes_robot
@needs_dynamics
def base_response_rate(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return the time derivative of `base_response`, `(..., 6, nv - 6)`.

    -H_0⁻¹ (Ḣ_0m + Ḣ_0 R) with R the response itself.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    require_free_base(robot)
    q, v = configuration(robot, q), velocity(robot, v)
    H0 = mass_matrix_of(robot, q)[..., :6, :6]
    C = coriolis_matrix_of(robot, q, v)
    Hdot = (C + vector.transpose(C))[..., :6, :]
    return -linear.solve(H0, Hdot[..., :, 6:] + Hdot[..., :, :6] @ base_response(robot, q))


@takes_robot
@needs_dynamics
def generalized_jacobian_rate(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    frame: FrameLike,
    point: ArrayLike = (0.0, 0.0, 0.0),
    axes: str = "body",
) -> Array:
    """Return the time derivative of `generalized_jacobian`, `(..., 6, nv - 6)`.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        frame: the name of a body or frame, the index of a body, or a Frame.
        point: in the frame, `(3,)`, m.
        axes: `body`: the frame's own axes; `world`: the inertial ones; see `jacobian`.
    """
    J0 = jacobian(robot, q, frame, point, axes)[..., :, :6]
    J_rate = jacobian_rate(robot, q, v, frame, point, axes)
    response = J_rate[..., :, :6] @ base_response(robot, q)
    return J_rate[..., :, 6:] + response + J0 @ base_response_rate(robot, q, v)


@takes_robot
@needs_dynamics
def floating_inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    vdot_joints: ArrayLike,
    wrenches: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Return the joint forces and the base's acceleration for prescribed joint accelerations.

    The base is not actuated: its forces are zero. All joints except the base are prescribed.

    Args:
        robot: a robot whose joint 0 is its base.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot_joints: accelerations of all speeds after the base's, `(..., nv - nv_0)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.

    Returns:
        Joint forces `(..., nv - nv_0)` and the base's acceleration `(..., nv_0)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    base = robot.joints[0].v.stop
    if base == 0:
        raise ShapeError(f"the base of robot {robot.name!r} is fixed: use inverse_dynamics")
    given = finite("vdot_joints", vdot_joints, robot.nv - base)
    w = external_wrenches(robot, wrenches)
    batch = batch_shape(q, v, given, *([] if w is None else [w[..., 0, :]]))
    q, v = with_batch(q, batch, 1), with_batch(v, batch, 1)
    if any(j.mimic is not None for j in robot.joints):
        return _base_eliminated(robot, q, v, with_batch(given, batch, 1), w)
    prescribed = {
        i: given[..., j.v.start - base : j.v.stop - base]
        for i, j in enumerate(robot.joints)
        if i > 0 and kind(j).nv > 0
    }
    vdot, tau = articulated_body.hybrid(robot, LoadedState(q, v, 0.0 * v, w, prescribed))
    return tau[..., base:], vdot[..., :base]


def _base_eliminated(
    robot: Robot, q: Array, v: Array, vdot_joints: Array, wrenches: Array | None
) -> tuple[Array, Array]:
    """Return joint forces and the base's acceleration from H; supports mimic joints.

    With t the forces that the joint accelerations require while the base does not accelerate,
    v̇_b = -H_bb⁻¹ t_b and τ_j = t_j + H_jb v̇_b.
    """
    base = robot.joints[0].v.stop
    H = mass_matrix_of(robot, q)
    vdot = concatenate([0.0 * v[..., :base], vdot_joints])
    t = recursive_newton_euler.inverse(robot, q, v, vdot, wrenches)
    found = linear.solve(H[..., :base, :base], -t[..., :base, None])[..., 0]
    return t[..., base:] + vector.apply(H[..., base:, :base], found), found
