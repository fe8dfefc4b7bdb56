"""Rates and accelerations of frames by controlled joints, against kinematics and dynamics."""

import numpy as np
import pytest

import remora as rm
from laws_on_small_robots import context
from remora.algebra import pose
from remora.control.motion import controlled_motion as motion


def tree(seed):
    """Return a random tree with a free base that branches in mid-chain, a state, and its joints."""
    rng = np.random.default_rng(seed)
    robot = rm.random_robot(seed, bodies=7, base="free")
    names = motion.joint_names(robot, [j.name for j in robot.joints[1:] if usable(j)])
    q, v = rm.random_state(robot, seed)
    return robot, q, v, names[: max(2, len(names) - 2)], rng


def usable(joint):
    return joint.kind not in ("spherical", "free", "fixed") and joint.mimic is None


def turned(robot, q, frame, x):
    R = pose.to_rotation_matrix(rm.frame_pose(robot, q, frame))
    return np.concatenate([R @ x[:3], R @ x[3:]])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("base", motion.BASES)
def test_rates_keep_the_momentum_and_move_every_frame(seed, base):
    robot, q, v, names, rng = tree(seed)
    places = motion.speed_places(robot, names)
    moves = motion.response(context(robot, q, v), places, base)
    wanted = v.copy()
    wanted[places] = rng.normal(size=len(places))
    if base == "floating":
        wanted[:6] = v[:6] + moves @ (wanted[places] - v[places])
        before, after = rm.momentum(robot, q, v), rm.momentum(robot, q, wanted)
        assert np.abs(after - before).max() < 1e-12 * (1 + np.abs(before).max())
    if base == "fixed":
        wanted[:6] = 0.0
    for body in robot.bodies.names:
        map_ = motion.frame_rates(context(robot, q, v), body, range(6), places, base, moves)
        twist = turned(robot, q, body, rm.frame_twist(robot, q, wanted, body))
        found = map_.matrix @ wanted[places] + map_.offset
        assert np.abs(found - twist).max() < 1e-12 * (1 + np.abs(twist).max())


@pytest.mark.parametrize("seed", range(6))
def test_accelerations_leave_the_base_without_force_at_any_momentum(seed):
    robot, q, v, names, rng = tree(seed)
    places = motion.speed_places(robot, names)
    at = context(robot, q, v)
    dynamics = motion.controlled_dynamics(at, places, "floating")
    a = rng.normal(size=len(places))
    vdot = np.zeros(robot.nv)
    vdot[places] = a
    vdot[:6] = dynamics.base.matrix @ a + dynamics.base.offset
    tau = rm.inverse_dynamics(robot, q, v, vdot)
    scale = np.abs(tau).max()
    assert np.abs(tau[:6]).max() < 1e-11 * scale
    force = dynamics.force.matrix @ a + dynamics.force.offset
    assert np.abs(force - tau[places]).max() < 1e-11 * scale
    for body in robot.bodies.names[1:]:
        map_ = motion.frame_accelerations(at, body, range(6), places, dynamics)
        twist = rm.frame_twist(robot, q, v, body)
        own = rm.dynamics.frame_acceleration(robot, q, v, vdot, body)
        own[3:] += np.cross(twist[:3], twist[3:])
        wanted = turned(robot, q, body, own)
        assert np.abs(map_.matrix @ a + map_.offset - wanted).max() < 1e-11 * np.abs(wanted).max()


@pytest.mark.parametrize("seed", range(4))
def test_the_manipulability_gradient_is_a_derivative(seed):
    robot = rm.load("servicer", base="fixed")
    q, v = rm.random_state(robot, seed)
    rows = motion.row_indices(["position", "pose", "orientation"][seed % 3])

    def logarithm(q):
        J = rm.jacobian(robot, q, "tool")
        R = pose.to_rotation_matrix(rm.frame_pose(robot, q, "tool"))
        J = np.concatenate([R @ J[:3], R @ J[3:]])[rows]
        return 0.5 * np.log(np.linalg.det(J @ J.T))

    found = motion.manipulability_gradient(context(robot, q, v), "tool", rows, range(7), 0.0)
    step = 1e-5 * np.eye(7)
    differences = [(logarithm(q + h) - logarithm(q - h)) / 2e-5 for h in step]
    assert np.abs(found - differences).max() < 1e-6 * np.abs(differences).max()


def test_refusals_name_what_is_known():
    robot = rm.load("servicer")
    with pytest.raises(rm.errors.UnknownName, match="known: pose, orientation"):
        motion.row_indices("attitude")
    with pytest.raises(rm.errors.UnknownName, match="wx, wy"):
        motion.row_indices(("wx", "px"))
    with pytest.raises(rm.RemoraError, match="carries the base"):
        motion.joint_names(robot, ["base"])
    with pytest.raises(rm.RemoraError, match="listed twice"):
        motion.joint_names(robot, ["elbow_pitch", "elbow_pitch"])
    with pytest.raises(rm.RemoraError, match="no joint named"):
        motion.joint_names(robot, ["elbow"])
