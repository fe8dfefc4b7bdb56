"""Draw the double pendulum of DM93 from examples/13_dm93_double_pendulum.py.

python docs/pictures/make_dm93.py
"""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

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
