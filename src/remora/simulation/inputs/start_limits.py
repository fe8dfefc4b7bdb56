"""Warning of joints that start beyond the limits of their range, such as degrees for radians."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import SimulationWarning
from remora.model.joints import coordinates, in_coordinates, kind
from remora.model.robot import Joint, Robot

#: Distance beyond a limit that is not worth a warning, relative to the limit's size.
CLOSE = 1e-6
#: Joints that a warning names.
NAMED = 5


class _Beyond(NamedTuple):
    """A coordinate that starts beyond a limit: how far, which limit, and in which run."""

    joint: str
    value: float
    side: str
    limit: float
    angular: bool
    run: int
    excess: float


def warn_of_starts_beyond_limits(robot: Robot, q: Array, stacklevel: int = 2) -> None:
    """Warn if joints start beyond their limits; of several runs the worst is named for each joint.

    Args:
        robot: the robot.
        q: configurations at the start, `(..., nq)`.
        stacklevel: of the warning, as seen from the caller.
    """
    if not np.size(q):  # no runs
        return
    rows = np.reshape(q, (-1, robot.nq))
    ends = np.stack([np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)])
    found = [_farthest(joint, rows) for joint in robot.joints if _may_be_beyond(joint, ends)]
    beyond = [own for own in found if own is not None]
    if not beyond:
        return
    told = "; ".join(_told(own, len(rows)) for own in beyond[:NAMED])
    more = f"; and {len(beyond) - NAMED} more" if len(beyond) > NAMED else ""
    warnings.warn(told + more, SimulationWarning, stacklevel=stacklevel + 1)


def _may_be_beyond(joint: Joint, ends: Array) -> bool:
    """Return whether a joint is beyond a limit for the least or the greatest coordinates of all."""
    if not in_coordinates(joint) or kind(joint).nv == 0:
        return False
    lower, upper = joint.limits.lower.tolist(), joint.limits.upper.tolist()
    own = coordinates(joint, ends).tolist()  # of a follower in either order
    return any(
        not low <= x <= high for row in own for low, x, high in zip(lower, row, upper, strict=True)
    )


def _farthest(joint: Joint, rows: Array) -> _Beyond | None:
    """Return the coordinate of a joint that is farthest beyond a limit, or None."""
    own = coordinates(joint, rows)
    found: _Beyond | None = None
    for side, limits, sign in (
        ("upper", joint.limits.upper, 1.0),
        ("lower", joint.limits.lower, -1.0),
    ):
        for k, limit in enumerate(np.atleast_1d(limits).tolist()):
            if not math.isfinite(limit):
                continue
            excess = sign * (own[:, k] - limit)
            run = int(np.argmax(np.nan_to_num(excess, nan=-np.inf)))
            most = float(excess[run])
            if most > CLOSE * (1.0 + abs(limit)) and (found is None or most > found.excess):
                angular = kind(joint).freedoms[k].angular
                found = _Beyond(joint.name, float(own[run, k]), side, limit, angular, run, most)
    return found


def _told(own: _Beyond, runs: int) -> str:
    unit = "rad" if own.angular else "m"
    where = f"run {own.run}: " if runs > 1 else ""
    text = (
        f"{where}joint {own.joint!r} starts at {own.value:.6g} {unit}, beyond its {own.side} limit "
        f"of {own.limit:.6g} {unit}"
    )
    if own.angular and abs(own.value) > 2.0 * math.pi:
        text += f"; {own.value:g} deg?"
    return text
