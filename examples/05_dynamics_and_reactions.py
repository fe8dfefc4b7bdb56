"""A joint torque on a servicer at rest: accelerations, base recoil and joint reactions.

Then the same torque with the elbow locked: the torque that holds the elbow, and the motion of the
arm. Reactions are computed by two independent formulations.
"""

import numpy as np

import remora as rm

np.set_printoptions(precision=4, suppress=True, floatmode="fixed")
TORQUE, PULSE = 10.0, 0.5  # N m, s


def servicer() -> tuple[rm.Robot, np.ndarray, np.ndarray]:
    """Return the robot with its arm bent, at rest."""
    robot = rm.load("servicer")
    q = rm.neutral(robot)
    for name, degrees in (
        ("shoulder_roll", 20.0), ("shoulder_pitch", 30.0), ("elbow_pitch", -60.0),
        ("forearm_roll", 10.0), ("wrist_pitch", 45.0),
    ):  # fmt: skip
        q[robot.joints[name].q] = np.radians(degrees)
    return robot, q, np.zeros(robot.nv)


def show(robot: rm.Robot, vdot: np.ndarray) -> None:
    """Print accelerations; at rest the twist's rate of change is the acceleration."""
    print("  base turns  ", np.degrees(vdot[:3]), "°/s²")
    print("  base moves  ", 1e3 * vdot[3:6], "mm/s²")
    for name in ("shoulder_pitch", "elbow_pitch", "wrist_pitch"):
        print(f"  {name:14}{np.degrees(vdot[robot.joints[name].v][0]):8.2f} °/s²")


def main() -> None:
    robot, q, v = servicer()
    shoulder = robot.joints["shoulder_pitch"]
    elbow = robot.joints["elbow_pitch"]
    tau = np.zeros(robot.nv)
    tau[shoulder.v] = TORQUE

    print(f"{TORQUE:.0f} N m at shoulder_pitch, all else free")
    vdot = rm.forward_dynamics(robot, q, v, tau)
    show(robot, vdot)
    rate = rm.dynamics.momentum_matrix(robot, q) @ vdot  # at rest, without external forces
    print(f"  momentum changes by less than 1e-12 N, N m: {np.abs(rate).max() < 1e-12}")

    print("\nreaction at shoulder_pitch, on the shoulder, its own axes")
    i = robot.joint_index("shoulder_pitch")
    reactions = rm.reaction_wrenches(robot, q, v, tau)  # O(n)
    maximal = rm.reaction_wrenches(robot, q, v, tau, formulation="newton_euler")  # VT18
    print("  force       ", reactions[i, :3], "N")
    print("  torque      ", reactions[i, 3:], "N m: none about its axis, y")
    difference = np.abs(maximal - reactions).max() / np.abs(reactions).max()
    print(f"  by VT18's framework, all joints: the same to 1e-12: {difference < 1e-12}")

    print("\nthe same with elbow_pitch locked")
    locked, needed = rm.hybrid_dynamics(robot, q, v, tau, {"elbow_pitch": 0.0})
    show(robot, locked)
    print(f"  to hold the elbow: {needed[elbow.v][0]:.4f} N m")
    again = rm.forward_dynamics(robot, q, v, needed)
    print(f"  that torque makes this motion: {np.allclose(again, locked)}")

    # a torque pulse, integrated in steps of 5 ms (midpoint rule)
    dt = 5e-3
    for _ in range(round(PULSE / dt)):
        half = v + 0.5 * dt * rm.forward_dynamics(robot, q, v, tau)
        middle = rm.integrate(robot, q, 0.5 * dt * v)
        v = v + dt * rm.forward_dynamics(robot, middle, half, tau)
        q = rm.integrate(robot, q, dt * half)
    print(f"\nafter a pulse of {PULSE} s, all joints free")
    print("  base turns at ", np.degrees(v[:3]), "°/s")
    print(f"  shoulder at     {np.degrees(v[shoulder.v][0]):.3f} °/s")
    print(f"  kinetic energy  {rm.kinetic_energy(robot, q, v):.4f} J")
    print(f"  momentum below 1e-4 N s, N m s: {np.abs(rm.momentum(robot, q, v)).max() < 1e-4}")


if __name__ == "__main__":
    main()
