"""All quantities under `dynamics`, and what is left of `end_links`, of SPART's numbers."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw
from remora.dynamics.recursive.composite_rigid_body import composite_inertias
from spart import in_inertial_axes, jacobian_in_spart_speeds, speeds_from_spart

FORWARD = ["articulated", "composite", "newton_euler", "decoupled", "image_space"]
INVERSE = ["recursive", "composite", "newton_euler", "decoupled", "image_space"]


def external_wrenches(ref, k, q):
    """SPART's [torque, force] at the links' centres of mass, inertial axes, as body wrenches."""
    given = ref.data["states"][k]["inputs"]
    total = np.zeros((len(ref.robot.bodies), 6))
    for frame, w in zip([ref.base, *ref.links], [given["wF0"], *given["wFm"]], strict=True):
        x = rm.frame_pose(ref.robot, q, frame)
        force_first = np.concatenate([w[3:], w[:3]])
        own = screw.adjoint_inverse(pose.from_quaternion(x[:4]), force_first)
        total[frame.body] += screw.adjoint(frame.placement, own)
    return total


def wanted(ref, k):
    return {key: np.array(value) for key, value in ref.data["states"][k]["dynamics"].items()}


@pytest.mark.parametrize("k", range(8))
def test_mass_and_coriolis_matrices(reference, k):
    ref, robot = reference, reference.robot
    q, v, _ = ref.state(k)
    want = wanted(ref, k)
    B, u = speeds_from_spart(ref, q), ref.layout.v_to(q, v)
    H = B.T @ rm.mass_matrix(robot, q) @ B
    n = robot.nv - 6
    assert_close(H[:6, :6], want["H0"])
    assert_close(H[:6, 6:], want["H0m"].reshape(6, n))
    assert_close(H[6:, 6:], want["Hm"].reshape(n, n))
    assert_close(H, want["H_NOC"])
    star = H[6:, 6:] - H[6:, :6] @ np.linalg.solve(H[:6, :6], H[:6, 6:])
    assert_close(star, want["H_star"].reshape(n, n))
    # C is one of many; C u, the forces at u̇ = 0, is not
    at_rest = ref.layout.vdot_from(q, v, np.zeros(robot.nv))
    bias = ref.layout.tau_to(q, rm.inverse_dynamics(robot, q, v, at_rest))
    C = np.block([[want["C0"], want["C0m"].reshape(6, n)], [want["Cm0"], want["Cm"].reshape(n, n)]])
    assert_close(C @ u, bias)
    assert_close(want["C_NOC"] @ u, bias)


@pytest.mark.parametrize("k", range(8))
def test_inertias(reference, k):
    """Bodies that SPART and Remora cut alike: their inertia, and of all they carry, at the link."""
    ref, robot = reference, reference.robot
    q, _, _ = ref.state(k)
    want = wanted(ref, k)
    composite = composite_inertias(robot, q)
    links = [ref.base, *ref.links]
    shared = [f.body for f in links]
    for i, frame in enumerate(links):
        alone = shared.count(frame.body) == 1
        x = rm.frame_pose(robot, q, frame)
        body = robot.bodies[frame.body]
        if alone:
            turned = pose.to_rotation_matrix(rm.frame_pose(robot, q, frame.body))
            inertia = turned @ body.inertia @ turned.T
            assert_close(inertia, want["I0"] if i == 0 else want["Im"][i - 1])
        if alone or i == 0:
            # from the body's frame to the link's centre of mass in inertial axes
            X = dq.mul(pose.from_quaternion(x[:4]), dq.conjugate(frame.placement))
            M = screw.inertia_matrix(
                screw.transform_inertia(screw.transform(X), composite[frame.body])
            )
            assert_close(
                np.concatenate([M[3:], M[:3]]),
                want["M0_tilde"] if i == 0 else want["Mm_tilde"][i - 1],
            )


@pytest.mark.parametrize("formulation", FORWARD)
@pytest.mark.parametrize("k", range(8))
def test_forward_dynamics(reference, k, formulation):
    ref, robot = reference, reference.robot
    q, v, _ = ref.state(k)
    given, want = ref.data["states"][k]["inputs"], wanted(ref, k)
    w = external_wrenches(ref, k, q)
    tau = ref.layout.tau_from(q, np.concatenate([given["tau0"], given["taum"]]))
    vdot = rm.forward_dynamics(robot, q, v, tau, w, formulation)
    udot = ref.layout.vdot_to(q, v, vdot)
    assert_close(udot, np.concatenate([want["FD_u0dot"], want["FD_umdot"]]))
    # nothing but joint torques
    tau = ref.layout.tau_from(q, np.concatenate([np.zeros(6), given["taum"]]))
    udot = ref.layout.vdot_to(q, v, rm.forward_dynamics(robot, q, v, tau, None, formulation))
    assert_close(udot, np.concatenate([want["FD_free_u0dot"], want["FD_free_umdot"]]))


@pytest.mark.parametrize("formulation", INVERSE)
@pytest.mark.parametrize("k", range(8))
def test_inverse_dynamics(reference, k, formulation):
    ref, robot = reference, reference.robot
    q, v, vdot = ref.state(k)
    want, w = wanted(ref, k), external_wrenches(ref, k, q)
    tau = ref.layout.tau_to(q, rm.inverse_dynamics(robot, q, v, vdot, w, formulation))
    assert_close(tau, np.concatenate([want["ID_tau0"], want["ID_taum"]]))


@pytest.mark.parametrize("k", range(8))
def test_floating_inverse_dynamics(reference, k):
    ref, robot = reference, reference.robot
    q, v, vdot = ref.state(k)
    want, w = wanted(ref, k), external_wrenches(ref, k, q)
    tau, base = rm.dynamics.floating_inverse_dynamics(robot, q, v, vdot[6:], w)
    assert_close(tau, want["FloatID_taum"].reshape(-1))
    udot = ref.layout.vdot_to(q, v, np.concatenate([base, vdot[6:]]))
    assert_close(udot[:6], want["FloatID_u0dot"])


@pytest.mark.parametrize("k", range(8))
def test_momentum_and_energy(reference, k):
    ref, robot = reference, reference.robot
    q, v, _ = ref.state(k)
    want = wanted(ref, k)
    h, about_com = rm.momentum(robot, q, v), rm.dynamics.centroidal_momentum(robot, q, v)
    assert_close(h[:3], want["P_linear"])
    assert_close(h[3:], want["L_origin"])
    assert_close(about_com[3:], want["L_com"])
    assert_close(rm.kinetic_energy(robot, q, v), want["kinetic_energy"])
    # SPART's generalized momentum H0 u0 + H0m um: [angular about the base, base axes; linear]
    B = speeds_from_spart(ref, q)
    generalized = (B.T @ rm.mass_matrix(robot, q) @ v)[:6]
    assert_close(generalized, want["momentum_generalized"])


@pytest.mark.parametrize("k", range(8))
def test_singular_values_and_resolved_rates_of_the_end_links(reference, k):
    ref, robot = reference, reference.robot
    q, v, _ = ref.state(k)
    u = ref.layout.v_to(q, v)
    for end in ref.data["states"][k]["end_links"]:
        link = ref.links[end["link_id"] - 1]
        point = np.array(end["point_in_link"], dtype=float).reshape(-1)
        x = rm.frame_pose(robot, q, link)
        for suffix, at in (("", np.zeros(3)), ("p", point)):
            J = jacobian_in_spart_speeds(ref, q, link, at)[:, 6:]
            star = in_inertial_axes(x, rm.generalized_jacobian(robot, q, link, at).T).T
            for name, matrix in ((f"sv_Jm{suffix}", J), (f"sv_Jstar{suffix}", star)):
                values = np.linalg.svd(matrix, compute_uv=False)
                assert_close(values, np.array(end[name]).reshape(-1))
        J = jacobian_in_spart_speeds(ref, q, link, point)
        star = in_inertial_axes(x, rm.generalized_jacobian(robot, q, link, point).T).T
        target = np.array(end["rmrc_xdot_target"])
        # what the base does by the momentum that the robot has already [SPART17, eq. 46]
        want = wanted(ref, k)
        drift = np.linalg.solve(want["H0"], want["momentum_generalized"])
        for matrix, right, name in (
            (J[:, 6:], target - J[:, :6] @ u[:6], "rmrc_um_given_u0"),
            (star, target - J[:, :6] @ drift, "rmrc_um_floating"),
        ):
            # near a singular pose u itself is lost in rounding; what it does to the link is not
            found = np.linalg.lstsq(matrix, right, rcond=None)[0]
            theirs = np.array(end[name]).reshape(-1)
            size = max(1.0, np.abs(theirs).max()) * np.abs(matrix).max()
            assert_close(matrix @ found, matrix @ theirs, scale=size)
