"""The variational midpoint rule: a step of a Lie group variational integrator.

Each joint's configuration is a Lie group: SE(3), SO(3), or a vector space. From q0 to
q1 = integrate(q0, hw) the discrete Lagrangian is h L(q_m, w), with the midpoint
q_m = integrate(q0, ½hw) and the Lagrangian L(q, v) = ½ vᵀH(q)v - V(q). Its derivatives with
respect to q0 and q1 are the momenta

    p0 = T(-hw)ᵀ (∂L/∂v - ½h D(-½hw)ᵀ g),        g = ∂L/∂q + forces, at q_m, w,
    p1 = T(+hw)ᵀ (∂L/∂v + ½h D(+½hw)ᵀ g),

with T(u) the linear map of `log_rate` and D(u) = T(u)⁻¹ that of `log_velocity`. The first is solved
for w with p0 = H(q0) v0, and v1 = H(q1)⁻¹ p1. The step is symplectic, symmetric and of order two,
and conserves every momentum that L conserves [HLW06, sections VI.6 and VII.5].

Constraints act by impulses at both ends of a step [HLW06, section VII.1.4, RATTLE]: the momentum
after the first, p0 + G(q0)ᵀλ, is that with which q1 satisfies φ(q1) = 0, and the second makes v1
satisfy G(q1) v1 = 0. See `simulation.integrators.variational_step`.

∂L/∂q is the derivative along the joints' speeds at constant v:
d/dε L(integrate(q, εη), v) = ∂L/∂q · η. The equation of motion is
d/dt(Hv) = ad*_v(Hv) + ∂L/∂q + forces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, stack
from remora.algebra.screw import Transform
from remora.dynamics.joint_arrays import LoadedState, batch_shape, checked_arguments, gather
from remora.dynamics.recursive import articulated_body
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_of
from remora.dynamics.recursive.tree_passes import JointContext, Pass, run
from remora.model import joints
from remora.model.robot import Joint, Robot
from remora.model.state import configuration, log_rate, log_velocity, velocity

# The Lagrangian --------------------------------------------------------------------------------


class TwistAndGravity(NamedTuple):
    """A body's twist and minus gravity, passed to its children, `(..., 6)`, body frame."""

    twist: Array
    ground: Array


class LagrangianTerms(NamedTuple):
    """A joint and its body's terms of the Lagrangian.

    Attributes:
        X: transform from the body's frame to its parent's.
        S: the joint's motion subspace, `(..., 6, nv_i)`, body frame.
        bent: derivative of the body's twist by the joint's motion at constant speeds,
            `(..., 6, nv_i)`.
        momentum: the body's momentum [P, L], `(..., 6)`, body frame.
        wrench: sum of its weight and the external wrench, `(..., 6)`, body frame.
    """

    X: Transform
    S: Array
    bent: Array
    momentum: Array
    wrench: Array


class SubtreeMomentum(NamedTuple):
    """Momentum and wrench of the subtree that a joint carries, `(..., 6)`."""

    momentum: Array
    wrench: Array


class Slopes(NamedTuple):
    """A joint's part of ∂L/∂v and of ∂L/∂q with external wrenches included, `(..., nv_i)`."""

    by_v: Array
    by_q: Array


def _outward_step(
    at: JointContext, _: Any, parent: TwistAndGravity | None
) -> tuple[LagrangianTerms, TwistAndGravity]:
    """Outward pass: the body's momentum and weight; passes its twist to the children.

    A motion η of the joint changes the parent's twist ω, in the body's frame, by ω × Sη, and the
    joint's own twist Sv where S depends on q.
    """
    joint, M = at.joint, at.inertia
    X, S = joints.relative_transform(joint, at.q), joints.motion_subspace(joint, at.q)
    v = at.v[..., joint.v]
    ground = screw.to_inner(X, at.ground if parent is None else parent.ground)
    twist, bent = vector.apply(S, v), np.zeros(S.shape[-2:])
    if parent is not None:
        before = screw.to_inner(X, parent.twist)
        twist = twist + before
        bent = vector.transpose(screw.cross(before[..., None, :], vector.transpose(S)))
    along = np.eye(at.v.shape[-1])[joint.v]
    rates = [joints.motion_subspace_rate(joint, at.q, e) for e in along]
    turned = [vector.apply(dS, v) for dS in rates if dS is not None]
    if turned:
        bent = bent + stack(turned, axis=-1)
    weight = -screw.momentum(M, ground)
    wrench = weight if at.wrench is None else weight + at.wrench
    return LagrangianTerms(X, S, bent, screw.momentum(M, twist), wrench), TwistAndGravity(
        twist, ground
    )


def _inward_step(
    at: JointContext, before: tuple[LagrangianTerms], beyond: SubtreeMomentum | None
) -> tuple[Slopes, SubtreeMomentum | None]:
    """Inward pass: the joint's slopes; passes momentum and wrench to the parent."""
    (here,) = before
    P = here.momentum if beyond is None else here.momentum + beyond.momentum
    W = here.wrench if beyond is None else here.wrench + beyond.wrench
    St, bent = vector.transpose(here.S), vector.transpose(here.bent)
    v = at.v[..., at.joint.v]
    rotor = joints.rotor_inertia(at.joint) * v
    by_v = vector.apply(St, dual_quaternion.swap(P)) + rotor
    by_q = vector.apply(bent, dual_quaternion.swap(P)) + vector.apply(St, dual_quaternion.swap(W))
    by_q = by_q - _coadjoint(at.joint, v, rotor)
    if at.is_root:
        return Slopes(by_v, by_q), None
    return Slopes(by_v, by_q), SubtreeMomentum(screw.to_outer(here.X, P), screw.to_outer(here.X, W))


def _coadjoint(joint: Joint, v: Array, p: Array) -> Array:
    """Return ad*_v p `(..., nv_i)`, ad*_v p · η = p · [v, η]: the rate of a p fixed in space."""
    row = joints.kind(joint)
    if row.quaternion is None:
        return np.zeros(row.nv)
    if row.dual is None:
        return vector.cross(p, v)
    return dual_quaternion.swap(screw.cross(dual_quaternion.swap(p), v))


#: The passes: twists outward, momenta and wrenches inward.
PASSES = (Pass(inward=False, step=_outward_step), Pass(inward=True, step=_inward_step))


def lagrangian_slopes(
    robot: Robot, q: ArrayLike, v: ArrayLike, wrenches: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return ∂L/∂v = H v and ∂L/∂q + Σ JᵀW, both `(..., nv)`, in O(n).

    With P̃_i the momentum and W̃_i the weight and external wrench of the subtree of joint i, and ω
    the twist of its parent in body i's frame,

        ∂L/∂v_i = S_iᵀ P̃_iˢ,    ∂L/∂q_i · η = (ω × S_i η + (∂S_i/∂q η) v_i) ∘ P̃_iˢ + S_i η ∘ W̃_iˢ.

    A rotor adds I v_i to ∂L/∂v_i. On a spherical or free joint, `forward_dynamics` has no
    gyroscopic force of the rotor; the workless force -ad*_v(I v) is therefore included in ∂L/∂q.

    Args:
        robot: the robot; gravity and rotor inertias are included.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
    """
    q, v, _, w = checked_arguments(robot, q, v, v, wrenches, "v")
    left = run(robot, PASSES, w, q=q, v=v)[1][-1]
    by_v, by_q = ([slopes[k] for slopes in left] for k in range(2))
    batch = batch_shape(q, v)
    return gather(robot, by_v, batch), gather(robot, by_q, batch)


def velocity_of(robot: Robot, q: ArrayLike, p: ArrayLike) -> Array:
    """Return v = H(q)⁻¹ p `(..., nv)`; in O(n) if there are no mimic joints.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        p: ∂L/∂v, `(..., nv)`; [angular, linear] for a free joint.
    """
    q, p = configuration(robot, q), velocity(robot, p, "p")
    if any(joint.mimic is not None for joint in robot.joints):
        return linear.solve(mass_matrix_of(robot, q), p[..., None])[..., 0]
    weightless = robot.replace(gravity=np.zeros(3))
    return articulated_body.hybrid(weightless, LoadedState(q, np.zeros(robot.nv), p))[0]


# The step --------------------------------------------------------------------------------------


def starting_defect(
    robot: Robot, dq: ArrayLike, p: ArrayLike, p_m: ArrayLike, g: ArrayLike, h: ArrayLike
) -> Array:
    """Return ∂L/∂v - ½h D(-½dq)ᵀ g - D(-dq)ᵀ p, zero if the step begins with the momentum p.

    H(q_m)⁻¹ times this is Newton's correction of w = dq/h, up to terms of order h.

    Args:
        robot: the robot.
        dq: hw, the step, `(..., nv)`.
        p: H v at the start, `(..., nv)`.
        p_m: ∂L/∂v at the midpoint, at w, `(..., nv)`.
        g: ∂L/∂q and all generalized forces in the middle, `(..., nv)`.
        h: its length, `(...)`, s.
    """
    dq, p, p_m, g, half = _arguments(robot, dq, p, p_m, g, h)
    pushed = half * _velocity_transposed(robot, -0.5 * dq, g)
    return p_m - pushed - _velocity_transposed(robot, -dq, p)


def ending_momentum(robot: Robot, dq: ArrayLike, p: ArrayLike, g: ArrayLike, h: ArrayLike) -> Array:
    """Return p1 `(..., nv)` for a step that starts with the momentum p.

    ∂L/∂v is eliminated with the equation for p0,

        p1 = T(dq)ᵀ (D(-dq)ᵀ p + ½h (D(½dq) + D(-½dq))ᵀ g),

    so that conservation of the base's momentum does not depend on how accurately that equation is
    solved.

    Args:
        robot: the robot.
        dq: hw, the step, `(..., nv)`.
        p: H v at the start, `(..., nv)`.
        g: ∂L/∂q and all generalized forces in the middle, `(..., nv)`.
        h: its length, `(...)`, s.
    """
    dq, p, _, g, half = _arguments(robot, dq, p, p, g, h)
    pushed = _velocity_transposed(robot, 0.5 * dq, g) + _velocity_transposed(robot, -0.5 * dq, g)
    return _rate_transposed(robot, dq, _velocity_transposed(robot, -dq, p) + half * pushed)


def _arguments(
    robot: Robot, dq: ArrayLike, p: ArrayLike, p_m: ArrayLike, g: ArrayLike, h: ArrayLike
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the checked arguments, with ½h `(..., 1)` in place of h."""
    named = {"dq": dq, "p": p, "p_m": p_m, "g": g}
    dq, p, p_m, g = (velocity(robot, x, name) for name, x in named.items())
    return dq, p, p_m, g, 0.5 * asarray(h)[..., None]


def _rate_transposed(robot: Robot, dq: Array, p: Array) -> Array:
    """Return T(dq)ᵀ p: the transpose of a cross product changes its sign."""
    return _swapped(robot, log_rate(robot, -dq, _swapped(robot, p)))


def _velocity_transposed(robot: Robot, dq: Array, p: Array) -> Array:
    """Return D(dq)ᵀ p."""
    return _swapped(robot, log_velocity(robot, -dq, _swapped(robot, p)))


def _swapped(robot: Robot, p: Array) -> Array:
    """Return p with the two halves of each free joint's part swapped; its own inverse."""
    own = [j for j in robot.joints if j.mimic is None and joints.kind(j).nv > 0]
    parts = [
        p[..., j.v] if joints.kind(j).dual is None else dual_quaternion.swap(p[..., j.v])
        for j in own
    ]
    return concatenate(parts) if parts else p
