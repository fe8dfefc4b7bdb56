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

    def __call__(self, t, twist):
        before = twist if self.before is None else self.before
        rate = (twist - before) / self.period  # its own sensors: a difference
        self.before = twist
        self.times.append(float(t))
        momentum = screw.momentum(self.inertia, twist)
        wrench = screw.momentum(self.inertia, rate) + screw.cross(twist, momentum)
        return rm.SensorReading(-wrench, time=t)


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
        assert run.twists["load"].shape == run.wrenches["load"].shape == (round(0.5 * rate), 6)
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
    box = rm.BlackBox(rm.SensorRecording(run.t, loads))
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
    stale = rm.BlackBox(lambda t, twist: rm.SensorReading(np.zeros(6), time=0.0), max_age=0.05)
    with pytest.raises(rm.RemoraError, match=r"'arm' has only stale data at t = 0.1 s"):
        rm.simulate_assembly(assembly.swap("arm", stale), q[:8], v[:6], 0.5, rate=10.0)
