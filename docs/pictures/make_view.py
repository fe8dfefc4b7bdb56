"""Make the pictures of docs/view.md.

    python docs/pictures/make_view.py --browser /usr/bin/chromium

Needs `remora[view]`, Playwright and Chromium. WebGL runs in software: it takes minutes.
"""

import argparse
import io
import time
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import remora as rm

HERE = Path(__file__).parent
ARGUMENTS = (
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip


def unfolding() -> rm.Recording:
    """Return 20 s in which the servicer unfolds its arm, the base floating."""
    robot = rm.load("servicer")
    q = rm.neutral(robot)
    folded, reaching = (
        np.radians(angles)
        for angles in ([0, -100, 0, 140, 0, -40, 0], [35, 55, 20, -70, 10, 60, 45])
    )
    q[8:] = folded
    moves = {
        joint.name: rm.Motion.between(1 + 0.5 * k, 16 + 0.5 * k, folded[k], reaching[k])
        for k, joint in enumerate(robot.joints[1:])
    }
    return rm.simulate(
        robot, q, np.zeros(robot.nv), 20.0, prescribed=moves, sample=0.05, progress=False
    )


def bare(robot: rm.Robot) -> rm.Robot:
    """Return the robot without geometry."""
    for body in robot.bodies:
        robot = robot.replace_body(body.name, geometry=())
    return robot


def taken(browser, page, size=(1200, 760), scale=1.0) -> Image.Image:
    """Return a picture of a page."""
    tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
    tab.goto(page.url)
    tab.wait_for_selector("canvas")
    tab.add_style_tag(content=".mantine-Notifications-root { display: none !important }")
    time.sleep(15.0)
    picture = Image.open(io.BytesIO(tab.screenshot(timeout=180_000))).convert("RGB")
    tab.close()
    return picture.resize((round(size[0] * scale), round(size[1] * scale)), Image.LANCZOS)


def kept(picture: Image.Image, name: str) -> None:
    """Save a picture, in 256 colours if it would be large."""
    picture.save(HERE / name, optimize=True)
    if (HERE / name).stat().st_size > 290e3:
        picture.quantize(256, kmeans=2).save(HERE / name, optimize=True)
    print(f"{HERE / name}: {(HERE / name).stat().st_size / 1e3:.0f} kB")


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--browser", required=True, help="Chromium's program")
options = parser.parse_args()

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=options.browser, args=list(ARGUMENTS))
    with rm.view(unfolding(), port=0, open=False) as page:
        page.time = 10.0
        page.set_shadows(False)
        page.show("reactions")
        kept(taken(browser, page), "view_run.png")
    with rm.view("servicer", port=0, open=False) as page:
        page.move(shoulder_pitch=0.9, elbow_pitch=-1.4, wrist_pitch=0.8, shoulder_roll=0.5)
        page.set_shadows(False)
        kept(taken(browser, page), "view_robot.png")
        page.show("ellipsoid", "workspace")
        page.show("labels", visible=False)
        kept(taken(browser, page), "view_analysis.png")
    robots = [
        (bare(rm.load("servicer")), {"shoulder_pitch": 0.5, "elbow_pitch": -1.1}, 1.3),
        ("vt18_satellite", {"J2": 0.6, "J3": -1.0}, 1.0),
        ("vt18_two_arm", {}, 1.3),
        (rm.random_robot(3, bodies=9), {}, 1.3),
    ]
    sheet = Image.new("RGB", (1120, 686), "white")
    for k, (robot, pose, zoom) in enumerate(robots):
        with rm.view(robot, port=0, open=False, dark=k in (1, 2)) as page:
            page.move(**pose)
            page.set_shadows(False)
            page.show("labels", visible=False)
            shot = taken(browser, page, (1170, 490))
            x, y = 400 - 400 / zoom, 245 - 245 / zoom
            part = shot.resize((560, 343), Image.LANCZOS, (x, y, 800 - x, 490 - y))
            sheet.paste(part, (560 * (k % 2), 343 * (k // 2)))
    kept(sheet, "view_robots.png")
    browser.close()
