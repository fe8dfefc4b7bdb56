"""Noise: its distribution, its accuracy, and the same bits wherever it is computed."""

import ctypes
import re
import subprocess

import mpmath
import numpy as np
import pytest
from scipy import stats

import needs
import ptx_machine
import remora as rm
from remora.codegen.gpu import ptx
from remora.codegen.ir import graph_passes, philox
from remora.codegen.ir.graph import Signature, interpret
from remora.codegen.ir.trace import trace
from remora.components import noise

PAIRS = (Signature("numbers", (3,)),)
DTYPES = ("float64", "float32")
PINNED = [
    "-0x1.39d43a170870ep+0", "-0x1.0ea69510dcabap+0",
    "-0x1.8b27ca4256249p-2", "-0x1.1d842699b8926p-1",
]  # fmt: skip
PINNED_WORDS = [314864763, 4143926234, 3133279250, 1907774442, 3433380403]


def numbers(n):
    """Return numbers of pairs: the corners of e, f and w, then random ones."""
    rng = np.random.default_rng(11)
    e = rng.geometric(0.5, n) - 1.0
    f = 1.0 + (2.0 * rng.integers(0, 2**22, n) + 1) * 2.0**-23
    w = (2.0 * rng.integers(0, 2**23, n) + 1) * 2.0**-24
    near = [k / 8 + d for k in range(9) for d in (-(2.0**-24), 2.0**-24) if 0 < k / 8 + d < 1]
    middle = 5931642 * 2.0**-22
    corners = [
        (e, f, w)
        for e in (0, 1, 31, 64)
        for f in (1 + 2.0**-23, middle - 2.0**-23, middle + 2.0**-23, 2 - 2.0**-23)
        for w in near
    ]
    return np.concatenate([corners, np.stack([e, f, w], -1)])


def exact(row):
    e, f, w = (mpmath.mpf(float(x)) for x in row)
    radius = mpmath.sqrt(2 * ((e + 1) * mpmath.log(2) - mpmath.log(f)))
    return radius * mpmath.cos(2 * mpmath.pi * w), radius * mpmath.sin(2 * mpmath.pi * w)


@pytest.mark.parametrize("dtype", DTYPES)
def test_three_units_in_the_last_place(dtype):
    given = numbers(1500)
    got = rm.Kernel(noise.standard_normals, PAIRS, "normals", dtype)(given.astype(dtype))
    with mpmath.workprec(200):
        for row, pair in zip(given, got, strict=True):
            for z, x in zip(exact(row), pair, strict=True):
                unit = np.spacing(np.abs(np.asarray(float(z), dtype)))
                assert abs(z - mpmath.mpf(float(x))) <= 3 * mpmath.mpf(float(unit)), row


def test_nine_sigma_can_happen():
    """Words of zeros: leading zeros to the last bit of the second word."""
    pair = noise.standard_normals(philox.normal_numbers(np.zeros(4, np.uint64)))
    assert pair[0] == pytest.approx(np.sqrt(2 * 65 * np.log(2)), rel=1e-6)
    assert pair[0] > 9.49


# The same bits everywhere ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_with_and_without_fused_multiply_add(dtype):
    graph = trace(noise.standard_normals, PAIRS)
    given = numbers(300)
    ways = [graph_passes.prepared(graph, dtype, fma=fma) for fma in (True, False)]
    assert "fma" not in ways[0].count()
    one, other = (interpret(way, [given], dtype)[0] for way in ways)
    assert np.array_equal(one, other)


def test_only_operations_that_are_exactly_specified():
    used = trace(noise.standard_normals, PAIRS).count().keys()
    assert used <= {"add", "sub", "rounded_mul", "neg", "sqrt", "select", "lt"}


def test_same_bits_in_numpy_and_compiled():
    given = numbers(500)
    kernel = rm.Kernel(noise.standard_normals, PAIRS, "normals")
    expected = noise.standard_normals(given)
    assert np.array_equal(kernel(given), expected)
    assert np.array_equal([kernel(row) for row in given[:19]], expected[:19])
    assert np.array_equal(noise.standard_normals(given[7]), expected[7])


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_on_a_gpu(dtype):
    graph = graph_passes.prepared(trace(noise.standard_normals, PAIRS), dtype)
    code = ptx.write_ptx(graph, "normals", dtype, ("rows", "rows"))
    # the driver may fuse `mul` with `add`, but never `mul.rn`
    inexact = re.findall(r"^\s+((?:mul|add|sub|sqrt)\.\S*f(?:32|64))", code.text, re.M)
    assert inexact
    assert all(".rn." in instruction for instruction in inexact)
    given = numbers(100).astype(dtype)
    got = np.full((len(given), 2), np.nan, dtype)
    (entry,) = code.entries
    ptx_machine.run(code.text, entry, [given, 3, got, 2, len(given)], -(-len(given) // 32), 32)
    expected = rm.Kernel(noise.standard_normals, PAIRS, "normals", dtype)(given)
    assert np.array_equal(got, expected)


@needs.compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_in_c(dtype, tmp_path):
    kernel = rm.Kernel(noise.standard_normals, PAIRS, "normals", dtype)
    _, source, _ = kernel.save_c(tmp_path)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
    done = subprocess.run(
        [needs.CC, *strict, "-shared", "-fPIC", source, "-lm", "-o", tmp_path / "one.so"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    function = ctypes.CDLL(str(tmp_path / "one.so")).normals
    given = numbers(300).astype(dtype)
    got = np.full((len(given), 2), np.nan, dtype)
    for row, out in zip(given, got, strict=True):
        function(ctypes.c_void_p(row.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    assert np.array_equal(got, kernel(given))


def test_a_run_alone_and_in_any_batch():
    runs, ticks = np.arange(6)[:, None], np.arange(1000, 1005)
    many = noise.normals(42, runs, 9, ticks, 3)
    assert many.shape == (6, 5, 3)
    assert np.array_equal(noise.normals(42, 4, 9, 1003, 3), many[4, 3])
    assert np.array_equal(noise.normals(42, 4, 9, 1003, 2), many[4, 3, :2])


def test_bits_are_those_of_the_first_release():
    """A study is repeated years later: these bits never change."""
    got = noise.normals(2026, 3, noise.stream_number("imu.gyroscope"), 7, 4)
    assert [x.hex() for x in got.tolist()] == PINNED
    assert noise.words(1, 2, 3, 4, 5).tolist() == PINNED_WORDS


# Distribution: seeds are fixed, so these pass or fail the same way every time --------------------

N = 1_000_000


@pytest.fixture(scope="module")
def million():
    return noise.normals(1, np.arange(1000)[:, None], 5, np.arange(500), 2)


def test_moments(million):
    assert abs(million.mean()) < 4 / np.sqrt(N)
    assert abs(million.var() - 1) < 4 * np.sqrt(2 / N)
    assert abs(stats.skew(million.ravel())) < 4 * np.sqrt(6 / N)
    assert abs(stats.kurtosis(million.ravel())) < 4 * np.sqrt(24 / N)


def test_kolmogorov_smirnov(million):
    for z in (million.ravel(), million[..., 0].ravel(), million[..., 1].ravel()):
        assert stats.kstest(z, "norm").pvalue > 0.001


def test_tails(million):
    for bound in (3.0, 3.5, 4.0, 4.5):
        expected = N * 2 * stats.norm.sf(bound)
        assert abs((np.abs(million) > bound).sum() - expected) < 4 * np.sqrt(expected)


def test_neighbours_are_independent(million):
    """Runs, ticks, the two of a pair, streams, blocks and seeds: neither values nor squares."""
    runs, ticks, more = np.arange(1000)[:, None], np.arange(500), 4
    pairs = {
        "runs": (million[:-1], million[1:]),
        "ticks": (million[:, :-1], million[:, 1:]),
        "pair": (million[..., 0], million[..., 1]),
        "streams": (million, noise.normals(1, runs, 6, ticks, 2)),
        "seeds": (million, noise.normals(2, runs, 5, ticks, 2)),
        "blocks": (million, noise.normals(1, runs, 5, ticks, more)[..., 2:]),
    }
    for name, (a, b) in pairs.items():
        for f in (lambda x: x, np.square, np.abs):
            r = np.corrcoef(f(a).ravel(), f(b).ravel())[0, 1]
            assert abs(r) < 4 / np.sqrt(a.size), name


def test_uniforms():
    u = noise.uniforms(3, np.arange(1000)[:, None], 5, np.arange(250), 4)
    assert u.min() > 0
    assert u.max() < 1
    assert np.array_equal(u.astype(np.float32), u)
    assert stats.kstest(u.ravel(), "uniform").pvalue > 0.001
    counts, _ = np.histogram(u, bins=1024, range=(0, 1))
    assert stats.chisquare(counts).pvalue > 0.001


def test_no_two_places_share_words():
    """Seeds, runs, streams, ticks (also beyond 2³²) and blocks, all combined: 6,561 blocks."""
    few = np.array([0, 1, 2**16, 2**31, 2**32 - 1, 7, 8, 9, 10], np.uint64)
    ticks = np.array([0, 1, 2**16, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 2**47, 2**48 - 1], np.uint64)
    place = np.meshgrid(few, few, ticks, indexing="ij")
    drawn = [noise.words(int(seed), *place, 8) for seed in few]
    blocks = np.concatenate([d.reshape(-1, 4) for d in drawn])
    assert len(np.unique(blocks, axis=0)) == 2 * 9**4


# Arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": -1}, r"seed must be a whole number from 0 to 2\^64 - 1, not -1"),
        ({"seed": 2**64}, r"seed must be a whole number .*, not 18446744073709551616"),
        ({"run": [0, 2**32]}, r"run must be a whole number from 0 to 2\^32 - 1, not 4294967296"),
        ({"run": 1.0}, r"run must be .*, not 1.0 \(float64\)"),
        ({"run": True}, r"run must be .*, not True \(bool\)"),
        ({"stream": 2**32}, r"stream must be a whole number from 0 to 2\^32 - 1"),
        ({"tick": 2**48}, r"tick must be a whole number from 0 to 2\^48 - 1"),
        ({"tick": np.nan}, r"tick must be .*, not nan"),
        ({"count": -1}, "count must be a whole number from 0 to 131072, not -1"),
        ({"count": 2**17 + 1}, "count must be a whole number from 0 to 131072, not 131073"),
        ({"count": 2.0}, "count must be a whole number .*, not 2.0"),
    ],
)  # fmt: skip
def test_refusals(changed, message):
    place = {"seed": 1, "run": 2, "stream": 3, "tick": 4, "count": 5} | changed
    with pytest.raises(rm.errors.InvalidValue, match=message):
        noise.normals(**place)


@pytest.mark.parametrize("shape", [(), (2,), (5, 4)])
def test_numbers_come_in_threes(shape):
    with pytest.raises(rm.errors.ShapeError, match=r"must have shape \(..., 3 n\), .* not \("):
        noise.standard_normals(np.ones(shape))


def test_no_numbers_at_all():
    nothing = np.zeros((3, 0), int)
    for draw in (noise.normals, noise.uniforms, noise.words):
        assert draw(1, [0, 1], 2, 3, 0).shape == (2, 0)
        assert draw(1, nothing, 2, 3, 5).shape == (3, 0, 5)


def test_streams_by_name():
    names = [f"{c}.{s}" for c in ("imu", "gyro", "wheel") for s in range(1000)]
    assert len({noise.stream_number(n) for n in names}) == len(names)
    assert all(0 <= noise.stream_number(n) < 2**32 for n in names)
