"""Hardware in the loop: exchanged twists and wrenches, rates, convergence to the whole robot."""

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import arm
from remora.algebra import screw


def swinging():
    free = rm.random_robot(2, bodies=1, base="free")
    return rm.Assembly({"bus": free, "arm": arm()}, [("arm", "bus", "body_0")])


def test_without_black_boxes_it_is_simulate():
    assembly = swinging()
    q, v = assembly.random_state(1)
    run = rm.simulate_assembly(assembly, q, v, 0.5, rate=100.0, steps=2)
    whole = rm.simulate(assembly.to_robot(), q, v, duration=0.5)
    assert np.allclose(run.v[-1], whole.v[-1], atol=1e-7)
    sign = np.sign(run.q[-1, :8] @ whole.q[-1, :8])
    assert np.allclose(sign * run.q[-1, :8], whole.q[-1, :8], atol=1e-7)
    assert run.t.shape == (51,)


class Payload:
    """A live program: it computes the reaction of a rigid body from twists alone."""

    def __init__(self, period):
        self.inertia = screw.inertia(np.array(0.2), np.array([0.0, 0.0, 0.1]), 0.01 * np.eye(3))
        self.period, self.before, self.times = period, None, []

    def __call__(self, t, base):
        twist = base.twist
        before = twist if self.before is None else self.before
        rate = (twist - before) / self.period  # its own sensors: a difference
        self.before = twist
        self.times.append(float(t))
        momentum = screw.momentum(self.inertia, twist)
        wrench = screw.momentum(self.inertia, rate) + screw.cross(twist, momentum)
        return rm.papers.sa24.SensorReading(-wrench, time=t)


def test_a_live_program_behaves_like_the_body_it_stands_for():
    """The error of the exchange falls with the rate: the wrench lags by about a period."""
    links = [("load", "arm", "tip")]
    body = rm.Builder("load")
    body.body("load", 0.2, (0, 0, 0.1), 0.01 * np.eye(3))
    body.joint("weld", "fixed", None, "load")
    whole = rm.Assembly({"arm": arm(), "load": body.build()}, links)
    q, v = np.array([0.1, 0.4]), np.array([1.0, -0.5])
    exact = rm.simulate_assembly(whole, q, v, 0.5, rate=100.0)
    errors = []
    for rate in (50.0, 200.0):
        program = Payload(1.0 / rate)
        assembly = rm.Assembly({"arm": arm(), "load": rm.BlackBox(program, max_age=1e-3)}, links)
        run = rm.simulate_assembly(assembly, q, v, 0.5, rate=rate)
        assert np.allclose(program.times, np.arange(round(0.5 * rate)) / rate)  # once a tick
        told, answered = run.signals["load.twist"], run.signals["load.wrench"]
        assert np.allclose(told[:-1], run.frame_twist("arm/tip")[:-1], rtol=0, atol=1e-13)
        assert answered.shape == (round(0.5 * rate) + 1, 6)
        assert np.array_equal(answered[-1], answered[-2])  # held until the end
        errors.append(np.abs(run.v[-1] - exact.v[-1]).max())
    assert errors[1] < 0.4 * errors[0] < 0.02


def test_a_recording_in_the_loop_reproduces_the_recorded_run():
    """What was measured at the base of an arm moves the bus as the arm did."""
    assembly = swinging()
    q, v = assembly.random_state(3)
    v = 0.3 * v
    run = rm.simulate_assembly(assembly, q, v, 0.2, rate=400.0)
    robot = assembly.to_robot()
    loads = []
    for qk, vk in zip(run.q, run.v, strict=True):
        vdot = rm.forward_dynamics(robot, qk, vk, 0.0 * vk)
        loads.append(-assembly.joint_loads(qk, vk, vdot)[1].base)
    box = rm.BlackBox(rm.papers.sa24.SensorRecording(run.t, loads))
    again = rm.simulate_assembly(assembly.swap("arm", box), q[:8], v[:6], 0.2, rate=400.0)
    assert np.allclose(again.v[-1], run.v[-1, :6], atol=2e-3)
    with pytest.raises(rm.RemoraError, match=r"'arm' has no data at t = 0.202"):
        rm.simulate_assembly(assembly.swap("arm", box), q[:8], v[:6], 0.21, rate=400.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"duration": float("nan")}, "duration must be positive, not nan"),
        ({"duration": float("inf")}, "duration must be from"),
        ({"rate": 0.0}, "rate must be positive"),
        ({"rate": "fast"}, "rate must be"),
        ({"steps": 1.5}, r"steps must be a whole number, not float 1\.5"),
        ({"steps": 0}, "steps must be at least 1"),
    ],
)
def test_numbers_that_make_no_sense(change, words):
    assembly = swinging()
    arguments = {"duration": 0.1, "rate": 100.0, **change}
    with pytest.raises(rm.RemoraError, match=words):
        rm.simulate_assembly(assembly, np.zeros(assembly.nq), np.zeros(assembly.nv), **arguments)


def test_refusals():
    assembly = swinging()
    q, v = assembly.random_state(1)
    with pytest.raises(rm.RemoraError, match="must be a positive multiple of the period"):
        rm.simulate_assembly(assembly, q, v, 0.55, rate=10.0)
    with pytest.raises(rm.RemoraError, match="one state at a time"):
        rm.simulate_assembly(assembly, q[None], v[None], 0.5, rate=10.0)
    stale = rm.BlackBox(
        lambda t, base: rm.papers.sa24.SensorReading(np.zeros(6), time=0.0), max_age=0.05
    )
    with pytest.raises(
        rm.errors.SimulationError, match=r"'arm' has only stale data at t = 0.1 s"
    ) as no:
        rm.simulate_assembly(assembly.swap("arm", stale), q[:8], v[:6], 0.5, rate=10.0)
    assert no.value.recording.signals["arm.wrench"].shape == (2, 6)  # what was exchanged before


def moving_points(t, base):
    """A black box that carries others: a given motion of its point, and a wrench."""
    pose = rm.algebra.pose.from_xyz_rpy((0, 0.1 * np.sin(t), 0), (t, 0.2, 0.1 * t))
    at = rm.papers.sa24.PointReading([1.0, 0.2 * t, 0.1, 0, 0.1, 0], [0, 0.2, 0, 0.3, 0, 0.1], pose)
    wrench = None if base is None else 0.3 * base.twist
    return rm.papers.sa24.SensorReading(wrench, {"point": at}, time=t)


def boxed(which, gravity):
    """An assembly with a black box as leaf, in the middle or as root."""
    leaf = rm.BlackBox(
        lambda t, base: rm.papers.sa24.SensorReading(0.2 * base.twist + 0.1 * np.sin(9 * t))
    )
    carrier = rm.BlackBox(moving_points, ("point",))
    aside = rm.algebra.pose.from_xyz_rpy((0.1, 0, 0.2), (0.3, 0.1, 0))
    parts, links = {
        "leaf": ({"a": arm(), "b": arm()}, [("b", "a", "tip")]),
        "middle": (
            {"a": arm(), "c": carrier, "b": arm()},
            [("c", "a", "tip"), ("b", "c", "point")],
        ),
        "root": ({"c": carrier, "b": arm()}, [("b", "c", "point")]),
    }[which]
    links = [*links, rm.papers.sa24.Connection("leaf", "b", "tip", placement=aside)]
    return rm.Assembly({**parts, "leaf": leaf}, links, gravity)


@pytest.mark.parametrize("gravity", [(0, 0, 0), (0, 0, -9.81)])
@pytest.mark.parametrize("which", ["leaf", "middle", "root"])
def test_black_boxes_anywhere_against_steps_with_held_readings(which, gravity):
    """RK4 written here, on the assembly's own forward dynamics with the readings of each tick."""
    assembly = boxed(which, gravity)
    q, v = assembly.random_state(4)
    rate, start = 100.0, 2.0

    def torque(t, q, v):
        return 0.1 * np.cos(3 * t) - 0.05 * v

    run = rm.simulate_assembly(assembly, q, v, 0.05, rate, torque=torque, start=start)
    for k in range(5):
        t, tau = start + k / rate, torque(start + k / rate, q, v)
        readings = assembly.readings(q, v, t)
        held = assembly
        for name, reading in readings.items():
            box = assembly.subsystems[name]
            fixed = rm.BlackBox(lambda t, base, reading=reading: reading, box.points)
            held = held.swap(name, fixed)

        def rates(y, held=held, tau=tau):
            q, v = np.split(y, 2)
            return np.r_[v, held.forward_dynamics(q, v, tau, t=0.0)]

        y, h = np.r_[q, v], 1.0 / rate  # revolute joints: q is a vector
        k1 = rates(y)
        k2 = rates(y + 0.5 * h * k1)
        k3 = rates(y + 0.5 * h * k2)
        k4 = rates(y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        answered = run.signals["leaf.wrench"][k]
        assert np.allclose(answered, -readings["leaf"].wrench, rtol=0, atol=1e-13)
        q, v = y[: len(q)], y[len(q) :]
        assert np.allclose(run.q[k + 1], q, rtol=0, atol=1e-12)
        assert np.allclose(run.v[k + 1], v, rtol=0, atol=1e-12)
    assert run.t[0] == start
    assert run.t[-1] == pytest.approx(start + 0.05)


def test_it_is_a_recording_like_any_other(tmp_path):
    assembly = boxed("leaf", (0, 0, 0))
    q, v = assembly.random_state(4)
    run = rm.simulate_assembly(
        assembly, q, v, 0.1, rate=50.0, integrator=rm.Integrator("dop853", rtol=1e-9)
    )
    assert isinstance(run, rm.Recording)
    assert run.robot == assembly.remove("leaf").to_robot()
    run.save(tmp_path / "run")
    again = rm.open_run(tmp_path / "run")
    assert np.array_equal(again.signals["leaf.wrench"], run.signals["leaf.wrench"])
    assert np.array_equal(again.q, run.q)


def test_an_interrupted_run_has_what_black_boxes_exchanged_until_then():
    def pressed(t, base):
        if t > 0.055:
            raise KeyboardInterrupt
        return rm.papers.sa24.SensorReading(0.1 * base.twist)

    robot = arm(1)
    assembly = rm.Assembly({"arm": robot, "box": rm.BlackBox(pressed)}, [("box", "arm", "link1")])
    with pytest.warns(RuntimeWarning, match=r"interrupted at t = 0\.06 s"):
        run = rm.simulate_assembly(assembly, *assembly.random_state(1), 0.1, rate=100.0)
    assert run.status == "interrupted"
    assert run.signals["box.wrench"].shape == (len(run), 6) == (7, 6)


def test_a_passive_joint_is_passive_in_a_run():
    b = rm.Builder("arm").body("link", 1.0, (0, 0, 0.1), np.eye(3))
    damped = b.joint("turn", "revolute", None, "link", axis=(0, 0, 1), damping=2.0).build()
    inertia = 1.0  # about the axis
    run = rm.simulate_assembly(rm.Assembly({"arm": damped}), [0.0], [1.0], 0.5, rate=100.0)
    assert run.v[-1, 0] == pytest.approx(np.exp(-2.0 / inertia * 0.5), rel=1e-8)


def failing(t, base):
    raise ValueError("the line is dead")


def test_who_is_to_blame():
    assembly = swinging()
    q, v = assembly.random_state(1)
    q, v = q[:8], v[:6]
    dead = assembly.swap("arm", rm.BlackBox(failing))
    words = "black box 'arm': its source raised ValueError: the line is dead"
    with pytest.raises(rm.errors.SimulationError, match=words) as caught:
        rm.simulate_assembly(dead, q, v, 0.5, rate=10.0)
    assert caught.value.time == 0.0
    with pytest.raises(rm.RemoraError, match="torque must have shape"):
        rm.simulate_assembly(
            swinging(), *swinging().random_state(1), 0.5, 10.0, lambda t, q, v: [1]
        )
    with pytest.raises(rm.RemoraError, match="follow from its rate and steps"):
        rm.simulate_assembly(dead, q, v, 0.5, rate=10.0, integrator=rm.Integrator("rk4", step=0.01))
    with pytest.raises(rm.RemoraError, match="no integrator named 'euler'"):
        rm.simulate_assembly(dead, q, v, 0.5, rate=10.0, integrator="euler")
    with pytest.raises(rm.RemoraError, match="start must be a finite number"):
        rm.simulate_assembly(dead, q, v, 0.5, rate=10.0, start=float("inf"))
    with pytest.raises(rm.RemoraError, match="takes an Assembly or a ModularRobot, not Robot"):
        rm.simulate_assembly(assembly.to_robot(), q, v, 0.5, rate=10.0)
    with pytest.raises(rm.RemoraError, match="nothing in the assembly can move"):
        rm.simulate_assembly(rm.Assembly({"box": rm.BlackBox(failing)}), [], [], 0.5, rate=10.0)
    carried = boxed("middle", (0, 0, 0))
    with pytest.raises(rm.RemoraError, match="'variational' is not for modules that dock, or that"):
        rm.simulate_assembly(
            carried, *carried.random_state(1), 0.5, rate=10.0, integrator="variational"
        )


@pytest.mark.parametrize(("late", "words"), [(np.full(6, np.nan), "not finite"), ([0.0] * 5, "6")])
def test_a_wrench_that_is_wrong_later_ends_the_run_with_its_recording(late, words):
    def source(t, base):
        return rm.papers.sa24.SensorReading(late if t > 0.05 else np.zeros(6))

    robot = arm(1)
    assembly = rm.Assembly({"arm": robot, "box": rm.BlackBox(source)}, [("box", "arm", "link1")])
    q, v = assembly.random_state(1)
    with pytest.raises(
        rm.errors.SimulationError, match=rf"at t = 0\.06 s: black box 'box': .*{words}"
    ) as e:
        rm.simulate_assembly(assembly, q, v, 0.1, rate=100.0)
    assert len(e.value.recording) == 7


def test_a_live_black_box_receives_the_motion_of_its_base():
    """Twist, its mean rate over the last period, pose and gravity: in runs and in both dynamics."""
    seen = []

    def live(t, base):
        seen.append((float(t), base))
        return rm.papers.sa24.SensorReading(0.02 * base.twist)

    aside = rm.algebra.pose.from_xyz_rpy((0.1, -0.3, 0.2), (0.3, 0.1, -0.7))
    link = rm.papers.sa24.Connection("box", "arm", "tip", placement=aside)
    gravity = np.array([0.5, -1.0, -9.0])
    assembly = rm.Assembly({"arm": arm(), "box": rm.BlackBox(live)}, [link], gravity)
    whole = assembly.remove("box").to_robot()
    q, v = assembly.random_state(4)
    tip = whole.frame("arm/tip")
    on_body = rm.algebra.dual_quaternion.mul(tip.placement, aside)
    base = type(tip)("base", tip.body, on_body)  # the box's base frame

    run = rm.simulate_assembly(assembly, q, v, 0.04, rate=100.0)
    assert [round(t, 12) for t, _ in seen] == [0.0, 0.01, 0.02, 0.03]
    assert seen[0][1].rate is None
    for k, (_, state) in enumerate(seen):
        assert np.allclose(state.twist, rm.frame_twist(whole, run.q[k], run.v[k], base), atol=1e-13)
        assert np.allclose(state.pose, rm.frame_pose(whole, run.q[k], base), atol=1e-13)
        assert np.array_equal(state.gravity, gravity)
        if k:
            assert np.allclose(state.rate, (state.twist - seen[k - 1][1].twist) / 0.01, atol=1e-12)

    seen.clear()
    vdot = np.array([0.7, -1.3])
    assembly.inverse_dynamics(q, v, vdot, t=0.5)
    assembly.forward_dynamics(q, v, vdot, t=0.5)
    (_, inverse), (_, forward) = seen
    rate = rm.dynamics.frame_acceleration(whole, q, v, vdot, base)
    assert np.allclose(inverse.rate, rate, rtol=0.0, atol=1e-12 * np.abs(rate).max())
    assert forward.rate is None
    for state in (inverse, forward):
        assert np.allclose(state.pose, rm.frame_pose(whole, q, base), atol=1e-14)


@pytest.mark.parametrize("gravity", [(0, 0, 0), (0, 0, -9.81)])
def test_poses_beyond_a_black_box_are_measured_ones(gravity):
    """In runs too: the pose that a box on an arm on a black box gets, and `assembly.frame_pose`."""
    seen = []
    aside = rm.algebra.pose.from_xyz_rpy((0.1, 0, 0.2), (0.3, 0.1, 0))

    def leaf(t, base):
        seen.append((float(t), base))
        return rm.papers.sa24.SensorReading(0.1 * base.twist)

    carrier = rm.BlackBox(moving_points, ("point",))
    assembly = rm.Assembly(
        {"a": arm(), "c": carrier, "b": arm(), "leaf": rm.BlackBox(leaf)},
        [("c", "a", "tip"), ("b", "c", "point"),
         rm.papers.sa24.Connection("leaf", "b", "tip", placement=aside)],
        gravity,
    )  # fmt: skip
    q, v = assembly.random_state(2)
    run = rm.simulate_assembly(assembly, q, v, 0.03, rate=100.0)
    assert len(seen) == 3
    mul = rm.algebra.dual_quaternion.mul
    for k, (t, base) in enumerate(seen[:3]):  # frame_pose asks all of them again
        point = moving_points(t, None).points["point"].pose
        tip = mul(point, rm.frame_pose(arm(), run.q[k][2:], "tip"))
        assert np.allclose(base.pose, mul(tip, aside), atol=1e-13)
        assert np.allclose(assembly.frame_pose(run.q[k], "b/tip", run.v[k], t), tip, atol=1e-13)
    assert np.allclose(
        assembly.frame_pose(q, "c/point", t=0.3), moving_points(0.3, None).points["point"].pose
    )
    near = rm.frame_pose(arm(), q[:2], "tip")
    assert np.allclose(assembly.frame_pose(q, "a/tip"), near, atol=1e-14)  # no time: no black box
    with pytest.raises(rm.RemoraError, match="its data needs the time"):
        assembly.frame_pose(q, "b/tip")
    silent = assembly.swap(
        "c", rm.BlackBox(lambda t, base: without_pose(t), ("point",), accelerometer=True)
    )
    with pytest.raises(rm.RemoraError, match="the pose of 'b/tip' is not known: a black box on"):
        silent.frame_pose(q, "b/tip", t=0.0)
    seen.clear()
    rm.simulate_assembly(silent, q, v, 0.01, rate=100.0)
    assert [base.pose for _, base in seen] == [None]


def without_pose(t):
    reading = moving_points(t, None)
    point = reading.points["point"]
    at = rm.papers.sa24.PointReading(point.twist, point.rate)
    return rm.papers.sa24.SensorReading(np.zeros(6), {"point": at})
