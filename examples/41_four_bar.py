"""A four-bar linkage against its textbook solution: angles, speeds, driving torque and pin force.

    python examples/41_four_bar.py

The tree has a crank, a coupler on it and a rocker; a constraint pins coupler and rocker together.
"""

import numpy as np

import remora as rm

A, B, C, D = 1.0, 2.5, 2.0, 3.0  # crank, coupler, rocker, ground, m
SPEED = 2.0  # of the crank, rad/s


def linkage() -> rm.Robot:
    """Return the linkage in a plane, without gravity."""
    make = rm.Builder("four-bar").body("ground", mass=10, inertia=(1, 1, 1))
    for name, length in (("crank", A), ("coupler", B), ("rocker", C)):
        moment = 2.0 * length**2 / 12
        make.body(name, mass=2.0, com=(length / 2, 0, 0), inertia=(0.01, moment, moment))
    make.joint("motor", "revolute", "ground", "crank", axis=(0, 0, 1))
    make.joint("elbow", "revolute", "crank", "coupler", xyz=(A, 0, 0), axis=(0, 0, 1))
    make.joint("pivot", "revolute", "ground", "rocker", xyz=(D, 0, 0), axis=(0, 0, 1))
    make.constraint(
        "pin", "revolute", "coupler", "rocker", parent_xyz=(B, 0, 0), child_xyz=(C, 0, 0),
        axis=(0, 0, 1),
    )  # fmt: skip
    return make.build(base="fixed")


def textbook(crank: float) -> tuple[float, float]:
    """Return the angles of coupler and rocker to the ground: two circles intersect."""
    tip = A * np.array([np.cos(crank), np.sin(crank)])
    to_pivot = np.array([D, 0.0]) - tip
    distance = np.hypot(*to_pivot)
    along = (B**2 - C**2 + distance**2) / (2 * distance)
    across = np.sqrt(B**2 - along**2)
    pin = tip + (along * to_pivot + across * np.array([-to_pivot[1], to_pivot[0]])) / distance
    return np.arctan2(*(pin - tip)[::-1]), np.arctan2(pin[1], pin[0] - D)


def main() -> None:
    robot = linkage()
    report = rm.loops.constraint_report(robot)
    print(f"{report.equations} equations, {report.rank} independent, {report.freedoms} freedom")
    print(report.warnings[0])

    q, v = np.array([0.3, 0.2, 1.5]), np.array([SPEED, 0.0, 0.0])
    off, torques, forces = 0.0, [], []
    for crank in np.linspace(0.3, 0.3 + 2 * np.pi, 73):
        q[0], v[0] = crank, SPEED
        q, v = rm.close_loops(robot, q, v, fixed=["motor"])
        coupler, rocker = textbook(crank)
        speeds = (
            A * SPEED * np.sin(rocker - crank) / (B * np.sin(coupler - rocker)),
            A * SPEED * np.sin(crank - coupler) / (C * np.sin(rocker - coupler)),
        )
        found = np.array([q[0] + q[1], q[2], v[0] + v[1], v[2]])
        error = found - np.array([coupler, rocker, *speeds])
        error[:2] = np.angle(np.exp(1j * error[:2]))  # angles up to full turns
        off = max(off, np.max(np.abs(error)))
        # the torque that keeps the speed constant: the motor alone is driven
        vdot, _ = rm.hybrid_dynamics(robot, q, v, np.zeros(3), {"motor": 0.0})
        tau = rm.loops.constrained_inverse_dynamics(
            robot, q, v, vdot, unactuated=["elbow", "pivot"]
        )
        torques.append(tau[0])
        forces.append(np.linalg.norm(rm.constraint_wrenches(robot, q, v, tau)[0, :3]))
    print(f"angles and speeds differ from the textbook by less than 1e-10: {off < 1e-10}")
    print(f"motor torque {min(torques):.2f} to {max(torques):.2f} N m at {SPEED} rad/s")
    work = np.mean(torques[:-1]) / np.max(np.abs(torques))
    print(f"over one turn its mean is zero: {abs(work) < 1e-6}")
    print(f"force in the pin up to {max(forces):.2f} N")


if __name__ == "__main__":
    main()
