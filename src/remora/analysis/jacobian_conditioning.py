"""Conditioning along a run or a planned path: distances to singularities and limits.

The singular values are those of S J, J the Jacobian of the frame's twist by what moves it (see
`arm`) and S the chosen subspace. The smallest one is the distance of S J to the nearest matrix of
lower rank in the 2-norm [GV13, section 2.4.3]. Directions in which the arm cannot move at all, in
no configuration, such as those out of the plane of a planar arm, are not counted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from remora.algebra import singular_values
from remora.algebra.array_ops import Array, ArrayLike
from remora.analysis.arm import arm_speeds, check_base
from remora.analysis.manipulability import characteristic_length, ellipsoid_matrix
from remora.analysis.sampling import joint_ranges
from remora.dynamics.refusals import without_constraints
from remora.errors import InvalidValue, ShapeError
from remora.model.joints import in_coordinates, kind
from remora.model.numbers import finite
from remora.model.robot import FrameLike, Robot
from remora.model.state import configuration, integrate, neutral
from remora.model.takes_robot import takes_robot

#: A condition number above this is near a singularity.
SINGULAR = 50.0
#: A joint is near a limit within this part of its range.
NEAR = 0.02
#: A singular value below this part of the largest is zero, in every one of the random poses.
_ZERO, _POSES = 1e-9, 8
#: Largest positions of these poses where joints have no limits, rad or m.
_FAR = 10.0
#: Step of the differences that the distance in joint space is found by, rad or m.
_STEP = 1e-6


@dataclass(frozen=True, eq=False)
class Conditioning:
    """Singular values and distances along a path of n configurations.

    Attributes:
        t: times, `(n,)`, s, or the numbers of the configurations.
        singular_values: `(n, r)`, descending; r is the rank that S J has in general.
        joint_distance: estimate of how far the joints are from a singularity, `(n,)`, rad (or m):
            σ_r over the norm of its gradient by the joints' positions.
        limit_distance: by coordinate with a limit, distance to the nearer one, `(n, m)`, rad or m;
            negative beyond it.
        limit_share: the same as a part of the range, `(n, m)`; of coordinates with one limit NaN.
        joints: name of the joint of each of these m coordinates.
        angular: whether each of them is an angle, in rad; otherwise a length, in m.
        frame: name of the frame.
        base: "fixed", "flying" or "floating".
        length: characteristic length, m.
        timed: whether t are times.
    """

    t: Array
    singular_values: Array
    joint_distance: Array
    limit_distance: Array
    limit_share: Array
    joints: tuple[str, ...]
    angular: tuple[bool, ...]
    frame: str
    base: str
    length: float
    timed: bool = field(default=True)

    @property
    def smallest(self) -> Array:
        """Smallest singular value σ_r, `(n,)`."""
        return self.singular_values[:, -1]

    @property
    def condition(self) -> Array:
        """Condition number σ_1/σ_r, `(n,)`; infinite where the arm is singular."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.singular_values[:, 0] / self.singular_values[:, -1]

    def warnings(self, condition: float = SINGULAR, limit: float = NEAR) -> list[str]:
        """Return a sentence for every time that the arm is near a singularity or a joint a limit.

        Args:
            condition: condition numbers above it are near a singularity.
            limit: a joint is near a limit within this part of its range, or beyond it.
        """
        found: list[str] = []
        for first, last in _spans(self.condition > condition):
            worst = first + int(np.argmax(self.condition[first : last + 1]))
            found.append(
                f"{self.frame!r} comes near a singularity {self._when(first, last)}: condition "
                f"number {self.condition[worst]:.3g} {self._at(worst)}, smallest singular value "
                f"{self.smallest[worst]:.3g}"
            )
        share = np.where(np.isfinite(self.limit_share), self.limit_share, np.inf)
        beyond = self.limit_distance < 0.0
        for k, name in enumerate(self.joints):
            for first, last in _spans((share[:, k] < limit) | beyond[:, k]):
                worst = first + int(np.argmin(self.limit_distance[first : last + 1, k]))
                off = float(self.limit_distance[worst, k])
                size = self.distance_text(abs(off), k)
                how = f"passes a limit by {size}" if off < 0.0 else f"comes to {size} of a limit"
                found.append(
                    f"joint {name!r} {how} {self._at(worst)}, and is near it "
                    f"{self._when(first, last)}"
                )
        return found

    def distance_text(self, distance: float, k: int) -> str:
        """Return a distance to a limit of coordinate k with its unit: `12.5°`, `0.02 m`."""
        return f"{np.degrees(distance):.3g}°" if self.angular[k] else f"{distance:.3g} m"

    def plot(self) -> Any:
        """Return a figure of singular values, condition number and distances to limits."""
        module: Any = importlib.import_module("remora.viewer.figures.analysis_figures")
        return module.conditioning_figure(self)

    def _at(self, k: int) -> str:
        return f"at {self.t[k]:.6g} s" if self.timed else f"at point {k}"

    def _when(self, first: int, last: int) -> str:
        if first == last:
            return self._at(first)
        if self.timed:
            return f"from {self.t[first]:.6g} s to {self.t[last]:.6g} s"
        return f"from point {first} to {last}"


@takes_robot
@without_constraints
def conditioning(
    robot: Robot,
    q: ArrayLike,
    frame: FrameLike,
    base: str = "fixed",
    subspace: str | ArrayLike = "translation",
    length: float | None = None,
    joints: Sequence[str] | None = None,
    t: ArrayLike | None = None,
    joint_distances: bool = True,
) -> Conditioning:
    """Return how well an arm is conditioned along a path, and how far it is from limits.

    Args:
        robot: the robot.
        q: configurations, `(n, nq)`: `run.q` of a run, or a planned path.
        frame: the name of a body or frame, the index of a body, or a Frame.
        base: "fixed", "flying" or "floating" (then the Jacobian is the generalized one).
        subspace: of the twist, as for `manipulability`.
        length: characteristic length, m, where the subspace has angles and lengths.
        joints: names of the joints that move, the others are locked; default: all but the base.
        t: times, `(n,)`, s; default: the numbers of the configurations.
        joint_distances: whether to estimate distances to singularities in joint space, which takes
            most of the time; else they are NaN.

    Raises:
        InvalidValue: if no joint of the arm moves the frame, or the path is empty.
        UnknownName: for an unknown base, subspace, frame or joint.
    """
    q = configuration(robot, q)
    if q.ndim != 2 or not len(q):
        raise ShapeError(f"q must be a path of configurations (n, {robot.nq}), not {q.shape}")
    times = np.arange(float(len(q))) if t is None else finite("t", t)
    if times.shape != (len(q),):
        raise ShapeError(f"t must have shape ({len(q)},), one time for each q, not {times.shape}")
    check_base(robot, base)
    size = characteristic_length(robot, frame, length)

    def sigma(q: Array) -> Array:
        B = ellipsoid_matrix(robot, q, frame, base, "kinematic", subspace, size, joints=joints)
        return singular_values.singular_values(B)

    rank = _general_rank(robot, frame, sigma)
    found = sigma(q)[:, :rank]
    far = np.full(len(q), np.nan)
    if joint_distances:
        columns = arm_speeds(robot, joints)
        far = _joint_distance(robot, q, columns, found[:, -1], lambda x: sigma(x)[:, rank - 1])
    names, angular, distance, share = _limits(robot, q)
    return Conditioning(
        times, found, far, distance, share, names, angular, robot.frame(frame).name, base, size,
        t is not None,
    )  # fmt: skip


def _joint_distance(
    robot: Robot, q: Array, moved: list[int], smallest: Array, smallest_of: Callable[[Array], Array]
) -> Array:
    """Return σ_r/|∂σ_r/∂q_m| `(n,)`, by central differences; infinite where the slope is 0.

    At a singularity σ_r has a kink, whose slope by central differences is 0: the distance is 0.
    """
    slopes: list[Array] = []
    for place in moved:
        step = np.zeros(robot.nv)
        step[place] = _STEP
        ends = [smallest_of(integrate(robot, q, s * step)) for s in (1.0, -1.0)]
        slopes.append((ends[0] - ends[1]) / (2.0 * _STEP))
    slope = np.linalg.norm(np.array(slopes), axis=0)
    return np.divide(smallest, slope, out=np.where(smallest > 0.0, np.inf, 0.0), where=slope > 0.0)


def _general_rank(robot: Robot, frame: FrameLike, sigma: Callable[[Array], Array]) -> int:
    """Return the rank that S J has in general: the largest of random configurations."""
    ranges = joint_ranges(robot, frame, sliding=True)
    rng = np.random.default_rng(0)
    q = np.repeat(neutral(robot)[None], _POSES, axis=0)
    for r in ranges:
        width = len(r.lower)
        if width:
            low, high = (np.clip(x, -_FAR, _FAR) for x in (r.lower, r.upper))
            q[:, r.q : r.q + width] = rng.uniform(low, high, (_POSES, width))
    values = sigma(q)
    rank = int(np.max(np.sum(values > _ZERO * values[:, :1], axis=1)))
    if not rank:
        raise InvalidValue(f"no joint moves the frame {robot.frame(frame).name!r} in this subspace")
    return rank


def _limits(robot: Robot, q: Array) -> tuple[tuple[str, ...], tuple[bool, ...], Array, Array]:
    """Return the joints with limits, which are angles, and the distances to the nearer limit.

    Distances and shares of the range have shape `(n, m)`.
    """
    names: list[str] = []
    angular: list[bool] = []
    distances: list[Array] = []
    shares: list[Array] = []
    for joint in robot.joints:
        if joint.mimic is not None or not in_coordinates(joint):
            continue
        for k in range(joint.q.stop - joint.q.start):
            low, high = float(joint.limits.lower[k]), float(joint.limits.upper[k])
            if not (np.isfinite(low) or np.isfinite(high)):
                continue
            x = q[:, joint.q.start + k]
            distance = np.minimum(x - low, high - x)
            names.append(joint.name)
            angular.append(kind(joint).freedoms[k].angular)
            distances.append(distance)
            width = high - low
            shares.append(distance / width if np.isfinite(width) and width > 0.0 else x * np.nan)
    if not names:
        return (), (), np.zeros((len(q), 0)), np.zeros((len(q), 0))
    return tuple(names), tuple(angular), np.stack(distances, axis=-1), np.stack(shares, axis=-1)


def _spans(marked: Array) -> list[tuple[int, int]]:
    """Return first and last index of every run of marked entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marked.astype(int), [0]])))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]
