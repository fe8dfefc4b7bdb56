"""Constrained dynamics against Pinocchio's constraintDynamics and MuJoCo's equality constraints."""

import numpy as np
import pytest

import remora as rm
from closed_loops import closed, constraint
from numeric import assert_close
from peers import PINOCCHIO_KINDS, mjcf_text, pinocchio_model
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from trees import Case


@pytest.mark.parametrize("kind", ["fixed", "spherical"])
@pytest.mark.parametrize("seed", range(6))
def test_pinocchio(seed, kind):
    pin = pytest.importorskip("pinocchio")
    c = Case(seed, largest=10, kinds=PINOCCHIO_KINDS, base="free")
    tree, q, v = c.state
    n = len(tree.bodies)
    if n < 3:
        pytest.skip("too small for a loop")
    loop = constraint(kind, tree, q, 1, n - 1, np.random.default_rng(seed))
    robot = closed(tree, loop)
    v = rm.loops.project_velocity(robot, q, v)
    model, ids, offsets = pinocchio_model(tree)
    layout = rm.layouts.pinocchio(tree, model)

    def se3(i, placement):
        x = dq.mul(offsets[i], placement)
        return pin.SE3(pose.to_rotation_matrix(x), pose.translation(x))

    sort = pin.ContactType.CONTACT_6D if kind == "fixed" else pin.ContactType.CONTACT_3D
    rigid = pin.RigidConstraintModel(
        sort, model, ids[1], se3(1, loop.parent_placement), ids[n - 1],
        se3(n - 1, loop.child_placement), pin.ReferenceFrame.LOCAL,
    )  # fmt: skip
    models, data = pin.StdVec_RigidConstraintModel(), model.createData()
    models.append(rigid)
    datas = pin.StdVec_RigidConstraintData()
    datas.append(rigid.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-16, 1e-16, 1e-8, 50)  # accuracies, mu, iterations
    theirs = pin.constraintDynamics(
        model, data, layout.q_to(q), layout.v_to(q, v), layout.tau_to(q, c.tau), models, datas,
        settings,
    )  # fmt: skip
    ours = layout.vdot_to(q, v, rm.forward_dynamics(robot, q, v, c.tau))
    size = np.max(np.abs(theirs), initial=1.0)
    assert_close(ours, theirs, scale=size, rtol=1e-11)  # measured 1e-13


@pytest.mark.parametrize("seed", range(4))
def test_mujoco_rows_span_the_same_space(seed):
    """The rows of `connect` and `weld` at a closed state have the null space of G."""
    mujoco = pytest.importorskip("mujoco")
    tree = rm.random_robot(seed, bodies=6, kinds=("revolute", "prismatic", "spherical"))
    q = rm.neutral(tree)  # MuJoCo places the second anchor of `connect` there
    kind = ("spherical", "fixed")[seed % 2]
    loop = constraint(kind, tree, q, 1, 5, np.random.default_rng(seed))
    robot = closed(tree, loop)
    names = [tree.bodies[i].name for i in (5, 1)]
    anchor = " ".join(map(repr, map(float, pose.translation(loop.child_placement))))
    x = rm.poses(tree, q)
    there = dq.mul(dq.conjugate(x[5]), x[1])  # body 1 seen from body 5
    relative = [*pose.translation(there), *pose.rotation(there)]
    shown = " ".join(repr(float(e)) for e in relative)
    row = (
        f'<connect body1="{names[0]}" body2="{names[1]}" anchor="{anchor}"/>'
        if kind == "spherical"
        else f'<weld body1="{names[0]}" body2="{names[1]}" relpose="{shown}"/>'
    )
    text = mjcf_text(tree).replace("</mujoco>", f"<equality>{row}</equality></mujoco>")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    layout = rm.layouts.mujoco(tree, model)
    data.qpos[:] = layout.q_to(q)
    mujoco.mj_forward(model, data)
    rows = np.reshape(data.efc_J, (data.nefc, model.nv))
    back = np.stack([layout.v_to(q, e) for e in np.eye(tree.nv)], axis=-1)
    G = rm.loops.constraint_jacobian(robot, q)
    theirs = rows @ back
    for e in np.eye(tree.nv):
        assert np.max(np.abs(theirs @ rm.loops.project_velocity(robot, q, e))) < 1e-10
    assert np.linalg.matrix_rank(np.vstack([theirs, G]), tol=1e-8) == np.linalg.matrix_rank(G)
