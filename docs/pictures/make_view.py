"""Make the pictures of docs/view.md and docs/tutorial.md.

    python docs/pictures/make_view.py --browser /usr/bin/chromium

Needs `remora[view]`, Playwright and Chromium. WebGL runs in software: it takes minutes.
"""

import argparse
import io
import re
import subprocess
import sys
import tempfile
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
        robot, q, np.zeros(robot.nv), 20.0, prescribed=moves, record=rm.Record(0.05, progress=False)
    )


def bare(robot: rm.Robot) -> rm.Robot:
    """Return the robot without geometry."""
    for body in robot.bodies:
        robot = robot.replace_body(body.name, geometry=())
    return robot


def taken(browser, page, size=(1200, 760), click=()) -> Image.Image:
    """Return a picture of a page, after clicks on the titles of folders."""
    tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
    tab.goto(page.url)
    tab.wait_for_selector("canvas")
    tab.add_style_tag(content=".mantine-Notifications-root { display: none !important }")
    for title in click:
        tab.get_by_text(title, exact=True).first.click(timeout=120_000)
    time.sleep(15.0)
    picture = Image.open(io.BytesIO(tab.screenshot(timeout=180_000))).convert("RGB")
    tab.close()
    return picture


def kept(picture: Image.Image, name: str) -> None:
    """Save a picture, in 256 colours if it would be large."""
    picture.save(HERE / name, optimize=True)
    if (HERE / name).stat().st_size > 290e3:
        picture.quantize(256, kmeans=2).save(HERE / name, optimize=True)
    print(f"{HERE / name}: {(HERE / name).stat().st_size / 1e3:.0f} kB", flush=True)


def view_run(browser) -> None:
    """Show forces and torques at the joints in the middle of a run."""
    with rm.view(unfolding(), port=0, open=False) as page:
        page.time = 10.0
        page.set_shadows(False)
        page.show("reactions")
        kept(taken(browser, page), "view_run.png")


def view_robot(browser) -> None:
    """Show the servicer with its sliders."""
    with rm.view("servicer", port=0, open=False) as page:
        page.move(shoulder_pitch=0.9, elbow_pitch=-1.4, wrist_pitch=0.8, shoulder_roll=0.5)
        page.set_shadows(False)
        kept(taken(browser, page), "view_robot.png")


def view_analysis(browser) -> None:
    """Show the workspace and the velocity ellipsoid of the tool."""
    with rm.view("servicer", port=0, open=False, scene="dark") as page:
        page.move(shoulder_pitch=0.9, elbow_pitch=-1.4, wrist_pitch=0.8, shoulder_roll=0.5)
        page.set_shadows(False)
        page.show("ellipsoid", "workspace")
        while "is being prepared" in page._analysis.text:
            time.sleep(1.0)
        camera = page.server.initial_camera
        look_at, position = np.array(camera.look_at), np.array(camera.position)
        camera.position = tuple(look_at + 1.35 * (position - look_at))
        kept(taken(browser, page, click=("Joints", "Target", "Analysis")), "view_analysis.png")


def view_robots(browser) -> None:
    """Show four robots whose shapes are generated, or their own."""
    robots = [
        (bare(rm.load("servicer")), {"shoulder_pitch": 0.5, "elbow_pitch": -1.1}, 1.35),
        ("vt18_satellite", {"J2": 0.6, "J3": -1.0}, 1.05),
        ("vt18_two_arm", {}, 1.4),
        (rm.random_robot(3, bodies=9), {}, 1.3),
    ]
    sheet = Image.new("RGB", (1120, 686), "white")
    for k, (robot, pose, zoom) in enumerate(robots):
        with rm.view(robot, port=0, open=False, dark=k in (1, 2)) as page:
            page.move(**pose)
            page.set_shadows(False)
            page.show("labels", visible=False)
            shot = taken(browser, page, (1200, 490))  # the controls take 400 of it
            x, y = 400 - 400 / zoom, 245 - 245 / zoom
            part = shot.resize((560, 343), Image.LANCZOS, (x, y, 800 - x, 490 - y))
            sheet.paste(part, (560 * (k % 2), 343 * (k // 2)))
    kept(sheet, "view_robots.png")


def first_day(browser) -> None:
    """Show the run of docs/tutorial.md, whose files are in its text."""
    text = (HERE.parent / "tutorial.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, body in re.findall(r"<!-- file: (\S+) -->\n```\w*\n(.*?)```", text, re.DOTALL):
            (Path(folder) / name).write_text(body, encoding="utf-8")
        command = [sys.executable, "-c", "from remora.cli import main; main()", "run"]
        command += ["unfold.yaml", "--out", "tug_run"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        run = rm.open_run(Path(folder) / "tug_run")
        with rm.view(run, port=0, open=False) as page:
            page.time = 27.1
            page.set_shadows(False)
            kept(taken(browser, page), "first_day.png")


PICTURES = {
    f.__name__: f for f in (view_run, view_robot, view_analysis, view_robots, first_day)
}  # fmt: skip
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--browser", required=True, help="Chromium's program")
parser.add_argument("names", nargs="*", help=f"pictures: {', '.join(PICTURES)}; default: all")
options = parser.parse_args()

with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=options.browser, args=list(ARGUMENTS))
    for name in options.names or PICTURES:
        PICTURES[name](chromium)
    chromium.close()
