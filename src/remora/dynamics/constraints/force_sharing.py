"""How the forces that a motion of a closed chain needs are shared among its actuators.

Given f = τ + Gᵀλ, of all τ that vanish at the unactuated joints (index u; the others d) the one of
smallest Σ w_i τ_i² is wanted:

    τ_d = f_d - G_dᵀλ,    0 = f_u - G_uᵀλ,    G_d W τ_d + G_u μ = 0.

With a solution λ₀ of the second equation and the projector Π onto the λ with G_uᵀλ = 0, the square
root W½ of the weights and E = W½ G_dᵀ Π, the third one is Eᵀ W½ τ_d = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import orthogonal, vector
from remora.algebra.array_ops import Array, stack
from remora.algebra.orthogonal import Orthogonal


class SharedForces(NamedTuple):
    """Forces of the actuators for columns of needed forces.

    Attributes:
        tau: `(..., nv, k)`, zero at unactuated joints.
        left: what of the needed forces unactuated joints would have to provide, `(..., u, k)`.
        lam: multipliers, `(..., m, k)`.
    """

    tau: Array
    left: Array
    lam: Array


class ForceSharing(NamedTuple):
    """The equations of a closed chain at a configuration, factorized.

    Attributes:
        G: Jacobian of the constraints, `(..., m, nv)`.
        driven: indices of the speeds with an actuator.
        idle: indices of the others.
        root: W½ of the driven ones, `(..., d)`.
        passive: the factors of G_u; None if all joints are actuated.
        projector: Π, `(..., m, m)`.
        loads: the factors of E.
    """

    G: Array
    driven: list[int]
    idle: list[int]
    root: Array
    passive: Orthogonal | None
    projector: Array
    loads: Orthogonal

    def shared(self, needed: Array, turned: Array | None = None) -> SharedForces:
        """Return the smallest forces.

        Args:
            needed: f, columns `(..., nv, k)`.
            turned: what G_d W τ_d + G_u μ is to be, columns `(..., m, k)`; zero by default.
        """
        m: int = self.G.shape[-2]
        Gt = vector.transpose(self.G)
        lam = np.zeros((m, needed.shape[-1]))
        left = np.zeros((0, needed.shape[-1]))
        if self.passive is not None:
            wanted = needed[..., self.idle, :]
            lam, _ = orthogonal.closest(self.passive, lam, wanted)
            left = wanted - Gt[..., self.idle, :] @ lam
        rest = (needed - Gt @ lam)[..., self.driven, :] * self.root[..., None]
        wanted = None if turned is None else self.projector @ turned
        rest, mu = orthogonal.closest(self.loads, rest, wanted)
        inner = orthogonal.basic_multipliers(self.loads.R, self.loads.kept, mu)
        places = {i: rest[..., k, :] / self.root[..., k, None] for k, i in enumerate(self.driven)}
        nothing = 0.0 * needed[..., 0, :]
        tau = stack([places.get(i, nothing) for i in range(needed.shape[-2])], axis=-2)
        return SharedForces(tau, left, lam - self.projector @ inner)

    def dual(self, tau: Array) -> Array:
        """Return [W τ_d, μ] at their places, `(..., nv)`: G times it is zero."""
        weighted = stack([tau[..., i] for i in self.driven]) * self.root * self.root
        places = {i: weighted[..., k] for k, i in enumerate(self.driven)}
        if self.passive is not None:
            rows = self.passive
            rest = vector.apply(self.G[..., self.driven], weighted)[..., None]
            _, along = orthogonal.closest(rows, rest)  # -(the part along the columns of G_u)
            mu = orthogonal.basic_multipliers(rows.R, rows.kept, along)[..., 0]
            places |= {i: mu[..., k] for k, i in enumerate(self.idle)}
        return stack([places[i] for i in range(tau.shape[-1])])


def force_sharing(G: Array, root: Array, idle: list[int]) -> ForceSharing:
    """Return the factorized equations.

    Args:
        G: Jacobian of the constraints, `(..., m, nv)`.
        root: square roots of the weights, `(..., nv)`.
        idle: indices of the speeds without actuator.
    """
    m: int = G.shape[-2]
    driven = [i for i in range(root.shape[-1]) if i not in idle]
    size = np.sum(np.sum(G * G, axis=-1), axis=-1, keepdims=True)
    passive, projector = None, np.eye(m)
    if idle:
        passive = orthogonal.orthogonalize(G[..., :, idle], np.ones(m), _repeated(size, len(idle)))
        along = passive.Q * passive.reciprocal[..., None, :]
        projector = projector - along @ vector.transpose(passive.Q)
    own = stack([root[..., i] for i in driven]) if driven else np.zeros(0)
    E = (vector.transpose(G) @ projector)[..., driven, :] * own[..., None]
    weighted = G[..., driven] * own[..., None, :]
    size = np.sum(np.sum(weighted * weighted, axis=-1), axis=-1, keepdims=True)
    loads = orthogonal.orthogonalize(E, np.ones(len(driven)), _repeated(size, m))
    return ForceSharing(G, driven, idle, own, passive, projector, loads)


def _repeated(x: Array, count: int) -> Array:
    return np.broadcast_to(x, (*x.shape[:-1], count))
