"""A berthing: the arm of a station brings a module to a port, latches it there and lets go.

    python examples/44_berthing.py

The grapple holds the module from the start. The joints that bring it to the port follow from
`rm.close_loops` with the latch switched on. With `--plot FOLDER` the figure is written there.
"""

import argparse
from pathlib import Path

import numpy as np

import remora as rm

LINKS = {"shoulder": 3.0, "elbow": 3.0, "wrist": 0.8}  # m
START, AWAY = (1.9, -1.3, -0.9), (0.25, 0.35, 0.3)  # rad: at the start; how the arm retreats
MOVED, SETTLED, END = 60.0, 70.0, 90.0  # s


def station() -> rm.Robot:
    """Return a station with an arm and a port, and a free module with grapple fixture and ring."""
    make = rm.Builder("station").body("core", mass=8000, inertia=(9e3, 3e4, 3e4))
    make.joint("base", "free", None, "core").frame("port", "core", xyz=(2.5, 1.5, 0))
    parent, xyz = "core", (-1.0, 1.5, 0)
    for name, length in LINKS.items():
        moment = 30 * length**3 / 12
        make.body(name, mass=30 * length, com=(length / 2, 0, 0), inertia=(1, moment, moment))
        make.joint(f"{name}_joint", "revolute", parent, name, xyz=xyz, axis=(0, 0, 1))
        parent, xyz = name, (length, 0, 0)
    make.frame("hand", "wrist", xyz=xyz)
    module = rm.Builder("module").body("can", mass=900, inertia=(400, 900, 900))
    module.frame("ring", "can", xyz=(0, -1.2, 0)).frame("fixture", "can", xyz=(-0.8, 0, 0))
    world = rm.combine({"station": make.build(), "module": module.build()})
    world = rm.loops.add_constraint(world, "grapple", "fixed", "station/hand", "module/fixture")
    latch = "latch", "fixed", "station/port", "module/ring"
    return rm.loops.add_constraint(world, *latch, active=False)


def main(folder: Path | None) -> None:
    robot = station()
    names, q = [f"station/{name}_joint" for name in LINKS], rm.neutral(robot)
    q[places := [robot.joints[name].q.start for name in names]] = START
    q, v = rm.close_loops(robot, q, fixed=["station/base", *names])
    goal, _ = rm.close_loops(robot.with_active(on=["latch"]), q, fixed=["station/base"])
    there = goal[places] + np.round((q[places] - goal[places]) / (2 * np.pi)) * 2 * np.pi
    print(f"joints at the port: {np.degrees(there).round(2)} deg")

    def moved(start: float, stop: float, a, b) -> dict[str, rm.Motion]:
        return {n: rm.Motion.between(start, stop, *x) for n, *x in zip(names, a, b, strict=True)}

    run = rm.simulate(robot, q, v, [
        rm.Phase(MOVED, prescribed=moved(0.0, MOVED, q[places], there), name="move"),
        rm.Phase(SETTLED - MOVED, activate="latch", latch=True, name="latch"),
        rm.Phase(END - SETTLED, release="grapple", impulse=True, name="retreat",
                 prescribed=moved(SETTLED, END, there, there + AWAY)),
    ], integrator=rm.Integrator(rtol=1e-12, step_to_samples=True), record=0.25)  # fmt: skip
    for s in run.switches:
        print(f"{s.t:g} s  on {', '.join(s.activated) or '-'}, off {', '.join(s.released) or '-'}; "
              f"energy lost below 1e-12 J: {abs(s.energy_loss) < 1e-12}")  # fmt: skip
    gap = run.frame("module/ring").position - run.frame("station/port").position
    print(f"ring and port: {np.linalg.norm(gap[0]):.2f} m apart at the start, at the port to "
          f"1e-8 m: {np.linalg.norm(gap[-1]) < 1e-8}")  # fmt: skip
    turned = np.degrees(np.abs(rm.difference(robot, run.q[0], run.q)[:, 2]).max())
    print(f"the station recoiled by up to {turned:.2f}°")
    print(f"momentum kept to 1e-12: {run.conservation().angular_momentum.relative < 1e-12}")
    if folder is not None:
        plot(run, folder)


def plot(run: rm.Recording, folder: Path) -> None:
    import matplotlib.pyplot as plt

    size = {"figsize": (9, 5.2), "height_ratios": (3, 2), "layout": "constrained"}
    figure, ax_of = plt.subplot_mosaic("012;fff", **size)
    boxes = {"station/core": (2.5, 1.5, "#8a6d3b"), "module/can": (0.8, 1.2, "#d55e00")}
    times = {"start": 0.0, "latched": MOVED, "released": run.t[-1]}
    arm = [f"station/{name}" for name in (*LINKS, "hand")]
    for place, (title, t) in zip("012", times.items(), strict=True):
        ax, k = ax_of[place], int(np.searchsorted(run.t, t - 1e-9))
        for name, (a, b, color) in boxes.items():
            corners = [(a, b, 0), (a, -b, 0), (-a, -b, 0), (-a, b, 0)]
            x = run.frame(name).pose[k]
            points = [rm.algebra.pose.transform_point(x, np.array(c, float)) for c in corners]
            ax.fill(*np.array(points)[:, :2].T, color=color, alpha=0.6)
        ax.plot(*np.array([run.frame(x).position[k, :2] for x in arm]).T, "o-", ms=4, color="k")
        ax.set(title=f"{title}, {t:g} s", xlabel="x, m", ylabel="y, m", ylim=(-2, 7.5), aspect=1)
    for name in ("grapple", "latch"):
        on, wrench = run.constraint(name).active, run.constraint(name).wrench
        ax_of["f"].plot(run.t[on], np.linalg.norm(wrench[on, :3], axis=1), label=name)
    ax_of["f"].set(xlabel="time, s", ylabel="force, N", xlim=(0, run.t[-1]))
    ax_of["f"].legend()
    figure.savefig(folder / "berthing.png", dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, metavar="FOLDER")
    main(parser.parse_args().plot)
