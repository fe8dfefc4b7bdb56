"""Constrained dynamics in O(n): the articulated-body algorithm with multipliers of the constraints.

    M v̇ + h = τ + Gᵀλ,    G v̇ = γ.

The wrenches F of unit multipliers are propagated inward through the articulated bodies, from the
bodies that the constraint connects to the root. With y_j = S_jᵀF_jˢ the force on joint j,

    G M⁻¹ Gᵀ = Σ_j y_jᵀ D_j⁻¹ y_j = YᵀWY,    y_j = L_j Y_j,    D_j = L_j W_j⁻¹ L_jᵀ,

and Y is factorized, see `algebra.orthogonal`. Of the reactions of dependent constraints those
of the smallest norm are taken; the accelerations do not depend on this choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import linear, orthogonal, screw, vector
from remora.algebra.array_ops import Array, concatenate, stack
from remora.algebra.orthogonal import Orthogonal, SemiNormal
from remora.dynamics.constraints.contradictions import checked_misfit
from remora.dynamics.constraints.loop_kinematics import Loop, loops_at
from remora.dynamics.constraints.row_sizes import row_sizes
from remora.dynamics.joint_arrays import LoadedState, gather, with_batch
from remora.dynamics.recursive.articulated_body import (
    AcceleratedBody,
    ArticulatedBody,
    ForceDriven,
    MotionPrescribed,
    acceleration_step,
    articulated_inertia,
    held_force,
)
from remora.dynamics.recursive.composite_rigid_body import paired
from remora.dynamics.recursive.outward_pass import MovingBody, moving
from remora.dynamics.recursive.tree_passes import JointContext, Pass, added, run_at
from remora.dynamics.refusals import refuse_mimic_joints
from remora.model import joints
from remora.model.robot import Robot

Wrenches = dict[int, Array]
"""By the index of an active constraint: wrenches of its unit multipliers, `(..., 6, m_c)`."""


class LoopResponse(NamedTuple):
    """The tree's response to the multipliers of the active constraints at a state.

    Attributes:
        sites: the joints with their arguments.
        bodies: motion of all bodies.
        driven: the articulated-body recursion at every joint.
        factors: LDLᵀ factors of D_j, None for joints that are rigid.
        loops: the active constraints.
        F: at every body, the wrenches that reach it.
        rows: the factors of Y.
    """

    sites: list[JointContext]
    bodies: list[MovingBody]
    driven: list[ForceDriven | MotionPrescribed]
    factors: list[tuple[Array, Array] | None]
    loops: list[Loop]
    F: list[Wrenches]
    rows: Orthogonal | SemiNormal

    def accelerations(self) -> tuple[list[AcceleratedBody], list[Array]]:
        """Return the accelerations of all joints and bodies without the constraints' forces."""
        left: list[AcceleratedBody] = []
        a: list[Array] = []
        for at, here, by in zip(self.sites, self.bodies, self.driven, strict=True):
            before = None if at.is_root else a[at.joint.parent]
            found, own = acceleration_step(at, (here, by), before)
            left.append(found)
            a.append(own)
        return left, a

    def motion(self, x: Array) -> tuple[list[Array], list[Array]]:
        """Return M⁻¹Gᵀλ of all joints, and the motion of all bodies, for x = Yλ."""
        moved: list[Array] = []
        dv: list[Array] = []
        for i, at in enumerate(self.sites):
            here, by, factors = self.bodies[i], self.driven[i], self.factors[i]
            carried = np.zeros(6)
            if not at.is_root:
                carried = screw.to_inner(here.X, moved[at.joint.parent])
            own = np.zeros(here.S.shape[-1])
            if factors is not None and isinstance(by, ForceDriven):
                own = x[..., at.joint.v] * self.rows.w[..., at.joint.v]
                own = linear.back_substitute(factors[0], own[..., None])[..., 0]
                own = own if by.K is None else own - vector.apply(by.K, carried)
            dv.append(own)
            moved.append(carried + vector.apply(here.S, own))
        return dv, moved


def response(robot: Robot, state: LoadedState) -> LoopResponse:
    """Return the tree's response to the active constraints at a state."""
    refuse_mimic_joints(robot, "articulated")
    sites, (bodies,) = run_at(robot, _TWISTS, state)
    loops = loops_at(robot, bodies)
    F, y = _applied(robot, loops)
    driven: list[ForceDriven | MotionPrescribed] = []
    factors: list[tuple[Array, Array] | None] = []
    beyond: dict[int, ArticulatedBody] = {}
    for i in reversed(range(len(sites))):
        at, here, outer = sites[i], bodies[i], sites[i].joint.parent
        by, felt, D = articulated_inertia(at, here, beyond.get(i))
        driven.insert(0, by)
        factors.insert(0, D)
        if felt is not None:
            beyond[outer] = added(beyond.get(outer), felt)
        y[i] = {} if D is None else _worked(here, F[i], y[i])
        if not at.is_root:
            for c, wrench in _transmitted(at, here, by, F[i], y[i]).items():
                _add(F[outer], c, wrench)
    Y, w = _assembled(robot, loops, y, factors)
    size = row_sizes(robot, loops, [b.X for b in bodies], [b.S for b in bodies], w)
    rows = orthogonal.factorize(Y, w, size)
    return LoopResponse(sites, bodies, driven, factors, loops, F, rows)


def hybrid(robot: Robot, state: LoadedState) -> tuple[Array, Array, Array]:
    """Return vdot and tau, both `(..., nv)`, and the multipliers `(..., m)`."""
    of = response(robot, state)
    left, a = of.accelerations()
    ground = of.sites[0].ground
    vdots = [part.vdot for part in left]
    b = -concatenate([loop.rate(a, ground, vdots) for loop in of.loops])
    x, mu, misfit = orthogonal.minimum_norm(of.rows, b)
    x = checked_misfit(robot, state, x, misfit, b, vdots)
    dv, moved = of.motion(x)
    lam = orthogonal.smallest_multipliers(of.rows.R, of.rows.kept, mu)
    taus = [
        part.tau if isinstance(by, ForceDriven) else _held(of, i, by, a[i] + moved[i], lam)
        for i, (part, by) in enumerate(zip(left, of.driven, strict=True))
    ]
    batch = state.batch
    found = [rate + change for rate, change in zip(vdots, dv, strict=True)]
    return gather(robot, found, batch), gather(robot, taus, batch), with_batch(lam, batch, 1)


_TWISTS = (Pass(inward=False, step=moving),)


def _applied(robot: Robot, loops: list[Loop]) -> tuple[list[Wrenches], list[Wrenches]]:
    """Return the wrenches that unit multipliers exert on every body, and forces on joints."""
    F: list[Wrenches] = [{} for _ in robot.bodies]
    y: list[Wrenches] = [{} for _ in robot.bodies]
    for c, loop in enumerate(loops):
        for j, force in loop.to_joint.items():
            y[j][c] = force[..., None]
        if not loop.to_joint and loop.constraint.child >= 0:
            _add(F[loop.constraint.child], c, loop.on_child())
        if not loop.to_joint and loop.constraint.parent >= 0:
            _add(F[loop.constraint.parent], c, loop.on_parent())
    return F, y


def _add(total: Wrenches, c: int, wrench: Array) -> None:
    total[c] = total[c] + wrench if c in total else wrench


def _worked(here: MovingBody, F: Wrenches, direct: Wrenches) -> Wrenches:
    """Return y_j = S_jᵀF_jˢ `(..., nv_j, m_c)`, with the forces that act on the joint directly."""
    y = dict(direct)
    for c, wrench in F.items():
        _add(y, c, paired(here.S, wrench))
    return y


def _transmitted(
    at: JointContext,
    here: MovingBody,
    by: ForceDriven | MotionPrescribed,
    F: Wrenches,
    y: Wrenches,
) -> Wrenches:
    """Return what reaches the parent, in its frame: F - U D⁻¹ y, all of F through a rigid joint.

    A joint with six degrees of freedom that are all driven transmits nothing, unless it has rotors,
    which resist a motion relative to the parent.
    """
    if isinstance(by, ForceDriven) and here.S.shape[-1] == 6 and not joints.has_rotor(at.joint):
        return {}
    passed = dict(F)
    if isinstance(by, ForceDriven) and by.K is not None:
        for c, force in y.items():
            pushed = vector.transpose(by.K) @ force  # [τ, f]
            _add(passed, c, -concatenate([pushed[..., 3:, :], pushed[..., :3, :]], trailing=2))
    return {c: screw.columns_to_outer(here.X, wrench) for c, wrench in passed.items()}


def _assembled(
    robot: Robot,
    loops: list[Loop],
    y: list[Wrenches],
    factors: list[tuple[Array, Array] | None],
) -> tuple[Array, Array]:
    """Return Y `(..., nv, m)` and the weights w `(..., nv)`, zero for rigid joints."""
    rows: list[Array] = []
    weights: list[Array] = []
    for joint, forces, D in zip(robot.joints, y, factors, strict=True):
        for k in range(joint.v.stop - joint.v.start):
            if D is None:
                rows.append(np.zeros(sum(loop.V.shape[-1] for loop in loops)))
                weights.append(np.zeros(1))
                continue
            blocks = [
                linear.forward_substitute(D[0], forces[c])[..., k, :]
                if c in forces
                else np.zeros(loop.V.shape[-1])
                for c, loop in enumerate(loops)
            ]
            rows.append(concatenate(blocks))
            weights.append(1.0 / D[1][..., k : k + 1])
    return stack(rows, axis=-2), concatenate(weights)


def _held(of: LoopResponse, i: int, by: MotionPrescribed, a: Array, lam: Array) -> Array:
    """Return the force of a joint with prescribed acceleration, `(..., nv_i)`."""
    start = np.cumsum([0, *(loop.V.shape[-1] for loop in of.loops)])
    felt = np.zeros(6)
    for c, wrench in of.F[i].items():
        felt = felt + vector.apply(wrench, lam[..., start[c] : start[c + 1]])
    force = held_force(of.sites[i], of.bodies[i], by, a, felt)
    for c, loop in enumerate(of.loops):
        if i in loop.to_joint:
            force = force - loop.to_joint[i] * lam[..., start[c] : start[c + 1]]
    return force
