"""What several tests need: relative comparison, and evaluation of a function on symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi
import numpy as np


def assert_close(actual, expected, rtol=1e-12, scale=None):
    """Compare relative to the largest entry of the expected array (at least 1 by default)."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    size = scale if scale is not None else max(1.0, np.max(np.abs(expected), initial=0.0))
    error = np.max(np.abs(actual - expected), initial=0.0) / size
    assert error <= rtol, f"relative error {error:.3g} > {rtol:g}"


def traced(function: Callable, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run `function` on symbols, then put the numbers in: the traced meaning."""
    symbols = [casadi.SX.sym(f"a{i}", int(np.size(a))) for i, a in enumerate(arguments)]
    arrays = []
    for symbol, a in zip(symbols, arguments, strict=True):
        flat = np.empty(np.size(a), dtype=object)
        flat[:] = [symbol[i] for i in range(np.size(a))]
        arrays.append(flat.reshape(np.shape(a)))
    outputs = function(*arrays)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    flat_outputs = [casadi.vertcat(*np.asarray(o).reshape(-1).tolist()) for o in outputs]
    compiled = casadi.Function("f", symbols, flat_outputs)
    values = compiled.call([casadi.DM(np.reshape(a, -1)) for a in arguments])
    return [np.array(v).reshape(np.shape(o)) for v, o in zip(values, outputs, strict=True)]
