"""What several tests need: relative comparison, and evaluation of a function on symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi
import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import quaternion
from remora.algebra.array_ops import asarray
from remora.model.joints import kind


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


def configuration_rate(robot, q, v):
    """dq/dt for a velocity v, on any scalar: v itself, or half a product [VT18, eqs. 5, 15]."""
    parts = []
    for joint in robot.joints:
        own, speed = q[..., joint.q], v[..., joint.v]
        if joint.kind == "free":
            parts.append(0.5 * dq.mul(own, dq.pure(speed)))
        elif joint.kind == "spherical":
            parts.append(0.5 * quaternion.mul(own, quaternion.pure(speed)))
        elif kind(joint).nq:
            parts.append(speed)
    return np.concatenate(parts)


def rate_along_motion(robot, function, q, v, vdot):
    """Exact time derivative of function(q, v) along q̇(q, v) and vdot, by CasADi."""
    Q, V = casadi.SX.sym("q", robot.nq), casadi.SX.sym("v", robot.nv)
    qs, vs = asarray(Q).reshape(-1), asarray(V).reshape(-1)
    result = np.asarray(function(qs, vs))
    flat = casadi.vertcat(*result.reshape(-1).tolist())
    direction = casadi.vertcat(*configuration_rate(robot, qs, vs).tolist(), casadi.DM(vdot))
    derivative = casadi.jtimes(flat, casadi.vertcat(Q, V), direction)
    value = casadi.Function("d", [Q, V], [derivative])(q, v)
    return np.array(value).reshape(result.shape)
