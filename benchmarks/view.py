"""Benchmark of the viewer: time to open a long run, frame rate with 20 bodies, size of HTML files.

    python benchmarks/view.py [--browser /usr/bin/chromium]

With a browser (requires Playwright), the frames drawn by the page and the updates it receives are
counted as well.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from peer_libraries import chain

import remora as rm

OPEN = """
import sys, time
start = time.perf_counter()
import remora as rm
imported = time.perf_counter()
page = rm.view(sys.argv[1], port=0, open=False)
print(imported - start, time.perf_counter() - imported)
page.close()
"""
BROWSER = (
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip


def long_run(folder: Path) -> Path:
    """Write a ten-minute run of a drifting servicer with moving joints, 100 samples per second."""
    robot = rm.load("servicer")
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    v[6:] = 0.02
    place = folder / "long"
    rm.simulate(
        robot,
        q,
        v,
        600.0,
        record=rm.Record(0.01, folder=place, progress=False),
        physics=rm.Physics(limits="ignore"),
    )
    return place


def opened(place: Path) -> tuple[float, float]:
    """Return the time of `import remora` and of `rm.view`, s, the minimum of three processes."""
    times: list[tuple[float, ...]] = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", OPEN, str(place)], capture_output=True, text=True, check=True
        )
        times.append(tuple(float(x) for x in done.stdout.split()[-2:]))
    return min(a for a, _ in times), min(b for _, b in times)


def swinging(bodies: int) -> rm.Recording:
    """Return a 20 s run of a chain with the given number of bodies."""
    robot = chain(bodies - 1)
    rng = np.random.default_rng(1)
    q, v = rm.neutral(robot), np.concatenate([np.zeros(6), 0.2 * rng.normal(size=bodies - 1)])
    return rm.simulate(
        robot,
        q,
        v,
        20.0,
        record=rm.Record(1.0 / 60.0, progress=False),
        integrator=rm.Integrator(rtol=1e-6, atol=1e-8),
    )


def redraws(page: rm.view, count: int = 300) -> float:
    """Return the server's time per frame, ms."""
    times = []
    for t in np.linspace(0.0, page.run.duration, count):
        start = time.perf_counter()
        page.time = t
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def in_browser(page: rm.view, program: str, seconds: float = 8.0) -> tuple[float, ...]:
    """Return per second: frames drawn in the page, frames of the server, messages to the page.

    The image is small, without grid and shadows, to measure the page and not the GPU.
    """
    page.show("grid", "shadows", visible=False)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(BROWSER))
        tab = browser.new_page(viewport={"width": 520, "height": 200})
        frames, moved, redraw = [], [], page.redraw
        page.redraw = lambda: (moved.append(1), redraw())
        tab.on("websocket", lambda ws: ws.on("framereceived", lambda _: frames.append(1)))
        tab.goto(page.url)
        tab.wait_for_selector("canvas")
        page.play()
        time.sleep(12.0)  # wait until the shaders are compiled
        frames.clear()
        moved.clear()
        drawn = tab.evaluate(
            """seconds => new Promise(done => { let n = 0; const start = performance.now();
            const next = () => { n += 1; performance.now() - start < 1000 * seconds
              ? requestAnimationFrame(next) : done(1000 * n / (performance.now() - start)); };
            requestAnimationFrame(next); })""",
            seconds,
        )
        counted = len(moved) / seconds, len(frames) / seconds
        browser.close()
    return drawn, *counted


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--browser", help="Chromium's program, to count in a page as well")
options = parser.parse_args()

with tempfile.TemporaryDirectory() as temporary:
    place = long_run(Path(temporary))
    run = rm.open_run(place)
    imported, shown = opened(place)
    print(f"run of {len(run)} samples: import remora {imported:.2f} s, rm.view {shown:.2f} s")
    for name, film in (("600 s, 60,000 samples", run), ("20 s, 20 bodies", swinging(20))):
        start = time.perf_counter()
        file = rm.save_html(film, Path(temporary) / "film.html")
        took = time.perf_counter() - start
        print(f"stand-alone file, {name}: {file.stat().st_size / 1e6:.2f} MB in {took:.1f} s")
    with rm.view(swinging(20), port=0, open=False) as page:
        each = redraws(page)
        print(f"20 bodies: {each:.2f} ms a picture in the server, {1e3 / each:.0f} a second")
        if options.browser:
            drawn, sent, got = in_browser(page, options.browser)
            print(
                f"playing, a second: {sent:.0f} pictures sent in {got:.0f} messages that arrive, "
            )
            print(f"{drawn:.0f} drawn by the browser in software")
