"""Sample lookup and interpolation of configurations at arbitrary times of a run."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.robot import Robot
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
    return interpolated(run.robot, run.t, run.q, when)


def interpolated(robot: Robot, t: Array, samples: Array, when: Array) -> Array:
    """Return q `(m, nq)` at times `(m,)` by geodesic interpolation of `(n, nq)` at t `(n,)`."""
    i = sample_before(t, when)
    j = np.minimum(i + 1, len(t) - 1)
    gap = t[j] - t[i]
    q = samples[i]
    between = (gap > CLOSE) & (when > t[i])
    if np.any(between):
        way = difference(robot, q[between], samples[j][between])
        part = (when - t[i])[between] / gap[between]
        q = q.copy()
        q[between] = integrate(robot, samples[i][between], part[:, None] * way)
    return q
