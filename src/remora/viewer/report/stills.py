"""Stills of a run for its report, drawn without a browser: the robot at chosen times, in space."""

from __future__ import annotations

import importlib
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import RemoraError
from remora.simulation.recording.quantities import evaluated
from remora.simulation.recording.recording import Recording
from remora.viewer.interpolation import configurations
from remora.viewer.load_words import short
from remora.viewer.run_tables import phase_spans
from remora.viewer.scene.camera import Camera, framed
from remora.viewer.scene.ghost import ghost_bodies
from remora.viewer.scene.overlays import TRAIL_COLORS, positions, thinned
from remora.viewer.scene.primitives import Primitive
from remora.viewer.scene.raster import Triangles, depth_image, projected, shaded
from remora.viewer.scene.scene import end_effectors, extent, toward_others
from remora.viewer.scene.shapes import shapes
from remora.viewer.scene.surfaces import surface

#: Width and height of a still, px; each is the mean of FINE x FINE.
SIZE, FINE = (440, 330), 2
#: Robots with more triangles are not drawn.
MOST_TRIANGLES = 400_000
#: If the base moves by more than this many times the robot's size, the camera follows it.
FAR = 1.5
#: Quality of the JPEG; colours of space, of the ghost and of places in the inertial frame.
_QUALITY, _SPACE, _GHOST, _PLACE = 84, (9, 12, 20), (70, 190, 245), (226, 60, 96)
_GHOST_OPACITY, _STARS = 0.30, 90


@dataclass(frozen=True, eq=False)
class Still:
    """A picture of a run.

    Attributes:
        t: time, s.
        caption: what happens then.
        jpeg: the picture.
    """

    t: float
    caption: str
    jpeg: bytes


@dataclass(frozen=True, eq=False)
class _Shape:
    """The triangles of a body in its own frame."""

    body: int
    triangles: Triangles


def stills(run: Recording, size: tuple[int, int] = SIZE) -> list[Still]:
    """Return pictures of a run at its start, at its end and where something happens.

    The robot is drawn with the shapes of the viewer in sunlight, without shadows. Lines are the
    paths of the tools up to then; in blue: base and panels as they were at the start.

    Raises:
        RemoraError: if the run has no samples, or the robot has too many triangles.
    """
    if len(run) == 0:
        raise RemoraError("the run has no samples; there is nothing to draw")
    robot, chosen = run.robot, still_times(run)
    drawn = shapes(robot)
    bodies = [_triangles(shape) for shape in drawn]
    count = sum(len(body.triangles.corners) for body in bodies)
    if count > MOST_TRIANGLES:
        raise RemoraError(f"{count} triangles are too many for stills ({MOST_TRIANGLES} at most)")
    q = configurations(run, np.array([still.t for still in chosen]))
    x = evaluated(CompiledRobot(robot), "poses", q)
    clouds = [_placed(bodies, own).corners.reshape(-1, 3) for own in x]
    base = pose.translation(x[:, 0])
    _, radius = extent(clouds[0])
    follows = float(np.ptp(base, axis=0).max()) > FAR * radius
    away = base - base[0] if follows else np.zeros_like(base)
    fine = size[0] * FINE, size[1] * FINE
    seen = np.concatenate([c - d for c, d in zip(clouds, away, strict=True)])
    camera = framed(seen, toward_others(robot, x), size[0] / size[1])
    thin, tips = thinned(run), end_effectors(robot)[:4]
    ways = list(positions(thin, tips).values())
    ghost = [body for body in bodies if body.body in ghost_bodies(robot)]
    made: list[Still] = []
    behind: NDArray[np.bool_] | None = None
    for k, still in enumerate(chosen):
        there = Camera(camera.position + away[k], camera.look_at + away[k], camera.field)
        if behind is None or follows:
            behind = depth_image(_placed(ghost, x[0]).corners, there, fine).face >= 0
        image = _picture(_placed(bodies, x[k]), behind, there, fine)
        marks = [(way[thin.t <= still.t], TRAIL_COLORS[n]) for n, way in enumerate(ways)]
        places = [pose.translation(f.placement) for f in robot.frames if f.body < 0]
        made.append(Still(still.t, still.caption, _finished(image, marks, places, there, size)))
    return made


def _triangles(shape: Primitive) -> _Shape:
    own, look = surface(shape), shape.finish
    corners, n = own.points[own.faces], len(own.faces)
    normal = own.normals[own.faces].sum(axis=1)
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    shine = np.full(n, 0.10 + 0.25 * look.metal)
    return _Shape(shape.body, Triangles(corners, normal, np.tile(look.color[:3], (n, 1)), shine))


def _placed(bodies: Sequence[_Shape], x: Array) -> Triangles:
    """Return the triangles at poses of the bodies `(nb, 8)`, in the inertial frame."""
    if not bodies:
        return Triangles(np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0))
    corners = [
        quaternion.rotate(x[b.body, :4], b.triangles.corners) + pose.translation(x[b.body])
        for b in bodies
    ]
    normals = [quaternion.rotate(x[b.body, :4], b.triangles.normals) for b in bodies]
    return Triangles(
        np.concatenate(corners),
        np.concatenate(normals),
        np.concatenate([b.triangles.colors for b in bodies]),
        np.concatenate([b.triangles.shine for b in bodies]),
    )


def _picture(
    robot: Triangles, ghost: NDArray[np.bool_], camera: Camera, size: tuple[int, int]
) -> Array:
    """Return an image `(h, w, 3)` of the robot before the sky, with a ghost behind it."""
    image = _sky(size)
    ahead = depth_image(robot.corners, camera, size)
    colors = 255.0 * shaded(robot, camera)
    seen = ahead.face >= 0
    faint = ghost & ~seen
    mixed = (1.0 - _GHOST_OPACITY) * image + _GHOST_OPACITY * np.array(_GHOST)
    image = np.where(faint[..., None], mixed, image)
    return np.where(seen[..., None], colors[np.where(seen, ahead.face, 0)], image)


def _sky(size: tuple[int, int]) -> Array:
    wide, high = size
    random = np.random.default_rng(11)
    image = np.tile(np.array(_SPACE, dtype=float), (high, wide, 1))
    x, y = random.integers(0, wide - 1, _STARS), random.integers(0, high - 1, _STARS)
    bright = random.uniform(30.0, 150.0, _STARS)[:, None]
    for dx, dy in ((0, 0), (0, 1), (1, 0), (1, 1)):
        image[y + dy, x + dx] += bright
    return image


def _finished(
    image: Array,
    ways: Sequence[tuple[Array, tuple[int, int, int]]],
    places: Sequence[Array],
    camera: Camera,
    size: tuple[int, int],
) -> bytes:
    """Draw paths and places into a fine image, reduce it to its size, and return it as JPEG."""
    images: Any = importlib.import_module("PIL.Image")
    drawing: Any = importlib.import_module("PIL.ImageDraw")
    fine = image.shape[1], image.shape[0]
    picture = images.fromarray(np.asarray(np.clip(np.round(image), 0, 255), dtype=np.uint8))
    pen = drawing.Draw(picture)
    for way, color in ways:
        at, depth = projected(way, camera, fine)
        line = [(float(u), float(v)) for (u, v), d in zip(at, depth, strict=True) if d > 0.0]
        if len(line) > 1:
            pen.line(line, fill=color, width=2 * FINE, joint="curve")
    for place in places:
        at, depth = projected(place, camera, fine)
        if depth > 0.0:
            r = 4.0 * FINE
            pen.ellipse([at[0] - r, at[1] - r, at[0] + r, at[1] + r], outline=_PLACE, width=FINE)
    buffer = io.BytesIO()
    picture.resize(size, images.Resampling.LANCZOS).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


#: Number of stills of a run that lasts: two rows of three.
COUNT = 6
#: Moments closer together than this part of the run are one.
CLOSE = 0.04


class StillTime(NamedTuple):
    """A moment of a run that is shown.

    Attributes:
        t: s.
        caption: what happens then; empty between events.
    """

    t: float
    caption: str


def still_times(run: Recording) -> list[StillTime]:
    """Return the moments to show, in order: start, end, captures, phases, events, and between.

    Where there are too many, captures and releases count most, then phases, then events.
    """
    first, last = float(run.t[0]), float(run.t[-1])
    if last <= first:
        return [StillTime(first, "")]
    chosen = [StillTime(first, "start"), StillTime(last, "end")]
    for moment in _candidates(run):
        near = [c for c in chosen if abs(c.t - moment.t) < CLOSE * (last - first)]
        if not near and len(chosen) < COUNT and first < moment.t < last:
            chosen.append(moment)
    while len(chosen) < COUNT:
        chosen.sort()
        gaps = [(b.t - a.t, a.t) for a, b in itertools.pairwise(chosen)]
        size, start = max(gaps)
        chosen.append(StillTime(start + 0.5 * size, ""))
    return sorted(chosen)


def _candidates(run: Recording) -> list[StillTime]:
    found: list[StillTime] = []
    named = {float(e.t): short(e.name) for e in run.events}
    for s in run.switches:
        if float(s.t) in named:
            found.append(StillTime(float(s.t), named[float(s.t)]))
            continue
        on = ", ".join(short(x) for x in s.activated)
        off = ", ".join(short(x) for x in s.released)
        words = [f"{on} on" if on else "", f"{off} off" if off else ""]
        found.append(StillTime(float(s.t), "; ".join(w for w in words if w)))
    found += [StillTime(span.start, f"{short(span.name)} begins") for span in phase_spans(run)]
    found += [StillTime(float(e.t), short(e.name)) for e in run.events]
    return found
