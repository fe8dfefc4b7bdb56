"""Section 4 of VT18: three torque pulses on a four-body satellite, conservation, figure 5.

Then the same with the paper's own state. With `--plot FOLDER` figure 5 is written there; this needs
matplotlib.
"""

import argparse
from pathlib import Path

import numpy as np

import remora as rm

TORQUE = {  # eq. 78, N m
    name: rm.Pulse(a, b, lambda t, a=a: 0.5 * np.sin(t - a))
    for name, a, b in (("J1", 2, 5), ("J2", 10, 12), ("J3", 20, 22))
}
LABELS = {"newton_euler": "DQ", "decoupled": "Decoupled"}  # as in the paper
LOOKS = "C0-", "C1--", "C0:", "C1:"
robot = rm.load("vt18_satellite")


def simulated(integrator: str, formulation: str) -> rm.Recording:
    """Return the run from rest; `dopri5` is the Runge-Kutta pair of MATLAB's ode45."""
    return rm.simulate(
        robot, rm.neutral(robot), np.zeros(robot.nv), 70.0, torque=TORQUE,
        integrator=rm.Integrator(integrator, rtol=2.22e-14, atol=1e-14),
        physics=rm.Physics(formulation=formulation),
    )  # fmt: skip


def pulses(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the torques, as a function for `rm.papers.integrate_state`."""
    on = [p.start < t < p.stop for p in TORQUE.values()]
    return np.r_[np.zeros(6), np.where(on, [np.sin(t - p.start) for p in TORQUE.values()], 0) / 2]


def condition_numbers(run: rm.Recording) -> np.ndarray:
    """Return the condition number of S [VT18, eq. 57] at every step."""
    return np.linalg.cond(rm.papers.vt18.newton_euler_system(robot, run.q, run.v, run.tau).S)


def main(folder: Path | None) -> None:
    runs: dict[tuple[str, str], rm.Recording] = {}
    print("relative drift              centre of mass    momentum     angular")
    for integrator in ("dopri5", "dop853"):
        for formulation, label in LABELS.items():
            run = runs[integrator, formulation] = simulated(integrator, formulation)
            kept = run.conservation()
            drifts = kept.center_of_mass, kept.linear_momentum, kept.angular_momentum
            numbers = "".join(f"{drift.relative:12.1e}" for drift in drifts)
            print(f"{integrator:8}{label:13}{len(run) - 1} steps{numbers}")
    run = runs["dopri5", "newton_euler"]
    print(f"\n{run.conservation()}\n")
    for name, pulse in TORQUE.items():
        before, after = run.work[np.searchsorted(run.t, [pulse.start, pulse.stop]), 0]
        print(f"work of {name}             {1e3 * (after - before):9.5f} mJ")
    print(f"kinetic energy at 70 s  {1e3 * run.kinetic_energy[-1]:9.5f} mJ")
    conditions = condition_numbers(run)
    print(f"condition number of S   {conditions.min():.1f} to {conditions.max():.1f}")
    print("joint angles at 70 s   ", np.degrees(run.q[-1, 8:]).round(6), "°")
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    for state in ("VT18", "decoupled"):
        how = {"step": 0.02, "torque": pulses, "every": 10}
        own = rm.papers.integrate_state(robot, q, v, 70.0, state, **how)
        off = np.abs(own.v[-1] - run.v[-1]).max()
        P = np.linalg.norm(own.momentum[:, :3], axis=1).max()
        print(f"state of {state}, steps of 20 ms: momentum {P:.1e} N s; the same speeds to 1e-6:",
              bool(off < 1e-6))  # fmt: skip
    if folder is not None:
        plot(run, conditions, folder)


def plot(run: rm.Recording, conditions: np.ndarray, folder: Path) -> None:
    """Write figure 5, with the width of a journal column."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6, "lines.linewidth": 1.1})
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(3.5, 5.4))
    axes[0].plot(run.t, 1e14 * (run.com - run.com[0]), label=["x", "y", "z"])
    axes[1].plot(run.t, 1e3 * run.kinetic_energy)
    axes[2].plot(run.t, conditions)
    texts = "centre of mass, $10^{-14}$ m", "kinetic energy, mJ", "condition number of S"
    for ax, text, letter in zip(axes, texts, "ABC", strict=True):
        ax.set(ylabel=text, xlim=(0, 70), xlabel="time, s" if letter == "C" else "")
        ax.set_title(letter, loc="left", weight="bold", fontsize=9, pad=3)
        ax.grid(color="0.92")
        for pulse in TORQUE.values():
            ax.axvspan(pulse.start, pulse.stop, color="0.88", linewidth=0)
    axes[0].legend(ncol=3, loc="upper left", fontsize=6.5)
    figure.align_ylabels()
    figure.tight_layout(pad=0.4)
    figure.savefig(folder / "vt18_figure_5.png", dpi=220)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="write figure 5 there")
    main(parser.parse_args().plot)
