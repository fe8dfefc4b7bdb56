"""Coupling of base and arm: definitions, budgets that add up, envelopes by linear programming."""

import numpy as np
import pytest
from scipy.optimize import linprog

import remora as rm
from numeric import assert_close
from remora.algebra import pose


def test_the_factor_is_the_largest_answer():
    robot = rm.load("servicer")
    q, _ = rm.random_state(robot, 3, 4)
    for part, rows in (("rotation", slice(0, 3)), ("translation", slice(3, 6))):
        found = rm.analysis.coupling(robot, q, part)
        response = rm.dynamics.base_response(robot, q)[..., rows, :]
        assert_close(found.response, response)
        assert_close(found.factor, np.linalg.norm(response, ord=2, axis=(-2, -1)), 1e-12)
        answer = (response @ found.worst[..., None])[..., 0]
        assert_close(np.linalg.norm(answer, axis=-1), found.factor, 1e-12)
        assert_close(found.per_joint, np.linalg.norm(response, axis=-2), 1e-12)
    one = rm.analysis.coupling(robot, q, joints=["elbow_pitch"])
    assert_close(one.factor, rm.analysis.coupling(robot, q).per_joint[..., 3], 1e-12)


def test_a_map_has_factor_and_joints():
    robot = rm.load("spart17_planar")
    angles = np.linspace(-1.0, 1.0, 4)
    found = rm.analysis.coupling_map(robot, {"joint_1": angles, "joint_2": angles[:3]})
    assert found.shape == (4, 3, 3)
    q = rm.neutral(robot)
    q[8:] = angles[2], angles[1]
    one = rm.analysis.coupling(robot, q)
    assert_close(found[2, 1], [one.factor, *one.per_joint], 1e-12)


def test_a_budget_adds_up_to_the_motion_of_the_vehicle():
    robot = rm.load("spart17_planar_3")

    def torque(t, q, v):
        own = np.array([0.5 * np.sin(t), 0.3 * np.cos(2 * t), -0.2 * np.sin(1.5 * t)])
        return np.concatenate([np.zeros(6), own - 0.3 * v[6:]])

    run = rm.simulate(robot, rm.neutral(robot), np.zeros(robot.nv), 5.0, torque=torque, record=0.01)
    found = rm.analysis.disturbance_budget(robot, run.t, run.q, run.v)
    assert found.names == ("joint_1", "joint_2", "joint_3", "momentum")
    x = rm.poses(robot, run.q)[:, 0]
    moved = pose.translation(x[-1]) - pose.translation(x[0])
    yaw = pose.to_rpy(x[-1])[2] - pose.to_rpy(x[0])[2]
    assert_close(found.total, [0, 0, yaw, *moved], 1e-7)
    assert_close(found.rotation.sum(axis=0), found.total[:3])
    assert_close(found.rotation[-1], np.zeros(3), 1e-9)  # no momentum
    assert np.all(found.travel[:3] >= np.abs(found.rotation[:3, 2]) - 1e-9)
    # a run with momentum: the rest is what its own turning adds
    v = np.zeros(robot.nv)
    v[2] = 0.1
    spun = rm.simulate(robot, rm.neutral(robot), v, 1.0, locked=robot.joints.names[1:], record=0.01)
    turned = rm.analysis.disturbance_budget(robot, spun.t, spun.q, spun.v)
    assert_close(turned.rotation[-1, 2], 0.1, 1e-9)


def test_the_demand_is_the_momentum_of_an_arm_on_a_vehicle_that_does_not_turn():
    robot = rm.random_robot(5, bodies=8)
    q, v = rm.random_state(robot, 0, 5)
    demand = rm.analysis.momentum_demand(robot, q, v)
    for k in range(5):  # body by body: h = Σ R I ω + m (c - c_total) × ċ
        held = np.concatenate([np.zeros(6), v[k, 6:]])
        x, V = rm.poses(robot, q[k]), rm.twists(robot, q[k], held)
        total, h = rm.center_of_mass(robot, q[k]), np.zeros(3)
        for body, pose_, twist in zip(robot.bodies, x, V, strict=True):
            R = pose.to_rotation_matrix(pose_)
            h += R @ body.inertia @ twist[:3]
            arm = pose.translation(pose_) + R @ body.com - total
            h += body.mass * np.cross(arm, R @ (twist[3:] + np.cross(twist[:3], body.com)))
        assert_close(demand[k], h, 1e-12)


PYRAMID = np.array([[1, 0, 1], [0, 1, 1], [-1, 0, 1], [0, -1, 1]]) / np.sqrt(2.0)


def test_the_margin_is_that_of_a_linear_program():
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 2, 6)
    capacity = np.array([20.0, 25.0, 20.0, 15.0])
    margin = rm.analysis.wheel_margin(robot, q, v, PYRAMID, capacity)
    demand = rm.analysis.momentum_demand(robot, q, v)
    R = pose.to_rotation_matrix(rm.poses(robot, q)[:, 0])
    for k in range(6):
        own = R[k].T @ demand[k]
        # largest s with s h = Σ w_i a_i, |w_i| ≤ H_i
        program = linprog(
            [-1, 0, 0, 0, 0],
            A_eq=np.column_stack([own, -PYRAMID.T]),
            b_eq=np.zeros(3),
            bounds=[(0, None), *((-H, H) for H in capacity)],
        )
        assert_close(margin[k], program.x[0], 1e-8)


def test_three_wheels_make_a_box():
    normals, distance = rm.analysis.wheel_envelope(np.eye(3), [1.0, 2.0, 3.0])
    assert_close(np.sort(distance), [1.0, 2.0, 3.0])
    assert_close(np.abs(normals) @ [1.0, 2.0, 3.0], distance)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r, q: rm.analysis.coupling(r, q, "spin"), "rotation, translation"),
        (lambda r, q: rm.analysis.coupling(rm.load("servicer", base="fixed"), q[8:]), "free joint"),
        (lambda r, q: rm.analysis.coupling_map(r, {}), "the grid is empty"),
        (lambda r, q: rm.analysis.wheel_envelope([[1, 0, 0], [0, 1, 0]], [1, 1]), "span three"),
        (lambda r, q: rm.analysis.wheel_envelope(2 * np.eye(3), [1, 1, 1]), "unit length"),
        (
            lambda r, q: rm.analysis.disturbance_budget(r, [0, 1], [q, q], np.zeros((2, r.nv))),
            "3 samples",
        ),
        (
            lambda r, q: rm.analysis.disturbance_budget(r, [0, 1, 1], [q] * 3, np.zeros((3, r.nv))),
            "increase",
        ),
    ],
)
def test_refusals_name_what_is_wrong(call, words):
    robot = rm.load("servicer")
    with pytest.raises(rm.RemoraError, match=words):
        call(robot, rm.neutral(robot))
