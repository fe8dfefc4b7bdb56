"""What must hold for every row of the joint table."""

import casadi
import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import dual_quaternion as dq
from remora.algebra.array_ops import asarray
from remora.errors import UnknownName
from remora.model import joint_types, joints

KINDS = list(rm.JOINT_TYPES)
SIZES = {
    "fixed": (0, 0), "revolute": (1, 1), "prismatic": (1, 1), "helical": (1, 1),
    "cylindrical": (2, 2), "universal": (2, 2), "planar": (3, 3), "cartesian": (3, 3),
    "spherical": (4, 3), "free": (8, 6),
}  # fmt: skip
AXES = [np.array(a) for a in ([0.0, 0, 1], [1.0, 0, 0], [0.0, -1, 0], [2.0, -3, 6])]


def one_joint(kind, axis=None):
    count = rm.JOINT_TYPES[kind].axes
    axes = {}
    if count:
        axes["axis"] = AXES[3] if axis is None else axis
    if count == 2:
        axes["axis2"] = np.roll(axes["axis"], 1) + np.array([0.1, 0.2, 0.3])
    robot = (
        rm.Builder()
        .body("a", mass=1.0, inertia=(1, 1, 1))
        .joint("j", kind, None, "a", pitch=0.3 if kind == "helical" else 0.0, **axes)
        .build(base=None)
    )
    return robot, robot.joints[0]


def test_the_ten_kinds_and_their_sizes():
    assert {name: (row.nq, row.nv) for name, row in rm.JOINT_TYPES.items()} == SIZES


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_screws_are_the_derivative_of_the_pose_and_rate_theirs(kind, axis, rng):
    """Exact, by differentiating the traced pose along v: ẋ = ½ x (S v) and Ṡ = dS/dt.

    For coordinates with q̇ = v the direction is v itself; a quaternion moves along ½ q ω, a dual
    quaternion along ½ x ξ [VT18, eqs. 5, 15].
    """
    robot, joint = one_joint(kind, axis)
    row = rm.JOINT_TYPES[kind]
    if row.nv == 0:
        assert joints.motion_subspace(joint, np.zeros(0)).shape == (6, 0)
        assert_close(joints.relative_pose(joint, np.zeros(0)), dq.identity())
        return
    Q, V = casadi.SX.sym("q", row.nq), casadi.SX.sym("v", row.nv)
    q, v = asarray(Q).reshape(-1), asarray(V).reshape(-1)
    if kind == "free":
        qdot = 0.5 * dq.mul(q, dq.pure(v))
    elif kind == "spherical":
        qdot = 0.5 * rm.algebra.quaternion.mul(q, rm.algebra.quaternion.pure(v))
    else:
        qdot = v
    direction = casadi.vertcat(*qdot.tolist())

    def rate_of(array):
        flat = casadi.vertcat(*np.asarray(array).reshape(-1).tolist())
        return casadi.jtimes(flat, Q, direction)

    S = joints.motion_subspace(joint, q)
    x_rate = rate_of(joints.relative_pose(joint, q))
    S_rate = rate_of(S.astype(object))
    evaluate = casadi.Function("f", [Q, V], [x_rate, S_rate])
    for _ in range(5):
        q1, v1 = rm.random_state(robot, rng)
        x_dot, S_dot = (np.array(out).reshape(-1) for out in evaluate(q1, v1))
        twist = joints.motion_subspace(joint, q1) @ v1
        x = joints.relative_pose(joint, q1)
        assert_close(0.5 * dq.mul(x, dq.pure(twist)), x_dot, rtol=1e-14)
        rate = joints.motion_subspace_rate(joint, q1, v1)
        rate = np.zeros((6, row.nv)) if rate is None else rate
        assert_close(rate.reshape(-1), S_dot, rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_integrate_and_difference_invert_each_other(kind, rng):
    robot, _ = one_joint(kind)
    q0, _ = rm.random_state(robot, rng, batch=(50,))
    q1, _ = rm.random_state(robot, rng, batch=(50,))
    dq01 = rm.difference(robot, q0, q1)
    x0, x1 = rm.poses(robot, rm.integrate(robot, q0, dq01)), rm.poses(robot, q1)
    sign = np.sign(np.sum(x0[..., :4] * x1[..., :4], axis=-1, keepdims=True))
    assert_close(sign * x0, x1, rtol=1e-13)
    step = rng.normal(size=(50, robot.nv)) * 0.5
    assert_close(rm.difference(robot, q0, rm.integrate(robot, q0, step)), step, rtol=1e-13)
    assert_close(rm.integrate(robot, q0, 0.0 * step), q0)


@pytest.mark.parametrize("kind", KINDS)
def test_integrate_follows_a_constant_velocity(kind, rng):
    """A small step moves the pose by the twist S v, to first order."""
    robot, _joint = one_joint(kind)
    q, v = rm.random_state(robot, rng)
    h = 1e-6
    x0, x1 = rm.poses(robot, q)[0], rm.poses(robot, rm.integrate(robot, q, h * v))[0]
    moved = 2.0 * dq.log(dq.mul(dq.conjugate(x0), x1)) / h
    twist = rm.twists(robot, q, v)[0]
    assert np.max(np.abs(moved - twist)) < 2e-5 * max(1.0, np.abs(twist).max())  # error of order h


@pytest.mark.parametrize("kind", KINDS)
def test_neutral_is_no_motion(kind):
    robot, _joint = one_joint(kind)
    assert_close(rm.poses(robot, rm.neutral(robot))[0], dq.identity())


def test_steps_of_a_whole_turn_and_more_are_taken():
    robot, _ = one_joint("spherical")
    q = rm.integrate(robot, rm.neutral(robot), np.array([0.0, 0.0, 5.0 * np.pi]))
    assert_close(rm.difference(robot, rm.neutral(robot), q), [0.0, 0.0, np.pi], rtol=1e-14)


def test_unknown_kind_lists_the_known_ones():
    with pytest.raises(UnknownName, match=r"revolute.*free"):
        joint_types.lookup("ball")


def test_helical_pitch_is_metres_per_radian():
    robot, _ = one_joint("helical", AXES[0])
    x = rm.poses(robot, np.array([2.0]))[0]
    assert_close(rm.algebra.pose.translation(x), [0.0, 0.0, 0.6])


def test_planar_axes_go_round():
    for normal, first in ((AXES[0], [1, 0, 0]), (AXES[1], [0, 1, 0])):
        robot, _joint = one_joint("planar", normal)
        x = rm.poses(robot, np.array([1.0, 0.0, 0.0]))[0]
        assert_close(rm.algebra.pose.translation(x), first)


def test_the_drive_of_a_screw_is_a_torque_and_the_wrench_does_the_unit_work():
    for kind in KINDS:
        robot, joint = one_joint(kind)
        q, _ = rm.random_state(robot, 0)
        S, V = joints.motion_subspace(joint, q), joints.actuation_basis(joint, q)
        work = S.T @ np.concatenate([V[3:], V[:3]])
        assert_close(work, np.eye(rm.JOINT_TYPES[kind].nv), rtol=1e-14)
    _, joint = one_joint("helical", AXES[0])
    assert_close(joints.actuation_basis(joint, np.zeros(1))[:, 0], [0, 0, 0, 0, 0, 1])


def test_a_follower_is_felt_at_its_leaders_speed():
    builder = rm.Builder().body("bus", mass=1, inertia=(1, 1, 1))
    for name, kind, mimic in (
        ("a", "revolute", None), ("b", "helical", ("a_joint", -1.5, 0.1)),
        ("c", "prismatic", ("a_joint", 2.0, 0.0)),
    ):  # fmt: skip
        builder.body(name, mass=1, inertia=(1, 1, 1))
        builder.joint(
            f"{name}_joint", kind, "bus", name, mimic=mimic, rotor_inertia=0.3,
            pitch=0.2 if kind == "helical" else 0.0,
        )  # fmt: skip
    robot = builder.build()
    q, _ = rm.random_state(robot, 0)
    for name, felt in (("a", 0.3), ("b", 0.3 * 2.25), ("c", 0.3 * 4.0)):
        joint = robot.joints[f"{name}_joint"]
        assert_close(joints.rotor_inertia(joint), [felt], rtol=1e-15)
        S, V = joints.motion_subspace(joint, q), joints.actuation_basis(joint, q)
        assert_close(S.T @ np.concatenate([V[3:], V[:3]]), np.eye(1), rtol=1e-14)
