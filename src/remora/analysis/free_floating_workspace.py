"""Workspace of a free-floating robot: path-independent and path-dependent regions [PD91].

At zero momentum the system's centre of mass rests, and the vehicle's attitude depends on the path.
What the joints determine is the frame's distance ρ(q) from the centre of mass, so the regions are
spherical shells around it (annuli in a plane). Dynamic singularities are configurations where the
generalized Jacobian loses rank. A distance at which one exists belongs to the path-dependent
region: whether the frame can move freely there depends on the path it came by. The rest of the
reachable shells is path-independent: no configuration there is singular.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, ArrayLike, sqrt
from remora.algebra.vector import dot
from remora.analysis.arm import arm_jacobian, check_base
from remora.analysis.manipulability import characteristic_length
from remora.analysis.sampling import (
    JointRange,
    Ranges,
    additive_recurrence,
    configurations,
    joint_ranges,
    parameters,
)
from remora.analysis.subspaces import selection
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.kinematics import frame_pose
from remora.dynamics.momentum import center_of_mass
from remora.dynamics.refusals import without_constraints
from remora.errors import InvalidValue, UnknownName
from remora.model.robot import Frame, FrameLike, Robot
from remora.model.state import configuration, neutral
from remora.model.takes_robot import takes_robot

PLANES: dict[str | None, str] = {None: "translation", "xy": "xy", "xz": "xz", "yz": "yz"}
#: Half the distance between the ends of a segment on which a sign change is looked for, in [0, 1].
SEGMENT = 0.02
#: Bisections of a segment.
BISECTIONS = 45
#: Iterations of the search for the smallest and the largest distance.
SEARCHES = 60


@dataclass(frozen=True, eq=False)
class FloatingWorkspace:
    """Shells around the system's centre of mass, each `(n, 2)`: inner and outer radius, m.

    Attributes:
        reachable: distances that the frame reaches.
        path_dependent: distances at which dynamic singularities exist.
        path_independent: the rest.
        singular: dynamically singular configurations, `(m, nq)`.
        singular_radius: their distances, `(m,)`.
        plane: "xy", "xz", "yz", or None for space.
        ranges: ranges of the sampled joints.
    """

    reachable: Array
    path_dependent: Array
    path_independent: Array
    singular: Array
    singular_radius: Array
    plane: str | None
    ranges: tuple[JointRange, ...]

    def volume(self, shells: Array) -> float:
        """Return the volume of shells `(n, 2)`, m³; in a plane their area, m²."""
        if self.plane is None:
            return float(4.0 / 3.0 * math.pi * np.sum(shells[:, 1] ** 3 - shells[:, 0] ** 3))
        return float(math.pi * np.sum(shells[:, 1] ** 2 - shells[:, 0] ** 2))

    def plot(self, **options: Any) -> Any:
        """Return a matplotlib figure, see `remora.viewer.figures.workspace_figures`."""
        module: Any = importlib.import_module("remora.viewer.figures.workspace_figures")
        return module.floating_workspace_figure(self, **options)


@takes_robot
@without_constraints
def floating_workspace(
    robot: Robot,
    frame: FrameLike,
    plane: str | None = None,
    subspace: str | ArrayLike | None = None,
    samples: int = 200_000,
    joints: Sequence[str] | None = None,
    ranges: Ranges | None = None,
    q: ArrayLike | None = None,
    threads: int = 1,
) -> FloatingWorkspace:
    """Return the shells that a frame of a free-floating robot reaches, by dynamic singularities.

    Args:
        robot: a robot with a free base.
        frame: the name of a body or frame, the index of a body, or a Frame.
        plane: "xy", "xz" or "yz" for a robot that moves in a plane; default: space.
        subspace: coordinates that the joints control, see `manipulability`: as many as joints;
            default: translations, in the plane or in space.
        samples: number of segments in joint space that are searched; gaps of less than 2 % between
            the singular distances found count as sampling gaps.
        joints: names of the joints that move; the others keep their position.
        ranges: ranges in rad or m by joint, instead of limits; see `workspace`.
        q: configuration of everything else, `(nq,)`; default: neutral.
        threads: number of CPU threads.

    Raises:
        InvalidValue: if the number of joints is not that of the coordinates. The generalized
            Jacobian of a redundant arm is not square: name the joints that move.
    """
    check_base(robot, "floating")
    if plane not in PLANES:
        raise UnknownName("plane", plane, [str(name) for name in PLANES if name])
    if samples < 2:
        raise InvalidValue(f"samples={samples!r} must be at least 2")
    chosen = joint_ranges(robot, frame, joints, ranges)
    rows = selection(
        PLANES[plane] if subspace is None else subspace, characteristic_length(robot, frame, None)
    )
    d = parameters(chosen)
    if len(rows) != d or any(not r.lower for r in chosen):
        raise InvalidValue(
            f"the generalized Jacobian of {d} joint coordinates "
            f"({', '.join(r.name for r in chosen)}) in {len(rows)} coordinates is not square: "
            f"name {len(rows)} joints, joints=[...], "
            "or another subspace"
        )
    rest = neutral(robot) if q is None else configuration(robot, q)
    fixed = {"ranges": chosen, "q0": rest, "frame": robot.frame(frame), "rows": rows}
    kernel: Any = compile_function(
        floating_point, robot, shapes={"u": (d,)}, fixed=fixed, arguments=("u",)
    )

    def radius_and_det(u: Array) -> tuple[Array, Array]:
        radius, J = kernel(np.clip(u, 0.0, 1.0), threads=threads)
        return radius[:, 0], np.linalg.det(J)

    u = additive_recurrence(np.arange(samples, dtype=float)[:, None], d)
    radius, det = radius_and_det(u)
    reachable = _reached(lambda x: radius_and_det(x)[0], u, radius)
    singular_u = _sign_changes(u, det, radius_and_det)
    rho = radius_and_det(singular_u)[0] if len(singular_u) else np.zeros(0)
    dependent = _clusters(rho, reachable)
    return FloatingWorkspace(
        reachable, dependent, _difference(reachable, dependent),
        configurations(chosen, rest, np.clip(singular_u, 0.0, 1.0)), rho, plane, chosen,
    )  # fmt: skip


def floating_point(
    robot: Robot, u: Array, ranges: Sequence[JointRange], q0: Array, frame: Frame, rows: Array
) -> tuple[Array, Array]:
    """Return the distance from the centre of mass `(..., 1)` and the Jacobian `(..., k, n)`.

    The Jacobian is in the vehicle's axes as in q0; its determinant does not depend on them.
    """
    q = configurations(ranges, q0, u)
    away = pose.translation(frame_pose(robot, q, frame)) - center_of_mass(robot, q)
    J = arm_jacobian(robot, q, frame, "floating", joints=[r.name for r in ranges])
    return sqrt(dot(away, away)), rows @ J


def _reached(radius_of: Callable[[Array], Array], u: Array, radius: Array) -> Array:
    """Return the shell of all distances, `(1, 2)`: one, for ρ is continuous in the joints.

    Its ends by a pattern search from the best samples.
    """
    low = -_highest(lambda x: -radius_of(x), u, -radius)
    return np.array([[low, _highest(radius_of, u, radius)]])


def _highest(value_of: Callable[[Array], Array], u: Array, values: Array) -> float:
    """Return the largest value near the best samples, by steps along each coordinate."""
    best = u[np.argsort(values)[-8:]]
    top = value_of(best)
    step = np.full(len(best), 0.05)
    moves = np.concatenate([np.eye(u.shape[1]), -np.eye(u.shape[1])])
    for _ in range(SEARCHES):
        trial = np.clip(best[:, None, :] + step[:, None, None] * moves, 0.0, 1.0)
        found = value_of(trial.reshape(-1, u.shape[1])).reshape(len(best), -1)
        which = found.argmax(axis=1)
        rows = np.arange(len(best))
        better = found[rows, which] > top
        best = np.where(better[:, None], trial[rows, which], best)
        top = np.where(better, found[rows, which], top)
        step = np.where(better, step, 0.5 * step)
    return float(top.max())


def _sign_changes(
    u: Array, det: Array, radius_and_det: Callable[[Array], tuple[Array, Array]]
) -> Array:
    """Return points `(m, d)` where the determinant is zero, by bisection of short segments."""
    d = u.shape[1]
    rng = np.random.default_rng(0)
    way = rng.normal(size=u.shape)
    way *= SEGMENT / np.linalg.norm(way, axis=-1, keepdims=True) * math.sqrt(d)
    other = np.clip(u + way, 0.0, 1.0)
    changes = np.signbit(det) != np.signbit(radius_and_det(other)[1])
    a: Array = u[changes]
    b: Array = other[changes]
    left = np.signbit(det[changes])
    for _ in range(BISECTIONS if len(a) else 0):
        middle = 0.5 * (a + b)
        same = np.signbit(radius_and_det(middle)[1]) == left
        a, b = np.where(same[:, None], middle, a), np.where(same[:, None], b, middle)
    return 0.5 * (a + b)


def _clusters(rho: Array, reachable: Array) -> Array:
    """Return the intervals that distances fill: those without a gap of 2 % of the whole."""
    if not rho.size:
        return np.zeros((0, 2))
    values = np.sort(rho)
    width = 0.02 * (reachable[-1, 1] - reachable[0, 0])
    gaps = np.flatnonzero(np.diff(values) > width)
    ends = [0, *(gaps + 1).tolist(), len(values)]
    return np.array([[values[a], values[b - 1]] for a, b in itertools.pairwise(ends)])


def _difference(whole: Array, parts: Array) -> Array:
    """Return the intervals `whole` without the intervals `parts`, both sorted."""
    left: list[list[float]] = []
    for low, high in whole.tolist():
        at = low
        for a, b in parts.tolist():
            if b <= at or a >= high:
                continue
            if a > at:
                left.append([at, a])
            at = max(at, b)
        if at < high:
            left.append([at, high])
    narrow = 1e-9 * float(whole[-1, 1])
    kept = [pair for pair in left if pair[1] - pair[0] > narrow]
    return np.array(kept).reshape(-1, 2)
