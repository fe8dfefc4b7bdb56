"""How far does the arm miss if the model is a little wrong? Derivatives and a Monte Carlo.

A servicer moves its arm along a planned path while its bus floats. Errors of masses, inertias,
centres of mass and lengths move the place where the tool arrives. The path is also checked for
singularities and joint limits.
"""

import numpy as np

import remora as rm

robot = rm.load("servicer")
q = rm.neutral(robot)
q[8:] = np.radians([0, 35, 0, 70, 0, 45, 0])
path = np.repeat(q[None], 21, axis=0)
path[:, 8:] += np.linspace(0, 1, 21)[:, None] * np.array([0.8, 0.3, 0, -0.9, 0, 0.4, 0])

# Is the path well conditioned?
along = rm.analysis.conditioning(robot, path, "tool", "floating", subspace="twist")
print(f"condition number up to {along.condition.max():.0f}; warnings: {len(along.warnings())}")

# What do errors of the model do?
errors = {"mass": 0.01, "inertia": 0.02, "com": 0.002, "length": 0.0005}
found = rm.analysis.miss_sensitivity(robot, path, "tool", errors)
print(f"{len(found.labels)} numbers with errors: miss of {1e3 * found.rms:.2f} mm (rms)")
for k in np.argsort(-found.contributions)[:5]:
    print(f"  {found.labels[k]:24} {1e3 * found.contributions[k]:.2f} mm")

# Robots that have the errors, against the derivatives robot by robot
x, misses = found.monte_carlo(300, seed=1)
drawn, linear = (np.sqrt(np.mean(np.sum(m**2, axis=1))) for m in (misses, found.miss(x)))
print(f"300 robots: {1e3 * drawn:.2f} mm, by derivatives {1e3 * linear:.2f} mm")
print("the same to 2 %:", bool(abs(drawn / linear - 1.0) < 0.02))

# The bus weighed and its inertia measured
better = rm.analysis.miss_sensitivity(
    robot, path, "tool", errors | {"bus.inertia": 0.002, "bus.mass": 1e-3}
)
print(f"with a better bus: {1e3 * better.rms:.2f} mm")
held = rm.analysis.miss_sensitivity(robot, path, "tool", errors, base="fixed")
print(f"with the bus held: {1e3 * held.rms:.2f} mm, from lengths alone")
