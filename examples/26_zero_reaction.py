"""Arms that move without turning their base: zero reaction, and a second arm that compensates.

The servicer's tool moves along a line while three more rows of its law hold the base's attitude,
without any torque on the base; beside it the same motion without these rows. Then a planar robot
with two arms: one works, the other keeps the attitude. Digital control at 100 Hz.
"""

import numpy as np

import remora as rm
from remora.algebra import pose

TICK = {"sample_time": 0.01}
STEPS = {
    "integrator": rm.Integrator("rk4", step=0.01),
    "physics": rm.Physics(limits="ignore"),
    "record": 0.2,
}


def reference(robot: rm.Robot, q: np.ndarray, frame: str, away: tuple[float, ...], s: float):
    """Return a straight line of a frame with constant orientation."""
    x = rm.frame_pose(robot, q, frame)
    goal = pose.from_parts(x[:4], pose.translation(x) + np.array(away))
    return rm.control.PoseReference([x, goal], s, "straight", **TICK)


def one_arm(rows: str) -> float:
    """Return by how much the servicer's base turns, rad."""
    robot = rm.load("servicer")
    q = rm.neutral(robot)
    q[8:] = np.radians([0, 40, 20, -80, 0, 60, 0])
    line = reference(robot, q, "tool", (0.0, 0.08, 0.0), 20.0)
    law = rm.control.OperationalComputedTorque(
        "tool", 4.0, 4.0, rows="position", base_rows=rows, **TICK
    )
    run = rm.simulate(rm.System(robot, [line, law]), q, np.zeros(robot.nv), 20.0, **STEPS)
    return float(2.0 * np.linalg.norm(run.q[:, 1:4], axis=1).max())


def both_arms() -> rm.Robot:
    """Return SPART17's Table 2 with two arms of three links."""
    builder = rm.Builder("two_arms").body("bus", mass=100.0, inertia=(9.4, 9.4, 9.375))
    builder = builder.joint("base", "planar", None, "bus")
    for arm, side in (("left", 1.0), ("right", -1.0)):
        parent, place, rpy = "bus", (0.375, 0.2 * side, 0), (0, 0, 0.4 * side)
        for i in range(3):
            body = f"{arm}_{i}"
            builder = builder.body(body, mass=10, com=(0.25, 0, 0), inertia=(0.01, 0.21, 0.2104))
            builder = builder.joint(
                f"{body}_joint", "revolute", parent, body, axis=(0, 0, 1), xyz=place, rpy=rpy
            )
            parent, place, rpy = body, (0.5, 0, 0), (0, 0, 0)
        builder = builder.frame(f"{arm}_tool", parent, xyz=(0.5, 0, 0))
    return builder.build()


def two_arms(compensate: bool) -> tuple[float, float]:
    """Return by how much the base turns, rad, and how far the tool is off, m."""
    robot = both_arms()
    q = np.array([0, 0, 0, 0.5, -1.2, 0.7, -0.5, 1.2, -0.7])
    arm = tuple(f"left_{i}_joint" for i in range(3))
    other = [f"right_{i}_joint" for i in range(3)]
    law = rm.control.OperationalComputedTorque(
        "left_tool",
        4.0,
        4.0,
        rows="plane",
        base_rows=("wz",) if compensate else "none",
        joints=() if compensate else arm,
        **TICK,
    )
    system = rm.System(robot, [reference(robot, q, "left_tool", (0.1, 0.15, 0), 10.0), law])
    locked = [] if compensate else other
    run = rm.simulate(system, q, np.zeros(9), 12.0, locked=locked, **STEPS)
    off = np.linalg.norm(run.signals["operational_computed_torque.error"][-1, 3:])
    return float(np.abs(run.q[:, 2]).max()), float(off)


def main() -> None:
    held, free = one_arm("orientation"), one_arm("none")
    print(f"servicer, 20 s: base turns by {np.degrees(free):.2f}°;")
    print(f"with zero reaction by less than 1e-9 rad per second: {held / 20.0 < 1e-9}")
    alone, off = two_arms(compensate=False)
    print(f"two arms, right one locked: base turns by {np.degrees(alone):.2f}°")
    both, off = two_arms(compensate=True)
    print(f"right one compensates: less than 1e-5 rad: {both < 1e-5}, tool {1e3 * off:.2f} mm off")


if __name__ == "__main__":
    main()
