"""The pseudo-inertia of a body: a matrix that is positive definite if a body can have its numbers.

With π = [m, m c, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] about the frame's origin,
J = [½ tr(I) 1 - I, m c; m cᵀ, m] `(4, 4)` is the second moment of the mass distribution [WSK18].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array

_linalg: Any = np.linalg
#: Places of Ixx, Ixy, Ixz, Iyy, Iyz, Izz in a 3 x 3 matrix.
_UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def pseudo_inertia(parameters: Array) -> Array:
    """Return J `(..., 4, 4)` of the parameters π `(..., 10)`; linear in them."""
    p: Array = np.asarray(parameters, dtype=float)
    inertia = np.zeros((*p.shape[:-1], 3, 3))
    for k, (i, j) in enumerate(_UPPER):
        inertia[..., i, j] = inertia[..., j, i] = p[..., 4 + k]
    trace = np.trace(inertia, axis1=-2, axis2=-1)[..., None, None]
    J = np.zeros((*p.shape[:-1], 4, 4))
    J[..., :3, :3] = 0.5 * trace * np.eye(3) - inertia
    J[..., :3, 3] = J[..., 3, :3] = p[..., 1:4]
    J[..., 3, 3] = p[..., 0]
    return J


def parameters_of(J: Array) -> Array:
    """Return the parameters π `(..., 10)` of a pseudo-inertia; the inverse of `pseudo_inertia`."""
    second = J[..., :3, :3]
    inertia = np.trace(second, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - second
    upper = [inertia[..., i, j] for i, j in _UPPER]
    return np.concatenate([J[..., 3:, 3], J[..., :3, 3], np.stack(upper, axis=-1)], axis=-1)


def moved(parameters: Array, placement: Array) -> Array:
    """Return parameters about another frame, in which the frame of π has the pose `placement`."""
    T = pose.to_matrix(placement)
    return parameters_of(T @ pseudo_inertia(parameters) @ np.swapaxes(T, -1, -2))


def move_matrix(placement: Array) -> Array:
    """Return the matrix `(10, 10)` of `moved`."""
    return moved(np.eye(10), placement).T


def is_consistent(parameters: Array, tolerance: float = 0.0) -> bool:
    """Tell whether a body can have them: no eigenvalue of J is below -tolerance · tr J."""
    values = _linalg.eigvalsh(pseudo_inertia(parameters))
    return bool(values[0] >= -tolerance * max(float(values.sum()), 0.0) and values[-1] > 0.0)


def nearest_consistent(parameters: Array, normal: Array, iterations: int = 400) -> Array:
    """Return the consistent parameters with the least (π - π₀)ᵀ N (π - π₀).

    J = L Lᵀ with L lower triangular and a positive diagonal, so every iterate is consistent;
    damped Gauss-Newton steps (Levenberg-Marquardt). Minima on the boundary, where the body is flat
    or a point, are approached from inside.

    Args:
        parameters: π₀, `(10,)`.
        normal: N, `(10, 10)`, positive semi-definite.
        iterations: number of steps at most.
    """
    values, vectors = _linalg.eigh(pseudo_inertia(parameters))
    floor = 1e-6 * max(float(np.abs(values).max()), 1e-300)
    L: Any = _linalg.cholesky((vectors * np.maximum(values, floor)) @ vectors.T)
    root: Any = _linalg.cholesky(normal + 1e-14 * np.trace(normal) * np.eye(10)).T
    rows, columns = np.tril_indices(4)
    error: Any = root @ (parameters_of(L @ L.T) - parameters)
    damping = 1e-3
    for _ in range(iterations):
        slopes: list[Array] = []
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
            step = np.zeros((4, 4))
            step[i, j] = L[i, i] if i == j else 1.0  # the diagonal by its logarithm
            change: Any = step @ L.T
            slopes.append(root @ parameters_of(change + change.T))
        A: Any = np.stack(slopes, axis=-1)
        H: Any = A.T @ A
        try:
            delta: Any = -_linalg.solve(H + damping * np.diag(np.diag(H) + 1e-300), A.T @ error)
        except np.linalg.LinAlgError:
            break
        trial = L.copy()
        for (i, j), d in zip(zip(rows, columns, strict=True), delta, strict=True):
            trial[i, j] = trial[i, j] * np.exp(np.clip(d, -1.0, 1.0)) if i == j else L[i, j] + d
        found: Any = root @ (parameters_of(trial @ trial.T) - parameters)
        if found @ found < error @ error:
            gain = float(1.0 - (found @ found) / (error @ error))
            L, error, damping = trial, found, max(damping / 5.0, 1e-12)
            if gain < 1e-14:
                break
        else:
            damping *= 5.0
            if damping > 1e12:
                break
    return parameters_of(L @ L.T)
