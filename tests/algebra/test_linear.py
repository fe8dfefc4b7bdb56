"""LDLᵀ and congruence against NumPy, over batches, and their refusals."""

import numpy as np
import pytest

from numeric import assert_close
from remora.algebra import linear
from remora.algebra.array_ops import asarray
from remora.errors import RemoraError


def matrices(rng, n, condition):
    Q, _ = np.linalg.qr(rng.normal(size=(4, n, n)))
    d = np.geomspace(1.0, 1.0 / condition, n)
    return Q @ (d[:, None] * np.swapaxes(Q, -1, -2))


@pytest.mark.parametrize("n", [1, 2, 3, 6, 13, 30])
@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_against_numpy(rng, n, condition):
    A, B = matrices(rng, n, condition), rng.normal(size=(4, n, 3))
    L, d = linear.ldl(A)
    assert_close(L @ (d[..., :, None] * np.swapaxes(L, -1, -2)), A, rtol=1e-14)
    assert_close(np.triu(L, 1), np.zeros_like(L))
    # an error of one ulp in A moves the solution by up to the condition number
    expected = np.linalg.solve(A, B)
    assert_close(linear.solve(A, B), expected, rtol=1e-14 * condition)
    assert_close(linear.inverse(A) @ A, np.broadcast_to(np.eye(n), A.shape), rtol=1e-14 * condition)


def test_congruence(rng):
    A, X = matrices(rng, 6, 10.0), rng.normal(size=(4, 6, 4))
    result = linear.congruence(X, A)
    assert_close(result, np.swapaxes(X, -1, -2) @ A @ X, rtol=1e-14)
    assert np.array_equal(result, np.swapaxes(result, -1, -2))


@pytest.mark.parametrize("A", [np.zeros((3, 3)), np.ones((3, 3)), np.full((2, 2), np.nan)], ids=str)
def test_a_singular_matrix_is_an_error_not_a_nan(A):
    with pytest.raises(RemoraError, match="singular"):
        linear.solve(A, np.eye(len(A)))


def test_symbols_cannot_be_branched_on():
    import casadi

    x = asarray(casadi.SX.sym("x", 3))
    with pytest.raises(Exception, match="truth value"):
        bool(x[0] > 0)
