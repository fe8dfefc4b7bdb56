"""What decides the drift in VT18's experiment: the states of `rm.papers.STATES`, and Figure 6.

    python docs/pictures/vt18_drift.py [--starts N] [--tolerance X] [--plot FOLDER]

Each state is integrated by the formulas and the step control of MATLAB's ode45, tolerances as
printed; nothing is normalized. There are several starts, at rest in random configurations. What is
rounding depends on the machine; to see by how much, every start is repeated with the last bits of
its numbers changed.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.integrate import RK45

import remora as rm

RTOL, ATOL = 2.22e-14, 1e-14
PULSES = ((2.0, 5.0), (10.0, 12.0), (20.0, 22.0))  # of J1, J2, J3 [VT18, eq. 78]
STATES = "VT18", "decoupled joints", "decoupled joints, body axes", "decoupled", "DM93"
robot = rm.load("vt18_satellite")
_rows = [np.array(RK45.A), np.array(RK45.B), np.array(RK45.C), np.array(RK45.E)]


def ode45(f, a, b, x):
    """Return times and states of every step: Dormand and Prince 5(4) with ode45's step control."""
    A, B, C, E = _rows
    t, times, states, slope, threshold = a, [a], [x], f(a, x), ATOL / RTOL
    rate = np.max(np.abs(slope) / np.maximum(np.abs(x), threshold)) / (0.8 * RTOL**0.2)
    h = min(0.1 * (b - a), 1.0 / rate if rate > 0.0 else np.inf)
    while t < b:
        refused = False
        h = min(h, 0.1 * (b - a))
        while True:
            h = b - t if 1.1 * h >= b - t else h
            k = [slope]
            for i in range(1, 6):
                k.append(f(t + C[i] * h, x + h * (A[i, :i] @ np.array(k))))
            new = x + h * (B @ np.array(k))
            k.append(f(t + h, new))
            size = np.maximum(np.maximum(np.abs(x), np.abs(new)), threshold)
            error = h * np.max(np.abs(E @ np.array(k)) / size)
            if error <= RTOL or h <= 16 * np.spacing(t):
                break
            h = 0.5 * h if refused else h * max(0.1, 0.8 * (RTOL / error) ** 0.2)
            refused = True
        t, x, slope = (b if h == b - t else t + h), new, k[-1]
        times.append(t)
        states.append(x)
        if not refused:
            grow = 1.25 * (error / RTOL) ** 0.2
            h = h / grow if grow > 0.2 else 5.0 * h
    return np.array(times), np.array(states)


def torque(t):
    tau = np.zeros(robot.nv)
    for i, (start, stop) in enumerate(PULSES):
        if start < t < stop:
            tau[6 + i] = 0.5 * np.sin(t - start)
    return tau


def simulated(name, q, stops=True):
    """Return a run of 70 s, with every step that ode45 made."""
    state = rm.papers.STATES[name]
    x = state.start(robot, q, np.zeros(robot.nv))
    kernel = rm.compile(state.rates, robot, shapes={"x": x.shape})
    ends = [0.0, *np.ravel(PULSES), 70.0] if stops else [0.0, 70.0]
    times, states = [], []
    for a, b in pairwise(ends):
        inside = np.nextafter(a, b), np.nextafter(b, a)

        def f(t, x, inside=inside):
            return kernel(x, torque(np.clip(t, *inside) if stops else t))

        t, parts = ode45(f, a, b, x)
        times.append(t[bool(times) :])
        states.append(parts[bool(states) :])
        x = parts[-1]
    return rm.papers.PaperRun(robot, name, np.concatenate(times), np.concatenate(states))


def changes(run):
    """Changes of centre of mass, P and L since the start, `(3, n)`: m, N s, N m s."""
    kept = run.center_of_mass, run.momentum[:, :3], run.momentum[:, 3:]
    return np.array([np.linalg.norm(x - x[0], axis=-1) for x in kept])


def drifts(name, q, stops=True):
    """Largest change of centre of mass, P and L over 70 s, and the number of steps."""
    run = simulated(name, q, stops)
    return list(changes(run).max(axis=1)), len(run.t) - 1


def nudged(q, times):
    """Return q with the last bits of its numbers changed: rounding as on other machines."""
    rng = np.random.default_rng(11)
    return [q] + [rm.normalize(robot, q * (1.0 + 4e-16 * rng.uniform(-1, 1, q.shape)))
                  for _ in range(times)]  # fmt: skip


def plot(starts, machines, folder):
    """Draw Figure 6 with bands: all starts and changes of the last bits."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 5.6))
    shown = {
        "VT18": ("DQ, Algorithm 1", "#0072b2"),
        "decoupled joints, body axes": ("decoupled, body axes", "#e69f00"),
        "decoupled joints": ("decoupled, inertial axes", "#009e73"),
        "decoupled": ("decoupled, all bodies", "#cc79a7"),
    }
    axes = figure.subplots(3, 2, sharex=True, sharey="row")
    grid = np.linspace(0.0, 70.0, 281)
    pairs = (("VT18", "decoupled joints, body axes"), ("decoupled joints", "decoupled"))
    for column, names in enumerate(pairs):
        for name in names:
            label, colour = shown[name]
            curves = []
            for q in starts:
                for own in nudged(q, machines):
                    run = simulated(name, own)
                    peaks = np.maximum.accumulate(changes(run), axis=1)
                    at = np.searchsorted(run.t, grid, side="right") - 1
                    curves.append(peaks[:, at])
            low, middle, high = np.quantile(np.array(curves), (0.0, 0.5, 1.0), axis=0)
            for row in range(3):
                ax = axes[row][column]
                floor = 1e-17
                ax.fill_between(grid, low[row] + floor, high[row] + floor, color=colour, alpha=0.22,
                                linewidth=0)  # fmt: skip
                ax.semilogy(grid, middle[row] + floor, color=colour, lw=1.2, label=label)
    texts = "centre of mass, m", "momentum, N s", "angular momentum, N m s"
    for row in range(3):
        for column in range(2):
            ax = axes[row][column]
            ax.set(xlim=(0, 70), ylim=(1e-17, 1e-12))
            ax.grid(color="0.92")
            for pulse in PULSES:
                ax.axvspan(*pulse, color="0.88", linewidth=0, zorder=0)
            ax.tick_params(labelsize=8)
        axes[row][0].set_ylabel(texts[row], fontsize=8)
    for column in range(2):
        axes[0][column].legend(fontsize=7.5, loc="lower right", frameon=False)
        axes[2][column].set_xlabel("time, s", fontsize=8)
    figure.align_ylabels()
    figure.tight_layout(pad=0.5)
    figure.savefig(folder / "vt18_figure_6.png", dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--machines", type=int, default=3, help="changes of the last bits")
    parser.add_argument("--tolerance", type=float, help="relative and absolute; as printed")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw Figure 6 there")
    options = parser.parse_args()
    if options.tolerance is not None:
        globals().update(RTOL=options.tolerance, ATOL=options.tolerance)
    starts = [rm.random_state(robot, seed)[0] for seed in range(options.starts)]
    if options.plot is not None:
        plot(starts, options.machines, options.plot)
        return
    for stops in (True, False):
        print(f"\nsteps {'end' if stops else 'do not end'} at the pulses; medians of the largest")
        print(f"{'state':28}{'steps':>6}{'CoM, m':>10}{'P, N s':>10}{'L, N m s':>10}   DQ / it")
        reference = None
        for name in STATES:
            results = [drifts(name, own, stops) for q in starts
                       for own in nudged(q, options.machines)]  # fmt: skip
            values, steps = np.array([r[0] for r in results]), np.median([r[1] for r in results])
            reference = values if reference is None else reference
            ratios = np.quantile(reference / values, (0.0, 0.5, 1.0), axis=0).T
            numbers = "".join(f"{x:10.1e}" for x in np.median(values, axis=0))
            shown = ", ".join(f"{b:.2g} ({a:.2g} to {c:.2g})" for a, b, c in ratios)
            print(f"{name:28}{steps:6.0f}{numbers}   {shown}", flush=True)


if __name__ == "__main__":
    main()
