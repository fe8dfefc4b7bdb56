"""A run advanced call by call: a planner outside the run tries torques and keeps the best.

Run: python examples/18_step_by_step.py

The shoulder is to turn by 30° while the base floats. Every 0.25 s the planner saves the state of
the run, tries each of five torques for half a second, goes back, and applies the best one. This is
model-predictive control by search, and also what an environment for learning does.
"""

import numpy as np

import remora as rm
from remora.algebra import pose

robot = rm.load("servicer")
joint = robot.joints["shoulder_pitch"]
goal = np.radians(60.0)
q = rm.configuration(robot, {"shoulder_pitch": np.radians(30.0), "elbow_pitch": np.radians(-60.0)})
sim = rm.Simulation(robot, q, np.zeros(robot.nv), duration=20.0, record=0.25)


def cost(sim):
    """Return how far from the goal the joint will be two seconds later at its present speed."""
    return abs(sim.q[joint.q][0] + 2.0 * sim.v[joint.v][0] - goal)


tried = 0
while sim.t < 10.0:
    state, costs = sim.save(), {}
    for torque in (-4.0, -1.0, 0.0, 1.0, 4.0):  # N m
        sim.restore(state)
        sim.set_input("torque", {"shoulder_pitch": torque})
        sim.advance(state.t + 0.5)
        costs[torque] = cost(sim)
        tried += 1
    sim.restore(state)
    sim.set_input("torque", {"shoulder_pitch": min(costs, key=costs.get)})
    sim.advance(state.t + 0.25)

run = sim.recording()
angle, speed = np.degrees([sim.q[joint.q][0], sim.v[joint.v][0]])
turned = np.degrees(pose.to_rpy(run.frame("bus").pose[-1]))
print(f"{tried} continuations tried; the run has {len(run)} samples up to {run.t[-1]:.2f} s")
print(f"shoulder at {angle:.1f}°, {speed:.2f} °/s; the base has recoiled by {turned[1]:.2f}°")

drift = np.abs(run.momentum - run.momentum[0]).max()
print(f"momentum kept to 1e-12: {drift < 1e-12}")
