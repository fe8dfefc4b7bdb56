"""A reach that disturbs its base as little as possible, planned by IPOPT with exact derivatives.

`rm.dynamics.casadi_function` gives CasADi the forward dynamics of SPART17's planar robot. A
nonlinear program (multiple shooting, piecewise constant torques) finds the torques that bring the
tool to a target at rest and keep the base's attitude, within torque limits. They are flown in
`rm.simulate` and compared with a reach along a straight line of the joints.
"""

import casadi
import numpy as np

import remora as rm
from remora.algebra import pose

DURATION, PIECES, LIMIT = 15.0, 40, 0.5  # s, -, N m
START = np.radians([60.0, -80.0, -40.0])
H = DURATION / PIECES


def step(robot: rm.Robot) -> casadi.Function:
    """Return x, τ -> x after H seconds by one Runge-Kutta step; x = (q, v), base without forces."""
    acceleration = rm.dynamics.casadi_function(rm.forward_dynamics, robot)
    n = robot.nv
    x, tau = casadi.SX.sym("x", 2 * n), casadi.SX.sym("tau", n - 3)

    def rate(state: casadi.SX) -> casadi.SX:
        q, v = state[:n], state[n:]
        return casadi.vertcat(v, acceleration(q, v, casadi.vertcat(0, 0, 0, tau)))

    k1 = rate(x)
    k2 = rate(x + 0.5 * H * k1)
    k3 = rate(x + 0.5 * H * k2)
    k4 = rate(x + H * k3)
    return casadi.Function("step", [x, tau], [x + H / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])


def tool_position(robot: rm.Robot, q: np.ndarray) -> np.ndarray:
    return pose.translation(rm.frame_pose(robot, q, "tool"))


def optimized(robot: rm.Robot, target: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Return the torques of all pieces, (PIECES, 3).

    Args:
        robot: with a planar base, whose speeds are the rates of its coordinates.
        target: position of the tool, (2,).
        guess: states (q, v) to begin with, (PIECES + 1, 12).
    """
    n, arm = robot.nv, robot.joints[1:]
    place = rm.dynamics.casadi_function(tool_position, robot)
    problem = casadi.Opti()
    x, tau = problem.variable(2 * n, PIECES + 1), problem.variable(n - 3, PIECES)
    problem.subject_to(x[:, 1:] == step(robot).map(PIECES)(x[:, :-1], tau))
    problem.subject_to(x[:, 0] == guess[0])
    problem.subject_to(place(x[:n, -1])[:2] == target)
    problem.subject_to(x[n + 3 :, -1] == 0.0)  # at zero momentum the base rests, too
    problem.subject_to(problem.bounded(-LIMIT, casadi.vec(tau), LIMIT))
    for i, joint in enumerate(arm):
        angles = x[3 + i, 1:].T
        problem.subject_to(problem.bounded(joint.limits.lower[0], angles, joint.limits.upper[0]))
    attitude, effort, speeds = x[2, :], tau, x[n + 3 :, :]
    cost = casadi.sumsqr(attitude) + 1e-3 * casadi.sumsqr(effort) + 3e-3 * casadi.sumsqr(speeds)
    problem.minimize(H * cost)
    problem.set_initial(x, guess.T)
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    found = problem.solve()
    print(f"IPOPT: {found.stats()['return_status']}")
    return np.array(found.value(tau)).T


def told(name: str, run: rm.Recording, target: np.ndarray) -> None:
    off = 1e3 * np.linalg.norm(tool_position(run.robot, run.q[-1]) - target)
    turned = np.degrees(2.0 * np.arctan2(run.q[:, 3], run.q[:, 0]))
    print(f"{name}: base turned by up to {np.abs(turned).max():.1f}°, torques up to "
          f"{np.abs(run.tau[:, 6:]).max():.2f} N m, tool within 1 mm: {off < 1.0}")  # fmt: skip


def main() -> tuple[rm.Recording, rm.Recording, np.ndarray]:
    robot = rm.load("spart17_planar_3")
    q0, rest = rm.neutral(robot), np.zeros(robot.nv)
    q0[8:] = START
    target = tool_position(robot, q0) + np.array([-0.35, 0.55, 0.0])
    plan = rm.plan_reach(robot, q0, "tool", target, DURATION, path="joints", steps=PIECES)
    straight = rm.simulate(robot, q0, rest, DURATION, prescribed=plan.motions, record=0.05)
    turned = 2.0 * np.arctan2(plan.q[:, 3], plan.q[:, 0])
    base = np.column_stack([pose.translation(plan.q[:, :8])[:, :2], turned])
    guess = np.column_stack([base, plan.q[:, 8:], np.zeros((PIECES + 1, 3)), plan.v[:, 6:]])
    tau = optimized(rm.load("spart17_planar_3", base="planar"), target[:2], guess)
    tau = np.column_stack([np.zeros((PIECES + 1, 6)), np.vstack([tau, tau[-1]])])
    held = rm.Profile(H * np.arange(PIECES + 1), tau, "hold")
    best = rm.simulate(robot, q0, rest, DURATION, torque=held, record=0.05)
    told("straight joints", straight, target)
    told("optimized", best, target)
    return straight, best, target


if __name__ == "__main__":
    main()
