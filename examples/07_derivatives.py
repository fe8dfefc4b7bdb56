"""Linearize a servicer: poles of its joint controllers with a fixed and a floating base.

Every joint has a PD controller, tuned for the inertia it sees with the base and all other joints
held: 1 Hz, 70 % of critical damping. The derivatives of forward dynamics give the linear model
about a state. Its poles describe the closed loop with the base held, floating and tumbling. Then:
the effect of an unknown mass in the gripper.
"""

import numpy as np

import remora as rm
from remora.algebra import screw

FREQUENCY, DAMPING = 1.0, 0.7  # Hz, of critical
POSTURE = {"shoulder_pitch": 40.0, "elbow_pitch": -80.0, "wrist_pitch": 45.0}  # degrees


def linear_model(robot: rm.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray):
    """Return A, B of ẋ = A x + B u about a state: x = (dq, dv), u = dτ.

    The rate of a joint's dq is dv. A free base's dq is a twist in axes that rotate with the base,
    so its rate is dv - V × dq.
    """
    d = rm.dynamics.forward_dynamics_derivatives(robot, q, v, tau)
    turning = np.zeros((robot.nv, robot.nv))
    if robot.joints[0].kind == "free":
        turning[:6, :6] = -screw.cross(v[:6], np.eye(6)).T
    A = np.block([[turning, np.eye(robot.nv)], [d.dq, d.dv]])
    return A, np.vstack([np.zeros((robot.nv, robot.nv)), d.dtau])


def modes(robot: rm.Robot, q: np.ndarray, v: np.ndarray) -> str:
    """Return frequency and damping of the slowest and the fastest mode of the closed loop."""
    omega, n = 2 * np.pi * FREQUENCY, robot.nv
    felt = np.diag(rm.mass_matrix(robot, q)).copy()
    felt[: n - 7] = 0.0  # the base is not actuated
    spring, damper = np.diag(felt * omega**2), np.diag(felt * 2 * DAMPING * omega)
    tau = rm.inverse_dynamics(robot, q, v, np.zeros(n))  # for constant speeds
    A, B = linear_model(robot, q, v, tau)
    poles = np.linalg.eigvals(A - B @ np.hstack([spring, damper]))
    swinging = sorted(poles[poles.imag > 1.0], key=abs)
    shown = [f"{abs(p) / 2 / np.pi:.2f} Hz {-100 * p.real / abs(p):.0f} %" for p in swinging]
    return f"{shown[0]} ... {shown[-1]}"


def main() -> None:
    robot = rm.load("servicer")
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    for name, degrees in POSTURE.items():
        q[robot.joints[name].q] = np.radians(degrees)

    print(f"joints made for {FREQUENCY:.2f} Hz {100 * DAMPING:.0f} %, slowest and fastest mode")
    print("  base held             ", modes(rm.load("servicer", base="fixed"), q[8:], v[6:]))
    print("  base floating         ", modes(robot, q, v))
    for rate in (10.0, 30.0):
        tumbling = v.copy()
        tumbling[:3] = np.radians(rate) * np.array([0.6, 0.0, 0.8])
        print(f"  tumbling at {rate:.0f} °/s    ", modes(robot, q, tumbling))

    # a payload in the gripper: a point mass at the flange's centre of mass
    tau = np.zeros(robot.nv)
    tau[robot.joints["elbow_pitch"].v] = 10.0
    flange = robot.bodies["flange"]
    per_parameter = rm.dynamics.inertia_derivatives(robot, q, v, tau)[
        :, -10:
    ]  # the last body's ten
    slope = per_parameter @ parameters_of_a_point(flange.com)
    print("\n10 N m at the elbow accelerate it by, °/s²")
    elbow = robot.joints["elbow_pitch"].v
    alone = rm.forward_dynamics(robot, q, v, tau)[elbow][0]
    print(
        f"  empty gripper {np.degrees(alone):.2f}, per kg in it {np.degrees(slope[elbow][0]):.2f}"
    )
    for mass in (0.1, 1.0):
        loaded = robot.replace_body("flange", mass=flange.mass + mass)
        true = rm.forward_dynamics(loaded, q, v, tau)[elbow][0]
        linear = alone + mass * slope[elbow][0]
        print(f"  {mass} kg: {np.degrees(true):.2f}, by the derivative {np.degrees(linear):.2f}")


def parameters_of_a_point(c: np.ndarray) -> np.ndarray:
    """Return the inertial parameters of 1 kg at c, [m, m c, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]."""
    inertia = np.dot(c, c) * np.eye(3) - np.outer(c, c)
    return np.concatenate([[1.0], c, inertia[np.triu_indices(3)]])


if __name__ == "__main__":
    main()
