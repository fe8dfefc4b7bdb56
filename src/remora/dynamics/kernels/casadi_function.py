"""`rm.dynamics.casadi_function`: a function of a robot as a CasADi function, for optimization.

    f = rm.dynamics.casadi_function(rm.forward_dynamics, robot)
    f(q, v, tau), f.jacobian(), casadi.jacobian(f(q, v, tau), q)

The equations are traced as for a kernel, so that CasADi differentiates them exactly, to any order.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, asarray, casadi
from remora.codegen.ir.graph import Signature
from remora.codegen.ir.trace import returned_arrays
from remora.codegen.ir.trace_errors import explained
from remora.dynamics.kernels.compile_options import check_options
from remora.dynamics.kernels.compiled import specialized
from remora.dynamics.refusals import refuse_function
from remora.errors import RemoraError
from remora.model.robot import Robot


def casadi_function(
    function: Callable[..., Any],
    robot: Robot,
    *,
    arguments: Sequence[str] | None = None,
    fixed: Mapping[str, Any] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    parameters: Sequence[str] = (),
) -> Any:
    """Return a function as a `casadi.Function`, whose derivatives of any order are exact.

    It takes numbers, `SX` and `MX`, and is evaluated by CasADi's virtual machine; `rm.compile`
    makes machine code. An array `(n,)` is a column n x 1 there, `(m, n)` a matrix, and an array of
    more axes a matrix whose rows are those of its first axis, written out in order.

    Derivatives are by components: those with respect to a quaternion are not along its tangent. In
    an optimization, move a pose with `rm.integrate` from a reference, or keep it a unit by steps
    that do.

    Args:
        function: a function of the library, or your own `f(robot, q, ...)` written on arrays.
        robot: the robot whose numbers are compiled in.
        arguments: names of the arguments, where the optional ones are wanted too.
        fixed: values of parameters to compile in: `{"frame": "tool"}`.
        shapes: of arguments whose names say nothing: `{"x": (3,)}`.
        parameters: numbers of the robot left as arguments, after the others, as of `rm.compile`:
            the optimization may choose them.

    Raises:
        RemoraError: as `rm.compile`.
    """
    if isinstance(function, Robot) or not callable(function):
        what = "a robot" if isinstance(function, Robot) else type(function).__name__  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RemoraError(f"casadi_function takes a function first, not {what}")
    if not isinstance(robot, Robot):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RemoraError("the robot is missing: rm.dynamics.casadi_function(function, robot)")
    check_options(function, robot, arguments, fixed, shapes, parameters)
    if not parameters:
        refuse_function(robot, function)
    on_arrays, inputs = specialized(function, robot, arguments, fixed or {}, shapes, parameters)
    symbols = [casadi.SX.sym(s.name, *_size(s.shape)) for s in inputs]
    arrays = [_array(x, s) for x, s in zip(symbols, inputs, strict=True)]
    with warnings.catch_warnings(), explained():
        # NumPy functions on a single symbol return a symbol, which is intended
        warnings.filterwarnings("ignore", "\\s*casadi: a numpy function", FutureWarning)
        returned: Any = on_arrays(*arrays)
    results = [_matrix(x) for x in returned_arrays(returned)]
    names = ["out"] if len(results) == 1 else [f"out{i}" for i in range(len(results))]
    called = re.sub(r"\W|_(?=_)", "", on_arrays.name)
    made = casadi.Function(
        called if re.match("[A-Za-z]", called) else "f",
        symbols,
        casadi.cse(results),
        [s.name.replace(".", "_") for s in inputs],
        names,
    )
    if any(map(math.isnan, _constants(made))):
        raise RemoraError(
            f"{on_arrays.name} does not keep its symbols: one of its numbers is NaN for all "
            "arguments; use NumPy's functions or rm.algebra (float() of a symbol is NaN)"
        )
    return made


def _constants(made: Any) -> Iterator[float]:
    for k in range(made.n_instructions()):
        if made.instruction_id(k) == casadi.OP_CONST:
            yield made.instruction_constant(k)


def _size(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns of an array's matrix."""
    return (shape[0], math.prod(shape[1:])) if shape else (1, 1)


def _array(matrix: Any, signature: Signature) -> Array:
    """Return the symbols of a matrix as an array."""
    if not signature.size:
        return np.zeros(signature.shape)
    rows, columns = matrix.shape
    flat = casadi.vertcat(*(matrix[i, j] for i in range(rows) for j in range(columns)))
    return asarray(flat).reshape(signature.shape)


def _matrix(array: Array) -> Any:
    """Return an array of symbols or numbers as a dense matrix."""
    rows, columns = _size(array.shape)
    elements = array.reshape(-1).tolist()
    column = casadi.vertcat(*(casadi.SX(e) for e in elements)) if elements else casadi.SX(0, 1)
    return casadi.densify(casadi.reshape(column, columns, rows).T)
