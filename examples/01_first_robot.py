"""Load a servicer, set its joint angles, and compute the pose and Jacobian of its tool."""

import numpy as np

import remora as rm
from remora.algebra import pose

np.set_printoptions(precision=4, suppress=True)


def main() -> None:
    robot = rm.load("servicer")  # a bundled robot; a path to a .urdf, .xml or .yaml works too
    print(robot)

    q = rm.neutral(robot)  # all joints at zero, base at the inertial origin
    for name, degrees in (("shoulder_pitch", 30.0), ("elbow_pitch", -60.0), ("wrist_pitch", 45.0)):
        q[robot.joints[name].q] = np.radians(degrees)

    x = rm.frame_pose(robot, q, "tool")  # a unit dual quaternion, (8,)
    print("\ntool position    ", pose.translation(x), "m")
    print("tool roll pitch yaw", np.degrees(pose.to_rpy(x)), "deg")
    print("centre of mass   ", rm.center_of_mass(robot, q), "m")

    arm = slice(6, robot.nv)  # v[:6] is the base's twist [ω, v], v[6:] the joint speeds
    held = rm.jacobian(robot, q, "tool")[:, arm]
    floating = rm.generalized_jacobian(robot, q, "tool")
    print("\ntool twist [ω, v] per rad/s of shoulder_pitch, tool axes")
    print("  base held    ", held[:, 1])
    print("  base floating", floating[:, 1])

    joint_speeds = np.radians([0.0, 5.0, 0.0, -5.0, 0.0, 5.0, 0.0])
    v = np.concatenate([rm.dynamics.base_response(robot, q) @ joint_speeds, joint_speeds])
    print("\njoint speeds     ", np.degrees(joint_speeds), "deg/s")
    print("the base turns at", np.degrees(v[:3]), "deg/s")
    print("and drifts at    ", 1e3 * v[3:6], "mm/s")
    h = rm.momentum(robot, q, v)
    print(f"momentum          {np.linalg.norm(h[:3]):.0e} N s, {np.linalg.norm(h[3:]):.0e} N m s")
    print(f"kinetic energy    {rm.kinetic_energy(robot, q, v):.4f} J")

    many_q, many_v = rm.random_state(robot, seed=1, batch=(1000,))
    print("\n1000 states at once:", rm.poses(robot, many_q).shape, "poses,", end=" ")
    print(rm.momentum(robot, many_q, many_v).shape, "momenta")


if __name__ == "__main__":
    main()
