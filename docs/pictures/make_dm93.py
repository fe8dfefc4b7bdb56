"""Draw DM93's double pendulum and cooperating arms from the examples 13 and 46.

python docs/pictures/make_dm93.py
"""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import remora as rm

HERE = Path(__file__).resolve().parent
run = runpy.run_path(str(HERE.parents[1] / "examples" / "13_dm93_double_pendulum.py"))
t, theta, E, wrong = (run[name] for name in ("times", "theta", "E", "wrong"))
Q, pin = run["Q"], run["pin"]

plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6, "lines.linewidth": 1.1})
figure, axes = plt.subplots(4, 1, sharex=True, figsize=(4.5, 6.6))
axes[0].plot(t, theta.T / (2 * np.pi), label=["link 1, θ$_1$", "link 2, θ$_2$"])
axes[1].semilogy(t[1:], np.abs(wrong / E[0] - 1)[1:], "C3", label="h as printed in (25)")
axes[1].semilogy(t[1:], np.abs(E / E[0] - 1)[1:] + 1e-16, "C0", label="h corrected")
off = [Q[0] ** 2 + Q[1] ** 2 - 1, Q[2] ** 2 + Q[3] ** 2 - (run["L"] / 2) ** 2]
axes[2].semilogy(t[1:], np.abs(off).T[1:] + 1e-18, label=["(27)", "(29)"])
axes[2].set_ylim(1e-16, 1e-10)
axes[3].plot(t, np.linalg.norm(pin, axis=1))
texts = "turns", "|ΔE| / E", "violated constraint", "pin force, N"
for ax, text, letter in zip(axes, texts, "ABCD", strict=True):
    ax.set(ylabel=text, xlim=(0, 10))
    ax.set_title(letter, loc="left", weight="bold", fontsize=9, pad=3)
    ax.grid(color="0.92")
axes[3].set_xlabel("time, s")
for ax in axes[:3]:
    ax.legend(fontsize=7, loc="best")
figure.align_ylabels()
figure.tight_layout(pad=0.4)
figure.savefig(HERE / "dm93_double_pendulum.png", dpi=200)

run = runpy.run_path(str(HERE.parents[1] / "examples" / "46_dm93_cooperating_arms.py"))
robot, path = run["robot"], run["paths"][0]
plt.rcParams.update(plt.rcParamsDefault)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for k in np.linspace(0, len(path) - 1, 5).astype(int):
    shade = 0.2 + 0.8 * k / (len(path) - 1)
    for body, x in zip(robot.bodies, path[k, 0], strict=True):
        ends = [rm.algebra.pose.transform_point(x, s * body.com) for s in (-1.0, 1.0)]
        color = "#d55e00" if body.name == "workpiece" else "#0072b2"
        left.plot(*np.array(ends)[:, :2].T, "o-", ms=3, lw=2, color=color, alpha=shade)
left.set(xlabel="x, m", ylabel="y, m", aspect="equal", title="from rest (pale) to the end")
t = run["STEP"] * np.arange(len(path))
for off, label in zip(
    run["off"][::-1], ("integrated", "and projected every ten steps"), strict=True
):
    right.semilogy(t, np.maximum(off, 1e-17), label=label)
right.set(xlabel="time, s", ylabel="violation of Φ's equations", ylim=(1e-17, 1e-2))
right.legend(frameon=False)
figure.savefig(HERE / "dm93_cooperating_arms.png", dpi=150)
