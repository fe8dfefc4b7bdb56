"""Straight-path workspace: how far a frame can move along straight lines from a configuration.

The frame moves along each line with v_m = J⁺ d, J the Jacobian of a fixed or a floating base, until
a joint reaches its limit or the arm is singular [SPART17, section 4.2, Figure 6]. All lines are
integrated together (Runge-Kutta of order 4 in the tangent space, one compiled step); each halves
its step where it fails, so that the end is known to a millionth of the arm's length.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remora.algebra import linear, pose, singular_values, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, stack
from remora.analysis.arm import (
    arm_jacobian,
    arm_length,
    arm_speeds,
    base_speeds,
    check_base,
    moving_joints,
)
from remora.analysis.sampling import JointRange, Ranges, joint_ranges
from remora.analysis.subspaces import selection
from remora.dynamics.floating import base_response
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.kinematics import frame_pose
from remora.dynamics.refusals import without_constraints
from remora.errors import InvalidValue, ShapeError, UnknownName
from remora.model.numbers import finite
from remora.model.robot import Frame, FrameLike, Robot
from remora.model.state import configuration, integrate, log_rate, runge_kutta_step
from remora.model.takes_robot import takes_robot

#: Coordinates that span a plane, and those of space.
PLANES: dict[str | None, tuple[int, ...]] = {
    None: (0, 1, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2),
}  # fmt: skip
#: First step and last step as fractions of the arm's length.
STEP, LAST = 1e-2, 1e-6
#: Distance from the line after a step, in lengths of the arm, that calls for a shorter step.
ASTRAY = 1e-9
#: Lines end here at the latest, in lengths of the arm; sliding joints without limits need it.
LONGEST = 20.0
SINGULAR = "singular"


@dataclass(frozen=True, eq=False)
class StraightPathWorkspace:
    """What a frame reaches along straight lines from one configuration.

    Attributes:
        start: position of the frame at the start, `(3,)`, m.
        directions: unit vectors, `(n, 3)`.
        reach: length of each line, `(n,)`, m.
        reason: why each line ends: "singular", or the name of the joint at its limit.
        q: configuration at the end of each line, `(n, nq)`.
        plane: "xy", "xz", "yz", or None for space.
        base: "fixed" or "floating".
    """

    start: Array
    directions: Array
    reach: Array
    reason: tuple[str, ...]
    q: Array
    plane: str | None
    base: str

    @property
    def boundary(self) -> Array:
        """The ends of the lines in the inertial frame, `(n, 3)`, m."""
        return self.start + self.reach[:, None] * self.directions

    @property
    def volume(self) -> float:
        """Volume, m³: mean of the cones over all directions; in a plane the polygon's area, m²."""
        if self.plane is None:
            return float(4.0 * math.pi / 3.0 * np.mean(self.reach**3))
        a, b = PLANES[self.plane]
        x, y = (self.reach * self.directions[:, k] for k in (a, b))
        order = np.argsort(np.arctan2(y, x))
        x, y = x[order], y[order]
        return float(0.5 * abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))))

    def plot(self, **options: Any) -> Any:
        """Return a matplotlib figure, see `remora.viewer.figures.workspace_figures`."""
        module: Any = importlib.import_module("remora.viewer.figures.workspace_figures")
        return module.straight_path_figure(self, **options)


@takes_robot
@without_constraints
def straight_path_workspace(
    robot: Robot,
    q: ArrayLike,
    frame: FrameLike,
    base: str = "floating",
    plane: str | None = None,
    directions: int | ArrayLike = 360,
    hold_orientation: bool = False,
    ranges: Ranges | None = None,
    smallest: float = 1e-3,
    threads: int = 1,
) -> StraightPathWorkspace:
    """Return how far the frame moves along straight lines from a configuration.

    Args:
        robot: the robot.
        q: configuration at the start, `(nq,)`.
        frame: the name of a body or frame, the index of a body, or a Frame.
        base: "fixed", or "floating": the vehicle recoils at zero momentum.
        plane: "xy", "xz" or "yz" for lines in a plane; default: lines in space.
        directions: number of lines, evenly spread, or directions `(n, 3)`.
        hold_orientation: whether the frame keeps its orientation on the way.
        ranges: ranges in rad or m by joint, instead of limits. A joint without limits turns freely.
        smallest: a line ends where the smallest singular value of the Jacobian is below this
            fraction of the arm's length.
        threads: number of CPU threads.

    Raises:
        InvalidValue: if no joint moves the frame, the start is outside the limits, or the arm is
            singular at the start.
    """
    q = configuration(robot, q)
    if q.shape != (robot.nq,):
        raise ShapeError(f"q must have shape ({robot.nq},), one start, not {q.shape}")
    if plane not in PLANES:
        raise UnknownName("plane", plane, [str(name) for name in PLANES if name])
    if base == "flying" or check_base(robot, base) == "flying":
        raise UnknownName("base of a straight path", base, ("fixed", "floating"))
    moving_joints(robot, frame)
    limits = _limits(robot, frame, ranges)
    length = arm_length(robot, frame) or 1.0
    lines = _directions(directions, plane)
    rows = _rows(plane, hold_orientation)
    fixed = {
        "frame": robot.frame(frame), "base": base, "rows": rows, "length": length,
        "joints": tuple(r.name for r in limits),
    }  # fmt: skip
    shapes = {"direction": (3,), "h": (1,)}
    step: Any = compile_function(
        straight_step, robot, shapes=shapes, fixed=fixed, arguments=("q", "direction", "h")
    )
    state: Any = compile_function(straight_state, robot, fixed=fixed, arguments=("q",))
    origin, sigma = state(q)
    _check_start(robot, q, limits, float(sigma[0]), smallest * length)
    end, reach, reason = _march(
        q, lines, origin, step, state, limits, length, smallest * length, threads
    )
    return StraightPathWorkspace(origin, lines, reach, tuple(reason), end, plane, base)


def straight_state(
    robot: Robot, q: Array, frame: Frame, base: str, rows: Array, length: float,
    joints: Sequence[str],
) -> tuple[Array, Array]:  # fmt: skip
    """Return the frame's position `(..., 3)` and the smallest singular value `(..., 1)`."""
    J = _task(robot, q, frame, base, rows, length, joints)
    sigma = singular_values.singular_values(J)
    return pose.translation(frame_pose(robot, q, frame)), stack([sigma[..., -1]])


def straight_step(
    robot: Robot, q: Array, direction: Array, h: Array, frame: Frame, base: str, rows: Array,
    length: float, joints: Sequence[str],
) -> Array:  # fmt: skip
    """Return q `(..., nq)` after the frame has moved by h along a direction, order 4."""

    def velocity(_: float, q: Array) -> Array:
        return _velocity(robot, q, direction, frame, base, rows, length, joints)

    moved, in_chart = functools.partial(integrate, robot), functools.partial(log_rate, robot)
    return runge_kutta_step(velocity, q, h, moved, in_chart)


def _task(
    robot: Robot, q: Array, frame: Frame, base: str, rows: Array, length: float,
    joints: Sequence[str],
) -> Array:  # fmt: skip
    return selection(rows, length) @ arm_jacobian(robot, q, frame, base, joints=joints)


def _velocity(
    robot: Robot, q: Array, direction: Array, frame: Frame, base: str, rows: Array, length: float,
    joints: Sequence[str],
) -> Array:  # fmt: skip
    """Return v `(..., nv)` that moves the frame with `direction`: v_m = Jᵀ (J Jᵀ)⁻¹ d."""
    J = _task(robot, q, frame, base, rows, length, joints)
    wanted = vector.apply(rows[:, 3:], direction)
    back = linear.solve(linear.mirror(J @ vector.transpose(J)), wanted[..., :, None])
    moving = (vector.transpose(J) @ back)[..., 0]
    columns, first = arm_speeds(robot, joints), base_speeds(robot)
    entries = [0.0 * moving[..., 0] for _ in range(robot.nv)]
    for k, place in enumerate(columns):
        entries[place] = moving[..., k]
    v = stack(entries)
    if base == "floating":
        recoil = vector.apply(base_response(robot, q), v[..., first:])
        v = concatenate([recoil, v[..., first:]])
    return v


def _rows(plane: str | None, hold: bool) -> Array:
    """Return the rows `(k, 6)` of the twist that are controlled."""
    span = PLANES[plane]
    turning = () if not hold else (0, 1, 2) if plane is None else tuple({0, 1, 2} - set(span))
    return np.eye(6)[[*turning, *(3 + k for k in span)]]


def _directions(given: int | ArrayLike, plane: str | None) -> Array:
    if isinstance(given, int):
        if given < 1:
            raise InvalidValue(f"directions={given!r}: the grid of directions is empty")
        if plane is None:
            return sphere_directions(given)
        angle = 2.0 * math.pi * np.arange(given) / given
        lines = np.zeros((given, 3))
        lines[:, list(PLANES[plane])] = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        return lines
    lines = np.atleast_2d(finite("directions", given, 3))
    size = np.linalg.norm(lines, axis=-1, keepdims=True)
    if not lines.size or np.any(size == 0.0):
        raise InvalidValue("directions must be at least one vector that is not zero")
    return lines / size


def sphere_directions(count: int) -> Array:
    """Return `count` unit vectors `(n, 3)`, evenly spread over the sphere (Fibonacci's spiral)."""
    k = np.arange(count) + 0.5
    z, angle = 1.0 - 2.0 * k / count, math.pi * (1.0 + math.sqrt(5.0)) * k
    r = np.sqrt(1.0 - z * z)
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=-1)


def _limits(robot: Robot, frame: FrameLike, ranges: Ranges | None) -> list[JointRange]:
    """Return the ranges of the joints; those without limits are infinite."""
    found: list[JointRange] = []
    for r in joint_ranges(robot, frame, None, ranges, sliding=True):
        free = r.default
        infinite = (math.inf,) * len(r.lower)
        own = robot.joints[robot.joint_index(r.name)].limits
        low = tuple(float(x) for x in own.lower) if free else r.lower
        high = tuple(float(x) for x in own.upper) if free else r.upper
        found.append(JointRange(r.name, r.q, low, high or infinite, free))
    return found


def _over(q: Array, limits: Sequence[JointRange]) -> NDArray[np.int64]:
    """Return the position in `limits` of the joint that is beyond its range, or -1, `(n,)`."""
    found = np.full(len(q), -1)
    for i, r in enumerate(limits):
        for k, (low, high) in enumerate(zip(r.lower, r.upper, strict=True)):
            own = q[:, r.q + k]
            found[((own < low) | (own > high)) & (found < 0)] = i
    return found


def _check_start(
    robot: Robot, q: Array, limits: Sequence[JointRange], sigma: float, smallest: float
) -> None:
    over = int(_over(q[None], limits)[0])
    if over >= 0:
        r = limits[over]
        raise InvalidValue(
            f"joint {r.name!r} of robot {robot.name!r} starts at {q[r.q]:.4g}, outside its range "
            f"[{r.lower[0]:.4g}, {r.upper[0]:.4g}]"
        )
    if not sigma > smallest:
        raise InvalidValue(
            "the arm is singular at the start: there is no straight path in every direction "
            f"(smallest singular value {sigma:.3g})"
        )


def _march(
    q: Array, lines: Array, origin: Array, step: Any, state: Any, limits: Sequence[JointRange],
    length: float, smallest: float, threads: int,
) -> tuple[Array, Array, list[str]]:  # fmt: skip
    """Return configuration, length and reason of the end of each line.

    Steps that leave the line are halved and may grow again. Once a line has met a limit or a
    singularity, its steps are only halved.
    """
    n = len(lines)
    at, reach, h = np.tile(q, (n, 1)), np.zeros(n), np.full(n, STEP * length)
    here, reason, ended = np.tile(origin, (n, 1)), [SINGULAR] * n, np.zeros(n, dtype=bool)
    active = np.arange(n)
    longest = LONGEST * length
    while active.size:
        wanted = origin + (reach[active] + h[active])[:, None] * lines[active]
        way = (wanted - here[active]) / h[active, None]  # returns to the line, too
        there = step(at[active], way, h[active, None], threads=threads)
        position, sigma = state(there, threads=threads)
        with np.errstate(invalid="ignore"):
            singular = ~np.isfinite(there).all(axis=-1) | ~(sigma[:, 0] > smallest)
            astray = np.linalg.norm(position - wanted, axis=-1) > ASTRAY * length
        over = _over(there, limits)
        failed = singular | astray | (over >= 0)
        good, bad = active[~failed], active[failed]
        at[good], here[good] = there[~failed], position[~failed]
        reach[good] += h[good]
        for k, i in zip(np.flatnonzero(failed).tolist(), bad.tolist(), strict=True):
            beyond = limits[int(over[k])].name if over[k] >= 0 else SINGULAR
            reason[i] = SINGULAR if singular[k] else beyond
        ended[active[singular | (over >= 0)]] = True
        h[bad] *= 0.5
        grown = good[~ended[good]]
        h[grown] = np.minimum(2.0 * h[grown], STEP * length)
        active = active[(h[active] > LAST * length) & (reach[active] < longest)]
    return at, reach, reason
