"""Plan the approach of the bundled scenario `capture` and print the joint motions for its file.

    python docs/pictures/plan_capture.py

The tool moves in front of the fixture of the tumbling satellite, turns with it, and closes in along
the fixture's axis. The joints follow by resolved motion rate with the generalized Jacobian, so that
the recoil of the base is part of the plan [SPART17, eqs. 46, 47]. It takes a minute.
"""

from collections.abc import Callable

import numpy as np

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion
from remora.simulation.inputs.moves import through

FOLDED = np.radians([0.0, 110.0, 0.0, -145.0, 0.0, 100.0, 0.0])
OPEN = np.radians([5.0, 75.0, 0.0, -95.0, 0.0, 85.0, 0.0])
#: Durations until the arm is open, and from there to the capture, s.
UNFOLD, APPROACH = 14.0, 24.0
#: From then on the tool is in front of the fixture and closes in, s of the approach.
CLOSE = 16.0
#: Distance in front of the fixture, m; closing speed, m/s; distance at the capture, m.
AHEAD, SPEED, REACH = 0.25, 0.015, 0.01
#: Position and angular velocity of the satellite at the capture; its start follows.
PLACE, OMEGA = np.array([2.8, 0.05, 1.6]), np.radians([0.5, -3.5, 0.6])
#: Times of the positions in the file; the joints come to rest at the last one.
KNOTS = np.array([2.0, 4, 6, 8, 10, 12, 14, 16, 18, 20, 21, 22, 23, 24, 25, 28])
STEP, CORRECTIONS = 0.05, 3


def start_of_target(target: rm.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return rpy, deg, and angular velocity, deg/s, at the start: backwards from the capture."""
    for side in ("left", "right"):
        target = target.replace_joint(f"hinge_{side}", damping=0.0)
    q, v = rm.neutral(target), np.zeros(target.nv)
    q[:8], v[:3] = pose.from_translation(PLACE), -OMEGA
    back = rm.simulate(target, q, v, UNFOLD + APPROACH)
    rpy, omega = pose.to_rpy(back.q[-1, :8]), -back.v[-1, :3]
    return np.round(np.degrees(rpy), 1), np.round(np.degrees(omega), 2)


def goal(fixture: np.ndarray, start: np.ndarray, t: float) -> np.ndarray:
    """Return the pose of the tool at time t of the approach."""
    s = np.clip((t - CLOSE) / (APPROACH - CLOSE), 0.0, 1.0)
    gap = AHEAD + (REACH - AHEAD) * (3 * s**2 - 2 * s**3)
    gap -= SPEED * ((APPROACH - CLOSE) * (s**3 - s**2) + max(t - APPROACH, 0.0))
    front = dq.mul(fixture, pose.from_translation(np.array([0.0, 0.0, -gap])))
    x = np.clip(t / CLOSE, 0.0, 1.0)
    part = x**3 * (10 - 15 * x + 6 * x * x)
    turn = error(start, front)[:3]
    place = (1 - part) * pose.translation(start) + part * pose.translation(front)
    return pose.from_parts(quaternion.mul(start[:4], quaternion.exp(0.5 * part * turn)), place)


def error(x: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return rotation vector and position of one pose seen from another, `(6,)`."""
    off = dq.mul(dq.conjugate(x), wanted)
    return np.concatenate(
        [2.0 * quaternion.log(quaternion.shortest(off[:4])), pose.translation(off)]
    )


def followed(robot: rm.Robot, q: np.ndarray, aim: Callable[[float], np.ndarray]) -> np.ndarray:
    """Return the joints at KNOTS when the tool follows `aim`, `(n, 7)`."""
    fast, states = rm.compile(robot), [q]
    for t in np.arange(0.0, KNOTS[-2], STEP):
        x, J = fast.frame_pose(q, frame="tool"), fast.generalized_jacobian(q, frame="tool")
        twist = error(aim(t), aim(t + STEP)) / STEP + 2.0 * error(x, aim(t))
        rates = np.linalg.pinv(J, rcond=0.02) @ twist
        v = np.concatenate([rm.base_velocity(robot, q, rates), rates])
        q = rm.integrate(robot, q, STEP * v)
        states.append(q)
    rows = np.round(KNOTS[:-1] / STEP).astype(int)
    values = np.array(states)[rows, 8:]
    return np.concatenate([values, values[-1:] + 0.6 * (values[-1:] - values[-2:-1])])


def main() -> None:
    robot, target = rm.load("servicer"), rm.load("defunct_satellite")
    fast, names = rm.compile(robot), [joint.name for joint in robot.joints[1:]]
    rpy, omega = start_of_target(target)
    q, v = rm.neutral(target), np.zeros(target.nv)
    q[:8], v[:3] = pose.from_xyz_rpy(PLACE, np.radians(rpy)), np.radians(omega)
    tumble = rm.simulate(target, q, v, UNFOLD + KNOTS[-1], record=STEP)
    q, rest = rm.neutral(robot), np.zeros(robot.nv)
    q[8:] = FOLDED
    unfold = {
        name: rm.Motion.between(0.0, UNFOLD, a, b)
        for name, a, b in zip(names, FOLDED, OPEN, strict=True)
    }
    q = rm.simulate(robot, q, rest, UNFOLD, prescribed=unfold).q[-1]
    start = fast.frame_pose(q, frame="tool")

    def aim(t: float) -> np.ndarray:
        fixture = rm.frame_pose(target, tumble.at(min(UNFOLD + t, tumble.t[-1]))[0], "fixture")
        return goal(fixture, start, t)

    values = np.round(followed(robot, q, aim), 4)
    for _ in range(CORRECTIONS):  # the spline through the knots is not quite the path
        splines = {
            name: through([0.0, *KNOTS], [a, *own])
            for name, a, own in zip(names, q[8:], values.T, strict=True)
        }
        run = rm.simulate(robot, q, rest, KNOTS[-1], prescribed=splines, record=0.5)
        at = [run.q[np.argmin(abs(run.t - t))] for t in KNOTS[:-1]]
        off = [error(fast.frame_pose(x, frame="tool"), aim(t)) for x, t in zip(at, KNOTS)]  # noqa: B905
        print(f"off by at most {1e3 * np.abs(off)[:, 3:].max():.2f} mm")
        for k, x in enumerate(at):
            J = fast.generalized_jacobian(x, frame="tool")
            values[k] += np.linalg.pinv(J, rcond=0.02) @ off[k]
        values = np.round(values, 4)
    print(f"target/base: rpy {rpy} deg, omega {omega} deg/s\ntimes: {KNOTS.tolist()}")
    for name, own in zip(names, values.T, strict=True):
        print(f"servicer/{name}: {own.tolist()}")


if __name__ == "__main__":
    main()
