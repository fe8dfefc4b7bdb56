"""What one step of an integrator gives, and the norm its error is measured in.

A step works in a chart about the configuration q at its start: y = [u, v, work], with
q(t) = integrate(q, u) and u = 0 at the start, so that every method for plain vectors becomes one
on the configuration manifold [MK99].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from remora.algebra.namespace import Array


class StepResult(NamedTuple):
    """One step from y at t, to be accepted or not.

    Attributes:
        change: y(t + h) - y(t), `(n,)`.
        error: the estimated error in units of what is allowed; 0 where a method has no estimate,
            infinite where it found no solution.
        dense: θ `(m,)` in [0, 1] -> y(t + θh) - y(t), `(m, n)`.
        fastest: -> the largest rates of y, without signs, that the step has met, `(n,)`.
        rate: the rate of y at the end, where the method has found it.
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
