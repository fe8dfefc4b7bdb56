"""`rm.view`: a run or a robot in the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import overload

from remora.errors import InvalidValue, RemoraError
from remora.model.formats.load import READERS, bundled_robots, load
from remora.model.robot import Robot
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.reading import open_run
from remora.viewer.page.page import viser_module
from remora.viewer.page.robot_page import RobotPage
from remora.viewer.page.run_page import RunPage


@overload
def view(
    thing: Recording,
    port: int = 8080,
    open: bool = True,
    *,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> RunPage: ...
@overload
def view(
    thing: Robot,
    port: int = 8080,
    open: bool = True,
    *,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> RobotPage: ...
@overload
def view(
    thing: str | os.PathLike[str],
    port: int = 8080,
    open: bool = True,
    *,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> RunPage | RobotPage: ...
def view(
    thing: Recording | Robot | str | os.PathLike[str],
    port: int = 8080,
    open: bool = True,
    *,
    dark: bool = False,
    mesh_root: str | os.PathLike[str] | None = None,
) -> RunPage | RobotPage:
    """Show a run or a robot on a page in the browser, served to this machine alone.

    The page lives as long as this process: in a script, end with `rm.view(run).wait()`. In a
    notebook, the value shows itself.

    Args:
        thing: a run, the folder of a run, a robot, a robot's file or a bundled robot's name.
        port: of 127.0.0.1; 0: any that is free.
        open: whether to open the page in the browser.
        dark: whether the page begins dark.
        mesh_root: the folder that meshes must lie in; a run on disk shows its meshes only if it
            is given.

    Raises:
        RemoraError: if viser is not installed, the port is in use, or there is nothing to show.
    """
    viser_module()
    shown = viewable(thing, mesh_root)
    kind = RunPage if isinstance(shown, Recording) else RobotPage
    page = kind(shown, port, dark, mesh_root)  # type: ignore[arg-type]
    if open:
        page.open()
    return page


def viewable(
    thing: Recording | Robot | str | os.PathLike[str],
    mesh_root: str | os.PathLike[str] | None = None,
    inertia: str | None = None,
    dynamics: bool = True,
) -> Recording | Robot:
    """Return the run or robot that is meant: itself, a run's folder, a robot's file or name."""
    if isinstance(thing, Recording | Robot):
        return thing
    try:
        path = Path(thing)
        is_folder, is_there = path.is_dir(), path.exists()
    except (TypeError, ValueError, OSError):
        raise InvalidValue(f"a run, a robot or a path can be viewed, not {thing!r}") from None
    if is_folder:
        return open_run(path, mesh_root)
    if not is_there and str(thing) not in bundled_robots() and path.suffix.lower() not in READERS:
        raise RemoraError(
            f"{str(thing)!r} is no folder of a run, no robot's file ({', '.join(READERS)}) and no "
            f"bundled robot ({', '.join(bundled_robots())})"
        )
    return load(thing, mesh_root=mesh_root, inertia=inertia, dynamics=dynamics)
