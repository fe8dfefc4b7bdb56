"""Bad input, interrupts, crashes: a clear error, the time, and what was computed is kept."""

import itertools
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from processes import started

VT18 = rm.load("vt18_satellite")
Q, V = rm.neutral(VT18), np.zeros(9)


def stopping(**options):
    with pytest.raises(rm.errors.SimulationError) as caught:
        rm.simulate(VT18, Q, V, 5.0, **grouped(**options))
    return caught.value


def after(t0, bad):
    return lambda t, q, v: bad if t > t0 else np.full(9, 0.01)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (np.full(9, np.nan), r"torque\[0\] is nan, not a finite number"),
        (np.r_[np.zeros(7), np.inf, 0.0], r"torque\[7\] is inf"),
        (np.zeros(8), r"torque must have shape \(9,\), not \(8,\)"),
        (np.zeros((1, 9)), r"torque must have shape \(9,\), not \(1, 9\)"),
        ("much", "torque must be numbers"),
        (None, "torque"),
    ],
)
@pytest.mark.parametrize("integrator", ["dop853", "radau", "rk4"])
def test_a_torque_that_goes_bad(bad, text, integrator):
    error = stopping(torque=after(1.0, bad), integrator=integrator, max_step=0.2, step=0.05)
    assert pytest.approx(1.0, abs=0.25) == error.time
    assert str(error).startswith("at t = ")
    with pytest.raises(rm.RemoraError, match=text):
        raise error
    run = error.recording
    assert run.status == "failed"
    assert str(error) == run.message
    assert 3 < len(run) < 100
    assert run.t[-1] <= 1.0
    assert np.all(np.isfinite(run.q))


def test_a_function_that_raises():
    error = stopping(torque=lambda t, q, v: np.zeros(9) if t < 1 else 1 / 0)
    assert "the function of torque raised ZeroDivisionError: division by zero" in str(error)
    assert len(error.recording) > 1


def test_a_controller_that_goes_bad():
    law = rm.ZeroOrderHold(lambda t, q, v: np.zeros(9) if t < 0.95 else np.zeros(3), 0.1)
    error = stopping(torque=law)
    assert error.time == pytest.approx(1.0)
    assert "torque must have shape (9,), not (3,)" in str(error)


def test_an_event_that_goes_bad():
    bad = rm.Event(lambda t, q, v: np.nan if t > 1 else 1.0, "odd")
    assert "the condition of event 'odd' is NaN" in str(stopping(events=[bad], max_step=0.5))


def test_a_step_that_underflows():
    """A force that goes to infinity in finite time."""
    builder = rm.Builder("mass").body("mass", mass=1, inertia=(1, 1, 1))
    robot = builder.joint("slide", "prismatic", None, "mass").build()
    with pytest.raises(rm.errors.SimulationError, match="steps became too short") as caught:
        rm.simulate(robot, [0.0], [1.0], 5.0, torque=lambda t, q, v: v**2)
    assert caught.value.time == pytest.approx(1.0, abs=1e-6)  # v = 1/(1 - t)
    assert len(caught.value.recording) > 20


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"integrator": "euler"}, "no integrator named 'euler'; known: dop853, dopri5, rk4, radau"),
        ({"integrator": "rk4"}, "step=0.01"),
        ({"rtol": -1.0}, "rtol must be finite and not negative"),
        ({"atol": 0.0}, "atol must be positive"),
        ({"step": 0.0}, "step must be positive"),
        ({"max_step": -1.0}, "max_step must be positive"),
        ({"sample": 0.0}, "sample must be a positive number"),
        ({"sample": [1.0, 0.5]}, "must be finite and ascend"),
        ({"sample": [9.0]}, "must lie between 0 and 5 s"),
        ({"duration": np.inf}, "duration must be a number of seconds"),
        ({"duration": None}, "duration is missing"),
        ({"formulation": "magic"}, "no formulation of forward dynamics named 'magic'"),
        ({"limits": "bounce"}, "no treatment of limits named 'bounce'"),
        ({"stops": -1.0}, "stiffness must be finite and not negative"),
        ({"torque": np.zeros(3)}, r"torque must have shape \(9,\), not \(3,\)"),
        ({"torque": {"J9": 1.0}}, "no joint named 'J9'"),
        ({"torque": {"J1": [1.0, 2.0]}}, r"torque of 'J1' must have shape \(1,\)"),
        ({"wrenches": {"nose": np.zeros(6)}}, "no body named 'nose'"),
        ({"base_wrench": [1.0]}, r"base_wrench must have shape \(6,\)"),
        ({"base_wrench": {"body_1": np.zeros(6)}}, "base_wrench cannot be given by name"),
        (
            {"torque": rm.ZeroOrderHold(lambda t, q, v: 0.0, 0.0)},
            "sample time of torque must be positive",
        ),
        ({"phases": [], "duration": None}, "one or more rm.Phase"),
        ({"phases": [rm.Phase(1.0)], "duration": None, "torque": np.ones(9)}, "in each phase"),
        ({"progress": "yes"}, "progress must be True"),
        ({"integrator": "variational", "step": 0.1, "locked": ["J2"]}, "cannot hold or prescribe"),
    ],
)
def test_what_does_not_fit_is_refused(options, text):
    with pytest.raises(rm.RemoraError, match=text):
        rm.simulate(VT18, Q, V, **grouped(**{"duration": 5.0, **options}))


@pytest.mark.parametrize("phases", [1.0, [rm.Phase(10.0), rm.Phase(1e-3)]])
def test_a_phase_that_time_does_not_resolve(phases):
    start = 1e17 if phases == 1.0 else 1e12
    for run in (
        lambda: rm.simulate(VT18, Q, V, phases, start=start),
        lambda: rm.simulate_batch(
            VT18, Q[None], V[None], phases, start=start, integrator=rm.Integrator("dop853")
        ),
    ):
        with pytest.raises(rm.RemoraError, match=r"duration of a phase.*time does not resolve it"):
            run()


def test_states_that_do_not_fit():
    with pytest.raises(rm.RemoraError, match=r"see rm\.simulate_batch"):
        rm.simulate(VT18, np.tile(Q, (3, 1)), V, 1.0)
    with pytest.raises(rm.RemoraError, match="not of unit length"):
        rm.simulate(VT18, 2 * Q, V, 1.0)
    with pytest.raises(rm.RemoraError, match="v"):
        rm.simulate(VT18, Q, np.full(9, np.nan), 1.0)
    stone = rm.Builder("stone").body("stone", mass=1, inertia=(1, 1, 1))
    stone = stone.joint("ground", "fixed", None, "stone").build()
    with pytest.raises(rm.RemoraError, match="cannot move"):
        rm.simulate(stone, [], [], 1.0)


def test_profiles_and_events_that_do_not_fit():
    for make, text in (
        (lambda: rm.Profile([0, 1, 1], [0, 1, 2]), "times of a profile must ascend: 1 s, then 1 s"),
        (lambda: rm.Profile([0, 1], [0, 1, 2]), "as many values"),
        (lambda: rm.Profile([0, 1], [0, np.nan]), "must be finite"),
        (lambda: rm.Profile([0, 1], [0, 1], kind="quintic"), "no kind of profile named 'quintic'"),
        (lambda: rm.Pulse(2, 1, 1.0), "start < stop"),
        (lambda: rm.Motion.between(2, 1, 0, 1), "start < stop"),
        (lambda: rm.Event(lambda t, q, v: 0.0, action="jump"), "no action of an event named"),
        (lambda: rm.Event(lambda t, q, v: 0.0, direction=2), "direction of an event"),
        (lambda: rm.Event(3.0), "must be a function"),
        (lambda: rm.Phase(-1.0), "duration of a phase"),
    ):
        with pytest.raises(rm.RemoraError, match=text):
            make()


def test_ctrl_c_keeps_what_was_computed(tmp_path):
    def interrupt(t, q, v):
        if t > 1.0:
            raise KeyboardInterrupt
        return np.full(9, 0.01)

    with pytest.warns(RuntimeWarning, match="what was computed is kept"):
        run = rm.simulate(
            VT18,
            Q,
            V,
            50.0,
            torque=interrupt,
            integrator=rm.Integrator(max_step=0.1),
            record=rm.Record(folder=tmp_path / "run"),
        )
    assert run.status == "interrupted"
    assert 5 < len(run) < 100
    again = rm.open_run(tmp_path / "run")
    assert again.status == "interrupted"
    assert np.array_equal(again.q, run.q)


def test_progress_is_told():
    seen = []
    rm.simulate(
        VT18,
        Q,
        V,
        30.0,
        torque=np.full(9, 0.01),
        integrator=rm.Integrator(max_step=0.01),
        record=rm.Record(progress=seen.append),
    )
    assert seen[-1].fraction == 1.0
    assert all(a.t <= b.t for a, b in itertools.pairwise(seen))
    assert seen[-1].speed > 1.0
    assert np.isfinite(seen[-1].drift)


def test_a_bar_is_drawn_if_asked_for(capfd):
    rm.simulate(
        VT18,
        Q,
        V,
        10.0,
        torque=np.full(9, 0.01),
        integrator=rm.Integrator(max_step=0.002),
        record=rm.Record(progress=True),
    )
    shown = capfd.readouterr().err
    assert "real time" in shown
    assert "drift" in shown


# On disk ------------------------------------------------------------------------------------------


def test_a_run_is_saved_as_it_goes_and_opened_again(tmp_path):
    torque = {"J1": rm.Pulse(0.2, 0.7, 1.0)}
    run = rm.simulate(
        VT18, Q, V, 2.0, torque=torque, record=rm.Record(0.01, folder=tmp_path / "run")
    )
    again = rm.open_run(tmp_path / "run")
    for name in ("t", "q", "v", "tau", "passive", "work", "phase", "vdot", "momentum"):
        assert np.array_equal(getattr(run, name), getattr(again, name)), name
    assert again.status == "complete"
    assert again.settings["integrator"] == "dop853"
    assert again.settings["phases"][0]["torque"]["J1"]["pulse"] == [0.2, 0.7]
    assert again.robot.joints.names == VT18.joints.names
    with pytest.raises(rm.RemoraError, match="not empty"):
        rm.simulate(VT18, Q, V, 2.0, record=rm.Record(folder=tmp_path / "run"))


LONG = """
    import sys, numpy as np, remora as rm
    robot = rm.load("vt18_satellite")
    v = np.full(9, 0.05)
    print("go", flush=True)
    rm.simulate(robot, rm.neutral(robot), v, 1e5, torque=np.full(9, 1e-3),
                integrator=rm.Integrator(max_step=0.01), record=rm.Record(0.01, sys.argv[1]))
"""


def begun(folder):
    return (folder / "t" / "zarr.json").exists() and len(rm.open_run(folder)) > 0


@pytest.mark.parametrize("wait", [0.0, 0.15, 0.9, 1.7])
def test_a_killed_run_can_be_read(tmp_path, wait):
    """SIGKILL at some moment of a long run: a prefix of it is there, bit for bit."""
    folder = tmp_path / "run"
    command = [sys.executable, "-c", textwrap.dedent(LONG), folder]
    with started(command, stderr=None) as process:
        assert process.stdout.readline() == "go\n"
        deadline = time.monotonic() + 60
        while not begun(folder) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(wait)
        process.kill()
    run = rm.open_run(folder)
    assert run.status == "running"
    n = len(run)
    assert n >= 1
    robot = rm.load("vt18_satellite")
    same = rm.simulate(
        robot,
        rm.neutral(robot),
        np.full(9, 0.05),
        1.0,
        torque=np.full(9, 1e-3),
        integrator=rm.Integrator(max_step=0.01),
        record=0.01,
    )
    m = min(n, len(same) - 2)  # but for the end: what is left there is divided into equal steps
    assert np.array_equal(run.q[:m], same.q[:m])
    assert np.all(np.isfinite(run.momentum))


def test_a_full_disk_stops_the_run_and_keeps_it(tmp_path):
    """A limit on the size of files, as a full disk would be."""
    code = """
        import resource, signal, sys, numpy as np, remora as rm
        robot = rm.load("vt18_satellite")
        q, v = rm.neutral(robot), np.full(9, 0.05)
        first = rm.Record(0.1, sys.argv[1] + "0")
        rm.simulate(robot, q, v, 1.0, record=first)  # kernels are in the cache
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        try:
            steps = rm.Integrator(max_step=0.02)
            rm.simulate(robot, q, v, 200.0, integrator=steps, record=rm.Record(folder=sys.argv[1]))
        except rm.errors.SimulationError as error:
            print(error)
            print(len(error.recording), error.recording.status, error.time)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "run")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    message, summary = done.stdout.strip().splitlines()
    assert message.startswith("at t = ")
    assert "cannot be written" in message
    count, status, when = summary.split()
    assert status == "failed"
    assert int(count) > 100
    assert float(when) > 1.0
    rest = rm.open_run(tmp_path / "run")
    assert len(rest) <= int(count)


def test_a_controller_that_drives_the_robot_ever_faster_is_stopped():
    law = rm.ZeroOrderHold(lambda t, q, v: np.concatenate([np.zeros(6), 30.0 * v[6:]]), 0.1)
    v = np.full(9, 0.1)
    with pytest.raises(rm.errors.SimulationError, match=r"2000 steps were not enough|too short"):
        rm.simulate(VT18, Q, v, 1000.0, torque=law, integrator=rm.Integrator(max_steps=2000))
    with pytest.raises(rm.RemoraError, match="max_steps must be positive"):
        rm.simulate(VT18, Q, V, 1.0, integrator=rm.Integrator(max_steps=0))
