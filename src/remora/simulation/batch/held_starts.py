"""Joints that are held from the start of a phase: their state must be that of their motion."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.joints import kind
from remora.simulation.inputs.profiles import Motion
from remora.simulation.program.run_equations import RunEquations

#: Largest difference of position and speed, relative to max(1, value).
MISMATCH = {"float64": 1e-9, "float32": 1e-4}


def contradictions(equations: RunEquations, t: Array, q: Array, v: Array, dtype: str) -> Array:
    """Return which runs would have to jump to the motions of their held joints, `(runs,)`.

    Args:
        equations: equations of the phase.
        t: time of each run on the clock of the motions, `(runs,)`, s.
        q: configurations, `(runs, nq)`.
        v: velocities, `(runs, nv)`.
        dtype: precision of the batch.
    """
    found: Array = np.zeros(len(t), bool)
    limit = MISMATCH[dtype]
    for name, motion in equations.held.items():
        joint = equations.robot.joints[name]
        own_q, own_v = q[:, joint.q], v[:, joint.v]
        if motion is None:
            found |= np.max(np.abs(own_v), axis=-1, initial=0.0) > limit
            continue
        begins, speeds = _at(motion, t)
        off = np.max(np.abs(kind(joint).difference(own_q, begins)), axis=-1, initial=0.0)
        far = off > limit * np.maximum(1.0, np.max(np.abs(begins), axis=-1, initial=0.0))
        off = np.max(np.abs(own_v - speeds), axis=-1, initial=0.0)
        fast = off > limit * np.maximum(1.0, np.max(np.abs(speeds), axis=-1, initial=0.0))
        found |= far | fast
    return found


def placed(equations: RunEquations, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
    """Return states `(runs, nq)`, `(runs, nv)` with held joints where their motions begin.

    Args:
        equations: equations of the phase.
        t: time of each run on the clock of the motions, `(runs,)`, s.
        q: configurations, `(runs, nq)`.
        v: velocities, `(runs, nv)`.
    """
    q, v = q.copy(), v.copy()
    for name, motion in equations.held.items():
        joint = equations.robot.joints[name]
        if motion is None:
            v[:, joint.v] = 0.0
        elif len(t):
            q[:, joint.q], v[:, joint.v] = _at(motion, t)
    return q, v


def _at(motion: Motion, t: Array) -> tuple[Array, Array]:
    """Return coordinates and speeds of a motion at the time of each run."""
    times, which = np.unique(t, return_inverse=True)
    values: list[tuple[Any, ...]] = [motion.traced(np.asarray(time)) for time in times]
    begins, speeds = (np.stack([np.asarray(x[i], float) for x in values])[which.ravel()]
                      for i in range(2))  # fmt: skip
    return begins, speeds
