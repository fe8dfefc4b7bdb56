"""State of a run, advanced by compensated (Kahan) summation."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array, total_and_rest
from remora.dynamics.state_layout import WORKS, layout_of
from remora.model.robot import Robot
from remora.model.state import increment
from remora.simulation.recording.checkpoint import Checkpoint
from remora.simulation.robot_kernels import kernel


class RunState:
    """State of a run with compensated (Kahan) summation.

    The rounding errors of q, v and work are carried to the next sum [K65].

    Attributes:
        t: time, s.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        work: work of actuation, external wrenches and passive forces so far, J, `(3,)`.
        rest: compensation term of q, `(nq,)`.
    """

    def __init__(self, robot: Robot, t: float, q: Array, v: Array) -> None:
        """Start with zero work and no compensation."""
        self.t, self.q, self.v, self.work = t, q.copy(), v.copy(), np.zeros(WORKS)
        self._layout = layout_of(robot)
        self._move = kernel(increment, robot, ("q", "dq"))
        self.forget()

    def forget(self) -> None:
        """Reset the compensation terms: the state was set externally."""
        self.rest, self._rest_v = np.zeros_like(self.q), np.zeros_like(self.v)
        self._rest_work = np.zeros(WORKS)

    @property
    def y(self) -> Array:
        """The state y at the start of a step, `(2 nv + 3,)`."""
        return self._layout.at_start(self.v, self.work)

    def after(self, change: Array) -> tuple[Array, Array]:
        """Return q and v after a change is added, exact to the last bit."""
        layout = self._layout
        moved = np.ascontiguousarray(change[layout.u])
        q, _ = total_and_rest(self.q, self._move(self.q, moved) + self.rest)
        v, _ = total_and_rest(self.v, change[layout.v] + self._rest_v)
        return q, v

    def add(self, t: float, change: Array) -> None:
        """Advance to t by the change of a step."""
        layout = self._layout
        moved = np.ascontiguousarray(change[layout.u])
        self.q, self.rest = total_and_rest(self.q, self._move(self.q, moved) + self.rest)
        self.v, self._rest_v = total_and_rest(self.v, change[layout.v] + self._rest_v)
        self.work, self._rest_work = total_and_rest(
            self.work, change[layout.work] + self._rest_work
        )
        self.t = t

    def carried(self) -> tuple[Array, Array, Array]:
        """Return the compensation terms of q, v and work."""
        return self.rest, self._rest_v, self._rest_work

    def restore(self, mark: Checkpoint) -> None:
        """Restore the state of a checkpoint."""
        self.t = mark.t
        self.q, self.v, self.work = mark.q.copy(), mark.v.copy(), mark.work.copy()
        self.rest, self._rest_v, self._rest_work = mark.carried
