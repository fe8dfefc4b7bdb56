"""Radau IIA: its coefficients, its order, stiff problems against known solutions and SciPy."""

import math

import casadi
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from numeric import assert_close
from remora.simulation.integrators.radau import RADAU, attempt
from remora.simulation.integrators.step_result import norm


class Problem:
    """ẏ = f(t, y), written on any scalar; CasADi differentiates it."""

    def __init__(self, f, n):
        t, y = casadi.SX.sym("t"), casadi.SX.sym("y", n)
        parts = casadi.vertcat(*f(t, [y[i] for i in range(n)]))
        self._rates = casadi.Function("f", [t, y], [parts])
        self._jacobian = casadi.Function("J", [t, y], [casadi.jacobian(parts, y)])
        self.evaluations = 0

    def rates(self, t, y):
        self.evaluations += 1
        return np.array(self._rates(t, y))[:, 0]

    def jacobian(self, t, y):
        return np.array(self._jacobian(t, y))

    def step(self, t, y, h, scale, again=False):
        return attempt(self, t, y, self.rates(t, y), h, scale, again)


def adaptive(problem, t, y, stop, rtol, atol, h):
    """Steps as a driver makes them: -> y at the end, times, states, numbers of steps refused."""
    times, states, refused, again = [t], [y], 0, True
    while t < stop:
        h = min(h, stop - t)
        tried = problem.step(t, y, h, atol + rtol * np.abs(y), again)
        after, again = again, not tried.error <= 1.0
        if again:
            refused += 1
            h *= 0.5 if math.isinf(tried.error) else max(0.2, 0.9 * tried.error**-0.25)
            assert h > 1e-14
            continue
        t = stop if h == stop - t else t + h
        y = y + tried.change
        h *= min(1.0 if after and refused else 8.0, 0.9 * max(tried.error, 1e-10) ** -0.25)
        times.append(t)
        states.append(y)
    return y, np.array(times), np.array(states), refused


def sin(x):
    return casadi.sin(x) if isinstance(x, casadi.SX) else np.sin(x)


def cos(x):
    return casadi.cos(x) if isinstance(x, casadi.SX) else np.cos(x)


def forced_pendulum(t, y):
    return [y[1], -sin(y[0]) - 0.1 * y[1] * y[1] + 0.5 * cos(1.3 * t)]


def van_der_pol(mu):
    """In the time that makes the period about 1: ε z'' = (1 - z²) z' - z, ε = 1/μ²."""
    return lambda t, y: [y[1], mu**2 * ((1.0 - y[0] * y[0]) * y[1] - y[0])]


# Coefficients ------------------------------------------------------------------------------------


def test_coefficients_are_those_of_the_book():
    """[HW96, Table IV.5.6, and eq. IV.8.18 for the estimate]."""
    s = math.sqrt(6.0)
    A = np.array(
        [
            [(88 - 7 * s) / 360, (296 - 169 * s) / 1800, (-2 + 3 * s) / 225],
            [(296 + 169 * s) / 1800, (88 + 7 * s) / 360, (-2 - 3 * s) / 225],
            [(16 - s) / 36, (16 + s) / 36, 1 / 9],
        ]
    )
    assert_close(RADAU.inverse @ A, np.eye(3), 2e-15)
    root = 3.0 ** (1 / 3)
    gamma = 1 / ((6.0 + root**4 - root**2) / 30.0)  # the book's γ₀ = 1/γ
    assert_close(RADAU.gamma, gamma, 2e-15)
    assert_close(RADAU.error, np.array([-13 - 7 * s, -13 + 7 * s, -1]) / 3, 1e-15)
    rebuilt = RADAU.gamma * np.outer(RADAU.real[1], RADAU.real[0])
    rebuilt = rebuilt + 2 * (RADAU.mu * np.outer(RADAU.pair[1], RADAU.pair[0])).real
    assert_close(rebuilt, RADAU.inverse, 2e-15)


def test_quadrature_of_order_five():
    b = np.linalg.inv(RADAU.inverse)[-1]
    for k in range(1, 6):
        assert_close(b @ RADAU.c ** (k - 1), 1.0 / k, 1e-15)


@pytest.mark.parametrize("z", [-1e-3, -1.0, -5.0, -100.0, 2.0, 10.0j, -3 + 4j])
def test_stability_function(z):
    """R(z) = (1 + 2z/5 + z²/20)/(1 - 3z/5 + 3z²/20 - z³/60) [HW96, Table IV.3.1], h = 1."""
    x, w = np.real(z), np.imag(z)
    problem = Problem(lambda t, y: [x * y[0] - w * y[1], w * y[0] + x * y[1]], 2)
    made = problem.step(0.0, np.array([1.0, 0.0]), 1.0, np.full(2, 1e-14))
    exact = (1 + 2 * z / 5 + z * z / 20) / (1 - 3 * z / 5 + 3 * z * z / 20 - z**3 / 60)
    assert_close(made.change, [np.real(exact) - 1.0, np.imag(exact)], 2e-14)


# Order -------------------------------------------------------------------------------------------


def reference(f, y, stop):
    def rates(t, y):
        return np.array(f(t, y))

    return solve_ivp(rates, (0, stop), y, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


def test_order_five():
    problem, start, stop = Problem(forced_pendulum, 2), np.array([1.0, -0.5]), 4.0
    exact = reference(forced_pendulum, start, stop)
    errors = []
    for n in (16, 32, 64):
        y, h = start, stop / n
        for i in range(n):
            y = y + problem.step(i * h, y, h, np.full(2, 1e-13)).change
        errors.append(np.abs(y - exact).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 4.7) & (orders < 5.6)), orders
    assert errors[-1] < 1e-9


def test_dense_output():
    """Exactly zero and the change at the ends; of order three between them: errors of order h⁴."""
    problem, start = Problem(forced_pendulum, 2), np.array([1.0, -0.5])
    theta = np.linspace(0.0, 1.0, 9)
    errors = []
    for h in (0.4, 0.2, 0.1):
        made = problem.step(0.0, start, h, np.full(2, 1e-14))
        between = made.dense(theta)
        assert between.shape == (9, 2)
        assert np.all(between[0] == 0.0)
        assert_close(between[-1], made.change, 1e-15)
        exact = [reference(forced_pendulum, start, x * h) - start for x in theta[1:]]
        errors.append(np.abs(between[1:] - exact).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 3.7) & (orders < 4.4)), orders


def test_error_estimate_follows_the_error_of_order_three():
    problem, start = Problem(forced_pendulum, 2), np.array([1.0, -0.5])
    sizes = [problem.step(0.0, start, h, np.full(2, 1e-3)).error for h in (0.2, 0.1, 0.05)]
    orders = np.log2(np.array(sizes[:-1]) / sizes[1:])
    assert np.all((orders > 3.7) & (orders < 4.4)), orders


# Stiff problems ----------------------------------------------------------------------------------


def test_what_decays_at_once_is_gone():
    """λ = -1e8: L-stable, one long step leaves nothing; a long run needs few steps."""
    problem = Problem(lambda t, y: [-1e8 * y[0]], 1)
    made = problem.step(0.0, np.ones(1), 1.0, np.full(1, 1e-6))
    assert abs(1.0 + made.change[0]) < 1e-6
    y, times, _, _ = adaptive(problem, 0.0, np.ones(1), 10.0, 1e-6, 1e-9, h=1e-3)
    assert abs(y[0]) < 1e-8
    assert len(times) < 130  # SciPy's needs 118


@pytest.mark.parametrize("rate", [-1e2, -1e6, -1e9])
def test_prothero_robinson(rate):
    """y' = λ(y - g) + g': whatever λ is, the solution is g, and steps are as long as g allows."""
    problem = Problem(lambda t, y: [rate * (y[0] - sin(t)) + cos(t)], 1)
    _, times, states, refused = adaptive(problem, 0.0, np.zeros(1), 10.0, 1e-7, 1e-7, h=1e-3)
    assert_close(states[:, 0], np.sin(times), 1e-6)
    assert len(times) < 100
    assert refused <= 20
    _, times, states, _ = adaptive(problem, 0.0, np.zeros(1), 1.0, 1e-12, 1e-12, h=1e-3)
    assert_close(states[:, 0], np.sin(times), 2e-11)


def test_van_der_pol():
    """ε = 1e-6 over two fast changes, against the book's reference and SciPy's number of steps."""
    problem = Problem(van_der_pol(1e3), 2)
    start, stop = np.array([2.0, 0.0]), 2.0
    y, times, _, _ = adaptive(problem, 0.0, start, stop, 1e-6, 1e-6, h=1e-6)
    assert_close(y, [0.1706167732170456e1, -0.8928097010248257e0], 1e-6)
    theirs = solve_ivp(
        problem.rates, (0, stop), start, method="Radau", jac=problem.jacobian, rtol=1e-6, atol=1e-6
    )
    assert len(times) < 1.2 * len(theirs.t)


def test_robertson():
    """Reactions with rates from 0.04 to 3e7 [HW96, eq. IV.1.4], to t = 1e5."""

    def f(t, y):
        a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]
        return [b - a, a - b - c, c]

    problem = Problem(f, 3)
    start, atol = np.array([1.0, 0.0, 0.0]), np.array([1e-9, 1e-13, 1e-9])
    y, times, _, _ = adaptive(problem, 0.0, start, 1e5, 1e-8, atol, h=1e-6)
    exact = solve_ivp(
        problem.rates, (0, 1e5), start, method="Radau", jac=problem.jacobian,
        rtol=1e-10, atol=1e-14,
    ).y[:, -1]  # fmt: skip
    assert np.max(np.abs(y / exact - 1.0)) < 1e-6
    assert abs(y.sum() - 1.0) < 1e-13  # kept by every Runge-Kutta method
    assert len(times) < 500


def test_tight_tolerances_end_at_rounding():
    """A stiff damped spring beside a slow one at 1e-13: Newton's iterations end at rounding."""
    k, c = 1e8, 3e4

    def f(t, y):
        return [y[1], -k * (y[0] - sin(t)) - c * (y[1] - cos(t)) - sin(t), y[3], -y[2]]

    problem = Problem(f, 4)
    start = np.array([0.0, 1.0, 1.0, 0.0])
    y, times, _, refused = adaptive(problem, 0.0, start, 1.0, 1e-13, 1e-13, h=1e-3)
    exact = [math.sin(1), math.cos(1), math.cos(1), -math.sin(1)]
    assert_close(y[2:], exact[2:], 1e-12)
    assert_close(y[:2], exact[:2], 1e-11)
    assert len(times) < 4000
    assert refused < 400


# Failure -----------------------------------------------------------------------------------------


def test_no_convergence_is_an_infinite_error():
    """y' = y² from 1 has no solution beyond t = 1."""
    problem = Problem(lambda t, y: [y[0] * y[0]], 1)
    made = problem.step(0.0, np.ones(1), 10.0, np.full(1, 1e-6))
    assert made.error == math.inf
    assert np.all(made.change == 0.0)
    assert np.all(made.dense(np.array([0.0, 0.5])) == 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rates_that_are_not_finite(bad):
    class Broken:
        def rates(self, t, y):
            return np.full(2, bad)

        def jacobian(self, t, y):
            return np.eye(2)

    made = attempt(Broken(), 0.0, np.zeros(2), np.zeros(2), 0.1, np.ones(2))
    assert made.error == math.inf


def test_a_singular_system_is_an_infinite_error():
    class Singular:
        def rates(self, t, y):
            return RADAU.gamma * y

        def jacobian(self, t, y):
            return RADAU.gamma * np.eye(2)

    made = attempt(Singular(), 0.0, np.ones(2), np.ones(2), 1.0, np.ones(2))
    assert made.error == math.inf


def test_numbers_that_may_have_any_error():
    """An infinite scale, as of work, counts as no error at all."""
    problem = Problem(lambda t, y: [-y[0], y[0] * y[0]], 2)
    scale = np.array([1e-9, np.inf])
    made = problem.step(0.0, np.array([1.0, 0.0]), 0.1, scale)
    assert norm(made.change, scale) < 1e9
    assert math.isfinite(made.error)
    assert_close(made.change, [math.exp(-0.1) - 1, (1 - math.exp(-0.2)) / 2], 1e-8)


def test_backwards():
    problem, start = Problem(forced_pendulum, 2), np.array([1.0, -0.5])
    there = start + problem.step(0.0, start, 0.05, np.full(2, 1e-13)).change
    back = there + problem.step(0.05, there, -0.05, np.full(2, 1e-13)).change
    assert_close(back, start, 1e-8)
