"""Sine, cosine and the angle of a point of our own, against mpmath."""

import mpmath
import numpy as np
import pytest

import remora as rm
from remora.codegen.ir.graph import Graph, Signature


def kernel(op, dtype, arguments=1):
    graph = Graph(tuple(Signature(f"x{k}", ()) for k in range(arguments)), (Signature("out", ()),))
    graph.results = [[graph.op(op, *(graph.input(k, 0) for k in range(arguments)))]]
    return rm.Kernel.from_graph(graph, op, dtype)


def ulps(got, exact, dtype):
    """Distance in units of the last place of the exact value."""
    result = []
    with mpmath.workprec(200):
        for g, e in zip(got, exact, strict=True):
            unit = np.spacing(np.abs(np.asarray(float(e), dtype=dtype)))
            result.append(abs(float((mpmath.mpf(float(g)) - e) / mpmath.mpf(float(unit)))))
    return np.array(result)


def angles(dtype):
    rng = np.random.default_rng(0)
    near = np.pi / 2 * np.arange(-60000, 60000, 61)  # where the reduced angle almost vanishes
    x = np.concatenate(
        [
            rng.uniform(-1e5, 1e5, 4000), rng.uniform(-1, 1, 2000), rng.uniform(-10, 10, 2000),
            near, np.nextafter(near, 0), [0.0, float(np.finfo(dtype).tiny), -1e-8, 1e5, -1e5],
        ]
    )  # fmt: skip
    return x.astype(dtype)


@pytest.mark.parametrize("op", ["sin", "cos"])
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1.0), ("float32", 1.5)])
def test_one_unit_in_the_last_place_over_a_hundred_thousand_radians(op, dtype, bound):
    x = angles(dtype)
    with mpmath.workprec(200):
        exact = [getattr(mpmath, op)(mpmath.mpf(float(a))) for a in x]
    error = ulps(kernel(op, dtype)(x), exact, dtype)
    assert error.max() <= bound, (error.max(), x[error.argmax()])


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 2.5), ("float32", 2.5)])
def test_angle_of_a_point(dtype, bound):
    rng = np.random.default_rng(1)
    y, x = (rng.normal(size=(2, 4000)) * 10.0 ** rng.uniform(-6, 6, size=(2, 4000))).astype(dtype)
    with mpmath.workprec(200):
        exact = [
            mpmath.atan2(mpmath.mpf(float(a)), mpmath.mpf(float(b)))
            for a, b in zip(y, x, strict=True)
        ]
    error = ulps(kernel("atan2", dtype, 2)(y, x), exact, dtype)
    assert error.max() <= bound


def test_angle_on_the_axes():
    y = np.array([0.0, 0.0, 0.0, 1.0, -1.0, 1.0, -1.0])
    x = np.array([0.0, 1.0, -1.0, 0.0, 0.0, -1.0, -1.0])
    np.testing.assert_allclose(kernel("atan2", "float64", 2)(y, x), np.arctan2(y, x), rtol=3e-16)
