"""NEES, chi-square bounds and Allan deviations against their definitions."""

import numpy as np
import pytest

import remora as rm
from remora.estimation import allan_deviation, chi_square_bounds, consistency, nees


def test_nees_is_the_quadratic_form():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(4, 5, 3, 3))
    P = A @ np.swapaxes(A, -1, -2) + np.eye(3)
    e = rng.normal(size=(4, 5, 3))
    expected = np.einsum("...i,...ij,...j", e, np.linalg.inv(P), e)
    assert nees(e, P) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(rm.errors.ShapeError, match="covariance must be"):
        nees(e, P[..., :2])


def test_bounds_of_tables():
    """Chi-square percentiles as printed in tables: 2.5 % and 97.5 %, for 50 runs of 2 freedoms."""
    low, high = chi_square_bounds(2, 50)
    assert (100 * low / 2, 100 * high / 2) == pytest.approx((74.222, 129.561), abs=1e-3)
    assert chi_square_bounds(1, 1, 0.9) == pytest.approx((0.00393, 3.841), abs=1e-3)
    for arguments in ((0,), (3, 0), (3, 5, 1.0)):
        with pytest.raises(rm.errors.InvalidValue):
            chi_square_bounds(*arguments)


def test_a_verdict_for_chi_square_numbers():
    rng = np.random.default_rng(3)
    x = rng.chisquare(6, size=(500, 400))
    good = consistency(x, 6)
    assert good.consistent
    assert abs(good.inside - 0.95) < 0.04
    for factor, side in ((1.3, "above"), (0.7, "below")):
        bad = consistency(factor * x, 6)
        assert not bad.consistent
        assert side in str(bad)
    with pytest.raises(rm.errors.ShapeError):
        consistency(x[0], 6)


def test_the_allan_deviation_recovers_the_noise_of_a_gyro():
    """Noise s per sample: s √(h/τ); drift u of the bias: u √(τ/3)."""
    robot = rm.load("vt18_satellite")
    h, s, u = 0.1, 2e-3, 4e-4
    gyro = rm.sensors.RateGyro("body_1", noise=s, drift=u, sample_time=h, name="gyro")
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    batch = rm.simulate_batch(
        rm.System(robot, [gyro]), q, v, 400.0, integrator=rm.Integrator(step=h), record=h,
        runs=rm.Runs(40, seed=1),
    )  # fmt: skip
    tau, each = allan_deviation(batch.signals["gyro.rate"][:, 1:, 0], h)
    assert each.shape == (40, tau.size)
    sigma = np.sqrt(np.mean(each**2, axis=0))
    short, long = tau <= 0.5, (tau > 40.0) & (tau < 80.0)
    noise = np.sqrt(np.mean(sigma[short] ** 2 * tau[short] / h - u**2 * tau[short] ** 2 / 3 / h))
    assert noise == pytest.approx(s, rel=0.02)
    assert np.mean(sigma[long] / np.sqrt(tau[long] / 3.0)) == pytest.approx(u, rel=0.1)


def test_an_allan_deviation_by_its_definition():
    x = np.random.default_rng(2).normal(size=50)
    tau, sigma = allan_deviation(x, 0.5, points=5)
    for t, found in zip(tau, sigma, strict=True):
        j = round(t / 0.5)
        means = np.array([x[k : k + j].mean() for k in range(50 - j + 1)])
        expected = np.sqrt(0.5 * np.mean((means[j:] - means[:-j]) ** 2))
        assert found == pytest.approx(expected, rel=1e-12)
    for arguments in (
        (x[:2], 0.5), (x, 0.0), (x, np.nan), (x, 0.5, 0), (x, 0.5, 2.5), (x, "fast"), (x, None),
        (x, x),
    ):  # fmt: skip
        with pytest.raises(rm.errors.RemoraError):
            allan_deviation(*arguments)


def test_numbers_that_make_no_sense():
    singular, three = np.zeros((3, 3)), np.ones(3)
    with pytest.raises(rm.errors.SingularMatrix, match="covariance is singular"):
        rm.estimation.nees(three, singular)
    with pytest.raises(rm.errors.ShapeError, match="leading axes"):
        rm.estimation.nees(np.ones((5, 3)), np.broadcast_to(np.eye(3), (4, 3, 3)))
    for arguments in ((3, 10, "high"), (3, 10, None), (3, 10, 1.0), (2.5,), (3, 0.5), (np.nan,)):
        with pytest.raises(rm.errors.RemoraError):
            rm.estimation.chi_square_bounds(*arguments)
