"""Modules dock, undock and are swapped during a run; nothing is compiled anew.

A tug captures a cube that drifts towards it, a second cube docks on top of the first, and the stack
is let go. Momentum is conserved through every change.
"""

import numpy as np

import remora as rm

pose = rm.algebra.pose


def module(name, mass, gauge=0.5):
    """A cubic module with a turntable on top."""
    b = rm.Builder(name).body("hub", mass, (0, 0, 0), mass * gauge**2 / 6 * np.eye(3))
    b.body("table", 1.0, (0, 0, 0.05), np.diag([0.02, 0.02, 0.03]))
    b.joint("base", "free", None, "hub")
    b.joint("turn", "revolute", "hub", "table", axis=(0, 0, 1), xyz=(0, 0, gauge / 2))
    b.frame("top", "table", xyz=(0, 0, 0.1)).frame("foot", "hub", xyz=(0, 0, -gauge / 2))
    return b.build()


tug, cube = module("tug", 60.0, 1.0), module("cube", 8.0)
robot = rm.ModularRobot({"tug": tug, "one": cube, "two": cube})
q, v = robot.neutral(), np.zeros(robot.nv)
for name, height in (("one", 1.0), ("two", 1.8)):
    at = robot.q_of(name).start
    q[at : at + 8] = pose.from_xyz_rpy((0, 0, height), (0, 0.02, 0.3))
v[robot.v_of("one")][:6] = 0.02, -0.03, 0.1, 0, 0.01, -0.1
v[robot.v_of("two")][:6] = 0, 0.05, 0, 0.01, 0, -0.15


def touched(t, q, v):
    """Cube one is within 5 cm of the tug's table."""
    foot = rm.frame_pose(cube, q[robot.q_of("one")], "foot")
    top = rm.frame_pose(tug, q[robot.q_of("tug")], "top")
    return np.linalg.norm(pose.translation(foot) - pose.translation(top)) < 0.05


changes = [
    rm.Attach(touched, "one", "tug", "top", mount="foot", latch=True),
    rm.Attach(3.0, "two", "one", "top", mount="foot", latch=True),
    rm.Detach(4.0, "one", separation=(0, 0, 0.1)),  # takes two along
]
run = rm.simulate_assembly(robot, q, v, duration=6.0, rate=50.0, changes=changes)
for switch in run.switches:
    print(f"{switch.t:.2f} s: {switch}")

kept = run.conservation()
print("momentum kept to 1e-7 (RK4 with 20 ms):", kept.linear_momentum.relative < 1e-7)
for k in (0, 150, -1):
    print(f"{run.t[k]:.2f} s:", {name: bool(run.active(name)[k]) for name in ("one", "two")})
