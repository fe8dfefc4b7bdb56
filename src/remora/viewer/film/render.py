"""`rm.render`: a film (MP4, GIF) or a still (PNG) of a run, without a window.

The page of the run is opened in Chromium without a window, and frame by frame its time and camera
are set and its picture fetched.
"""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.atomic_files import replacing
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.simulation.recording.recording import Recording
from remora.viewer.film.browser import find_browser, opened
from remora.viewer.page.run_page import RunPage
from remora.viewer.scene.backdrops import SPACE, backdrop

Frame = NDArray[np.uint8]
#: Distance of the camera relative to that of the page, which leaves room for controls.
CLOSER = 0.8
#: Longest film by default, s; how long the first picture may take, and each of the others, s.
LONGEST, FIRST, EACH = 12.0, 240.0, 120.0


@dataclass(frozen=True)
class _Shot:
    """How the frames of a film are taken."""

    times: NDArray[np.float64]
    size: tuple[int, int]
    camera: str
    caption: str
    clock: bool
    dark: bool
    lossless: bool


def render(
    run: Recording,
    path: str | os.PathLike[str],
    *,
    at: float | None = None,
    seconds: float | None = None,
    fps: int = 20,
    size: tuple[int, int] = (1280, 720),
    camera: str = "sweep",
    caption: str | None = None,
    clock: bool = True,
    scene: str = SPACE,
    show: tuple[str, ...] = (),
    browser: str | os.PathLike[str] | None = None,
    mesh_root: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a film or a still of a run.

    Args:
        run: the run.
        path: the file, `.mp4`, `.gif` or `.png`; an existing file is replaced.
        at: time of a still, s; default: the middle of the run.
        seconds: length of a film; default: that of the run, at most 12 s.
        fps: frames per second of a film.
        size: width and height, px, even numbers.
        camera: its path, a key of `CAMERA_PATHS`: `still`, `sweep`, `approach` or `orbit`.
        caption: text at the bottom; default: the name of the robot; empty: none.
        clock: whether to show the time of the run.
        scene: `space`, `studio` or `dark`.
        show: what to show besides, by the names of `page.show`, such as `reactions`.
        browser: program of Chromium or Chrome; default: the first that is found.
        mesh_root: the folder that meshes must be in.

    Returns:
        The path of the file.

    Raises:
        RemoraError: if there is no browser, the extra `film` is missing, or a value is refused.
    """
    file = Path(path)
    writer = writer_of(file)
    if camera not in CAMERA_PATHS:
        raise UnknownName("camera path", camera, CAMERA_PATHS)
    is_still = writer is _write_png
    times = _still_time(run, at) if is_still else _film_times(run, seconds, fps)
    if min(size) < 16 or max(size) > 4096 or any(n % 2 for n in size):
        raise InvalidValue(f"size={size!r}; width and height are even numbers from 16 to 4096")
    if file.parent and not file.parent.is_dir():
        raise RemoraError(f"{file.parent}: no such folder")
    text = run.robot.name if caption is None else caption
    lossless = file.suffix.lower() != ".mp4"  # noise of JPEG would triple the size of a GIF
    shot = _Shot(times, size, camera, text, clock, backdrop(scene).dark, lossless)
    if not lossless:
        _ffmpeg()
    program = find_browser(browser)
    page = RunPage(run, 0, scene, mesh_root)
    with page:
        page.show(*show)
        with opened(program, page.url, size), replacing(file) as part:
            writer(part, _frames(page, shot), fps, size)
    return file


def writer_of(file: Path) -> Callable[..., None]:
    """Return what writes a file with this suffix, a value of `WRITERS`."""
    writer = WRITERS.get(file.suffix.lower())
    if writer is None:
        raise UnknownName("kind of film", file.suffix or file.name, WRITERS)
    return writer


def _film_times(run: Recording, seconds: float | None, fps: int) -> NDArray[np.float64]:
    if len(run) == 0:
        raise RemoraError(f"the run of {run.robot.name!r} has no samples; there is nothing to show")
    length = min(run.duration, LONGEST) if seconds is None else float(seconds)
    if not 0.0 < length <= 600.0:
        raise InvalidValue(
            f"seconds={seconds!r}; a film has a length of more than 0 and up to 600 s"
        )
    if not 1 <= fps <= 60:
        raise InvalidValue(f"fps={fps!r}; from 1 to 60 frames per second")
    return np.linspace(float(run.t[0]), float(run.t[-1]), max(2, round(length * fps)))


def _still_time(run: Recording, at: float | None) -> NDArray[np.float64]:
    if len(run) == 0:
        raise RemoraError(f"the run of {run.robot.name!r} has no samples; there is nothing to show")
    first, last = float(run.t[0]), float(run.t[-1])
    t = 0.5 * (first + last) if at is None else float(at)
    if not first <= t <= last:
        raise InvalidValue(f"at={at!r}; the run is from {first:g} to {last:g} s")
    return np.array([t])


def _frames(page: RunPage, shot: _Shot) -> Iterator[Frame]:
    client = _client(page)
    still = page.server.initial_camera
    position, look_at = np.array(still.position), np.array(still.look_at)

    def taken(k: int, patience: float) -> Frame:
        s = k / max(1, len(shot.times) - 1) if len(shot.times) > 1 else 0.5
        page.time = float(shot.times[k])
        there = camera_pose(shot.camera, s, look_at + CLOSER * (position - look_at), look_at)
        try:
            picture = client.get_render(
                shot.size[1], shot.size[0], wxyz=there.wxyz, position=there.position,
                fov=float(still.fov), timeout=patience,
                transport_format="png" if shot.lossless else "jpeg",
            )  # fmt: skip
        except (RuntimeError, TimeoutError) as error:
            raise RemoraError(f"the browser drew no picture: {error}") from None
        return _opaque(np.asarray(picture), shot.dark)

    _settle(lambda: taken(0, FIRST))
    for k, t in enumerate(shot.times):
        clock = f"t = {t:.1f} s" if shot.clock else ""
        yield captioned(taken(k, EACH), shot.caption, clock, shot.dark)


def _opaque(picture: NDArray[Any], dark: bool) -> Frame:
    """Return a picture `(h, w, 3 or 4)` on the page's background."""
    if picture.shape[2] == 3:
        return np.asarray(picture, dtype=np.uint8)
    alpha = picture[:, :, 3:].astype(float) / 255.0
    mixed = alpha * picture[:, :, :3] + (1.0 - alpha) * (20.0 if dark else 255.0)
    return np.asarray(np.round(mixed), dtype=np.uint8)


def _client(page: RunPage) -> Any:
    """Return the browser that has opened the page, or raise."""
    end = time.monotonic() + FIRST
    while not (clients := page.server.get_clients()):
        if time.monotonic() > end:
            raise RemoraError("the browser did not open the page; try another one with --browser")
        time.sleep(0.1)
    return next(iter(clients.values()))


def _settle(picture: Callable[[], Frame]) -> None:
    """Wait until bodies and textures are loaded: until three pictures in a row are the same."""
    end, same, before = time.monotonic() + FIRST, 0, picture()
    while same < 2 and time.monotonic() < end:
        time.sleep(0.4)
        now = picture()
        change = np.abs(now.astype(int) - before.astype(int)).mean()
        same = same + 1 if change < 0.05 and now.std() > 1.0 else 0
        before = now


def _write_png(file: Path, frames: Iterator[Frame], fps: int, size: tuple[int, int]) -> None:
    _pillow().fromarray(next(iter(frames))).save(file, optimize=True)


def _write_gif(file: Path, frames: Iterator[Frame], fps: int, size: tuple[int, int]) -> None:
    image = _pillow()
    pictures: list[Any] = []
    for frame in frames:  # one palette for all, so that what does not move stays the same
        picture = image.fromarray(frame)
        first = pictures[0] if pictures else picture.quantize(160, dither=0)
        pictures.append(picture.quantize(palette=first, dither=0))
    pictures[0].save(
        file, save_all=True, append_images=pictures[1:], duration=round(1000.0 / fps), loop=0,
        optimize=True,
    )  # fmt: skip


def _write_mp4(file: Path, frames: Iterator[Frame], fps: int, size: tuple[int, int]) -> None:
    writer = _ffmpeg().write_frames(
        str(file), size, fps=fps, codec="libx264", pix_fmt_out="yuv420p", macro_block_size=2,
        output_params=["-crf", "25", "-preset", "slow", "-movflags", "+faststart"],
    )  # fmt: skip
    writer.send(None)
    try:
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))
    finally:
        writer.close()


def _pillow() -> Any:
    return importlib.import_module("PIL.Image")


def _ffmpeg() -> Any:
    try:
        return importlib.import_module("imageio_ffmpeg")
    except ModuleNotFoundError:
        raise RemoraError(
            "films as MP4 need imageio-ffmpeg: pip install '.[film]' in Remora's folder"
        ) from None


#: One entry per kind of file.
WRITERS: dict[str, Callable[[Path, Iterator[Frame], int, tuple[int, int]], None]] = {
    ".mp4": _write_mp4,
    ".gif": _write_gif,
    ".png": _write_png,
}


class CameraPose(NamedTuple):
    """Where the camera is.

    Attributes:
        position: `(3,)`, m.
        wxyz: orientation, z forward and y down, `(4,)`.
    """

    position: Array
    wxyz: Array


def _around(turn: float, closer: float) -> Callable[[float, Array], Array]:
    """Return a path that turns by an angle, rad, and shortens the distance by a factor."""

    def path(s: float, away: Array) -> Array:
        smooth = s * s * (3.0 - 2.0 * s)
        angle, factor = turn * (s - 0.5), 1.0 + (closer - 1.0) * smooth
        c, d = math.cos(angle), math.sin(angle)
        x, y, z = away
        return factor * np.array([c * x - d * y, d * x + c * y, z])

    return path


#: Paths by name: (part of the film from 0 to 1, offset of a still camera) -> offset of the camera.
CAMERA_PATHS: dict[str, Callable[[float, Array], Array]] = {
    "still": _around(0.0, 1.0),
    "sweep": _around(math.radians(35.0), 1.0),
    "approach": _around(math.radians(25.0), 0.72),
    "orbit": _around(2.0 * math.pi, 1.0),
}


def camera_pose(path: str, s: float, position: Array, look_at: Array) -> CameraPose:
    """Return the camera's pose at part s of a film, for a still camera at `position`."""
    there = look_at + CAMERA_PATHS[path](s, position - look_at)
    z = look_at - there
    z = z / np.linalg.norm(z)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x = x / np.linalg.norm(x)
    turn = np.column_stack([x, np.cross(z, x), z])
    return CameraPose(there, pose.from_rotation_matrix(turn, np.zeros(3))[:4])


_MARGIN = 0.028


def captioned(frame: NDArray[np.uint8], caption: str, clock: str, dark: bool) -> NDArray[np.uint8]:
    """Return a frame `(h, w, 3)` with a caption below on the left and a clock on the right."""
    if not caption and not clock:
        return frame
    images: Any = importlib.import_module("PIL.Image")
    drawing: Any = importlib.import_module("PIL.ImageDraw")
    fonts: Any = importlib.import_module("PIL.ImageFont")
    picture = images.fromarray(frame)
    high, wide = frame.shape[:2]
    font = fonts.load_default(size=max(11, round(0.034 * high)))
    draw = drawing.Draw(picture)
    ink, edge = ((240, 243, 248), (0, 0, 0)) if dark else ((30, 34, 40), (255, 255, 255))
    margin = round(_MARGIN * wide)
    style = {"font": font, "fill": ink, "stroke_width": 1, "stroke_fill": edge}
    draw.text((margin, high - margin), caption, anchor="ls", **style)
    draw.text((wide - margin, high - margin), clock, anchor="rs", **style)
    return np.asarray(picture, dtype=np.uint8)
