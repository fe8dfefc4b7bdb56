"""State of a run, advanced by compensated (Kahan) summation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from remora.algebra.array_ops import Array, total_and_rest
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.state_layout import WORKS, layout_of
from remora.model.robot import Robot
from remora.model.state import increment
from remora.simulation.recording.checkpoint import Checkpoint

_NOTHING = np.zeros(0)
#: (t, q, rest of q, v, rest of v) -> the same at the end of a step: held joints in their places,
#: constraints satisfied.
Finish = Callable[[float, Array, Array, Array, Array], tuple[Array, Array, Array, Array]]


class RunState:
    """State of a run with compensated (Kahan) summation.

    The rounding errors of q, v, work and x are carried to the next sum [K65].

    Attributes:
        t: time, s.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        work: work of actuation, external wrenches and passive forces so far, J, `(3,)`.
        x: continuous states of the components, `(nx,)`.
        z: discrete states of the components, `(nz,)`.
        rest: compensation term of q, `(nq,)`.
        finish: what is done at the end of a step; None: nothing.
    """

    def __init__(
        self, robot: Robot, t: float, q: Array, v: Array, x: Array = _NOTHING, z: Array = _NOTHING
    ) -> None:
        """Start with zero work and no compensation."""
        self.t, self.q, self.v, self.work = t, q.copy(), v.copy(), np.zeros(WORKS)
        self.x, self.z = x.copy(), z.copy()
        self.finish: Finish | None = None
        self._layout = layout_of(robot, x.size)
        self._move = kernel(increment, robot, ("q", "dq"))
        self.forget()

    def forget(self) -> None:
        """Reset the compensation terms: the state was set externally."""
        self.rest, self._rest_v = np.zeros_like(self.q), np.zeros_like(self.v)
        self._rest_work, self._rest_x = np.zeros(WORKS), np.zeros_like(self.x)

    def jump(self, q: Array, v: Array, x: Array, z: Array, work: Array) -> None:
        """Set the state to another one at the same time."""
        self.q, self.v, self.x, self.z, self.work = q, v, x, z, work
        self.forget()

    @property
    def y(self) -> Array:
        """The state y at the start of a step, `(2 nv + 3 + nx,)`."""
        return self._layout.at_start(self.v, self.work, self.x)

    def after(self, t: float, change: Array) -> tuple[Array, Array, Array]:
        """Return q, v and x after the change of a step to t is added, exact to the last bit."""
        q, _, v, _ = self._moved(t, change)
        x, _ = total_and_rest(self.x, change[self._layout.extra] + self._rest_x)
        return q, v, x

    def _moved(self, t: float, change: Array) -> tuple[Array, Array, Array, Array]:
        """Return q and v at the end of a step, each with its compensation term."""
        layout = self._layout
        moved = np.ascontiguousarray(change[layout.u])
        q, rest = total_and_rest(self.q, self._move(self.q, moved) + self.rest)
        v, rest_v = total_and_rest(self.v, change[layout.v] + self._rest_v)
        if self.finish is None:
            return q, rest, v, rest_v
        return self.finish(t, q, rest, v, rest_v)

    def add(self, t: float, change: Array) -> None:
        """Advance to t by the change of a step."""
        layout = self._layout
        self.q, self.rest, self.v, self._rest_v = self._moved(t, change)
        self.work, self._rest_work = total_and_rest(
            self.work, change[layout.work] + self._rest_work
        )
        if layout.extra_size:
            self.x, self._rest_x = total_and_rest(self.x, change[layout.extra] + self._rest_x)
        self.t = t

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
