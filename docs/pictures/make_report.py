"""Make the pictures of docs/report.md: `python docs/pictures/make_report.py`.

Needs matplotlib, viser, and Chromium, which is asked for a screenshot.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import remora as rm

HERE = Path(__file__).resolve().parent
#: Blink's number of each colour scheme, and how far down the page what is shown begins, px.
SHOTS = {"light": (1, 0), "dark": (0, 1690)}
HEIGHT = 1200


def simulated() -> rm.Recording:
    """A digital controller unfolds the arm of a servicer; then it coasts with its joints locked."""
    robot = rm.load("servicer")
    start = rm.neutral(robot)
    start[8:] = np.radians([0, 30, 0, -60, 0, 45, 0])
    goal = np.radians([20, 60, 0, -30, 0, 20, 0])
    inertia = np.diag(rm.mass_matrix(robot, start))[6:]

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return a spring's and a damper's torque for each joint, nothing for the base."""
        now = start[8:] + min(t / 10.0, 1.0) * (goal - start[8:])
        return np.concatenate([np.zeros(6), inertia * (2.0 * (now - q[8:]) - 2.0 * v[6:])])

    def near(t: float, q: np.ndarray, v: np.ndarray) -> float:
        """Return what falls through zero within a degree of the goal."""
        return float(np.abs(q[8:] - goal).max()) - np.radians(1.0)

    return rm.simulate(
        robot,
        start,
        np.zeros(robot.nv),
        [
            rm.Phase(20.0, torque=rm.ZeroOrderHold(law, 0.02), name="unfold"),
            rm.Phase(10.0, locked=robot.joints.names[1:], impulse=True, name="hold"),
        ],
        record=0.05,
        integrator=rm.Integrator("dopri5", rtol=1e-12, atol=1e-14, step_to_samples=True),
        events=[rm.Event(near, "within 1°", action="record", direction=-1)],
    )


def main() -> None:
    run = simulated()
    figure = run.plot("q", "tau", "attitude", "drift")
    figure.savefig(HERE / "plot.png", dpi=130)
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    with tempfile.TemporaryDirectory() as folder:
        page = rm.report(run, Path(folder) / "report.html", title="Unfolding the arm")
        shots: list[Image.Image] = []
        for name, (scheme, top) in SHOTS.items():
            shot = Path(folder) / f"{name}.png"
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            options += [f"--window-size=820,{top + HEIGHT}"]
            options += [f"--blink-settings=preferredColorScheme={scheme}"]
            command = [chromium, *options, f"--screenshot={shot}", page.as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            shots.append(Image.open(shot).convert("RGB").crop((0, top, 820, top + HEIGHT)))
    both = Image.new("RGB", (2 * shots[0].width, shots[0].height))
    for k, shot in enumerate(shots):
        both.paste(shot, (k * shot.width, 0))
    small = both.resize((both.width * 2 // 3, both.height * 2 // 3), Image.Resampling.LANCZOS)
    few = small.point(lambda x: round(round(x * 31 / 255) * 255 / 31))  # fewer shades: smaller
    few.save(HERE / "report.png", optimize=True)
    for name in ("plot.png", "report.png"):
        print(f"{HERE / name}  {(HERE / name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
