"""Several accepted steps that were made in machine code, and samples within them."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.state_layout import StateLayout
from remora.simulation.integrators.step_control import CLOSE


class Samples(NamedTuple):
    """States at several times.

    Attributes:
        t: `(n,)`, s.
        q: `(n, nq)`.
        v: `(n, nv)`.
        work: `(n, 3)`, J.
        x: `(n, nx)`.
    """

    t: Array
    q: Array
    v: Array
    work: Array
    x: Array


class StepBlock(NamedTuple):
    """Consecutive accepted steps.

    Attributes:
        t: start of the first step, and the ends of all, `(n + 1,)`, s.
        q: configuration at these times, `(n + 1, nq)`.
        w: [v, work, x] at these times, `(n + 1, nv + 3 + nx)`.
        dense: coefficients of the dense output of each step, see `tableaus`, `(n, r, ny)`; None if
            they were not recorded.
        loads: loads and signals at the ends of the steps by name, see
            `AdvanceEquations.load_shapes`; empty if dense output was recorded instead.
        layout: layout of y.
        place: (q, u) -> configurations at the tangent vectors u from q, in batches.
    """

    t: Array
    q: Array
    w: Array
    dense: Array | None
    loads: Mapping[str, Array]
    layout: StateLayout
    place: Callable[[Array, Array], Array]

    def ends(self) -> Samples:
        """Return the states at the ends of all steps."""
        return self._samples(self.t[1:], self.q[1:], self.w[1:])

    def count_until_end(self, times: Array) -> int:
        """Return how many of these ascending times are not after the last step."""
        end = self.t[-1]
        return bisect.bisect_right(times, end + CLOSE * np.spacing(abs(end)))

    def at(self, times: Array) -> Samples:
        """Return the states at ascending times within the steps, by dense output.

        A time that is a step's end up to rounding gives the state there.

        Args:
            times: `(m,)`, s.
        """
        ends = self.t[1:]
        close = CLOSE * np.spacing(np.abs(ends))
        step = np.searchsorted(ends + close, times, side="left")
        times = np.minimum(times, ends[step])
        q, w = self.q[step + 1].copy(), self.w[step + 1].copy()
        inner = np.flatnonzero(times < ends[step] - close[step])
        if inner.size:
            assert self.dense is not None
            k, nv = step[inner], self.layout.nv
            start = self.t[k]
            theta = ((times[inner] - start) / (ends[k] - start))[:, None]
            change = np.zeros((inner.size, self.layout.size))
            for i in reversed(range(self.dense.shape[1])):
                change = (self.dense[k, i] + change) * (theta if i % 2 == 0 else 1.0 - theta)
            q[inner] = self.place(self.q[k], np.ascontiguousarray(change[:, :nv]))
            w[inner] = self.w[k] + change[:, nv:]
        return self._samples(times, q, w)

    def _samples(self, t: Array, q: Array, w: Array) -> Samples:
        nv, works = self.layout.nv, self.layout.work.stop - self.layout.work.start
        return Samples(t, q, w[:, :nv], w[:, nv : nv + works], w[:, nv + works :])
