"""A run at any times: which samples are near, and configurations between them."""

from __future__ import annotations

import numpy as np

from remora.algebra.namespace import Array
from remora.model.state import difference, integrate
from remora.simulation.recording.recording import Recording

#: Samples closer than this are not looked between, s.
CLOSE = 1.0 / 60.0


def sample_before(t: Array, when: Array | float) -> Array:
    """Return the indices of the samples at the times `when`, or before; never negative."""
    return np.maximum(np.searchsorted(t, when, side="right") - 1, 0)


def configurations(run: Recording, when: Array) -> Array:
    """Return q `(m, nq)` at times `(m,)` within the run, between samples by the shortest way.

    For pictures: `Recording.at` is the smooth one, and needs accelerations.
    """
    i = sample_before(run.t, when)
    j = np.minimum(i + 1, len(run) - 1)
    gap = run.t[j] - run.t[i]
    q = run.q[i]
    between = (gap > CLOSE) & (when > run.t[i])
    if np.any(between):
        way = difference(run.robot, q[between], run.q[j][between])
        part = (when - run.t[i])[between] / gap[between]
        q = q.copy()
        q[between] = integrate(run.robot, run.q[i][between], part[:, None] * way)
    return q
