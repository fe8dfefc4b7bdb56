"""Faulty data of black boxes is refused, with the box, the value and what is allowed."""

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import arm
from remora.algebra import dual_quaternion, pose, screw
from remora.errors import InvalidValue, RemoraError, UnknownName

SA = rm.papers.sa24
G = (0.0, 0.0, -9.81)
LOAD = np.array([0.0, 0.0, -20.0, 0.0, 0.0, 0.0])


def with_box(source, **settings):
    box = rm.BlackBox(source, **settings)
    return rm.Assembly({"arm": arm(), "box": box}, [("box", "arm", "tip")], G)


def tau(assembly, t=0.1):
    rest = np.zeros(assembly.nv)
    return assembly.inverse_dynamics(rest + 0.4, rest, rest, t=t)


def stamped(time):
    return lambda t, base: SA.SensorReading(LOAD, time=time)


@pytest.mark.parametrize("scale", [1.05, 1.0 + 1e-5, 0.0])
@pytest.mark.parametrize("recorded", [False, True])
def test_poses_of_points_are_unit_dual_quaternions(scale, recorded):
    x = scale * pose.from_xyz_rpy((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))

    def result(x):
        if recorded:
            column = np.tile(x, (2, 1))
            point = SA.PointReading(np.zeros((2, 6)), np.zeros((2, 6)), column)
            source = SA.SensorRecording([0, 1], np.tile(LOAD, (2, 1)), {"top": point})
        else:
            point = SA.PointReading(np.zeros(6), np.zeros(6), x)
            source = lambda t, base: SA.SensorReading(LOAD, {"top": point})  # noqa: E731
        carrying = with_box(source, points=("top",)).add("hand", arm(), "box", "top")
        return tau(carrying)

    with pytest.raises(InvalidValue, match=r"pose of .*'top'.* is not a pose: .* length 1"):
        result(x)
    skewed = pose.from_xyz_rpy((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    skewed[4:] += 0.01 * skewed[:4]
    with pytest.raises(InvalidValue, match="orthogonal to its dual part"):
        result(skewed)
    assert np.all(np.isfinite(result(dual_quaternion.normalize(skewed))))


def test_time_stamps_and_ages():
    assert np.allclose(tau(with_box(stamped(0.05), max_age=0.06)), tau(with_box(stamped(None))))
    with pytest.raises(InvalidValue, match=r"'box'.*no time stamp, which max_age=0.06 s needs"):
        tau(with_box(stamped(None), max_age=0.06))
    for settings in ({}, {"max_age": 10.0}):
        with pytest.raises(InvalidValue, match=r"'box': the time stamp .* must be .*, not nan"):
            tau(with_box(stamped(np.nan), **settings))
        with pytest.raises(InvalidValue, match=r"'box': the time stamp .* a number"):
            tau(with_box(stamped("now"), **settings))
    for age in (np.nan, -1.0, "1 s"):
        with pytest.raises(InvalidValue, match="max_age of a BlackBox must"):
            with_box(stamped(0.0), max_age=age)
    recording = SA.SensorRecording([0, 1], np.tile(LOAD, (2, 1)))
    with pytest.raises(RemoraError, match="of a SensorRecording, set max_gap"):
        with_box(recording, max_age=0.1)
    for gap in (np.nan, 0.0, "1"):
        with pytest.raises(InvalidValue, match="max_gap of a sensor recording must"):
            SA.SensorRecording([0, 1], np.tile(LOAD, (2, 1)), max_gap=gap)


@pytest.mark.parametrize("error", [ValueError("no link"), RemoraError("no link")])
def test_exceptions_of_a_source_have_the_name_of_the_box(error):
    def source(t, base):
        raise error

    message = rf"black box 'box': its source raised {type(error).__name__}: no link"
    with pytest.raises(RemoraError, match=message):
        tau(with_box(source))
    samples = np.ones((4, 2, 3)).transpose(0, 2, 1)
    with pytest.raises(RemoraError, match=message):
        with_box(source).check_energy(*samples, np.zeros(3))


class Faulty:
    """A user's object that returns what it was made with, or raises it."""

    nq, nv, points = 0, 0, ("top",)

    def __init__(self, loads=None, motion=None):
        self.loads, self.motion = loads, motion

    def point_motions(self, base, q, v, vdot):
        return {"top": base} if self.motion is None else {"top": self.motion}

    def inverse_dynamics(self, base, q, v, vdot, loads):
        if isinstance(self.loads, Exception):
            raise self.loads
        return self.loads


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Faulty(KeyError("mass")), r"inverse_dynamics raised KeyError: 'mass'"),
        (Faulty(3), "inverse_dynamics must return two values, not int"),
        (Faulty((np.zeros(5), np.zeros(0))), r"inverse_dynamics\[0\] must have shape \(..., 6\)"),
        (Faulty((np.full(6, np.nan), np.zeros(0))), r"inverse_dynamics\[0\] holds values"),
        (Faulty(None, np.zeros(6)), r"point_motions\['top'\] must return two values"),
    ],
)
def test_users_objects_are_named(part, message):
    assembly = rm.Assembly({"arm": arm(), "p": part}, [("p", "arm", "tip")], G)
    carrying = assembly.add("hand", arm(), "p", "top")
    with pytest.raises(RemoraError, match=rf"subsystem 'p' \(Faulty\): {message}"):
        tau(carrying)


def test_names_of_parts_and_vertices():
    assembly = with_box(stamped(None))
    graph = assembly.graph([0.4, 0.4], [0, 0], [0, 0], t=0.0)
    assert graph.of("box").shape == (0, 6)  # its joints are not known
    for name in ("x", 3, ["arm"]):
        with pytest.raises(UnknownName, match="known: arm, box"):
            graph.of(name)
        with pytest.raises(UnknownName, match="known: arm, box"):
            assembly.part(name)


# The power balance -------------------------------------------------------------------------------


def samples_of(mass=3.0, turned=None, forces=1.0, wrench=1.0, sensor="actuation"):
    """Exact samples of an arm with a rigid load in oblique axes, and faults of them."""
    rng = np.random.default_rng(7)
    A = rng.normal(size=(3, 3))
    inertia = mass * 0.02 * (A @ A.T + np.eye(3))
    load = (
        rm.Builder("load")
        .body("load", mass, (0.1, -0.2, 0.15), inertia)
        .joint("bolt", "fixed", None, "load")
        .build()
    )
    axes = ((0.3, -0.2, 1), (0, 1, 0.4), (1, 0.2, 0))
    whole = rm.Assembly(
        {"arm": arm(axes=axes), "load": load}, [rm.papers.sa24.Connection(
            "load", "arm", "tip", placement=pose.from_xyz_rpy((0.1, 0, 0), (0.5, 0.4, -0.3)))], G,
    )  # fmt: skip
    t = np.linspace(0.0, 4.0, 200)
    phase, rate = rng.uniform(0, 6, 3), np.array([1.0, 1.7, 2.3])
    s, c = np.sin(np.outer(t, rate) + phase), np.cos(np.outer(t, rate) + phase)
    q, v, vdot = s, rate * c, -(rate**2) * s
    tau = whole.inverse_dynamics(q, v, vdot)
    ζ = wrench * whole.joint_loads(q, v, vdot)[1].base
    place = whole.connections[0].placement
    ζ = screw.adjoint_inverse(place, ζ)  # in the base frame of the load
    if turned is not None:
        ζ = screw.adjoint_inverse(pose.from_axis_angle(np.array(turned[0]), turned[1]), ζ)
    box = rm.BlackBox(SA.SensorRecording(t, ζ), sensor=sensor)
    known = whole.swap("load", box)
    return known, (q, v, vdot, forces * tau, t)


def test_a_light_box_is_not_blamed_for_the_errors_of_forces():
    """20 g, forces 0.5 % too large: it cannot be judged, and says so; 3 kg are judged right."""
    known, samples = samples_of(mass=0.02, forces=1.005)
    with pytest.raises(InvalidValue, match=r"'load' exchanges too little power .* accuracy="):
        known.check_energy(*samples)
    known, samples = samples_of(mass=0.02)
    assert abs(known.check_energy(*samples, accuracy=1e-6)["load"] - 1.0) < 1e-9
    known, samples = samples_of(forces=1.005)
    assert abs(known.check_energy(*samples)["load"] - 1.0) < 0.05
    known, samples = samples_of(forces=1.005, sensor="reaction")
    with pytest.raises(InvalidValue, match="wrong sign"):
        known.check_energy(*samples)
    with pytest.raises(InvalidValue, match="accuracy must not be negative"):
        known.check_energy(*samples, accuracy=np.nan)


@pytest.mark.parametrize("axis", [(1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0), (0.6, 0, 0.8)])
@pytest.mark.parametrize("degrees", [-60, 30, 60, 90])
def test_sensors_in_turned_axes_are_refused(axis, degrees):
    known, samples = samples_of(turned=(axis, np.radians(degrees)))
    with pytest.raises(InvalidValue, match=r"'load': its wrench (does not fit|has the wrong sign)"):
        known.check_energy(*samples)


def test_scaled_wrenches_are_refused():
    known, samples = samples_of(wrench=0.5)
    with pytest.raises(InvalidValue, match=r"best factor is 2, not 1, and 0% remain"):
        known.check_energy(*samples)
