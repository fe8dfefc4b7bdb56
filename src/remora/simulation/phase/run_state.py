"""State of a run between calls of its program, with the terms of compensated (Kahan) sums."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.state_layout import WORKS, layout_of
from remora.model.robot import Robot
from remora.simulation.recording.checkpoint import Checkpoint

_NOTHING = np.zeros(0)


class RunState:
    """State of a run with compensated (Kahan) summation.

    The rounding errors of q, v, work and x are carried to the next sum [K65], by the program.

    Attributes:
        t: time, s.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        work: work of actuation, external wrenches and passive forces so far, J, `(3,)`.
        x: continuous states of the components, `(nx,)`.
        z: discrete states of the components, `(nz,)`.
        rest: compensation term of q, `(nq,)`.
    """

    def __init__(
        self, robot: Robot, t: float, q: Array, v: Array, x: Array = _NOTHING, z: Array = _NOTHING
    ) -> None:
        """Start with zero work and no compensation."""
        self.t, self.q, self.v, self.work = t, q.copy(), v.copy(), np.zeros(WORKS)
        self.x, self.z = x.copy(), z.copy()
        self._layout = layout_of(robot, x.size)
        self.forget()

    def forget(self) -> None:
        """Reset the compensation terms: the state was set externally."""
        self.rest, self._rest_v = np.zeros_like(self.q), np.zeros_like(self.v)
        self._rest_work, self._rest_x = np.zeros(WORKS), np.zeros_like(self.x)

    @property
    def y(self) -> Array:
        """The state y at the start of a step, `(2 nv + 3 + nx,)`."""
        return self._layout.at_start(self.v, self.work, self.x)

    def moved(self, t: float, q: Array, w: Array, rest_q: Array, rest_w: Array) -> None:
        """Set the state after steps that were made elsewhere; w is [v, work, x]."""
        nv, works = self._layout.nv, self._layout.nv + WORKS
        self.t, self.q, self.rest = t, q, rest_q
        self.v, self.work, self.x = w[:nv], w[nv:works], w[works:]
        self._rest_v, self._rest_work = rest_w[:nv], rest_w[nv:works]
        self._rest_x = rest_w[works:]

    def carried(self) -> tuple[Array, Array, Array, Array]:
        """Return the compensation terms of q, v, work and x."""
        return self.rest, self._rest_v, self._rest_work, self._rest_x

    def restore(self, mark: Checkpoint) -> None:
        """Restore the state of a checkpoint."""
        self.t = mark.t
        self.q, self.v, self.work = mark.q.copy(), mark.v.copy(), mark.work.copy()
        self.x, self.z = mark.x.copy(), mark.z.copy()
        self.rest, self._rest_v, self._rest_work, self._rest_x = mark.carried
