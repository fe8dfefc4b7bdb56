"""Signal sources: values at jumps, breaks of steps, sampled sources."""

import numpy as np
import pytest

import remora as rm
from sliders import slider

ROBOT = slider()
SLIDE = next(j.name for j in ROBOT.joints if j.kind == "prismatic")


def pushed(function, **options):
    """A force on the slider that follows a function of time without lag."""

    class Push(rm.Component):
        def interface(self, robot):
            return rm.Interface(inputs={"force": rm.Signal((), "N")})

        def act(self, at):
            return rm.JointForce(SLIDE, at.inputs["force"])

    parts = [rm.SignalSource(function, "N", name="source", **options), Push()]
    return rm.System(ROBOT, parts, {"push.force": "source.value"})


def rest():
    return rm.neutral(ROBOT), np.zeros(ROBOT.nv)


@pytest.mark.parametrize(
    "function",
    [
        rm.Profile([0.13, 0.5, 1.7], [1.0, -2.0, 3.0], "hold"),
        rm.Profile([0.0, 0.5, 1.7], [1.0, -2.0, 3.0]),
        rm.Profile([0.1, 0.5, 1.7], [1.0, -2.0, 3.0], "cubic"),
        rm.Pulse(0.31, 1.27, 2.0),
    ],
)
def test_a_source_pushes_as_the_same_load_does_and_steps_end_at_its_breaks(function):
    system = pushed(function)
    assert system.breaks == tuple(sorted(function.breaks))
    run = rm.simulate(system, *rest(), 2.0, integrator=rm.Integrator("rk4", step=0.25))
    same = rm.simulate(
        ROBOT, *rest(), 2.0, integrator=rm.Integrator("rk4", step=0.25), torque={SLIDE: function}
    )
    assert np.array_equal(run.t, same.t)
    assert np.abs(run.v[-1] - same.v[-1]).max() < 1e-13
    batch = rm.simulate_batch(system, *rest(), 2.0, integrator=rm.Integrator(step=0.25), runs=3)
    assert np.abs(batch.v[:, -1] - same.v[-1]).max() < 1e-12


def test_at_a_jump_the_later_value_holds():
    """At t = 0, 0.25, 0.75, 1.25, 1.75 and 1.9 s."""
    steps = rm.Profile([0.0, 1.0, 2.0], [1.0, 5.0, 7.0], "hold")

    class Sampled(rm.Component):
        def interface(self, robot):
            return rm.Interface(inputs={"x": rm.Signal((), "N")}, outputs={"y": rm.Signal()})

        def outputs(self, at):
            return {"y": at.inputs["x"]}

    for sampled in (None, 0.5):
        parts = [rm.SignalSource(steps, "N", name="s", sample_time=sampled),
                 Sampled(sample_time=0.5)]  # fmt: skip
        system = rm.System(ROBOT, parts, {"sampled.x": "s.value"})
        run = rm.simulate(system, *rest(), 1.9, record=[0.25, 0.75, 1.25, 1.75])
        assert run.signals["sampled.y"].tolist() == [1.0, 1.0, 1.0, 5.0, 5.0, 5.0]
        assert system.breaks == (() if sampled else (0.0, 1.0, 2.0))


def test_gain_and_functions_of_time():
    source = rm.SignalSource(lambda t: np.sin(2.0 * t), "N", gain=3.0, name="source")
    run = rm.simulate(rm.System(ROBOT, [source]), *rest(), 1.0)
    assert np.abs(run.signals["source.value"] - 3.0 * np.sin(2.0 * run.t)).max() < 1e-12
    gains = np.array([1.0, 2.0])
    batch = rm.simulate_batch(
        rm.System(ROBOT, [source]),
        *rest(),
        1.0,
        integrator=rm.Integrator(step=0.1),
        runs=rm.Runs(parameters={"source.gain": gains}),
    )
    assert np.allclose(batch.signals["source.value"][:, -1], gains * np.sin(2.0), atol=1e-12)


@pytest.mark.parametrize(
    ("function", "told"), [("much", "needs numbers, a Profile"), ([1.0, np.nan], "finite numbers")]
)
def test_refusals(function, told):
    with pytest.raises(rm.RemoraError, match=told):
        rm.SignalSource(function)


def test_breaks_of_your_own_components_must_be_finite():
    class Own(rm.Component):
        def interface(self, robot):
            return rm.Interface(breaks=(0.0, np.inf))

    with pytest.raises(rm.errors.ModelError, match="breaks must be finite"):
        rm.System(ROBOT, [Own()])
