"""Manipulability and workspace of an arm on a vehicle that is held, or that floats.

The same joint speeds move the tool of a floating robot less, since the vehicle recoils. What the
tool reaches while the vehicle is held is a volume; what a free-floating robot reaches are shells
around its centre of mass, in part only on some paths.
"""

import numpy as np

import remora as rm

robot = rm.load("servicer")
q = rm.neutral(robot)
q[8:] = np.radians([0, 35, 0, 70, 0, 45, 0])

print("kinematic manipulability of the tool, m/s per rad/s:")
for base in ("fixed", "floating"):
    found = rm.manipulability(robot, q, "tool", base)
    print(f"  {base:8} semi-axes {found.semi_axes.round(3)}, condition {found.condition:.2f}")

force = rm.manipulability(robot, q, "tool", kind="static", scale="limits")
print(f"force with torques within their limits: at least {force.smallest:.0f} N in any direction")

grid = {"shoulder_pitch": np.linspace(-2, 2, 300), "elbow_pitch": np.linspace(-2.5, 2.5, 300)}
smallest = rm.analysis.manipulability_map(robot, "tool", grid, "smallest", "floating", q=q)
i, j = np.unravel_index(smallest.argmax(), smallest.shape)
best = [np.degrees(grid[name][k]) for name, k in zip(grid, (i, j), strict=True)]
print(
    f"{smallest.size} postures: the best has shoulder and elbow at {best[0]:.0f}°, {best[1]:.0f}°"
)

reach = rm.workspace(robot, "tool", samples=300_000, cells=50)
vertices, triangles, _ = reach.surface()
print(f"workspace {reach.volume:.0f} m³; its surface has more than 10,000 triangles:", end=" ")
print(len(triangles) > 10_000)

planar = rm.load("spart17_planar")
shells = rm.analysis.floating_workspace(planar, "tool", "xy")
for name in ("path_independent", "path_dependent"):
    (low, high), *_ = getattr(shells, name)
    print(f"planar robot, {name}: {low:.2f} to {high:.2f} m from the centre of mass")
