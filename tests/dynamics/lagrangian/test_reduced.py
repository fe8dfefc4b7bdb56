"""The reduced model of a floating robot, for any momentum: against the full one, and CasADi."""

import casadi
import numpy as np
import pytest

import remora as rm
from numeric import assert_close, rate_along_motion, traced
from remora.algebra.array_ops import asarray
from trees import Case, relative_error


def floating(seed, largest=10):
    """A random tree on a free base without gravity, its state, and joint forces."""
    c = Case(seed, largest=largest, base="free")
    robot = c.robot.replace(gravity=np.zeros(3))
    while robot.nv == 6:
        robot = rm.random_robot(c.rng, bodies=4)
    q, v = rm.random_state(robot, c.rng)
    return robot, q, v, c.rng.normal(size=robot.nv - 6)


@pytest.mark.parametrize("seed", range(20))
def test_base_velocity_from_momentum(seed):
    robot, q, v, _ = floating(seed)
    h = rm.momentum(robot, q, v)
    assert relative_error(rm.base_velocity(robot, q, v[6:], h), v[:6]) < 1e-12
    still = rm.base_velocity(robot, q, v[6:])
    assert_close(still, rm.dynamics.base_response(robot, q) @ v[6:])
    assert_close(rm.base_velocity(robot, q, v[6:], np.zeros(6)), still)
    assert_close(rm.momentum(robot, q, np.r_[still, v[6:]]), np.zeros(6), rtol=1e-11)


def test_the_full_and_the_reduced_model_agree_on_60_trees():
    errors = []
    for seed in range(60):
        robot, q, v, tau = floating(seed, 20)
        h = rm.momentum(robot, q, v)
        full = rm.forward_dynamics(robot, q, v, np.r_[np.zeros(6), tau])[6:]
        errors.append(
            relative_error(rm.dynamics.reduced_forward_dynamics(robot, q, v[6:], tau, h), full)
        )
    assert max(errors) < 1e-11
    assert np.median(errors) < 1e-12


@pytest.mark.parametrize("with_momentum", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_mass_matrix_coriolis_matrix_and_momentum_force(seed, with_momentum):
    """M_r q̈ + C_r q̇ + e = τ, q̇ᵀ(Ṁ_r - 2C_r)q̇ = 0 with Ṁ_r along the motion of the joints."""
    robot, q, v, tau = floating(seed)
    speeds = v[6:]
    h = rm.momentum(robot, q, v) if with_momentum else None
    v = np.r_[rm.base_velocity(robot, q, speeds, h), speeds]
    M, C = rm.reduced_mass_matrix(robot, q), rm.reduced_coriolis_matrix(robot, q, speeds, h)
    assert_close(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0.0
    e = rm.dynamics.reduced_momentum_force(robot, q, h) if with_momentum else 0.0
    full = rm.forward_dynamics(robot, q, v, np.r_[np.zeros(6), tau])[6:]
    size = max(1.0, np.abs(M @ full).max(), np.abs(C @ speeds).max())
    assert_close(M @ full + C @ speeds + e, tau, rtol=1e-11, scale=size)
    rate = rate_along_motion(robot, lambda q, v: rm.reduced_mass_matrix(robot, q), q, v, 0.0 * v)
    power = speeds @ (rate - 2.0 * C) @ speeds
    assert abs(power) <= 1e-11 * max(1.0, np.abs(speeds) @ np.abs(rate) @ np.abs(speeds), size)


def test_eq_32_as_printed_for_an_arm():
    """C_r = Σ ∂M_r/∂q_k q̇_k - ½ ∂(M_r q̇)/∂q, by CasADi, where joint speeds are rates."""
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 2)
    speeds = v[6:]
    n = robot.nv - 6
    symbol = casadi.SX.sym("q", n)
    moved = np.concatenate([q[:8].astype(object), asarray(symbol).reshape(-1)])
    flat = casadi.vertcat(*rm.reduced_mass_matrix(robot, moved).reshape(-1).tolist())
    f = casadi.Function("f", [symbol], [casadi.jacobian(flat, symbol)])
    dM = np.array(f(q[8:])).reshape(n, n, n)  # [i, j, k]
    printed = dM @ speeds - 0.5 * np.einsum("jlk,l->kj", dM, speeds)
    assert_close(rm.reduced_coriolis_matrix(robot, q, speeds), printed)


@pytest.mark.parametrize("seed", range(6))
def test_what_momentum_adds_to_c_is_skew(seed):
    robot, q, v, _ = floating(seed)
    h = rm.momentum(robot, q, v)
    with_h, without = (rm.reduced_coriolis_matrix(robot, q, v[6:], x) for x in (h, None))
    assert_close(with_h - without, without.T - with_h.T)
    # it is linear in momentum and does not depend on the speeds
    other = 0.3 * v[6:]
    again = rm.reduced_coriolis_matrix(robot, q, other, 2.0 * h)
    again = again - rm.reduced_coriolis_matrix(robot, q, other)
    assert_close(again, 2.0 * (with_h - without))


@pytest.mark.parametrize("seed", range(12))
def test_the_translation_of_the_centre_of_mass_separates(seed):
    """Eq. 15: blocks of zeros, the same energy, and m c̈ = 0 beside C_s s + M_s ṡ = τ."""
    robot, q, v, tau = floating(seed)
    w, M = (
        rm.papers.fpg11.separated_velocity(robot, q, v),
        rm.papers.fpg11.separated_mass_matrix(robot, q),
    )
    n = robot.nv
    rest = [i for i in range(n) if not 3 <= i < 6]
    assert_close(w[3:6], rm.momentum(robot, q, v)[:3] / robot.mass)
    assert_close(M[3:6, 3:6], robot.mass * np.eye(3))
    assert not np.any(M[3:6][:, rest])
    assert not np.any(M[rest][:, 3:6])
    energy = rm.kinetic_energy(robot, q, v)
    assert_close(0.5 * w @ M @ w, energy, scale=energy)
    vdot = rm.forward_dynamics(robot, q, v, np.r_[np.zeros(6), tau])
    wdot = rate_along_motion(
        robot, lambda q, v: rm.papers.fpg11.separated_velocity(robot, q, v), q, v, vdot
    )
    C = rm.papers.fpg11.separated_coriolis_matrix(robot, q, v)
    left = M @ wdot + C @ w
    size = max(1.0, np.abs(C @ w).max(), np.abs(M @ wdot).max())
    assert_close(left, np.r_[np.zeros(6), tau], rtol=1e-11, scale=size)
    rate = rate_along_motion(
        robot, lambda q, v: rm.papers.fpg11.separated_mass_matrix(robot, q), q, v, vdot
    )
    assert abs(w @ (rate - 2.0 * C) @ w) <= 1e-11 * max(1.0, np.abs(w) @ np.abs(rate) @ np.abs(w))


def test_eq_28_pins_the_base():
    """With H of eq. 27 the energy is that of a robot whose base frame cannot travel."""
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 0)
    v[3:6] = 0.0
    rest = [i for i in range(robot.nv) if not 3 <= i < 6]
    pinned = rm.mass_matrix(robot, q)[np.ix_(rest, rest)]
    free = rm.papers.fpg11.separated_mass_matrix(robot, q)[np.ix_(rest, rest)]
    s = v[rest]
    assert 0.5 * s @ pinned @ s > 1.001 * (0.5 * s @ free @ s)


@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_batches_and_symbols(batch):
    robot, _, _, _ = floating(3, 5)
    rng = np.random.default_rng(0)
    q, v = rm.random_state(robot, rng, batch)
    speeds, tau, h = v[..., 6:], rng.normal(size=v[..., 6:].shape), rng.normal(size=(*batch, 6))
    for function, arguments in (
        (rm.base_velocity, (q, speeds, h)),
        (rm.reduced_mass_matrix, (q,)),
        (rm.reduced_coriolis_matrix, (q, speeds, h)),
        (rm.dynamics.reduced_momentum_force, (q, h)),
        (rm.dynamics.reduced_forward_dynamics, (q, speeds, tau, h)),
    ):
        many = function(robot, *arguments)
        for k in np.ndindex(batch):
            one = function(robot, *(a[k] for a in arguments))
            assert_close(many[k], one)
        first = (0,) * len(batch)
        one = [a[first] for a in arguments]
        (symbolic,) = traced(lambda *a, f=function: f(robot, *a), one)
        assert_close(symbolic, function(robot, *one), rtol=1e-11)
    # one momentum for many states
    if batch:
        shared = rm.base_velocity(robot, q, speeds, h[0, 0])
        assert_close(shared[1, 2], rm.base_velocity(robot, q[1, 2], speeds[1, 2], h[0, 0]))


def test_refusals():
    robot, q, v, tau = floating(1)
    speeds = v[6:]
    for momentum in (np.zeros(3), np.zeros((2, 5)), 1.0):
        for call in (
            lambda h=momentum: rm.base_velocity(robot, q, speeds, h),
            lambda h=momentum: rm.reduced_coriolis_matrix(robot, q, speeds, h),
            lambda h=momentum: rm.dynamics.reduced_forward_dynamics(robot, q, speeds, tau, h),
            lambda h=momentum: rm.dynamics.reduced_momentum_force(robot, q, h),
        ):
            with pytest.raises(rm.errors.ShapeError, match="momentum must have shape"):
                call()
    with pytest.raises(rm.RemoraError, match="momentum holds values that are not finite"):
        rm.base_velocity(robot, q, speeds, np.full(6, np.nan))
    with pytest.raises(rm.errors.ShapeError, match="joint_speeds must have shape"):
        rm.base_velocity(robot, q, v)
    with pytest.raises(rm.errors.ShapeError, match="joint_forces must have shape"):
        rm.dynamics.reduced_forward_dynamics(robot, q, speeds, np.zeros(robot.nv))
    with pytest.raises(rm.errors.ShapeError, match="do not broadcast"):
        rm.base_velocity(robot, q, np.zeros((2, robot.nv - 6)), np.zeros((3, 6)))
    pinned = rm.random_robot(0, bodies=3, base="spherical")
    for call in (
        lambda: rm.base_velocity(pinned, rm.neutral(pinned), np.zeros(0)),
        lambda: rm.reduced_mass_matrix(pinned, rm.neutral(pinned)),
        lambda: rm.papers.fpg11.separated_mass_matrix(pinned, rm.neutral(pinned)),
        lambda: rm.papers.fpg11.separated_velocity(pinned, rm.neutral(pinned), np.zeros(pinned.nv)),
    ):
        with pytest.raises(rm.RemoraError, match="base on a free joint, not on a spherical one"):
            call()


def test_a_kinematics_only_model_is_refused():
    robot = rm.load("servicer", dynamics=False)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    for call in (
        lambda: rm.base_velocity(robot, q, v[6:]),
        lambda: rm.reduced_mass_matrix(robot, q),
        lambda: rm.reduced_coriolis_matrix(robot, q, v[6:]),
        lambda: rm.dynamics.reduced_momentum_force(robot, q, np.zeros(6)),
        lambda: rm.dynamics.reduced_forward_dynamics(robot, q, v[6:], v[6:]),
        lambda: rm.papers.fpg11.separated_mass_matrix(robot, q),
        lambda: rm.dynamics.mass_matrix_partials(robot, q),
        lambda: rm.mass_matrix(robot, q, "lagrangian"),
        lambda: rm.equivalent_manipulator(robot),
    ):
        with pytest.raises(rm.RemoraError, match="kinematics-only"):
            call()
