"""Quaternions: VT18's Table 1, rotation formats, and the corners where formulas break."""

import casadi
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from numeric import assert_close, traced
from remora.algebra import quaternion as qt
from remora.algebra import vector

number = st.floats(-1e3, 1e3)
quaternions = arrays(float, 4, elements=number)
vectors = arrays(float, 3, elements=number)
units = (
    arrays(float, 4, elements=st.floats(-1, 1))
    .filter(lambda a: np.linalg.norm(a) > 0.1)
    .map(qt.normalize)
)

#: Half angles from none to a quarter turn, on both sides of every switch between formulas.
HALF_ANGLES = [0.0, 5e-324, 1e-200, 1e-12, 1e-5, 0.0999999, 0.1, 0.1000001, 0.5, 1.0, 1.57]
HALF_TURNS = [
    np.array(a) for a in ([0.0, 1, 0, 0], [0.0, 0, 1, 0], [0.0, 0, 0, 1], [0.0, 0.6, 0, 0.8])
]


@given(quaternions, quaternions)
def test_table_1_identities(a, b):
    mul, conj = qt.mul, qt.conjugate
    scale = max(1.0, np.linalg.norm(a) * np.linalg.norm(b))
    assert_close(qt.dot(a, b), 0.5 * (mul(conj(a), b) + mul(conj(b), a)), scale=scale)
    assert_close(qt.cross(a, b), 0.5 * (mul(a, b) - mul(conj(b), conj(a))), scale=scale)
    assert_close(conj(mul(a, b)), mul(conj(b), conj(a)), scale=scale)
    assert_close(qt.norm(mul(a, b)), qt.norm(a) * qt.norm(b), scale=scale)
    assert_close(qt.left(a) @ b, mul(a, b), scale=scale)
    assert_close(qt.right(b) @ a, mul(a, b), scale=scale)


@given(quaternions, quaternions, quaternions)
def test_product_is_associative(a, b, c):
    scale = max(1.0, float(np.prod([np.linalg.norm(x) for x in (a, b, c)])))
    assert_close(qt.mul(qt.mul(a, b), c), qt.mul(a, qt.mul(b, c)), scale=scale)


def test_hamilton_convention():
    i, j, k = np.eye(4)[1:]
    assert_close(qt.mul(i, j), k)
    assert_close(qt.mul(qt.mul(i, j), k), -qt.identity())


@given(vectors, vectors)
def test_skew_matrix_is_the_cross_product(a, b):
    scale = max(1.0, np.linalg.norm(a) * np.linalg.norm(b))
    assert_close(vector.skew(a) @ b, np.cross(a, b), scale=scale)
    assert_close(vector.cross(a, b), np.cross(a, b), scale=scale)
    assert_close(qt.skew(qt.pure(a)) @ qt.pure(b), qt.cross(qt.pure(a), qt.pure(b)), scale=scale)


@given(units, vectors)
def test_rotation_formats_agree(r, v):
    scale = max(1.0, np.linalg.norm(v))
    rotated = qt.vec(qt.mul(qt.mul(r, qt.pure(v)), qt.conjugate(r)))
    assert_close(qt.rotate(r, v), rotated, scale=scale)
    assert_close(qt.to_matrix(r) @ v, rotated, scale=scale)
    for back in (
        qt.from_matrix(qt.to_matrix(r)),
        qt.from_axis_angle(*qt.to_axis_angle(r)),
        qt.from_rpy(qt.to_rpy(r)),
        qt.exp(qt.log(r)),
    ):
        assert_close(qt.to_matrix(back), qt.to_matrix(r), rtol=1e-14)


@given(units, units)
def test_composition_is_matrix_product(a, b):
    assert_close(qt.to_matrix(qt.mul(a, b)), qt.to_matrix(a) @ qt.to_matrix(b), rtol=1e-14)


@pytest.mark.parametrize("r", [*HALF_TURNS, qt.identity(), -qt.identity()], ids=str)
def test_half_turns_and_identity(r):
    R = qt.to_matrix(r)
    assert_close(qt.to_matrix(qt.from_matrix(R)), R, rtol=1e-15)
    assert_close(qt.to_matrix(qt.exp(qt.log(r))), R, rtol=1e-15)
    axis, angle = qt.to_axis_angle(r)
    assert np.isclose(np.linalg.norm(axis), 1.0)
    assert_close(qt.to_matrix(qt.from_axis_angle(axis, angle)), R, rtol=1e-15)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.nextafter(np.pi / 2, 0), 1.5707963])
@pytest.mark.parametrize(("roll", "yaw"), [(0.0, 0.0), (0.4, 1.1), (-2.0, 3.0)])
def test_gimbal_lock_reproduces_the_orientation(roll, pitch, yaw):
    r = qt.from_rpy(np.array([roll, pitch, yaw]))
    assert_close(qt.to_matrix(qt.from_rpy(qt.to_rpy(r))), qt.to_matrix(r), rtol=1e-14)


def test_rpy_is_urdf_order():
    r = qt.from_rpy(np.array([0.1, 0.2, 0.3]))
    x, y, z = (
        qt.from_axis_angle(axis, angle)
        for axis, angle in zip(np.eye(3), [0.1, 0.2, 0.3], strict=True)
    )
    assert_close(r, qt.mul(z, qt.mul(y, x)), rtol=1e-15)


@pytest.mark.parametrize("h", HALF_ANGLES)
def test_exp_and_log_to_full_precision(h):
    axis = np.array([2.0, -3.0, 6.0]) / 7.0
    v = h * axis
    with mpmath.workdps(60):
        size = mpmath.sqrt(sum(mpmath.mpf(float(e)) ** 2 for e in v))
        sinc = mpmath.sin(size) / size if size else mpmath.mpf(1)
        expected = [mpmath.cos(size), *(mpmath.mpf(float(e)) * sinc for e in v)]
    r = qt.exp(v)
    assert np.all(np.isfinite(r))
    assert abs(r[0] - float(expected[0])) <= 3e-16
    for got, want in zip(r[1:], expected[1:], strict=True):
        assert abs(got - float(want)) <= 3e-16 * max(abs(float(want)), 1e-300)
    assert_close(qt.log(r), v, rtol=1e-15, scale=max(h, 1e-300) if h > 1e-300 else 1.0)
    assert_close(traced(qt.exp, [v])[0], r, rtol=4e-16)
    assert_close(traced(qt.log, [r])[0], qt.log(r), rtol=4e-16)


@pytest.mark.parametrize("h", [0.0, 1e-9, 1e-4, 0.05, 0.11, 1.0])
def test_derivatives_are_finite_and_right_through_zero(h):
    """Automatic differentiation of log(exp(v)) must give the identity, also at no turn at all."""
    x = casadi.SX.sym("x", 3)
    from remora.algebra.array_ops import asarray

    y = casadi.vertcat(*qt.log(qt.exp(asarray(x))).tolist())
    J = casadi.Function("J", [x], [casadi.jacobian(y, x)])
    assert_close(np.array(J(h * np.array([1.0, 2.0, 2.0]) / 3.0)), np.eye(3), rtol=1e-14)


def test_shorter_turn_is_taken():
    r = qt.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.asarray(1.9 * np.pi))
    assert_close(2.0 * qt.log(r), [0.0, 0.0, -0.1 * np.pi], rtol=1e-15)


@given(units, st.floats(0.0, 1.0))
def test_power(r, t):
    assert_close(qt.power(r, 0.0), qt.identity())
    assert_close(qt.power(r, 1.0), qt.shortest(r), rtol=1e-14)
    assert_close(qt.mul(qt.power(r, t), qt.power(r, 1.0 - t)), qt.shortest(r), rtol=1e-14)
