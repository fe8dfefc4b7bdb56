"""A planned reach, then a touch: an arm on a floating base in front of a wall.

`rm.plan_reach` plans the motion of the joints that brings the tool in front of a wall, with the
recoil of the base. Then impedance control pushes the tool 10 mm into the wall and takes it back. No
force sensor is needed, and the impulse on the wall is the momentum that the robot drifts off with.
"""

import numpy as np

import remora as rm
from remora.algebra import pose

TICK = {"sample_time": 0.004}
AWAY, DEEP = 0.03, 0.01  # m


def main() -> None:
    robot = rm.load("spart17_planar_3")
    q0 = rm.neutral(robot)
    q0[8:] = np.radians([70.0, -100.0, 20.0])
    start = rm.frame_pose(robot, q0, "tool")
    goal = pose.from_xyz_rpy(pose.translation(start) + np.array([0.1, -0.15, 0.0]), [0, 0, 0])

    plan = rm.plan_reach(robot, q0, "tool", goal, 10.0)
    reach = rm.simulate(robot, q0, np.zeros(robot.nv), 10.0, prescribed=plan.motions, record=0.1)
    tool = rm.frame_pose(robot, reach.q[-1], "tool")
    off = np.linalg.norm(pose.translation(tool) - pose.translation(goal))
    turned = np.degrees(2.0 * np.linalg.norm(reach.q[-1, 1:4]))
    print(f"reach: the base turns by {turned:.1f}°, tool within 1 µm: {off < 1e-6}")

    into = pose.from_parts(goal[:4], pose.translation(goal) + np.array([AWAY + DEEP, 0, 0]))
    surface = pose.translation(goal) + np.array([AWAY, 0.0, 0.0])
    system = rm.System(
        robot,
        [
            rm.control.PoseReference([goal, into, goal], 3.0, **TICK),
            rm.control.Impedance("tool", 200.0, 80.0, rows="plane", **TICK),
            rm.world.Wall("tool", surface, (-1, 0, 0), stiffness=5e3, damping=50.0),
        ],
    )
    rest = np.zeros(robot.nv)
    push = rm.simulate(
        system, reach.q[-1], rest, 7.0, integrator=rm.Integrator("rk4", step=0.002), record=0.002
    )
    force = -push.signals["wall.force"][:, 0]
    impulse = float(np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(push.t)))
    momentum = -push.momentum[-1, 0]
    print(f"touch: at most {force.max():.1f} N, impulse {impulse:.2f} N s")
    print(f"momentum afterwards {momentum:.2f} N s, the same to 1 %: "
          f"{abs(impulse / momentum - 1.0) < 0.01}")  # fmt: skip
    left = 1e3 * np.linalg.norm(push.signals["impedance.force"][-1, 3:]) / 200.0
    print(f"the tool is back, to 3 mm: {left < 3.0}")


if __name__ == "__main__":
    main()
