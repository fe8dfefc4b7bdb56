"""Identify what the gripper holds: ten inertia parameters from a noisy recording.

Momentum conservation is linear in the payload's parameters. The arm moves for 30 s, the speeds of
the bus and of the joints are measured with noise, and the payload is estimated with confidence.
"""

import numpy as np

import remora as rm

robot = rm.load("servicer")
empty = robot.replace_body("flange", mass=0.0, com=np.zeros(3), inertia=np.zeros((3, 3)))
mass, com, inertia = 20.0, np.array([0.05, -0.03, 0.4]), np.diag([1.2, 1.5, 0.8])
loaded = robot.replace_body("flange", mass=mass, com=com, inertia=inertia)

q = rm.neutral(robot)
q[8:] = np.radians([0, 35, 0, 70, 0, 45, 0])
turns = np.radians([60, 30, 80, -50, -90, 40, 120])
moves = {
    name: rm.Motion.between(0, 30, q[8 + k], q[8 + k] + turns[k])
    for k, name in enumerate(robot.joints.names[1:])
}
run = rm.simulate(loaded, q, np.zeros(robot.nv), 30.0, prescribed=moves, record=0.1)

exact = rm.analysis.identify_payload(empty, run.q, run.v, "flange")
print(f"without noise: {exact.mass:.6f} kg, to 1e-6: {abs(exact.mass - mass) < 1e-6}")

noise = 1e-5 * np.random.default_rng(1).normal(size=run.v.shape)
found = rm.analysis.identify_payload(empty, run.q, run.v + noise, "flange")
print(found)
low, high = found.intervals.T
r = com
about = inertia + mass * (r @ r * np.eye(3) - np.outer(r, r))
true = np.array([mass, *(mass * com), *about[np.triu_indices(3)]])
print("inside their 95 % intervals:", np.sum((low <= true) & (true <= high)), "of 10")
print("a body can have these numbers:", found.consistent)

try:
    rm.analysis.identify_payload(empty, run.q[:1].repeat(5, 0), run.v[:1].repeat(5, 0), "flange")
except rm.errors.InvalidValue as error:
    print(f"at rest: {str(error)[:60]}...")
