"""Dynamics against Pinocchio (ABA, RNEA, CRBA, centroidal momentum, joint forces) and MuJoCo."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from peers import MUJOCO_KINDS, PINOCCHIO_KINDS, mujoco_model, pinocchio_model
from remora.algebra import pose
from remora.model import joints
from trees import Case


def columns(convert, n):
    """The matrix of a linear map given column by column."""
    return np.stack([convert(e) for e in np.eye(n)], axis=-1)


@pytest.mark.parametrize("seed", range(40))
def test_pinocchio(seed):
    pin = pytest.importorskip("pinocchio")
    base = ("free", "fixed", "planar", "spherical", "revolute")[seed % 5]
    c = Case(seed, largest=20, kinds=PINOCCHIO_KINDS, base=base)  # no fixed joints: ids match
    robot, q, v = c.state
    model, ids, offsets = pinocchio_model(robot)
    data = model.createData()
    layout = rm.layouts.pinocchio(robot, model)
    qp, vp = layout.q_to(q), layout.v_to(q, v)

    def se3(x):
        return pin.SE3(pose.to_rotation_matrix(x), pose.translation(x))

    external = pin.StdVec_Force()
    for _ in range(model.njoints):
        external.append(pin.Force.Zero())
    for i, offset, w in zip(ids, offsets, c.wrenches, strict=True):
        if i > 0:
            external[i] = se3(offset).act(pin.Force(w[:3], w[3:]))

    vdot = rm.forward_dynamics(robot, q, v, c.tau, c.wrenches)
    theirs = pin.aba(model, data, qp, vp, layout.tau_to(q, c.tau), external)
    size = np.abs(theirs).max(initial=1.0)
    assert_close(layout.vdot_to(q, v, vdot), theirs, scale=size)

    tau = rm.inverse_dynamics(robot, q, v, c.vdot, c.wrenches)
    ap = layout.vdot_to(q, v, c.vdot)
    assert_close(layout.tau_to(q, tau), pin.rnea(model, data, qp, vp, ap, external))
    load = [pin.Force(data.f[i]) for i in ids]
    ours = rm.reaction_wrenches(robot, q, v, tau, c.wrenches)
    for i, joint in enumerate(robot.joints):
        if ids[i] == 0:
            continue
        whole = ours[i] + joints.actuation_basis(joint, q) @ tau[joint.v]
        wrench = se3(offsets[i]).actInv(load[i])
        assert_close(whole, np.concatenate([wrench.linear, wrench.angular]), rtol=1e-12)

    B = columns(lambda e: layout.v_to(q, e), robot.nv)
    H = pin.crba(model, data, qp)
    H = np.triu(H) + np.triu(H, 1).T
    assert_close(rm.mass_matrix(robot, q), B.T @ H @ B)
    bias = pin.nonLinearEffects(model, data, qp, vp)
    at_rest = layout.vdot_from(q, v, 0.0 * vp)
    assert_close(layout.tau_to(q, rm.inverse_dynamics(robot, q, v, at_rest)), bias)
    if base != "fixed":
        h = pin.computeCentroidalMomentum(model, data, qp, vp)
        assert_close(
            rm.dynamics.centroidal_momentum(robot, q, v), np.concatenate([h.linear, h.angular])
        )
        pin.ccrba(model, data, qp, vp)
        assert_close(rm.dynamics.centroidal_momentum_matrix(robot, q), data.Ag @ B)


@pytest.mark.parametrize("seed", range(20))
def test_mujoco(seed):
    """The mass matrix and forward dynamics, with free, fixed and other bases."""
    mujoco = pytest.importorskip("mujoco")
    base = ("free", "fixed", "spherical", "planar", "cylindrical")[seed % 5]
    c = Case(seed, largest=10, kinds=MUJOCO_KINDS, base=base)
    robot, q, v = c.state
    model = mujoco_model(robot)
    data = mujoco.MjData(model)
    layout = rm.layouts.mujoco(robot, model)
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    data.qfrc_applied[:] = layout.tau_to(q, c.tau)
    mujoco.mj_forward(model, data)
    H = np.zeros((robot.nv, robot.nv))
    mujoco.mj_fullM(model, data, H)
    B = columns(lambda e: layout.v_to(q, e), robot.nv)
    assert_close(rm.mass_matrix(robot, q), B.T @ H @ B)
    vdot = rm.forward_dynamics(robot, q, v, c.tau)
    theirs = np.array(data.qacc)
    size = np.abs(theirs).max()
    assert_close(layout.vdot_to(q, v, vdot), theirs, scale=size)
