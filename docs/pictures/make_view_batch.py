"""Make the picture of runs of a batch in docs/view.md.

    python docs/pictures/make_view_batch.py --browser /usr/bin/chromium

Needs `remora[view]`, Playwright and Chromium.
"""

import argparse
import io
import time
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import remora as rm

ARGUMENTS = (
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--browser", required=True, help="Chromium's program")
options = parser.parse_args()

robot = rm.load("servicer")
q = rm.neutral(robot)
q[8:] = np.radians([60, 0, 0, 40, 0, 30, 0])
payload = np.array([1.0, 10.0, 20.0, 30.0, 40.0])  # kg
batch = rm.simulate_batch(
    robot,
    q,
    np.zeros(robot.nv),
    12.0,
    integrator=rm.Integrator(step=0.02),
    record=0.1,
    runs=rm.Runs(parameters={"flange.mass": payload}),
    torque={"shoulder_pitch": rm.Pulse(0.0, 3.0, 1.2), "elbow_pitch": rm.Pulse(0.0, 3.0, -0.5)},
    locked=("shoulder_roll", "upper_arm_roll", "forearm_roll", "wrist_pitch", "wrist_roll"),
)

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=options.browser, args=list(ARGUMENTS))
    with batch.view(*range(5), port=0, open=False) as page:
        page.time = 7.0
        page.set_shadows(False)
        tab = browser.new_page(viewport={"width": 1200, "height": 760})
        tab.goto(page.url)
        tab.wait_for_selector("canvas")
        tab.add_style_tag(content=".mantine-Notifications-root { display: none !important }")
        time.sleep(20.0)
        shot = tab.screenshot(timeout=180_000)
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    file = Path(__file__).parent / "view_batch.png"
    picture.quantize(256, kmeans=2).save(file, optimize=True)
