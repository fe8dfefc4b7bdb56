"""Reachable and dexterous workspace of an arm on a fixed vehicle, by sampling its joints.

A low-discrepancy sequence fills the joints' ranges; each sample marks the cell that the frame is in
and leaves its measure of manipulability there. The kernel computes the configuration, the position
and the measure of a sample from its number alone, on processors and GPUs. Then configurations in
the boundary's cells are varied a little, some times, which finds the corners that were missed.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from remora.algebra import pose
from remora.algebra.array_ops import Array, ArrayLike, stack
from remora.analysis import cells as cell_arrays
from remora.analysis.arm import arm_length, moving_joints
from remora.analysis.cells import Grid, Mask, ball_grid, bins_of, count_of
from remora.analysis.checkpoints import Checkpoint, Progress
from remora.analysis.manipulability import characteristic_length, ellipsoid_matrix
from remora.analysis.measures import MEASURES, check_measure
from remora.analysis.sampling import (
    JointRange,
    Ranges,
    additive_recurrence,
    configurations,
    joint_ranges,
    parameters,
)
from remora.codegen.gpu import cuda_kernel
from remora.dynamics.kernels.compiled import TARGETS, compile_function
from remora.dynamics.kinematics import frame_pose
from remora.dynamics.refusals import without_constraints
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import kind as joint_kind
from remora.model.robot import Frame, FrameLike, Robot
from remora.model.state import configuration, neutral
from remora.model.takes_robot import takes_robot

#: Planes, and the coordinates that span them.
PLANES: dict[str | None, tuple[int, ...]] = {
    None: (0, 1, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2),
}  # fmt: skip
KINDS = ("reachable", "dexterous")
#: Samples per call of the kernel.
CHUNK = 1 << 18
#: Of the refinement: first step, as a fraction of a joint's range, and variations of a cell.
FIRST_STEP, VARIATIONS = 0.02, 40
#: Orientations in a cell are counted up to MANY by the samples; REFINED: met by the refinement.
MANY, REFINED = 0x7F, 0x80
#: So many standard deviations more orientations than expected may be missing by chance.
SPREAD = 3.0


@dataclass(frozen=True, eq=False)
class Workspace:
    """The region that a frame reaches, in cells of a grid.

    Attributes:
        kind: "reachable" or "dexterous".
        frame: name of the frame.
        axes: names of the grid's axes, such as ("x", "y").
        grid: position and spacing of the cells, in the inertial frame, where the vehicle is held.
        reached: cells that the frame reaches.
        counts: samples of the sequence in each cell.
        best: largest measure of manipulability in each cell, NaN where it is empty.
        dexterity: fraction of the orientations that is reached in each cell; of a reachable
            workspace None.
        measure: name of the measure.
        samples: number of samples.
        ranges: ranges of the sampled joints; `default` tells where limits were missing.
        unfinished: of a dexterous workspace, cells that were not reached in all orientations, but
            might be with more samples; otherwise None.
    """

    kind: str
    frame: str
    axes: tuple[str, ...]
    grid: Grid
    reached: Mask
    counts: NDArray[np.int64]
    best: Array
    dexterity: Array | None
    measure: str
    samples: int
    ranges: tuple[JointRange, ...]
    unfinished: Mask | None = None

    @property
    def mask(self) -> Mask:
        """The cells of the region: reached, or reached in all orientations."""
        return self.reached if self.dexterity is None else self.dexterity >= 1.0

    @property
    def volume(self) -> float:
        """Volume of the region, m³; in a plane its area, m²."""
        return cell_arrays.measure_of(self.mask, self.grid.spacing)

    @property
    def coverage(self) -> float:
        """Estimated fraction of the region's cells that was found.

        Of a reachable workspace by Chao's estimate N_1² / 2 N_2 of the cells that were missed, from
        those reached once and twice, before the refinement. Of a dexterous one from the cells that
        are `unfinished`, on the safe side. Below about 0.9 the region has holes: take more samples,
        or fewer cells. With few orientations, cells pass that lack directions between them.
        """
        if self.unfinished is not None:
            found = int(np.count_nonzero(self.mask))
            return found / max(1, found + int(np.count_nonzero(self.unfinished & ~self.mask)))
        once, twice = int((self.counts == 1).sum()), int((self.counts == 2).sum())
        missed = once * once / (2.0 * max(twice, 1))
        reached = int((self.counts > 0).sum())
        return reached / (reached + missed)

    def surface(self, smooth: bool = True) -> tuple[Array, NDArray[np.int64], Array]:
        """Return the surface of the region by marching cubes.

        Args:
            smooth: whether to average over neighbouring cells first, against steps.

        Returns:
            Vertices `(n, 3)` in m, triangles `(m, 3)`, and the best measure near each vertex.
        """
        vertices, faces = cell_arrays.surface(self.mask, self.grid, smooth)
        values = cell_arrays.nearest_values(self.best, self.mask, self.grid, vertices)
        return vertices, faces, values

    def slice(self, **position: float) -> Workspace:
        """Return the cells of one plane: `workspace.slice(z=0.3)`, in m.

        Raises:
            InvalidValue: if the plane does not pass through the grid.
        """
        if len(position) != 1 or next(iter(position)) not in self.axes or len(self.axes) != 3:
            raise InvalidValue(f"name one of the three axes: slice({self.axes[0]}=0.0)")
        name, value = next(iter(position.items()))
        axis = self.axes.index(name)
        low, high = self.grid.extent()[axis]
        if not low <= value <= high:
            raise InvalidValue(f"{name} = {value} m is outside the grid, {low:.4g} to {high:.4g} m")
        at = min(int((value - low) / self.grid.spacing), self.grid.shape[axis] - 1)
        rest = [a for a in range(3) if a != axis]

        def taken(x: Any) -> Any:
            return None if x is None else np.take(x, at, axis=axis)

        grid = Grid(
            tuple(self.grid.origin[a] for a in rest),
            self.grid.spacing,
            tuple(self.grid.shape[a] for a in rest),
        )
        return replace(
            self, axes=tuple(self.axes[a] for a in rest), grid=grid, reached=taken(self.reached),
            counts=taken(self.counts),
            best=taken(self.best), dexterity=taken(self.dexterity),
            unfinished=taken(self.unfinished),
        )  # fmt: skip

    def plot(self, **options: Any) -> Any:
        """Return a matplotlib figure, see `remora.viewer.figures.workspace_figures`."""
        module: Any = importlib.import_module("remora.viewer.figures.workspace_figures")
        return module.workspace_figure(self, **options)


@takes_robot
@without_constraints
def workspace(
    robot: Robot,
    frame: FrameLike,
    kind: Literal["reachable", "dexterous"] = "reachable",
    plane: str | None = None,
    samples: int = 1_000_000,
    cells: int = 100,
    measure: str = "volume",
    subspace: str | ArrayLike | None = None,
    orientations: int = 36,
    refine: int = 6,
    joints: Sequence[str] | None = None,
    ranges: Ranges | None = None,
    q: ArrayLike | None = None,
    threads: int = 1,
    target: Literal["cpu", "cuda"] = "cpu",
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Workspace:
    """Return the workspace of a frame with a fixed base [SPART17, section 4.2].

    Args:
        robot: the robot.
        frame: the name of a body or frame, the index of a body, or a Frame.
        kind: "reachable": positions that the frame reaches; "dexterous": those that it reaches in
            every orientation (in space: with its z axis in every direction).
        plane: "xy", "xz" or "yz" for an arm that moves in a plane; default: space.
        samples: number of configurations.
        cells: cells along each side of the grid around the arm's sphere.
        measure: what colours the cells: "volume", "condition", "smallest" or "largest"; of the
            condition the smallest is kept.
        subspace: of the measure, see `manipulability`; default: translations along the grid's axes.
        orientations: how many orientations count for "dexterous"; in space it is rounded up to
            6 b², b whole.
        refine: rounds in which configurations at the boundary are varied, after the samples.
        joints: names of the joints that move; default: all that move the frame.
        ranges: ranges in rad or m by joint, instead of limits. A joint without limits turns once
            around, [-π, π]; one that slides needs a range.
        q: configuration of everything else, `(nq,)`; default: neutral.
        threads: number of CPU threads; 0 for one per processor.
        target: "cpu", or "cuda" for the same kernel on a GPU.
        progress: called with the numbers of samples done and wanted.
        checkpoint: file (.npz) that keeps what was sampled, so that an interrupted computation
            continues there; deleted at the end.

    Raises:
        InvalidValue: if no joint moves the frame, the grid is empty, a sliding joint has no limits,
            or no cell belongs to the workspace.

    Example:
        >>> robot = rm.load("servicer")
        >>> space = rm.workspace(robot, "tool", samples=20_000, cells=20)
        >>> space.mask.shape
        (20, 20, 18)
    """
    settings = _checked(robot, frame, kind, plane, samples, measure, orientations, target)
    span = PLANES[plane]
    chosen = joint_ranges(robot, frame, joints, ranges)
    rest = neutral(robot) if q is None else configuration(robot, q)
    grid = ball_grid(*_sphere(robot, frame, chosen, rest, span), cells)
    bins = count_of(orientations, plane) if kind == "dexterous" else 0
    fixed: dict[str, Any] = {
        "frame": robot.frame(frame), "ranges": chosen, "q0": rest, "measure": measure,
        "subspace": subspace if subspace is not None else plane or "translation",
        "length": characteristic_length(robot, frame, None),
        "joints": tuple(r.name for r in chosen),
    }  # fmt: skip
    kernel, near = (
        compile_function(
            function, robot, shapes={"index": (1,), "u": (parameters(chosen),)}, fixed=fixed,
            arguments=arguments, target=target,
        )
        for function, arguments in ((sampled_point, ("index",)), (point_of, ("u",)))
    )  # fmt: skip
    total = _Totals(grid, bins, measure == "condition", target)
    saved = Checkpoint(checkpoint, (robot, fixed, grid, bins, settings))
    start = saved.restore(total.arrays)
    options = {} if target == "cuda" else {"threads": threads}
    try:
        for first in range(start, samples, CHUNK):
            last = min(first + CHUNK, samples)
            index = total.xp.arange(first, last, dtype=float)[:, None]
            position, axis, value = kernel(index, **options)
            total.add(first, position[:, list(span)], axis, value[:, 0], plane)
            start = last
            saved.keep(start, total.arrays)
            if progress is not None:
                progress(last, samples)
    except KeyboardInterrupt:
        saved.keep(start, total.arrays, now=True)
        raise
    saved.done()
    total.refine(refine, parameters(chosen), plane, span, lambda u: near(u, **options))
    found = total.result(robot.frame(frame), kind, plane, measure, samples, chosen)
    if not found.mask.any():
        raise InvalidValue(
            f"the {kind} workspace of {robot.frame(frame).name!r} is empty: no cell of "
            f"{grid.spacing:.3g} m "
            + (
                f"is reached in all {bins} orientations by {samples:,} samples"
                if bins
                else "is reached"
            )
        )
    return found


def sampled_point(
    robot: Robot,
    index: Array,
    ranges: Sequence[JointRange],
    q0: Array,
    frame: Frame,
    measure: str,
    subspace: str | ArrayLike,
    length: float,
    joints: Sequence[str],
) -> tuple[Array, Array, Array]:
    """Return position, rotation matrix and measure of a sample by its number, see `point_of`.

    Args:
        robot: the robot.
        index: number of the sample, `(..., 1)`.
        ranges: ranges of the sampled joints.
        q0: configuration of everything else, `(nq,)`.
        frame: the frame.
        measure: name of the measure.
        subspace: of the measure.
        length: characteristic length, m.
        joints: names of the sampled joints.
    """
    u = additive_recurrence(index, parameters(ranges))
    return point_of(robot, u, ranges, q0, frame, measure, subspace, length, joints)


def point_of(
    robot: Robot,
    u: Array,
    ranges: Sequence[JointRange],
    q0: Array,
    frame: Frame,
    measure: str,
    subspace: str | ArrayLike,
    length: float,
    joints: Sequence[str],
) -> tuple[Array, Array, Array]:
    """Return position `(..., 3)`, rotation matrix `(..., 3, 3)` and measure `(..., 1)`.

    Args:
        robot: the robot.
        u: where the joints are in their ranges, `(..., d)` in [0, 1].
        ranges: ranges of the sampled joints.
        q0: configuration of everything else, `(nq,)`.
        frame: the frame.
        measure: name of the measure.
        subspace: of the measure.
        length: characteristic length, m.
        joints: names of the sampled joints.
    """
    q = configurations(ranges, q0, u)
    x = frame_pose(robot, q, frame)
    B = ellipsoid_matrix(robot, q, frame, "fixed", "kinematic", subspace, length, joints=joints)
    return pose.translation(x), pose.to_rotation_matrix(x), stack([MEASURES[measure](B)])


class _Totals:
    """What the samples add up to, on the processor or the GPU."""

    def __init__(self, grid: Grid, bins: int, least: bool, target: str) -> None:
        self.xp: Any = cuda_kernel.cupy_with_device() if target == "cuda" else np
        self._scatter: Any = importlib.import_module("cupyx") if target == "cuda" else None
        self.grid, self.bins, self.least = grid, bins, least
        n = math.prod(grid.shape)
        self.arrays: dict[str, Any] = {
            "counts": self.xp.zeros(n, dtype=np.int64),
            "best": self.xp.full(n, np.inf if least else -np.inf),
            "sample": self.xp.full(n, -1, dtype=np.int64),  # the last one in each cell
        }
        self._reached: Any = None
        if bins:
            # how often each orientation was met, up to MANY; REFINED: met by the refinement
            self.arrays["oriented"] = self.xp.zeros(n * bins, dtype=np.uint8)

    def add(self, first: int, points: Any, rotation: Any, values: Any, plane: str | None) -> None:
        """Add samples from number `first` on."""
        cell = self.grid.cells_of(points)
        self.arrays["counts"] += self.xp.bincount(cell, minlength=len(self.arrays["counts"]))
        self.arrays["sample"][cell] = self.xp.arange(first, first + len(cell))
        self._improve(cell, values)
        if self.bins:
            met, new = self.xp.unique(self._oriented(cell, rotation, plane), return_counts=True)
            seen = self.arrays["oriented"]
            seen[met] = self.xp.minimum(seen[met] + new, MANY).astype(np.uint8)

    def _oriented(self, cell: Any, rotation: Any, plane: str | None) -> Any:
        return cell * self.bins + bins_of(rotation, plane, self.bins)

    def _improve(self, cell: Any, values: Any) -> None:
        at = "minimum" if self.least else "maximum"
        if self._scatter is None:
            getattr(np, at).at(self.arrays["best"], cell, values)
        else:
            getattr(self._scatter, f"scatter_{at[:3]}")(self.arrays["best"], cell, values)

    def refine(
        self, rounds: int, d: int, plane: str | None, span: tuple[int, ...],
        point: Callable[[Any], tuple[Any, Any, Any]],
    ) -> None:  # fmt: skip
        """Vary a configuration of each cell of the boundary, in shorter and shorter steps.

        On a GPU everything but the random numbers' seed and the first configurations stays there.
        """
        xp, size = self.xp, len(self.arrays["sample"])
        sample = self._host(self.arrays["sample"])
        first = np.flatnonzero(sample >= 0)
        reached, known = xp.zeros(size, dtype=bool), xp.full((size, d), np.nan)
        at = xp.asarray(first)
        reached[at] = True
        known[at] = xp.asarray(additive_recurrence(sample[first][:, None].astype(float), d))
        rng: Any = xp.random.default_rng(0)
        for k in range(rounds):
            edge = xp.flatnonzero(cell_arrays.boundary(reached.reshape(self.grid.shape)))
            step = FIRST_STEP * 0.5**k
            for part in xp.array_split(edge, max(1, len(edge) * VARIATIONS // CHUNK)):
                u = xp.repeat(known[part], VARIATIONS, axis=0)
                u = xp.clip(u + step * rng.standard_normal(u.shape), 0.0, 1.0)
                position, rotation, value = point(u)
                cell = self.grid.cells_of(position[:, list(span)])
                self._improve(cell, value[:, 0])
                if self.bins:
                    self.arrays["oriented"][self._oriented(cell, rotation, plane)] |= REFINED
                self._take(known, cell, u)
                reached[cell] = True
        self._reached = self._host(reached)

    def _take(self, known: Any, cell: Any, u: Any) -> None:
        """Set the configurations of cells; of several in one cell the last counts."""
        if self._scatter is None:
            known[cell] = u
            return
        # threads write in any order, element by element: choose the row first
        row = self.xp.full(len(known), -1, dtype=np.int32)
        self._scatter.scatter_max(row, cell, self.xp.arange(len(cell), dtype=np.int32))
        hit = self.xp.flatnonzero(row >= 0)
        known[hit] = u[row[hit]]

    def _host(self, x: Any) -> Any:
        return x.get() if self._scatter else x

    def result(
        self, frame: Frame, kind: str, plane: str | None, measure: str, samples: int,
        ranges: tuple[JointRange, ...],
    ) -> Workspace:  # fmt: skip
        shape = self.grid.shape
        on_host = {n: self._host(x) for n, x in self.arrays.items()}
        counts, reached = (x.reshape(shape) for x in (on_host["counts"], self._reached))
        best = np.where(reached, on_host["best"].reshape(shape), np.nan)
        grid, part = self.grid.cropped(reached)
        dexterity = unfinished = None
        if self.bins:
            met = on_host["oriented"].reshape(*shape, self.bins)[part]
            dexterity, unfinished = (met > 0).mean(axis=-1), _unfinished(met & MANY)
        names = tuple("xyz"[k] for k in PLANES[plane])
        return Workspace(
            kind, frame.name, names, grid, reached[part].copy(), counts[part].copy(),
            best[part].copy(), dexterity, measure, samples, ranges, unfinished,
        )  # fmt: skip


def _unfinished(met: NDArray[np.uint8]) -> Mask:
    """Return the cells that may lack orientations only because there are too few samples.

    An orientation that is met λ times on average is missed with the probability exp(-λ). λ is
    estimated twice: from the neighbouring cells, where an orientation that none of them has is
    taken for out of reach; and from all orientations of the cell, as if they were equally frequent.

    Args:
        met: how often each orientation was met, `(..., bins)`.
    """
    bins, missing = met.shape[-1], np.count_nonzero(met == 0, axis=-1)
    expected, hopeless = np.zeros(missing.shape), np.zeros(missing.shape, dtype=bool)
    inside = (slice(2, -2),) * missing.ndim
    for k in range(bins):
        near = cell_arrays.smoothed(met[..., k])[inside]
        expected += np.where(near > 0.0, np.exp(-near), 0.0)
        hopeless |= near == 0.0
    alike = bins * np.exp(-met.mean(axis=-1))
    from_near = ~hopeless & (missing <= expected + SPREAD * np.sqrt(expected))
    from_cell = (missing < bins) & (missing <= alike + SPREAD * np.sqrt(alike))
    return (missing > 0) & (from_near | from_cell)


def _checked(
    robot: Robot, frame: FrameLike, kind: str, plane: str | None, samples: int, measure: str,
    orientations: int, target: str,
) -> tuple[Any, ...]:  # fmt: skip
    moving_joints(robot, frame)
    check_measure(measure)
    if kind not in KINDS:
        raise UnknownName("kind of workspace", kind, KINDS)
    if plane not in PLANES:
        raise UnknownName("plane", plane, [str(name) for name in PLANES if name])
    if target not in TARGETS:
        raise UnknownName("target", target, TARGETS)
    for name, value in (("samples", samples), ("orientations", orientations)):
        if not isinstance(value, (int, np.integer)) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"{name}={value!r} must be a whole number of at least 1")
    return kind, plane, measure


def _sphere(
    robot: Robot,
    frame: FrameLike,
    ranges: Sequence[JointRange],
    q0: Array,
    span: tuple[int, ...],
) -> tuple[Array, float]:
    """Return a centre and a radius that hold every position of the frame."""
    first = moving_joints(robot, frame)[0]
    placed = frame_pose(
        robot, q0, Frame("first", robot.joints[first].parent, robot.joints[first].placement)
    )
    travel = 0.0
    for j in moving_joints(robot, frame):
        joint = robot.joints[j]
        lead = joint if joint.mimic is None else robot.joints[joint.mimic.joint]
        sampled = next((r for r in ranges if r.name == lead.name), None)
        ratio = 1.0 if joint.mimic is None else abs(joint.mimic.ratio)
        offset = 0.0 if joint.mimic is None else abs(joint.mimic.offset)
        for k, freedom in enumerate(joint_kind(joint).freedoms):
            if not freedom.angular and (joint.kind != "helical"):
                reach = (
                    max(abs(sampled.lower[k]), abs(sampled.upper[k]))
                    if sampled is not None
                    else abs(float(q0[lead.q.start + k]))
                )
                travel += ratio * reach + offset
        if joint.kind == "helical":
            turn = (
                max(abs(sampled.lower[0]), abs(sampled.upper[0]))
                if sampled
                else abs(float(q0[lead.q.start]))
            )
            travel += abs(float(joint.pitch)) * (ratio * turn + offset)
    radius = arm_length(robot, frame) + travel
    if not radius > 0.0:
        raise InvalidValue(f"the frame {robot.frame(frame).name!r} only turns about itself")
    return pose.translation(placed)[list(span)], radius
