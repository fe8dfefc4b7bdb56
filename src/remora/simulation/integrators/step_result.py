"""Result of one integrator step, and the error norm.

A step works in a chart about the configuration q at its start: y = [u, v, work], with
q(t) = integrate(q, u) and u = 0 at the start, so that every method for vector spaces becomes one
on the configuration manifold, a Lie group (Munthe-Kaas) [MK99].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array


class StepResult(NamedTuple):
    """One step from y at t, to be accepted or rejected.

    Attributes:
        change: y(t + h) - y(t), `(n,)`.
        error: error estimate in units of the tolerance; 0 if a method has no estimate, infinite if
            it found no solution.
        dense: θ `(m,)` in [0, 1] -> y(t + θh) - y(t), `(m, n)`.
        fastest: -> largest absolute rates of y found in the step, `(n,)`.
        rate: rate of y at the end, if the method has computed it.
    """

    change: Array
    error: float
    dense: Callable[[Array], Array]
    fastest: Callable[[], Array]
    rate: Array | None = None


def norm(error: Array, scale: Array) -> float:
    """Return the root mean square of an error in units of its scale."""
    ratio = error / scale
    return float(np.sqrt(ratio @ ratio / ratio.size))
