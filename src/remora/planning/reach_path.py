"""Paths on which a frame reaches a target: along a straight line, or along a straight joint path.

On the line the frame's position follows a straight segment and its orientation one rotation about a
fixed axis, with the quintic s(τ) = τ³(10 - 15τ + 6τ²) of the path parameter τ = t/duration. The
joints follow by resolved motion rate: J* q_m' = ξ(τ) + feedback, J* = J_m + J_0 B the generalized
Jacobian [SPART17, eqs. 46, 47], integrated on the manifold with fourth-order Runge-Kutta steps. At
zero momentum the path does not depend on the duration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.kinematics import frame_pose
from remora.errors import RemoraError
from remora.model.robot import Frame, Robot
from remora.model.state import integrate, log_rate, runge_kutta_step
from remora.planning.floating_path import base_motion
from remora.planning.joint_ranges import JointRanges
from remora.planning.task_equations import TaskSpec, task_jacobian

#: Feedback on the deviation from the line, per unit of τ.
FEEDBACK = 20.0
#: Relative damping of the least squares near singular configurations.
DAMPING = 1e-3
#: Singular values below this fraction of the largest are damped.
NEAR_SINGULAR = 0.02


@dataclass(frozen=True, eq=False)
class ReachPath:
    """A path of a robot.

    Attributes:
        tau: path parameter, `(n,)`, 0 to 1.
        q: configurations, `(n, nq)`, the base included.
        rates: velocities per unit of τ, `(n, nv)`.
    """

    tau: Array
    q: Array
    rates: Array


def quintic(tau: Array | float) -> tuple[Array, Array]:
    """Return s(τ) = τ³(10 - 15τ + 6τ²) and its derivative: rest to rest."""
    x = np.asarray(tau, dtype=float)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x * x), 30.0 * x * x * (1.0 - x) ** 2


def line_path(
    robot: Robot,
    q: Array,
    frame: Frame,
    target: Array,
    ranges: JointRanges,
    floating: bool,
    steps: int,
) -> ReachPath:
    """Return the path on which the frame moves along a line to the target.

    Args:
        robot: the robot.
        q: configuration at the start, `(nq,)`.
        frame: the frame that moves.
        target: pose `(8,)`, or position `(3,)`: the orientation is then free.
        ranges: the joints that may be used, and their ranges.
        floating: whether the base recoils; otherwise it does not move.
        steps: number of Runge-Kutta steps.

    Raises:
        RemoraError: if a joint leaves its range on the way; the message names it.
    """
    rates = _rates(robot, q, frame, target, ranges, floating)
    moved = kernel(integrate, robot, ("q", "dq"))
    in_chart = kernel(log_rate, robot, ("dq", "v"))
    h, tau = 1.0 / steps, np.linspace(0.0, 1.0, steps + 1)
    states, speeds = [q], [rates(0.0, q)]
    for k in range(steps):

        def velocity(part: float, q: Array, tau: float = tau[k]) -> Array:
            return rates(tau + part * h, q)

        q = runge_kutta_step(velocity, states[-1], h, moved, in_chart, speeds[-1])
        _check_ranges(robot, q, ranges, tau[k + 1])
        states.append(q)
        speeds.append(rates(tau[k + 1], q))
    return ReachPath(tau, np.array(states), np.array(speeds))


def _rates(
    robot: Robot, q0: Array, frame: Frame, target: Array, ranges: JointRanges, floating: bool
) -> Callable[[float, Array], Array]:
    """Return (τ, q) -> velocity per unit of τ."""
    posed = target.size == 8
    spec = (TaskSpec("pose" if posed else "position", frame),)
    terms = kernel(pose_and_jacobian, robot, ("q",), frame=frame, specs=spec)
    response = base_motion(robot, True) if floating else None
    start = terms(q0)[0]
    way = (pose.translation(target) if posed else target) - pose.translation(start)
    turn = np.zeros(3)
    if posed:
        turn = 2.0 * quaternion.log(quaternion.mul(quaternion.conjugate(start[:4]), target[:4]))

    def rates(tau: float, q: Array) -> Array:
        s, ds = quintic(tau)
        x, J = terms(q)
        off = pose.translation(start) + s * way - pose.translation(x)
        wanted = ds * way + FEEDBACK * off
        if posed:
            r = quaternion.mul(start[:4], quaternion.exp(0.5 * s * turn))
            error = 2.0 * quaternion.log(quaternion.mul(quaternion.conjugate(x[:4]), r))
            # The line's rotation axis is fixed in the moving frame; errors turn it slightly.
            wanted = np.concatenate([ds * turn + FEEDBACK * error, wanted])
        N = np.eye(robot.nv)[:, 6 if floating else 0 :]
        if response is not None:
            N = np.concatenate([response(q), N[6:]])
        usable = ranges.free[6:] if floating else ranges.free
        found: Array = N @ (usable * _least_squares((J @ N) * usable, wanted))
        return found

    return rates


def pose_and_jacobian(
    robot: Robot, q: Array, frame: Frame, specs: tuple[TaskSpec, ...]
) -> tuple[Array, Array]:
    """Return the frame's pose `(..., 8)` and the Jacobian of its task `(..., m, nv)`."""
    return frame_pose(robot, q, frame), task_jacobian(robot, q, specs)


def _least_squares(J: Array, b: Array) -> Array:
    """Return the minimum-norm solution, damped where J is nearly singular."""
    U, sizes, V = np.linalg.svd(J, full_matrices=False)
    low = NEAR_SINGULAR * float(np.max(sizes, initial=0.0)) + 1e-300
    damping = np.where(sizes < low, (DAMPING / NEAR_SINGULAR + 1.0 - sizes / low) * low, 0.0)
    scaled = (U.T @ b) * sizes / (sizes**2 + damping**2 + 1e-300)
    return np.einsum("ij,i->j", V, scaled)


def _check_ranges(robot: Robot, q: Array, ranges: JointRanges, tau: float) -> None:
    for joint in robot.joints:
        if joint.mimic is not None or not np.any(ranges.free[joint.v]):
            continue
        beyond = np.maximum(ranges.lower - q, q - ranges.upper)[joint.q].max(initial=0.0)
        if beyond > 1e-9:
            raise RemoraError(
                f"joint {joint.name!r} leaves its range {100.0 * tau:.0f} % along the line; try "
                'path="joints", another start or another target'
            )
