"""The layout of the state vector that integrators use: which slice holds which part.

In a step about the configuration q₀ the state is the vector y = [u, v, work, extra]: the tangent
coordinates u of q = integrate(q₀, u), the velocity, the work done so far by the actuation, by
external wrenches and by passive forces, and additional states of components.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.robot import Robot

#: Number of work states: actuation, external wrenches, passive forces.
WORKS = 3


class StateLayout(NamedTuple):
    """The slices of y.

    Attributes:
        nv: number of speeds of the robot.
        extra_size: number of additional states.
    """

    nv: int
    extra_size: int = 0

    @property
    def size(self) -> int:
        """Number of elements of y."""
        return 2 * self.nv + WORKS + self.extra_size

    @property
    def u(self) -> slice:
        """The tangent coordinates."""
        return slice(0, self.nv)

    @property
    def v(self) -> slice:
        """The velocity."""
        return slice(self.nv, 2 * self.nv)

    @property
    def motion(self) -> slice:
        """The tangent coordinates and the velocity."""
        return slice(0, 2 * self.nv)

    @property
    def work(self) -> slice:
        """The work done so far."""
        return slice(2 * self.nv, 2 * self.nv + WORKS)

    @property
    def extra(self) -> slice:
        """The additional states."""
        return slice(2 * self.nv + WORKS, self.size)

    @property
    def after_u(self) -> slice:
        """Everything but the tangent coordinates."""
        return slice(self.nv, self.size)

    def join(self, u: Array, v: Array, work: Array, extra: Array | None = None) -> Array:
        """Return y `(size,)` assembled from its parts."""
        rest = np.zeros(self.extra_size) if extra is None else extra
        return np.concatenate([u, v, work, rest])

    def at_start(self, v: Array, work: Array | None = None, extra: Array | None = None) -> Array:
        """Return y at the start of a step, where u is zero."""
        return self.join(np.zeros(self.nv), v, np.zeros(WORKS) if work is None else work, extra)


def layout_of(robot: Robot, extra_size: int = 0) -> StateLayout:
    """Return the layout of the state of a robot."""
    return StateLayout(robot.nv, extra_size)
