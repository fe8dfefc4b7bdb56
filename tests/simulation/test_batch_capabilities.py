"""A batch can do what single runs can: three different runs, against three calls of rm.simulate."""

import math

import numpy as np
import pytest

import remora as rm
from flat_captures import capture_phases, dispersed, flat, same_switches
from plain_settings import grouped
from remora.errors import RemoraError
from remora.simulation.inputs.moves import Move
from sliders import slider


def arm():
    """Return a free base with two joints."""
    builder = rm.Builder("arm").body("bus", mass=20.0, com=(0.1, 0, 0), inertia=(2, 3, 4))
    builder = builder.joint("base", "free", None, "bus")
    for k, above in enumerate(("bus", "link0")):
        builder = builder.body(f"link{k}", mass=2.0, com=(0.4, 0, 0), inertia=(0.1, 0.2, 0.25))
        builder = builder.joint(
            f"j{k}", "revolute", above, f"link{k}", axis=(0, 1, 0), xyz=(0.6, 0, 0)
        )
    return builder.build()


ARM = arm()
RNG = np.random.default_rng(1)
Q = np.tile(rm.neutral(ARM), (3, 1))
Q[:, 8:] = np.array([0.2, -0.4]) + 0.1 * RNG.normal(size=(3, 2))
V = 0.05 * np.cos(np.arange(ARM.nv)) + np.array([0] * 7 + [0.3]) + 0.02 * RNG.normal(size=(3, 8))


def law(t, q, v):
    """A law that can be compiled."""
    return np.concatenate([np.zeros(6), np.sin(t) - q[8:10] - 0.5 * v[6:8]])


def odd(t, q, v):
    """A law that cannot be compiled."""
    return np.array([0.0] * 6 + [0.3 * math.sin(float(q[8])), 0.0])


def swing(t):
    """A motion that cannot be compiled."""
    return 0.1 * math.sin(float(t)), 0.1 * math.cos(float(t)), -0.1 * math.sin(float(t))


class Odd(rm.Component):
    """A component that cannot be compiled."""

    def interface(self, robot):
        return rm.Interface(outputs={"angle": rm.Signal(1)})

    def outputs(self, at):
        return {"angle": np.array([math.sin(float(at.q[8]))])}

    def act(self, at):
        return rm.JointForce("j0", np.array([0.2 * math.sin(float(at.q[8]))]))


HALVES = [rm.Phase(0.5), rm.Phase(0.5, locked=["j1"], impulse=True)]
ABOVE = rm.Event(lambda t, q, v: q[9] > -0.3, "above", "stop")
PASSED = rm.Event(lambda t, q, v: float(q[9]) + 0.3, "passed", "stop", 1)
CLOCK = rm.ZeroOrderHold(law, 0.1)
#: Arguments of both. Bits are those of single runs but for lockstep, where times are multiples of
#: the step, and loads that Python samples in single runs: `alike` is then some units in the last
#: place.
CASES = {
    "impulse": {"phases": HALVES},
    "impulse, fixed steps": {"phases": HALVES, "integrator": "rk4", "step": 0.02,
                             "alike": 1e-15},
    "reduced": {"duration": 1.0, "model": "reduced"},
    "reduced, fixed steps": {"duration": 1.0, "model": "reduced", "integrator": "rk4",
                             "step": 0.02, "torque": {"j0": rm.Pulse(0.1, 0.3, 0.5)},
                             "alike": 1e-15},
    "radau": {"duration": 1.0, "integrator": "radau", "torque": {"j0": 0.1}},
    "radau and a system": {"system": rm.System(ARM, [Odd()]), "duration": 0.5,
                           "integrator": "radau"},
    "variational": {"duration": 1.0, "integrator": "variational", "step": 0.01},
    "own clock": {"phases": [rm.Phase(0.5), rm.Phase(0.5, torque=CLOCK, own_clock=True)],
                  "alike": 1e-15},
    "truth value": {"duration": 1.0, "events": [ABOVE], "target": "python"},
    "event": {"phases": [rm.Phase(1.0, events=[PASSED])], "target": "python"},
    "law": {"duration": 1.0, "torque": odd, "target": "python"},
    "sampled law": {"duration": 1.0, "torque": rm.ZeroOrderHold(odd, 0.1), "target": "python"},
    "component": {"system": rm.System(ARM, [Odd()]), "duration": 1.0, "target": "python"},
    "motion": {"duration": 1.0, "prescribed": {"j1": swing}, "target": "python",
               "j1": (0.0, 0.1)},
    "move": {"duration": 1.0, "prescribed": {"j1": Move.to(0.1, 0.0, 0.5)}, "j1": (None, 0.0),
             "target": "python"},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_batch_can_do_what_single_runs_can(name):
    options = {"integrator": "dopri5", "sample": 0.25, **CASES[name]}
    system, alike = options.pop("system", ARM), options.pop("alike", 0.0)
    place, speed = options.pop("j1", (None, None))
    q, v = Q.copy(), V.copy()
    q[:, 9] = q[:, 9] if place is None else place
    v[:, 7] = v[:, 7] if speed is None else speed
    batch = rm.simulate_batch(system, q, v, **grouped(True, **options))
    options.pop("target", None)
    for k in range(3):
        run = rm.simulate(
            system, q[k], v[k], **grouped(**options, run=k, step_to_samples=True, limits="ignore")
        )
        assert np.abs(batch.final.q[k] - run.q[-1]).max() <= alike
        assert np.abs(batch.final.v[k] - run.v[-1]).max() <= 10.0 * alike
        assert batch.end[k] == run.t[-1]
        assert batch.ok[k]
        for t, row in zip(batch.t, batch.q[k], strict=True):
            if t <= run.t[-1]:
                first = int(np.argmax(run.t >= t - 1e-12))
                assert np.abs(row - run.q[first]).max() <= alike
            else:
                assert np.isnan(row).all()
        for signal, values in batch.signals.items():
            assert np.array_equal(values[k, -1], run.signals[signal][-1])
        times = [] if batch.events is None else batch.events.times[k]
        assert [t for t in times if np.isfinite(t)] == [e.t for e in run.events]
        for event in run.events:
            assert batch.events.first[k, batch.events.names.index(event.name)] == event.t
        stopped = any(e.action == "stop" for e in run.events)
        assert batch.outcome[k] == ("stopped" if stopped else "complete")


def test_captures_one_after_the_other():
    robot, _ = flat()
    q, v = dispersed(3)
    v[2, 3:5] = 0.3, 0.0  # moves away
    options = {"phases": capture_phases(robot), "integrator": "radau", "rtol": 1e-8}
    batch = rm.simulate_batch(robot, q, v, **grouped(True, **options))
    assert batch.outcome.tolist() == ["complete", "complete", "no event"]
    for k in range(3):
        run = rm.simulate(
            robot, q[k], v[k], **grouped(**options, sample=batch.t, step_to_samples=True)
        )
        assert np.array_equal(batch.final.q[k], run.q[-1])
        same_switches(batch, k, run)


def test_captures_are_bitwise_those_of_single_runs():
    robot, _ = flat()
    q, v = dispersed(3)
    options = {"phases": capture_phases(robot), "integrator": "dopri5", "sample": 0.5}
    batch = rm.simulate_batch(robot, q, v, **grouped(True, **options))
    for k in range(3):
        run = rm.simulate(
            robot, q[k], v[k], **grouped(**options, step_to_samples=True, limits="ignore")
        )
        assert np.array_equal(batch.final.q[k], run.q[-1])
        assert np.array_equal(batch.final.v[k], run.v[-1])
        for mine, alone in zip(batch.switches, run.switches, strict=True):
            assert mine.t[k] == alone.t
            assert mine.energy_loss[k] == alone.energy_loss
            assert all(np.array_equal(mine.impulses[n][k], x) for n, x in alone.impulses.items())


@pytest.mark.parametrize("more", [{}, {"target": "python"}])
def test_each_run_has_its_own_parameters_loads_and_momentum(more):
    torque = np.zeros((3, 8))
    torque[:, 6] = 0.1, 0.2, 0.3
    options = {"duration": 0.5, "integrator": "dopri5", "model": "reduced", "torque": torque}
    options |= {"parameters": {"link1.mass": np.array([2.0, 2.5, 3.0])}, "breaks": [0.2], **more}
    batch = rm.simulate_batch(ARM, Q, V, **grouped(True, **options))
    for k in range(3):
        robot = ARM.replace_body("link1", mass=2.0 + 0.5 * k)
        given = {n: options[n] for n in ("duration", "integrator", "model", "breaks")}
        run = rm.simulate(robot, Q[k], V[k], **grouped(**given, torque=torque[k]))
        assert np.abs(batch.final.v[k] - run.v[-1]).max() < 1e-13
        again = batch[k]
        assert np.abs(batch.final.v[k] - again.v[-1]).max() < 1e-13
        h = rm.momentum(robot, batch.final.q[k], batch.final.v[k])
        assert np.abs(h - rm.momentum(robot, Q[k], V[k])).max() < 1e-13


@pytest.mark.parametrize("target", ["cpu", "python"])
def test_a_run_that_cannot_go_on_is_named_with_its_joint(target):
    """A locked joint moves in one run; `keep` leaves the others."""
    v = V.copy()
    v[:, 7] = 0.0, 0.25, 0.0
    options = {"duration": 0.5, "integrator": "dopri5", "locked": ["j1"], "target": target}
    with pytest.raises(
        rm.errors.SimulationError, match=r"run \[1\]: contradiction: joint 'j1' moves at"
    ):
        rm.simulate_batch(ARM, Q, v, **grouped(True, **options))
    batch = rm.simulate_batch(ARM, Q, v, **grouped(True, **options, failures="keep"))
    assert batch.ok.tolist() == [True, False, True]
    assert batch.outcome[1] == {"cpu": "contradiction", "python": "failed"}[target]


def test_a_driven_base_has_no_reduced_model():
    torque = np.array([0.1] + [0.0] * 7)
    options = {"duration": 0.5, "integrator": "dopri5", "model": "reduced", "torque": torque}
    with pytest.raises(rm.errors.SimulationError, match="a base that is not driven"):
        rm.simulate_batch(ARM, Q, V, **grouped(True, **options))
    for name, more in (("no prescribed or locked", {"locked": ["j1"], "torque": None}),
                       ("no external wrench", {"base_wrench": np.ones(6)})):  # fmt: skip
        with pytest.raises(RemoraError, match=name):
            rm.simulate_batch(ARM, Q, V, **grouped(True, **{**options, **more}))
    with pytest.raises(RemoraError, match="no model named 'small'"):
        rm.simulate_batch(ARM, Q, V, **grouped(True, **{**options, "model": "small"}))
    robot, q = flat()
    robot = robot.with_active(on=["grasp"])
    with pytest.raises(RemoraError, match="has no constraints \\('grasp'\\)"):
        rm.simulate_batch(
            robot,
            q,
            np.zeros(6),
            1.0,
            integrator=rm.Integrator(step=0.1),
            physics=rm.Physics(model="reduced"),
        )


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"dtype": "float32"}, "dtype='float32'"),
        ({"target": "cuda"}, "target='cuda'"),
        ({"inputs": {"k": np.ones(3)}}, "inputs="),
        ({"initial": {"a.b": 1.0}}, "initial="),
    ],
)
def test_what_python_does_not_do(more, told):
    with pytest.raises(RemoraError, match=f"integrator='radau' are made by Python.*{told}"):
        rm.simulate_batch(ARM, Q, V, 0.5, **grouped(True, integrator="radau", **more))


def test_refusals_name_the_way_out():
    with pytest.raises(RemoraError, match=r"'above' of a batch.*target='python'"):
        rm.simulate_batch(ARM, Q, V, 0.5, integrator=rm.Integrator(step=0.1), events=[ABOVE])
    with pytest.raises(RemoraError, match=r"'odd' cannot be compiled.*target='python'"):
        rm.simulate_batch(rm.System(ARM, [Odd()]), Q, V, 0.5, integrator=rm.Integrator(step=0.1))


@pytest.mark.parametrize("first", ["stop", "record"])
@pytest.mark.parametrize(
    "how", [{}, {"target": "python"}, {"integrator": "radau"}], ids=["compiled", "python", "radau"]
)
def test_a_stop_beside_another_event_is_a_stop(how, first):
    actions = [first, "record" if first == "stop" else "stop"]
    events = [
        rm.Event(lambda t, q, v: q[0] - 0.2, action, action, 1) for action in actions
    ]  # fmt: skip
    robot, given = slider(), {"integrator": "dop853", **how}
    batch = rm.simulate_batch(robot, [[0.0]], [[1.0]], 1.0, **grouped(True, events=events, **given))
    assert batch.outcome.tolist() == ["stopped"]
