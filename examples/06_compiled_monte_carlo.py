"""Monte Carlo: compiled forward dynamics of ten thousand servicers with uncertain masses.

Each case has its own state and masses. The compiled kernel evaluates all of them; NumPy evaluates
the same function for one case as a reference.
"""

import time

import numpy as np

import remora as rm

CASES = 10_000

robot = rm.load("servicer")
rng = np.random.default_rng(0)
q, v = rm.random_state(robot, rng, batch=(CASES,))
v *= 0.01  # slow: rad/s and m/s
tau = np.zeros(robot.nv)
tau[robot.joints["shoulder_pitch"].v] = 10.0  # N m

# masses as arguments: 5 % standard deviation, different in every case
kernel = rm.compile(rm.forward_dynamics, robot, parameters=["mass"])
nominal = np.array([body.mass for body in robot.bodies])
masses = nominal * rng.normal(1.0, 0.05, size=(CASES, len(nominal)))
print(kernel)
counts = kernel.graph.count()
print(f"operations: {sum(counts.values())}, of them {counts['mul']} multiplications\n")

start = time.perf_counter()
vdot = kernel(q, v, tau, masses)
seconds = time.perf_counter() - start
print(f"{CASES} cases in {1e3 * seconds:.1f} ms, {1e6 * seconds / CASES:.2f} µs each")

# the NumPy reference for one case
k = 1234
other = robot
for body, mass in zip(robot.bodies, masses[k], strict=True):
    other = other.replace_body(body.name, mass=mass)
reference = rm.forward_dynamics(other, q[k], v[k], tau)
error = np.abs(vdot[k] - reference).max() / np.abs(reference).max()
print(f"case {k}: agrees with the NumPy reference to {error:.0e}")
alone = kernel(q[k], v[k], tau, masses[k])
print(f"alone it has the same bits: {np.array_equal(alone, vdot[k])}\n")

turn = np.degrees(np.linalg.norm(vdot[:, :3], axis=1))
print(f"angular acceleration of the base: {turn.mean():.2f} ± {turn.std():.2f} deg/s²")
