"""Sample lookup and interpolation of configurations at arbitrary times of a run."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.state import difference, integrate
from remora.simulation.recording.recording import Recording

#: Samples closer together than this are not interpolated, s.
CLOSE = 1.0 / 60.0


def sample_before(t: Array, when: Array | float) -> Array:
    """Return the index of the last sample at or before each time in `when`; at least 0."""
    return np.maximum(np.searchsorted(t, when, side="right") - 1, 0)


def configurations(run: Recording, when: Array) -> Array:
    """Return q `(m, nq)` at times `(m,)` within the run, by geodesic interpolation of the samples.

    For display; `Recording.at` is the smooth dense output and needs accelerations.
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
