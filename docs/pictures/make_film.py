"""Make the film of the README: the servicer of `remora demo` reaches for its target.

    python docs/pictures/make_film.py

Needs `remora[film]` and Chromium. WebGL runs in software: it takes some minutes.
"""

import tempfile
from pathlib import Path

import remora as rm
from remora.cli.demo import reached

HERE = Path(__file__).parent

with tempfile.TemporaryDirectory() as folder:
    _, run = reached(rm.load("servicer"), Path(folder) / "run")
    caption = "A servicer reaches for a target; its base floats and recoils"
    for name, camera, fps in (("servicer.gif", "still", 10), ("servicer.mp4", "approach", 15)):
        file = rm.render(
            run, HERE / name, seconds=8.0, fps=fps, size=(640, 360), camera=camera, caption=caption
        )
        print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB")
