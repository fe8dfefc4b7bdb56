"""What decides the drift in VT18's experiment: one linear system, four choices of the state.

    python docs/pictures/vt18_drift.py [--starts N] [--tolerance X]

Algorithm 1 of VT18 taken literally (state: base pose, joint angles, every body's dual velocity y;
ẏ from eq. 60) and the decoupled form with three choices of state, each integrated by the formulas
and the step control of MATLAB's ode45, tolerances as printed. No state is normalized; rotation
matrices are taken from q/|q|.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.integrate import RK45

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion, screw, vector
from remora.algebra.array_ops import concatenate, stack
from remora.dynamics.joint_arrays import LoadedState
from remora.dynamics.maximal import decoupled, newton_euler, saddle_point
from remora.dynamics.maximal.joint_maps import joint_maps
from remora.dynamics.recursive.outward_pass import moving_links
from remora.model import joints

RTOL, ATOL = 2.22e-14, 1e-14
PULSES = ((2.0, 5.0), (10.0, 12.0), (20.0, 22.0))  # of J1, J2, J3 [VT18, eq. 78]
robot = rm.load("vt18_satellite")
NB = len(robot.bodies)
TO_COM = np.array([pose.from_translation(body.com) for body in robot.bodies])
MASS = np.array([body.mass for body in robot.bodies])[:, None]
INERTIA = np.array([body.inertia for body in robot.bodies])
_rows = [np.array(RK45.A), np.array(RK45.B), np.array(RK45.C), np.array(RK45.E)]


# The right-hand sides: x -> ẋ, written once on arrays and compiled --------------------------------


def rotations(robot, q):
    """Rotation matrices of all bodies, outward from the base's, so that forces cancel in pairs."""
    R = []
    for i, joint in enumerate(robot.joints):
        if i == 0:
            R.append(quaternion.to_matrix(quaternion.normalize(q[:4])))
        else:
            R.append(R[joint.parent] @ joints.relative_transform(joint, q).R)
    return R


def tree_rates(robot, q, twists):
    """q̇ and Γ̇ [VT18, eqs. 45, 47], and the speeds."""
    at_origin = stack([screw.adjoint(c, t) for c, t in zip(TO_COM, twists, strict=True)], axis=-2)
    v = rm.dynamics.joint_speeds(robot, q, at_origin)
    return concatenate([0.5 * dq.mul(q[:8], dq.pure(v[:6])), v[6:]]), v, at_origin


def dual(robot, x, tau):
    """Algorithm 1: x = (q, Γ, y), y the dual velocities about the centres of mass."""
    q, y = x[:11], x[11:].reshape(NB, 6)
    rate, v, at_origin = tree_rates(robot, q, list(y))
    system = newton_euler.system(robot, LoadedState(q, v, tau), at_origin)
    accelerations, _ = saddle_point.solve(system)
    return concatenate([rate, *(dq.vec6(a) for a in accelerations)])


def decoupled_accelerations(robot, q, v, R, X, twists, tau):
    """[r̈, ω̇] of every body from the decoupled system, with its links where the state has them."""
    links = [
        replace(link, twist=twist, X=own)
        for link, twist, own in zip(moving_links(robot, q, v), twists, X, strict=True)
    ]
    system = decoupled.assembled(robot, LoadedState(q, v, tau), links, joint_maps(robot, q, {}), R)
    return saddle_point.solve(system)[0]


def decoupled_tree(robot, x, tau, axes):
    """x = (q, Γ, velocities): ω in body axes, ṙ of the centres in inertial or in body axes."""
    q, u = x[:11], x[11:].reshape(NB, 6)
    R = rotations(robot, q)
    back = [vector.transpose(own) for own in R]
    inertial = axes == "inertial"
    own = [
        concatenate([u[i, :3], vector.apply(back[i], u[i, 3:]) if inertial else u[i, 3:]])
        for i in range(NB)
    ]
    rate, v, at_origin = tree_rates(robot, q, own)
    X = [link.X for link in moving_links(robot, q, v)]
    y = decoupled_accelerations(robot, q, v, R, X, list(at_origin), tau)
    parts = []
    for i in range(NB):
        turning = vector.apply(back[i], y[i][:3]) - vector.cross(own[i][:3], own[i][3:])
        parts += [y[i][3:], y[i][:3] if inertial else turning]
    return concatenate([rate, *parts])


def decoupled_bodies(robot, x, tau):
    """x = r, quaternion, ṙ, ω of every body: no joint coordinate is a state."""
    z = x.reshape(NB, 13)
    R = [quaternion.to_matrix(quaternion.normalize(z[i, 3:7])) for i in range(NB)]
    p, X, twists, parts = [], [], [], []
    for i, joint in enumerate(robot.joints):
        p.append(z[i, :3] - vector.apply(R[i], robot.bodies[i].com))
        if joint.parent < 0:
            X.append(screw.Transform(R[i], p[i]))
        else:
            back = vector.transpose(R[joint.parent])
            X.append(screw.Transform(back @ R[i], vector.apply(back, p[i] - p[joint.parent])))
        v = vector.apply(vector.transpose(R[i]), z[i, 7:10])
        twists.append(screw.adjoint(TO_COM[i], concatenate([z[i, 10:], v])))
    q, v = rm.neutral(robot), np.zeros(robot.nv)  # revolute joints: their maps are constant
    y = decoupled_accelerations(robot, q, v, R, X, twists, tau)
    for i in range(NB):
        turn = 0.5 * quaternion.mul(z[i, 3:7], quaternion.pure(z[i, 10:]))
        parts += [z[i, 7:10], turn, y[i][:3], y[i][3:]]
    return concatenate(parts)


# Starts and what is kept --------------------------------------------------------------------------


def start_of_tree(q):
    return np.concatenate([q, np.zeros(6 * NB)])


def start_of_bodies(q):
    x = dq.mul(rm.poses(robot, q), TO_COM)
    return np.concatenate([[*pose.translation(own), *own[:4], *np.zeros(6)] for own in x])


def kept(r, attitude, omega, velocity):
    """Centre of mass, linear and angular momentum about the inertial origin, `(..., 3)` each."""
    P = MASS * velocity
    attitude = quaternion.normalize(attitude)
    spin = quaternion.rotate(attitude, np.einsum("bij,...bj->...bi", INERTIA, omega))
    L = spin + np.cross(r, P)
    return np.sum(MASS * r, axis=-2) / MASS.sum(), P.sum(axis=-2), L.sum(axis=-2)


def kept_of_tree(x, axes):
    poses = dq.mul(rm.poses(robot, x[:, :11]), TO_COM)
    u = x[:, 11:].reshape(-1, NB, 6)
    attitude = poses[..., :4]
    v = (
        u[..., 3:]
        if axes == "inertial"
        else quaternion.rotate(quaternion.normalize(attitude), u[..., 3:])
    )
    return kept(pose.translation(poses), attitude, u[..., :3], v)


def kept_of_bodies(x):
    z = x.reshape(-1, NB, 13)
    return kept(z[..., :3], z[..., 3:7], z[..., 10:], z[..., 7:10])


def by_axes(axes):
    def rate(robot, x, tau):
        return decoupled_tree(robot, x, tau, axes)

    return rate


#: name -> (right-hand side, start, what is kept)
STATES: dict[str, tuple[Callable, Callable, Callable]] = {
    "DQ, Algorithm 1": (dual, start_of_tree, lambda x: kept_of_tree(x, "body")),
    "decoupled, inertial axes": (
        by_axes("inertial"), start_of_tree, lambda x: kept_of_tree(x, "inertial"),
    ),
    "decoupled, body axes": (by_axes("body"), start_of_tree, lambda x: kept_of_tree(x, "body")),
    "decoupled, all bodies": (decoupled_bodies, start_of_bodies, kept_of_bodies),
}  # fmt: skip


# MATLAB's ode45 -----------------------------------------------------------------------------------


def ode45(f, a, b, x):
    """Return the states at every step: Dormand and Prince 5(4) with ode45's step control."""
    A, B, C, E = _rows
    t, states, slope, threshold = a, [x], f(a, x), ATOL / RTOL
    rate = np.max(np.abs(slope) / np.maximum(np.abs(x), threshold)) / (0.8 * RTOL**0.2)
    h = min(0.1 * (b - a), 1.0 / rate if rate > 0.0 else np.inf)
    while t < b:
        refused = False
        h = min(h, 0.1 * (b - a))
        while True:
            h = b - t if 1.1 * h >= b - t else h
            k = [slope]
            for i in range(1, 6):
                k.append(f(t + C[i] * h, x + h * (A[i, :i] @ np.array(k))))
            new = x + h * (B @ np.array(k))
            k.append(f(t + h, new))
            size = np.maximum(np.maximum(np.abs(x), np.abs(new)), threshold)
            error = h * np.max(np.abs(E @ np.array(k)) / size)
            if error <= RTOL or h <= 16 * np.spacing(t):
                break
            h = 0.5 * h if refused else h * max(0.1, 0.8 * (RTOL / error) ** 0.2)
            refused = True
        t, x, slope = (b if h == b - t else t + h), new, k[-1]
        states.append(x)
        if not refused:
            grow = 1.25 * (error / RTOL) ** 0.2
            h = h / grow if grow > 0.2 else 5.0 * h
    return np.array(states)


def torque(t):
    tau = np.zeros(robot.nv)
    for i, (start, stop) in enumerate(PULSES):
        if start < t < stop:
            tau[6 + i] = 0.5 * np.sin(t - start)
    return tau


def drifts(name, q, stops=True):
    """Largest change of centre of mass, P and L over 70 s, and the number of steps."""
    function, start, kept_of = STATES[name]
    x = start(q)
    kernel = rm.compile(function, robot, shapes={"x": x.shape})
    ends = [0.0, *np.ravel(PULSES), 70.0] if stops else [0.0, 70.0]
    found = []
    for a, b in pairwise(ends):
        middle = 0.5 * (a + b)

        def f(t, x, a=a, b=b, middle=middle):
            inside = middle if stops and (t <= a or t >= b) else t
            tau = torque(inside)
            if stops and np.any(tau) and inside != t:  # at a pulse's ends, its own value there
                tau = np.where(tau != 0.0, 0.5 * np.sin(t - a), 0.0)
            return kernel(x, tau)

        found.append(ode45(f, a, b, x))
        x = found[-1][-1]
    states = np.concatenate(found)
    parts = kept_of(states)
    return [np.linalg.norm(p - p[0], axis=-1).max() for p in parts], len(states) - len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--tolerance", type=float, help="relative and absolute; as printed")
    options = parser.parse_args()
    if options.tolerance is not None:
        globals().update(RTOL=options.tolerance, ATOL=options.tolerance)
    starts = [rm.random_state(robot, seed)[0] for seed in range(options.starts)]
    for stops in (True, False):
        print(f"\nsteps {'end' if stops else 'do not end'} at the pulses; medians of the largest")
        print(f"{'state':26}{'steps':>6}{'CoM, m':>10}{'P, N s':>10}{'L, N m s':>10}   DQ / it")
        reference = None
        for name in STATES:
            results = [drifts(name, q, stops) for q in starts]
            values, steps = np.array([r[0] for r in results]), np.median([r[1] for r in results])
            reference = values if reference is None else reference
            ratios = np.median(reference / values, axis=0)
            numbers = "".join(f"{x:10.1e}" for x in np.median(values, axis=0))
            print(f"{name:26}{steps:6.0f}{numbers}   " + ", ".join(f"{r:.2f}" for r in ratios))


if __name__ == "__main__":
    main()
