"""What an arm does to its vehicle: coupling factor, budget of a manoeuvre, wheels to hold it."""

import numpy as np

import remora as rm
from remora.algebra import pose

robot = rm.load("servicer")
q = rm.neutral(robot)
q[8:] = np.radians([0, 35, 0, 70, 0, 45, 0])
arm = robot.joints.names[1:]

found = rm.analysis.coupling(robot, q)
print(f"coupling factor {found.factor:.3f}: rad/s of the bus per rad/s of the joints")
print(f"the joint that disturbs most: {arm[found.per_joint.argmax()]}")

# A quiet posture: sweep the shoulder and the elbow.
grid = {"shoulder_pitch": np.linspace(-2, 2, 200), "elbow_pitch": np.linspace(-2.5, 2.5, 200)}
factor = rm.analysis.coupling_map(robot, grid, q=q)[..., 0]
print(f"over {factor.size} postures the factor is {factor.min():.3f} to {factor.max():.3f}")

# A manoeuvre, with all joints on prescribed paths and a free vehicle.
turns = np.radians([45, 20, 0, -50, 0, 25, 0])
moves = {
    name: rm.Motion.between(0, 20, q[8 + k], q[8 + k] + turns[k]) for k, name in enumerate(arm)
}
run = rm.simulate(robot, q, np.zeros(robot.nv), 20.0, prescribed=moves, record=0.1)
budget = rm.analysis.disturbance_budget(robot, run.t, run.q, run.v)
print("rotation of the bus by joint, degrees (x, y, z):")
for name, turn in zip(budget.names, np.degrees(budget.rotation), strict=True):
    if np.linalg.norm(turn) > 0.01:
        print(f"  {name:15} {turn.round(2) + 0.0}")
x = rm.poses(robot, run.q)[:, 0]
moved = pose.translation(x[-1]) - pose.translation(x[0])
print("the parts add up to the motion of the bus:", np.allclose(budget.total[3:], moved, atol=1e-6))

# Four wheels in a pyramid that are to hold the attitude.
pyramid = np.array([[1, 0, 1], [0, 1, 1], [-1, 0, 1], [0, -1, 1]]) / np.sqrt(2)
demand = np.linalg.norm(rm.analysis.momentum_demand(robot, run.q, run.v), axis=-1)
margin = rm.analysis.wheel_margin(robot, run.q, run.v, pyramid, [4.0] * 4)
print(f"largest demand {demand.max():.2f} N m s, smallest margin {margin.min():.2f}")
