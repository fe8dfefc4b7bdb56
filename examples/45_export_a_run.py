"""A run as files for other programs: CSV, NumPy, MATLAB and Parquet, with names and units.

Run: python examples/45_export_a_run.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import remora as rm

robot = rm.load("vt18_satellite")
q = rm.configuration(robot, {"J2": np.radians(30.0), "J3": np.radians(-60.0)}, xyz=(0, 0, 2))
v = rm.velocity(robot, {"J1": 0.2})
run = rm.simulate(robot, q, v, 5.0, torque={"J3": rm.Pulse(1.0, 2.0, 0.5)}, record=0.5)

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
run.to_csv(folder / "run.csv", "q", "tau", "positions.end_effector", "euler_angles.body_1")
run.to_npz(folder / "run.npz")
run.to_mat(folder / "run.mat")
run.to_parquet(folder / "run.parquet")
for file in sorted(folder.glob("run.*")):
    print(f"{file.name}: {file.stat().st_size / 1e3:.0f} kB")

with np.load(folder / "run.npz") as data:
    tool = data["positions.names"].tolist().index([f"positions.end_effector.{a}" for a in "xyz"])
    print("tool at the end:", data["positions"][-1, tool].round(4), data["positions.units"][tool])
speeds = rm.by_joint(robot, run.v[-1])
for name in ("J1", "J2", "J3"):
    print(f"speed of {name} at the end: {speeds[name]:.4f} rad/s")
