"""Derivatives of dynamics with active constraints, by implicit differentiation.

    f(q, v, v̇) = τ + Gᵀλ,    α(q, v, v̇) = G v̇ - γ = 0,

with f the inverse dynamics of the tree. Differentiated, with ∂(Gᵀλ) at fixed λ,

    M δv̇ - Gᵀδλ = δτ - (∂f/∂q - ∂(Gᵀλ)/∂q) δq - ∂f/∂v δv,    G δv̇ = -∂α/∂q δq - ∂α/∂v δv.

The factors of M and the orthogonalized rows of G are those of the solution itself, so an equation
that it leaves out as dependent on others is left out here, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import linear, orthogonal, vector
from remora.algebra.array_ops import Array, concatenate, stack, waypoint
from remora.dynamics.constraints import dense_loops
from remora.dynamics.constraints.actuation import force_rows
from remora.dynamics.constraints.dense_loops import DenseResponse
from remora.dynamics.constraints.loop_kinematics import Loop, loops_at
from remora.dynamics.derivatives.loop_changes import (
    PlacedLoop,
    bias_slopes,
    force_slopes,
    jacobian_of,
    jacobian_slopes,
    placed_loops,
    rates_of,
)
from remora.dynamics.derivatives.root_frame import accelerations_of, links_of
from remora.dynamics.derivatives.tree_changes import (
    Blocks,
    Tree,
    displacement_changes,
    mass_blocks,
    mass_matrix_scale,
    required_forces,
    responses,
    speed_changes,
    tree_at,
    without_free_base,
)
from remora.dynamics.joint_arrays import gather, with_batch
from remora.dynamics.recursive.outward_pass import Link, moving_links
from remora.model import joints
from remora.model.robot import Robot


class ClosedTree(NamedTuple):
    """A robot with active constraints at one state.

    Attributes:
        tree: the tree.
        links: its links, each in its own frame.
        loops: the active constraints.
        placed: the same in one frame each; None for gears.
        G: their Jacobian, `(..., m, nv)`.
    """

    tree: Tree
    links: list[Link]
    loops: list[Loop]
    placed: list[PlacedLoop | None]
    G: Array

    def loads(self, lam: Array, wrenches: Array | None) -> Array:
        """Return external wrenches and those of the constraints, `(..., nb, 6)`, body frames."""
        n = len(self.links)
        loads = [np.zeros(6) if wrenches is None else wrenches[..., i, :] for i in range(n)]
        start = 0
        for loop in self.loops:
            own = lam[..., start : start + loop.V.shape[-1]]
            start += loop.V.shape[-1]
            c = loop.constraint
            ends = ((c.child, loop.on_child), (c.parent, loop.on_parent))
            for body, exerted in () if loop.to_joint else ends:
                if body >= 0:
                    loads[body] = loads[body] + vector.apply(exerted(), own)
        return stack(loads, axis=-2)

    def is_outside(self, joint: int) -> bool:
        """Tell whether a joint is part of no loop: it carries both ends of each, or none."""
        return all(
            joint not in side.joints for at in self.placed if at is not None for side in at.sides()
        )


def closed_tree(robot: Robot, q: Array, v: Array) -> ClosedTree:
    """Return a robot with active constraints at the state q, v."""
    tree, links = tree_at(robot, q, v), moving_links(robot, q, v)
    loops = loops_at(robot, links)
    placed = placed_loops(robot, loops, tree.links)
    return ClosedTree(tree, links, loops, placed, jacobian_of(robot, loops, placed, tree.links))


class _Solution(NamedTuple):
    """Accelerations and multipliers at a state, with what their derivatives need.

    Attributes:
        of: the robot.
        response: to the multipliers.
        w: reciprocal pivots of M, `(..., nv)`.
        vdot: `(..., nv)`.
        lam: `(..., m)`.
    """

    of: ClosedTree
    response: DenseResponse
    w: Array
    vdot: Array
    lam: Array

    @property
    def L(self) -> Array:
        """The triangular factor of M = LᵀDL."""
        assert self.response.factors is not None
        return self.response.factors[0]

    def solved(self, forces: Array, rates: Array | None) -> tuple[Array, Array]:
        """Return δv̇ and μ for columns of forces r and rates s: M δv̇ - Gᵀδλ = r, G δv̇ = s."""
        X = linear.back_substitute(self.L, forces)
        X, mu = orthogonal.closest(self.response.rows, X, rates)
        return linear.forward_substitute(self.L, self.w[..., None] * X), mu


def forward(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Array | None
) -> tuple[Array, Array, Array]:
    """Return ∂v̇/∂q, ∂v̇/∂v and ∂v̇/∂τ, `(..., nv, nv)` each."""
    at = _solution(robot, q, v, tau, wrenches, smallest=False)
    (by_q, q_base), (by_v, v_base), (rates_q, rates_v) = _changes(at, q, v, wrenches)
    tree = at.of.tree
    dq = at.solved(-by_q, -rates_q)[0] - tree.matrix(q_base)
    dv = at.solved(-by_v, -rates_v)[0] - tree.matrix(v_base)
    dtau = linear.mirror(at.solved(np.eye(robot.nv), None)[0])
    return dq, dv, with_batch(dtau, tree.batch, trailing=2)


def multipliers(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Array | None
) -> tuple[Array, Array, Array]:
    """Return ∂λ/∂q, ∂λ/∂v and ∂λ/∂τ, `(..., m, nv)` each.

    λ is in the range of G, of the smallest norm. With the projection Π onto the λ of no effect,
    Gᵀλ = 0, and some y with G y = λ, ∂λ = (1 - Π) δλ + Π ∂(G y) [derivative of a pseudoinverse of
    constant rank].
    """
    at = _solution(robot, q, v, tau, wrenches, smallest=True)
    (by_q, _), (by_v, _), (rates_q, rates_v) = _changes(at, q, v, wrenches)
    _, R, _, kept, _ = at.response.rows
    y = at.response.motion(orthogonal.minimum_norm(at.response.rows, at.lam)[0])
    links = links_of(robot, q, y)
    placed = placed_loops(robot, at.of.loops, links)
    turned = jacobian_slopes(robot, at.of.loops, placed, links)
    found: list[Array] = []
    for forces, rates in ((-by_q, -rates_q), (-by_v, -rates_v), (np.eye(robot.nv), None)):
        basic = orthogonal.basic_multipliers(R, kept, at.solved(forces, rates)[1])
        found.append(basic - orthogonal.null_part(R, kept, basic))
    found[0] = found[0] + orthogonal.null_part(R, kept, turned)
    batch = at.of.tree.batch
    dq, dv, dtau = (with_batch(part, batch, trailing=2) for part in found)
    return dq, dv, dtau


def inverse(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None
) -> tuple[Array, Array, Array]:
    """Return ∂τ/∂q, ∂τ/∂v and ∂τ/∂v̇, `(..., nv, nv)` each, of the smallest forces.

    τ = f - Gᵀκ with G τ = 0: δτ = δf - ∂(Gᵀκ) - Gᵀδκ, G δτ = -∂(G τ) at fixed τ.
    """
    of = closed_tree(robot, q, v)
    tree = of.tree
    A = accelerations_of(robot, tree.links, q, v, vdot)
    H = tree.matrix(mass_blocks(tree))
    rows = force_rows(of.G)
    needed = required_forces(tree, A, wrenches) + rotor_forces(tree, vdot)
    tau, mu = orthogonal.closest(rows, needed[..., None])
    kappa = -orthogonal.basic_multipliers(rows.R, rows.kept, mu)[..., 0]
    moved = displacement_changes(tree, q, v, vdot, A, of.loads(kappa, wrenches))
    by_q = tree.matrix(responses(tree, moved)) - turned_forces(of, kappa)
    by_v = tree.matrix(responses(tree, speed_changes(tree)))
    links = links_of(robot, q, tau[..., 0])
    placed = placed_loops(robot, of.loops, links)
    slope = jacobian_slopes(robot, of.loops, placed, links)
    dq = orthogonal.closest(rows, by_q, -slope)[0]
    dv, dvdot = (orthogonal.closest(rows, part)[0] for part in (by_v, H))
    return dq, dv, dvdot


def _solution(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Array | None, smallest: bool
) -> _Solution:
    """Return v̇ and λ: of the smallest norm, or zero for equations that are left out."""
    of = closed_tree(robot, q, v)
    tree = of.tree
    H, size = tree.matrix(mass_blocks(tree)), mass_matrix_scale(tree)
    response = dense_loops.response_of(robot, H, size, of.loops, of.G, of.links, {})
    assert response.factors is not None
    w = linear.reciprocal_pivots(response.factors[1], size)
    at_rest = accelerations_of(robot, tree.links, q, v, 0.0 * v)
    forces = tau - required_forces(tree, at_rest, wrenches)
    bias = -rates_of(robot, of.loops, of.placed, at_rest, 0.0 * v)
    at = _Solution(of, response, w, v, v)
    vdot, mu = at.solved(forces[..., None], bias[..., None])
    lam = orthogonal.basic_multipliers(response.rows.R, response.rows.kept, mu)
    if smallest:
        lam = lam - orthogonal.null_part(response.rows.R, response.rows.kept, lam)
    found = waypoint(concatenate([vdot[..., 0], lam[..., 0]]))
    return at._replace(vdot=found[..., : robot.nv], lam=found[..., robot.nv :])


def _changes(
    at: _Solution, q: Array, v: Array, wrenches: Array | None
) -> tuple[tuple[Array, Blocks], tuple[Array, Blocks], tuple[Array, Array]]:
    """Return the changes of f - Gᵀλ by q and v, and those of α.

    With both, the part that a free base takes up alone, see `without_free_base`.
    """
    of, tree = at.of, at.of.tree
    robot = tree.robot
    A = accelerations_of(robot, tree.links, q, v, at.vdot)
    moved = displacement_changes(tree, q, v, at.vdot, A, of.loads(at.lam, wrenches))
    sped = speed_changes(tree)
    rates = bias_slopes(robot, of.loops, of.placed, tree.links, A, moved)
    q_base: Blocks = {}
    v_base: Blocks = {}
    if of.is_outside(0):
        moved, q_base = without_free_base(moved)
        sped, v_base = without_free_base(sped)
    by_q = tree.matrix(responses(tree, moved)) - turned_forces(of, at.lam)
    return (by_q, q_base), (tree.matrix(responses(tree, sped)), v_base), rates


def turned_forces(of: ClosedTree, lam: Array) -> Array:
    """Return the part of ∂(Gᵀλ)/∂q in which the constraints' wrenches turn, `(..., nv, nv)`."""
    tree = of.tree
    return tree.matrix(force_slopes(tree.robot, of.placed, tree.links, lam))


def rotor_forces(tree: Tree, vdot: Array) -> Array:
    """Return the forces that accelerate the rotors, `(..., nv)`."""
    robot = tree.robot
    parts = [joints.rotor_inertia(joint) * vdot[..., joint.v] for joint in robot.joints]
    return gather(robot, parts, tree.batch)
