"""Singular values by rotations, against LAPACK, on matrices of every shape and rank."""

import numpy as np
import pytest

from numeric import assert_close
from remora.algebra.singular_values import left_svd, singular_values, volume


def matrices(k, n):
    rng = np.random.default_rng(10 * k + n)
    A = rng.normal(size=(40, k, n))
    A[:10, 0] *= 1e-9
    A[10:15, -1] = A[10:15, 0]
    A[15] = 0.0
    A[16:20] *= 1e8
    return A


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_it_agrees_with_lapack(k, n):
    A = matrices(k, n)
    U, sigma = left_svd(A)
    size = np.abs(A).max(axis=(1, 2))[:, None] + 1e-300
    expected = np.zeros((len(A), k))
    expected[:, : min(k, n)] = np.linalg.svd(A, compute_uv=False)
    assert_close(sigma / size, expected / size, 1e-14)
    assert np.all(np.diff(sigma, axis=-1) <= 0.0)
    assert_close(np.swapaxes(U, -1, -2) @ U, np.broadcast_to(np.eye(k), U.shape), 1e-14)
    B = U * sigma[..., None, :] / size[..., None]
    A = A / size[..., None]
    assert_close(B @ np.swapaxes(B, -1, -2), A @ np.swapaxes(A, -1, -2), 1e-13)
    assert_close(volume(A), np.prod(expected / size, axis=-1), 1e-12)


def test_small_values_are_precise_relative_to_themselves():
    rng = np.random.default_rng(0)
    A = np.diag([1.0, 1e-6, 1e-12]) @ rng.normal(size=(50, 3, 3))
    expected = np.abs(np.linalg.det(np.diag([1.0, 1e6, 1e12]) @ A)) * 1e-18
    assert_close(np.prod(singular_values(A), axis=-1) / expected, np.ones(50), 1e-13)
    assert_close(volume(A) / expected, np.ones(50), 1e-13)


def test_no_rows_have_no_values():
    U, sigma = left_svd(np.zeros((2, 0, 3)))
    assert U.shape == (2, 0, 0)
    assert sigma.shape == (2, 0)
