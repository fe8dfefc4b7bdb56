"""Components at one state, against their stated formulas in plain NumPy: nothing is simulated."""

import numpy as np
import pytest

import remora as rm
from arms import arm, wheeled
from laws_on_small_robots import acting, state, values
from remora.algebra import pose, quaternion
from remora.components.joint_signals import joint_forces, joint_signal
from remora.control.laws import resolved_rate
from remora.control.references import time_laws

ARM = arm(2)
WHEELED = wheeled(3)
TURN = np.array([0.6, -0.9, 0.4])
SPEED = np.array([0.03, -0.02, 0.05])


def rotation(vector):
    """Return the matrix of a rotation vector by Rodrigues' formula."""
    angle = np.linalg.norm(vector)
    x, y, z = vector / angle
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def turned(vector, position=(0.0, 0.0, 0.0)):
    return pose.from_parts(quaternion.exp(0.5 * np.asarray(vector)), np.asarray(position))


def test_an_admittance_moves_the_reference_in_inertial_axes():
    mass, damping, stiffness, h = np.array([2.0, 3, 4]), np.array([5.0, 6, 7]), 8.0, 0.1
    law = rm.control.Admittance(mass, damping, stiffness, sample_time=h)
    x, force = np.array([0.1, -0.2, 0.3]), np.array([1.0, -2.0, 0.5])
    inputs = {"force": force, "reference_pose": turned(TURN, (1, 2, 3)),
              "reference_twist": np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])}  # fmt: skip
    at = state(law, ARM, rm.neutral(ARM), np.zeros(ARM.nv), inputs,
               memory={"displacement": x, "speed": SPEED})  # fmt: skip
    found = law.outputs(at)
    assert np.allclose(found["pose"], turned(TURN, np.add(x, [1, 2, 3])), atol=1e-15)
    own = rotation(TURN).T @ SPEED
    assert np.allclose(found["twist"], [0.1, 0.2, 0.3, *np.add(own, [0.4, 0.5, 0.6])], atol=1e-15)
    after = law.update(at)
    now = after["speed"]
    assert np.allclose(
        mass * (now - SPEED) / h + damping * now + stiffness * (x + h * now), force, atol=1e-12
    )
    assert np.allclose(after["displacement"], x + h * now, atol=1e-15)


def test_a_pid_takes_back_what_its_limit_cuts_off():
    law = rm.control.JointPID(20.0, 12.0, 3.0, limit=3.0, sample_time=0.1)
    q, v = rm.neutral(ARM), np.zeros(ARM.nv)
    v[6:], q[8:] = (0.2, -0.1), (0.3, -0.4)
    off, past = np.array([0.5, -0.04]), np.array([0.02, 0.01])
    at = state(law, ARM, q, v, {"position": q[8:] + off}, memory={"integral": past})
    demand = 20.0 * off + 12.0 * past - 3.0 * v[6:]
    torque = np.clip(demand, -3.0, 3.0)
    assert demand[0] > 3.0 > abs(demand[1])
    assert np.allclose(law.outputs(at)["torque"], torque, atol=1e-14)
    expected = past + 0.1 * (off + (torque - demand) / 20.0)
    assert np.allclose(law.update(at)["integral"], expected, atol=1e-15)


def test_a_servo_of_rates_cuts_torques_off_at_its_limit_both_ways():
    q, v = rm.neutral(ARM), np.zeros(ARM.nv)
    q[8:], inputs = (0.3, -0.4), {"rate": np.array([0.9, -0.05])}
    demand = values(rm.control.JointRateServo(gain=5.0), ARM, q, v, inputs)["torque"]
    limit = 0.5 * np.abs(demand).sum()  # between the two
    for sign in (1.0, -1.0):
        own = {"rate": sign * inputs["rate"]}
        torque = values(rm.control.JointRateServo(gain=5.0, limit=limit), ARM, q, v, own)["torque"]
        assert np.allclose(torque, sign * np.clip(demand, -limit, limit), atol=1e-12)
    assert np.abs(demand).min() < limit < np.abs(demand).max()


@pytest.mark.parametrize(
    ("size", "was", "on"), [(0.5, 0, 0), (0.5, 1, 1), (0.05, 1, 0), (0.9, 0, 1), (0.9, 1, 1)]
)
def test_a_desaturation_goes_on_above_one_momentum_and_off_below_another(size, was, on):
    law = rm.control.WheelDesaturation(0.5, 0.2, 0.8, 0.1, sample_time=0.2)
    h = size * np.array([2.0, -1.0, 2.0]) / 3.0
    at = state(law, WHEELED, rm.neutral(WHEELED), np.zeros(WHEELED.nv), {"momentum": h},
               memory={"on": np.array(float(was))})  # fmt: skip
    found = law.outputs(at)
    assert (found["firing"], law.update(at)["on"]) == (on, on)
    assert np.allclose(found["torque"], on * np.clip(-0.5 * h, -0.2, 0.2), atol=1e-15)


def test_a_gyro_measures_in_its_own_axes_and_walks_with_the_root_of_time():
    gyro = rm.sensors.RateGyro("bus", bias=(0.1, 0.2, 0.3), noise=0.01, drift=0.3, sample_time=0.04)
    q, v = rm.neutral(ARM), np.zeros(ARM.nv)
    q[:8], v[:3] = turned(TURN), SPEED
    noise = {"noise": np.array([1.0, -2.0, 3.0]), "walk": np.array([0.5, 1.5, -1.0])}
    walk = np.array([0.4, 0.5, 0.6])
    at = state(gyro, ARM, q, v, {}, memory={"walk": walk}, noise=noise)
    expected = SPEED + [0.1, 0.2, 0.3] + walk + 0.01 * noise["noise"]
    assert np.allclose(gyro.outputs(at)["rate"], expected, atol=1e-15)
    assert np.allclose(gyro.update(at)["walk"], walk + 0.06 * noise["walk"], atol=1e-15)


@pytest.mark.parametrize("level", [0.5, 3.0])
def test_a_threshold_of_a_norm_is_zero_at_its_level(level):
    limit = rm.sensors.Threshold(level, "N", 3)
    q, v = rm.neutral(ARM), np.zeros(ARM.nv)
    for size in (0.99, 1.0, 1.01):
        at = state(limit, ARM, q, v, {"signal": size * level * np.array([2.0, -1.0, 2.0]) / 3.0})
        crossed = float(limit.crossings(at)["crossed"])
        assert crossed == pytest.approx((size**2 - 1.0) * level**2, abs=1e-14)


def pair(turn, place, rate=(0, 0, 0), speed=(0, 0, 0)):
    """Return two bodies that move freely, with body b seen from the grapple on a, which is turned.

    Frame `fixture` is b itself.
    """
    builder = rm.Builder("pair").body("a", mass=20.0, inertia=(2, 3, 4))
    builder = builder.joint("base", "free", None, "a").body("b", mass=5.0, inertia=(0.5, 0.6, 0.8))
    builder = builder.joint("gap", "free", "a", "b")
    robot = builder.frame("grapple", "a").frame("fixture", "b").build()
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[:8], q[8:] = turned(TURN, (1.0, 2.0, 3.0)), turned(turn, place)
    v[6:9], v[9:] = rate, speed
    return robot, q, v


def test_springs_of_a_capture_turn_from_rest_to_now_in_the_axes_of_the_grapple():
    rest, now = np.array([0.3, 0.5, -0.2]), np.array([-0.4, 0.2, 0.7])
    robot, q, v = pair(now, (0.06, -0.02, 0.03))
    law = rm.world.CompliantCapture("grapple", "fixture", 0.1, 0.2, 0.1, 400.0, 0.0, 40.0, 0.0)
    memory = {"stage": np.array(1.0), "rest": turned(rest, (0.05, 0.01, 0.0))}
    found = law.outputs(state(law, robot, q, v, {}, memory=memory))
    assert np.allclose(found["force"], -400.0 * np.array([0.01, -0.03, 0.03]), atol=1e-12)
    R = rotation(now) @ rotation(rest).T
    angle = np.arccos(0.5 * (np.trace(R) - 1.0))
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    turn = 0.5 * angle / np.sin(angle) * axis
    assert np.allclose(found["torque"], -40.0 * turn, atol=1e-12)
    energy = 0.5 * (400.0 * (0.01**2 + 2 * 0.03**2) + 40.0 * angle**2)
    assert found["energy"] == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("beyond", [None, "distance", "angle", "speed"])
def test_a_capture_needs_distance_angle_and_speed_within_their_limits(beyond):
    """Each just within its limit, but for one that is just beyond."""
    part = {name: 1.001 if name == beyond else 0.999 for name in ("distance", "angle", "speed")}
    robot, q, v = pair(
        part["angle"] * 1.2 * np.array([2.0, 1.0, -2.0]) / 3.0,
        part["distance"] * 0.1 * np.array([1.0, 2.0, 2.0]) / 3.0,
        speed=part["speed"] * 0.3 * np.array([2.0, 2.0, -1.0]) / 3.0,
    )
    law = rm.world.CompliantCapture("grapple", "fixture", 0.1, 1.2, 0.3, 400.0)
    found = law.crossings(state(law, robot, q, v))
    assert (found["captured"] < 0.0) == (beyond is None)
    assert (found["missed"] < 0.0) == (beyond != "distance")


def test_an_impedance_damps_only_what_does_not_move_the_frame():
    """Torques of `joint_damping`: -k H N v with N the projector on the null space, in H."""
    robot = rm.load("servicer", base="fixed")
    q, v = np.radians([10.0, 40, -20, -60, 30, 50, 15]), np.linspace(-0.3, 0.4, 7)
    inputs = {"pose": rm.frame_pose(robot, q, "tool")}
    laws = [
        rm.control.Impedance("tool", 30.0, 20.0, base="fixed", joint_damping=k) for k in (0.0, 2.0)
    ]
    none, damped = (values(law, robot, q, v, inputs)["torque"] for law in laws)
    H, A = rm.mass_matrix(robot, q), rm.jacobian(robot, q, "tool")
    inverse = np.linalg.solve(H, A.T) @ np.linalg.inv(A @ np.linalg.solve(H, A.T))
    still = v - inverse @ (A @ v)
    assert np.linalg.norm(still) > 0.1
    assert np.allclose(damped - none, -2.0 * H @ still, atol=1e-9)


@pytest.mark.parametrize(
    ("law", "base"),
    [
        (rm.control.OperationalComputedTorque, "fixed"), (rm.control.FramePoseTracking, "fixed"),
        (rm.control.CoordinatedTracking, "free"),
    ],
)  # fmt: skip
def test_tracking_laws_damp_only_what_does_not_move_the_frame(law, base):
    """Torques of `joint_damping`: -k H N v with N = 1 - J⁺J of the joints."""
    robot = rm.load("servicer", base=base)
    free = robot.nv - 7
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[-7:], v[free:] = np.radians([10.0, 40, -20, -60, 30, 50, 15]), np.linspace(-0.3, 0.4, 7)
    more = {"base": "fixed"} if base == "fixed" else {}
    gains = (4.0, 3.0) if base == "fixed" else (4.0, 3.0, 2.0, 1.0)
    inputs = {"pose": rm.frame_pose(robot, q, "tool")}
    laws = [law("tool", *gains, joint_damping=k, **more) for k in (0.0, 2.0)]
    none, damped = (values(own, robot, q, v, inputs)["torque"] for own in laws)
    J = rm.jacobian(robot, q, "tool")[:, free:]
    still = v[free:] - np.linalg.pinv(J) @ (J @ v[free:])
    assert np.linalg.norm(still) > 0.1
    H = rm.mass_matrix(robot, q)[free:, free:]
    assert np.allclose(damped - none, -2.0 * H @ still, atol=1e-9)


def wrenches(component, robot, q, v):
    """Return force and torque about the frame's origin, inertial axes, by frame."""
    return {w.frame: (w.force, w.torque) for w in np.atleast_1d(acting(component, robot, q, v))}


def test_springs_and_walls_push_back_with_damping():
    place, speed = np.array([0.3, -0.4, 1.2]), np.array([0.5, 0.2, -0.1])
    robot, q, v = pair((0, 0, 0), place, speed=speed)  # both bodies have the axes of a
    R = rotation(TURN)
    n = place / 1.3
    tension = 20.0 * (1.3 - 0.9) + 7.0 * n @ speed
    pulls = wrenches(rm.world.Spring(("grapple", "fixture"), 20.0, 0.9, 7.0), robot, q, v)
    assert np.allclose(pulls["grapple"][0], R @ (tension * n), atol=1e-12)
    assert np.allclose(pulls["fixture"][0], -R @ (tension * n), atol=1e-12)
    at, up = np.array([1.0, 2.0, 3.0]) + R @ place, np.array([2.0, -1.0, 2.0]) / 3.0
    leaving = np.sign(up @ (R @ speed))
    for way in (leaving, -leaving, 50.0 * leaving):  # the last so fast that it would be pulled
        wall = rm.world.Wall("fixture", at + 0.1 * up, up, 300.0, 20.0)
        push = max(300.0 * 0.1 - 20.0 * way * up @ (R @ speed), 0.0)
        force, _ = wrenches(wall, robot, q, np.concatenate([v[:9], way * v[9:]]))["fixture"]
        assert np.allclose(force, push * up, atol=1e-12)


def test_a_bushing_acts_on_both_frames_at_one_point():
    robot, q, v = pair((0.1, 0.2, 0.3), (0.3, -0.4, 1.2), rate=(0.2, 0.1, 0.4), speed=(3, 0, 1))
    v[:6] = 0.5, -0.4, 0.3, 0.2, 0.1, -0.6  # of both
    loads = wrenches(rm.world.Bushing(("grapple", "fixture"), 50.0, 3.0, 9.0, 2.0), robot, q, v)
    (force, torque), (back, counter) = loads["fixture"], loads["grapple"]
    assert np.allclose(back, -force, atol=1e-12)
    apart = rotation(TURN) @ [0.3, -0.4, 1.2]
    assert np.allclose(torque + counter + np.cross(apart, force), 0.0, atol=1e-12)
    assert np.linalg.norm(np.cross(apart, force)) > 1.0
    turn = rotation([0.1, 0.2, 0.3])
    pull = -50.0 * np.array([0.3, -0.4, 1.2]) - 3.0 * turn @ [3.0, 0.0, 1.0]
    twist = -9.0 * np.array([0.1, 0.2, 0.3]) - 2.0 * turn @ [0.2, 0.1, 0.4]
    assert np.allclose(force, rotation(TURN) @ pull, atol=1e-12)
    assert np.allclose(torque, rotation(TURN) @ twist, atol=1e-12)


def thrusters(arms):
    """Return a bus with a pair of thrusters along each axis, off its centre, in oblique frames."""
    made = rm.Builder("pushed").body("bus", mass=20.0, inertia=(2.0, 3.0, 4.0))
    names = []
    for k, (axis, at) in enumerate((a, p) for a in np.eye(3) for p in arms):
        for sign in (1.0, -1.0):
            x = sign * axis
            y = np.roll(axis, 1)
            R = np.column_stack([x, y, np.cross(x, y)])
            x = pose.from_rotation_matrix(R, np.asarray(at))
            names.append(f"t{k}{sign:+.0f}")
            made.frame(names[-1], "bus", placement=x)
    return made.build(), tuple(names)


@pytest.mark.parametrize("size", [0.2, 5.0])
def test_thrusters_exert_what_is_demanded_or_a_part_of_it(size):
    robot, names = thrusters([(0.5, 0.4, 0.1), (-0.3, 0.2, 0.6), (0.2, -0.7, -0.5)])
    law = rm.actuators.ThrusterSet(names, 1.0)
    torque, force = size * np.array([0.3, -0.2, 0.1]), size * np.array([0.5, 0.4, -0.6])
    given = {"torque": torque, "force": force}
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    out = values(law, robot, q, v, given)
    u = out["thrust"]
    assert np.all(u >= 0.0)
    assert u.max() <= 1.0 + 1e-12
    exerted = np.zeros(6)
    for name, push in zip(names, u, strict=True):
        x = robot.frame(name).placement
        f = push * pose.to_rotation_matrix(x)[:, 0]
        exerted += [*np.cross(pose.translation(x), f), *f]
    wrench = acting(law, robot, q, v, given)
    assert wrench.frame == "bus"
    assert np.allclose([*wrench.torque, *wrench.force], exerted, atol=1e-12)
    assert np.allclose(out["exerted"], exerted[:3], atol=1e-12)
    demand = np.concatenate([torque, force])
    scale = exerted @ demand / (demand @ demand)
    assert np.allclose(exerted, scale * demand, atol=1e-9)
    if size < 1.0:
        assert scale == pytest.approx(1.0, rel=1e-9)
    else:
        assert scale < 0.9
        assert u.max() == pytest.approx(1.0)


def test_a_desaturation_pushes_the_base_unless_something_else_does():
    h = np.array([1.0, -2.0, 0.5])
    q, v = rm.neutral(WHEELED), np.zeros(WHEELED.nv)
    law = rm.control.WheelDesaturation(0.5, 0.6, 0.2, 0.1, sample_time=0.2)
    wrench = acting(law, WHEELED, q, v, {"momentum": h})
    assert wrench.frame == WHEELED.bodies[0].name
    assert np.allclose(wrench.torque, [-0.5, 0.6, -0.25], atol=1e-15)
    other = rm.control.WheelDesaturation(0.5, 0.6, 0.2, 0.1, torque_output=True, sample_time=0.2)
    assert acting(other, WHEELED, q, v, {"momentum": h}) is None


@pytest.mark.parametrize("limit", [None, 1.5])
def test_an_actuator_lags_behind_its_limited_command(limit):
    lag = rm.actuators.FirstOrderActuator(tuple(ARM.joints.names[1:]), "", 0.25, limit)
    command, now = np.array([2.0, -3.0]), np.array([0.5, 0.7])
    at = state(lag, ARM, rm.neutral(ARM), np.zeros(ARM.nv), {"command": command},
               lags={"lagged": now})  # fmt: skip
    wanted = command if limit is None else np.clip(command, -limit, limit)
    assert np.allclose(lag.derivative(at)["lagged"], (wanted - now) / 0.25, atol=1e-12)
    pushes = {force.joint: force.value for force in lag.act(at)}
    assert pushes == {name: [x] for name, x in zip(ARM.joints.names[1:], now, strict=True)}
    assert np.array_equal(lag.outputs(at)["torque"], now)


@pytest.mark.parametrize("t", [0.3, 1.1, 1.9])
def test_a_circle_is_about_the_part_of_its_normal_across_the_radius(t):
    center, start = np.array([0.2, 0.1, -0.3]), np.array([1.2, 0.6, 0.1])
    normal = np.array([0.4, 0.5, 3.0])
    turn = quaternion.from_rpy(np.array([0.3, 0.2, -0.5]))
    law = rm.control.CircleReference(
        start, center, normal, 2.0, orientation=turn, turns=-0.75, start=0.2
    )
    q, v = rm.neutral(ARM), np.zeros(ARM.nv)
    arm_ = start - center
    n = normal - arm_ * (normal @ arm_) / (arm_ @ arm_)
    n = n / np.linalg.norm(n)

    def place(t):
        s = np.clip((t - 0.2) / 2.0, 0.0, 1.0)
        angle = -0.75 * 2.0 * np.pi * s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
        return center + rotation(angle * n) @ arm_

    found = values(law, ARM, q, v, t=t)
    assert np.allclose(pose.translation(found["pose"]), place(t), atol=1e-12)
    h = 1e-4
    R = pose.to_rotation_matrix(found["pose"])
    speed = R @ found["twist"][3:]
    assert np.allclose(speed, (place(t + h) - place(t - h)) / (2 * h), atol=1e-6)
    push = R @ found["twist_rate"][3:]
    assert np.allclose(push, (place(t + h) - 2 * place(t) + place(t - h)) / h**2, atol=1e-5)
    assert np.array_equal(found["twist"][:3], np.zeros(3))
    assert law.interface(ARM).breaks == pytest.approx((0.2, 0.7, 1.7, 2.2))
    with pytest.raises(rm.errors.InvalidValue, match="must not point along its radius"):
        rm.control.CircleReference(start, center, 2.0 * arm_, 2.0)
    rm.control.CircleReference(start, center, start, 2.0)


def test_rates_draw_joints_to_the_middles_of_their_ranges():
    robot = (
        rm.Builder("ranges").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0))
        .body("a", mass=1.0).body("b", mass=1.0)
        .joint("one", "revolute", "bus", "a", axis=(0, 0, 1), lower=-0.5, upper=1.5)
        .joint("two", "revolute", "a", "b", axis=(0, 0, 1), lower=-0.5)
        .build()
    )  # fmt: skip
    middles, held = resolved_rate._middles(robot, ("one", "two"))
    assert (middles.tolist(), held.tolist()) == ([0.5, 0.0], [1.0, 0.0])


@pytest.mark.parametrize(("rate", "acceleration"), [(0.5, 9.0), (2.0, 1.0), (0.5, np.inf)])
def test_the_shortest_times_are_at_a_limit(rate, acceleration):
    for name in ("minimum_jerk", "trapezoidal"):
        duration, ramp = time_laws.shortest_time(name, rate, acceleration)
        t = np.linspace(0.0, duration, 20_001)
        travel = time_laws.time_law(name)(t, duration, ramp)
        fastest, hardest = np.abs(travel.rate).max(), np.abs(travel[2]).max()
        assert travel.s[-1] == pytest.approx(1.0, abs=1e-9)
        assert fastest <= rate * (1 + 1e-9)
        assert hardest <= acceleration * (1 + 1e-6)
        if np.isfinite(acceleration):
            assert max(fastest / rate, hardest / acceleration) == pytest.approx(1.0, rel=1e-6)
        else:
            assert fastest == pytest.approx(rate, rel=1e-6)
        if name == "minimum_jerk":
            assert ramp == 0.25 * duration


def test_laws_of_the_base_act_unless_they_are_outputs_only():
    q, v = rm.random_state(ARM, 5)
    push = {"acceleration": np.array([0.3, -0.2])}
    goal = {"base_pose": turned(TURN, (1, 2, 3)), "base_twist": np.zeros(6)}
    H, c = rm.mass_matrix(ARM, q), rm.bias_force(ARM, q, v)
    expected = H[:6, 6:] @ push["acceleration"] + c[:6]
    for law, given in (
        (rm.control.BaseReactionCompensation, push),
        (rm.control.BasePoseTracking, goal),
    ):
        gains = () if law is rm.control.BaseReactionCompensation else (2.0, 3.0)
        (force,) = np.atleast_1d(acting(law(*gains), ARM, q, v, given))
        name = "force" if law is rm.control.BaseReactionCompensation else "wrench"
        whole = values(law(*gains), ARM, q, v, given)[name]
        assert force.joint == ARM.joints[0].name
        assert np.array_equal(force.value, whole)
        torque = values(law(*gains, torque_only=True), ARM, q, v, given)[name]
        assert np.array_equal(torque, [*whole[:3], 0.0, 0.0, 0.0])
        assert acting(law(*gains, acts=False), ARM, q, v, given) is None
        if law is rm.control.BaseReactionCompensation:
            assert np.allclose(whole, expected, atol=1e-12)


def test_signals_of_joints_have_a_unit_only_if_all_have_it():
    robot = (
        rm.Builder("mixed").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0))
        .body("a", mass=1.0).body("b", mass=1.0).body("c", mass=1.0)
        .joint("slide", "prismatic", "bus", "a", axis=(0, 0, 1))
        .joint("one", "revolute", "a", "b", axis=(0, 0, 1))
        .joint("two", "revolute", "b", "c", axis=(0, 0, 1)).build()
    )  # fmt: skip
    assert joint_signal(robot, ("one", "two"), "speed_unit").unit == "rad/s"
    assert joint_signal(robot, ("slide",), "force_unit").unit == "N"
    assert joint_signal(robot, ("slide", "one"), "force_unit").unit == ""
    forces = joint_forces(robot, ("two", "slide"), np.array([1.0, 2.0]))
    assert [(f.joint, f.value.tolist()) for f in forces] == [("two", [1.0]), ("slide", [2.0])]


@pytest.mark.parametrize("level", [2.0, -2.0])
def test_a_norm_is_never_below_a_negative_level(level):
    watch = rm.sensors.Threshold(level, size=2)
    at = state(watch, ARM, rm.neutral(ARM), np.zeros(ARM.nv), {"signal": np.array([0.6, 0.8])})
    assert watch.crossings(at)["crossed"] == pytest.approx(1.0 - level * abs(level))


def test_computed_torques_damp_only_what_does_not_move_the_frame():
    robot = arm(3, "planar", spread=False)
    q, v = rm.random_state(robot, 6)
    given = {"pose": rm.frame_pose(robot, q, "tool"), "twist": np.zeros(6)}

    def torque(damping):
        law = rm.control.OperationalComputedTorque(
            "tool", 4.0, 4.0, rows=("vx", "vy"), base="fixed", joint_damping=damping
        )
        return values(law, robot, q, v, given)["torque"]

    own = slice(robot.nv - 3, robot.nv)
    R = pose.to_rotation_matrix(given["pose"])
    J = (R @ rm.jacobian(robot, q, "tool")[3:, own])[:2]
    still = (np.eye(3) - np.linalg.pinv(J) @ J) @ v[own]
    assert np.linalg.norm(still) > 0.05
    push = np.linalg.solve(rm.mass_matrix(robot, q)[own, own], torque(2.0) - torque(0.0))
    assert np.allclose(push, -2.0 * still, atol=1e-9)
