"""A floating arm tracks a circle under limits, and a second task uses what is left free.

Every 50 ms `rm.tasks.solve_tasks` returns the joint speeds that follow the circle best, with limits
of range, speed and acceleration. The base recoils so that the momentum stays zero. The arm has
seven joints and the position of the tool needs three, so a task of lower priority can keep the base
from turning as far as that does not disturb the tool.
"""

import numpy as np

import remora as rm
from remora.algebra import pose

DT, DURATION, RADIUS = 0.05, 30.0, 0.15
START = np.radians([20.0, 50.0, 0.0, -90.0, 0.0, 60.0, 45.0])


def circle(center: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity of a goal that starts and stops at rest, inertial frame."""
    s = min(t / DURATION, 1.0)
    angle = 2 * np.pi * s**3 * (10 - 15 * s + 6 * s * s)
    rate = 2 * np.pi * 30 * s * s * (1 - s) ** 2 / DURATION
    place = center + RADIUS * np.array([np.cos(angle) - 1.0, np.sin(angle), 0.0])
    return place, RADIUS * rate * np.array([-np.sin(angle), np.cos(angle), 0.0])


def tracked(robot: rm.Robot, q: np.ndarray, quiet: bool) -> tuple[float, float, float]:
    """Return the largest error, m, how far the base turns, rad, and the largest joint speed."""
    start, v = q, np.zeros(robot.nv)
    center = pose.translation(rm.frame_pose(robot, q, "tool"))
    limits = rm.tasks.TaskLimits(acceleration=0.5)
    error = speed = turned = 0.0
    for k in range(round(DURATION / DT)):
        place, velocity = circle(center, k * DT)
        tasks: list[rm.tasks.Task] = [
            rm.tasks.PositionTask("tool", place, velocity=velocity, gain=5.0)
        ]
        if quiet:
            tasks.append(rm.tasks.ZeroReactionTask(attitude_only=True, priority=1))
        step = rm.tasks.solve_tasks(robot, q, v, tasks, limits, DT, base="floating")
        v = step.velocity
        q = rm.integrate(robot, q, DT * v)
        goal = circle(center, (k + 1) * DT)[0]
        tool = pose.translation(rm.frame_pose(robot, q, "tool"))
        error = max(error, float(np.linalg.norm(tool - goal)))
        speed = max(speed, float(np.abs(v[6:]).max()))
        turned = max(turned, float(np.linalg.norm(rm.difference(robot, start, q)[:3])))
    return error, turned, speed


def main() -> None:
    robot = rm.load("servicer")
    q = rm.neutral(robot)
    q[8:] = START
    for quiet in (False, True):
        error, turned, speed = tracked(robot, q, quiet)
        print("with the base as second task" if quiet else "the circle alone")
        print(f"  tool within 1 mm of the circle: {error < 1e-3}")
        print(f"  base turns by up to {np.degrees(turned):.2f}°")
        print(f"  joints at most {np.degrees(speed):.1f}°/s")


if __name__ == "__main__":
    main()
