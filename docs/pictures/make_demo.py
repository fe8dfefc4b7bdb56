"""Make the picture of the README: the run of `remora demo` in the viewer.

    python docs/pictures/make_demo.py --browser /usr/bin/chromium

Needs `remora[view]`, Playwright and Chromium. WebGL runs in software: it takes half a minute.
"""

import argparse
import io
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import remora as rm
from remora.cli.demo import reached

FILE = Path(__file__).parent / "demo.png"
#: The moment that is shown, s: the arm is open and reaches for the target.
MOMENT = 20.5
SIZE = (1280, 720)
ARGUMENTS = (
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--browser", required=True, help="Chromium's program")
options = parser.parse_args()

with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
    _, run = reached(rm.load("servicer"), Path(folder) / "run")
    browser = playwright.chromium.launch(executable_path=options.browser, args=list(ARGUMENTS))
    with rm.view(run, port=0, open=False) as page:
        page.show("trail: bus")
        page.time = MOMENT
        camera = page.server.initial_camera  # nearer than where all of the run is seen
        camera.position = tuple(0.72 * np.array(camera.position) + 0.28 * np.array(camera.look_at))
        tab = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        tab.goto(page.url)
        tab.wait_for_selector("canvas")
        time.sleep(8.0)
        for close in tab.locator(".mantine-Notification-closeButton").all():
            close.click()
        time.sleep(3.0)
        shot = Image.open(io.BytesIO(tab.screenshot(timeout=60_000))).convert("RGB")
    browser.close()

shot.save(FILE, optimize=True)
if FILE.stat().st_size > 290e3:
    shot.quantize(256, kmeans=2).save(FILE, optimize=True)
print(f"{FILE}: {FILE.stat().st_size / 1e3:.0f} kB")
