"""Fifty random trees against Pinocchio: poses, twists, Jacobians, centre of mass, momentum."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from peers import PINOCCHIO_KINDS, pinocchio_model
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose

pin = pytest.importorskip("pinocchio")
BASES = ("free", "fixed", "planar", "spherical", "revolute")


@pytest.mark.parametrize("seed", range(50))
def test_against_pinocchio(seed):
    rng = np.random.default_rng(seed)
    kinds = (*PINOCCHIO_KINDS, "fixed")
    robot = rm.random_robot(
        rng, bodies=2 + seed % 17, kinds=kinds, base=BASES[seed % 5], gravity=True
    )
    model, ids, offsets = pinocchio_model(robot)
    data = model.createData()
    layout = rm.layouts.pinocchio(robot, model)
    q, v = rm.random_state(robot, rng)
    vdot = rng.normal(size=robot.nv)
    qp, vp, ap = layout.q_to(q), layout.v_to(q, v), layout.vdot_to(q, v, vdot)
    pin.forwardKinematics(model, data, qp, vp, ap)
    pin.computeJointJacobians(model, data, qp)

    x, xi, a = (
        rm.poses(robot, q),
        rm.twists(robot, q, v),
        rm.dynamics.accelerations(robot, q, v, vdot),
    )
    to_pin = np.stack([layout.v_to(q, e) for e in np.eye(robot.nv)], axis=-1)
    for i, (j, offset) in enumerate(zip(ids, offsets, strict=True)):
        there = pin.SE3(pose.to_rotation_matrix(offset), pose.translation(offset))
        assert_close(pose.to_matrix(x[i]), (data.oMi[j] * there).homogeneous)
        assert_close(xi[i], angular_first(there.actInv(data.v[j]).vector))
        assert_close(a[i], angular_first(there.actInv(data.a[j]).vector))
        if j > 0:
            J = there.toActionMatrixInverse() @ pin.getJointJacobian(model, data, j, pin.LOCAL)
            ours = rm.jacobian(robot, q, i)
            assert_close(ours, np.concatenate([J[3:], J[:3]]) @ to_pin)
            # Pinocchio's LOCAL_WORLD_ALIGNED, at the origin of Remora's frame
            R = pin.SE3((data.oMi[j] * there).rotation, np.zeros(3)).toActionMatrix()
            world = np.concatenate([(R @ J)[3:], (R @ J)[:3]]) @ to_pin
            assert_close(rm.jacobian(robot, q, i, axes="world"), world)

    # Pinocchio's universe has no mass: leave out what Remora fixes to it
    moving = robot.replace(
        bodies=[
            b if ids[i] > 0 else rm.Body(b.name, b.mass * 0.0, b.com, b.inertia * 0.0)
            for i, b in enumerate(robot.bodies)
        ]
    )
    if float(moving.mass) > 0.0:
        assert_close(rm.center_of_mass(moving, q), pin.centerOfMass(model, data, qp))
    h = pin.computeCentroidalMomentum(model, data, qp, vp)
    c = pin.centerOfMass(model, data, qp)
    about_origin = np.concatenate([h.linear, h.angular + np.cross(c, h.linear)])
    assert_close(rm.momentum(moving, q, v), about_origin)
    assert_close(rm.kinetic_energy(moving, q, v), pin.computeKineticEnergy(model, data, qp, vp))
    assert_close(rm.potential_energy(moving, q), pin.computePotentialEnergy(model, data, qp))


def angular_first(motion):
    return np.concatenate([motion[3:], motion[:3]])


def test_integrate_is_pinocchios():
    robot = rm.random_robot(1, bodies=8, kinds=("spherical", "free", "revolute", "prismatic"))
    model, _, _ = pinocchio_model(robot)
    layout = rm.layouts.pinocchio(robot, model)
    q, v = rm.random_state(robot, 4)
    there = pin.integrate(model, layout.q_to(q), layout.v_to(q, v))
    assert_close(rm.poses(robot, layout.q_from(there)), rm.poses(robot, rm.integrate(robot, q, v)))
    q2, _ = rm.random_state(robot, 5)
    difference = pin.difference(model, layout.q_to(q), layout.q_to(q2))
    assert_close(layout.v_to(q, rm.difference(robot, q, q2)), difference)


def test_offsets_are_poses():
    robot = rm.random_robot(3, bodies=9, kinds=("planar", "fixed"), base="planar")
    _, _, offsets = pinocchio_model(robot)
    for x in offsets:
        assert_close(dq.mul(x, dq.conjugate(x)), dq.identity())
