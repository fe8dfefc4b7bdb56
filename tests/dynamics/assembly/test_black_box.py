"""Black boxes fed with exact data give the wrenches of the whole robot; bad data is refused."""

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import arm, cut
from remora.algebra import dual_quaternion, pose
from trees import Case, relative_error


def boxed(split, at, name, gravity_in_rate=False, sensor="reaction"):
    """The assembly with one subsystem replaced by a black box with exact readings."""
    assembly = split.assembly
    part = assembly.part(name)
    load = assembly.joint_loads(at.q, at.v, at.vdot, at.wrenches)[assembly.names.index(name)]
    robot = assembly.to_robot()
    points = {}
    for point in part.points:
        frame = robot.frame(f"{name}/{point}")
        rate = rm.dynamics.frame_acceleration(robot, at.q, at.v, at.vdot, frame)
        x = rm.frame_pose(robot, at.q, frame)
        if gravity_in_rate:
            R = pose.to_rotation_matrix(x)
            rate = rate - np.concatenate([np.zeros(3), R.T @ assembly.gravity])
            x = None
        points[point] = rm.papers.sa24.PointReading(
            rm.frame_twist(robot, at.q, at.v, frame), rate, x
        )
    sign = -1.0 if sensor == "reaction" else 1.0
    wrench = None if load.base is None else sign * load.base
    box = rm.BlackBox(
        lambda t, base: rm.papers.sa24.SensorReading(wrench, points),
        part.points, sensor=sensor, accelerometer=gravity_in_rate,
    )  # fmt: skip
    subsystems = {**assembly.subsystems, name: box}
    # the connection's own placement is the identity in split robots
    return rm.Assembly(subsystems, assembly.connections, assembly.gravity)


def test_black_boxes_with_exact_data_in_random_trees():
    boxes = 0
    for seed in range(25):
        split, at = cut(Case(seed, largest=8))
        rng = np.random.default_rng(seed)
        names = split.assembly.names
        name = names[rng.integers(len(names))]
        whole = split.assembly.inverse_dynamics(at.q, at.v, at.vdot, at.wrenches)
        known = np.ones(split.assembly.nv, dtype=bool)
        known[split.assembly.part(name).v] = False
        if len(names) == 1 or not known.any():
            continue
        sensor = ("reaction", "actuation")[seed % 2]
        assembly = boxed(split, at, name, bool(rng.integers(2)), sensor)
        kept = np.ones(split.assembly.nb, dtype=bool)
        kept[split.assembly.part(name).bodies] = False
        q = np.delete(at.q, np.arange(split.assembly.nq)[split.assembly.part(name).q])
        v, vdot, tau = at.v[known], at.vdot[known], whole[known]
        external = at.wrenches[kept]
        found = assembly.inverse_dynamics(q, v, vdot, external, t=0.0)
        assert relative_error(found, tau) < 1e-12, seed  # measured rates are rounded, too
        back = assembly.forward_dynamics(q, v, tau, external, t=0.0)
        assert relative_error(back, vdot) < 1e-9, seed  # inverse, then forward: conditioning
        boxes += 1
    assert boxes > 15


def exact(sensor="reaction"):
    rng = np.random.default_rng(4)
    t = np.linspace(0.0, 1.0, 11)
    readings = rng.normal(size=(3, 11, 6))
    poses = [pose.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.array(0.1 * k)) for k in range(11)]
    point = rm.papers.sa24.PointReading(readings[1], readings[2], np.array(poses))
    recording = rm.papers.sa24.SensorRecording(t, readings[0], {"end": point}, max_gap=0.15)
    box = rm.BlackBox(recording, ("end",), sensor=sensor)
    assembly = rm.Assembly(
        {"a": arm(), "box": box, "b": arm()}, [("box", "a", "tip"), ("b", "box", "end")],
        gravity=(0, 0, -9.81),
    )  # fmt: skip
    return assembly, recording


def test_recordings_are_exact_at_samples_and_interpolated_between():
    assembly, recording = exact()
    reading = recording.at(0.3)
    assert np.allclose(reading.wrench, recording.wrench[3], atol=1e-14)
    middle = recording.at(0.35)
    assert np.allclose(middle.wrench, (recording.wrench[3] + recording.wrench[4]) / 2, atol=1e-13)
    half = pose.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.array(0.35))
    assert np.allclose(middle.points["end"].pose, half, atol=1e-13)
    q, v, w = np.random.default_rng(0).normal(size=(3, 4, 4))
    times = np.array([0.0, 0.31, 0.9, 1.0])
    many = assembly.inverse_dynamics(q, v, w, t=times)
    for k, t in enumerate(times):
        assert np.allclose(many[k], assembly.inverse_dynamics(q[k], v[k], w[k], t=t), atol=1e-12)


def test_the_sign_of_a_sensor():
    reaction, _ = exact("reaction")
    actuation, _ = exact("actuation")
    q = np.zeros(4)
    none = rm.Assembly({"a": arm()}, gravity=(0, 0, -9.81)).inverse_dynamics(q[:2], q[:2], q[:2])
    a, b = (x.inverse_dynamics(q, q, q, t=0.2)[:2] - none for x in (reaction, actuation))
    assert np.allclose(a, -b, atol=1e-12)
    assert np.abs(a).max() > 0.1


def test_live_sources_get_time_and_twist():
    seen = []

    def live(t, base):
        seen.append((float(t), base.twist))
        return rm.papers.sa24.SensorReading(np.zeros(6), time=t - 0.01)

    links = [("box", "a", "tip")]
    assembly = rm.Assembly({"a": arm(), "box": rm.BlackBox(live, max_age=0.02)}, links)
    v = np.array([0.3, -0.2])
    assembly.inverse_dynamics(np.zeros(2), v, np.zeros(2), t=1.5)
    t, twist = seen[0]
    assert t == 1.5
    robot = arm()
    assert np.allclose(twist, rm.frame_twist(robot, np.zeros(2), v, "tip"), atol=1e-14)
    late = rm.Assembly({"a": arm(), "box": rm.BlackBox(live, max_age=0.005)}, links)
    with pytest.raises(
        rm.RemoraError, match=r"'box' has only stale data at t = 1.5 s: its reading"
    ):
        late.forward_dynamics(np.zeros(2), v, np.zeros(2), t=1.5)


def test_data_that_is_missing_or_stale():
    assembly, _ = exact()
    zero = np.zeros(4)
    with pytest.raises(rm.RemoraError, match="subsystem 'box' is a black box: its data needs the"):
        assembly.inverse_dynamics(zero, zero, zero)
    with pytest.raises(rm.RemoraError, match=r"'box' has no data at t = 1.2 s: .* covers 0 to 1 s"):
        assembly.inverse_dynamics(zero, zero, zero, t=1.2)
    gaps = rm.papers.sa24.SensorRecording([0.0, 0.1, 0.5], np.zeros((3, 6)), max_gap=0.2)
    holed = rm.Assembly({"a": arm(), "box": rm.BlackBox(gaps)}, [("box", "a", "tip")])
    two = np.zeros(2)
    holed.inverse_dynamics(two, two, two, t=0.5)
    with pytest.raises(
        rm.RemoraError, match=r"'box' has only stale data at t = 0.3 s: .* 0.4 s ap"
    ):
        holed.inverse_dynamics(two, two, two, t=np.array([0.05, 0.3]))
    with pytest.raises(
        rm.errors.ShapeError, match=r"wrench of a sensor recording has shape \(4, 6\)"
    ):
        rm.papers.sa24.SensorRecording([0.0, 0.1, 0.5], np.zeros((4, 6)))
    with pytest.raises(rm.errors.InvalidValue, match="increasing times"):
        rm.papers.sa24.SensorRecording([0.0, 0.5, 0.1], np.zeros((3, 6)))


END = {"end": rm.papers.sa24.PointReading(np.zeros(6), np.zeros(6), dual_quaternion.identity())}


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (
            rm.papers.sa24.SensorReading(np.zeros(5), END),
            r"'box': its measured wrench must have shape",
        ),
        (rm.papers.sa24.SensorReading(None, END), "black box 'box' has no wrench"),
        (
            rm.papers.sa24.SensorReading(np.full(6, np.nan), END),
            "its measured wrench holds values that are",
        ),
        (
            rm.papers.sa24.SensorReading(np.zeros(6)),
            "no point in the reading of black box 'box' named 'end'",
        ),
        (
            rm.papers.sa24.SensorReading(
                np.zeros(6), {"end": rm.papers.sa24.PointReading(np.zeros(6), np.zeros(6))}
            ),
            "'box': with gravity, the motion of point 'end' needs its pose",
        ),
        (
            rm.papers.sa24.SensorReading(
                np.zeros(6), {"other": rm.papers.sa24.PointReading(np.zeros(6), np.zeros(6))}
            ),
            "no connection point of black box 'box' named 'other'",
        ),
        (np.zeros(6), "its source returned ndarray"),
    ],
)
def test_readings_that_do_not_fit(reading, message):
    box = rm.BlackBox(lambda t, base: reading, ("end",))
    assembly = rm.Assembly(
        {"a": arm(), "box": box, "b": arm()}, [("box", "a", "tip"), ("b", "box", "end")],
        gravity=(0, 0, -9.81),
    )  # fmt: skip
    zero = np.zeros(4)
    with pytest.raises(rm.RemoraError, match=message):
        assembly.inverse_dynamics(zero, zero, zero, t=0.0)


def test_black_boxes_that_make_no_sense():
    with pytest.raises(rm.RemoraError, match="kind of sensor named 'action'"):
        rm.BlackBox(lambda t, base: None, sensor="action")
    with pytest.raises(rm.RemoraError, match="not int"):
        rm.BlackBox(3)
    with pytest.raises(rm.RemoraError, match=r"write \('end',\)"):
        rm.BlackBox(lambda t, base: None, points="end")
    with pytest.raises(rm.RemoraError, match="subsystem 'box' is a black box: no robot can be"):
        exact()[0].to_robot()
