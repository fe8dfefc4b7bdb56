"""Picture of docs/orbit.md: `python docs/pictures/make_orbit.py`."""

from pathlib import Path

import matplotlib
import numpy as np

import remora as rm
from remora.viewer.figures.figures import STYLE

matplotlib.use("Agg")
import matplotlib.pyplot as plt

plt.rcParams.update({**STYLE, "font.size": 9, "axes.titlesize": 9, "figure.dpi": 130})

FAR = 10.0  # m
ROBOT = (
    rm.Builder("bus").body("bus", 500.0, inertia=(100.0, 80.0, 60.0))
    .joint("base", "free", None, "bus").build()
)  # fmt: skip


def path(x, rate, degree, periods):
    """Return radial and transverse positions of a start in the turning axes."""
    orbit = rm.world.Orbit(altitude=500e3, inclination=np.radians(51.6), degree=degree)
    axes = rm.world.radial_axes(*orbit.start)
    turn = np.array([0, 0, 2 * np.pi / orbit.period])
    q = rm.integrate(ROBOT, rm.neutral(ROBOT), np.r_[0, 0, 0, axes @ x])
    v = np.r_[0, 0, 0, axes @ (np.asarray(rate) / orbit.period + np.cross(turn, x))]
    run = rm.simulate(
        rm.System(ROBOT, [orbit]), q, v, periods * orbit.period, record=orbit.period / 200
    )
    axes = rm.world.radial_axes(run.signals["orbit.position"], run.signals["orbit.velocity"])
    return np.einsum("nji,nj->ni", axes, rm.center_of_mass(ROBOT, run.q))


REST, ROUND = (0, 0, 0), (0, -4 * np.pi * FAR, 0)
PANELS = (
    ("drift, two periods", ("at rest, 10 m above", (FAR, 0, 0), REST, 0, 2.0),
     ("at rest, 10 m ahead", (0, FAR, 0), REST, 0, 2.0)),
    ("natural ellipses", ("point mass, one period", (FAR, 0, 0), ROUND, 0, 1.0),
     ("with J₂, ten periods", (FAR, 0, 0), ROUND, 2, 10.0)),
)  # fmt: skip
figure, frames = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for frame, (title, *starts) in zip(frames, PANELS, strict=True):
    for k, (name, x, rate, degree, periods) in reversed([*enumerate(starts)]):
        seen = path(np.array(x, float), rate, degree, periods)
        frame.plot(seen[:, 1], seen[:, 0], color=f"C{k}", label=name, lw=1.6 - 0.8 * (periods > 5))
        frame.plot(seen[0, 1], seen[0, 0], "o", color=f"C{k}", ms=4)
    frame.plot(0, 0, "k+", ms=9)
    frame.set(title=title, xlabel="ahead, m", ylabel="above, m")
    frame.margins(0.06, 0.45)
    frame.legend(loc="upper right", frameon=False)
frames[1].set_aspect("equal")
figure.savefig(Path(__file__).with_name("orbit_relative.png"))
