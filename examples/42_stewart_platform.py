"""A Stewart platform on a free-floating spacecraft: forces of its six legs, recoil of the bus.

    python examples/42_stewart_platform.py

The platform is a body on a free joint; six legs (universal joint, slide) reach it through ball
joints, which are constraints. Only the slides have motors.
"""

import numpy as np

import remora as rm


def corners(radius: float, half_gap: float) -> np.ndarray:
    """Return six points on a circle, in three pairs, m."""
    angles = [k * 2 * np.pi / 3 + side * half_gap for k in range(3) for side in (-1, 1)]
    return np.array([(radius * np.cos(t), radius * np.sin(t), 0.0) for t in angles])


def platform() -> rm.Robot:
    """Return the spacecraft with bus, platform and six legs."""
    make = rm.Builder("stewart")
    make.body("bus", mass=400, inertia=(90, 80, 70)).body("plate", mass=30, inertia=(2, 2, 3.5))
    make.joint("loose", "free", "bus", "plate", xyz=(0, 0, 1))
    for i, (below, above) in enumerate(zip(corners(0.8, 0.3), corners(0.5, 0.75), strict=True)):
        make.body(f"lower{i}", mass=1.0, com=(0, 0, 0.2), inertia=(0.02, 0.02, 0.001))
        make.body(f"upper{i}", mass=0.8, com=(0, 0, -0.2), inertia=(0.02, 0.02, 0.001))
        make.joint(
            f"hinge{i}", "universal", "bus", f"lower{i}", xyz=below,
            axis=(1, 0, 0), axis2=(0, 1, 0),
        )  # fmt: skip
        make.joint(f"slide{i}", "prismatic", f"lower{i}", f"upper{i}", axis=(0, 0, 1))
        make.constraint(f"ball{i}", "spherical", f"upper{i}", "plate", child_xyz=above)
    return make.build()


def main() -> None:
    robot = platform()
    q = rm.neutral(robot)
    for i in range(6):  # a first guess: every leg one metre long
        q[robot.joints[f"slide{i}"].q] = 1.0
    q, v = rm.close_loops(robot, q)
    lengths = [q[robot.joints[f"slide{i}"].q][0] for i in range(6)]
    report = rm.loops.constraint_report(robot, q)
    print(
        f"{report.equations} equations, {report.freedoms} degrees of freedom remain of {robot.nv}"
    )
    print("lengths of the legs:", np.round(lengths, 4), "m")

    # push with all slides alike: how do the plate and the bus accelerate?
    tau = np.zeros(robot.nv)
    slides = [robot.joints[f"slide{i}"].v.start for i in range(6)]
    tau[slides] = 10.0
    vdot = rm.forward_dynamics(robot, q, v, tau)
    plate = robot.joints["loose"].v
    print(f"10 N in every leg: plate {vdot[plate][5]:.4f} m/s² from the bus, "
          f"bus {vdot[5]:.4f} m/s²")  # fmt: skip
    rate = rm.dynamics.momentum_matrix(robot, q) @ vdot
    print(f"total momentum stays zero to 1e-12: {np.max(np.abs(rate)) < 1e-12}")

    # which forces turn the plate by 0.1 rad/s² about the bus's x-axis? Nothing else is driven.
    wanted = np.zeros(robot.nv)
    wanted[plate.start] = 0.1
    passive = ["base", "loose", *(f"hinge{i}" for i in range(6))]
    wanted, _ = rm.hybrid_dynamics(robot, q, v, np.zeros(robot.nv), {"loose": wanted[plate]})
    tau = rm.loops.constrained_inverse_dynamics(robot, q, v, wanted, unactuated=passive)
    print("forces of the legs for 0.1 rad/s²:", np.round(tau[slides], 3), "N")
    found = rm.forward_dynamics(robot, q, v, tau)
    print(f"they cause this motion to 1e-10: {np.max(np.abs(found - wanted)) < 1e-10}")
    loads = rm.constraint_wrenches(robot, q, v, tau)
    print("forces in the ball joints:", np.round(np.linalg.norm(loads[:, :3], axis=-1), 3), "N")


if __name__ == "__main__":
    main()
