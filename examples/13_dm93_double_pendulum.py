"""Section 3 of DM93: the double pendulum in planar quaternions, (26) to (32), and as a robot.

Link 1 is massless with length L. Link 2 (m, j') is pinned to its end at its centre of mass C. Link
2 has four coordinates Q3..Q6 and two constraints. docs/pictures/make_dm93.py draws the run.
"""

import numpy as np
from scipy.integrate import solve_ivp

import remora as rm

m, j, L, W = 2.0, 0.3, 1.5, -2.0 * 9.81  # kg, kg m², m, N: the weight along y
START = np.array([0.2, 0.5]), np.array([5.5, -9.0])  # θ and its rate: both links make full turns


def image_point(theta, rate):
    """Q3..Q6 of link 2 (28) and their rates."""
    s, d = 0.5 * (theta[0] + theta[1]), 0.5 * (theta[0] - theta[1])
    ds, dd = 0.5 * (rate[0] + rate[1]), 0.5 * (rate[0] - rate[1])
    Q = np.array([np.sin(s), np.cos(s), L / 2 * np.cos(d), L / 2 * np.sin(d)])
    return Q, np.array([Q[1] * ds, -Q[0] * ds, -Q[3] * dd, Q[2] * dd])


def angles(Q):
    """θ1, θ2 along a path of points, unwrapped."""
    half = np.unwrap([np.arctan2(Q[0], Q[1]), np.arctan2(Q[3], Q[2])], axis=-1)
    return np.array([half[0] + half[1], half[0] - half[1]])


def blocks(Q):
    (a, b, c, d) = Q
    return np.array([[b, -a], [a, b]]), np.array([[-d, c], [c, d]])


def solution(Q, dQ, printed=False):
    """Q̈ and the multipliers λ of (30)."""
    (g, g_o), (dg, dg_o) = blocks(Q), blocks(dQ)
    J = np.diag([j, 0.0])
    M = np.block([[m * L**2 * np.eye(2) + 4 * g.T @ J @ g, 4 * m * g_o.T @ g],
                  [4 * m * g.T @ g_o, 4 * m * np.eye(2)]])  # fmt: skip
    turn = dg @ J @ dg.T if printed else dg.T @ J @ dg  # (25) as printed, and corrected
    h = np.r_[8 * turn @ Q[:2] - 8 * m * g_o.T @ dg_o @ dQ[:2], -8 * m * g.T @ dg @ dQ[2:]]
    Phi = np.array([[Q[0], Q[1], 0, 0], [0, 0, Q[2], Q[3]]])
    F = 2 * W * np.array([Q[2], Q[3], Q[0], Q[1]])
    gamma = -np.array([dQ[:2] @ dQ[:2], dQ[2:] @ dQ[2:]])
    S = np.block([[M, Phi.T], [Phi, np.zeros((2, 2))]])
    x = np.linalg.solve(S, np.r_[F + h, gamma])
    return x[:4], x[4:]


def integrated(times, printed=False):
    x = np.concatenate(image_point(*START))
    f = lambda t, x: np.r_[x[4:], solution(x[:4], x[4:], printed)[0]]  # noqa: E731
    run = solve_ivp(f, times[[0, -1]], x, "DOP853", times, rtol=1e-13, atol=1e-14)
    return run.y[:4], run.y[4:]


def energy(Q, dQ):
    d = 2 * np.array([-Q[0] * Q[3] + Q[1] * Q[2], Q[0] * Q[2] + Q[1] * Q[3]])  # C, eq. 8
    v = 2 * np.array([-dQ[0] * Q[3] - Q[0] * dQ[3] + dQ[1] * Q[2] + Q[1] * dQ[2],
                      dQ[0] * Q[2] + Q[0] * dQ[2] + dQ[1] * Q[3] + Q[1] * dQ[3]])  # fmt: skip
    omega = 2 * (Q[1] * dQ[0] - Q[0] * dQ[1])
    return 0.5 * m * np.sum(v * v, axis=0) + 0.5 * j * omega**2 - W * d[1], d


times = np.linspace(0.0, 10.0, 1001)
Q, rate = integrated(times)
theta, (E, d) = angles(Q), energy(Q, rate)
print("turns of the links in 10 s:", *np.round((theta[:, -1] - theta[:, 0]) / (2 * np.pi), 2))
print(f"energy kept to 1e-10: {np.ptp(E) < 1e-10 * np.abs(E).max()}")
wrong = energy(*integrated(times, printed=True))[0]
print(f"with h as printed in (25) it changes by {100 * np.ptp(wrong) / np.abs(E).max():.0f} %")

# an equivalent robot: half of m is a point mass at the end of link 1, the other half on link 2
robot = (
    rm.Builder(gravity=(0, W / m, 0))
    .body("link 1", m / 2, (L, 0, 0), (0, 0, 0))
    .body("link 2", m / 2, (0, 0, 0), (j, j, j))
    .joint("O", "revolute", None, "link 1", axis=(0, 0, 1))
    .joint("C", "revolute", "link 1", "link 2", axis=(0, 0, 1), xyz=(L, 0, 0))
    .build(base=None)
)
run = rm.simulate(
    robot,
    *START,
    10.0,
    record=times,
    integrator=rm.Integrator(rtol=1e-12, atol=1e-12, step_to_samples=True),
)
apart = np.abs(run.q[np.searchsorted(run.t, times)].T - theta).max()
print(f"recursive algorithm: the same angles to 1e-8: {apart < 1e-8}")
pin = np.array([-solution(q, dq)[1][1] / 4 * p for q, dq, p in zip(Q.T, rate.T, d.T, strict=True)])
print("force of the pin on link 2 at the start:", pin[0].round(4), "N")
