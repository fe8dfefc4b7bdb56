"""A tumbling satellite pitches through 90°: Euler angles are singular, FPG11's models are not.

Four models are integrated with the same integrator (RK4) and step size. The spin determines how
close the base passes to the singularity. `--plot FOLDER` draws the figure.
"""

import sys
from pathlib import Path

import numpy as np

import remora as rm
from remora.algebra import pose, quaternion
from remora.dynamics.lagrangian.euler_angles import euler_acceleration, euler_coordinates

robot = rm.load("vt18_satellite")
twin = rm.equivalent_manipulator(robot)
STEP, END = 0.1, 50.0
SWING = {"J1": 0.002, "J2": 0.3, "J3": 0.15}  # N m, times sin(t/2); the base is not actuated
SPINS = (3e-3, 1e-3, 1e-4)  # rad/s about the base's z
RK4, PLAIN = rm.Integrator("rk4", step=STEP), rm.Physics("ignore")
LAGRANGIAN = rm.Physics("ignore", formulation="lagrangian")
REDUCED = rm.Physics("ignore", model="reduced")
angles = rm.compile(euler_acceleration, robot, shapes={"chi": (9,), "chidot": (9,)})


def by_euler_angles(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return angles and rates at every step, integrated directly, `(n, nv)` each."""

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        tau = np.r_[np.zeros(6), np.array(list(SWING.values())) * np.sin(0.5 * t)]
        return np.stack([y[1], angles(y[0], y[1], tau)])

    states, half = [np.stack(euler_coordinates(robot, q, v))], STEP / 2
    for t in np.arange(round(END / STEP)) * STEP:
        y = states[-1]
        a = rate(t, y)
        b = rate(t + half, y + half * a)
        c = rate(t + half, y + half * b)
        d = rate(t + STEP, y + STEP * c)
        states.append(y + STEP / 6 * (a + 2 * b + 2 * c + d))
    return tuple(np.moveaxis(states, 1, 0))


def main(folder: Path | None) -> None:
    runs = []
    for spin in SPINS:
        q, v = rm.neutral(robot), np.r_[0.0, 0.06, spin, np.zeros(robot.nv - 3)]
        q[8:] = np.radians([0, 30, -60])
        equivalent = rm.papers.fpg11.equivalent_state(robot, q, v)
        torque = {j: lambda t, q, v, a=a: a * np.sin(0.5 * t) for j, a in SWING.items()}
        asked = {"duration": END, "torque": torque, "record": STEP, "integrator": RK4}
        exactly = {**asked, "integrator": rm.Integrator(rtol=1e-12)}
        exact = rm.simulate(robot, q, v, **exactly, physics=PLAIN)
        chi, chidot = by_euler_angles(q, v)
        made = {
            "Lagrangian": rm.simulate(robot, q, v, **asked, physics=LAGRANGIAN).q,
            "reduced": rm.simulate(robot, q, v, **asked, physics=REDUCED).q,
            "equivalent manipulator": rm.simulate(twin, *equivalent, **asked, physics=PLAIN).q,
            "Euler angles": chi,
        }
        errors = {name: np.abs(x[:, -3:] - exact.q[:, -3:]).max(axis=1) for name, x in made.items()}
        near, _ = exact.at(np.linspace(15, 25, 2001))
        nose = quaternion.rotate(near[:, :4], np.array([1.0, 0, 0]))  # the base's x axis
        away = np.degrees(np.hypot(nose[:, 0], nose[:, 1]).min())  # from the vertical
        runs.append((exact, chidot, errors, away))
        print(f"\nthe base passes {away:.2f}° from a pitch of 90°; error of the joints at 50 s:")
        for name, error in errors.items():
            print(f"  {name:23}{'below 1e-7' if error[-1] < 1e-7 else f'{error[-1]:.0e}'} rad")
    if folder is not None:
        plot(runs, folder)


def plot(runs: list, folder: Path) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 8, "lines.linewidth": 1.1})
    figure, (a, b, c) = plt.subplots(3, 1, sharex=True, figsize=(5.2, 6.6), layout="tight")
    t, colors = runs[0][0].t, ("#f4a582", "#d6604d", "#8c1a1f")
    rpy = np.unwrap(pose.to_rpy(runs[0][0].q[:, :8]), axis=0)
    a.plot(t, np.degrees(rpy), label=["roll", "pitch", "yaw"])
    for (_, chidot, errors, away), color in zip(runs, colors, strict=True):
        b.semilogy(t, np.abs(chidot[:, 2]), color=color, label=f"passing at {away:.2f}°")
        c.semilogy(t, errors["Euler angles"], color=color, label=f"Euler angles, {away:.2f}°")
    for (name, error), look in zip(list(runs[-1][2].items())[:3], ("-", "--", ":"), strict=True):
        c.semilogy(t, error, look, color="#2166ac", label=f"{name}, {runs[-1][3]:.2f}°")
    base = f"base, °, passing at {runs[0][3]:.2f}°"
    texts = base, "|yaw rate|, rad/s", "error of the joints, rad"
    ranges = (-10, 200), (1e-6, 1e4), (1e-12, 1e2)
    for ax, text, shown in zip((a, b, c), texts, ranges, strict=True):
        ax.set(ylabel=text, xlim=(0, END), ylim=shown)
        ax.grid(color="0.92")
        ax.legend(fontsize=6.5, loc="upper left")
    c.set_xlabel("time, s")
    figure.savefig(folder / "fpg11_pitch.png", dpi=180)


if __name__ == "__main__":
    main(Path(sys.argv[2]) if sys.argv[1:2] == ["--plot"] else None)
