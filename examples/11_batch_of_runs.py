"""A batch of a thousand runs: servicers with uncertain masses and motors make the same motion.

Every run has its own masses, payload and motor strength. One compiled loop integrates the whole
batch. The results are the position error of the tool and the contribution of each uncertainty.
"""

import time

import numpy as np

import remora as rm
from remora.algebra import pose
from remora.algebra.array_ops import less, select

RUNS, DURATION, STEP = 1000, 6.0, 0.01

robot = rm.load("servicer")
start = rm.neutral(robot)
start[8:] = np.radians([0, 30, 0, -60, 0, 45, 0])
rest = np.zeros(robot.nv)


def pushed(t: np.ndarray, q: np.ndarray, v: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """Return the shoulder's torque: forward for three seconds, backward for three."""
    return strength * select(less(t, 3.0), 1.0, -1.0)


rng = np.random.default_rng(4)
bus = robot.bodies["bus"].mass * rng.normal(1.0, 0.02, RUNS)
payload = robot.bodies["flange"].mass * rng.normal(1.0, 0.10, RUNS)
strength = rng.normal(1.0, 0.03, RUNS)  # N m

began = time.perf_counter()
batch = rm.simulate_batch(
    robot,
    start,
    rest,
    DURATION,
    integrator=rm.Integrator(step=STEP, breaks=[3.0]),
    record=1.0,
    torque={"shoulder_pitch": pushed},
    runs=rm.Runs(
        inputs={"strength": strength}, parameters={"bus.mass": bus, "flange.mass": payload}
    ),
)
seconds = time.perf_counter() - began
print(batch)
steps = RUNS * round(DURATION / STEP)
print(f"{steps} steps of RK4 in {seconds:.2f} s, tracing and compiling included\n")

tool = pose.translation(batch.evaluate(rm.frame_pose, frame="tool"))  # (runs, samples, 3)
print("time   tool x      z   scatter x    z")
print("   s        m      m          mm   mm")
for k, t in enumerate(batch.t):
    mean, scatter = tool[:, k].mean(axis=0), 1e3 * tool[:, k].std(axis=0)
    print(f"{t:4.0f} {mean[0]:8.3f} {mean[2]:6.3f} {scatter[0]:10.2f} {scatter[2]:5.2f}")

print("\nwhat the scatter at the end comes from: correlation of the tool's z with")
for name, cause in (("mass of the bus", bus), ("payload", payload), ("motor", strength)):
    print(f"  {name:16} {np.corrcoef(cause, tool[:, -1, 2])[0, 1]:6.2f}")

# no external forces: momentum is conserved in every run, each with its own masses
momentum = batch.evaluate(rm.momentum)
print(f"\nmomentum below 1e-9 in all runs: {np.abs(momentum).max() < 1e-9}")

# one of the runs with an adaptive step size
k = 123
one = robot.replace_body("bus", mass=bus[k]).replace_body("flange", mass=payload[k])
torque = rm.Profile([0, 3, DURATION], strength[k] * np.array([1, -1, -1]), kind="hold")
run = rm.simulate(
    one,
    start,
    rest,
    DURATION,
    torque={"shoulder_pitch": torque},
    integrator=rm.Integrator(rtol=1e-12),
)
off = np.abs(rm.difference(one, run.q[-1], batch.q[k, -1])).max()
print(f"run {k} agrees with rm.simulate to better than 1e-8: {off < 1e-8}")
alone = rm.simulate_batch(
    one,
    start,
    rest,
    DURATION,
    integrator=rm.Integrator(step=STEP, breaks=[3.0]),
    record=1.0,
    torque={"shoulder_pitch": pushed},
    runs=rm.Runs(inputs={"strength": strength[k : k + 1]}),
)
print(f"alone it is the same to rounding: {np.abs(alone.q[0] - batch.q[k]).max() < 1e-12}")
