"""Laws of torques: the acceleration that forward dynamics gives is the one that they state."""

import numpy as np
import pytest

import remora as rm
from arms import arm
from laws_on_small_robots import POSE, TWIST, values
from remora.algebra import dual_quaternion, pose, quaternion, screw

SERVICER = rm.load("servicer")
RATE = np.array([0.02, 0.01, -0.03, 0.01, 0.02, -0.01])
MOVING = {"pose": POSE, "twist": TWIST, "twist_rate": RATE}
KP, KV = np.arange(1.0, 7.0), np.arange(2.0, 8.0)


def state(seed, robot=SERVICER):
    q, v = rm.random_state(robot, seed)
    return q, 0.3 * v  # with momentum


def accelerated(robot, q, v, torque, wrench=None, wrenches=None):
    n0 = robot.nv - len(torque)
    tau = np.concatenate([np.zeros(n0) if wrench is None else wrench, torque])
    return rm.forward_dynamics(robot, q, v, tau, wrenches)


def inertial(robot, q, frame, x):
    R = pose.to_rotation_matrix(rm.frame_pose(robot, q, frame))
    return np.concatenate([R @ x[:3], R @ x[3:]])


def frame_motion(robot, q, v, vdot, frame):
    """Return twist and acceleration of a frame in inertial axes."""
    own, rate = (
        rm.frame_twist(robot, q, v, frame),
        rm.dynamics.frame_acceleration(robot, q, v, vdot, frame),
    )
    rate = rate + np.concatenate([np.zeros(3), np.cross(own[:3], own[3:])])
    return inertial(robot, q, frame, own), inertial(robot, q, frame, rate)


def wanted_motion(q, robot=SERVICER, frame="tool"):
    """Return error, rate and acceleration of the goal in inertial axes."""
    R = pose.to_rotation_matrix(POSE)
    x = rm.frame_pose(robot, q, frame)
    off = quaternion.mul(POSE[:4], quaternion.conjugate(x[:4]))
    error = np.concatenate([2 * quaternion.log(off), pose.translation(POSE) - pose.translation(x)])
    rate = RATE + np.concatenate([np.zeros(3), np.cross(TWIST[:3], TWIST[3:])])
    turned = [np.concatenate([R @ s[:3], R @ s[3:]]) for s in (np.asarray(TWIST), rate)]
    return error, *turned


@pytest.mark.parametrize("seed", range(3))
def test_servo_and_computed_torque_of_joints_give_the_accelerations_they_state(seed):
    q, v = state(seed)
    rng = np.random.default_rng(seed)
    position, velocity, push = rng.normal(size=(3, 7))
    inputs = {"rate": velocity, "acceleration": push}
    tau = values(rm.control.JointRateServo(gain=KV[0] + np.arange(7)), SERVICER, q, v, inputs)[
        "torque"
    ]
    expected = push + (KV[0] + np.arange(7)) * (velocity - v[6:])
    assert np.abs(accelerated(SERVICER, q, v, tau)[6:] - expected).max() < 1e-9
    inputs = {"position": position, "velocity": velocity, "acceleration": push}
    tau = values(rm.control.JointComputedTorque(4.0, 3.0), SERVICER, q, v, inputs)["torque"]
    expected = push + 4.0 * (position - q[8:]) + 3.0 * (velocity - v[6:])
    assert np.abs(accelerated(SERVICER, q, v, tau)[6:] - expected).max() < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_operational_computed_torque_gives_the_frame_its_acceleration(seed):
    q, v = state(seed)
    law = rm.control.OperationalComputedTorque("tool", KP, KV)
    vdot = accelerated(SERVICER, q, v, values(law, SERVICER, q, v, MOVING)["torque"])
    actual, found = frame_motion(SERVICER, q, v, vdot, "tool")
    error, rate, push = wanted_motion(q)
    expected = push + KV * (rate - actual) + KP * error
    assert np.abs(found - expected).max() < 1e-8 * np.abs(expected).max()


def test_operational_computed_torque_with_rows_of_the_base():
    q, v = state(3)
    base = {"base_pose": rm.poses(SERVICER, q)[0]}
    law = rm.control.OperationalComputedTorque(
        "tool", KP, KV, rows="position", base_rows="orientation"
    )
    tau = values(law, SERVICER, q, v, {**MOVING, **base})["torque"]
    vdot = accelerated(SERVICER, q, v, tau)
    actual, found = frame_motion(SERVICER, q, v, vdot, "bus")
    assert np.abs(found[:3] + KV[:3] * actual[:3]).max() < 1e-8  # the attitude comes to rest
    actual, found = frame_motion(SERVICER, q, v, vdot, "tool")
    error, rate, push = wanted_motion(q)
    expected = push + KV * (rate - actual) + KP * error
    assert np.abs(found - expected)[3:].max() < 1e-8


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_impedance_yields_to_a_force_as_a_spring_and_damper_with_the_arms_inertia(base):
    robot = rm.load("servicer", base=base)
    q, v = state(4, robot)
    A = np.random.default_rng(4).normal(size=(6, 6))
    K, D = A @ A.T + np.eye(6), np.diag(KV)
    law = rm.control.Impedance("tool", K, D, base="floating" if base == "free" else "fixed")
    tau = values(law, robot, q, v, MOVING)["torque"]
    push = np.array([0.3, -0.2, 0.5, 1.0, 2.0, -1.0])  # [torque, force], inertial axes
    x = rm.frame_pose(robot, q, "tool")
    back = pose.to_rotation_matrix(x).T
    own = np.concatenate([back @ push[3:], back @ push[:3]])
    frame = robot.frame("tool")
    wrenches = np.zeros((len(robot.bodies), 6))
    wrenches[frame.body] = screw.adjoint(frame.placement, own)
    vdot = accelerated(robot, q, v, tau, wrenches=wrenches)
    actual, found = frame_motion(robot, q, v, vdot, "tool")
    error, rate, ahead = wanted_motion(q, robot)
    H, J = rm.mass_matrix(robot, q), rm.jacobian(robot, q, "tool")
    J = np.array([inertial(robot, q, "tool", column) for column in J.T]).T
    n0 = robot.nv - 7
    recoil = J[:, :n0] @ np.linalg.solve(H[:n0, :n0], J[:, :n0].T) if n0 else np.zeros((6, 6))
    mobility = J @ np.linalg.solve(H, J.T) - recoil  # of the frame by the joints
    left = np.linalg.solve(mobility, ahead - found) + D @ (rate - actual) + K @ error
    right = push + np.linalg.solve(mobility, recoil @ push)
    assert np.abs(left + right).max() < 1e-7 * np.abs(K @ error).max()


def test_transpose_jacobian_is_a_virtual_spring_and_damper():
    q, v = state(5)
    law = rm.control.TransposeJacobian("tool", KP, KV, joint_damping=0.5)
    tau = values(law, SERVICER, q, v, {"pose": POSE, "twist": TWIST})["torque"]
    error, rate, _ = wanted_motion(q)
    actual = inertial(SERVICER, q, "tool", rm.frame_twist(SERVICER, q, v, "tool"))
    force = KP * error + KV * (rate - actual)
    J = rm.generalized_jacobian(SERVICER, q, "tool")
    J = np.array([inertial(SERVICER, q, "tool", column) for column in J.T]).T
    assert np.abs(tau - J.T @ force + 0.5 * v[6:]).max() < 1e-10
    # at rest at the goal nothing acts
    here = {"pose": rm.frame_pose(SERVICER, q, "tool")}
    assert np.abs(values(law, SERVICER, q, 0 * v, here)["torque"]).max() < 1e-12


def test_base_reaction_compensation_keeps_the_base_from_accelerating():
    q, v = state(6)
    push = np.random.default_rng(6).normal(size=7)
    found = values(rm.control.BaseReactionCompensation(), SERVICER, q, v, {"acceleration": push})[
        "force"
    ]
    tau = rm.inverse_dynamics(SERVICER, q, v, np.concatenate([np.zeros(6), push]))
    assert np.abs(found - tau[:6]).max() < 1e-11 * np.abs(tau).max()
    alone = values(
        rm.control.BaseReactionCompensation(torque_only=True),
        SERVICER,
        q,
        v,
        {"acceleration": push},
    )["force"]
    assert np.array_equal(alone, [*found[:3], 0, 0, 0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_screw_errors_decay_as_they_state_whichever_sign_the_pose_has(sign):
    """ξ̇ = -k_p 2 log x̃ - k_v ξ̃ + ...; with a moving reference, the error's own rate is checked."""
    q, v = state(7)
    inputs = {**MOVING, "pose": sign * POSE}
    found = values(rm.control.FramePoseTracking("tool", KP, KV), SERVICER, q, v, inputs)
    vdot = accelerated(SERVICER, q, v, found["torque"])

    def errors(t):
        """Return 2 log x̃ and ξ̃ a little later, along the motion of robot and reference."""
        q_t = rm.integrate(SERVICER, q, t * v + 0.5 * t * t * vdot)
        goal = dual_quaternion.mul(POSE, dual_quaternion.exp(0.5 * (t * np.array(TWIST))))
        twist_goal = np.array(TWIST) + t * RATE
        x = dual_quaternion.mul(
            dual_quaternion.conjugate(goal), rm.frame_pose(SERVICER, q_t, "tool")
        )
        twist = rm.frame_twist(SERVICER, q_t, v + t * vdot, "tool")
        return 2 * dual_quaternion.log(x), twist - screw.adjoint_inverse(x, twist_goal)

    h = 1e-5
    rate = (errors(h)[1] - errors(-h)[1]) / (2 * h)
    error, lag = errors(0.0)
    assert np.abs(rate + KP * error + KV * lag).max() < 1e-5 * np.abs(KP * error).max()
    assert np.abs(found["error"] - error).max() < 1e-12


def test_coordinated_tracking_gives_base_and_tool_their_accelerations():
    q, v = state(8)
    base = {"base_pose": POSE, "base_twist": TWIST, "base_twist_rate": RATE}
    law = rm.control.CoordinatedTracking("tool", KP, KV, KV, KP)
    found = values(law, SERVICER, q, v, {**MOVING, **base})
    vdot = accelerated(SERVICER, q, v, found["torque"], found["wrench"])
    for frame, kp, kv in (("bus", KV, KP), ("tool", KP, KV)):
        x = dual_quaternion.mul(dual_quaternion.conjugate(POSE), rm.frame_pose(SERVICER, q, frame))
        moved, rate = (screw.adjoint_inverse(x, np.asarray(s)) for s in (TWIST, RATE))
        lag = rm.frame_twist(SERVICER, q, v, frame) - moved
        expected = -kp * 2 * dual_quaternion.log(x) - kv * lag + rate + screw.cross(moved, lag)
        own = rm.dynamics.frame_acceleration(SERVICER, q, v, vdot, frame)
        assert np.abs(own - expected).max() < 1e-7 * np.abs(expected).max()


def test_base_tracking_of_a_robot_whose_joints_do_not_accelerate():
    q, v = state(9)
    inputs = {"base_pose": POSE, "base_twist": TWIST, "base_twist_rate": RATE}
    wrench = values(rm.control.BasePoseTracking(KP, KV), SERVICER, q, v, inputs)["wrench"]
    held = {name: np.zeros(1) for name in SERVICER.joints.names[1:]}
    tau = np.concatenate([wrench, np.zeros(7)])
    vdot, _ = rm.hybrid_dynamics(SERVICER, q, v, tau, held)
    x = dual_quaternion.mul(dual_quaternion.conjugate(POSE), q[:8])
    moved, rate = (screw.adjoint_inverse(x, np.asarray(s)) for s in (TWIST, RATE))
    lag = v[:6] - moved
    expected = -KP * 2 * dual_quaternion.log(x) - KV * lag + rate + screw.cross(moved, lag)
    assert np.abs(vdot[:6] - expected).max() < 1e-8


def test_a_pid_does_not_wind_up_and_leaves_no_error():
    """A constant load of 1 N m on a joint, a limit of 3 N m, and a reference that jumps far."""
    robot = arm(1, "fixed", spread=False)

    class Load(rm.Component):
        def act(self, at):
            return rm.JointForce("j0", -1.0)

    law = rm.control.JointPID(20.0, 12.0, 12.0, limit=3.0, sample_time=0.01)
    system = rm.System(robot, [law, Load()], {"joint_pid.position": [4.0]})
    run = rm.simulate(
        system, np.zeros(1), np.zeros(1), 25.0, record=0.1, physics=rm.Physics(limits="ignore")
    )
    assert np.abs(run.signals["joint_pid.torque"]).max() <= 3.0
    assert abs(run.q[-1, 0] - 4.0) < 1e-4
    # the same without taking back what the limit cuts off
    x, speed, integral, most = 0.0, 0.0, 0.0, 0.0
    for _ in range(2500):
        tau = np.clip(20.0 * (4.0 - x) + 12.0 * integral - 12.0 * speed, -3.0, 3.0) - 1.0
        integral += 0.01 * (4.0 - x)
        x, speed = x + 0.01 * speed + 0.5e-4 * tau / 0.835, speed + 0.01 * tau / 0.835
        most = max(most, x)
    assert run.q[:, 0].max() - 4.0 < 0.35 * (most - 4.0)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: rm.control.TransposeJacobian("tool", -1.0, 1.0),
            "kp of a transpose.* must be positive",
        ),
        (
            lambda: rm.control.JointComputedTorque(1.0, 0.0),
            "kd of a computed torque must be positive",
        ),
        (
            lambda: rm.control.Impedance("tool", np.diag([1, 1, 1, 1, 1, -1.0]), 1.0),
            "positive definite",
        ),
        (lambda: rm.control.Impedance("tool", np.triu(np.ones((6, 6))), 1.0), "symmetric"),
        (lambda: rm.control.Impedance("tool", np.eye(3), 1.0), "6 x 6"),
        (lambda: rm.control.Admittance(0.0, 1.0, sample_time=0.1), "mass of an admittance"),
        (lambda: rm.control.Admittance(1.0, 1.0), "needs a sample_time"),
        (lambda: rm.control.JointPID(1.0, -1.0, 1.0, sample_time=0.1), "ki of a joint_pid"),
        (lambda: rm.control.BasePoseTracking(0.0, 1.0), "kp of a pose tracking"),
        (lambda: rm.control.BasePoseTracking(1.0, 1.0, error="sine"), "logarithm, vector"),
        (
            lambda: rm.control.OperationalComputedTorque(
                "tool", 1, 1, base="fixed", base_rows="pose"
            ),
            "float",
        ),
        (lambda: rm.control.CoordinatedTracking("tool", 1, 1, 1, np.nan), "finite"),
        (lambda: rm.control.JointRateServo(gain=[1.0, 2.0, -1.0]), "gain of a servo"),
    ],
)
def test_gains_that_cannot_be_stable_are_refused(make, told):
    with pytest.raises(rm.RemoraError, match=told):
        make()
