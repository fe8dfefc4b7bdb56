"""Capture of a tumbling satellite: rigid and compliant, the tumble of the stack, and a release.

With `--plot FOLDER` the figure is written there; this needs matplotlib.
"""

import argparse
from pathlib import Path

import numpy as np

import remora as rm

ENDS = "servicer/grapple", "target/fixture"
REACH = {"distance": 0.05, "angle": 0.5, "speed": 0.2}
STIFFNESS = np.array([1e3, 1e4, 1e5, 1e6])  # N/m, and N m/rad


def world() -> rm.Robot:
    """Return a servicer and a target, two free bodies with a grasp that is off."""
    servicer = rm.Builder("servicer").body("bus", mass=400, inertia=(80, 90, 110))
    servicer.joint("base", "free", None, "bus").frame("grapple", "bus", xyz=(1.2, 0, 0))
    target = rm.Builder("target").body("bus", mass=150, com=(0.05, 0.02, 0), inertia=(30, 25, 20))
    target.joint("base", "free", None, "bus").frame("fixture", "bus", xyz=(-0.6, 0, 0))
    both = rm.combine({"servicer": servicer.build(), "target": target.build()})
    return rm.loops.add_constraint(both, "grasp", "fixed", *ENDS, active=False)


robot = world()
q, v = rm.neutral(robot), np.zeros(robot.nv)
q[8:] = rm.algebra.pose.from_translation(np.array([2.1, 0.0, 0.0]))
v[6:] = 0.03, -0.02, 0.05, -0.1, 0.03, 0.0  # the target tumbles and drifts towards the grapple


def rigid() -> rm.Recording:
    """Return the run with a rigid capture, held for 20 s, and a release at 0.1 m/s."""
    events = rm.capture_events(robot, *ENDS, **REACH)
    return rm.simulate(robot, q, v, [
        rm.Phase(20.0, events=events, name="approach"),
        rm.Phase(20.0, activate="grasp", latch=True, after_event=True, name="stack"),
        rm.Phase(5.0, release="grasp", separation={"grasp": (0.1, 0, 0)}, name="release"),
    ], integrator=rm.Integrator(rtol=1e-12, step_to_samples=True), record=0.1)  # fmt: skip


def compliant(until: float) -> rm.Batch:
    """Return captures by springs of growing stiffness, damped at 0.7 of critical."""
    springs = {"damping": 1.0, "rotational_stiffness": 1e3, "rotational_damping": 1.0}
    grip = rm.world.CompliantCapture(*ENDS, **REACH, stiffness=1e3, **springs, name="grip")
    damping = 1.4 * np.sqrt(STIFFNESS * 100.0)
    springs = {"damping": damping, "rotational_damping": 0.4 * damping}
    numbers = {"stiffness": STIFFNESS, "rotational_stiffness": STIFFNESS, **springs}
    return rm.simulate_batch(
        rm.System(robot, [grip]), q, v, until, record=0.002,
        integrator=rm.Integrator("dopri5", rtol=1e-9, atol=1e-11),
        runs=rm.Runs(parameters={f"grip.{key}": x for key, x in numbers.items()}),
    )  # fmt: skip


def main(folder: Path | None) -> None:
    run = rigid()
    grasp, release = run.switches
    kept = run.conservation()
    print(f"captured at {grasp.t:.3f} s, {np.linalg.norm(grasp.impulses['grasp'][:3]):.3f} N s, "
          f"{1e3 * grasp.energy_loss:.2f} mJ lost")  # fmt: skip
    print(f"released at {release.t:.3f} s with {1e3 * release.separation_work:.1f} mJ")
    print(f"momentum kept to 1e-12: {kept.angular_momentum.relative < 1e-12}, "
          f"constraint to 1e-12 m: {kept.constraint < 1e-12}")  # fmt: skip
    batch = compliant(end := 10.0)
    for k, stiffness in enumerate(STIFFNESS):
        force = np.linalg.norm(batch.signals["grip.force"][k], axis=1).max()
        off = np.abs(batch.v[k, -1, 6:] - run.at(end)[1][6:]).max()
        print(f"{stiffness:9.0f} N/m: peak force {force:7.1f} N, "
              f"speeds of the target at {end:g} s off the rigid ones by {off:.1e}")  # fmt: skip
    if folder is not None:
        plot(run, batch, folder)


def plot(run: rm.Recording, batch: rm.Batch, folder: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    left.plot(run.t, run.frame("target/bus").twist[:, :3], label=["x", "y", "z"])
    for switch, text in zip(run.switches, ("capture", "release"), strict=True):
        left.axvline(switch.t, color="0.5", lw=0.8)
        left.text(switch.t, 0.99, f" {text}", transform=left.get_xaxis_transform(), va="top")
    left.set(xlabel="time, s", ylabel="angular velocity of the target, rad/s")
    left.legend(title="body axes", loc="upper center", fontsize=8)
    for k, stiffness in enumerate(STIFFNESS):
        force = np.linalg.norm(batch.signals["grip.force"][k], axis=1)
        right.semilogy(batch.t - run.switches[0].t, force, label=f"{stiffness:.0e} N/m")
    right.set(xlabel="time since capture, s", ylabel="force of the grip, N")
    right.set(xlim=(-0.05, 1.0), ylim=(0.1, 1e4))
    right.legend(fontsize=8)
    figure.savefig(folder / "capture.png", dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, metavar="FOLDER")
    main(parser.parse_args().plot)
