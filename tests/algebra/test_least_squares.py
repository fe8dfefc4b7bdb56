"""Damped least squares and adjugates against NumPy."""

import numpy as np
import pytest

import remora as rm
from remora.algebra.adjugate import LARGEST, adjugate
from remora.algebra.least_squares import damped_inverse, projected


@pytest.mark.parametrize("shape", [(2, 5), (4, 4), (5, 2)])
def test_the_damped_inverse_minimizes_what_it_states(shape, rng):
    A, b = rng.normal(size=shape), rng.normal(size=shape[0])
    R = rng.normal(size=(shape[1], shape[1]))
    W = R @ R.T + np.eye(shape[1])
    rounding = 1e-13 * np.linalg.cond(A) ** 2  # of the square A Aᵀ
    assert np.abs(damped_inverse(A) - np.linalg.pinv(A)).max() < rounding
    x = damped_inverse(A, 0.3, W) @ b
    # the gradient of ‖b - A x‖² + λ² xᵀW x
    assert np.abs(A.T @ (A @ x - b) + 0.09 * W @ x).max() < 1e-12
    bounded = damped_inverse(A, 0.3) @ b
    assert np.linalg.norm(bounded) <= np.linalg.norm(b) / 0.6


def test_projection_onto_the_null_space(rng):
    A, x = rng.normal(size=(3, 6)), rng.normal(size=6)
    left = projected(A, damped_inverse(A), x)
    assert np.abs(A @ left).max() < 1e-12
    assert np.abs(projected(A, damped_inverse(A), left) - left).max() < 1e-12


def test_a_matrix_without_full_rank_is_refused_without_damping():
    A = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    with pytest.raises(rm.errors.SingularMatrix):
        damped_inverse(A)
    assert np.all(np.isfinite(damped_inverse(A, 1e-3)))


@pytest.mark.parametrize("n", range(1, 8))
def test_adjugate_and_determinant(n, rng):
    A = rng.normal(size=(3, n, n))
    adj, det = adjugate(A)
    assert np.abs(det - np.linalg.det(A)).max() < 1e-12 * max(1.0, np.abs(det).max())
    assert np.abs(A @ adj - det[:, None, None] * np.eye(n)).max() < 1e-12 * np.abs(adj).max() * n


def test_the_adjugate_of_a_singular_matrix_exists():
    A = np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 2.0]) + np.outer([0, 1, 0], [0, 1, 1])
    adj, det = adjugate(A)
    assert abs(det) < 1e-14
    assert np.abs(adj).max() > 0.1
    assert np.abs(A @ adj).max() < 1e-13


def test_adjugates_of_other_shapes_are_refused():
    for shape in ((2, 3), (LARGEST + 1, LARGEST + 1)):
        with pytest.raises(rm.errors.ShapeError, match="square matrix of at most 10 rows"):
            adjugate(np.zeros(shape))
