"""The differential of exp and its inverse: against each other, CasADi and 60 digits."""

import casadi
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from numeric import assert_close, traced
from remora.algebra import dual_quaternion as dq
from remora.algebra import quaternion as qt
from remora.algebra import tangent
from remora.algebra.array_ops import asarray

directions = arrays(float, 3, elements=st.floats(-1, 1)).filter(lambda a: np.linalg.norm(a) > 0.1)
lengths = arrays(float, 3, elements=st.floats(-10, 10))
#: Angles up to nearly a whole turn, zero, tiny ones, and those about the switch to the series.
SWITCH = float(np.sqrt(tangent.SMALL))
angles = st.one_of(
    st.floats(0.0, 6.0),
    st.sampled_from([0.0, 1e-200, 1e-12, 1e-5, np.pi, 6.0]),
    st.floats(-1e-3, 1e-3).map(lambda d: SWITCH + d),
)
rotations = st.builds(lambda a, t: t * a / np.linalg.norm(a), directions, angles)
screws = st.builds(lambda u, p: np.concatenate([u, p]), rotations, lengths)
twists = arrays(float, 6, elements=st.floats(-10, 10))
EXAMPLES = [
    0.0,
    1e-200,
    1e-9,
    1e-4,
    0.1,
    SWITCH - 1e-9,
    SWITCH,
    SWITCH + 1e-9,
    1.0,
    np.pi,
    4.5,
    6.0,
]


def growth(u):
    """How much c and its derivative enlarge: they have poles at a whole turn."""
    left = 2.0 * np.pi - np.linalg.norm(u[:3])
    return (1.0 + np.linalg.norm(u)) ** 3 / min(1.0, left) ** 2


# Inverse of each other ---------------------------------------------------------------------------


@given(rotations, twists)
def test_rotations_there_and_back(u, xi):
    omega = xi[:3]
    scale = max(1.0, np.linalg.norm(omega)) * growth(u)
    rate = tangent.rotation_vector_rate(u, omega)
    assert_close(tangent.angular_velocity(u, rate), omega, 1e-14, scale=scale)
    there = tangent.angular_velocity(u, omega)
    assert_close(tangent.rotation_vector_rate(u, there), omega, 1e-14, scale=scale)


@given(screws, twists)
def test_screws_there_and_back(u, xi):
    scale = max(1.0, np.linalg.norm(xi)) * growth(u)
    assert_close(tangent.twist(u, tangent.screw_rate(u, xi)), xi, 1e-14, scale=scale)
    assert_close(tangent.screw_rate(u, tangent.twist(u, xi)), xi, 1e-14, scale=scale)


@given(screws, twists)
def test_rotation_is_the_real_part_of_a_screw(u, xi):
    scale = max(1.0, np.linalg.norm(xi)) * growth(u)
    for of_screw, of_rotation in (
        (tangent.screw_rate, tangent.rotation_vector_rate),
        (tangent.twist, tangent.angular_velocity),
    ):
        expected = of_rotation(u[:3], xi[:3])
        assert_close(of_screw(u, xi)[:3], expected, 1e-15, scale=scale)


@given(screws)
def test_along_the_screw_itself_nothing_changes(u):
    """A motion along u leaves its direction: u̇ = ξ wherever ξ is parallel to u."""
    scale = max(1.0, np.linalg.norm(u)) * growth(u)
    assert_close(tangent.screw_rate(u, 0.7 * u), 0.7 * u, 1e-14, scale=scale)
    assert_close(tangent.twist(u, 0.7 * u), 0.7 * u, 1e-14, scale=scale)


@given(screws, twists)
def test_seen_from_the_other_end(u, xi):
    """D(-u) ξ is D(u) ξ seen from the frame at the start: exp(½u) D(u)ξ exp(½u)* = D(-u) ξ."""
    x = dq.exp(0.5 * u)
    moved = dq.mul(dq.mul(x, dq.pure(tangent.twist(u, xi))), dq.conjugate(x))
    scale = max(1.0, np.linalg.norm(xi)) * (1.0 + np.linalg.norm(u)) ** 2
    assert_close(dq.vec6(moved), tangent.twist(-u, xi), 1e-14, scale=scale)


def test_at_zero_both_are_the_identity(rng):
    xi, zero = rng.normal(size=6), np.zeros(6)
    assert np.all(tangent.screw_rate(zero, xi) == xi)
    assert np.all(tangent.twist(zero, xi) == xi)
    assert np.all(tangent.rotation_vector_rate(zero[:3], xi[:3]) == xi[:3])
    assert np.all(tangent.angular_velocity(zero[:3], xi[:3]) == xi[:3])


# Against the derivative of exp -------------------------------------------------------------------


def _derivative_of_exp(exp, size):
    """(u, u̇) -> d/dt exp(½u), by CasADi."""
    u, rate = casadi.SX.sym("u", size), casadi.SX.sym("rate", size)
    x = casadi.vertcat(*exp(0.5 * asarray(u)).tolist())
    return casadi.Function("f", [u, rate], [casadi.jtimes(x, u, rate)])


OF_DUAL = _derivative_of_exp(dq.exp, 6)
OF_QUATERNION = _derivative_of_exp(qt.exp, 3)


@given(screws, twists)
def test_twist_is_that_of_exp(u, rate):
    """ẋ = ½ x ξ for x = exp(½u)."""
    xdot = np.array(OF_DUAL(u, rate))[:, 0]
    xi = 2.0 * dq.vec6(dq.mul(dq.conjugate(dq.exp(0.5 * u)), xdot))
    scale = max(1.0, np.linalg.norm(rate)) * (1.0 + np.linalg.norm(u)) ** 3
    assert_close(tangent.twist(u, rate), xi, 1e-13, scale=scale)


@given(rotations, twists)
def test_angular_velocity_is_that_of_exp(u, rate):
    rate = rate[:3]
    xdot = np.array(OF_QUATERNION(u, rate))[:, 0]
    omega = 2.0 * qt.mul(qt.conjugate(qt.exp(0.5 * u)), xdot)[1:]
    scale = max(1.0, np.linalg.norm(rate))
    assert_close(tangent.angular_velocity(u, rate), omega, 1e-13, scale=scale)


@given(screws, twists)
def test_rate_by_differences(u, xi):
    """log of what has moved on for a short time, by the twist; less than half a turn from x₀."""
    u = u * min(1.0, 2.5 / max(1e-300, np.linalg.norm(u[:3])))
    h, x = 1e-5, dq.exp(0.5 * u)
    ahead, back = (
        2.0 * dq.log(dq.mul(x, dq.exp(0.5 * d * xi))) for d in (h, -h)
    )  # fmt: skip
    scale = max(1.0, np.linalg.norm(xi)) ** 3 * (1.0 + np.linalg.norm(u)) ** 3
    assert_close((ahead - back) / (2.0 * h), tangent.screw_rate(u, xi), 1e-7, scale=scale)


# To full precision -------------------------------------------------------------------------------


def exact_twist(u, rate):
    """Σ (-1)ᵏ ad_uᵏ u̇/(k+1)! in 60 digits."""
    with mpmath.workdps(60):
        ad = mpmath.matrix(dq.skew(dq.pure(u)).tolist())
        term = mpmath.matrix(dq.pure(rate).tolist())
        total = term
        for k in range(1, 120):
            term = -(ad * term) / (k + 1)
            total = total + term
        return dq.vec6(np.array([float(x) for x in total]))


@pytest.mark.parametrize("angle", EXAMPLES)
def test_to_full_precision(angle):
    axis = np.array([2.0, -3.0, 6.0]) / 7.0
    u = np.concatenate([angle * axis, [0.3, -0.4, 1.2]])
    rate = np.array([0.5, 0.7, -0.2, 1.0, -2.0, 0.4])
    xi = exact_twist(u, rate)
    assert_close(tangent.twist(u, rate), xi, 2e-15)
    near = 1.0 / min(1.0, 2.0 * np.pi - angle) ** 2
    assert_close(tangent.screw_rate(u, xi), rate, 1e-14 * near)
    omega = exact_twist(np.concatenate([u[:3], np.zeros(3)]), rate)[:3]
    assert_close(tangent.angular_velocity(u[:3], rate[:3]), omega, 1e-15)
    assert_close(tangent.rotation_vector_rate(u[:3], omega), rate[:3], 1e-14 * near)


# Any scalar, any batch ---------------------------------------------------------------------------

FUNCTIONS = {
    "rotation_vector_rate": 3, "angular_velocity": 3, "screw_rate": 6, "twist": 6,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_on_batches_and_symbols(name, rng):
    function, n = getattr(tangent, name), FUNCTIONS[name]
    u, xi = rng.normal(size=(2, len(EXAMPLES), 3, n))
    turned = np.array(EXAMPLES)[:, None, None]
    u[..., :3] *= turned / np.linalg.norm(u[..., :3], axis=-1, keepdims=True)
    many = function(u, xi)
    assert many.shape == u.shape
    assert_close(function(u, xi[0, 0]), function(u, np.broadcast_to(xi[0, 0], u.shape)), 1e-15)
    for i in np.ndindex(u.shape[:-1]):
        assert_close(many[i], function(u[i], xi[i]), 1e-15)
        assert_close(traced(function, (u[i], xi[i]))[0], many[i], 1e-14)


@pytest.mark.parametrize("angle", EXAMPLES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_finite_and_right(name, angle):
    """CasADi's derivatives by u through zero and the switch, against central differences."""
    function, n = getattr(tangent, name), FUNCTIONS[name]
    U, X = casadi.SX.sym("u", n), casadi.SX.sym("x", n)
    y = casadi.vertcat(*function(asarray(U), asarray(X)).tolist())
    J = casadi.Function("J", [U, X], [casadi.jacobian(y, U)])
    u = np.array([2.0, -3.0, 6.0, 1.0, 2.0, -1.0])[:n]
    u[:3] *= angle / 7.0
    x = np.array([0.5, 0.7, -0.2, 1.0, -2.0, 0.4])[:n]
    d = 1e-5
    differences = [(function(u + d * e, x) - function(u - d * e, x)) / (2.0 * d) for e in np.eye(n)]
    scale = max(1.0, np.abs(differences).max()) / min(1.0, 2.0 * np.pi - angle) ** 2
    assert_close(np.array(J(u, x)), np.transpose(differences), 1e-8, scale=scale)
