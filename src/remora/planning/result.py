"""The result of inverse kinematics: configuration, remaining errors, active limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from remora.algebra.array_ops import Array
from remora.planning.floating_path import JointPath

#: Below this ratio of singular values a direction of the tasks counts as singular.
SINGULAR = 1e-3
#: Below this ratio of |Jᵀe| to |J||e| no small motion of the joints comes closer.
STATIONARY = 1e-2


@dataclass(frozen=True)
class TargetError:
    """How far a target was missed.

    Attributes:
        position: distance, m; None if the target has no position.
        angle: angle, rad; None if the target has no orientation.
    """

    position: float | None
    angle: float | None

    def __str__(self) -> str:
        """Return distance and angle with units."""
        parts = [
            *([] if self.position is None else [f"{self.position:.3g} m"]),
            *([] if self.angle is None else [f"{np.degrees(self.angle):.3g}°"]),
        ]
        return ", ".join(parts) or "none"


@dataclass(frozen=True, eq=False)
class InverseKinematicsResult:
    """What `rm.inverse_kinematics` found.

    Attributes:
        q: the configuration, `(nq,)`: a solution, or the closest one found.
        success: whether every target is met within the tolerance.
        errors: what is left over, by target.
        iterations: number of steps, of all starts together.
        starts: number of starting points that were tried.
        joints_at_limits: names of the joints at an end of their range.
        limited_by: those of them that would have to move on to come closer.
        singular_value: smallest singular value of the targets' Jacobian relative to the largest.
        singular_direction: the rows' combination that the joints cannot move there, `(m,)`, if the
            Jacobian is nearly singular, else None.
        reason: what limits a result that is no solution, in words; empty for a solution.
        path: for a floating base, the straight joint path and the base's poses along it.
    """

    q: Array
    success: bool
    errors: dict[str, TargetError]
    iterations: int
    starts: int
    joints_at_limits: tuple[str, ...]
    limited_by: tuple[str, ...]
    singular_value: float
    singular_direction: Array | None
    reason: str = ""
    path: JointPath | None = None

    def __str__(self) -> str:
        """Return a report in plain words."""
        head = "solved" if self.success else "not reached; closest configuration found"
        starts = "1 start" if self.starts == 1 else f"{self.starts} starts"
        steps = "1 step" if self.iterations == 1 else f"{self.iterations} steps"
        lines = [f"{head} ({steps} from {starts})"]
        for name, error in self.errors.items():
            measured = error.position is not None or error.angle is not None
            lines.append(f"  {name}: off by {error}" if measured else f"  {name}: has no weight")
        lines += [f"  {self.reason}"] if self.reason else []
        others = [name for name in self.joints_at_limits if name not in self.limited_by]
        if others:
            lines.append(f"  at a limit: {', '.join(others)}")
        return "\n".join(lines)
