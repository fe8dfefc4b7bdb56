"""Single runs whose loads are Python functions: the program of a run calls them."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.simulation.engine import hosted_parts, phase_program

SERVICER = rm.load("servicer")
Q, V = rm.random_state(SERVICER, 1)
V = 0.1 * V
GAINS = np.r_[np.zeros(6), np.full(SERVICER.nv - 6, 0.3)]


def opaque(t, q, v):
    """Dampers, in a way that cannot be traced."""
    return -GAINS * v if float(v @ v) >= 0.0 else 0.0 * v


def damped(t, q, v):
    return -GAINS * v


def pushing(t, q, v):
    wrenches = np.zeros((len(SERVICER.bodies), 6))
    wrenches[0, 3] = 0.1 * np.sin(3.0 * float(t)) * float(v[0])
    return wrenches


@pytest.fixture
def no_loads_in_python(monkeypatch):
    def refuse(*_):
        raise AssertionError("a step was made in Python")

    monkeypatch.setattr(hosted_parts.HostedParts, "_loads", refuse)


@pytest.mark.usefixtures("no_loads_in_python")
@pytest.mark.parametrize("options", [{}, {"sample": 0.1}, {"integrator": "rk4", "step": 0.01}])
def test_a_function_that_is_called_is_one_that_is_traced(options):
    """The batch compiles the same law."""
    run = rm.simulate(SERVICER, Q, V, 1.0, **grouped(torque=opaque, limits="ignore", **options))
    same = {"integrator": "dop853", "sample": 0.1} | options
    batch = rm.simulate_batch(SERVICER, Q, V, 1.0, **grouped(True, torque=damped, **same))
    assert np.abs(batch.v[-1] - run.v[-1]).max() < 1e-11
    assert np.abs(batch.q[-1] - run.q[-1]).max() < 1e-11
    np.testing.assert_allclose(
        run.tau, [opaque(0.0, q, v) for q, v in zip(run.q, run.v, strict=True)]
    )


@pytest.mark.usefixtures("no_loads_in_python")
def test_work_of_called_loads_is_the_change_of_energy():
    wrenches = {"wrenches": pushing, "torque": {SERVICER.joints[-1].name: lambda t, q, v: [0.01]}}
    run = rm.simulate(SERVICER, Q, V, 2.0, **grouped(limits="ignore", sample=0.5, **wrenches))
    energy = rm.kinetic_energy(SERVICER, run.q, run.v)
    change = energy - energy[0]
    assert np.abs(change).max() > 1e-4
    np.testing.assert_allclose(run.work.sum(axis=-1), change, atol=1e-9)
    np.testing.assert_allclose(
        run.wrenches, [pushing(*x) for x in zip(run.t, run.q, run.v, strict=True)], atol=1e-15
    )


@pytest.mark.usefixtures("no_loads_in_python")
def test_one_compiled_program_serves_all_functions(monkeypatch):
    """Another function is no reason to compile."""
    rm.simulate(SERVICER, Q, V, 0.1, torque=opaque)
    made, compiled = [], phase_program._CompiledPhase

    def counted(*given):
        made.append(given)
        return compiled(*given)

    monkeypatch.setattr(phase_program, "_CompiledPhase", counted)
    for k in range(3):
        run = rm.simulate(SERVICER, Q, V, 0.1, torque=lambda t, q, v, k=k: k * GAINS * float(t))
        np.testing.assert_allclose(run.tau[-1], k * GAINS * 0.1)
    assert not made


class Held(rm.Component):
    """A damper that is sampled; in one way it can be traced, in the other it cannot."""

    gain: float = 0.3
    opaque: bool = False

    def act(self, at):
        if self.opaque:
            called.append(float(at.t))
        speeds = np.array([float(x) for x in at.v]) if self.opaque else at.v
        return [rm.JointForce(j.name, -self.gain * speeds[j.v]) for j in at.robot.joints[1:]]


called: list[float] = []


@pytest.mark.usefixtures("no_loads_in_python")
@pytest.mark.parametrize(
    "options", [{}, {"sample": 0.1}, {"integrator": "rk4", "step": 0.01}, {"integrator": "radau"}]
)
def test_a_sampled_component_that_cannot_be_traced_is_called_at_its_ticks_only(options):
    runs = []
    for opaque in (False, True):
        system = rm.System(SERVICER, [Held(opaque=opaque, name="held", sample_time=0.05)])
        assert (system.called_at_ticks == {"held"}) is opaque
        called.clear()
        runs.append(rm.simulate(system, Q, V, 1.0, **grouped(**options)))
    np.testing.assert_allclose(called, 0.05 * np.arange(20), atol=1e-15)
    one, other = runs
    assert len(one) == len(other)
    for name in ("t", "q", "v", "tau", "work"):  # NumPy rounds a product as compiled code does
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.usefixtures("no_loads_in_python")
def test_another_sampled_component_needs_no_other_program(monkeypatch):
    def run(gain):
        held = Held(gain, True, name="held", sample_time=0.05)
        return rm.simulate(rm.System(SERVICER, [held]), Q, V, 0.2)

    first = run(0.3)
    monkeypatch.setattr(phase_program, "_CompiledPhase", None)
    assert not np.array_equal(run(0.5).v[-1], first.v[-1])
    np.testing.assert_array_equal(run(0.3).v, first.v)


def test_a_sampled_component_that_fails_is_named_with_its_time():
    class Fails(Held):
        def act(self, at):
            if float(at.t) > 0.12:
                raise ValueError("no more commands")
            return super().act(at)

    class Lost(Held):
        def act(self, at):
            return [rm.JointForce("elbow_pitch", np.nan if float(at.t) > 0.12 else 0.0)]

    for kind, told in ((Fails, "ValueError: no more commands"), (Lost, "not finite")):
        system = rm.System(SERVICER, [kind(opaque=True, name="held", sample_time=0.05)])
        with pytest.raises(rm.errors.SimulationError, match=told) as error:
            rm.simulate(system, Q, V, 1.0)
        assert "'held'" in str(error.value)
        assert error.value.time == pytest.approx(0.15)


@pytest.mark.usefixtures("no_loads_in_python")
def test_the_clock_of_a_phase():
    seen = []

    def late(t, q, v):
        seen.append(t)
        return np.zeros(SERVICER.nv)

    phases = [rm.Phase(0.5), rm.Phase(0.5, torque=late, own_clock=True)]
    rm.simulate(SERVICER, Q, V, phases, physics=rm.Physics(limits="ignore"))
    assert min(seen) >= 0.0
    assert max(seen) <= 0.5
    assert all(isinstance(t, float) for t in seen)
