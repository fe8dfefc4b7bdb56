"""Runs that were stopped, at any moment and in any way, go on as if nothing had happened."""

import random
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import needs
import remora as rm
from plain_settings import grouped
from remora.simulation.engine import progress as showing
from remora.simulation.inputs.moves import Move
from remora.simulation.storage import recorder as storage

VT18 = rm.load("vt18_satellite")
Q, V = rm.neutral(VT18), np.zeros(9)
J1 = VT18.joints["J1"]


def law(t, q, v):
    """A damper that depends on the time, too: what was ordered when matters."""
    return -0.5 * v - 0.1 * np.sin(3.0 * t)


def brake(t, q, v):
    return -0.3 * v[6:7] + 0.2 * np.cos(t)


def phases():
    """All that a mark must know: an end that nobody foresees, held joints, clocks, controllers."""
    turned = rm.Event(lambda t, q, v: q[J1.q][0] - 0.05, "turned", "next", 1)
    seen = rm.Event(lambda t, q, v: v[J1.v][0] - 0.03, "seen", "record")
    wave = rm.Profile([0.2, 0.7], [np.ones(6)] * 2)
    push = {"body_3": rm.Pulse(0.1, 6, np.ones(6))}
    return [
        rm.Phase(4.0, torque={"J1": 0.4, "J2": rm.Pulse(0.5, 0.9, 0.3)}, events=[turned, seen]),
        rm.Phase(
            1.5, torque={"J1": rm.ZeroOrderHold(brake, 0.13)},
            prescribed={"J2": Move.to(0.4, 0.0, 1.0)},
            locked=["J3"], base_wrench=wave, impulse=True, own_clock=True,
        ),
        rm.Phase(1.5, torque=rm.ZeroOrderHold(law, 0.07), wrenches=push),
    ]  # fmt: skip


OPTIONS = {
    "dop853": {"rtol": 1e-9},
    "dense": {"rtol": 1e-9, "sample": 0.011},
    "landing": {"rtol": 1e-9, "sample": 0.11, "step_to_samples": True},
    "dopri5": {"rtol": 1e-7, "integrator": "dopri5", "sample": 0.05},
    "radau": {"rtol": 1e-6, "integrator": "radau", "sample": 0.05},
    "rk4": {"integrator": "rk4", "step": 0.013},
    "rk4 between": {"integrator": "rk4", "step": 0.013, "sample": 0.04},
}


def bits(run, n=None):
    """The rows of a run, as they are; and its events."""
    rows = {name: values[:n].tobytes() for name, values in run.columns.items()}
    events = [(e.t, e.name, e.action, e.q.tobytes(), e.v.tobytes()) for e in run.events]
    return rows, events


class Kill(BaseException):
    """Ends a run from within, as a kill does: nothing is written after it."""


@pytest.fixture
def killed(monkeypatch):
    """Runs that end after some looks at the progress, and leave the disk as it is then."""

    appended = 0

    def some(recorder):  # samples of steps in machine code are appended together
        nonlocal appended
        appended += 1
        if appended % 3 == 1:
            recorder.flush()

    monkeypatch.setattr(storage.Recorder, "_appended", some)
    monkeypatch.setattr(storage, "_chunk_rows", lambda *_: 8)
    monkeypatch.setattr(showing, "INTERVAL", 0.0)

    def attempt(folder, looks, **asked):
        def progress(status):
            nonlocal looks
            looks -= 1
            if looks <= 0:
                raise Kill

        with monkeypatch.context() as patch:
            patch.setattr(storage._Folder, "finish", lambda self, *_: self._unlock())
            try:
                rm.simulate(
                    VT18, Q, V, **grouped(**asked, out=folder, resume=True, progress=progress)
                )
            except Kill:
                return

    return attempt


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_stopped_after_any_step_the_rest_is_the_same_to_the_last_bit(options, tmp_path, killed):
    """Killed again and again, some steps further each time."""
    folder, asked = tmp_path / "run", {"phases": phases(), **options}
    whole = rm.simulate(VT18, Q, V, **grouped(**asked))
    assert len(whole.phase_starts) == 3
    assert {"turned", "seen"} <= {e.name for e in whole.events}
    looks, rng, left, kills = [], random.Random(3), 0, 0
    rm.simulate(VT18, Q, V, **grouped(**asked, progress=looks.append))
    steps = len(looks)  # about
    while left < 0.9 * len(whole):
        killed(folder, rng.randrange(1, max(3, steps // 4)), **asked)
        kills += 1
        there = rm.open_run(folder)
        assert there.status == "running"
        left = len(there)
        own, _ = bits(there)
        expected, events = bits(whole, left)
        assert own == {name: expected[name] for name in own}
        assert bits(there)[1] == events[: len(there.events)]
        assert there.phase_starts == whole.phase_starts[: len(there.phase_starts)]
        assert kills < 200
    assert kills > 3
    run = rm.simulate(VT18, Q, V, **grouped(**asked, out=folder, resume=True))
    for end in (run, rm.open_run(folder)):
        assert bits(end) == bits(whole)
        assert (end.status, end.message) == ("complete", whole.message)
        assert end.phase_starts == whole.phase_starts
        assert len(end) == len(whole)


KILLER = """
    import os, random, shutil, signal, sys, time
    sys.path.insert(0, TESTS)
    import remora as rm
    from plain_settings import grouped
    from remora.simulation.storage import recorder as storage
    from simulation.test_resume import OPTIONS, Q, V, VT18, phases
    storage.FLUSH_SECONDS = 0.02
    options = {"phases": phases(), **OPTIONS["dense"]}
    rm.simulate(VT18, Q, V, **grouped(**options, out=f"{OUT}/whole"))  # compiled; its time
    start = time.monotonic()
    rm.simulate(VT18, Q, V, **grouped(**options, out=f"{OUT}/again"))
    whole = time.monotonic() - start
    random.seed(SEED)
    kills = 0
    for _ in range(30):
        child = os.fork()
        if child == 0:
            rm.simulate(VT18, Q, V, **grouped(**options, out=f"{OUT}/run", resume=True))
            os._exit(0)
        time.sleep(whole * 0.5 * random.random())
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0
            if kills >= 2:
                break
            # other work made the trial slower than this one: again, and sooner
            shutil.rmtree(f"{OUT}/run")
            whole, kills = 0.5 * whole, 0
            continue
        kills += 1
        if os.path.exists(f"{OUT}/run/zarr.json"):
            print(len(rm.open_run(f"{OUT}/run")))
    rm.simulate(VT18, Q, V, **grouped(**options, out=f"{OUT}/run", resume=True))
    print("kills", kills)
"""


@needs.fork
@pytest.mark.timeout(300)  # dozens of runs
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_random_moments_several_times_in_a_row(seed, tmp_path):
    names = {"TESTS": str(Path(__file__).parents[1]), "OUT": str(tmp_path), "SEED": seed}
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    command = [sys.executable, "-c", head + textwrap.dedent(KILLER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) >= 2
    whole = rm.open_run(tmp_path / "whole")
    run = rm.open_run(tmp_path / "run")
    assert run.status == "complete"
    assert bits(run) == bits(whole)
    assert run.phase_starts == whole.phase_starts
    for name in ("vdot", "reactions", "momentum", "energy", "com"):
        np.testing.assert_allclose(run.quantity(name), whole.quantity(name), rtol=1e-9, atol=1e-11)


# Which run it is ---------------------------------------------------------------------------------


def test_a_complete_run_is_returned_as_it_is(tmp_path):
    first = rm.simulate(
        VT18, Q, V, 2.0, torque={"J1": 1.0}, record=rm.Record(folder=tmp_path / "run")
    )
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*") if p.is_file()}
    again = rm.simulate(
        VT18, Q, V, 2.0, torque={"J1": 1.0}, record=rm.Record(folder=tmp_path / "run", resume=True)
    )
    assert bits(again) == bits(first)
    assert again.robot is VT18
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*") if p.is_file()}
    assert before == after


def test_another_note_resumes_and_the_stored_one_stays(tmp_path, killed):
    asked, folder = {"duration": 2.0, "integrator": "rk4", "step": 0.02}, tmp_path / "run"
    whole = rm.simulate(VT18, Q, V, **grouped(**asked))
    killed(folder, 20, note="first words", **asked)
    assert rm.open_run(folder).status != "complete"
    for words in ("other words", "third words"):  # resumed, then returned
        run = rm.simulate(VT18, Q, V, **grouped(note=words, **asked, out=folder, resume=True))
        assert bits(run) == bits(whole)
        assert run.settings["note"] == "first words"


def test_another_run_is_refused_with_what_differs(tmp_path):
    asked = {"duration": 2.0, "torque": {"J1": rm.Pulse(0, 1, 1.0)}, "rtol": 1e-9}
    rm.simulate(VT18, Q, V, **grouped(**asked, out=tmp_path / "run"))
    for change, text in (
        ({"rtol": 1e-8}, r"contains another run.*rtol is 1e-09 there, 1e-08 here"),
        ({"duration": 3.0}, r"duration is 2.0 there, 3.0 here"),
        ({"torque": {"J1": rm.Pulse(0, 1, 2.0)}}, r"torque.J1.value is 1.0 there, 2.0 here"),
        ({"torque": {"J2": 1.0}}, r"torque.J1 is .* there, None here"),
        ({"torque": lambda t, q, v: np.zeros(9)}, r"torque"),
    ):
        with pytest.raises(rm.RemoraError, match=text):
            rm.simulate(
                VT18, Q, V, **grouped(**{**asked, **change}, out=tmp_path / "run", resume=True)
            )
    heavier = VT18.replace_body("body_1", mass=11.0)
    with pytest.raises(rm.RemoraError, match="its robot 'vt18_satellite' differs"):
        rm.simulate(heavier, Q, V, **grouped(**asked, out=tmp_path / "run", resume=True))
    moved = Q.copy()
    moved[8] = 0.25
    with pytest.raises(rm.RemoraError, match=r"q\[8\] is 0.0 there, 0.25 here"):
        rm.simulate(VT18, moved, V, **grouped(**asked, out=tmp_path / "run", resume=True))


def test_motions_and_controllers_of_one_s_own_are_known_again(tmp_path):
    """Whatever was given, a second process that gives the same is not taken for another."""

    class Own:
        sample_time = 0.1

        def __call__(self, t, q, v):
            return -v[6:7]

    def asked():
        way = rm.Motion.between(0, 1, 0, 0.3)
        return {"duration": 1.0, "prescribed": {"J2": way}, "torque": {"J1": Own()}}

    rm.simulate(VT18, Q, V, **grouped(**asked(), out=tmp_path / "run"))
    assert (
        rm.simulate(VT18, Q, V, **grouped(**asked(), out=tmp_path / "run", resume=True)).status
        == "complete"
    )
    other = {**asked(), "prescribed": {"J2": rm.Motion.between(0, 1, 0, 0.4)}}
    with pytest.raises(rm.RemoraError, match="contains another run"):
        rm.simulate(VT18, Q, V, **grouped(**other, out=tmp_path / "run", resume=True))


def test_where_there_is_nothing_a_run_begins(tmp_path):
    whole = rm.simulate(VT18, Q, V, 1.0, torque={"J1": 1.0})
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "zarr.0123abcd.partial").write_bytes(b"half")
    for name in ("none", "empty", "begun"):
        run = rm.simulate(
            VT18,
            Q,
            V,
            1.0,
            torque={"J1": 1.0},
            record=rm.Record(folder=tmp_path / name, resume=True),
        )
        assert bits(run) == bits(whole)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thing").write_text("mine")
    with pytest.raises(rm.RemoraError, match="there is no run in this folder"):
        rm.simulate(VT18, Q, V, 1.0, record=rm.Record(folder=tmp_path / "mine", resume=True))
    with pytest.raises(rm.RemoraError, match="name the directory"):
        rm.simulate(VT18, Q, V, 1.0, record=rm.Record(resume=True))
    with pytest.raises(rm.RemoraError, match=r"is not empty.*resume=True"):
        rm.simulate(VT18, Q, V, 1.0, record=rm.Record(folder=tmp_path / "none"))


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    """Ctrl-C writes an end; the run goes on from the step before it all the same."""
    monkeypatch.setattr(showing, "INTERVAL", 0.0)
    asked = {"phases": phases(), **OPTIONS["dense"]}
    whole = rm.simulate(VT18, Q, V, **grouped(**asked))
    for fraction in (0.1, 0.3, 0.45):

        def interrupt(status, fraction=fraction):
            if status.fraction > fraction:
                raise KeyboardInterrupt

        with pytest.warns(RuntimeWarning, match="interrupted"):
            run = rm.simulate(
                VT18,
                Q,
                V,
                **grouped(**asked, out=tmp_path / "run", resume=True, progress=interrupt),
            )
        assert run.status == rm.open_run(tmp_path / "run").status == "interrupted"
    run = rm.simulate(VT18, Q, V, **grouped(**asked, out=tmp_path / "run", resume=True))
    assert bits(run) == bits(whole)
    assert bits(rm.open_run(tmp_path / "run")) == bits(whole)


def test_two_may_not_write_into_one_folder(tmp_path):
    pytest.importorskip("fcntl")
    recorder = storage.Recorder(VT18, {}, tmp_path / "run")
    with pytest.raises(rm.RemoraError, match="is not empty"):
        storage.Recorder(VT18, {}, tmp_path / "run")
    left = storage.StoppedRun(rm.open_run(tmp_path / "run"), None)
    with pytest.raises(rm.RemoraError, match="another process is writing"):
        storage.Recorder(VT18, {}, tmp_path / "run", stopped=left)
    recorder.finish("complete")


def test_a_damaged_checkpoint_is_refused(tmp_path, killed):
    killed(tmp_path / "run", 20, duration=20.0, torque={"J1": rm.ZeroOrderHold(brake, 0.1)})
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "run", mode="r+")
    mark = dict(group.attrs["checkpoint"])
    asked = {"duration": 20.0, "torque": {"J1": rm.ZeroOrderHold(brake, 0.1)}}
    other = [mark["q"][0] + 1e-9, *mark["q"][1:]]  # one digit of a number
    for broken in ({}, {**mark, "samples": 10_000}, {**mark, "q": "none"}, {**mark, "q": other}):
        group.update_attributes({"checkpoint": broken})
        with pytest.raises(rm.RemoraError, match="damaged"):
            rm.simulate(VT18, Q, V, **grouped(**asked, out=tmp_path / "run", resume=True))
    group.update_attributes({"checkpoint": mark, "phase_starts": [1e-9]})
    with pytest.raises(rm.RemoraError, match="damaged: its checksum differs"):
        rm.simulate(VT18, Q, V, **grouped(**asked, out=tmp_path / "run", resume=True))


@pytest.mark.parametrize("damage", ["no JSON", "wrong shape"])
def test_a_damaged_derived_column_is_refused(damage, tmp_path, killed):
    asked = {"duration": 20.0, "torque": {"J1": rm.ZeroOrderHold(brake, 0.1)}}
    killed(tmp_path / "run", 20, **asked)
    if damage == "wrong shape":
        zarr = pytest.importorskip("zarr")
        group = zarr.open_group(tmp_path / "run", mode="r+")
        group.create_array("com", shape=(5, 77), dtype="float64", overwrite=True)
    else:
        (tmp_path / "run" / "com" / "zarr.json").write_text("{")
    with pytest.raises(rm.RemoraError, match="com: cannot be read, or is damaged"):
        rm.simulate(VT18, Q, V, **grouped(**asked, out=tmp_path / "run", resume=True))


# What a review found ------------------------------------------------------------------------------


def test_files_of_the_user_are_never_removed(tmp_path):
    robot = rm.load("vt18_satellite")
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    (tmp_path / "movie.partial").write_text("mine")
    with pytest.raises(rm.RemoraError, match="no run in this folder"):
        rm.simulate(robot, q, v, 1.0, record=rm.Record(folder=tmp_path, resume=True))
    assert (tmp_path / "movie.partial").read_text() == "mine"


def test_other_gains_are_another_run(tmp_path):
    robot = rm.load("vt18_satellite")
    q, v = rm.neutral(robot), np.full(robot.nv, 0.01)

    class Law:
        sample_time = 0.1

        def __init__(self, gain):
            self.gain = gain

        def __call__(self, t, q, v):
            return -self.gain * v

    def closed(gain):
        return lambda t, q, v: -gain * v

    for k, make in enumerate((Law, closed)):
        folder = tmp_path / str(k)
        rm.simulate(robot, q, v, 1.0, torque=make(1.0), record=rm.Record(folder=folder))
        with pytest.raises(rm.RemoraError, match="contains another run"):
            rm.simulate(
                robot, q, v, 1.0, torque=make(5.0), record=rm.Record(folder=folder, resume=True)
            )
        assert rm.simulate(
            robot, q, v, 1.0, torque=make(1.0), record=rm.Record(folder=folder, resume=True)
        ).q.size
