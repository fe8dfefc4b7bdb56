"""Make the picture of the README: the run of `remora demo` in the viewer.

    python docs/pictures/make_demo.py --browser /usr/bin/chromium

Needs `remora[view]`, Playwright and Chromium. WebGL runs in software: it takes half a minute.
"""

import argparse
import io
import time
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import remora as rm

FILE = Path(__file__).parent / "demo.png"
#: The moment that is shown, s: the satellite is captured and stops tumbling.
MOMENT = 45.0
SIZE = (1280, 706)
ARGUMENTS = (
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--browser", required=True, help="Chromium's program")
options = parser.parse_args()

with sync_playwright() as playwright:
    run = rm.load_scenario("capture").run()
    browser = playwright.chromium.launch(executable_path=options.browser, args=list(ARGUMENTS))
    with rm.view(run, port=0, open=False) as page:
        page.time = MOMENT
        tab = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        tab.goto(page.url)
        tab.wait_for_selector("canvas")
        time.sleep(8.0)
        for close in tab.locator(".mantine-Notification-closeButton").all():
            close.click()
        seen = page.server.initial_camera  # all of the run is seen from there; now a bit nearer
        near = 0.8 * np.array(seen.position) + 0.2 * np.array(seen.look_at)
        for client in page.server.get_clients().values():
            client.camera.position, client.camera.look_at = near, np.array(seen.look_at)
            client.camera.fov = seen.fov
        time.sleep(4.0)
        shot = Image.open(io.BytesIO(tab.screenshot(timeout=60_000))).convert("RGB")
    browser.close()

shot.save(FILE, optimize=True)
if FILE.stat().st_size > 290e3:
    shot.quantize(256, kmeans=2).save(FILE, optimize=True)
print(f"{FILE}: {FILE.stat().st_size / 1e3:.0f} kB")
