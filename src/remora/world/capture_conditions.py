"""Capture conditions: a grapple close to its fixture, aligned with it, and slow."""

from __future__ import annotations

import math

import numpy as np

from remora.algebra import pose, vector
from remora.algebra.array_ops import Array, asarray
from remora.algebra.selections import larger
from remora.errors import InvalidValue
from remora.model.arguments import at_least
from remora.world.relative_motion import RelativeMotion


def reach_margin(motion: RelativeMotion, distance: Array | float) -> Array:
    """Return |p|²/d² - 1, `(...)`: negative where the fixture is within reach."""
    p, limit = motion.position, asarray(distance)[..., None]
    return (vector.dot(p, p) / (limit * limit) - 1.0)[..., 0]


def capture_margin(
    motion: RelativeMotion, distance: Array | float, angle: Array | float, speed: Array | float
) -> Array:
    """Return a number that is negative where all conditions hold, `(...)`.

    The largest of |p|²/d² - 1, (1 - cos φ)/(1 - cos φ_max) - 1 and |ṗ|²/s² - 1.

    Args:
        motion: of the fixture seen from the grapple.
        distance: largest distance of both origins, m.
        angle: largest angle between both frames, rad, up to π.
        speed: largest relative speed of both origins, m/s.
    """
    vec = pose.rotation(motion.pose)[..., 1:]
    sine = np.sin(0.5 * asarray(angle)[..., None])
    limit = asarray(speed)[..., None]
    turned = vector.dot(vec, vec) / (sine * sine) - 1.0
    fast = vector.dot(motion.velocity, motion.velocity) / (limit * limit) - 1.0
    near = reach_margin(motion, distance)[..., None]
    return larger(larger(near, turned), fast)[..., 0]


def check_limits(
    what: str, distance: float, angle: float, speed: float
) -> tuple[float, float, float]:
    """Return the limits of a capture as numbers, or raise."""
    found = (
        at_least(f"distance of {what}", distance, 0.0, above=True),
        at_least(f"angle of {what}", angle, 0.0, above=True),
        at_least(f"speed of {what}", speed, 0.0, above=True),
    )
    if found[1] > math.pi:
        raise InvalidValue(f"angle of {what} must be at most π rad, not {angle!r}")
    return found
