"""An arm that comes back to where it started leaves its spacecraft turned.

Two joints follow a closed path. Nothing pushes from outside, so the momentum stays zero: the base
answers every joint speed with the twist `rm.base_response` gives. The motion is integrated with
`rm.integrate` (midpoint rule); no dynamics are needed.
"""

import numpy as np

import remora as rm
from remora.algebra import pose

DURATION, STEPS = 20.0, 400  # s


def joint_speeds(robot: rm.Robot, t: float) -> np.ndarray:
    """Return the joint speeds (7,), rad/s: a circle in the plane of two joint angles."""
    phase, rate = 2 * np.pi * t / DURATION, 2 * np.pi / DURATION
    u = np.zeros(robot.nv - 6)
    u[robot.joint_index("shoulder_pitch") - 1] = 0.6 * rate * np.sin(phase)
    u[robot.joint_index("elbow_pitch") - 1] = 0.6 * rate * np.cos(phase)
    return u


def velocity(robot: rm.Robot, q: np.ndarray, t: float) -> np.ndarray:
    """Return v (13,): the joint speeds, and the base's twist that keeps the momentum zero."""
    u = joint_speeds(robot, t)
    return np.concatenate([rm.base_response(robot, q) @ u, u])


def main() -> None:
    robot = rm.load("servicer")
    start = rm.neutral(robot)
    start[robot.joints["shoulder_pitch"].q] = 0.5
    start[robot.joints["elbow_pitch"].q] = 0.8

    q, dt = start, DURATION / STEPS
    com = rm.center_of_mass(robot, start)
    largest_momentum = largest_drift = 0.0
    print("   t   shoulder  elbow   base roll  pitch    yaw     base position, mm")
    for k in range(STEPS + 1):
        t = k * dt
        v = velocity(robot, q, t)
        largest_momentum = max(largest_momentum, np.abs(rm.momentum(robot, q, v)).max())
        drift = np.linalg.norm(rm.center_of_mass(robot, q) - com)
        largest_drift = max(largest_drift, drift)
        if k % (STEPS // 8) == 0:
            angles = np.degrees([*q[robot.joints["shoulder_pitch"].q], q[11]])
            attitude = np.degrees(pose.to_rpy(q[:8])) + 0.0
            position = 1e3 * pose.translation(q[:8])
            print(
                f"{t:5.1f} s{angles[0]:7.1f}°{angles[1]:7.1f}°",
                " ".join(f"{a:8.3f}°" for a in np.round(attitude, 3) + 0.0),
                " ".join(f"{p:7.2f}" for p in np.round(position, 2) + 0.0),
            )
        halfway = rm.integrate(robot, q, 0.5 * dt * v)
        q = rm.integrate(robot, q, dt * velocity(robot, halfway, t + 0.5 * dt))

    turned = rm.difference(robot, start, q)
    print(f"\njoints off their start by at most {np.degrees(np.abs(turned[6:]).max()):.1e}°")
    print(f"base turned by {np.degrees(np.linalg.norm(turned[:3])):.3f}°")
    print(f"momentum at most {largest_momentum:.0e} (N s and N m s)")
    print(f"centre of mass moved at most {1e6 * largest_drift:.2f} µm (the step is {dt} s)")


if __name__ == "__main__":
    main()
