"""Draw docs/pictures/closed_mechanisms.png: four-bar linkage, its torque, and a Stewart platform.

python docs/pictures/make_closed_mechanisms.py
"""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import remora as rm
from remora.algebra import pose

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
CRANK, COUPLER, ROCKER, GREY = "#0072b2", "#d55e00", "#009e73", "0.55"


def linkage(axes: tuple[plt.Axes, plt.Axes]) -> None:
    made = runpy.run_path(str(EXAMPLES / "41_four_bar.py"))
    robot = made["linkage"]()
    a, b, c, d = (made[k] for k in "ABCD")
    q, v = np.array([0.3, 0.2, 1.5]), np.array([made["SPEED"], 0.0, 0.0])
    angles = np.linspace(0.3, 0.3 + 2 * np.pi, 145)
    curve, torque, pin = [], [], []
    for k, crank in enumerate(angles):
        q[0], v[0] = crank, made["SPEED"]
        q, v = rm.close_loops(robot, q, v, fixed=["motor"])
        _, tau = rm.hybrid_dynamics(robot, q, v, np.zeros(3), {"motor": 0.0})
        loads = rm.constraint_wrenches(robot, q, v, tau)
        torque.append(tau[0])
        pin.append(np.linalg.norm(loads[0, :3]))
        x = rm.poses(robot, q)
        ends = [pose.transform_point(x[i], np.array([n, 0.0, 0.0]))[:2]
                for i, n in ((1, a), (2, b), (3, c))]  # fmt: skip
        middle = pose.transform_point(x[2], np.array([b / 2, 0.6, 0.0]))[:2]
        curve.append(middle)
        if k % 36 == 0 and k < 144:
            alpha = 1.0 if k == 36 else 0.25
            for points, color in (
                ([(0, 0), ends[0]], CRANK), ([ends[0], ends[1]], COUPLER),
                ([(d, 0), ends[1]], ROCKER),
            ):  # fmt: skip
                axes[0].plot(*np.transpose(points), "o-", color=color, lw=3, ms=5, alpha=alpha)
            if k == 36:
                axes[0].fill(*np.transpose([ends[0], ends[1], middle]), color=COUPLER, alpha=0.2)
    axes[0].plot(*np.transpose(curve), color="k", lw=1, ls="--")
    axes[0].plot([0, d], [0, 0], color=GREY, lw=1, zorder=0)
    axes[0].set(title="Four-bar linkage, a point of its coupler", xlabel="x, m", ylabel="y, m")
    axes[0].set_aspect("equal")
    degrees = np.degrees(angles - angles[0])
    axes[1].plot(degrees, torque, color=CRANK, label="motor torque, N m")
    axes[1].plot(degrees, pin, color=COUPLER, label="force in the pin, N")
    axes[1].axhline(0.0, color=GREY, lw=0.8)
    axes[1].set(title="Crank at 2 rad/s", xlabel="rotation of the crank, °", xlim=(0, 360))
    axes[1].set_xticks(range(0, 361, 90))
    axes[1].legend(frameon=False)


def stewart(ax: plt.Axes) -> None:
    made = runpy.run_path(str(EXAMPLES / "42_stewart_platform.py"))
    robot = made["platform"]()
    q = rm.neutral(robot)
    for i in range(6):
        q[robot.joints[f"slide{i}"].q] = 1.0
    step = np.zeros(robot.nv)
    step[robot.joints["loose"].v] = (0.18, -0.1, 0.25, 0.08, 0.05, 0.12)
    q, _ = rm.close_loops(robot, rm.integrate(robot, q, step), fixed=["loose"])
    x = rm.poses(robot, q)
    below, above = made["corners"](0.8, 0.3), made["corners"](0.5, 0.75)
    plate = np.array([pose.transform_point(x[robot.body_index("plate")], p) for p in above])
    for ring, color in ((below, GREY), (plate, CRANK)):
        ax.add_collection3d(Poly3DCollection([ring], facecolor=color, edgecolor="k", alpha=0.45))
    for i in range(6):
        hip, top = below[i], plate[i]
        knee = hip + 0.55 * (top - hip)
        ax.plot(*np.transpose([hip, knee]), color="0.3", lw=5, solid_capstyle="round")
        ax.plot(*np.transpose([knee, top]), color=COUPLER, lw=2.5)
    ax.scatter(*np.transpose(plate), color=ROCKER, s=28, depthshade=False)
    ax.set(title="Stewart platform: 18 equations, 6 ball joints", xlabel="x, m", ylabel="y, m")
    ax.set(zlabel="z, m", zlim=(0, 1.4), xlim=(-0.8, 0.8), ylim=(-0.8, 0.8))
    ax.set(xticks=(-0.5, 0, 0.5), yticks=(-0.5, 0, 0.5), zticks=(0, 0.5, 1))
    ax.set_box_aspect((1, 1, 0.9))
    ax.view_init(22, -58)


def main() -> None:
    figure = plt.figure(figsize=(13, 4.2), layout="constrained")
    grid = figure.add_gridspec(1, 3, width_ratios=(1.15, 1, 1))
    linkage((figure.add_subplot(grid[0]), figure.add_subplot(grid[1])))
    stewart(figure.add_subplot(grid[2], projection="3d"))
    figure.savefig(HERE / "closed_mechanisms.png", dpi=110)


if __name__ == "__main__":
    main()
