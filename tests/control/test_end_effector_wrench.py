"""Wrench-driven pose control [SA24, section IV]: the equations, and closed loops that settle."""

import dataclasses

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import WheelBody, arm
from numeric import traced
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw
from remora.control.end_effector_wrench import (
    assembly_law,
    linearizing_law,
    pose_feedback,
    pose_logarithm,
    printed_law,
)
from trees import relative_error

AXES = ((0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0))


def two_arms():
    """An arm with a branch: seven joints in the stem, two in the branch."""
    parts = {"stem": arm(axes=AXES), "branch": arm()}
    return rm.Assembly(parts, [("branch", "stem", "link2")], gravity=(0, 0, -9.81)).to_robot()


def test_the_logarithm_of_sa24():
    x = pose.from_xyz_rpy((0.2, -0.3, 0.4), (0.0, 0.0, 0.8))
    assert np.allclose(pose_logarithm(x), [0, 0, 0.4, 0.1, -0.15, 0.2])
    assert np.allclose(pose_logarithm(-x), pose_logarithm(x))
    assert np.array_equal(pose_logarithm(dq.identity()), np.zeros(6))


def test_feedback_on_a_moving_target_is_the_error_dynamics():
    """With ξ̇ = U the twist of the error changes at the rate -k_p log x̃ - k_v ξ̃ [SA24, eq. 11]."""
    rng = np.random.default_rng(1)
    xd, x = (pose.from_xyz_rpy(*rng.normal(size=(2, 3))) for _ in range(2))
    xi, xi_d, rate_d = rng.normal(size=(3, 6))
    U = pose_feedback(x, xi, xd, 3.0, 2.0, xi_d, rate_d)

    def off(h):
        """ξ̃ at a time h, for motions with constant rates of the twists."""
        moved = dq.mul(x, dq.exp(0.5 * (h * xi + 0.5 * h * h * U)))
        target = dq.mul(xd, dq.exp(0.5 * (h * xi_d + 0.5 * h * h * rate_d)))
        error = dq.mul(dq.conjugate(target), moved)
        return xi + h * U - screw.adjoint_inverse(error, xi_d + h * rate_d)

    h = 1e-5
    found = (off(h) - off(-h)) / (2 * h)
    error = dq.mul(dq.conjugate(xd), x)
    assert np.allclose(found, -3.0 * pose_logarithm(error) - 2.0 * off(0.0), atol=1e-7)


def test_the_printed_law_is_a_transposed_jacobian_with_gravity():
    robot = two_arms()
    q, _ = rm.random_state(robot, 2)
    rng = np.random.default_rng(3)
    frames, U = ("stem/tip", "branch/tip"), list(rng.normal(size=(2, 6)))
    found = printed_law(robot, q, frames, U)
    zero = np.zeros(robot.nv)
    expected = rm.inverse_dynamics(robot, q, zero, zero)
    expected = expected + sum(
        rm.jacobian(robot, q, name).T @ u for name, u in zip(frames, U, strict=True)
    )
    assert relative_error(found, expected) < 1e-13


def test_the_linearizing_law_gives_the_twists_the_rates_u():
    robot = two_arms()
    q, v = rm.random_state(robot, 4)
    U = [np.random.default_rng(5).normal(size=6)]
    tau = linearizing_law(robot, q, v, ("stem/tip",), U, 1.0, 1e-9)
    vdot = rm.forward_dynamics(robot, q, v, tau)
    rate = rm.dynamics.frame_acceleration(robot, q, v, vdot, "stem/tip")
    assert np.allclose(rate, U[0], atol=1e-5)
    _, _, V = np.linalg.svd(rm.jacobian(robot, q, "stem/tip"))
    own = V[6:]  # motions that the frame does not see are damped: v̇ = -kv v
    vdot = rm.forward_dynamics(
        robot, q, v, linearizing_law(robot, q, v, ("stem/tip",), U, 3.0, 1e-4)
    )
    assert np.allclose(own @ vdot, -3.0 * own @ v, atol=1e-8)
    printed = rm.forward_dynamics(robot, q, v, printed_law(robot, q, ("stem/tip",), U))
    missed = rm.dynamics.frame_acceleration(robot, q, v, printed, "stem/tip") - U[0]
    assert np.abs(missed).max() > 0.1  # SA24 calls (12) feedback linearization: it is not


@pytest.mark.parametrize("law", ["printed", "linearizing"])
def test_each_law_is_traced(law):
    robot = two_arms()
    q, v = rm.random_state(robot, 6)
    targets = {"stem/tip": rm.frame_pose(robot, rm.neutral(robot), "stem/tip")}
    control = rm.control.EndEffectorWrenchControl(robot, targets, 4.0, 3.0, law)
    found = traced(lambda q, v: control.forces(robot, q, v), [q, v])
    assert relative_error(found, control.forces(robot, q, v)) < 1e-10


@pytest.mark.parametrize(
    ("law", "gains"), [("printed", (60.0, 12.0)), ("linearizing", (20.0, 6.0))]
)
def test_closed_loops_settle(law, gains):
    """As a sampled component of a system, compiled with the robot."""
    robot = rm.Assembly({"a": arm()}, gravity=(0, 0, -9.81)).to_robot()
    joints = [dataclasses.replace(joint, damping=np.array([0.5])) for joint in robot.joints]
    robot = robot.replace(joints=joints)
    q0, goal = np.array([0.2, 0.4]), np.array([0.5, -0.3])
    targets = {"a/tip": rm.frame_pose(robot, goal, "a/tip")}
    control = rm.control.EndEffectorWrenchControl(robot, targets, *gains, law, sample_time=0.01)
    run = rm.simulate(rm.System(robot, [control]), q0, np.zeros(2), duration=8.0)
    errors = control.errors(robot, run.q)[:, 0]
    assert errors[0] > 0.3
    assert errors[-1] < 2e-3


def test_it_takes_an_assembly():
    assembly = rm.Assembly({"a": arm()}, gravity=(0, 0, -9.81))
    x = rm.frame_pose(assembly.to_robot(), np.array([0.5, -0.3]), "a/tip")
    make = rm.control.EndEffectorWrenchControl
    assert make(assembly, {"a/tip": x}, 2.0, 3.0) == make(assembly.to_robot(), {"a/tip": x}, 2, 3)


@pytest.mark.parametrize("shifted", [False, True])
def test_a_moving_target_is_followed_exactly(shifted):
    """ξ_d and its rate of (11): after the start, error is rounding and truncation, not a lag.

    A reference in the frame of a target that is not the identity moves with it.
    """
    robot = rm.random_robot(11, bodies=6, base="free", kinds=["revolute"])
    tip = robot.bodies[-1].name
    q, _ = rm.random_state(robot, 3)
    x = rm.frame_pose(robot, q, tip)
    place = x if shifted else dq.identity()
    begin = dq.identity() if shifted else x
    away = pose.from_xyz_rpy((0.1, -0.05, 0.08), (0.3, 0.2, -0.4))
    reference = rm.control.PoseReference(
        np.array([begin, dq.mul(begin, away)]), 2.0, name="reference"
    )
    hand = rm.control.EndEffectorWrenchControl(
        robot, {tip: place}, 9.0, 6.0, regularization=1e-9, name="hand"
    )
    names = "pose", "twist", "twist_rate"
    followed = {f"hand.{key}_0": f"reference.{key}" for key in names}
    lagging = {"hand.pose_0": "reference.pose"}
    errors = []
    for connect in (followed, lagging):
        system = rm.System(robot, [reference, hand], connect=connect)
        run = rm.simulate(
            system, q, np.zeros(robot.nv), 2.0, integrator=rm.Integrator("dop853", rtol=1e-10)
        )
        t = run.t[:, None]
        s = np.clip(t / 2.0, 0.0, 1.0)
        s = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        wanted = dq.mul(x, dq.exp(s * dq.log(away)))
        off = dq.mul(dq.conjugate(wanted), rm.frame_pose(robot, run.q, tip))
        errors.append(np.abs(pose_logarithm(off)).max())
    assert errors[0] < 1e-5  # the regularization
    assert errors[1] > 100.0 * errors[0]


def boxed(whole, name):
    """The assembly at rest with a part as a black box, which reports what it would."""
    part, robot = whole.part(name), whole.to_robot()

    def source(t, base):
        q = t * np.ones(whole.nq)
        load = whole.joint_loads(q, 0 * q, 0 * q)[whole.names.index(name)]
        points = {
            point: rm.papers.sa24.PointReading(
                np.zeros(6), np.zeros(6), rm.frame_pose(robot, q, f"{name}/{point}")
            )
            for point in part.points
        }
        wrench = screw.adjoint_inverse(part.connection.placement, load.base)  # in its base frame
        return rm.papers.sa24.SensorReading(-wrench, points)

    return whole.swap(name, rm.BlackBox(source, part.points))


def test_the_printed_law_of_an_assembly_with_a_black_box():
    """At rest, where the black box bears weights only, it is the law of the whole robot.

    But for the wrench at the end-effector beyond it, which does not pass through the black box.
    """
    aside = pose.from_xyz_rpy((0.1, -0.2, 0.3), (0.3, 0.4, -0.5))
    link = rm.papers.sa24.Connection
    whole = rm.Assembly(
        {"stem": arm(axes=AXES[:3]), "box": arm(), "hand": arm(axes=AXES[2:5]), "side": arm()},
        [link("box", "stem", "link2", placement=aside), link("hand", "box", "tip"),
         link("side", "stem", "link1", placement=aside)],
        (0.3, 0.4, -9.0),
    )  # fmt: skip
    robot, t = whole.to_robot(), 0.3
    q, v = t * np.ones(whole.nq), np.zeros(whole.nv)
    known = boxed(whole, "box")
    kept = np.concatenate([np.arange(whole.nv)[whole.part(name).v] for name in known.names
                           if name != "box"])  # fmt: skip
    moving = aside, np.arange(6) / 9.0, np.cos(np.arange(6))
    targets = {"hand/tip": lambda t: moving, "side/tip": dq.mul(aside, aside)}
    frames = tuple(targets)
    goals = (*moving, 8.0), (targets["side/tip"], None, None, 8.0)
    U = [
        pose_feedback(
            rm.frame_pose(robot, q, f), rm.frame_twist(robot, q, v, f), x, 8.0, 5.0, twist, rate
        )
        for f, (x, twist, rate, _) in zip(frames, goals, strict=True)
    ]
    expected = printed_law(robot, q, frames, U)
    before = printed_law(robot, q, frames[1:], U[1:])
    hand = whole.part("hand").v
    before[hand] = expected[hand]
    law = assembly_law(known, targets, 8.0, 5.0)
    assert relative_error(law(t, q[kept], v[kept]), before[kept]) < 1e-12
    assert relative_error(assembly_law(whole, targets, 8.0, 5.0)(t, q, v), expected) < 1e-12
    w = np.cos(np.arange(whole.nv))
    found = whole.frame_twist(q, w, "hand/tip")
    assert relative_error(found, rm.frame_twist(robot, q, w, "hand/tip")) < 1e-13


def test_an_arm_beyond_a_black_box_is_controlled():
    """A black box at rest carries an arm: its end-effector goes to its target in a run."""
    x = pose.from_xyz_rpy((0.2, 0.1, 0.5), (0.2, -0.3, 0.4))
    still = rm.papers.sa24.PointReading(np.zeros(6), np.zeros(6), x)
    box = rm.BlackBox(lambda t, base: rm.papers.sa24.SensorReading(None, {"top": still}), ("top",))
    damped = arm()
    joints = [dataclasses.replace(joint, damping=np.array([0.5])) for joint in damped.joints]
    assembly = rm.Assembly(
        {"box": box, "arm": damped.replace(joints=joints)}, [("arm", "box", "top")], (0, 0, -9.81)
    )
    q, goal = np.array([0.2, 0.4]), np.array([0.5, -0.3])
    target = assembly.frame_pose(goal, "arm/tip", t=0.0)
    law = assembly_law(assembly, {"arm/tip": target}, 60.0, 12.0)
    run = rm.simulate_assembly(assembly, q, np.zeros(2), 6.0, rate=100.0, torque=law)
    assert np.abs(run.q[-1] - goal).max() < 2e-3


def test_refusals_of_the_law_of_assemblies():
    assembly = rm.Assembly({"a": arm(), "own": WheelBody()}, [("own", "a", "tip")])
    x = dq.identity()
    for targets, words in (
        ({}, "at least one target"),
        ({"own/tip": x}, "target of 'own/tip': subsystem 'own' is not a robot"),
        ({"b/tip": x}, "no subsystem named 'b'"),
        ({"a/nose": x}, "no body or frame named 'nose'"),
        ({"a/tip": 2.0 * x}, "target of 'a/tip' is not a pose"),
    ):
        with pytest.raises(rm.RemoraError, match=words):
            assembly_law(assembly, targets, 1.0, 1.0)
    with pytest.raises(rm.RemoraError, match="kv must be positive"):
        assembly_law(assembly, {"a/tip": x}, 1.0, 0.0)


def test_refusals():
    robot = two_arms()
    x = dq.identity()
    make = rm.control.EndEffectorWrenchControl
    with pytest.raises(rm.RemoraError, match="no choice for law of an end effector wrench"):
        make(robot, {"stem/tip": x}, 1.0, 1.0, "pd")
    with pytest.raises(rm.RemoraError, match="no body or frame named 'nose'"):
        make(robot, {"nose": x}, 1.0, 1.0)
    with pytest.raises(rm.RemoraError, match="kv of an end effector wrench control must be fin"):
        make(robot, {"stem/tip": x}, 1.0, -1.0)
    with pytest.raises(rm.RemoraError, match="at least one target"):
        make(robot, {}, 1.0, 1.0)
    with pytest.raises(rm.RemoraError, match="target of 'stem/tip' is not a pose"):
        make(robot, {"stem/tip": 2.0 * x}, 1.0, 1.0)
    with pytest.raises(rm.RemoraError, match="no body or frame named 'stem/tip'"):
        rm.System(arm(), [make(robot, {"stem/tip": x}, 1.0, 1.0)])
