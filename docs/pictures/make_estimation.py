"""Pictures of docs/estimation.md: `python docs/pictures/make_estimation.py`."""

from pathlib import Path

import matplotlib
import numpy as np

import remora as rm
from remora.algebra import quaternion
from remora.viewer.figures.figures import STYLE

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
H = 0.1
plt.rcParams.update({**STYLE, "font.size": 9, "axes.titlesize": 9, "figure.dpi": 130})


def satellite():
    """Return a rigid body on a free joint."""
    builder = rm.Builder("satellite").body("bus", mass=100.0, inertia=(10, 20, 30))
    return builder.joint("base", "free", None, "bus").build()


def gyro():
    """Return a gyro with noise and drift."""
    return rm.sensors.RateGyro("bus", noise=1e-3, drift=1e-4, sample_time=H, name="gyro")


def errors():
    """Errors of attitude and bias of 60 runs with 3σ, and NEES over 1,000 runs."""
    robot, spread = satellite(), np.array([1e-3, 1e-3, 5e-3])
    tracker = rm.sensors.StarTracker("bus", noise=spread, sample_time=H, name="tracker")
    mekf = rm.estimation.AttitudeFilter(
        1e-3, 1e-4, spread, 0.02, every=5, sample_time=H, name="filter"
    )
    bias = 0.02 * np.random.default_rng(1).normal(size=(1000, 3))
    batch = rm.simulate_batch(
        rm.System(robot, [gyro(), tracker, mekf]), rm.neutral(robot),
        np.array([0.05, -0.03, 0.04, 0, 0, 0]), 60.0, integrator=rm.Integrator(step=H), record=H,
        runs=rm.Runs(parameters={"gyro.bias": bias}, seed=2),
    )  # fmt: skip
    estimate, P = batch.signals["filter.estimate"][:, 1:], batch.signals["filter.covariance"][:, 1:]
    off = quaternion.mul(quaternion.conjugate(estimate), batch.q[:, :-1, :4])
    turn = 2.0 * quaternion.log(quaternion.shortest(off))
    drift = bias[:, None] + batch.signals["gyro.walk"][:, :-1]
    drift = drift - batch.signals["filter.offset"][:, 1:]
    nees = rm.estimation.nees(np.concatenate([turn, drift], axis=-1), P)
    found = rm.estimation.consistency(nees[:, 1:], 6)
    print(found)
    t = batch.t[1:]
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 2.9), layout="constrained")
    scales = ((1e3, turn, 0, "error about x, mrad"), (1e3, drift, 3, "error of the bias, mrad/s"))
    for axis, (scale, x, i, label) in zip(axes, scales, strict=False):
        axis.plot(t, scale * x[:60, :, 0].T, color="0.6", linewidth=0.4)
        deviation = 3e0 * scale * np.sqrt(P[0, :, i, i])
        for sign in (-1, 1):
            axis.plot(t, sign * deviation, color="tab:blue", linewidth=1.2)
        axis.set(
            xlabel="t, s",
            ylabel=label,
            xlim=(0, 60),
            ylim=np.array([-1.4, 1.4]) * deviation[-1] * 2,
        )
    axes[0].set_title("60 runs, and 3σ of the filter")
    axes[2].plot(t[1:], found.mean, color="0.3", linewidth=0.7)
    axes[2].axhspan(found.low, found.high, color="tab:blue", alpha=0.2, linewidth=0)
    axes[2].set(xlabel="t, s", ylabel="NEES, mean of 1,000 runs", xlim=(0, 60), ylim=(5.2, 6.8))
    axes[2].set_title("95 % bounds of a consistent filter")
    figure.savefig(HERE / "estimation_filter.png")


def allan():
    """Allan deviation of a gyro with its two asymptotes."""
    robot = satellite()
    batch = rm.simulate_batch(
        rm.System(robot, [gyro()]), rm.neutral(robot), np.zeros(6), 1000.0,
        integrator=rm.Integrator(step=H), record=H, runs=rm.Runs(20, seed=1),
    )  # fmt: skip
    tau, deviation = rm.estimation.allan_deviation(batch.signals["gyro.rate"][:, 1:, 0], H)
    figure, axis = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    axis.loglog(tau, deviation.T, color="0.7", linewidth=0.5)
    axis.loglog(
        tau, np.sqrt(np.mean(deviation**2, axis=0)), color="tab:blue", label="mean of 20 runs"
    )
    axis.loglog(tau, 1e-3 * np.sqrt(H / tau), "k--", linewidth=0.9, label="noise, $s\\sqrt{h/τ}$")
    axis.loglog(tau, 1e-4 * np.sqrt(tau / 3), "k:", linewidth=1.1, label="drift, $u\\sqrt{τ/3}$")
    axis.set(xlabel="averaging time τ, s", ylabel="Allan deviation, rad/s", ylim=(3e-5, 3e-3))
    axis.legend(frameon=False)
    figure.savefig(HERE / "estimation_allan.png")


if __name__ == "__main__":
    plt.rcParams["text.parse_math"] = True
    errors()
    allan()
