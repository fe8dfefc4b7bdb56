"""A run as one self-contained HTML file that plays from disk, without network requests."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.atomic_files import write_text
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import InvalidValue, RemoraError
from remora.simulation.recording.quantities import evaluated
from remora.simulation.recording.recording import Recording
from remora.viewer.interpolation import configurations
from remora.viewer.page.page import look_at, set_theme
from remora.viewer.page.server import page_script, quiet, start_server
from remora.viewer.page.timeline import film_html, timeline_html
from remora.viewer.scene.backdrops import SPACE, backdrop, chosen_scene, set_backdrop
from remora.viewer.scene.ghost import add_ghost
from remora.viewer.scene.labels import FrameLabels
from remora.viewer.scene.overlays import (
    MASS_COLOR,
    OVERLAY,
    TRAIL_COLORS,
    Trail,
    positions,
    thinned,
)
from remora.viewer.scene.scene import WORLD, Scene, end_effectors, extent, toward_others

#: Maximum frames in a file, and the longest and shortest run that is played in real time, s.
PICTURES, LONGEST, SHORTEST = 600, 60.0, 3.0
#: Maximum number of switches of constraints in the caption.
MOST_SWITCHES = 6
_GRAIN = 2.0**-15
_FACTORS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000)


def save_html(
    run: Recording,
    path: str | os.PathLike[str],
    *,
    scene: str | None = None,
    dark: bool = False,
    follow_base: bool = True,
    pictures: int = PICTURES,
    mesh_root: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a run as one HTML file of about 1 MB that plays in any browser, from disk, offline.

    Args:
        run: the run.
        path: the file; an existing file is replaced.
        scene: `space` (default), `studio` or `dark`, see `view`.
        dark: the same as `scene="dark"`.
        follow_base: whether the camera follows the base; otherwise the inertial origin.
        pictures: maximum number of frames, evenly spaced in time.
        mesh_root: meshes outside this folder are left out.

    Returns:
        The path of the file.

    Raises:
        RemoraError: if the run has no samples, viser is missing or the file cannot be written.
    """
    chosen = chosen_scene(scene, dark, SPACE)
    text = html_of(run, chosen, follow_base, pictures, mesh_root)
    return write_text(path, text)


def html_of(
    run: Recording,
    look: str = SPACE,
    follow_base: bool = True,
    pictures: int = PICTURES,
    mesh_root: str | os.PathLike[str] | None = None,
) -> str:
    """Return the text of the file that `save_html` writes."""
    if len(run) == 0:
        raise RemoraError(f"the run of {run.robot.name!r} has no samples; there is nothing to show")
    if pictures < 2:
        raise InvalidValue(f"pictures={pictures!r}; a film has at least two")
    server = start_server(0)
    try:
        with quiet():
            set_theme(server, backdrop(look).dark)
        return _recorded(server, run, look, follow_base, pictures, mesh_root)
    finally:
        with quiet():
            server.stop()


def _recorded(
    server: Any,
    run: Recording,
    look: str,
    follow_base: bool,
    pictures: int,
    mesh_root: str | os.PathLike[str] | None,
) -> str:
    """Return the page with the recorded run: the scene, then the changes frame by frame."""
    factor, frames = pace(run.duration, pictures)
    times = np.linspace(float(run.t[0]), float(run.t[-1]), frames)
    q, fast = configurations(run, times), CompiledRobot(run.robot)
    x, com = evaluated(fast, "poses", q), evaluated(fast, "center_of_mass", q)
    scene, thin = Scene(server, run.robot, mesh_root, run.switches), thinned(run)
    base = pose.translation(x[:, 0]) if follow_base else np.zeros((frames, 3))
    some = range(0, frames, max(1, frames // 12))
    cloud = np.concatenate([scene.cloud(x[k]) - base[k] for k in some])
    _, radius = extent(cloud)
    look_at(server, cloud, toward_others(run.robot, x[some]))
    set_backdrop(server, SPACE, radius)  # the script repaints it as another scene
    add_ghost(server, run.robot, scene.drawn, x[0], WORLD)
    tips = end_effectors(run.robot)[:4]
    labels, ways = FrameLabels(server, run.robot, tips), positions(thin, tips)
    trails = [
        Trail(server, name, thin.t, way, TRAIL_COLORS[k], 0.0035 * radius)
        for k, (name, way) in enumerate(ways.items())
    ]
    mass = server.scene.add_icosphere(f"{OVERLAY}/centre_of_mass", 0.022 * radius, MASS_COLOR)

    def show(k: int) -> None:
        scene.move(x[k], pose.from_translation(base[k]), _GRAIN, times[k])
        mass.position = np.round(com[k] / _GRAIN) * _GRAIN
        labels.move(x[k], _GRAIN)
        for trail in trails:
            trail.visible = True
            trail.show(times[k])

    show(0)
    film = server.get_scene_serializer()
    for k in range(1, frames):
        film.insert_sleep(run.duration / factor / (frames - 1))
        show(k)
    dark = backdrop(look).dark
    return _captioned(film.as_html(dark_mode=dark), run, factor, look)


def pace(duration: float, pictures: int = PICTURES) -> tuple[float, int]:
    """Return the playback speed relative to real time, and the number of frames."""
    if duration <= 0.0:
        return 1.0, 1
    factor = 1.0
    if duration > LONGEST:
        factor = next((float(f) for f in _FACTORS if duration / f <= LONGEST), duration / LONGEST)
    elif duration < SHORTEST:
        factor = next((1.0 / f for f in _FACTORS if duration * f >= SHORTEST), duration / SHORTEST)
    return factor, max(2, min(pictures, round(30.0 * duration / factor)))


def _captioned(page: str, run: Recording, factor: float, look: str) -> str:
    """Add a title, a caption and the timeline to the page."""
    name = html.escape(run.robot.name)
    speed = "" if factor == 1.0 else f" · played {factor:g} times as fast"
    line = f"<b>{name}</b> · {run.duration:.6g} s{speed} · lines: trails · green: centre of mass"
    for switch in run.switches[:MOST_SWITCHES]:
        line += f"<br>{switch.t:.4g} s: {html.escape(str(switch))}"
    box = (
        "<style>.remora-caption{position:fixed;left:14px;bottom:60px;z-index:3;color:#3b424c;"
        "pointer-events:none;font:13px system-ui,sans-serif}"
        '[data-mantine-color-scheme="dark"] .remora-caption{color:#c9ced6;'
        "text-shadow:0 0 4px #000,0 0 2px #000}</style>"
        f'<div class="remora-caption">{line}</div>'
    )
    title = f"<title>{name} - Remora</title>"
    page = re.sub(r"<title>.*?</title>", lambda _: title, page, count=1)
    end = page.rindex("</body>")
    timeline = timeline_html(run) + film_html(factor, look)
    return page[:end] + box + timeline + page_script() + page[end:]
