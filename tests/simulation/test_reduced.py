"""Runs by the reduced model and of the equivalent manipulator: the same motion, fewer states."""

import os

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from peers import pinocchio_model
from plain_settings import grouped

ROBOT = rm.load("servicer")
AMPLITUDE = np.array([0.4, 0.4, 0.2, 0.2, 0.05, 0.05, 0.02])
PRECISE = {"rtol": 1e-12, "atol": 1e-13, "sample": 1.0, "limits": "ignore"}


def start(momentum=True):
    q = rm.neutral(ROBOT)
    q[8:] = np.radians([0, 30, 0, -60, 0, 45, 0])
    v = 0.02 * np.random.default_rng(1).normal(size=ROBOT.nv)
    if not momentum:
        v[:6] = rm.base_velocity(ROBOT, q, v[6:])
    return q, v


def forces(base):
    return lambda t, q, v: np.r_[np.zeros(base), 0.3 * AMPLITUDE * np.sin(0.7 * t)]


@pytest.fixture(scope="module", params=[False, True], ids=["no momentum", "momentum"])
def full(request):
    return rm.simulate(ROBOT, *start(request.param), 60.0, **grouped(torque=forces(6), **PRECISE))


def test_the_reduced_model_moves_as_the_full_one(full):
    q, v = full.q[0], full.v[0]
    run = rm.simulate(ROBOT, q, v, 60.0, **grouped(torque=forces(6), model="reduced", **PRECISE))
    assert np.array_equal(run.t, full.t)
    assert_close(run.q, full.q, rtol=1e-9)  # the base's pose is reconstructed
    assert_close(run.v, full.v, rtol=1e-9)
    assert_close(run.work, full.work, rtol=1e-9)
    # momentum is kept by construction, to rounding, whatever the steps are
    size = np.abs(run.twists).max() * np.abs(rm.dynamics.locked_inertia(ROBOT, q)).max()
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-14 * max(1.0, size) * 100
    assert run.settings["model"] == "reduced"


def test_coarse_steps_keep_momentum_in_the_reduced_model_only():
    q, v = start()
    v = 10.0 * v
    drift = {}
    for model in ("full", "reduced"):
        run = rm.simulate(
            ROBOT,
            q,
            v,
            20.0,
            integrator=rm.Integrator("rk4", step=0.25),
            physics=rm.Physics(model=model, limits="ignore"),
        )
        drift[model] = np.abs(run.momentum - run.momentum[0]).max()
    assert drift["reduced"] < 1e-11
    assert drift["full"] > 1e3 * drift["reduced"]


def test_the_equivalent_manipulator_moves_as_the_full_model(full):
    twin = rm.equivalent_manipulator(ROBOT)
    q, v = rm.papers.fpg11.equivalent_state(ROBOT, full.q[0], full.v[0])
    run = rm.simulate(twin, q, v, 60.0, **grouped(torque=forces(3), **PRECISE))
    assert_close(run.q[:, 4:], full.q[:, 8:], rtol=1e-9)
    assert_close(run.v, np.delete(full.v, [3, 4, 5], axis=1), rtol=1e-9)
    tool = full.frame("tool").position - full.com
    assert_close(run.frame("tool").position, tool, rtol=1e-9)


def test_pinocchio_as_a_second_witness_of_the_equivalent_manipulator(full):
    """Pinocchio's ABA of the twin in SciPy's DOP853, over the same 60 s."""
    pin = pytest.importorskip("pinocchio")
    integrate = pytest.importorskip("scipy.integrate")
    twin = rm.equivalent_manipulator(ROBOT)
    model, _, _ = pinocchio_model(twin)
    data, layout = model.createData(), rm.layouts.pinocchio(twin, model)
    q, v = rm.papers.fpg11.equivalent_state(ROBOT, full.q[0], full.v[0])
    torque = forces(3)
    # Pinocchio's order is read off its layout: quaternion x, y, z, w; speeds as ours
    first, speed = layout.q_to(q), layout.v_to(q, v)
    assert np.array_equal(first[:4], np.roll(q[:4], -1))
    assert np.array_equal(speed, v)

    def rate(t, y):
        x, s = y[: model.nq], y[model.nq :]
        x = np.concatenate([x[:4] / np.linalg.norm(x[:4]), x[4:]])
        turn, w = x[:4], s[:3]
        turning = 0.5 * np.r_[turn[3] * w + np.cross(turn[:3], w), -turn[:3] @ w]
        return np.r_[turning, s[3:], pin.aba(model, data, x, s, torque(t, x, s))]

    made = integrate.solve_ivp(
        rate, (0.0, 60.0), np.r_[first, speed], "DOP853", full.t, rtol=1e-12, atol=1e-13
    )
    assert_close(made.y[4 : model.nq].T, full.q[:, 8:], rtol=1e-9)


def test_controllers_events_and_storage_work_as_ever(tmp_path):
    q, v = start()
    goal, inertia, seen = q[8:] + 0.2, np.diag(rm.mass_matrix(ROBOT, q))[6:], []

    def law(t, q, v):
        seen[:] = q.copy(), v.copy()  # what it sees is the whole state
        return np.r_[np.zeros(6), inertia * (2.0 * (goal - q[8:]) - 2.0 * v[6:])]

    crossed = rm.Event(lambda t, q, v: q[9] - (goal[1] - 0.1), "half way")
    options = {
        "events": [crossed], "integrator": "dopri5", "rtol": 1e-11, "sample": 0.5,
        "limits": "ignore",
    }  # fmt: skip
    runs = [
        rm.simulate(
            ROBOT, q, v, 5.0, **grouped(torque=law, model=model, out=tmp_path / model, **options)
        )
        for model in ("full", "reduced")
    ]
    assert_close(runs[1].q, runs[0].q, rtol=1e-8)
    assert_close(rm.momentum(ROBOT, *seen), rm.momentum(ROBOT, q, v), rtol=1e-11)
    assert [e.name for e in runs[0].events] == [e.name for e in runs[1].events] == ["half way"]
    assert abs(runs[0].events[0].t - runs[1].events[0].t) < 1e-8
    again = rm.open_run(tmp_path / "reduced")
    assert np.array_equal(again.q, runs[1].q)
    assert again.settings["model"] == "reduced"


def test_refusals():
    q, v = start()

    def run(robot=ROBOT, **options):
        state = (q, v) if robot is ROBOT else (rm.neutral(robot), np.zeros(robot.nv))
        return rm.simulate(
            robot, *state, **grouped(**{"duration": 1.0, "model": "reduced", **options})
        )

    for options, reason in (
        ({"model": "small"}, "no model named 'small'; known: full, reduced"),
        ({"wrenches": np.zeros((8, 6))}, "no external wrench"),
        ({"base_wrench": np.ones(6)}, "no external wrench"),
        ({"locked": [ROBOT.joints[2].name]}, "no prescribed or locked joints"),
        ({"integrator": "radau"}, "goes with dop853, dopri5, rk4"),
        ({"torque": np.ones(ROBOT.nv)}, "torque on it"),
        ({"robot": ROBOT.replace(gravity=(0, 0, -1))}, "under gravity"),
        ({"robot": rm.equivalent_manipulator(ROBOT)}, "base on a free joint"),
        ({"robot": rm.random_robot(0, bodies=1)}, "no joints besides its base"),
        ({"robot": ROBOT.replace_joint(0, damping=1.0)}, "damping or friction"),
    ):
        with pytest.raises(rm.RemoraError, match=reason):
            run(**options)


def stopping(t, q, v):
    """Damping of the joints; interrupts the run where the environment says so."""
    if t > 2.3 and os.environ.get("STOP_REDUCED_RUN"):
        raise KeyboardInterrupt
    return np.r_[np.zeros(6), -0.5 * v[6:]]


@pytest.mark.filterwarnings("ignore:.*interrupted")
def test_a_reduced_run_is_resumed_to_the_same_bits(tmp_path, monkeypatch):
    q, v = start()
    given = {"torque": stopping, "sample": 0.1, "model": "reduced"}
    whole = rm.simulate(ROBOT, q, v, 5.0, **grouped(**given))
    monkeypatch.setenv("STOP_REDUCED_RUN", "1")
    part = rm.simulate(ROBOT, q, v, 5.0, **grouped(out=tmp_path / "run", **given))
    assert part.status == "interrupted"
    assert len(part) < len(whole)
    monkeypatch.delenv("STOP_REDUCED_RUN")
    resumed = rm.simulate(ROBOT, q, v, 5.0, **grouped(out=tmp_path / "run", resume=True, **given))
    assert resumed.status == "complete"
    assert np.array_equal(resumed.q, whole.q)
    assert np.array_equal(resumed.v, whole.v)
    with pytest.raises(rm.RemoraError, match="model is 'reduced' there"):
        rm.simulate(
            ROBOT,
            q,
            v,
            5.0,
            torque=stopping,
            record=rm.Record(0.1, folder=tmp_path / "run", resume=True),
        )


def test_events_and_samples_within_steps_see_the_speed_of_the_base():
    q, v = start()
    begin = v[0]
    event = rm.Event(lambda t, q, v: v[0] - begin - 2e-4, "turning", action="record")
    given = {"torque": forces(6), "events": [event], "sample": 0.05}
    given |= {"rtol": 1e-12, "atol": 1e-13, "limits": "ignore"}
    runs = [
        rm.simulate(ROBOT, q, v, 20.0, **grouped(model=model, **given))
        for model in ("full", "reduced")
    ]
    times = [[event.t for event in run.events] for run in runs]
    assert times[0]
    assert_close(np.array(times[1]), np.array(times[0]), rtol=1e-9)
    # dense output has the speeds of the joints; those of the base follow from momentum
    size = np.abs(runs[1].momentum).max()
    assert np.abs(runs[1].momentum - runs[1].momentum[0]).max() < 1e-13 * max(1.0, size)


def test_loads_that_python_computes():
    """The same as those that are compiled, to the last bits."""
    q, v = start()
    runs = [
        rm.simulate(ROBOT, q, v, 1.0, torque=torque, physics=rm.Physics(model="reduced"))
        for torque in (np.array([0.0] * 6 + [0.1] * 7), lambda t, q, v: [0.0] * 6 + [0.1] * 7)
    ]
    assert_close(runs[1].q[-1], runs[0].q[-1], rtol=1e-14)
    assert_close(runs[1].v[-1], runs[0].v[-1], rtol=1e-13)
