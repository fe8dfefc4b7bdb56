"""Makes the pictures of docs/analysis.md. Run from the repository root."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import remora as rm

robot = rm.load("servicer")
q = rm.neutral(robot)
q[8:] = np.radians([0.0, 35.0, 0.0, 70.0, 0.0, 45.0, 0.0])
moves = {
    name: rm.Motion.between(0, 20, q[8 + k], q[8 + k] + by)
    for k, (name, by) in enumerate(
        zip(robot.joints.names[1:], (0.8, -0.6, 0, -1.2, 0, -0.7, 0), strict=True)
    )
}
run = rm.simulate(robot, q, np.zeros(robot.nv), 20.0, prescribed=moves, record=0.1)
found = rm.analysis.conditioning(robot, run.q, "tool", "floating", subspace="twist", t=run.t)
found.plot().savefig("docs/pictures/conditioning.png", dpi=110)

path = np.repeat(q[None], 21, axis=0)
path[:, 8:] += np.linspace(0, 1, 21)[:, None] * np.array([0.8, 0.3, 0, -0.9, 0, 0.4, 0])
errors = {"mass": 0.02, "inertia": 0.02, "com": 0.005, "length": 0.001, "bus.inertia": 0.05}
sensitivity = rm.analysis.miss_sensitivity(robot, path, "tool", errors)
misses = sensitivity.monte_carlo(400)[1]
sensitivity.plot(misses=misses).savefig("docs/pictures/sensitivity.png", dpi=110)

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder)
    command = ["remora", "analyze", "wheels", "servicer_wheels", "--out", folder]
    subprocess.run(command, check=True)
    shutil.copy(out / "wheels_1.png", "docs/pictures/wheel_envelope.png")
