"""Values at two places, as the first value and the change to the second, without cancellation.

A function that is written on such pairs returns f(a) and f(a + δ) - f(a), the latter to a relative
accuracy of rounding however small δ is: changes of sums and products follow from changes, never
from a difference of two nearly equal values.
"""

from __future__ import annotations

from dataclasses import dataclass

from remora.algebra.array_ops import Array, asarray, sqrt
from remora.algebra.vector import dot


@dataclass(frozen=True, eq=False)
class Pair:
    """A value `start` at the first place; at the second it is `start + change`.

    Attributes:
        start: at the first place, any shape.
        change: from the first place to the second, the same shape.
    """

    start: Array
    change: Array

    @property
    def end(self) -> Array:
        """The value at the second place."""
        return self.start + self.change

    def __add__(self, other: Pair) -> Pair:
        """Return the sum."""
        return Pair(self.start + other.start, self.change + other.change)

    def __sub__(self, other: Pair) -> Pair:
        """Return the difference."""
        return Pair(self.start - other.start, self.change - other.change)

    def __mul__(self, other: Pair) -> Pair:
        """Return the product: its change is a δb + δa b, with b at the second place."""
        change = self.start * other.change + self.change * other.end
        return Pair(self.start * other.start, change)

    def scaled(self, factor: Array | float) -> Pair:
        """Return the product with a factor that is the same at both places."""
        factor = asarray(factor)  # a parameter may be one symbol
        return Pair(factor * self.start, factor * self.change)


def same(value: Array | float) -> Pair:
    """Return a value that is the same at both places."""
    x = asarray(value)
    return Pair(x, 0.0 * x)


def inverse_norm(x: Pair) -> Pair:
    """Return 1/‖x‖ of vectors, `(..., n) -> (..., 1)`, with Battin's q = ‖x + δ‖²/‖x‖² - 1.

    1/‖x + δ‖ - 1/‖x‖ = -(1/‖x‖) q / (√(1 + q) (1 + √(1 + q))), q = δ·(2x + δ)/‖x‖²  [Bat99, ch. 8].
    """
    square = dot(x.start, x.start)
    start = 1.0 / sqrt(square)
    q = dot(x.change, 2.0 * x.start + x.change) / square
    root = sqrt(1.0 + q)
    return Pair(start, -start * q / (root * (1.0 + root)))
