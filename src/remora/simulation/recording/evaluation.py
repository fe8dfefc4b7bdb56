"""Evaluation of library functions at all samples of a run, by kernels or with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.constraints.loop_kinematics import constraint_residual
from remora.dynamics.constraints.reactions import constraint_wrenches
from remora.dynamics.kernels.compiled import FUNCTIONS, CompiledRobot
from remora.dynamics.kernels.size_policy import compiles_quickly
from remora.dynamics.kernels.tree_recursions import RECURSIONS
from remora.model.robot import Robot

#: Block size in samples for the evaluation of larger robots.
ROWS = 1024


class NumpyRobot(NamedTuple):
    """A robot whose functions are evaluated with NumPy: too short-lived to be compiled.

    Attributes:
        robot: the robot, with numbers that a constraint took over when it latched.
    """

    robot: Robot


EvaluatedRobot: TypeAlias = CompiledRobot | NumpyRobot
#: Functions that are evaluated with NumPy.
UNCOMPILED: dict[str, Callable[..., Array]] = {
    "constraint_residual": constraint_residual,
    "constraint_wrenches": constraint_wrenches,
}


def evaluated(fast: EvaluatedRobot, name: str, *arrays: Array | None, **static: Any) -> Array:
    """Evaluate a library function at all samples, `(n, ...)`.

    With its kernel; for robots too large for one, with NumPy in blocks of samples. As in a kernel,
    a non-finite sample gives NaN. Arrays are `(n, ...)`, None if omitted.
    """
    robot = fast.robot
    quick = compiles_quickly(robot) or (name in RECURSIONS and not static)
    if isinstance(fast, CompiledRobot) and name in FUNCTIONS and quick:
        return getattr(fast, name)(*arrays, **static)
    given = [a for a in arrays if a is not None]
    fine = np.all([np.isfinite(a).all(axis=tuple(range(1, a.ndim))) for a in given], axis=0)
    rows = np.flatnonzero(fine)
    function = FUNCTIONS[name] if name in FUNCTIONS else UNCOMPILED[name]
    parts = [
        function(robot, *(None if a is None else a[block] for a in arrays), **static)
        for block in np.array_split(rows, max(1, -(-len(rows) // ROWS)))
    ]
    result = np.full((len(fine), *parts[0].shape[1:]), np.nan)
    result[rows] = np.concatenate(parts)
    return result
