"""Where a run is: the state and what rounding left over of it."""

from __future__ import annotations

import numpy as np

from remora.algebra.namespace import Array, total_and_rest
from remora.dynamics.state_layout import WORKS, layout_of
from remora.model.robot import Robot
from remora.model.state import increment
from remora.simulation.recording.checkpoint import Checkpoint
from remora.simulation.robot_kernels import kernel


class RunState:
    """Where a run is: sums that lose nothing.

    What q, v and work cannot hold of a sum is carried to the next [K65].

    Attributes:
        t: time, s.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        work: of actuation, external wrenches and passive forces so far, J, `(3,)`.
        rest: what rounding left over of q, `(nq,)`.
    """

    def __init__(self, robot: Robot, t: float, q: Array, v: Array) -> None:
        """Start."""
        self.t, self.q, self.v, self.work = t, q.copy(), v.copy(), np.zeros(WORKS)
        self._layout = layout_of(robot)
        self._move = kernel(increment, robot, ("q", "dq"))
        self.forget()

    def forget(self) -> None:
        """Carry nothing on: the state was set from outside."""
        self.rest, self._rest_v = np.zeros_like(self.q), np.zeros_like(self.v)
        self._rest_work = np.zeros(WORKS)

    @property
    def y(self) -> Array:
        """The state of a step that begins here, `(2 nv + 3,)`."""
        return self._layout.at_start(self.v, self.work)

    def after(self, change: Array) -> tuple[Array, Array]:
        """Return q and v as they will be, to the last bit, when a change is added."""
        layout = self._layout
        moved = np.ascontiguousarray(change[layout.u])
        q, _ = total_and_rest(self.q, self._move(self.q, moved) + self.rest)
        v, _ = total_and_rest(self.v, change[layout.v] + self._rest_v)
        return q, v

    def add(self, t: float, change: Array) -> None:
        """Go on to t by what a step has changed."""
        layout = self._layout
        moved = np.ascontiguousarray(change[layout.u])
        self.q, self.rest = total_and_rest(self.q, self._move(self.q, moved) + self.rest)
        self.v, self._rest_v = total_and_rest(self.v, change[layout.v] + self._rest_v)
        self.work, self._rest_work = total_and_rest(
            self.work, change[layout.work] + self._rest_work
        )
        self.t = t

    def carried(self) -> tuple[Array, Array, Array]:
        """Return what rounding left over of q, v and work."""
        return self.rest, self._rest_v, self._rest_work

    def restore(self, mark: Checkpoint) -> None:
        """Be where a run was when it was marked."""
        self.t = mark.t
        self.q, self.v, self.work = mark.q.copy(), mark.v.copy(), mark.work.copy()
        self.rest, self._rest_v, self._rest_work = mark.carried
