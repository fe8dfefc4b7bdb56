"""Derivatives of inverse dynamics of closed chains with weights and unactuated joints.

With f the inverse dynamics of the tree, τ, λ and the vector u = [W τ_d, μ] satisfy (see
`constraints.force_sharing`)

    f = τ + Gᵀλ,    τ_u = 0,    G u = 0.

Differentiated, with ∂(Gᵀλ) at fixed λ and ∂(G u) at fixed u,

    δτ + Gᵀδλ = ∂f - ∂(Gᵀλ),    δτ_u = 0,    G_d W δτ_d + G_u δμ = -∂(G u),

the same equations again, with the same factors.
"""

from __future__ import annotations

from remora.algebra.array_ops import Array
from remora.dynamics.constraints.actuation import supported
from remora.dynamics.constraints.force_sharing import force_sharing
from remora.dynamics.derivatives.constrained_derivatives import (
    closed_tree,
    rotor_forces,
    turned_forces,
)
from remora.dynamics.derivatives.loop_changes import jacobian_slopes, placed_loops
from remora.dynamics.derivatives.root_frame import accelerations_of, links_of
from remora.dynamics.derivatives.tree_changes import (
    displacement_changes,
    mass_blocks,
    required_forces,
    responses,
    speed_changes,
)
from remora.dynamics.joint_arrays import with_batch
from remora.model.robot import Robot


def inverse(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None, root: Array,
    idle: list[int],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return ∂τ/∂q, ∂τ/∂v and ∂τ/∂v̇, `(..., nv, nv)` each.

    Args:
        robot: the robot, with active constraints.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
        wrenches: external, `(..., nb, 6)`, or None.
        root: square roots of the weights, `(nv,)`.
        idle: indices of the speeds without actuator.
    """
    of = closed_tree(robot, q, v)
    tree = of.tree
    A = accelerations_of(robot, tree.links, q, v, vdot)
    needed = required_forces(tree, A, wrenches) + rotor_forces(tree, vdot)
    sharing = force_sharing(of.G, root, idle)
    found = sharing.shared(needed[..., None])
    tau = supported(robot, found.tau[..., 0], idle, found.left[..., 0], needed)
    lam = found.lam[..., 0]
    moved = displacement_changes(tree, q, v, vdot, A, of.loads(lam, wrenches))
    by_q = tree.matrix(responses(tree, moved)) - turned_forces(of, lam)
    by_v = tree.matrix(responses(tree, speed_changes(tree)))
    links = links_of(robot, q, sharing.dual(tau))
    slope = jacobian_slopes(robot, of.loops, placed_loops(robot, of.loops, links), links)
    changes = (by_q, -slope), (by_v, None), (tree.matrix(mass_blocks(tree)), None)
    dq, dv, dvdot = (
        with_batch(sharing.shared(*change).tau, tree.batch, trailing=2) for change in changes
    )
    return dq, dv, dvdot
