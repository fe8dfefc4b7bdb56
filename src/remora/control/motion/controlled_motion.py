"""Controlled joints, the base's response to them, and the rates and accelerations of frames.

The speeds of a robot are those of the base v_0, of the controlled joints v_c, and of the others.
The base is one of three kinds [SPART17, section 3]:

    fixed     it stands still: v_0 = 0, v̇_0 = 0
    flying    it is controlled by something else: v_0 is measured, v̇_0 = 0
    floating  nothing acts on it: H_0 v_0 + H_0m v_m = M', v̇_0 = -H_0⁻¹ (h_0 + H_0m v̇_m)

With R_c = -H_0⁻¹ H_0c, the response of a floating base is v_0 = v_0' + R_c (v_c - v_c'), primes for
the measured speeds: the momentum M' of the robot, zero or not, is in the measured speeds. M' is not
constant when momentum is not zero, although [SPART17, eqs. 46-48] use its initial value, because
its angular part is about the moving base and in its axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra import linear, pose
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.algebra.vector import apply, cross, transpose
from remora.components.context import Context
from remora.dynamics.kinematics import jacobian_rate
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.joints import in_coordinates, kind
from remora.model.robot import Robot

#: What the base does while joints are controlled.
BASES = ("fixed", "flying", "floating")


class Affine(NamedTuple):
    """x = matrix · u + offset, of shapes `(..., m, k)` and `(..., m)`."""

    matrix: Array
    offset: Array


class ControlledDynamics(NamedTuple):
    """Accelerations and forces of a robot as functions of the controlled accelerations.

    Attributes:
        base: v̇_0, `(..., n0)`, for the controlled accelerations a `(..., k)`.
        force: τ_c, `(..., k)`, the generalized forces of the controlled joints that need a.
    """

    base: Affine
    force: Affine


def joint_names(robot: Robot, joints: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the controlled joints; all joints after the base if none are given."""
    if not joints:
        joints = [j.name for j in robot.joints[1:] if kind(j).nv > 0 and j.mimic is None]
    for name in joints:
        joint = robot.joints[robot.joint_index(name)]
        if joint is robot.joints[0]:
            raise RemoraError(f"joint {name!r} carries the base: control it with a law of the base")
        if not in_coordinates(joint) or joint.mimic is not None or kind(joint).nv == 0:
            raise RemoraError(f"joint {name!r} ({joint.kind}) has no coordinates of its own")
    if len(set(joints)) != len(joints):
        raise InvalidValue("a joint is listed twice")
    return tuple(joints)


def speed_places(robot: Robot, joints: Sequence[str]) -> list[int]:
    """Return the indices of the joints' speeds in v."""
    return [i for name in joints for i in range(robot.nv)[robot.joints[name].v]]


def coordinate_places(robot: Robot, joints: Sequence[str]) -> list[int]:
    """Return the indices of the joints' coordinates in q."""
    return [i for name in joints for i in range(robot.nq)[robot.joints[name].q]]


def base_size(robot: Robot) -> int:
    """Return the number of speeds of the base."""
    return robot.joints[0].v.stop


def response(at: Context, places: Sequence[int], base: str) -> Array | None:
    """Return R_c = -H_0⁻¹ H_0c, `(..., n0, k)`, the base's speeds per controlled speed.

    None where the base does not respond: fixed, flying, or without a degree of freedom.
    """
    n0 = base_size(at.robot)
    if base not in BASES:
        raise UnknownName("base", base, BASES)
    if base != "floating" or n0 == 0:
        return None
    H = at.mass_matrix[..., :n0, :]
    return -linear.solve(H[..., :, :n0], H[..., :, list(places)])


def frame_rates(
    at: Context,
    frame: str,
    rows: Sequence[int],
    places: Sequence[int],
    base: str,
    moves: Array | None,
) -> Affine:
    """Return rows of a frame's twist as a function of the controlled speeds.

    A = J_c + J_0 R_c and b = t - A v_c', with t the measured twist: momentum, whatever it is, and
    the speeds of joints that are not controlled are in b [SPART17, eq. 46].

    Args:
        at: robot and measured state.
        frame: name of a body or frame.
        rows: indices of rows of the twist in inertial axes at the frame's origin.
        places: indices of the controlled speeds in v.
        base: one of `BASES`.
        moves: from `response`.
    """
    n0, v = base_size(at.robot), at.v
    J = _turned(at, frame, at.jacobian(frame))[..., list(rows), :]
    A = J[..., :, list(places)]
    if moves is not None:
        A = A + J[..., :, :n0] @ moves
    moving = v if base != "fixed" or n0 == 0 else concatenate([0.0 * v[..., :n0], v[..., n0:]])
    return Affine(A, apply(J, moving) - apply(A, v[..., list(places)]))


def frame_accelerations(
    at: Context,
    frame: str,
    rows: Sequence[int],
    places: Sequence[int],
    dynamics: ControlledDynamics,
) -> Affine:
    """Return rows of the rate of a frame's twist as a function of the controlled accelerations.

    In inertial axes, [ω̇, p̈]; see `own_accelerations`.
    """
    own = own_accelerations(at, frame, places, dynamics)
    # R(ξ̇ + ω × ξ) is the rate of Rξ
    twist = at.twist(frame)
    omega = twist[..., :3]
    turning = concatenate([0.0 * omega, cross(omega, twist[..., 3:])])
    A = _turned(at, frame, own.matrix)[..., list(rows), :]
    return Affine(A, _turned(at, frame, (own.offset + turning)[..., None])[..., list(rows), 0])


def own_accelerations(
    at: Context, frame: str, places: Sequence[int], dynamics: ControlledDynamics
) -> Affine:
    """Return the rate of a frame's twist in its own axes, by the controlled accelerations.

    ξ̇ = J_c a + J_0 v̇_0(a) + J̇ v. Joints that are neither controlled nor the base are taken not to
    accelerate.
    """
    n0, J = base_size(at.robot), at.jacobian(frame)
    A, drift = J[..., :, list(places)], apply(jacobian_rate(at.robot, at.q, at.v, frame), at.v)
    if n0:
        A = A + J[..., :, :n0] @ dynamics.base.matrix
        drift = drift + apply(J[..., :, :n0], dynamics.base.offset)
    return Affine(A, drift)


def controlled_dynamics(at: Context, places: Sequence[int], base: str) -> ControlledDynamics:
    """Return base accelerations and joint forces as functions of the controlled accelerations.

    H_0 v̇_0 + H_0c a + h_0 = 0 for a floating base, v̇_0 = 0 otherwise, and
    τ_c = H_c0 v̇_0 + H_cc a + h_c.
    Exact for any momentum. Joints that are neither controlled nor the base do not accelerate.
    """
    n0, own = base_size(at.robot), list(places)
    H, h = at.mass_matrix, at.bias_force
    Hc = H[..., own, :]
    if base not in BASES:
        raise UnknownName("base", base, BASES)
    if n0 == 0 or base != "floating":
        still = Affine(np.zeros((n0, len(own))), np.zeros(n0))
        return ControlledDynamics(still, Affine(Hc[..., :, own], h[..., own]))
    right = concatenate([H[..., :n0, own], h[..., :n0, None]])
    solved = -linear.solve(H[..., :n0, :n0], right)
    R, drift = solved[..., :, :-1], solved[..., :, -1]
    back = Hc[..., :, :n0]
    return ControlledDynamics(
        Affine(R, drift),
        Affine(linear.mirror(Hc[..., :, own] + back @ R), h[..., own] + apply(back, drift)),
    )


def controlled_inertia(at: Context, places: Sequence[int], base: str) -> Array:
    """Return H_cc + H_c0 R_c, `(..., k, k)`: twice the kinetic energy is v_cᵀ of this v_c.

    For a floating base at zero momentum and with all other joints at rest.
    """
    n0, own = base_size(at.robot), list(places)
    H = at.mass_matrix[..., own, :]
    moves = response(at, places, base)
    if moves is None:
        return H[..., :, own]
    return linear.mirror(H[..., :, own] + H[..., :, :n0] @ moves)


def _turned(at: Context, frame: str, columns: Array) -> Array:
    """Return columns of twists `(..., 6, k)`, from the frame's own axes to inertial axes."""
    R = pose.to_rotation_matrix(at.pose(frame))
    return concatenate([R @ columns[..., :3, :], R @ columns[..., 3:, :]], trailing=2)


def manipulability_gradient(
    at: Context, frame: str, rows: Sequence[int], places: Sequence[int], damping: Array | float
) -> Array:
    """Return ∂ ln √det(J Jᵀ) / ∂q_c, `(..., k)`, of the arm on a fixed base [Yos85].

    tr((J Jᵀ + λ²1)⁻¹ ∂J/∂q_i Jᵀ); ∂J/∂q_i is J̇ at unit speed of joint i.
    """
    own, J_own = list(places), at.jacobian(frame)
    J = _turned(at, frame, J_own)[..., list(rows), :][..., :, own]
    size = asarray(damping)[..., None, None]
    extra = size * size * np.eye(J.shape[-2])
    X = transpose(linear.solve(linear.mirror(J @ transpose(J)) + extra, J))  # Jᵀ (JJᵀ + λ²)⁻¹
    slopes: list[Array] = []
    for place in own:
        unit = np.zeros(at.robot.nv)
        unit[place] = 1.0
        omega = J_own[..., :3, place]
        all_ = transpose(J_own)
        turning = concatenate(
            [cross(omega[..., None, :], all_[..., :3]), cross(omega[..., None, :], all_[..., 3:])]
        )
        rate = jacobian_rate(at.robot, at.q, unit, frame) + transpose(turning)
        change = _turned(at, frame, rate)[..., list(rows), :][..., :, own]
        slopes.append((change * transpose(X)).sum(axis=(-2, -1))[..., None])
    return concatenate(slopes)
