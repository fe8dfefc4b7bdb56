"""Benchmark of single runs and small batches: what a user waits for.

    python benchmarks/run_engine.py [--src CHECKOUT ...] [--rounds N]

The bundled servicer, 60 s: with and without watched limits, with a controller at 50 Hz as a
component and as a Python function, with a Python function of the state as a load; the reduced
model; VT18's robot; a batch of one. Several checkouts are measured in turns, each in a process of
its own, and their best times are printed side by side. Compilation is not measured: every run is
made once before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

MEASURED = """
import json, time, warnings
import numpy as np
import remora as rm

warnings.simplefilter("ignore")
robot = rm.load("servicer")
q, v = rm.neutral(robot), 0.05 * rm.random_state(robot, 1)[1]
felt = 1.2 / np.diag(np.linalg.inv(rm.mass_matrix(robot, q)))[6:]
names = [joint.name for joint in robot.joints[1:]]
gains = dict(zip(names, felt))
law = rm.control.JointPD(robot, dict.fromkeys(names, 0.1), gains, gains, 0.02)
system = rm.System(robot, [law])

def pd(t, q, v):
    return np.concatenate([np.zeros(6), -felt * (q[8:] - 0.1) - felt * v[6:]])

def damping(t, q, v):
    return np.concatenate([np.zeros(6), -0.01 * v[6:]])

vt18 = rm.load("vt18_satellite")
q18, v18 = rm.neutral(vt18), 0.3 * rm.random_state(vt18, 1)[1]
rest = np.r_[np.zeros(6), v[6:]]
cases = {
    "60 s, limits watched": lambda: rm.simulate(robot, q, v, 60.0),
    "60 s, limits ignored": lambda: rm.simulate(robot, q, v, 60.0,
                                                physics=rm.Physics("ignore")),
    "60 s, a sample every 0.1 s": lambda: rm.simulate(robot, q, v, 60.0, record=0.1),
    "50 Hz, component": lambda: rm.simulate(system, q, v, 60.0),
    "50 Hz, component, a sample every 1 s": lambda: rm.simulate(system, q, v, 60.0, record=1.0),
    "50 Hz, Python function": lambda: rm.simulate(
        robot, q, v, 60.0, torque=rm.ZeroOrderHold(pd, 0.02)),
    "10 s, Python function at every stage": lambda: rm.simulate(robot, q, v, 10.0, torque=damping),
    "reduced model, 60 s": lambda: rm.simulate(robot, q, rest, 60.0,
                                               physics=rm.Physics(model="reduced")),
    "VT18's robot, 70 s": lambda: rm.simulate(vt18, q18, v18, 70.0),
    "batch of one, 60 s": lambda: rm.simulate_batch(
        robot, q[None], v[None], 60.0, integrator="dop853",
        record=rm.Record(progress=False)),
}
found = {}
for name, case in cases.items():
    case()
    times = []
    while len(times) < 3 or (sum(times) < 0.5 and len(times) < 50):
        begun = time.perf_counter()
        case()
        times.append(time.perf_counter() - begun)
    found[name] = min(times)
print(json.dumps(found))
"""


def measured(source: Path) -> dict[str, float]:
    """Return the times of a checkout by case, s."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, action="append", help="a checkout; several in turns")
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    places = asked.src or [Path(__file__).parents[1]]
    best: list[dict[str, float]] = [{} for _ in places]
    for _ in range(asked.rounds):
        for own, place in zip(best, places, strict=True):
            for name, seconds in measured(place.resolve()).items():
                own[name] = min(seconds, own.get(name, seconds))
    print("| run | " + " | ".join(f"{place}, ms" for place in places) + " |")
    print("| --- |" + " ---: |" * len(places))
    for name in best[0]:
        print(f"| {name} | " + " | ".join(f"{1e3 * own[name]:.2f}" for own in best) + " |")


if __name__ == "__main__":
    main()
