"""A closed path of the arm's joints changes the attitude of a free-floating spacecraft.

Two joints follow a closed path. There are no external forces, so the momentum stays zero, and the
base recoils with the twist that `rm.dynamics.base_response` returns for the joint speeds. The
motion is integrated with `rm.integrate` and the midpoint rule; no forces are needed.
"""

import numpy as np

import remora as rm
from remora.algebra import pose

DURATION, STEPS = 20.0, 200
JOINTS = ("shoulder_pitch", "elbow_pitch")


def velocity(robot: rm.Robot, q: np.ndarray, t: float) -> np.ndarray:
    """Return v `(13,)`: two joints on a circle, and the base's twist for zero momentum."""
    rate = 2 * np.pi / DURATION
    v = np.zeros(robot.nv)
    v[robot.joints["shoulder_pitch"].v] = 0.6 * rate * np.sin(rate * t)
    v[robot.joints["elbow_pitch"].v] = 0.6 * rate * np.cos(rate * t)
    v[:6] = rm.dynamics.base_response(robot, q) @ v[6:]
    return v


def step(robot: rm.Robot, q: np.ndarray, v: np.ndarray, t: float, dt: float) -> np.ndarray:
    """Return the configuration after one step (midpoint rule, error of order dt²)."""
    halfway = rm.integrate(robot, q, 0.5 * dt * v)
    return rm.integrate(robot, q, dt * velocity(robot, halfway, t + 0.5 * dt))


def row(robot: rm.Robot, q: np.ndarray, t: float) -> str:
    angles = np.degrees([float(q[robot.joints[name].q][0]) for name in JOINTS])
    attitude = np.round(np.degrees(pose.to_rpy(q[:8])), 3) + 0.0
    position = np.round(1e3 * pose.translation(q[:8]), 1) + 0.0
    numbers = [*(f"{a:9.1f}" for a in angles), *(f"{a:9.3f}" for a in attitude)]
    return f"{t:5.1f}" + "".join(numbers) + "".join(f"{p:9.1f}" for p in position)


def main() -> None:
    robot = rm.load("servicer")
    start = rm.neutral(robot)
    for name, angle in zip(JOINTS, (0.5, 0.8), strict=True):
        start[robot.joints[name].q] = angle

    print("time    shoulder  elbow    base roll  pitch     yaw    base x      y        z")
    print("  s         °       °          °        °        °       mm       mm       mm")
    q, dt, com = start, DURATION / STEPS, rm.center_of_mass(robot, start)
    momentum = drift = 0.0
    for k in range(STEPS + 1):
        t = k * dt
        if k % (STEPS // 8) == 0:
            print(row(robot, q, t))
        v = velocity(robot, q, t)
        momentum = max(momentum, float(np.abs(rm.momentum(robot, q, v)).max()))
        drift = max(drift, float(np.linalg.norm(rm.center_of_mass(robot, q) - com)))
        if k < STEPS:
            q = step(robot, q, v, t, dt)

    moved = rm.difference(robot, start, q)
    print(f"\njoints back at their start to {np.degrees(np.abs(moved[6:]).max()):.0e}°")
    print(f"base turned by {np.degrees(np.linalg.norm(moved[:3])):.3f}° all the same")
    print(f"momentum below {10 ** np.ceil(np.log10(momentum)):.0e} N s and N m s throughout")
    print(f"centre of mass within {1e6 * drift:.2f} µm of its start (step {dt} s)")


if __name__ == "__main__":
    main()
