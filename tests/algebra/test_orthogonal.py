"""Factors of dependent and nearly dependent columns: orthogonalized, and from their products."""

import numpy as np
import pytest

from numeric import assert_close
from remora.algebra import orthogonal

SIZES = {"orthogonal": 8, "products": orthogonal.MANY_COLUMNS + 4}


def columns(m, dependent=(), near=None, seed=0):
    """Return Y, w and sizes of m random columns; some equal to the sum of the first two."""
    rng = np.random.default_rng(seed)
    Y, w = rng.normal(size=(m + 5, m)), rng.uniform(0.5, 2.0, m + 5)
    for k in dependent:
        Y[:, k] = Y[:, 0] + Y[:, 1]
    if near is not None:
        Y[:, -1] = Y[:, 0] + near * Y[:, -1]
    return Y, w, np.einsum("nm,n,nm->m", Y, w, Y)


@pytest.mark.parametrize("kind", SIZES)
def test_the_smallest_solution(kind):
    Y, w, size = columns(SIZES[kind], dependent=(3, 6))
    factors = orthogonal.factorize(Y, w, size)
    assert isinstance(factors, orthogonal.SemiNormal) == (kind == "products")
    assert list(np.flatnonzero(factors.kept == 0.0)) == [3, 6]
    b = Y.T @ (w * np.random.default_rng(1).normal(size=w.size))
    x, mu, misfit = orthogonal.minimum_norm(factors, b)
    assert_close(Y.T @ (w * x), b, rtol=1e-13)
    assert np.max(np.abs(misfit)) < 1e-12
    lam = orthogonal.smallest_multipliers(factors.R, factors.kept, mu)
    assert_close(Y @ lam, x, rtol=1e-12)
    root = np.sqrt(w)[:, None]
    expected = np.linalg.pinv(root * Y, rcond=1e-10) @ (root[:, 0] * x)
    assert_close(lam, expected, rtol=1e-11)  # of the smallest norm
    assert np.max(np.abs(orthogonal.minimum_norm(factors, b + np.eye(b.size)[6])[2])) > 0.5


@pytest.mark.parametrize("near", [1e-2, 1e-4])
def test_products_are_corrected(near):
    """Nearly dependent columns: the error grows with the condition, not with its square."""
    m = SIZES["products"]
    Y, w, size = columns(m, near=near)
    b = Y.T @ (w * np.random.default_rng(1).normal(size=w.size))
    exact = orthogonal.minimum_norm(orthogonal.orthogonalize(Y, w, size), b)[0]
    found = orthogonal.minimum_norm(orthogonal.factorize(Y, w, size), b)[0]
    assert_close(found, exact, rtol=1e-14 / near)


def test_closest():
    Y, w, size = columns(6, dependent=(4,))
    factors = orthogonal.orthogonalize(Y, w, size)
    rng = np.random.default_rng(2)
    X, B = rng.normal(size=(w.size, 3)), Y.T @ (w[:, None] * rng.normal(size=(w.size, 3)))
    found, mu = orthogonal.closest(factors, X, B)
    assert_close(Y.T @ (w[:, None] * found), B, rtol=1e-12)
    change = Y @ orthogonal.basic_multipliers(factors.R, factors.kept, mu)
    assert_close(found - X, change, rtol=1e-12)
    N = orthogonal.null_space(factors.R, factors.kept)
    assert np.max(np.abs(Y @ N)) < 1e-12
    assert np.linalg.matrix_rank(N) == 1
