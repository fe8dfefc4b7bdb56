"""FPG11's M, C and their closed-form derivatives: against CasADi, the sums over links, and laws."""

import casadi
import numpy as np
import pytest

import remora as rm
from numeric import assert_close, rate_along_motion
from peers import PINOCCHIO_KINDS, pinocchio_model
from remora.algebra import vector
from remora.algebra.array_ops import asarray
from remora.dynamics.lagrangian import lagrange_equations, link_jacobians
from trees import BASES, Case, relative_error


def derivative(robot, q, function):
    """∂/∂q_k of function(q) along the tangent, k first, by CasADi of the traced function."""
    symbol = casadi.SX.sym("d", robot.nv)
    made = np.asarray(function(rm.integrate(robot, q, asarray(symbol).reshape(-1))))
    flat = casadi.vertcat(*made.reshape(-1).tolist())
    f = casadi.Function("f", [symbol], [casadi.jacobian(flat, symbol)])
    return np.moveaxis(np.array(f(np.zeros(robot.nv))).reshape(*made.shape, robot.nv), -1, 0)


@pytest.mark.parametrize("seed", range(30))  # three trees for each of the ten bases
def test_every_partial_derivative_is_casadis(seed):
    c = Case(seed, largest=8)
    robot, q = c.robot, c.q
    if robot.nv == 0:
        return
    body = len(robot.bodies) - 1
    assert_close(
        rm.dynamics.mass_matrix_partials(robot, q),
        derivative(robot, q, lambda q: rm.mass_matrix(robot, q)),
    )
    for partials, function in (
        (link_jacobians.link_adjoint_partials, link_jacobians.link_adjoint),
        (link_jacobians.link_jacobian_partials, link_jacobians.link_jacobian),
    ):
        assert_close(
            partials(robot, q, body), derivative(robot, q, lambda q, f=function: f(robot, q, body))
        )


@pytest.mark.parametrize("seed", range(20))
def test_mass_matrix_is_the_sum_over_the_links(seed):
    """M = Σ [H J]ᵀ Adᵀ I Ad [H J] and ∂M/∂q_k term by term [FPG11, eqs. 9, 10, A.1]."""
    c = Case(seed, largest=10)
    robot, q, n = c.robot, c.q, c.robot.nv
    total, slopes = np.zeros((n, n)), np.zeros((n, n, n))
    for i, body in enumerate(robot.bodies):
        M = rm.algebra.screw.inertia(body.mass, body.com, body.inertia)
        I = link_jacobians.energy_matrix(M)
        Ad, J = link_jacobians.link_adjoint(robot, q, i), link_jacobians.link_jacobian(robot, q, i)
        dAd, dJ = (
            f(robot, q, i)
            for f in (link_jacobians.link_adjoint_partials, link_jacobians.link_jacobian_partials)
        )
        total += J.T @ Ad.T @ I @ Ad @ J
        half = J.T @ Ad.T @ I @ (dAd @ J + Ad @ dJ)
        slopes += half + vector.transpose(half)
        # the Jacobian in the link's own axes is the library's
        assert_close(Ad @ J, rm.jacobian(robot, q, i))
    assert_close(rm.mass_matrix(robot, q, "lagrangian"), total)
    assert_close(rm.dynamics.mass_matrix_partials(robot, q), slopes)


def test_selection_matrices_of_the_bases():
    """H: the identity on SE(3), a column for each freedom of other bases [FPG11, eqs. 3, 27]."""
    for base in BASES:
        robot = rm.random_robot(3, bodies=1, base=base)
        q, _ = rm.random_state(robot, 0)
        H = link_jacobians.link_jacobian(robot, q, 0)
        assert H.shape == (6, rm.JOINT_TYPES[base].nv)
        if base == "free":
            assert_close(H, np.eye(6))
        if base == "spherical":
            assert_close(H, np.eye(6)[:, :3])
        if base == "cartesian":
            assert_close(H, np.eye(6)[:, 3:])


@pytest.mark.parametrize("seed", range(40))
def test_coriolis_matrix(seed):
    """C v is the bias, vᵀ(Ṁ - 2C)v = 0, and by Christoffel's symmetry Ṁ - 2C is skew-symmetric."""
    c = Case(seed, largest=10)
    robot, q, v = c.state
    if robot.nv == 0:
        return
    robot = robot.replace(gravity=np.zeros(3))
    M, C = rm.mass_matrix(robot, q, "lagrangian"), rm.coriolis_matrix(robot, q, v, "lagrangian")
    bias = rm.bias_force(robot, q, v)
    assert_close(C @ v, bias, rtol=1e-11)
    rate = rate_along_motion(robot, lambda q, v: rm.mass_matrix(robot, q), q, v, 0.0 * v)
    dM = rm.dynamics.mass_matrix_partials(robot, q)
    assert_close(np.einsum("kij,k->ij", dM, v), rate)
    assert_close(lagrange_equations.mass_matrix_rate_of(robot, q, v), rate)
    size = max(1.0, np.abs(v) @ np.abs(rate) @ np.abs(v))
    assert abs(v @ (rate - 2.0 * C) @ v) <= 1e-12 * size
    # eq. 26 is C = Ṁ - ½ ∂(Mv)/∂q + B; the symmetric choice has the same C v
    D = dM @ v
    assert_close(lagrange_equations.momentum_partials_of(robot, q, v), D)
    B = lagrange_equations.bracket_of(robot, M @ v)
    assert_close(C, rate - 0.5 * D + B)
    assert_close(B, -B.T)
    symmetric = 0.5 * (rate + D.T - D) + B
    assert_close(symmetric @ v, bias, rtol=1e-11)
    skew = rate - 2.0 * symmetric
    assert_close(skew, -skew.T)


def test_fpg11s_c_is_not_skew_but_the_default_is():
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 0)
    rate = lagrange_equations.mass_matrix_rate_of(robot, q, v)
    theirs, ours = (
        rate - 2.0 * rm.coriolis_matrix(robot, q, v, f) for f in ("lagrangian", "composite")
    )
    assert_close(ours, -ours.T)
    assert np.abs(theirs + theirs.T).max() > 1e-2 * np.abs(theirs).max()


def printed_bracket(x):
    """-ad(x) as FPG11 print it (C.5), put into Remora's order: x = (p; l) for twists [v, ω]."""
    p, l = vector.skew(x[3:]), vector.skew(x[:3])
    printed = -np.block([[l, p], [np.zeros((3, 3)), l]])
    swap = np.roll(np.eye(6), 3, axis=0)
    return swap @ printed @ swap


def test_the_printed_ad_term_is_wrong_on_se3_and_right_on_so3():
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 1)
    M = rm.mass_matrix(robot, q)
    C = rm.coriolis_matrix(robot, q, v, "lagrangian")
    x = (M @ v)[:6]
    corrected = C[:6] @ v - link_jacobians.bracket_matrix(x) @ v[:6]
    right = corrected + link_jacobians.bracket_matrix(x) @ v[:6]
    printed = corrected + printed_bracket(x) @ v[:6]
    bias = rm.bias_force(robot, q, v)[:6]
    assert_close(right, bias, rtol=1e-11)
    assert np.abs(printed - bias).max() > 0.1 * np.abs(bias).max()
    # without translation both are -l̂ on the rotations
    spin = np.concatenate([x[:3], np.zeros(3)])
    assert_close(printed_bracket(spin)[:3, :3], link_jacobians.bracket_matrix(spin)[:3, :3])


@pytest.mark.parametrize("seed", range(20))
def test_pinocchio(seed):
    pin = pytest.importorskip("pinocchio")
    base = ("free", "fixed", "planar", "spherical", "revolute")[seed % 5]
    c = Case(seed, largest=16, kinds=PINOCCHIO_KINDS, base=base)
    robot, q, v = c.state
    model, _, _ = pinocchio_model(robot)
    data = model.createData()
    layout = rm.layouts.pinocchio(robot, model)
    qp, vp = layout.q_to(q), layout.v_to(q, v)
    theirs = layout.vdot_from(q, v, pin.aba(model, data, qp, vp, layout.tau_to(q, c.tau)))
    B = np.stack([layout.v_to(q, e) for e in np.eye(robot.nv)], axis=-1)
    H = pin.crba(model, data, qp)
    H = B.T @ (np.triu(H) + np.triu(H, 1).T) @ B
    assert_close(rm.mass_matrix(robot, q, "lagrangian"), H)
    for f in ("lagrangian", "euler_angles"):
        ours = rm.forward_dynamics(robot, q, v, c.tau, formulation=f)
        assert relative_error(ours, theirs) < 1e-12
        tau = rm.inverse_dynamics(robot, q, v, c.vdot, formulation=f)
        needed = pin.rnea(model, data, qp, vp, layout.vdot_to(q, v, c.vdot))
        assert relative_error(layout.tau_to(q, tau), needed) < 1e-12


def test_followers_and_rotors():
    """Joints that mimic others and rotor inertias, against the composite formulation."""
    builder = rm.Builder("gripper").body("bus", mass=10, inertia=(1, 1, 1))
    for name, parent, mimic in (
        ("upper", "bus", None), ("lower", "upper", ("upper_joint", -1.5, 0.1)),
        ("finger", "bus", ("upper_joint", 0.7, 0.0)),
    ):  # fmt: skip
        builder.body(name, mass=1, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.2))
        builder.joint(
            f"{name}_joint", "revolute", parent, name, xyz=(0.5, 0.2, 0), axis=(0, 0.6, 0.8),
            mimic=mimic, rotor_inertia=0.7,
        )  # fmt: skip
    robot = builder.build()
    q, v = rm.random_state(robot, 3)
    tau, vdot = np.linspace(1, 2, robot.nv), np.linspace(-1, 1, robot.nv)
    assert_close(rm.mass_matrix(robot, q, "lagrangian"), rm.mass_matrix(robot, q))
    assert_close(
        rm.dynamics.mass_matrix_partials(robot, q),
        derivative(robot, q, lambda q: rm.mass_matrix(robot, q)),
    )
    for f in ("lagrangian", "euler_angles"):
        expected = rm.forward_dynamics(robot, q, v, tau, formulation="composite")
        assert_close(rm.forward_dynamics(robot, q, v, tau, formulation=f), expected, rtol=1e-11)
        expected = rm.inverse_dynamics(robot, q, v, vdot)
        assert_close(rm.inverse_dynamics(robot, q, v, vdot, formulation=f), expected, rtol=1e-11)


def test_unknown_formulations_of_matrices_list_the_known_ones():
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 0)
    with pytest.raises(
        rm.RemoraError, match="mass matrix named 'recursive'; known: composite, lag"
    ):
        rm.mass_matrix(robot, q, "recursive")
    with pytest.raises(rm.RemoraError, match="Coriolis matrix named 'x'; known: composite, lag"):
        rm.coriolis_matrix(robot, q, v, "x")


@pytest.mark.parametrize("formulation", ["lagrangian", "euler_angles"])
@pytest.mark.parametrize("seed", [8, 9])  # a spherical and a free base
def test_compiled(formulation, seed):
    c = Case(seed, largest=6)
    q, v = rm.random_state(c.robot, c.rng, (5,))
    tau = c.rng.normal(size=v.shape)
    for function in (rm.forward_dynamics, rm.inverse_dynamics):
        kernel = rm.compile(function, c.robot, fixed={"formulation": formulation})
        expected = function(c.robot, q, v, tau, None, formulation)
        assert_close(kernel(q, v, tau), expected, rtol=1e-11)
    if formulation == "lagrangian":
        kernel = rm.compile(rm.coriolis_matrix, c.robot, fixed={"formulation": formulation})
        assert_close(kernel(q, v), rm.coriolis_matrix(c.robot, q, v, formulation))
