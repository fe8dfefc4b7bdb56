"""Section 4 of VT18: three torque pulses on a four-body satellite, conservation, figures 5 and 6.

With `--plot FOLDER` the figures are written there; this needs matplotlib.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import remora as rm

TORQUE = {  # eq. 78, N m
    "J1": rm.Pulse(2, 5, lambda t: 0.5 * np.sin(t - 2)),
    "J2": rm.Pulse(10, 12, lambda t: 0.5 * np.sin(t - 10)),
    "J3": rm.Pulse(20, 22, lambda t: 0.5 * np.sin(t - 20)),
}
LABELS = {"newton_euler": "DQ", "decoupled": "Decoupled"}  # as in the paper
LOOKS = "C0-", "C1--", "C0:", "C1:"
robot = rm.load("vt18_satellite")


def simulated(integrator: str, formulation: str, duration: float = 70.0) -> rm.Recording:
    """Return the run from rest; `dopri5` is the Runge-Kutta pair of MATLAB's ode45."""
    return rm.simulate(
        robot, rm.neutral(robot), np.zeros(robot.nv), duration, torque=TORQUE,
        integrator=rm.Integrator(integrator, rtol=2.22e-14, atol=1e-14),
        physics=rm.Physics(formulation=formulation),
    )  # fmt: skip


def condition_numbers(run: rm.Recording) -> np.ndarray:
    """Return the condition number of S [VT18, eq. 57] at every step."""
    return np.linalg.cond(rm.papers.vt18.newton_euler_system(robot, run.q, run.v, run.tau).S)


def main(folder: Path | None) -> None:
    runs: dict[tuple[str, str], rm.Recording] = {}
    print("relative drift              centre of mass    momentum     angular")
    for integrator in ("dopri5", "dop853"):
        for formulation, label in LABELS.items():
            simulated(integrator, formulation, 0.1)  # compiles, or loads from the cache
            start = time.perf_counter()
            run = runs[integrator, formulation] = simulated(integrator, formulation)
            speed = run.duration / (time.perf_counter() - start)
            kept = run.conservation()
            drifts = kept.center_of_mass, kept.linear_momentum, kept.angular_momentum
            numbers = "".join(f"{drift.relative:12.1e}" for drift in drifts)
            print(f"{integrator:8}{label:13}{len(run) - 1} steps{numbers}{speed:6.0f} x real time")
    run = runs["dopri5", "newton_euler"]
    print(f"\n{run.conservation()}\n")
    for name, pulse in TORQUE.items():
        before, after = run.work[np.searchsorted(run.t, [pulse.start, pulse.stop]), 0]
        print(f"work of {name}             {1e3 * (after - before):9.5f} mJ")
    print(f"kinetic energy at 70 s  {1e3 * run.kinetic_energy[-1]:9.5f} mJ")
    conditions = condition_numbers(run)
    print(f"condition number of S   {conditions.min():.1f} to {conditions.max():.1f}")
    print("joint angles at 70 s   ", np.degrees(run.q[-1, 8:]).round(6), "°")
    if folder is not None:
        plot(runs, conditions, folder)


def plot(runs: dict[tuple[str, str], rm.Recording], conditions: np.ndarray, folder: Path) -> None:
    """Write figures 5 and 6, each with the width of a journal column."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6, "lines.linewidth": 1.1})
    (five, a), (six, b) = (plt.subplots(3, 1, sharex=True, figsize=(3.5, 5.4)) for _ in "56")
    run = runs["dopri5", "newton_euler"]
    a[0].plot(run.t, 1e14 * (run.com - run.com[0]), label=["x", "y", "z"])
    a[1].plot(run.t, 1e3 * run.kinetic_energy)
    a[2].plot(run.t, conditions)
    for ((integrator, formulation), run), look in zip(runs.items(), LOOKS, strict=True):
        label = f"{LABELS[formulation]}, {integrator}"
        for ax, x in zip(b, (run.com, run.momentum[:, :3], run.momentum[:, 3:]), strict=True):
            ax.semilogy(run.t, np.linalg.norm(x - x[0], axis=1), look, label=label)
            ax.set_ylim(1e-16, 1e-12)
    texts = "centre of mass, $10^{-14}$ m", "kinetic energy, mJ", "condition number of S"
    texts += "|Δ centre of mass|, m", "|Δ momentum|, N s", "|Δ ang. momentum|, N m s"
    for ax, text, letter in zip([*a, *b], texts, "ABCABC", strict=True):
        ax.set(ylabel=text, xlim=(0, 70), xlabel="time, s" if letter == "C" else "")
        ax.set_title(letter, loc="left", weight="bold", fontsize=9, pad=3)
        ax.grid(color="0.92")
        for pulse in TORQUE.values():
            ax.axvspan(pulse.start, pulse.stop, color="0.88", linewidth=0)
    a[0].legend(ncol=3, loc="upper left", fontsize=6.5)
    b[0].legend(ncol=2, loc="upper right", fontsize=6.5)
    for number, figure in ((5, five), (6, six)):
        figure.align_ylabels()
        figure.tight_layout(pad=0.4)
        figure.savefig(folder / f"vt18_figure_{number}.png", dpi=220)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="write the figures there")
    main(parser.parse_args().plot)
