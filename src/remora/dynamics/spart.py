"""SPART's quantities in its conventions: inertial axes, centres of mass, angular part first.

Links are the robot's bodies, base first; t_i = [ω_i, ṙ_i] is the twist of link i's centre of mass
and q̇ = [q̇_0, q̇_m] with q̇_0 = [ω_0 in the base's axes, ṙ_0 in inertial axes] [SPART17, eq. 14].
The axes of ω_0 are those of the base's inertial frame (`Body.inertial_frame`).
All joint types are supported: where SPART has a vector p_i, a joint with several degrees of freedom
has one column for each. `rm.layouts.spart` converts q, v and forces to SPART's and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from remora.algebra import linear, pose, vector
from remora.algebra.array_ops import (
    Array,
    ArrayLike,
    asarray,
    concatenate,
    stack,
)
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.kinematics import poses
from remora.dynamics.recursive.outward_pass import Link, moving_links
from remora.errors import InvalidValue, ShapeError
from remora.model import joints
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot
from remora.model.topology import ancestors

_apply, _T, _skew, _cross = vector.apply, vector.transpose, vector.skew, vector.cross


class NaturalOrthogonalComplement(NamedTuple):
    """N with t = N q̇, and its two factors [SPART17, eqs. 16-19].

    Attributes:
        N: `(..., 6 nb, nv)`, N = N_l N_d.
        N_l: `(..., 6 nb, 6 nb)`, lower block-triangular, the B_ij.
        N_d: `(..., 6 nb, nv)`, block-diagonal: P_0 and the p_i.
    """

    N: Array
    N_l: Array
    N_d: Array


class Partition(NamedTuple):
    """A generalized matrix, partitioned into base and manipulator [SPART17, eqs. 44, 45].

    Attributes:
        base: H0 or C0, `(..., 6, 6)`.
        coupling: H0m or C0m, `(..., 6, n)`.
        coupling_back: H0mᵀ or Cm0, `(..., n, 6)`.
        manipulator: Hm or Cm, `(..., n, n)`.
    """

    base: Array
    coupling: Array
    coupling_back: Array
    manipulator: Array


class _LinkMotion(NamedTuple):
    """A link in inertial axes.

    Attributes:
        R: its axes, `(..., 3, 3)`.
        p: its frame's origin, `(..., 3)`.
        r: its centre of mass, `(..., 3)`.
        omega: ω_i, `(..., 3)`.
        v: ṙ_i, `(..., 3)`.
        v_joint: velocity of the point of the body at its own origin, `(..., 3)`.
    """

    R: Array
    p: Array
    r: Array
    omega: Array
    v: Array
    v_joint: Array


@takes_robot
def joint_axes(robot: Robot, q: ArrayLike) -> Array:
    """Return e_i, the joints' axes in inertial axes, `(..., nj - 1, 3)` [SPART17, eq. 8].

    Args:
        robot: the robot; every joint but the base has one axis (revolute, prismatic, helical,
            cylindrical) or none (fixed: zeros).
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    x = poses(robot, q)
    axes: list[Array] = []
    for i, joint in enumerate(robot.joints[1:], start=1):
        if len(joint.axes) > 1 or (len(joint.axes) == 0 and joints.kind(joint).nv > 0):
            raise InvalidValue(
                f"joint {joint.name!r} of kind {joint.kind!r} has no single axis e_i; its screws "
                "are the columns of rm.papers.spart17.natural_orthogonal_complement(robot, q).N_d"
            )
        turn = pose.to_rotation_matrix(x[..., i, :])
        axes.append(_apply(turn, joint.axes[0]) if len(joint.axes) else np.zeros(3))
    joined = stack(axes, axis=-2) if axes else np.zeros((0, 3))
    return with_batch(joined, q.shape[:-1], trailing=2)


@takes_robot
def link_inertias(robot: Robot, q: ArrayLike) -> Array:
    """Return I_i = R_i I_i R_iᵀ about the centres of mass, `(..., nb, 3, 3)` [SPART17, eq. 9].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    found = [
        link.R @ asarray(body.inertia) @ _T(link.R)
        for body, link in zip(robot.bodies, _links(robot, q, None), strict=True)
    ]
    return with_batch(stack(found, axis=-3), q.shape[:-1], trailing=3)


@takes_robot
def twist_propagation(robot: Robot, q: ArrayLike) -> Array:
    """Return B_ij, `(..., nb, nb, 6, 6)`: t_i = B_ij t_j + p_i q̇_i [SPART17, eq. 11].

    B_ij = [1 0; [r_j - r_i]× 1] where link j carries link i, 1 where they are the same, else 0.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    B = _propagation(robot, _links(robot, q, None))
    return with_batch(B, q.shape[:-1], trailing=4)


@takes_robot
def natural_orthogonal_complement(robot: Robot, q: ArrayLike) -> NaturalOrthogonalComplement:
    """Return N = N_l N_d with t = N q̇ [SPART17, eqs. 16-21].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    links = _links(robot, q, None)
    N_l = _flat(_propagation(robot, links))
    N_d = _diagonal(robot, q, links)
    batch = q.shape[:-1]
    return NaturalOrthogonalComplement(
        *(with_batch(x, batch, trailing=2) for x in (N_l @ N_d, N_l, N_d))
    )


@takes_robot
def natural_orthogonal_complement_rate(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return Ṅ = Ṅ_l N_d + N_l Ṅ_d, `(..., 6 nb, nv)`: ṫ = N q̈ + Ṅ q̇ [SPART17, eqs. 22-24].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`, as everywhere in Remora.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    links = _links(robot, q, v)
    N_l, N_l_rate = _flat(_propagation(robot, links)), _flat(_propagation_rate(robot, links))
    N_d = _diagonal(robot, q, links)
    rate = N_l_rate @ N_d + N_l @ _diagonal_rate(robot, q, v, links)
    return with_batch(rate, batch_shape(q, v), trailing=2)


@takes_robot
def generalized_inertia(robot: Robot, q: ArrayLike) -> Partition:
    """Return H = Nᵀ M N in blocks, M = diag(I_i, m_i 1) [SPART17, eqs. 30, 35, 39, 44].

    Args:
        robot: the robot, on a free base.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    N = natural_orthogonal_complement(robot, q).N
    return _partition(robot, _T(N) @ (_masses(robot, q) @ N))


@takes_robot
def convective_inertia(robot: Robot, q: ArrayLike, v: ArrayLike) -> Partition:
    """Return C = Nᵀ(M Ṅ + Ṁ N) in blocks, Ṁ = diag(ω_i × I_i, 0) [SPART17, eqs. 32, 40, 45].

    Args:
        robot: the robot, on a free base.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`, as everywhere in Remora.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    N = natural_orthogonal_complement(robot, q).N
    rate = natural_orthogonal_complement_rate(robot, q, v)
    inertias = link_inertias(robot, q)
    turning = [
        _skew(link.omega) @ inertias[..., i, :, :] for i, link in enumerate(_links(robot, q, v))
    ]
    M_rate = _block_diagonal([_spread(turned, np.zeros((3, 3))) for turned in turning])
    return _partition(robot, _T(N) @ (_masses(robot, q) @ rate + M_rate @ N))


@takes_robot
def floating_inertia(robot: Robot, q: ArrayLike) -> Array:
    """Return H* = Hm - H0mᵀ H0⁻¹ H0m, `(..., n, n)`: the joints' inertia of a floating robot.

    Args:
        robot: the robot, on a free base.
        q: configuration, `(..., nq)`.
    """
    H = generalized_inertia(robot, q)
    return H.manipulator - H.coupling_back @ linear.solve(H.base, H.coupling)


@takes_robot
def floating_convective_inertia(robot: Robot, q: ArrayLike, joint_speeds: ArrayLike) -> Array:
    """Return C* `(..., n, n)`: H* q̈_m + C* q̇_m = τ_m with no load on the base.

    For a robot with zero momentum, whose base moves with q̇_0 = -H0⁻¹ H0m q̇_m:
    C* = Cm - H0mᵀ H0⁻¹ C0m - (Cm0 - H0mᵀ H0⁻¹ C0) H0⁻¹ H0m.

    Args:
        robot: the robot, on a free base.
        q: configuration, `(..., nq)`.
        joint_speeds: q̇_m, `(..., n)`, n = nv - 6.
    """
    q = configuration(robot, q)
    _require_free_base(robot)
    speeds = asarray(joint_speeds)
    if speeds.shape[-1:] != (robot.nv - 6,):
        raise ShapeError(f"joint_speeds must have shape (..., {robot.nv - 6}), not {speeds.shape}")
    H = generalized_inertia(robot, q)
    follow = -linear.solve(H.base, H.coupling)  # q̇_0 per q̇_m
    base = _apply(follow, speeds)
    # Remora's base twist: own axes, of the link frame's origin
    (link, *_) = _links(robot, q, None)
    omega, rdot = _apply(_base_axes(robot), base[..., :3]), _apply(_T(link.R), base[..., 3:])
    v0 = concatenate([omega, rdot - _cross(omega, asarray(robot.bodies[0].com))])
    C = convective_inertia(robot, q, concatenate([v0, speeds]))
    lift = _T(follow)  # -H0mᵀ H0⁻¹
    return C.manipulator + lift @ C.coupling + (C.coupling_back + lift @ C.base) @ follow


def _require_free_base(robot: Robot) -> None:
    if sum(j.parent < 0 for j in robot.joints) > 1:
        raise InvalidValue(f"SPART has one base; robot {robot.name!r} has several")
    if joints.kind(robot.joints[0]).nv != 6:
        raise InvalidValue(
            f"SPART's matrices part base and manipulator: the base {robot.bodies[0].name!r} must "
            f"be free, not {robot.joints[0].kind!r}"
        )


def _partition(robot: Robot, A: Array) -> Partition:
    _require_free_base(robot)
    return Partition(A[..., :6, :6], A[..., :6, 6:], A[..., 6:, :6], A[..., 6:, 6:])


def _links(robot: Robot, q: Array, v: Array | None) -> list[_LinkMotion]:
    """Return every link in inertial axes."""
    for body in robot.bodies:
        if not body.is_centred:
            raise InvalidValue(
                f"fixed links were merged into body {body.name!r}; SPART counts them as links: "
                "load the robot with merge_fixed=False"
            )
    names = [joint.name for joint in robot.joints if joint.mimic is not None]
    if names:
        raise InvalidValue(f"SPART does not support mimic joints ({', '.join(names)})")
    v = np.zeros(robot.nv) if v is None else v
    result: list[_LinkMotion] = []
    moving: list[Link] = moving_links(robot, q, v)
    for body, link in zip(robot.bodies, moving, strict=True):
        if link.parent < 0:
            R, p = link.X.R, link.X.p
        else:
            before = result[link.parent]
            R, p = before.R @ link.X.R, before.p + _apply(before.R, link.X.p)
        arm = _apply(R, asarray(body.com))
        omega, at_joint = _apply(R, link.twist[..., :3]), _apply(R, link.twist[..., 3:])
        motion = at_joint + _cross(omega, arm)
        result.append(_LinkMotion(R, p, p + arm, omega, motion, at_joint))
    return result


def _propagation(robot: Robot, links: list[_LinkMotion]) -> Array:
    return _by_carriers(robot, lambda i, j: _shift(links[j].r - links[i].r))


def _propagation_rate(robot: Robot, links: list[_LinkMotion]) -> Array:
    def rate(i: int, j: int) -> Array:
        return _shift(links[j].v - links[i].v) - np.eye(6)

    return _by_carriers(robot, rate, own=np.zeros((6, 6)))


def _shift(lever: Array) -> Array:
    """Return [1 0; [lever]× 1], `(..., 6, 6)`."""
    cross = _skew(lever)
    one = np.eye(3)
    upper = concatenate([one, np.zeros_like(cross)])
    return concatenate([upper, concatenate([cross, one])], trailing=2)


def _by_carriers(
    robot: Robot, block: Callable[[int, int], Array], own: Array | None = None
) -> Array:
    """Return block(i, j) where link j carries link i, `(..., nb, nb, 6, 6)`."""
    n, zero = len(robot.bodies), np.zeros((6, 6))
    rows: list[Array] = []
    for i in range(n):
        carriers = ancestors(robot, i)
        same = np.eye(6) if own is None else own
        rows.append(
            stack(
                [same if j == i else block(i, j) if j in carriers else zero for j in range(n)],
                axis=-3,
            )
        )
    return stack(rows, axis=-4)


def _flat(B: Array) -> Array:
    """Return blocks `(..., n, n, 6, 6)` as one matrix `(..., 6 n, 6 n)`."""
    n = B.shape[-4]
    rows = [concatenate([B[..., i, j, :, :] for j in range(n)]) for i in range(n)]
    return concatenate(rows, trailing=2)


def _spread(upper: Array, lower: Array) -> Array:
    zero = np.zeros((3, 3))
    return concatenate([concatenate([upper, zero]), concatenate([zero, lower])], trailing=2)


def _block_diagonal(blocks: list[Array]) -> Array:
    """Return the block-diagonal matrix of blocks `(..., m_i, n_i)`."""
    widths = [b.shape[-1] for b in blocks]
    rows: list[Array] = []
    for i, block in enumerate(blocks):
        m = block.shape[-2]
        before, after = sum(widths[:i]), sum(widths[i + 1 :])
        rows.append(concatenate([np.zeros((m, before)), block, np.zeros((m, after))]))
    return concatenate(rows, trailing=2)


def _masses(robot: Robot, q: Array) -> Array:
    """Return M = diag(I_i, m_i 1), `(..., 6 nb, 6 nb)`."""
    inertias = link_inertias(robot, q)
    return _block_diagonal(
        [
            _spread(inertias[..., i, :, :], asarray(body.mass)[..., None, None] * np.eye(3))
            for i, body in enumerate(robot.bodies)
        ]
    )


def _screws(robot: Robot, q: Array, links: list[_LinkMotion], i: int) -> tuple[Array, Array]:
    """Return the joint's columns, angular and linear at link i's centre of mass, inertial axes."""
    S, link = joints.motion_subspace(robot.joints[i], q), links[i]
    turn = link.R @ S[..., :3, :]
    return turn, link.R @ S[..., 3:, :] - _skew(link.r - link.p) @ turn


def _base_axes(robot: Robot) -> Array:
    """Return the axes of ω_0, those of the base's inertial frame, in the base link's, `(3, 3)`."""
    return pose.to_rotation_matrix(robot.bodies[0].inertial_placement)


def _diagonal(robot: Robot, q: Array, links: list[_LinkMotion]) -> Array:
    _require_free_base(robot)
    blocks = [_spread(links[0].R @ _base_axes(robot), np.eye(3))]  # P_0 of (20)
    for i in range(1, len(links)):
        blocks.append(concatenate(list(_screws(robot, q, links, i)), trailing=2))
    return _block_diagonal(blocks)


def _diagonal_rate(robot: Robot, q: Array, v: Array, links: list[_LinkMotion]) -> Array:
    """Return Ṅ_d: Ω_i p_i, and the terms of the joint's travel and changing motion subspace."""
    turned = links[0].R @ _base_axes(robot)
    blocks = [_spread(_skew(links[0].omega) @ turned, np.zeros((3, 3)))]
    for i in range(1, len(links)):
        link = links[i]
        turn, shift = _screws(robot, q, links, i)
        omega = _skew(link.omega)
        own = joints.motion_subspace_rate(robot.joints[i], q, v)
        turn_rate = omega @ turn
        # rate of R S_v - (r - p) × turn, with r - p fixed in the link
        shift_rate = omega @ shift
        if own is not None:
            grown = link.R @ own[..., :3, :]
            turn_rate = turn_rate + grown
            arm = _skew(link.r - link.p)
            shift_rate = shift_rate + link.R @ own[..., 3:, :] - arm @ grown
        blocks.append(concatenate([turn_rate, shift_rate], trailing=2))
    return _block_diagonal(blocks)
