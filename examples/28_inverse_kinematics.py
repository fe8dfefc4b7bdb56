"""Inverse kinematics of a servicer whose base is held, floats, or cannot help at all.

The same target needs other joint angles when nothing holds the base: it recoils on the way, and
where it ends depends on the path. A target out of reach is approached, and the result says what
limits it.
"""

import numpy as np

import remora as rm
from remora.algebra import pose

START = np.radians([20.0, 50.0, 0.0, -90.0, 0.0, 60.0, 45.0])


def missed(robot: rm.Robot, q0: np.ndarray, joints: np.ndarray, target: np.ndarray) -> float:
    """Return how far the tool is from the target after a floating robot has moved its joints, m."""
    names = [joint.name for joint in robot.joints[1:]]
    motions = {
        name: rm.Motion.between(0.0, 20.0, float(a), float(b))
        for name, a, b in zip(names, q0[8:], joints, strict=True)
    }
    run = rm.simulate(robot, q0, np.zeros(robot.nv), duration=20.0, prescribed=motions)
    tool = rm.frame_pose(robot, run.q[-1], "tool")
    return float(np.linalg.norm(pose.translation(tool) - pose.translation(target)))


def main() -> None:
    robot = rm.load("servicer")
    q0 = rm.neutral(robot)
    q0[8:] = START
    start = rm.frame_pose(robot, q0, "tool")
    target = pose.from_parts(start[:4], pose.translation(start) + np.array([0.3, 0.2, -0.4]))

    print("                      joints, °")
    held = rm.inverse_kinematics(robot, {"tool": target}, q0, base="fixed")
    print("base held    ", np.degrees(held.q[8:]).round(1))
    floating = rm.inverse_kinematics(robot, {"tool": target}, q0)
    print("base floating", np.degrees(floating.q[8:]).round(1))
    turned = np.linalg.norm(rm.difference(robot, q0, floating.q)[:3])
    print(f"the base turns by {np.degrees(turned):.1f}° on the way\n")

    wrong = missed(robot, q0, held.q[8:], target)
    print(f"flown with a floating base, the first misses by {1e3 * wrong:.0f} mm,")
    right = missed(robot, q0, floating.q[8:], target)
    print(f"the second by less than 1 µm: {right < 1e-6}\n")

    away = pose.from_parts(target[:4], np.array([6.0, 0.0, 0.0]))
    far = rm.inverse_kinematics(robot, {"tool": away}, q0, base="fixed", starts=17)
    print(f"a target far away is missed by {far.errors['tool'].position:.2f} m;")
    print(str(far).splitlines()[-1].strip())


if __name__ == "__main__":
    main()
