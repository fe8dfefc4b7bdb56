"""Two arms of a servicer hold one workpiece and turn it; momentum stays constant.

    python examples/43_two_arms.py

The workpiece is a tree of its own; two constraints grip it. The left arm is driven, the right one
follows through the workpiece. With `--plot FOLDER` the figure is written there (matplotlib).
"""

import argparse
from pathlib import Path

import numpy as np

import remora as rm

SIDES = {"left": 1.0, "right": -1.0}
MOVE = {"left_shoulder": 0.6, "left_elbow": -0.9, "left_wrist": 0.7}  # rad, of the driven joints
DURATION = 8.0


def servicer() -> rm.Robot:
    """Return a bus with two arms of three joints, and a beam that both grip."""
    make = rm.Builder("servicer").body("bus", mass=300, inertia=(40, 40, 50))
    make.joint("base", "free", None, "bus")
    for side, sign in SIDES.items():
        parent, xyz = "bus", (0.5, 0.5 * sign, 0)
        for name, mass, length in (("shoulder", 8, 0.9), ("elbow", 6, 0.8), ("wrist", 3, 0.3)):
            body, moment = f"{side}_{name}_link", mass * length**2 / 12
            make.body(body, mass=mass, com=(length / 2, 0, 0), inertia=(0.02, moment, moment))
            make.joint(f"{side}_{name}", "revolute", parent, body, xyz=xyz, axis=(0, 0, 1))
            parent, xyz = body, (length, 0, 0)
        make.frame(f"{side}_hand", parent, xyz=xyz)
    beam = rm.Builder("beam").body("beam", mass=40, inertia=(1, 10, 10.5))
    both = rm.combine({"servicer": make.build(), "work": beam.build()})
    for side, sign in SIDES.items():  # the hands hold its ends, at right angles to it
        ends = f"servicer/{side}_hand", "work/beam"
        end = {"child_xyz": (0, 0.5 * sign, 0)}
        both = rm.loops.add_constraint(both, f"grip_{side}", "fixed", *ends, **end)
    return both


def main(folder: Path | None) -> None:
    robot = servicer()
    q = rm.neutral(robot)
    for side, sign in SIDES.items():
        for name, angle in (("shoulder", 0.7), ("elbow", -1.4), ("wrist", 0.7)):
            q[robot.joints[f"servicer/{side}_{name}"].q] = sign * angle
    q[robot.joints["work/base"].q] = rm.algebra.pose.from_translation(np.array([2.1, 0.0, 0.0]))
    q, v = rm.close_loops(robot, q)
    report = rm.loops.constraint_report(robot, q)
    print(f"{report.freedoms} of {robot.nv} degrees of freedom remain: the floating stack, "
          f"and {report.freedoms - 6} of the loop")  # fmt: skip

    motions = {}
    for name, move in MOVE.items():
        at = q[robot.joints[f"servicer/{name}"].q]
        motions[f"servicer/{name}"] = rm.Motion.between(0.0, DURATION, at, at + move)
    steps = rm.Integrator(rtol=1e-12, step_to_samples=True)
    run = rm.simulate(robot, q, v, DURATION, prescribed=motions, integrator=steps, record=0.1)
    kept = run.conservation()
    turns = np.degrees(rm.difference(robot, run.q[0], run.q[-1]))
    turn = turns[2], turns[robot.joints["work/base"].v.start + 2]
    print(f"the beam turned by {turn[1]:.1f}°, the bus by {turn[0]:.2f}°")
    for side in SIDES:
        force = np.linalg.norm(run.constraint(f"grip_{side}").wrench[:, :3], axis=1)
        print(f"the {side} hand carries up to {force.max():.3f} N")
    print(f"momentum kept to 1e-13: {kept.angular_momentum.relative < 1e-13}, "
          f"grips to 1e-12 m: {kept.constraint < 1e-12}")  # fmt: skip
    if folder is not None:
        plot(run, folder)


def plot(run: rm.Recording, folder: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    boxes = {"servicer/bus": (0.5, 0.6, "#8a6d3b"), "work/beam": (0.06, 0.6, "#d55e00")}
    links = ("shoulder_link", "elbow_link", "wrist_link", "hand")
    for k, shade in ((0, 0.25), (len(run) - 1, 1.0)):
        for side in SIDES:
            way = [run.frame(f"servicer/{side}_{x}").position[k, :2] for x in links]
            left.plot(*np.transpose(way), "o-", ms=3, lw=2, color="#0072b2", alpha=shade)
        for name, (a, b, color) in boxes.items():
            x, corners = run.frame(name).pose[k], [(a, b), (a, -b), (-a, -b), (-a, b), (a, b)]
            way = [rm.algebra.pose.transform_point(x, np.array([*c, 0.0])) for c in corners]
            left.plot(*np.array(way)[:, :2].T, color=color, alpha=shade)
    left.set(xlabel="x, m", ylabel="y, m", aspect="equal", title="start (pale) and end")
    for side in SIDES:
        force = np.linalg.norm(run.constraint(f"grip_{side}").wrench[:, :3], axis=1)
        right.plot(run.t, force, label=f"{side} hand")
    right.set(xlabel="time, s", ylabel="force on the beam, N", ylim=(0, None))
    right.legend(frameon=False)
    figure.savefig(folder / "two_arms.png", dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, metavar="FOLDER")
    main(parser.parse_args().plot)
