"""Overlays on the robot: trails, centre of mass, arrows of forces and momenta, frame axes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.model.robot import Robot
from remora.simulation.recording.quantities import QUANTITIES, evaluated
from remora.simulation.recording.recording import Recording
from remora.viewer.load_words import fixed
from remora.viewer.scene.scene import WORLD, clean

#: Path of the nodes that `page_script.js` draws through bodies.
OVERLAY = f"{WORLD}/overlay"
#: Number of pieces of a trail; a piece becomes visible once the run has passed it.
PIECES = 60
#: Number of samples used for trails and for the scales of arrows.
THIN = 2000
MASS_COLOR = (0, 185, 140)
TRAIL_COLORS = ((236, 112, 20), (38, 132, 224), (20, 160, 110), (170, 80, 190), (210, 60, 90))


def thinned(run: Recording, most: int = THIN) -> Recording:
    """Return a run reduced to at most `most` samples, including the first and the last."""
    if len(run) <= most:
        return run
    rows = np.unique(np.linspace(0, len(run) - 1, most).round().astype(int))
    columns = {name: values[rows] for name, values in run.columns.items()}
    return replace(run, columns=columns, stored=_nothing_stored)


def _nothing_stored(name: str) -> Array | None:
    return None


class Trail:
    """The path of a point, drawn up to the displayed time."""

    def __init__(
        self, server: Any, name: str, t: Array, points: Array, color: tuple[int, int, int],
        thickness: float,
    ) -> None:  # fmt: skip
        """Divide the path through `points` `(n, 3)` at times t into pieces, initially hidden."""
        self.visible = False
        self._pieces: list[tuple[float, Any]] = []
        if len(points) < 2:
            return
        cuts = np.unique(np.linspace(0, len(points) - 1, PIECES + 1).round().astype(int))
        for k, (a, b) in enumerate(itertools.pairwise(cuts)):
            line = points[a : b + 1]
            if np.ptp(line, axis=0).max() < 1e-7:
                continue
            node = server.scene.add_line_segments(
                f"{WORLD}/trail_{clean(name)}/{k}", np.stack([line[:-1], line[1:]], axis=1), color,
                thickness=thickness, visible=False,
            )  # fmt: skip
            self._pieces.append((float(t[b]), node))

    def show(self, t: float) -> None:
        """Show the pieces before time t, if the trail is visible."""
        for end, node in self._pieces:
            node.visible = self.visible and end <= t


@dataclass(frozen=True)
class OverlaySample:
    """The robot at one time of a run.

    Attributes:
        t: time, s.
        q: configuration, `(nq,)`.
        poses: poses of the bodies, `(nb, 8)`.
        sample: the recorded quantities at the last sample before t, one row each.
    """

    t: float
    q: Array
    poses: Array
    sample: Mapping[str, Array]


Loads = tuple[Array, Array, Array]
"""Points, forces and torques, `(n, 3)` each."""


class TipLabels:
    """Texts at the tips of arrows."""

    def __init__(self, server: Any, name: str) -> None:
        """Create no text yet."""
        self._server, self._name = server, name
        self._nodes: list[Any] = []

    def show(self, tips: Sequence[tuple[str, Array]]) -> None:
        """Show these texts at these points `(3,)`, and no others."""
        for k in range(len(self._nodes), len(tips)):
            path = f"{OVERLAY}/{self._name}_tip_{k}"
            self._nodes.append(
                self._server.scene.add_label(
                    path, "", anchor="center-left", font_screen_scale=0.9, visible=False
                )
            )
        for node, (text, at) in zip(self._nodes, tips, strict=False):
            node.text, node.position, node.visible = text, at, True
        for node in self._nodes[len(tips) :]:
            node.visible = False


class Arrows:
    """Forces and torques (or momenta) as arrows; the largest of the run has length `length`."""

    def __init__(
        self, server: Any, name: str, colors: tuple[tuple[int, int, int], tuple[int, int, int]],
        length: float, signs: tuple[str, str] = ("F", "τ"), units: tuple[str, str] = ("N", "N m"),
    ) -> None:  # fmt: skip
        """Create the overlay without arrows; signs and units are those of the labels at tips."""
        self._server, self._name, self._colors, self._length = server, name, colors, length
        self._handle: Any = None
        self._tips = TipLabels(server, name)
        self._words = tuple(zip(signs, units, strict=True))
        self.labels = self.visible = False

    def show(self, at: Array, first: Array, second: Array, most: tuple[float, float]) -> None:
        """Draw two vectors at each point, all `(n, 3)` in inertial axes, scaled by the largest.

        The longest arrow of each kind has a label with its value.
        """
        parts: list[Array] = []
        colors: list[tuple[int, int, int]] = []
        tips: list[tuple[str, Array]] = []
        for vectors, largest, color, (sign, unit) in zip(
            (first, second), most, self._colors, self._words, strict=True
        ):
            if largest <= 0.0:
                continue
            scaled = vectors * (self._length / largest)
            sizes = np.linalg.norm(scaled, axis=1)
            long = sizes > 0.02 * self._length
            parts.append(np.stack([at[long], (at + scaled)[long]], axis=1))
            colors += [color] * int(long.sum())
            k = int(np.argmax(sizes))
            if long[k]:
                value = float(np.linalg.norm(vectors[k]))
                tips.append((f"{sign} {fixed(value, largest)} {unit}", at[k] + 1.06 * scaled[k]))
        points = np.concatenate(parts) if parts else np.zeros((0, 2, 3))
        if len(points) == 0:
            self.hide()
            return
        self._tips.show(tips if self.labels else [])
        width = 0.016 * self._length
        if self._handle is None or len(self._handle.points) != len(points):
            self._handle = self._server.scene.add_arrows(
                f"{OVERLAY}/{self._name}", points, np.array(colors), shaft_radius=width,
                head_radius=2.4 * width, head_length=6.0 * width,
            )  # fmt: skip
        else:
            self._handle.points = points.astype(np.float32)
            self._handle.colors = np.array(colors, dtype=np.uint8)
            self._handle.visible = True

    def hide(self) -> None:
        """Hide all arrows."""
        self._tips.show([])
        if self._handle is not None:
            self._handle.visible = False


def joint_loads(fast: CompiledRobot, sample: Mapping[str, Array], poses: Array) -> Loads:
    """Return origin, force and torque of the constraint at every joint except the base joints.

    In inertial axes, `(k, 3)` each.
    """
    wrench = QUANTITIES["reactions"].of(fast, sample)[0]
    inner = [i for i, joint in enumerate(fast.robot.joints) if joint.parent >= 0]
    return _outward(poses[inner], wrench[inner])


def external_loads(sample: Mapping[str, Array], poses: Array) -> Loads:
    """Return origin, force and torque of the external wrench on every body, in inertial axes."""
    return _outward(poses, sample["wrenches"][0])


def _outward(x: Array, wrench: Array) -> Loads:
    r = x[:, :4]
    force, torque = (quaternion.rotate(r, wrench[:, k : k + 3]) for k in (0, 3))
    return pose.translation(x), force, torque


def largest(wrenches: Array) -> tuple[float, float]:
    """Return the largest force and torque of wrenches `(..., 6)`, ignoring NaN."""
    flat = np.nan_to_num(wrenches).reshape(-1, 6)
    if len(flat) == 0:
        return 0.0, 0.0
    first, second = (np.linalg.norm(flat[:, k : k + 3], axis=1) for k in (0, 3))
    return float(first.max()), float(second.max())


def has_mass(robot: Robot) -> bool:
    """Return whether a robot has a centre of mass; a kinematics-only model has none."""
    return robot.dynamics and float(robot.mass) > 0.0


def center_of_mass(fast: CompiledRobot, q: Array) -> Array:
    """Return the centre of mass at q `(nq,)` in the inertial frame `(3,)`; without mass, body 0."""
    if not has_mass(fast.robot):
        return pose.translation(evaluated(fast, "poses", q[None])[0, 0])
    return evaluated(fast, "center_of_mass", q[None])[0]


def axes_poses(robot: Robot, x: Array) -> Array:
    """Return the poses of the body frames and of the named frames attached to bodies."""
    named = [pose.compose(x[f.body], f.placement) for f in robot.frames if f.body >= 0]
    return np.concatenate([x, *(n[None] for n in named)])


def positions(run: Recording, names: Sequence[str]) -> dict[str, Array]:
    """Return the path of each body or frame through a run, `(n, 3)` each."""
    return {name: pose.translation(run.frame_pose(name)) for name in names}
