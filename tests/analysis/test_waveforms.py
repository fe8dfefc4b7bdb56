"""Filter, differentiation, RMSE and CMC: closed forms and orders of error."""

import numpy as np
import pytest

import remora as rm


def test_a_butterworth_low_pass_loses_half_of_the_power_at_its_cutoff():
    t = np.arange(0.0, 4.0, 1e-3)
    wave = np.sin(2 * np.pi * 20.0 * t)
    once = rm.analysis.low_pass(wave, 20.0, 1000.0, zero_phase=False)[2000:]
    assert np.isclose(np.std(once), 0.5, rtol=1e-3)  # amplitude √½
    twice = rm.analysis.low_pass(wave, 20.0, 1000.0)[500:-500]
    assert np.allclose(twice, 0.5 * wave[500:-500], atol=1e-3)  # no delay
    slow = rm.analysis.low_pass(np.stack([np.ones(4000), np.sin(t)], axis=-1), 30.0, 1000.0)
    assert np.allclose(slow[:, 0], 1.0, atol=1e-12)
    assert np.allclose(slow[500:-500, 1], np.sin(t)[500:-500], atol=1e-6)
    assert np.allclose(rm.analysis.low_pass(np.full(50, 3.0), 30.0, 1000.0, zero_phase=False), 3.0)


def test_differentiation_is_of_fourth_order_everywhere():
    errors = []
    for step in (0.02, 0.01):
        t = np.arange(0.0, 2.0 + step / 2, step)
        x = np.stack([np.sin(3 * t), np.exp(-t)], axis=-1)
        exact = np.stack([3 * np.cos(3 * t), -np.exp(-t)], axis=-1)
        error = np.abs(rm.analysis.differentiate(x, step) - exact)
        errors.append([error[2:-2].max(), error[:2].max(), error[-2:].max()])
    ratio = np.array(errors[0]) / errors[1]
    assert np.all((ratio > 13.0) & (ratio < 19.0))
    quartic = np.arange(7.0) ** 4
    assert np.allclose(
        rm.analysis.differentiate(quartic, 1.0), 4.0 * np.arange(7.0) ** 3, atol=1e-10
    )


def test_cmc_of_ferrari_by_hand():
    """Two waveforms in two cycles of three samples, summed in loops as the formula is written."""
    rng = np.random.default_rng(1)
    Y = rng.normal(size=3)[None, None] + 0.3 * rng.normal(size=(2, 2, 3))  # P, G, F
    P, G, F = Y.shape
    top = bottom = 0.0
    for g in range(G):
        for p in range(P):
            for f in range(F):
                top += (Y[p, g, f] - Y[:, g, f].mean()) ** 2
                bottom += (Y[p, g, f] - Y[:, g].mean()) ** 2
    expected = np.sqrt(1.0 - (top / (G * F * (P - 1))) / (bottom / (G * (F * P - 1))))
    found = rm.analysis.multiple_correlation(Y[0].reshape(-1), Y[1].reshape(-1), cycles=2)
    assert np.isclose(found, expected, rtol=1e-14)


def test_cmc_and_rmse_of_known_waveforms():
    t = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
    x = np.stack([np.sin(t), np.cos(t)], axis=-1)
    assert np.array_equal(rm.analysis.multiple_correlation(x, x), [1.0, 1.0])
    assert np.array_equal(rm.analysis.root_mean_square_error(x, x + 0.5), [0.5, 0.5])
    assert rm.analysis.multiple_correlation(np.sin(t), -np.sin(t)) == 0.0
    # an error with a tenth of the amplitude, in quadrature: between = 1/400, total ≈ 101/200
    near = rm.analysis.multiple_correlation(np.sin(t), np.sin(t) + 0.1 * np.cos(t))
    total = (0.5 + 0.5 + 0.005) * 400 / 799
    assert np.isclose(near**2, 1.0 - 0.0025 / total, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rm.analysis.low_pass(np.zeros(50), 600.0, 1000.0), "between 0 and 500 Hz"),
        (lambda: rm.analysis.low_pass(np.zeros(50), 10.0, 1000.0, order=0), "order=0 of a filter"),
        (lambda: rm.analysis.low_pass(np.full(50, np.nan), 10.0, 1000.0), "not finite"),
        (lambda: rm.analysis.low_pass(np.zeros(6), 10.0, 1000.0), "6 samples are too few"),
        (lambda: rm.analysis.low_pass(1.0, 10.0, 1000.0), "samples must be an array"),
        (lambda: rm.analysis.differentiate(np.zeros(4), 0.1), "at least 5 samples, not 4"),
        (lambda: rm.analysis.differentiate(np.zeros(9), 0.0), "step=0.0"),
        (lambda: rm.analysis.multiple_correlation(np.zeros(9), np.zeros(9)), "do not vary"),
        (
            lambda: rm.analysis.multiple_correlation(np.arange(9), np.arange(9), 2),
            "divided into cycles=2",
        ),
        (lambda: rm.analysis.root_mean_square_error(np.zeros(9), np.zeros(8)), "the same shape"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(rm.RemoraError, match=message):
        call()
