"""Controlled joints, what responds to them, and the rates and accelerations of frames.

The speeds of a robot are those of the base v_0, of the controlled joints v_c, and of the others.
The base is one of three kinds [SPART17, section 3]:

    fixed     it stands still: v_0 = 0, v̇_0 = 0
    flying    it is controlled by something else: v_0 is measured, v̇_0 = 0
    floating  nothing acts on it: H_0 v_0 + H_0m v_m = M', v̇_0 = -H_0⁻¹ (h_0 + H_0m v̇_m)

With R_c = -H_0⁻¹ H_0c, the response of a floating base is v_0 = v_0' + R_c (v_c - v_c'), primes for
the measured speeds: the momentum M' of the robot, zero or not, is in the measured speeds. M' is not
constant when momentum is not zero, although [SPART17, eqs. 46-48] use its initial value, because
its angular part is about the moving base and in its axes.

A body that the arm has grasped responds, too. It is the free root of another tree, held by an
active constraint G v = 0. With v_p the speeds of a floating base and of all grasped bodies, and the
other joints at rest,

    H_pp v̇_p + H_pc v̇_c + h_p + G_pᵀλ = 0,  G_p v̇_p + G_c v̇_c = γ,
    τ_c = H_cp v̇_p + H_cc v̇_c + h_c + G_cᵀλ

so that H_0 becomes the inertia of base and grasped bodies, and the torques those that move them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra import linear, pose
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.algebra.vector import apply, cross, transpose
from remora.components.context import Context
from remora.dynamics.constraints.loop_kinematics import constraint_bias, constraint_jacobian
from remora.dynamics.kinematics import jacobian_rate
from remora.errors import UnknownName
from remora.model.constraint import GEAR
from remora.model.joints import is_free
from remora.model.robot import Robot
from remora.model.topology import ancestors

#: What the base does while joints are controlled.
BASES = ("fixed", "flying", "floating")


class Affine(NamedTuple):
    """x = matrix · u + offset, of shapes `(..., m, k)` and `(..., m)`."""

    matrix: Array
    offset: Array


class ControlledDynamics(NamedTuple):
    """Accelerations and forces of a robot as functions of the controlled accelerations.

    Attributes:
        places: indices in v of what responds: a floating base, and grasped bodies.
        passive: v̇_p, their accelerations, for the controlled accelerations a `(..., k)`.
        force: τ_c, `(..., k)`, the generalized forces of the controlled joints that need a.
    """

    places: list[int]
    passive: Affine
    force: Affine


def base_size(robot: Robot) -> int:
    """Return the number of speeds of the base."""
    return robot.joints[0].v.stop


class Response(NamedTuple):
    """What responds to the controlled joints.

    Attributes:
        places: indices in v of the speeds of a floating base and of grasped bodies.
        held: the robot with the constraints that hold grasped bodies and no others; None: none are.
    """

    places: list[int]
    held: Robot | None


def responding(robot: Robot, base: str) -> Response:
    """Return what responds to controlled joints: the base, if it floats, and grasped bodies.

    A grasped body is the root of another tree, on a free joint, that active constraints connect
    with the base. Each is held by the first of them; a further one closes a loop through controlled
    joints, and is not taken into account.

    Args:
        robot: the robot.
        base: one of `BASES`.
    """
    if base not in BASES:
        raise UnknownName("base", base, BASES)
    n0 = base_size(robot)
    moving = [*range(n0)] if base == "floating" else []
    reached, used = {0}, list[str]()
    if n0 == 0 or base == "fixed":
        reached.add(-1)  # the inertial frame
    found = True
    while found:
        found = False
        for c in robot.constraints:
            if not c.active or c.kind == GEAR or c.name in used:
                continue
            ends = {_root(robot, c.parent), _root(robot, c.child)}
            new = ends - reached
            if len(new) != 1 or len(ends) != 2:
                continue
            (root,) = new
            free = robot.joints[0 if root < 0 else root]  # what the constraint holds
            if not is_free(free) or (root < 0 and base != "floating"):
                continue
            moving += range(robot.nv)[free.v] if root >= 0 else ()
            reached.add(root)
            used.append(c.name)
            found = True
    if not used:
        return Response(moving, None)
    off = [c.name for c in robot.constraints if c.active and c.name not in used]
    return Response(moving, robot.with_active(off=off))


def _root(robot: Robot, body: int) -> int:
    """Return the first body of a body's tree; -1 for the inertial frame."""
    return body if body < 0 else ancestors(robot, body)[-1]


class _Solution(NamedTuple):
    """What responds to unit controlled accelerations, and at last to none, by column.

    Attributes:
        places: indices in v of what responds.
        speeds: v̇_p, `(..., m, k)`.
        forces: G_cᵀλ, `(..., n, k)`; None: nothing is grasped.
    """

    places: list[int]
    speeds: Array
    forces: Array | None


def _solved(at: Context, places: Sequence[int], base: str, drift: bool) -> _Solution:
    """Return v̇_p and the forces G_cᵀλ for unit controlled accelerations, and for none.

    Args:
        at: the robot and its state.
        places: indices of the controlled speeds in v.
        base: one of `BASES`.
        drift: whether a last column has the part that the controlled accelerations do not cause.
    """
    own, (passive, held) = list(places), responding(at.robot, base)
    H, k = at.mass_matrix, len(own) + drift
    if not passive:
        return _Solution([], np.zeros((0, k)), None)
    H_p, right = H[..., passive, :], H[..., passive, :][..., :, own]
    if drift:
        right = concatenate([right, at.bias_force[..., passive, None]])
    if held is None:
        return _Solution(passive, -linear.solve(H_p[..., :, passive], right), None)
    G = constraint_jacobian(held, at.q)
    G_p, G_c = G[..., :, passive], G[..., :, own]
    gap = G_c
    if drift:
        gap = concatenate([G_c, -constraint_bias(held, at.q, at.v)[..., None]])
    both = linear.solve(H_p[..., :, passive], concatenate([right, transpose(G_p)]))
    free, pushed = both[..., :, :k], both[..., :, k:]
    forces = linear.solve(linear.mirror(G_p @ pushed), gap - G_p @ free)  # λ
    return _Solution(passive, -(free + pushed @ forces), transpose(G_c) @ forces)


class Motion(NamedTuple):
    """Speeds that respond to the controlled ones: v_p = v_p' + matrix (v_c - v_c').

    Attributes:
        places: indices in v of what responds.
        matrix: `(..., m, k)`.
    """

    places: list[int]
    matrix: Array


def response(at: Context, places: Sequence[int], base: str) -> Motion:
    """Return R_c, the speeds of base and grasped bodies per controlled speed.

    R_c = -H_0⁻¹ H_0c for a floating base with nothing grasped.
    """
    solution = _solved(at, places, base, drift=False)
    return Motion(solution.places, solution.speeds)


def frame_rates(
    at: Context,
    frame: str,
    rows: Sequence[int],
    places: Sequence[int],
    base: str,
    moves: Motion,
) -> Affine:
    """Return rows of a frame's twist as a function of the controlled speeds.

    A = J_c + J_p R_c and b = t - A v_c', with t the measured twist: momentum, whatever it is, and
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
    if moves.places:
        A = A + J[..., :, moves.places] @ moves.matrix
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

    ξ̇ = J_c a + J_p v̇_p(a) + J̇ v. Joints that are neither controlled nor respond are taken not to
    accelerate.
    """
    J, passive = at.jacobian(frame), dynamics.places
    A, drift = J[..., :, list(places)], apply(jacobian_rate(at.robot, at.q, at.v, frame), at.v)
    if passive:
        A = A + J[..., :, passive] @ dynamics.passive.matrix
        drift = drift + apply(J[..., :, passive], dynamics.passive.offset)
    return Affine(A, drift)


def controlled_dynamics(at: Context, places: Sequence[int], base: str) -> ControlledDynamics:
    """Return accelerations and joint forces as functions of the controlled accelerations.

    See the top of this file. Exact for any momentum. Joints that are neither controlled nor respond
    do not accelerate.
    """
    own, solution = list(places), _solved(at, places, base, drift=True)
    R, offset = solution.speeds[..., :, :-1], solution.speeds[..., :, -1]
    force = at.bias_force[..., own]
    if solution.places:
        force = force + apply(at.mass_matrix[..., own, :][..., :, solution.places], offset)
    if solution.forces is not None:
        force = force + solution.forces[..., :, -1]
    return ControlledDynamics(
        solution.places, Affine(R, offset), Affine(_inertia(at, own, solution), force)
    )


def controlled_inertia(at: Context, places: Sequence[int], base: str) -> Array:
    """Return H_cc + H_cp R_c + G_cᵀΛ, `(..., k, k)`: v_cᵀ of this v_c is twice the kinetic energy.

    For a floating base at zero momentum and with all other joints at rest.
    """
    return _inertia(at, list(places), _solved(at, places, base, drift=False))


def _inertia(at: Context, own: list[int], solution: _Solution) -> Array:
    H_c, k = at.mass_matrix[..., own, :], len(own)
    if not solution.places:
        return H_c[..., :, own]
    inertia = H_c[..., :, own] + H_c[..., :, solution.places] @ solution.speeds[..., :, :k]
    if solution.forces is not None:
        inertia = inertia + solution.forces[..., :, :k]
    return linear.mirror(inertia)


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
