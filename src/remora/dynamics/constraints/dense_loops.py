"""Constrained dynamics with the mass matrix: the dense counterpart of `articulated_loops`.

With M = LᵀDL (CRBA), Y = L⁻ᵀGᵀ and W = D⁻¹: G M⁻¹ Gᵀ = YᵀWY. Mimic joints are supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra import linear, orthogonal, vector
from remora.algebra.array_ops import Array, stack
from remora.algebra.orthogonal import Orthogonal
from remora.dynamics.constraints.contradictions import checked_misfit
from remora.dynamics.constraints.loop_kinematics import (
    Loop,
    constraint_bias,
    constraint_jacobian,
    loops_at,
)
from remora.dynamics.constraints.row_sizes import row_sizes
from remora.dynamics.joint_arrays import LoadedState, with_batch
from remora.dynamics.recursive import recursive_newton_euler
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_of, mass_matrix_size
from remora.dynamics.recursive.outward_pass import Link, moving_links
from remora.model.robot import Robot


class DenseResponse(NamedTuple):
    """The robot's response to the multipliers of the active constraints at a configuration.

    Attributes:
        H: mass matrix, `(..., nv, nv)`.
        G: Jacobian of the constraints, `(..., m, nv)`.
        free: the speeds that are not prescribed.
        factors: of H's block of these speeds, from `linear.ltdl`; None if there are none.
        size: magnitude of that block before cancellation.
        rows: the orthogonalized Y.
    """

    H: Array
    G: Array
    free: list[int]
    factors: tuple[Array, Array] | None
    size: Array
    rows: Orthogonal

    def motion(self, x: Array) -> Array:
        """Return M⁻¹Gᵀλ `(..., nv)` for x = Yλ, zero for prescribed speeds."""
        if self.factors is None:
            return 0.0 * x
        own = stack([x[..., i] * self.rows.w[..., i] for i in self.free])
        found = linear.forward_substitute(self.factors[0], own[..., None])[..., 0]
        return self.spread(found)

    def spread(self, values: Array) -> Array:
        """Return values of the free speeds at their places, zero elsewhere, `(..., nv)`."""
        places = {i: values[..., k] for k, i in enumerate(self.free)}
        return stack([places.get(i, np.zeros(())) for i in range(self.H.shape[-1])])


def response(robot: Robot, q: Array, prescribed: Mapping[int, Array]) -> DenseResponse:
    """Return the robot's response to the active constraints at a configuration."""
    links = moving_links(robot, q, np.zeros(robot.nv))
    H, size = mass_matrix_of(robot, q), mass_matrix_size(robot, q)
    loops, G = loops_at(robot, links), constraint_jacobian(robot, q)
    return response_of(robot, H, size, loops, G, links, prescribed)


def response_of(
    robot: Robot,
    H: Array,
    size: Array,
    loops: list[Loop],
    G: Array,
    links: list[Link],
    prescribed: Mapping[int, Array],
) -> DenseResponse:
    """Return the response with known H, its size before cancellation, and G."""
    held = {i for j in prescribed for i in range(robot.nv)[robot.joints[j].v]}
    free = [i for i in range(robot.nv) if i not in held]
    block, scale = _block(H, free), _block(size, free)
    factors = linear.ltdl(block, scale) if free else None
    weights: list[Array] = [np.zeros(())] * robot.nv
    rows: list[Array] = [np.zeros(G.shape[-2])] * robot.nv
    if factors is not None:
        Y = linear.back_substitute(factors[0], vector.transpose(G)[..., free, :])
        for k, i in enumerate(free):
            rows[i] = Y[..., k, :]
            weights[i] = 1.0 / factors[1][..., k]
    w = stack(weights)
    sizes = row_sizes(robot, loops, [b.X for b in links], [b.S for b in links], w)
    Y = orthogonal.orthogonalize(stack(rows, axis=-2), w, sizes)
    return DenseResponse(H, G, free, factors, scale, Y)


def hybrid(robot: Robot, state: LoadedState) -> tuple[Array, Array, Array]:
    """Return vdot and tau, both `(..., nv)`, and the multipliers `(..., m)`."""
    q, v, tau, wrenches, prescribed = state
    of, batch = response(robot, q, prescribed), state.batch
    bias = recursive_newton_euler.inverse(robot, q, v, 0.0 * v, wrenches)
    parts: list[Array] = [np.zeros(())] * robot.nv
    for j, value in prescribed.items():
        for k, place in enumerate(range(robot.nv)[robot.joints[j].v]):
            parts[place] = with_batch(value, batch, 1)[..., k]
    vdot = with_batch(stack(parts), batch, 1)
    if of.factors is not None:
        rest = tau - bias - vector.apply(of.H, vdot)
        rest = stack([rest[..., i] for i in of.free])[..., None]
        vdot = vdot + of.spread(linear.ltdl_solve(of.factors, rest, of.size)[..., 0])
    b = constraint_bias(robot, q, v) - vector.apply(of.G, vdot)
    x, mu, misfit = orthogonal.minimum_norm(of.rows, b)
    x = checked_misfit(robot, state, x, misfit, b, [vdot])
    vdot = vdot + of.motion(x)
    lam = orthogonal.smallest_multipliers(of.rows.R, of.rows.kept, mu)
    force = vector.apply(of.H, vdot) + bias - vector.apply(vector.transpose(of.G), lam)
    taus = [tau[..., i] if i in of.free else force[..., i] for i in range(robot.nv)]
    return (
        with_batch(vdot, batch, 1),
        with_batch(stack(taus), batch, 1),
        with_batch(lam, batch, 1),
    )


def _block(A: Array, places: list[int]) -> Array:
    return A[..., places, :][..., :, places]
