"""Systems in batches: what single runs do, run by run, in machine code."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.algebra.array_ops import less, select
from remora.simulation.inputs.loads import Sum
from remora.simulation.program.event_search import _extrema

SERVICER = rm.load("servicer")
Q, V = rm.random_state(SERVICER, 1)
V = 0.1 * V


class Gyro(rm.Component):
    sigma: float

    def interface(self, robot):
        return rm.Interface(outputs={"rate": rm.Signal(3, "rad/s")}, noise={"n": 3})

    def outputs(self, at):
        return {"rate": at.angular_velocity("bus") + self.sigma * at.noise["n"]}


class Damper(rm.Component):
    """PI control of the base rates."""

    kp: float
    ki: float

    def interface(self, robot):
        return rm.Interface(
            inputs={"rate": rm.Signal(3, "rad/s")},
            outputs={"torque": rm.Signal(3, "N m")},
            discrete={"total": rm.State(np.zeros(3), "rad")},
        )

    def outputs(self, at):
        return {"torque": -self.kp * at.inputs["rate"] - self.ki * at.memory["total"]}

    def update(self, at):
        return {"total": at.memory["total"] + self.sample_time * at.inputs["rate"]}


class Lag(rm.Component):
    tau: float

    def interface(self, robot):
        return rm.Interface(
            inputs={"torque": rm.Signal(3, "N m")}, continuous={"x": rm.State(np.zeros(3), "N m")}
        )

    def derivative(self, at):
        return {"x": (at.inputs["torque"] - at.state["x"]) / self.tau}

    def act(self, at):
        return rm.Wrench("bus", torque=at.state["x"])


class Floor(rm.Component):
    e: float

    def interface(self, robot):
        return rm.Interface(events={"impact": rm.ZeroCrossing(-1, "reset")}, discrete={"count": 0})

    def crossings(self, at):
        return {"impact": at.q[..., 0]}

    def reset(self, at, event):
        return {"v": -self.e * at.v, "count": at.memory["count"] + 1.0}


def closed_loop(delay=0.02, kp=50.0):
    return rm.System(
        SERVICER,
        [Gyro(1e-2, sample_time=0.02), Damper(kp, 10.0, sample_time=0.02, delay=delay), Lag(0.05)],
    )


def ball(gravity=-9.81):
    builder = rm.Builder("ball", gravity=(0, 0, gravity)).body("ball", mass=2, inertia=(1, 1, 1))
    return builder.joint("slide", "prismatic", None, "ball", axis=(0, 0, 1)).build()


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.01, 0.047])
def test_the_same_as_single_runs(delay):
    """With noise, delays and states; issue 15: 1e-12 relative after 10 s."""
    system = closed_loop(delay)
    batch = rm.simulate_batch(
        system, Q, V, 10.0, integrator=rm.Integrator(step=0.01), record=1.0, runs=rm.Runs(3, seed=5)
    )
    run = rm.simulate(
        system,
        Q,
        V,
        10.0,
        integrator=rm.Integrator("rk4", step=0.01),
        record=1.0,
        seed=(5, 2),
        physics=rm.Physics(limits="ignore"),
    )
    assert np.abs(batch.q[2] - run.q).max() < 1e-12
    assert np.abs(batch.v[2] - run.v).max() < 1e-12 * np.abs(run.v).max()
    assert set(batch.signals) == {"gyro.rate", "damper.torque", "damper.total", "lag.x"}
    for name, values in batch.signals.items():
        assert np.abs(values[2] - run.signals[name]).max() < 1e-12 * np.abs(values).max()
    assert not np.array_equal(batch.signals["gyro.rate"][0], batch.signals["gyro.rate"][1])


@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "dopri5"}])
def test_bits_do_not_depend_on_the_batch(options):
    system = closed_loop()
    kp = np.linspace(20.0, 60.0, 21)
    asked = {"sample": 0.1, "seed": 7, **options}
    whole = rm.simulate_batch(
        system, Q, V, 0.4, **grouped(True, parameters={"damper.kp": kp}, **asked)
    )
    for part in (slice(0, 1), slice(3, 12), slice(20, 21)):
        some = rm.simulate_batch(
            system,
            Q,
            V,
            0.4,
            **grouped(True, parameters={"damper.kp": kp[part]}, run=np.arange(21)[part], **asked),
        )
        assert np.array_equal(some.v, whole.v[part])
        for name in whole.signals:
            assert np.array_equal(some.signals[name], whole.signals[name][part])
    for threads in (1, 2, 3):
        same = rm.simulate_batch(
            system,
            Q,
            V,
            0.4,
            **grouped(True, parameters={"damper.kp": kp}, threads=threads, **asked),
        )
        assert np.array_equal(same.q, whole.q)


def test_parameters_and_initial_states_differ_by_run():
    batch = rm.simulate_batch(
        closed_loop(),
        Q,
        V,
        0.3,
        integrator=rm.Integrator(step=0.01),
        record=0.1,
        runs=rm.Runs(
            parameters={"damper.kp": [50.0, 30.0], "bus.mass": [400.0, 500.0]},
            initial={"lag.x": [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]], "damper.total": [0.1, 0.0, 0.0]},
        ),
    )
    assert np.array_equal(batch.signals["lag.x"][:, 0], [[0, 0, 0], [1, 2, 3]])
    heavier = SERVICER.replace_body("bus", mass=500.0)
    system = rm.System(heavier, list(closed_loop(kp=30.0).components.values()))
    alone = rm.simulate_batch(
        system,
        Q,
        V,
        0.3,
        integrator=rm.Integrator(step=0.01),
        record=0.1,
        runs=rm.Runs(
            1, index=[1], initial={"lag.x": [1.0, 2.0, 3.0], "damper.total": [0.1, 0.0, 0.0]}
        ),
    )
    assert np.abs(alone.v[0] - batch.v[1]).max() < 1e-13
    assert batch.evaluate(rm.momentum).shape == (2, 4, 6)


@pytest.mark.parametrize("options", [{"step": 0.05}, {"integrator": "dopri5"}])
def test_resets_at_the_bit_of_their_time(options):
    """A bouncing ball against its closed form, in every run another; some come to rest."""
    height, e = np.linspace(0.5, 3.0, 13), np.linspace(0.3, 0.9, 13)
    batch = rm.simulate_batch(
        rm.System(ball(), [Floor(0.5)]),
        height[:, None],
        [0.0],
        1.5,
        **grouped(
            True,
            parameters={"floor.e": e},
            sample=0.25,
            failures="keep",
            max_events=2000,
            **options,
        ),
    )
    assert batch.events.names == ("floor.impact",)
    at_rest = np.sqrt(2.0 * height / 9.81) * (1.0 + e) / (1.0 - e)
    assert 0 < (at_rest < 1.5).sum() < 13
    assert ((batch.outcome == "chattering") == (at_rest < 1.5)).all()
    for k in range(13):
        falls = [np.sqrt(2.0 * height[k] / 9.81)]
        speed = 9.81 * falls[0] * e[k]
        while falls[-1] + 2.0 * speed / 9.81 < 1.5 and speed > 0.05:
            falls.append(falls[-1] + 2.0 * speed / 9.81)
            speed *= e[k]
        found = batch.events.of("floor.impact")[k][: len(falls)]
        assert np.abs(found - falls).max() < 1e-12
        if speed > 0.05:
            assert batch.events.counts[k] == len(falls)
            assert batch.signals["floor.count"][k, -1] == len(falls)


def test_inputs_may_have_any_name():
    """Also those of variables of the machine code."""
    names = ("h", "k", "K", "x", "z", "length", "end", "run", "now", "status")
    inputs = {name: np.array([1.0, 2.0]) for name in names}

    def torque(t, q, v, h, k, K, x, z, length, end, run, now, status):
        return np.concatenate([np.zeros(12), (h * k * K * x * z * length * end * run * now)[None]
                               * 1e-6 * status])  # fmt: skip

    for options in ({"step": 0.01}, {"integrator": "dopri5"}):
        batch = rm.simulate_batch(
            SERVICER, Q, V, 0.1, **grouped(True, torque=torque, inputs=inputs, **options)
        )
        for k, factor in enumerate((1.0, 2.0**10)):
            force = np.append(np.zeros(12), 1e-6 * factor)
            same = rm.simulate_batch(SERVICER, Q, V, 0.1, **grouped(True, torque=force, **options))
            assert np.abs(same.v - batch.v[k]).max() < 1e-14


def test_excursions_within_a_step_are_seen():
    """A ball that rises above a height for 0.1 s within a step of 1 s."""
    robot = ball(-10.0)
    event = rm.Event(lambda t, q, v: q[0] - (5.0 - 0.5 * 10.0 * 0.05**2), "high", "record", 1)
    batch = rm.simulate_batch(
        robot,
        [[0.0], [0.0]],
        [[10.0], [9.9]],
        2.0,
        integrator=rm.Integrator(step=1.0),
        events=event,
    )
    assert batch.events.counts.tolist() == [1, 0]
    assert batch.events.times[0, 0] == pytest.approx(0.95, abs=1e-12)


class Wheel(rm.Component):
    """A wheel that absorbs a torque and is saturated at a momentum; its norm has no slope at 0."""

    capacity: float = 0.5  # N m s

    def interface(self, robot):
        return rm.Interface(
            continuous={"momentum": rm.State(np.zeros(2), "N m s")},
            events={"saturated": rm.ZeroCrossing(1, "stop")},
            breaks=(0.2,),
        )

    def derivative(self, at):
        started = select(less(at.t, 0.2), 0.0, 1.0)
        return {"momentum": started * np.array([0.6, 0.8]) + 0.0 * at.state["momentum"]}

    def crossings(self, at):
        h = at.state["momentum"]
        return {"saturated": np.sqrt(np.sum(h * h, axis=-1)) - self.capacity}


def test_extrema_of_a_cubic_with_a_slope_that_is_nan():
    start, end, nan = np.array([-1.0]), np.array([-0.5]), np.array([np.nan])
    for slopes in [(nan, np.zeros(1)), (np.zeros(1), nan), (nan, nan)]:
        for place, value in _extrema(start, slopes[0], end, slopes[1]):
            assert (place, value) == (0.0, -1.0)


def test_an_event_of_a_norm_that_starts_at_zero():
    # where a NaN slope counts as a crossing, steps become ever shorter and the batch does not end
    system = rm.System(ball(0.0), [Wheel()])
    capacity = np.array([0.1, 0.25, 0.5])
    batch = rm.simulate_batch(
        system,
        [0.0],
        [0.0],
        2.0,
        integrator=rm.Integrator(step=0.1),
        runs=rm.Runs(parameters={"wheel.capacity": capacity}),
    )
    assert batch.outcome.tolist() == ["stopped"] * 3
    assert np.abs(batch.end - (0.2 + capacity)).max() < 1e-12


def test_phases_that_end_at_events():
    robot, height = ball(), np.linspace(0.5, 3.0, 5)
    phases = [
        rm.Phase(5.0, events=[rm.Event(lambda t, q, v: q[0] - 0.2, "low", "next", -1)]),
        rm.Phase(0.2, torque=np.array([50.0])),
        rm.Phase(1.0, events=[rm.Event(lambda t, q, v: v[0], "top", "stop", -1)]),
    ]
    batch = rm.simulate_batch(
        robot, height[:, None], [0.0], phases, integrator=rm.Integrator(step=0.01), record=0.1
    )
    assert batch.ok.all()
    for k in range(5):
        run = rm.simulate(robot, height[k : k + 1], [0.0], phases, record=0.1)
        assert batch.end[k] == pytest.approx(run.t[-1], abs=1e-13)
        stopped = any(e.name == "top" for e in run.events)
        assert batch.outcome[k] == ("stopped" if stopped else "complete")
        inside = np.flatnonzero(batch.t <= run.t[-1])
        assert (
            np.abs(batch.q[k, inside, 0] - np.interp(batch.t[inside], run.t, run.q[:, 0])).max()
            < 1e-2
        )
        assert np.isnan(batch.q[k, batch.t > batch.end[k] + 1e-9]).all()
        times = batch.events.times[k]
        expected = [e.t for e in run.events]
        assert np.abs(times[: len(expected)] - expected).max() < 1e-13


def test_prescribed_and_locked_joints():
    joint = SERVICER.joints["elbow_pitch"]
    q, v = Q, V.copy()
    v[joint.v] = 0.0
    place = float(q[joint.q][0])
    phases = [
        rm.Phase(1.0, prescribed={"elbow_pitch": rm.Motion.between(0, 1, place, place + 0.5)}),
        rm.Phase(1.0, locked="elbow_pitch", torque={"wrist_pitch": rm.Pulse(1.2, 1.5, 0.1)}),
        rm.Phase(0.5, prescribed={"elbow_pitch": lambda t: place + 0.5 + 0.2 * t**3},
                 own_clock=True),
    ]  # fmt: skip
    run = rm.simulate(
        SERVICER,
        q,
        v,
        phases,
        integrator=rm.Integrator("rk4", step=0.01),
        record=0.25,
        physics=rm.Physics(limits="ignore"),
    )
    batch = rm.simulate_batch(
        SERVICER, q, v, phases, integrator=rm.Integrator(step=0.01), record=0.25, runs=2
    )
    assert np.abs(batch.q[1] - run.q).max() < 1e-11
    exact = rm.simulate(SERVICER, q, v, phases, record=0.25, physics=rm.Physics(limits="ignore"))
    fine = rm.simulate_batch(
        SERVICER,
        q,
        v,
        phases,
        record=0.25,
        runs=2,
        integrator=rm.Integrator("dop853", rtol=1e-12, atol=1e-14),
    )
    assert np.abs(fine.q[1] - exact.q).max() < 1e-9


def test_loads_in_all_forms():
    """Controllers, base wrenches and wrenches by body do in a batch what they do in one run."""
    law = rm.control.JointPD(SERVICER, {"elbow_pitch": -0.9}, 20.0, 10.0, 0.05)
    options = {
        "torque": Sum(law, {"wrist_roll": rm.Pulse(0.1, 0.3, 1e-3)},
                         rm.ZeroOrderHold(lambda t, q, v: -1e-3 * v, 0.02)),
        "base_wrench": np.array([0.1, 0.0, 0.0, 0.0, 0.2, 0.0]),
        "wrenches": {"bus": lambda t, q, v: np.sin(t) * np.array([0.0, 0.1, 0.0, 0.0, 0.0, 1.0])},
    }  # fmt: skip
    batch = rm.simulate_batch(
        SERVICER, Q, V, **grouped(True, duration=0.5, step=0.01, sample=0.1, runs=2, **options)
    )
    plain = {"duration": 0.5, "integrator": "rk4", "step": 0.01, "sample": 0.1, "limits": "ignore"}
    run = rm.simulate(SERVICER, Q, V, **grouped(**plain, **options))
    assert np.abs(batch.q[0] - run.q).max() < 1e-12
    assert np.abs(batch.v[0] - run.v).max() < 1e-11


def test_adaptive_runs_hold_their_tolerance():
    rng = np.random.default_rng(0)
    q, v = np.tile(rm.neutral(SERVICER), (4, 1)), 0.05 * rng.normal(size=(4, SERVICER.nv))
    for integrator in ("dopri5", "dop853"):
        batch = rm.simulate_batch(
            SERVICER, q, v, 5.0, integrator=rm.Integrator(integrator, rtol=1e-9, atol=1e-11)
        )
        for k in range(4):
            exact = rm.simulate(
                SERVICER,
                q[k],
                v[k],
                5.0,
                integrator=rm.Integrator(rtol=1e-13, atol=1e-15),
                physics=rm.Physics(limits="ignore"),
            )
            assert np.abs(batch.v[k, -1] - exact.v[-1]).max() < 1e-8


def test_large_robots():
    """More bodies than straight-line code has room for: the same batch from other code."""
    robot = rm.random_robot(3, bodies=210, kinds=("revolute",), base="free")
    q, v = rm.random_state(robot, 1)
    v = 0.01 * v
    body = robot.bodies[0].name

    class Brake(rm.Component):
        c: float

        def act(self, at):
            return rm.Wrench(body, torque=-self.c * at.v[..., :3])

    system = rm.System(robot, [Brake(0.3, sample_time=0.02, delay=0.01)])
    batch = rm.simulate_batch(
        system, np.stack([q, q]), v, 0.06, integrator=rm.Integrator(step=0.01), record=0.02
    )
    run = rm.simulate(
        system,
        q,
        v,
        0.06,
        integrator=rm.Integrator("rk4", step=0.01),
        record=0.02,
        physics=rm.Physics(limits="ignore"),
    )
    assert np.abs(batch.q[1] - run.q).max() < 1e-13
    with pytest.raises(rm.RemoraError, match="more than 200 run in float64 on the CPU"):
        rm.simulate_batch(
            system,
            q,
            v,
            0.1,
            integrator=rm.Integrator(step=0.01),
            target=rm.Target(dtype="float32"),
        )


def test_large_robots_take_their_own_steps_and_stop_at_events():
    """More bodies than straight-line code has room for: adaptive steps, an event in each run."""
    robot = rm.random_robot(3, bodies=210, kinds=("revolute",), base="free")
    q, v = rm.random_state(robot, 1)
    body, v = robot.bodies[0].name, 0.01 * v

    class Push(rm.Component):
        def interface(self, robot):
            return rm.Interface(events={"fast": rm.ZeroCrossing(1, "stop")})

        def act(self, at):
            return rm.Wrench(body, torque=[0.1 * (1.0 + at.t), 0.0, 0.0])

        def crossings(self, at):
            return {"fast": at.v[..., 0] - 1.01 * v[0]}

    system = rm.System(robot, [Push()])
    starts = np.stack([v, 0.9 * v, 1.009 * v])
    options = {"integrator": "dopri5", "rtol": 1e-8, "atol": 1e-10}
    batch = rm.simulate_batch(system, q, starts, 0.3, **grouped(True, sample=0.05, **options))
    for k, start in enumerate(starts):
        run = rm.simulate(
            system,
            q,
            start,
            0.3,
            integrator=rm.Integrator(rtol=1e-12, atol=1e-14),
            physics=rm.Physics(limits="ignore"),
        )
        assert abs(batch.end[k] - run.t[-1]) < 1e-8
        assert np.abs(batch.final.v[k] - run.v[-1]).max() < 1e-8


class Untraceable(rm.Component):
    def act(self, at):
        strong = 1.0 if at.v[0] > 0.0 else 0.0
        return rm.Wrench("bus", torque=[strong, 0.0, 0.0])


class Broken(rm.Component):
    def interface(self, robot):
        return rm.Interface(outputs={"ratio": rm.Signal()})

    def outputs(self, at):
        return {"ratio": np.sqrt(0.03 - at.t)}

    def act(self, at):
        return rm.Wrench("bus", torque=np.sqrt(0.04 - at.t) * np.array([1.0, 0.0, 0.0]))


class Chatter(rm.Component):
    def interface(self, robot):
        return rm.Interface(events={"turn": rm.ZeroCrossing(0, "reset")})

    def crossings(self, at):
        return {"turn": at.v[..., 0]}

    def reset(self, at, event):
        return {"v": -1e-12 * np.ones(1)}


def test_refusals():
    with pytest.raises(rm.RemoraError, match=r"'untraceable' cannot be compiled.*if at.v"):
        rm.simulate_batch(
            rm.System(SERVICER, [Untraceable()]), Q, V, 0.1, integrator=rm.Integrator(step=0.01)
        )
    system = closed_loop()
    with pytest.raises(rm.RemoraError, match=r"no parameter named 'damper.kq'.*damper.kp"):
        rm.simulate_batch(
            system,
            Q,
            V,
            0.1,
            integrator=rm.Integrator(step=0.01),
            runs=rm.Runs(parameters={"damper.kq": [1.0]}),
        )
    with pytest.raises(rm.RemoraError, match=r"no signal named 'gyro\.rat'"):
        rm.simulate_batch(
            system,
            Q,
            V,
            0.1,
            integrator=rm.Integrator(step=0.01),
            record=rm.Record(signals=["gyro.rat"]),
        )
    with pytest.raises(rm.RemoraError, match=r"no state of a component named 'lag\.y'"):
        rm.simulate_batch(
            system,
            Q,
            V,
            0.1,
            integrator=rm.Integrator(step=0.01),
            runs=rm.Runs(initial={"lag.y": 1.0}),
        )
    with pytest.raises(rm.RemoraError, match="seed must be a whole number"):
        rm.simulate_batch(
            system, Q, V, 0.1, integrator=rm.Integrator(step=0.01), runs=rm.Runs(seed=-1)
        )
    with pytest.raises(rm.RemoraError, match=r"'rk4', step=0\.01"):
        rm.simulate_batch(system, Q, V, 0.1)
    event = rm.Event(lambda t, q, v: q[0] > 0.5, "up")
    with pytest.raises(rm.RemoraError, match="not a truth value"):
        rm.simulate_batch(
            ball(), [0.0], [0.0], 1.0, integrator=rm.Integrator(step=0.1), events=event
        )


def test_numbers_that_are_lost_name_the_signal():
    with pytest.raises(rm.errors.SimulationError, match="do not stay finite"):
        rm.simulate_batch(
            rm.System(SERVICER, [Broken()]),
            Q,
            V,
            0.2,
            integrator=rm.Integrator(step=0.01),
            record=0.02,
            runs=2,
        )


def test_chattering_ends_a_run():
    robot = ball(gravity=1.0)
    with pytest.warns(RuntimeWarning, match="1 runs had more than 4 events"):
        batch = rm.simulate_batch(
            rm.System(robot, [Chatter()]),
            [[0.0], [0.0]],
            [[-1e-12], [1.0]],
            1.0,
            integrator=rm.Integrator(step=0.1),
            record=rm.Record(failures="keep", max_events=4),
        )
    assert batch.outcome.tolist() == ["chattering", "complete"]
    assert batch.ok.tolist() == [False, True]
