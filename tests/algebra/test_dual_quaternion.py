"""Dual quaternions: VT18's Table 2, Lemmas 1 and 2, poses, exp, log and screw interpolation."""

import casadi
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from numeric import assert_close
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.algebra import quaternion as qt
from remora.algebra.array_ops import asarray

number = st.floats(-100, 100)
duals = arrays(float, 8, elements=number)
units = (
    arrays(float, 4, elements=st.floats(-1, 1))
    .filter(lambda a: np.linalg.norm(a) > 0.1)
    .map(qt.normalize)
)
vectors = arrays(float, 3, elements=number)
poses = st.builds(pose.from_parts, units, vectors)
I8 = np.eye(8)


def size(*arrays_):
    return max(1.0, float(np.prod([np.linalg.norm(a) for a in arrays_])))


@given(duals, duals)
def test_table_2_identities(a, b):
    mul, conj, scale = dq.mul, dq.conjugate, size(a, b)
    assert_close(dq.dot(a, b), 0.5 * (mul(conj(a), b) + mul(conj(b), a)), scale=scale)
    assert_close(dq.cross(a, b), 0.5 * (mul(a, b) - mul(conj(b), conj(a))), scale=scale)
    assert_close(dq.circle(a, b), a @ b, scale=scale)
    assert_close(dq.norm(a), np.linalg.norm(a), scale=scale)
    assert_close(dq.swap(dq.swap(a)), a)
    assert_close(dq.circle(dq.swap(a), dq.swap(b)), dq.circle(a, b), scale=scale)
    assert_close(dq.left(a) @ b, mul(a, b), scale=scale)
    assert_close(dq.right(b) @ a, mul(a, b), scale=scale)
    va, vb = dq.vec(a), dq.vec(b)
    assert_close(dq.skew(va) @ vb, dq.cross(va, vb), scale=scale)
    assert_close(dq.pure(dq.vec6(a)), va)


@given(poses, duals, duals)
def test_lemma_1_cross_product_is_invariant(q, a, b):
    """[VT18, eq. 10], stated there for vector dual quaternions."""
    a, b = dq.vec(a), dq.vec(b)

    def seen(s):
        return dq.mul(dq.mul(dq.conjugate(q), s), q)

    scale = size(a, b) * size(q) ** 4
    assert_close(dq.cross(seen(a), seen(b)), seen(dq.cross(a, b)), scale=scale)


@given(poses)
def test_lemma_2_multiplication_matrices_undo_each_other(q):
    """[VT18, eq. 12]."""
    L, R, c = dq.left, dq.right, dq.conjugate(q)
    scale = size(q) ** 4
    assert_close(L(q) @ R(c) @ L(c) @ R(q), I8, scale=scale)
    assert_close(L(c) @ R(q) @ L(q) @ R(c), I8, scale=scale)


@given(poses, poses)
def test_poses_are_homogeneous_matrices(a, b):
    scale = size(pose.translation(a)) + size(pose.translation(b))
    assert_close(
        pose.to_matrix(dq.mul(a, b)), pose.to_matrix(a) @ pose.to_matrix(b), rtol=1e-13, scale=scale
    )
    assert_close(pose.to_matrix(pose.from_matrix(pose.to_matrix(a))), pose.to_matrix(a), rtol=1e-13)
    assert_close(dq.mul(a, dq.conjugate(a)), dq.identity(), scale=scale)
    assert_close(dq.dot(a, a), dq.identity(), scale=scale)


@given(units, vectors)
def test_both_forms_of_a_pose(r, p):
    """x = r + ε ½ p r = r + ε ½ r pᴮ with p in the outer and pᴮ in the inner frame."""
    inner = qt.rotate(qt.conjugate(r), p)
    x = np.concatenate([r, 0.5 * qt.mul(r, qt.pure(inner))])
    assert_close(pose.from_parts(r, p), x, scale=size(p))
    assert_close(pose.translation(x), p, rtol=1e-13, scale=size(p))
    assert_close(pose.transform_point(x, np.zeros(3)), p, rtol=1e-13, scale=size(p))


@given(duals.filter(lambda a: np.linalg.norm(a[:4]) > 0.1))
def test_normalize_gives_a_pose(a):
    x = dq.normalize(a)
    assert_close(np.linalg.norm(x[:4]), 1.0, rtol=1e-15)
    assert abs(x[:4] @ x[4:]) <= 1e-13 * size(x)


def exact_exp(v, dv):
    """exp of v + ε v' in 60 digits by the matrix exponential of its left multiplication."""
    with mpmath.workdps(60):
        M = mpmath.matrix(dq.left(dq.pure(np.concatenate([v, dv]))).tolist())
        return [
            float(e)
            for e in mpmath.expm(M, method="taylor") * mpmath.matrix(dq.identity().tolist())
        ]


@pytest.mark.parametrize("h", [0.0, 1e-200, 1e-12, 1e-5, 0.099, 0.101, 0.5, 0.7, 0.7072, 1.0, 1.57])
def test_exp_and_log_to_full_precision(h):
    v, dv = h * np.array([2.0, -3.0, 6.0]) / 7.0, np.array([0.3, -0.4, 1.2])
    x = dq.exp(np.concatenate([v, dv]))
    assert_close(x, exact_exp(v, dv), rtol=1e-15)
    assert_close(dq.log(x), np.concatenate([v, dv]), rtol=2e-15)


@pytest.mark.parametrize("h", [0.0, 1e-9, 1e-4, 0.05, 0.11, 0.6, 0.75, 1.4])
def test_derivatives_are_finite_and_right_through_zero(h):
    x = casadi.SX.sym("x", 6)
    y = casadi.vertcat(*dq.log(dq.exp(asarray(x))).tolist())
    J = casadi.Function("J", [x], [casadi.jacobian(y, x)])
    at = np.concatenate([h * np.array([1.0, 2.0, 2.0]) / 3.0, [0.5, -1.0, 2.0]])
    assert_close(np.array(J(at)), np.eye(6), rtol=2e-14)


@pytest.mark.parametrize(
    "r", [[0.0, 1, 0, 0], [0.0, 0.6, 0, 0.8], [-1.0, 0, 0, 0], [1.0, 0, 0, 0]], ids=str
)
def test_log_at_half_turns_and_at_minus_one(r):
    x = pose.from_parts(np.array(r), np.array([1.0, 2.0, 3.0]))
    assert_close(pose.to_matrix(dq.exp(dq.log(x))), pose.to_matrix(x), rtol=2e-15)


@given(poses, poses, st.floats(0.0, 1.0))
def test_sclerp(a, b, t):
    scale = size(a) * size(b) ** 2
    assert_close(dq.sclerp(a, b, 0.0), a, scale=scale)
    assert_close(pose.to_matrix(dq.sclerp(a, b, 1.0)), pose.to_matrix(b), scale=scale)
    halfway = dq.sclerp(a, b, t)
    assert_close(np.linalg.norm(halfway[:4]), 1.0, rtol=1e-14)
    # the way from a to b and the way back meet, seen as orientations and positions
    back = dq.sclerp(b, a, 1.0 - t)
    relative = dq.mul(dq.conjugate(a), b)
    if abs(relative[0]) > 1e-6:  # at half a turn the two ways round are equally short
        assert_close(pose.to_matrix(halfway), pose.to_matrix(back), rtol=1e-11, scale=scale)


def test_sclerp_follows_the_screw():
    """A quarter turn with a shift along the axis: the fraction t turns and shifts by t of each."""
    a = dq.identity()
    turn = qt.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.asarray(np.pi / 2))
    b = pose.from_parts(turn, np.array([0.0, 0.0, 3.0]))
    x = dq.sclerp(a, b, np.array([0.0, 1 / 3, 1.0]))
    assert_close(pose.translation(x), [[0, 0, 0], [0, 0, 1], [0, 0, 3]], rtol=1e-15)
    assert_close(pose.to_axis_angle(x)[1], [0, np.pi / 6, np.pi / 2], rtol=1e-15)
