"""`rm.view`: show a run, a batch or a robot in the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import overload

from remora.errors import InvalidValue, RemoraError
from remora.model.formats.bundled import bundled
from remora.model.formats.load import READERS, load
from remora.model.robot import Robot
from remora.simulation.batch.batch_storage import open_batch
from remora.simulation.batch.result import Batch
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.reading import open_run
from remora.simulation.storage.stored_folder import BATCH, holds
from remora.viewer.page.batch_page import BatchPage
from remora.viewer.page.robot_page import RobotPage
from remora.viewer.page.run_page import RunPage
from remora.viewer.scene.backdrops import SPACE, STUDIO, chosen_scene


@overload
def view(
    thing: Recording,
    port: int = 8080,
    open: bool = True,
    *,
    scene: str | None = None,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> RunPage: ...
@overload
def view(
    thing: Batch,
    port: int = 8080,
    open: bool = True,
    *,
    scene: str | None = None,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> BatchPage: ...
@overload
def view(
    thing: Robot,
    port: int = 8080,
    open: bool = True,
    *,
    scene: str | None = None,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> RobotPage: ...
@overload
def view(
    thing: str | os.PathLike[str],
    port: int = 8080,
    open: bool = True,
    *,
    scene: str | None = None,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> RunPage | BatchPage | RobotPage: ...
def view(
    thing: Recording | Batch | Robot | str | os.PathLike[str],
    port: int = 8080,
    open: bool = True,
    *,
    scene: str | None = None,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> RunPage | BatchPage | RobotPage:
    """Show a run, runs of a batch, or a robot on a browser page that is served on localhost only.

    The page is served as long as this process runs: end a script with `rm.view(run).wait()`. In a
    notebook, the returned value displays itself.

    Args:
        thing: a run or a batch, the folder of one, a robot, a robot's file or a bundled robot's
            name. Of a batch up to eight runs are shown, evenly spaced; `batch.view(3, 7)` chooses.
        port: port on 127.0.0.1; 0: any free port.
        open: whether to open the page in the browser.
        scene: `space` (stars, the Earth, one sun), `studio` (light) or `dark`; default: space for
            runs, studio for robots and batches.
        dark: the same as `scene="dark"`.
        mesh_root: the folder that meshes must be in; required to show the meshes of a run on disk.

    Raises:
        RemoraError: if viser is not installed, the port is in use, or there is nothing to show.

    Example:
        >>> page = rm.view(rm.load("servicer"), port=0, open=False)
        >>> page.url.startswith("http://127.0.0.1:")
        True
        >>> page.close()
    """
    chosen_scene(scene, dark, SPACE)
    shown = viewable(thing, mesh_root)
    if isinstance(shown, Batch):
        is_dark = chosen_scene(scene, dark, STUDIO) != STUDIO
        return shown.view(port=port, open=open, dark=is_dark, mesh_root=mesh_root)
    if isinstance(shown, Recording):
        page = RunPage(shown, port, chosen_scene(scene, dark, SPACE), mesh_root)
    else:
        page = RobotPage(shown, port, chosen_scene(scene, dark, STUDIO), mesh_root)
    if open:
        page.open()
    return page


def viewable(
    thing: Recording | Batch | Robot | str | os.PathLike[str],
    mesh_root: str | os.PathLike[str] | None = None,
    inertia: str | None = None,
    dynamics: bool = True,
) -> Recording | Batch | Robot:
    """Resolve a run, a batch, the folder of one, a robot, or a robot's file or name."""
    if isinstance(thing, Recording | Batch | Robot):
        return thing
    try:
        path = Path(thing)
        is_folder, is_there = path.is_dir(), path.exists()
    except (TypeError, ValueError, OSError):
        raise InvalidValue(f"a run, a robot or a path can be viewed, not {thing!r}") from None
    if is_folder:
        reader = open_batch if holds(BATCH, path) else open_run
        return reader(path, mesh_root=mesh_root)
    if not is_there and str(thing) not in bundled("robots") and path.suffix.lower() not in READERS:
        raise RemoraError(
            f"{str(thing)!r} is not the folder of a run, a robot file ({', '.join(READERS)}) or a "
            f"bundled robot ({', '.join(bundled('robots'))})"
        )
    return load(thing, mesh_root=mesh_root, inertia=inertia, dynamics=dynamics)
