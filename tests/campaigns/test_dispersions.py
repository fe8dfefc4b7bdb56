"""Dispersions: distributions, samplings and correlations."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import qmc

import remora as rm
from remora.campaigns import indexed_points, statistics
from remora.campaigns.dispersions import (
    Dispersion,
    Dispersions,
    correlation_factor,
    dispersion,
)
from remora.campaigns.indexed_points import ROUNDS, permuted, sobol_points
from remora.campaigns.statistics import first_order_index, rank_correlation, wilson
from remora.campaigns.study_schema import DispersionFile

PARAMETERS = {
    "normal": {"mean": 3.0, "std": 0.5},
    "truncated_normal": {"mean": 3.0, "std": 0.5, "low": 2.8, "high": 4.5},
    "uniform": {"low": -1.0, "high": 2.0},
    "log_normal": {"median": 2.0, "sigma": 0.3},
}
REFERENCE = {
    "normal": stats.norm(3.0, 0.5),
    "truncated_normal": stats.truncnorm(-0.4, 3.0, 3.0, 0.5),
    "uniform": stats.uniform(-1.0, 3.0),
    "log_normal": stats.lognorm(0.3, scale=2.0),
}


def several(sampling="random", runs=4000, seed=3, kinds=tuple(PARAMETERS), correlated=()):
    items = tuple(Dispersion(k, k, PARAMETERS[k], "value", 0.0) for k in kinds)
    return Dispersions(items, sampling, seed, runs, correlated)


@pytest.mark.parametrize("kind", PARAMETERS)
def test_inverse_distribution_functions(kind):
    u = np.linspace(1e-9, 1.0 - 1e-9, 101)
    own = Dispersion("x", kind, PARAMETERS[kind], "value", 0.0)
    assert np.allclose(own.values(u, np.arange(101)), REFERENCE[kind].ppf(u), rtol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("near", "far", "mean"), [(9, 12, 9.108523105), (40, 50, 40.024968847), (1e4, 2e4, 1e4 + 1e-4)]
)
def test_ranges_far_in_a_tail(near, far, mean, sign):
    """The mean of a tail is φ(a)/(1 - Φ(a)) = a + 1/a - 2/a³ + 10/a⁵ - ..., from Mills' ratio."""
    low, high = sorted((sign * near, sign * far))
    own = Dispersion("x", "truncated_normal", {"mean": 0, "std": 1, "low": low, "high": high},
                     "value", 0.0)  # fmt: skip
    u = (np.arange(100_000) + 0.5) / 100_000
    x = own.values(u, np.arange(u.size))
    assert np.mean(x) == pytest.approx(sign * mean, rel=1e-7)  # midpoints of 10⁵ strata
    assert np.all(np.diff(x) > 0.0)
    assert x.min() >= low
    assert x.max() <= high


def test_a_range_that_no_number_can_come_from_is_refused():
    told = DispersionFile.model_validate(
        {"truncated_normal": {"mean": 0, "std": 1e-99, "low": 9e9, "high": 1e10}}
    )
    with pytest.raises(rm.RemoraError, match="standard deviations away from the mean 0"):
        dispersion("x", told, 1.0)


@pytest.mark.parametrize("sampling", ["random", "latin_hypercube", "sobol"])
def test_samples_have_their_distribution(sampling):
    drawn = several(sampling).draw(0, 4000)
    for kind, values in drawn.items():
        assert stats.kstest(values, REFERENCE[kind].cdf).pvalue > 1e-3
    table = np.corrcoef(np.stack(list(drawn.values())))
    assert np.abs(table - np.eye(4)).max() < 0.08


@pytest.mark.parametrize("sampling", ["random", "latin_hypercube", "sobol"])
@settings(max_examples=25)
@given(start=st.integers(0, 250), size=st.integers(1, 50))
def test_a_run_does_not_depend_on_its_block(sampling, start, size):
    every = several(sampling, 300)
    whole, part = every.draw(0, 300), every.draw(start, start + size)
    for name, values in whole.items():
        assert np.array_equal(values[start : start + size], part[name])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 17, 1000, 4097])
def test_a_permutation_by_index_is_one(size):
    keys = np.random.default_rng(size).integers(0, 2**63, ROUNDS).astype(np.uint64)
    found = permuted(np.arange(size), size, keys)
    assert np.array_equal(np.sort(found), np.arange(size))
    middle = size // 2
    assert permuted(np.array([middle]), size, keys)[0] == found[middle]
    with pytest.raises(rm.RemoraError, match="from 0 to size - 1"):
        permuted(np.array([size]), size, keys)


def test_permutations_of_four_are_about_equally_frequent():
    rng, counts = np.random.default_rng(1), {}
    for _ in range(1200):
        keys = rng.integers(0, 2**64, ROUNDS, dtype=np.uint64)
        found = tuple(permuted(np.arange(4), 4, keys).tolist())
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize("runs", [1, 2, 100, 777])
def test_a_latin_hypercube_has_one_run_in_each_stratum_of_each_number(runs):
    kinds = ("uniform", "normal")
    drawn = several("latin_hypercube", runs, kinds=kinds).draw(0, runs)
    for kind, values in drawn.items():
        strata = np.floor(REFERENCE[kind].cdf(values) * runs * (1 - 1e-12)).astype(int)
        assert np.array_equal(np.sort(strata), np.arange(runs))
    if runs > 2:
        assert not np.array_equal(*(np.argsort(drawn[kind]) for kind in kinds))


@pytest.mark.parametrize("sampling", ["random", "latin_hypercube", "sobol"])
def test_a_block_of_a_very_large_study_takes_little_memory(sampling):
    """The whole design of 1e9 runs would have 32 GB."""
    study = several(sampling, runs=10**9)
    start = study.runs - 1000
    study.draw(0, 1)  # imports what it needs
    tracemalloc.start()
    drawn = study.draw(start, start + 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(np.all(np.isfinite(x)) for x in drawn.values())
    assert peak < 4e6


def test_a_latin_hypercube_estimates_a_mean_better_than_random_numbers():
    errors = {}
    for sampling in ("random", "latin_hypercube"):
        studies = (several(sampling, 200, seed=s, kinds=("normal",)) for s in range(40))
        means = [study.draw(0, 200)["normal"].mean() for study in studies]
        errors[sampling] = np.std(means)
    assert errors["latin_hypercube"] < 0.1 * errors["random"]


def test_random_numbers_depend_on_seed_and_name_alone():
    one = several(seed=5, kinds=("normal",)).draw(7, 9)["normal"]
    other = several(seed=5, runs=99, kinds=("uniform", "normal")).draw(7, 9)["normal"]
    assert np.array_equal(one, other)
    assert not np.array_equal(one, several(seed=6, kinds=("normal",)).draw(7, 9)["normal"])


def test_correlated_numbers():
    factor = correlation_factor(["normal", "uniform"], [[1.0, 0.8], [0.8, 1.0]])
    drawn = several(kinds=("normal", "uniform"), correlated=(((0, 1), factor),)).draw(0, 4000)
    for kind, values in drawn.items():
        assert stats.kstest(values, REFERENCE[kind].cdf).pvalue > 1e-3
    # Spearman's correlation of a Gaussian copula: 6/π asin(ρ/2)
    expected = 6.0 / np.pi * np.arcsin(0.4)
    assert abs(rank_correlation(drawn["normal"], drawn["uniform"]) - expected) < 0.03


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1.0, 0.5]], "2 x 2"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[2.0, 0.5], [0.5, 1.0]], "ones on its diagonal"),
        ([[1.0, 1.5], [1.5, 1.0]], "positive definite"),
        ([[1.0], [0.5, 1.0]], "2 x 2"),
    ],
)
def test_impossible_correlations_are_refused(matrix, words):
    with pytest.raises(rm.RemoraError, match=words):
        correlation_factor(["a", "b"], matrix)


@pytest.mark.parametrize(
    ("relation", "expected"), [("value", 12.0), ("offset", 0.0), ("factor", 1.0)]
)
def test_default_means(relation, expected):
    told = DispersionFile.model_validate({"normal": {"std": 0.1}, "as": relation})
    own = dispersion("x", told, 12.0)
    assert own.numbers["mean"] == expected
    assert own.values(np.array([0.5]), np.array([0]))[0] == pytest.approx(12.0)


def test_wilson_interval():
    low, high = wilson(95, 100)
    expected = stats.binomtest(95, 100).proportion_ci(0.95, method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == 1.0


def test_rank_correlation_against_scipy():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 20, 200).astype(float)
    y = x**3 + rng.normal(size=200) * 500
    assert rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, rel=1e-12)
    assert np.isnan(rank_correlation(x, np.ones(200)))


def test_first_order_indices_of_ishigami():
    """The function of Ishigami and Homma, whose indices are known."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-np.pi, np.pi, (20_000, 3))
    y = np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])
    found = [first_order_index(x[:, k], y) for k in range(3)]
    assert found == pytest.approx([0.3139, 0.4424, 0.0], abs=0.02)


def test_an_index_of_few_samples_is_not_too_large_on_average():
    """Five values of x in a hundred samples: the classes are the values, so nothing else biases."""
    x = np.repeat(np.arange(5.0), 20)
    rng = np.random.default_rng(3)
    y = x + np.sqrt(3.0 * np.var(x)) * rng.normal(size=(2000, 100))  # a quarter of the variance
    found = np.mean([first_order_index(x, one) for one in y])
    assert found == pytest.approx(0.25, abs=0.01)  # 0.28 with the noise of the means


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dimensions", [1, 3, 40])
def test_points_of_a_sobol_sequence_by_index_are_those_of_scipy(dimensions, known, monkeypatch):
    """Also where SciPy's own numbers are not to be had, and it must go from point to point."""
    made = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(7)).random_base2(12)
    if not known:
        monkeypatch.setattr("remora.campaigns.indexed_points._points", lambda *_: np.zeros(0))
    for start, stop in ((0, 4096), (0, 1), (1, 2), (4095, 4096), (1023, 1026), (2048, 3001)):
        found = sobol_points(start, stop, dimensions, 7)
        assert np.array_equal(found, made[start:stop])


def test_far_points_of_a_sobol_sequence_and_its_end():
    start = 10**7 + 123
    sequence = qmc.Sobol(2, scramble=True, rng=np.random.default_rng(1))
    sequence.fast_forward(start)
    assert np.array_equal(sobol_points(start, start + 50, 2, 1), sequence.random(50))
    last = sobol_points(2**30 - 2, 2**30, 2, 1)
    assert np.all((last >= 0.0) & (last < 1.0))
    with pytest.raises(rm.RemoraError, match="Sobol sequence has"):
        sobol_points(2**30 - 2, 2**30 + 1, 2, 1)


@pytest.mark.parametrize("size", [1, 2, 4, 5, 16, 17, 64, 100, 256])
def test_permutations_are_those_of_whole_numbers(size):
    """A Feistel network with halves of ⌈b/2⌉ bits, b those of size - 1; seeds keep numbers."""
    keys = [int(k) for k in np.random.default_rng(size).integers(0, 2**63, ROUNDS)]
    bits = max(1, math.ceil(math.ceil(math.log2(size)) / 2)) if size > 1 else 1
    mask, all_ = 2**bits - 1, 2**64 - 1

    def mixed(x, key):
        z = (((x + 1) * int(indexed_points._SECOND)) & all_) ^ key
        z = ((z ^ z >> 30) * int(indexed_points._FIRST)) & all_
        z = ((z ^ z >> 27) * int(indexed_points._SECOND)) & all_
        return z ^ z >> 31

    def place(x):
        while True:
            left, right = x >> bits, x & mask
            for key in keys:
                left, right = right, left ^ (mixed(right, key) & mask)
            x = left << bits | right
            if x < size:
                return x

    found = permuted(np.arange(size), size, np.array(keys, dtype=np.uint64))
    assert found.tolist() == [place(k) for k in range(size)]


def test_ranks_of_ties_are_their_means(rng):
    for _ in range(5):
        x, y = rng.integers(0, 6, 40).astype(float), rng.integers(0, 4, 40) ** 2.0
        expected = stats.spearmanr(x, y).statistic
        assert statistics.rank_correlation(x, y) == pytest.approx(expected, abs=1e-12)
        assert np.array_equal(statistics._ranks(x), stats.rankdata(x))
