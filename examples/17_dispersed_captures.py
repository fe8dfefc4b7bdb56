"""Two hundred captures with dispersed approach velocities: success rate, impulses, energy lost.

With `--plot FOLDER` the figure is written there; this needs matplotlib.
"""

import argparse
from pathlib import Path

import numpy as np

import remora as rm

ENDS = "servicer/grapple", "target/fixture"
RUNS = 200


def world() -> rm.Robot:
    """Return a servicer and a target, two free bodies with a grasp that is off."""
    servicer = rm.Builder("servicer").body("bus", mass=400, inertia=(80, 90, 110))
    servicer.joint("base", "free", None, "bus").frame("grapple", "bus", xyz=(1.2, 0, 0))
    target = rm.Builder("target").body("bus", mass=150, com=(0.05, 0.02, 0), inertia=(30, 25, 20))
    target.joint("base", "free", None, "bus").frame("fixture", "bus", xyz=(-0.6, 0, 0))
    both = rm.combine({"servicer": servicer.build(), "target": target.build()})
    return rm.loops.add_constraint(both, "grasp", "fixed", *ENDS, active=False)


def captures(robot: rm.Robot) -> rm.Batch:
    """Return runs that approach at dispersed velocities, capture, and hold the target for 10 s."""
    rng = np.random.default_rng(0)
    q, v = rm.neutral(robot), np.zeros((RUNS, robot.nv))
    q[8:] = rm.algebra.pose.from_translation(np.array([2.1, 0.0, 0.0]))
    v[:, 6:] = 0.03, -0.02, 0.05, -0.1, 0.03, 0.008  # the target tumbles towards the grapple
    v[:, 9:] += rng.normal(0.0, (0.02, 0.008, 0.008), (RUNS, 3))  # m/s
    events = rm.capture_events(robot, *ENDS, distance=0.05, angle=0.5, speed=0.2)
    phases = [
        rm.Phase(20.0, events=events, name="approach"),
        rm.Phase(10.0, activate="grasp", latch=True, after_event=True, name="stack"),
    ]
    return rm.simulate_batch(robot, q, v, phases, integrator=rm.Integrator(step=0.02), record=1.0)


def main(folder: Path | None) -> None:
    batch = captures(world())
    (grasp,) = batch.switches
    caught = np.isfinite(grasp.t)
    impulse = np.linalg.norm(grasp.impulses["grasp"][caught, :3], axis=1)
    first, last = grasp.t[caught].min(), grasp.t[caught].max()
    print(f"{caught.sum()} of {RUNS} captured, between {first:.2f} and {last:.2f} s; "
          f"the others ended with {np.unique(batch.outcome[~caught]).tolist()}")  # fmt: skip
    low, middle, high = np.percentile(impulse, (5, 50, 95))
    print(f"impulse {middle:.1f} N s, from {low:.1f} to {high:.1f} N s in nine runs of ten")
    print(f"energy lost: {1e3 * np.median(grasp.energy_loss[caught]):.0f} mJ, at most "
          f"{1e3 * grasp.energy_loss[caught].max():.0f} mJ")  # fmt: skip
    h = batch.evaluate(rm.momentum)
    print(f"momentum kept in all runs: {np.nanmax(np.abs(h - h[:, :1])) < 1e-8}")
    if folder is not None:
        plot(batch, caught, impulse, folder)


def plot(batch: rm.Batch, caught: np.ndarray, impulse: np.ndarray, folder: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    y, z = batch.v[:, 0, 10], batch.v[:, 0, 11]
    points = left.scatter(1e3 * y[caught], 1e3 * z[caught], c=impulse, s=14)
    left.scatter(1e3 * y[~caught], 1e3 * z[~caught], marker="x", s=14, c="0.4", label="missed")
    left.set(xlabel="lateral velocity y, mm/s", ylabel="lateral velocity z, mm/s", aspect="equal")
    left.legend(loc="lower left", fontsize=8, framealpha=1.0)
    figure.colorbar(points, ax=left, label="impulse, N s")
    right.hist(impulse, bins=20, color="0.6", edgecolor="white")
    right.set(xlabel="impulse of the grapple, N s", ylabel="runs", yticks=range(0, 25, 5))
    right.axvline(np.median(impulse), color="black", lw=0.8)
    figure.savefig(folder / "dispersed_captures.png", dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, metavar="FOLDER")
    main(parser.parse_args().plot)
