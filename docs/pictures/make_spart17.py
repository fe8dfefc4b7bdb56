"""Make the pictures of docs/spart17_workspace.md: Figures 5 to 7 of SPART17, and beyond.

    python docs/pictures/make_spart17.py

Needs `remora[analysis]`. Takes half a minute.
"""

from pathlib import Path

import numpy as np

import remora as rm
from remora.viewer.figures.figures import COLOURS, STYLE, library
from remora.viewer.figures.workspace_figures import draw_ellipse, draw_robot, label_plane, new_axes

FOLDER = Path(__file__).parent
TWO, THREE = rm.load("spart17_planar"), rm.load("spart17_planar_3")


def posed(robot, *degrees):
    q = rm.neutral(robot)
    q[8:] = np.radians(degrees)
    return q


def save(figure, name):
    figure.savefig(FOLDER / f"spart17_{name}.png", dpi=150)
    print(f"spart17_{name}.png")


# Figure 5: reachable workspace with a fixed vehicle, coloured by the manipulability measure
for robot, name, q in (
    (TWO, "5a", posed(TWO, 40.0, -70.0)),
    (THREE, "5b", posed(THREE, 50.0, -60.0, -50.0)),
):
    found = rm.workspace(robot, "tool", plane="xy", samples=4_000_000, cells=400)
    links = len(robot.bodies) - 1
    save(found.plot(robot=robot, q=q, title=f"{links} links, fixed: {found.volume:.3f} m²"), name)

# beyond Figure 5b: where the third link can be pointed in every direction
found = rm.workspace(
    THREE, "tool", "dexterous", "xy", samples=8_000_000, cells=160, orientations=24,
    ranges={f"joint_{k}": (-np.pi, np.pi) for k in (1, 2, 3)},
)  # fmt: skip
save(
    found.plot(
        robot=THREE, q=posed(THREE, 50.0, -60.0, -50.0),
        title=f"dexterous, joints without limits: {found.volume:.3f} m²",
    ),
    "dexterous",
)  # fmt: skip

# Figure 6: straight-path workspace of the floating robot, from one configuration
q = posed(TWO, 40.0, -70.0)
found = rm.analysis.straight_path_workspace(TWO, q, "tool", "floating", "xy", directions=720)
save(found.plot(robot=TWO, q=q), "6")

# beyond Figure 6: regions by dynamic singularities
found = rm.analysis.floating_workspace(TWO, "tool", "xy")
save(found.plot(robot=TWO, q=q), "regions")

# Figure 7: ellipses along a motion of the arm with a fixed base, and of the floating one
figure, ax = new_axes((5.6, 4.0))
with library("matplotlib").rc_context(STYLE):
    for k, angles in enumerate(((75.0, -100.0), (45.0, -75.0), (15.0, -50.0), (-15.0, -25.0))):
        q = posed(TWO, *angles)
        draw_robot(ax, TWO, q, "xy", 0.35 if k < 3 else 0.85)
        for base, colour in (("fixed", COLOURS[0]), ("floating", COLOURS[1])):
            ellipse = rm.manipulability(TWO, q, "tool", base, subspace="xy")
            draw_ellipse(ax, ellipse, "xy", 0.25, colour, "" if k else f"{base} base")
    label_plane(ax, "xy")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.set_title("Kinematic manipulability ellipses, 0.25 m for 1 m/s")
save(figure, "7")
