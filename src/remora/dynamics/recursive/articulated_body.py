"""The articulated-body algorithm (ABA): forward and hybrid dynamics in O(n).

An inward pass computes articulated-body inertias and bias forces, an outward pass accelerations. A
joint with prescribed acceleration is treated as rigid, and its force is computed [VT18, eqs. 61-76
give the same in maximal coordinates].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.array_ops import Array, concatenate, stack
from remora.algebra.screw import Inertia, Transform
from remora.dynamics.joint_arrays import LoadedState, gather
from remora.dynamics.recursive.outward_pass import MovingBody, moving
from remora.dynamics.recursive.tree_passes import JointContext, Pass, added, run_at
from remora.dynamics.refusals import refuse_mimic_joints
from remora.errors import InvalidValue
from remora.model import joints
from remora.model.robot import Robot


class ArticulatedBody(NamedTuple):
    """An articulated-body inertia I and bias force p: the force is I a + p, written [τ, f].

    Attributes:
        A: block of the articulated-body inertia I = [A B; Bᵀ C], `(..., 3, 3)`, symmetric.
        B: `(..., 3, 3)`.
        C: `(..., 3, 3)`, symmetric.
        p: the bias wrench [f, τ], `(..., 6)`.
    """

    A: Array
    B: Array
    C: Array
    p: Array


class ForceDriven(NamedTuple):
    """A joint driven by its force: vdot = k - K a, a the body's acceleration at vdot = 0.

    Attributes:
        K: D⁻¹ Uᵀ, `(..., nv_i, 6)`; None at a root, where a is the ground's acceleration.
        k: D⁻¹ u, `(..., nv_i)`, u = τ - Sᵀp the net joint force; at a root vdot itself.
    """

    K: Array | None
    k: Array


class MotionPrescribed(NamedTuple):
    """A joint with prescribed acceleration.

    Attributes:
        load: articulated-body inertia and bias force of its body.
        vdot: the acceleration, `(..., nv_i)`.
    """

    load: ArticulatedBody
    vdot: Array


class AcceleratedBody(NamedTuple):
    """A joint's acceleration and force, `(..., nv_i)`."""

    vdot: Array
    tau: Array


def hybrid(robot: Robot, state: LoadedState) -> tuple[Array, Array]:
    """Return vdot and tau, both `(..., nv)`; the tau of prescribed joints is computed."""
    refuse_mimic_joints(robot, "articulated")
    left, batch = run_at(robot, PASSES, state)[1][-1], state.batch
    vdots, taus = ([part[k] for part in left] for k in range(2))
    return gather(robot, vdots, batch), gather(robot, taus, batch)


def _articulated_inertia_step(
    at: JointContext, before: tuple[MovingBody], beyond: ArticulatedBody | None
) -> tuple[ForceDriven | MotionPrescribed, ArticulatedBody | None]:
    """Inward pass: the articulated-body inertia; passes the part felt through the joint on."""
    return articulated_inertia(at, before[0], beyond)[:2]


def articulated_inertia(
    at: JointContext, here: MovingBody, beyond: ArticulatedBody | None
) -> tuple[ForceDriven | MotionPrescribed, ArticulatedBody | None, tuple[Array, Array] | None]:
    """Return a joint's part of the recursion, its load on the parent, and the LDLᵀ factors of D.

    The factors are None for a joint with prescribed acceleration.
    """
    M, S = at.inertia, here.S
    p = screw.cross(here.twist, screw.momentum(M, here.twist))
    if at.wrench is not None:
        p = p - at.wrench
    I = added(beyond, ArticulatedBody(*_rigid(M), p))
    given = np.zeros(0) if S.shape[-1] == 0 else at.given  # a fixed joint: empty acceleration
    if given is not None:  # rigid, with prescribed acceleration
        felt = I._replace(p=I.p + inertia_wrench(I, here.c(at) + vector.apply(S, given)))
        return MotionPrescribed(I, given), None if at.is_root else to_outer(here.X, felt), None
    U, factors, size = _response(at, S, I)
    u = at.tau[..., at.joint.v] - vector.apply(vector.transpose(S), dual_quaternion.swap(I.p))
    if at.is_root:
        rest = u - vector.apply(vector.transpose(U), _at_rest(at, here, at.ground))
        k = linear.ldl_solve(factors, rest[..., None], size)[..., 0]
        return ForceDriven(None, k), None, factors
    k = linear.ldl_solve(factors, u[..., None], size)[..., 0]
    K = linear.ldl_solve(factors, vector.transpose(U))
    felt = _without(I, U, K)
    pushed = dual_quaternion.swap(vector.apply(U, k))
    felt = felt._replace(p=I.p + inertia_wrench(felt, here.c(at)) + pushed)
    return ForceDriven(K, k), to_outer(here.X, felt), factors


def acceleration_step(
    at: JointContext, before: tuple[MovingBody, ForceDriven | MotionPrescribed], a: Array | None
) -> tuple[AcceleratedBody, Array]:
    """Outward pass: joint acceleration and force; passes the body's acceleration on."""
    here, by = before
    rest = _at_rest(at, here, at.ground if a is None else a)
    if isinstance(by, ForceDriven):
        vdot = by.k if by.K is None else by.k - vector.apply(by.K, rest)
        return AcceleratedBody(vdot, at.tau[..., at.joint.v]), rest + vector.apply(here.S, vdot)
    a = rest + vector.apply(here.S, by.vdot)
    return AcceleratedBody(by.vdot, held_force(at, here, by, a)), a


def held_force(
    at: JointContext, here: MovingBody, by: MotionPrescribed, a: Array, felt: Array | None = None
) -> Array:
    """Return the force of a joint with prescribed acceleration, `(..., nv_i)`.

    Args:
        at: the joint.
        here: its motion.
        by: its load and acceleration.
        a: acceleration of its body, `(..., 6)`.
        felt: a further wrench on its articulated body, `(..., 6)`.
    """
    load = inertia_wrench(by.load, a) + by.load.p
    load = load if felt is None else load - felt
    force = vector.apply(vector.transpose(here.S), dual_quaternion.swap(load))
    return force + joints.rotor_inertia(at.joint) * by.vdot


#: The passes: twists outward, articulated-body inertias inward, accelerations outward.
PASSES = (
    Pass(inward=False, step=moving),
    Pass(True, _articulated_inertia_step),
    Pass(False, acceleration_step),
)


def _at_rest(at: JointContext, here: MovingBody, before: Array) -> Array:
    """Return the body's acceleration at zero joint acceleration, from the parent's."""
    return screw.to_inner(here.X, before) + here.c(at)


def _response(
    at: JointContext, S: Array, I: ArticulatedBody
) -> tuple[Array, tuple[Array, Array], Array]:
    """Return U = I S, [τ, f], the LDLᵀ factors of D = Sᵀ U + rotor, and D's magnitude."""
    U = concatenate(
        [
            I.A @ S[..., :3, :] + I.B @ S[..., 3:, :],
            vector.transpose(I.B) @ S[..., :3, :] + I.C @ S[..., 3:, :],
        ],
        trailing=2,
    )
    rotor = joints.rotor_inertia(at.joint)[..., None] * np.eye(S.shape[-1])
    D, size = linear.mirror(vector.transpose(S) @ U) + rotor, _size(I, S) + rotor
    try:
        return U, linear.ldl(D, size), size
    except InvalidValue:
        raise InvalidValue(
            f"joint {at.joint.name!r} ({at.joint.kind}) moves no inertia: the bodies that it "
            "carries have no inertia along its degrees of freedom"
        ) from None


def _size(I: ArticulatedBody, S: Array) -> Array:
    """Return the magnitude of D's diagonal before cancellation, as a diagonal matrix."""
    diagonal = stack([M[..., k, k] for M in (I.A, I.C) for k in range(3)])
    return linear.uncancelled(S, diagonal)[..., None] * np.eye(S.shape[-1])


def _without(I: ArticulatedBody, U: Array, K: Array) -> ArticulatedBody:
    """Return I - U D⁻¹ Uᵀ: the articulated-body inertia transmitted through a free joint."""
    Ua, Ub, Ka, Kb = U[..., :3, :], U[..., 3:, :], K[..., :, :3], K[..., :, 3:]
    return ArticulatedBody(
        linear.mirror(I.A - Ua @ Ka), I.B - Ua @ Kb, linear.mirror(I.C - Ub @ Kb), np.zeros(6)
    )


def _rigid(M: Inertia) -> tuple[Array, Array, Array]:
    mass = np.asarray(M.mass)[..., None, None] * np.eye(3)
    return M.about_origin, vector.skew(M.moment), mass


def inertia_wrench(I: ArticulatedBody, s: Array) -> Array:
    """Return the wrench [f, τ] of the inertia for an acceleration [ω̇, v̇]."""
    omega, v = s[..., :3], s[..., 3:]
    f = vector.apply(vector.transpose(I.B), omega) + vector.apply(I.C, v)
    return concatenate([f, vector.apply(I.A, omega) + vector.apply(I.B, v)])


def to_outer(X: Transform, I: ArticulatedBody) -> ArticulatedBody:
    """Transform an articulated-body inertia and bias force from B's frame to A's.

    The rotated blocks are A', B', C'. Translation, with P = [p]×, leaves C' unchanged and gives B''
    = B' + P C' and A'' = A' - B'' P + P B'ᵀ.
    """
    Rt = vector.transpose(X.R)
    P = vector.skew(X.p)
    A, C = linear.congruence(Rt, I.A), linear.congruence(Rt, I.C)
    B = X.R @ I.B @ Rt
    shifted = B + P @ C
    turned = linear.mirror(A - shifted @ P + P @ vector.transpose(B))
    return ArticulatedBody(turned, shifted, C, screw.to_outer(X, I.p))
