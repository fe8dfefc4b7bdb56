"""A browser without a window: find Chromium or Chrome, and open a page in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

from remora.errors import RemoraError

#: Programs that are looked for, in this order, and places outside the search path.
PROGRAMS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "microsoft-edge", "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)  # fmt: skip
#: WebGL in software, which needs no GPU; no requests of the browser's own.
_OPTIONS = (
    "--headless=new", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-default-apps", "--mute-audio", "--remote-debugging-port=0",
)  # fmt: skip


def find_browser(program: str | os.PathLike[str] | None = None) -> str:
    """Return the path of Chromium or Chrome.

    Args:
        program: its name or path; default: the environment's REMORA_BROWSER, then `PROGRAMS`.

    Raises:
        RemoraError: if there is none.
    """
    wanted = program or os.environ.get("REMORA_BROWSER")
    if wanted:
        found = shutil.which(os.fspath(wanted))
        if found is None:
            raise RemoraError(
                f"{os.fspath(wanted)!r} is not a program; pass the path of Chromium or Chrome"
            )
        return found
    found = next((path for path in map(shutil.which, PROGRAMS) if path), None)
    if found is None:
        raise RemoraError(
            "films and stills are drawn by Chromium or Chrome, and none was found: install one, or "
            "name its program by --browser (browser= in Python) or REMORA_BROWSER"
        )
    return found


@contextlib.contextmanager
def opened(program: str, url: str, size: tuple[int, int]) -> Generator[None]:
    """Open a page in a browser without a window, and end the browser afterwards."""
    # Chromium's sandbox refuses to run as root.
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [
            program, *_OPTIONS, *(["--no-sandbox"] if is_root else []),
            f"--user-data-dir={Path(folder) / 'profile'}",
            f"--window-size={size[0]},{size[1] + 200}", url,
        ]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield
            finally:
                process.terminate()
                try:
                    process.wait(10.0)
                except subprocess.TimeoutExpired:
                    process.kill()
