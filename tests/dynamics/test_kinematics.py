"""Kinematics and momentum on random trees with every joint kind: identities, differentiation."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close, rate_along_motion
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw
from remora.model.joints import kind

SEEDS = range(12)
BASES = ["free", "fixed", "planar", "spherical", "prismatic", "cartesian"]


def tree(seed):
    return rm.random_robot(seed, bodies=3 + 2 * seed, base=BASES[seed % len(BASES)], gravity=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_by_exact_differentiation(seed, rng):
    robot = tree(seed)
    q, v = rm.random_state(robot, rng)
    vdot = rng.normal(size=robot.nv)
    target, point = len(robot.bodies) - 1, (0.1, -0.2, 0.3)

    x, xi = rm.poses(robot, q), rm.twists(robot, q, v)
    rate = rate_along_motion(robot, lambda q, v: rm.poses(robot, q), q, v, vdot)
    assert_close(rate, 0.5 * dq.mul(x, dq.pure(xi)))
    rate = rate_along_motion(robot, lambda q, v: rm.twists(robot, q, v), q, v, vdot)
    assert_close(rm.dynamics.accelerations(robot, q, v, vdot), rate)
    rate = rate_along_motion(robot, lambda q, v: rm.jacobian(robot, q, target, point), q, v, vdot)
    assert_close(rm.dynamics.jacobian_rate(robot, q, v, target, point), rate)
    rate = rate_along_motion(robot, lambda q, v: rm.center_of_mass(robot, q), q, v, vdot)
    assert_close(rm.dynamics.center_of_mass_jacobian(robot, q) @ v, rate)
    # the power of gravity on the moving centre of mass
    rate = rate_along_motion(robot, lambda q, v: rm.potential_energy(robot, q), q, v, vdot)
    power = -robot.mass * robot.gravity @ (rm.dynamics.center_of_mass_jacobian(robot, q) @ v)
    assert_close(rate, power)


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobians_give_twists_and_accelerations(seed, rng):
    robot = tree(seed)
    q, v = rm.random_state(robot, rng, batch=(3,))
    vdot = rng.normal(size=v.shape)
    xi, a = rm.twists(robot, q, v), rm.dynamics.accelerations(robot, q, v, vdot)
    for i in range(len(robot.bodies)):
        assert_close(rm.frame_twist(robot, q, v, i), xi[:, i])
        assert_close(rm.dynamics.frame_acceleration(robot, q, v, vdot, i), a[:, i])
        assert_close(rm.frame_pose(robot, q, i), rm.poses(robot, q)[:, i])


@pytest.mark.parametrize("seed", SEEDS)
def test_world_axes(seed, rng):
    """Both halves are rotated; rates are those of the rotated components."""
    robot = tree(seed)
    q, v = rm.random_state(robot, rng)
    vdot = rng.normal(size=robot.nv)
    target, point = len(robot.bodies) - 1, (0.1, -0.2, 0.3)
    R = pose.to_rotation_matrix(rm.frame_pose(robot, q, target))
    both = np.kron(np.eye(2), R)
    J = rm.jacobian(robot, q, target, point, axes="world")
    assert_close(J, both @ rm.jacobian(robot, q, target, point))
    assert np.array_equal(
        rm.jacobian(robot, q, target, point, axes="body"), rm.jacobian(robot, q, target, point)
    )
    assert_close(rm.frame_twist(robot, q, v, target, point, "world"), J @ v)

    def origin(q, v):
        return pose.transform_point(rm.frame_pose(robot, q, target), np.array(point))

    assert_close(J[3:] @ v, rate_along_motion(robot, origin, q, v, vdot))
    of_J = lambda q, v: rm.jacobian(robot, q, target, point, "world")  # noqa: E731
    rate = rate_along_motion(robot, of_J, q, v, vdot)
    assert_close(rm.dynamics.jacobian_rate(robot, q, v, target, point, "world"), rate)
    of_twist = lambda q, v: rm.frame_twist(robot, q, v, target, point, "world")  # noqa: E731
    rate = rate_along_motion(robot, of_twist, q, v, vdot)
    assert_close(rm.dynamics.frame_acceleration(robot, q, v, vdot, target, point, "world"), rate)
    if robot.joints[0].kind == "free":
        G = rm.generalized_jacobian(robot, q, target, point, "world")
        assert_close(G, both @ rm.generalized_jacobian(robot, q, target, point), rtol=1e-11)
        of_G = lambda q, v: rm.generalized_jacobian(robot, q, target, point, "world")  # noqa: E731
        rate = rate_along_motion(robot, of_G, q, v, vdot)
        found = rm.dynamics.generalized_jacobian_rate(robot, q, v, target, point, "world")
        assert_close(found, rate, rtol=1e-10)  # solves with the base's inertia


def test_world_axes_compiled():
    robot = rm.load("vt18_satellite")
    fast = rm.compile(robot)
    q, v = rm.random_state(robot, 3, batch=(5,))
    body = fast.jacobian(q, "end_effector")
    world = fast.jacobian(q, "end_effector", axes="world")
    assert_close(world, rm.jacobian(robot, q, "end_effector", axes="world"))
    assert_close(body, rm.jacobian(robot, q, "end_effector"))
    assert np.abs(world - body).max() > 0.1
    kernel = rm.compile(rm.frame_twist, robot, fixed={"frame": "end_effector", "axes": "world"})
    assert_close(kernel(q, v), rm.frame_twist(robot, q, v, "end_effector", axes="world"))


def test_a_frame_of_the_world_has_the_same_axes():
    robot = rm.load("vt18_satellite")
    dock = rm.Frame("dock", -1, pose.from_xyz_rpy((0, 0, 1), (1, 0, 0)))
    assert not np.any(rm.jacobian(robot, rm.neutral(robot), dock, axes="world"))


@pytest.mark.parametrize(("word", "meant"), [("inertial", "world"), ("LOCAL", "body")])
def test_other_axes_are_refused(word, meant):
    robot = rm.load("vt18_satellite")
    with pytest.raises(rm.errors.UnknownName, match=f"did you mean '{meant}'.*known: body, world"):
        rm.jacobian(robot, rm.neutral(robot), 0, axes=word)


def test_jacobian_of_a_point_is_the_shifted_one(rng):
    robot = tree(6)
    q, v = rm.random_state(robot, rng)
    point = np.array([0.3, -0.5, 0.7])
    at_origin, at_point = (rm.frame_twist(robot, q, v, 4, p) for p in (np.zeros(3), point))
    assert_close(at_point[:3], at_origin[:3])
    assert_close(at_point[3:], at_origin[3:] + np.cross(at_origin[:3], point))


@pytest.mark.parametrize("seed", SEEDS)
def test_momentum_and_energy_body_by_body(seed, rng):
    """[VT18, eqs. 23, 24, 30, 31] in the paper's own form, about each centre of mass."""
    robot = tree(seed)
    q, v = rm.random_state(robot, rng)
    x, xi = rm.poses(robot, q), rm.twists(robot, q, v)
    total, energy = np.zeros(8), 0.0
    for i, body in enumerate(robot.bodies):
        to_com = pose.from_translation(body.com)
        twist = dq.pure(screw.adjoint_inverse(to_com, xi[i]))
        M = screw.dual_inertia(body.mass, body.inertia)
        at_com = dq.mul(x[i], to_com)
        total += dq.mul(dq.mul(at_com, M @ dq.swap(twist)), dq.conjugate(at_com))
        energy += 0.5 * dq.circle(dq.swap(twist), M @ dq.swap(twist))
    assert_close(rm.momentum(robot, q, v), dq.vec6(total))
    assert_close(rm.dynamics.momentum_matrix(robot, q) @ v, dq.vec6(total))
    assert_close(rm.kinetic_energy(robot, q, v), energy, scale=energy)
    v_com = rm.dynamics.center_of_mass_jacobian(robot, q) @ v
    assert_close(robot.mass * v_com, dq.vec6(total)[:3])


@pytest.mark.parametrize("seed", [0, 6])
def test_generalized_jacobian_is_motion_without_momentum(seed, rng):
    robot = tree(seed)
    q, _ = rm.random_state(robot, rng)
    joint_speeds = rng.normal(size=robot.nv - 6)
    v = np.concatenate([rm.dynamics.base_response(robot, q) @ joint_speeds, joint_speeds])
    assert_close(rm.momentum(robot, q, v), np.zeros(6), scale=robot.mass)
    target = len(robot.bodies) - 1
    assert_close(
        rm.generalized_jacobian(robot, q, target) @ joint_speeds,
        rm.frame_twist(robot, q, v, target),
    )


def test_generalized_jacobian_needs_a_free_base():
    robot = tree(1)
    with pytest.raises(rm.RemoraError, match="free joint, not on a fixed one"):
        rm.generalized_jacobian(robot, rm.neutral(robot), 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_relations_across_the_joints(seed, rng):
    """[VT18, eqs. 46-49]."""
    robot = tree(seed)
    q, v = rm.random_state(robot, rng)
    vdot = rng.normal(size=robot.nv)
    xi, a = rm.twists(robot, q, v), rm.dynamics.accelerations(robot, q, v, vdot)
    assert_close(rm.dynamics.joint_speeds(robot, q, xi), v)
    relative = rm.dynamics.joint_twists(robot, q, xi)
    for i, joint in enumerate(robot.joints):
        assert_close(relative[i], kind(joint).screws(joint, q[joint.q]) @ v[joint.v])
    assert_close(
        rm.dynamics.constraint_violation(robot, q, v, xi, a),
        np.zeros((len(robot.joints), 6)),
        scale=np.abs(a).max(),
    )
    spoilt = a + rng.normal(size=a.shape)
    if any(kind(j).nv < 6 for j in robot.joints):
        assert np.abs(rm.dynamics.constraint_violation(robot, q, v, xi, spoilt)).max() > 1e-3


def test_nothing_moves_nothing():
    robot = tree(6)
    q = rm.neutral(robot)
    zero = np.zeros(robot.nv)
    assert not np.any(rm.twists(robot, q, zero))
    assert not np.any(rm.dynamics.accelerations(robot, q, zero, zero))
    assert not np.any(rm.momentum(robot, q, zero))
    assert rm.kinetic_energy(robot, q, zero) == 0.0


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_tiny_and_huge_masses(scale, rng):
    """Kinematics and momentum are linear in the masses, from a microgram to a million tons."""
    robot = tree(6)
    scaled = robot.replace(
        bodies=[rm.Body(b.name, b.mass * scale, b.com, b.inertia * scale) for b in robot.bodies]
    )
    q, v = rm.random_state(robot, rng)
    h = rm.momentum(robot, q, v)
    assert_close(rm.momentum(scaled, q, v) / scale, h)
    assert_close(rm.center_of_mass(scaled, q), rm.center_of_mass(robot, q))
    assert_close(rm.dynamics.base_response(scaled, q), rm.dynamics.base_response(robot, q))


def test_frames_fixed_in_the_inertial_frame():
    robot = (
        rm.Builder()
        .body("a", mass=1, inertia=(1, 1, 1))
        .frame("station", None, xyz=(1, 2, 3))
        .build()
    )
    q, _v = rm.random_state(robot, 0, batch=(4,))
    assert_close(pose.translation(rm.frame_pose(robot, q, "station")), np.tile([1.0, 2, 3], (4, 1)))
    assert not np.any(rm.jacobian(robot, q, "station"))
    assert rm.jacobian(robot, q, "station").shape == (4, 6, 6)
