"""Runs that end at any line of the code or at any file that is written, and are then resumed.

The run has all that a checkpoint must know: phases, one of them ended by an event, a locked and a
prescribed joint, controllers, recorded events, elastic stops at the joints' limits, an impulse, a
pulse that lasts until the end, and an end between two samples. The run of a system has components
with noise, delays, continuous and discrete states, and resets.
"""

import contextlib
import dataclasses
import gc
import random
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

import needs
import remora as rm
from plain_settings import grouped
from remora.simulation.engine import progress
from remora.simulation.inputs.moves import Move
from remora.simulation.storage import recorder

PLAIN = rm.load("vt18_satellite")
_RANGE = {"lower": np.array([-0.1]), "upper": np.array([0.06])}
ROBOT = PLAIN.replace_joint("J1", limits=dataclasses.replace(PLAIN.joints["J1"].limits, **_RANGE))
Q, V = rm.neutral(ROBOT), np.zeros(9)
J1 = ROBOT.joints["J1"]


def brake(t, q, v):
    return -0.3 * v[6:7] + 0.2 * np.cos(t)


def law(t, q, v):
    return -0.5 * v - 0.1 * np.sin(3.0 * t)


def law_of_one(t, q, v):
    return -v[7:8] + 0.3 * np.cos(t)


def asked(**options):
    """What the run is asked for."""
    turned = rm.Event(lambda t, q, v: q[J1.q][0] - 0.05, "turned", "next", 1)
    seen = rm.Event(lambda t, q, v: v[J1.v][0] - 0.03, "seen", "record")
    phases = [
        rm.Phase(2.0, torque={"J1": 4.0, "J2": rm.Pulse(0.1, 0.4, 0.3)}, events=[turned, seen]),
        rm.Phase(
            0.6, torque={"J1": rm.ZeroOrderHold(brake, 0.13)},
            prescribed={"J2": Move.to(0.1, 0.0, 0.5)}, locked=["J3"], impulse=True, own_clock=True,
        ),
        rm.Phase(
            0.5, torque=rm.ZeroOrderHold(law, 0.17),
            base_wrench=rm.Pulse(0.1, 0.5, np.ones(6)), own_clock=True,
        ),
    ]  # fmt: skip
    return {"phases": phases, "stops": (50.0, 1.0), "sample": 0.17, **options}


METHODS = {
    "dopri5": {"integrator": "dopri5", "rtol": 1e-6},
    "rk4": {"integrator": "rk4", "step": 0.03},
}


class Servo(rm.Component):
    """A sampled PI controller of J1 with noise in its measurement."""

    gain: float = 20.0

    def interface(self, robot):
        return rm.Interface(
            outputs={"command": rm.Signal((), "N m")},
            discrete={"sum": rm.State(0.0, "rad s")},
            noise={"angle": 1},
        )

    def _error(self, at):
        return 0.3 - at.joint_position("J1")[..., 0] + 0.05 * at.noise["angle"][..., 0]

    def outputs(self, at):
        return {"command": self.gain * (self._error(at) + at.memory["sum"])}

    def update(self, at):
        return {"sum": at.memory["sum"] + self.sample_time * self._error(at)}


class Drive(rm.Component):
    """A lag; at a certain angle it is switched off for a moment, and counts that."""

    time_constant: float = 0.08

    def interface(self, robot):
        return rm.Interface(
            inputs={"command": rm.Signal((), "N m")},
            continuous={"torque": rm.State(0.0, "N m")},
            discrete={"count": rm.State(0.0)},
            events={"passed": rm.ZeroCrossing(0, "reset")},
        )

    def derivative(self, at):
        return {"torque": (at.inputs["command"] - at.state["torque"]) / self.time_constant}

    def act(self, at):
        return rm.JointForce("J1", at.state["torque"])

    def crossings(self, at):
        return {"passed": at.joint_position("J1")[..., 0] - 0.02}

    def reset(self, at, event):
        return {"torque": 0.0 * at.state["torque"], "count": at.memory["count"] + 1.0}


SYSTEM = rm.System(ROBOT, [Servo(sample_time=0.06, delay=0.1, offset=0.01), Drive()])


def case(method):
    """What is simulated, and the options."""
    if method == "system":
        options = {
            "phases": [
                rm.Phase(0.9, torque={"J2": 0.3}), rm.Phase(0.7, locked=["J3"], impulse=True)
            ],
            "stops": (50.0, 1.0), "sample": 0.17, "integrator": "dopri5", "rtol": 1e-6, "seed": 4,
        }  # fmt: skip
        return SYSTEM, options
    return ROBOT, asked(**METHODS[method])


def bits(run, n=None):
    """The rows of a run, as they are; and its events."""
    rows = {name: values[:n].tobytes() for name, values in run.columns.items()}
    events = [(e.t, e.name, e.action, e.q.tobytes(), e.v.tobytes()) for e in run.events]
    return rows, events, run.phase_starts


def check_part(folder, whole):
    """What is on disk is the beginning of the whole run."""
    if (folder / "zarr.json").exists():
        part = rm.open_run(folder)
        rows, events, starts = bits(part)
        expected = bits(whole, len(part))
        assert rows == {name: expected[0][name] for name in rows}
        assert events == expected[1][: len(events)]
        assert starts == expected[2][: len(starts)]


class Lines:
    """Counts the lines of remora's simulation that run, and raises KeyboardInterrupt at one."""

    def __init__(self, at=None):
        self.count, self.at = 0, at

    def __call__(self, frame, event, _):
        return self.line if "/remora/simul" in frame.f_code.co_filename else None

    def line(self, frame, event, _):
        if event == "line":
            self.count += 1
            if self.count == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.line

    @contextlib.contextmanager
    def watching(self):
        before = sys.gettrace()
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(before)


@pytest.mark.parametrize("method", [*METHODS, "system"])
def test_interrupted_at_any_line_the_rest_is_the_same_to_the_last_bit(
    method, tmp_path, monkeypatch
):
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.05)
    moved, options = case(method)
    whole = rm.simulate(moved, Q, V, **grouped(**options))
    assert len(whole.phase_starts) == len(options["phases"])
    names = {"drive.passed"} if method == "system" else {"turned", "seen"}
    assert names <= {e.name for e in whole.events}
    assert np.abs(whole.passive).max() > 0.1  # of the stops
    lines = Lines()
    with lines.watching():
        rm.simulate(moved, Q, V, **grouped(**options, out=tmp_path / "counted"))
    rng = random.Random(7)
    places = rng.sample(range(1, lines.count), 5)
    places += range(lines.count - 270, lines.count, 60)  # the last sample, and the end
    for place in places:
        folder = tmp_path / str(place)
        with (
            Lines(place).watching(),
            contextlib.suppress(KeyboardInterrupt),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", RuntimeWarning)
            rm.simulate(moved, Q, V, **grouped(**options, out=folder))
        gc.collect()  # what kept the folder locked
        check_part(folder, whole)
        run = rm.simulate(moved, Q, V, **grouped(**options, out=folder, resume=True))
        assert bits(run) == bits(rm.open_run(folder)) == bits(whole), f"line {place}"
        assert run.status == "complete"


def test_interrupted_in_any_sample(tmp_path, monkeypatch):
    """Also in the last: what acts at the end of the run is what acts just before it."""
    options = {"duration": 1.0, "torque": {"J2": rm.Pulse(0.0, 1.0, 5.0)}, "sample": 0.3}
    whole = rm.simulate(ROBOT, Q, V, **grouped(**options))
    assert whole.tau[:, ROBOT.joints["J2"].v].ravel().tolist() == [5.0] * 5
    append = recorder.Recorder.append
    for k in range(len(whole)):

        def interrupted(self, t, *samples, k=k):
            if len(self) <= k < len(self) + len(t):
                raise KeyboardInterrupt
            append(self, t, *samples)

        with monkeypatch.context() as patch:
            patch.setattr(recorder.Recorder, "append", interrupted)
            with pytest.warns(RuntimeWarning, match="interrupted"):
                rm.simulate(ROBOT, Q, V, **grouped(**options, out=tmp_path / str(k)))
        run = rm.simulate(ROBOT, Q, V, **grouped(**options, out=tmp_path / str(k), resume=True))
        assert bits(run) == bits(whole), f"sample {k}"


def test_steps_of_a_phase_are_counted_on(tmp_path, monkeypatch):
    """A limit on the steps holds for the run, however often it is interrupted."""
    options = {
        "duration": 50.0,
        "torque": {"J2": rm.ZeroOrderHold(law_of_one, 0.1)},
        "max_steps": 60,
    }
    for _ in range(3):
        left = 25

        def interrupt(status):
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        monkeypatch.setattr(progress, "INTERVAL", 0.0)
        with warnings.catch_warnings(), contextlib.suppress(rm.errors.SimulationError):
            warnings.simplefilter("ignore", RuntimeWarning)
            rm.simulate(
                ROBOT,
                Q,
                V,
                **grouped(**options, out=tmp_path / "run", resume=True, progress=interrupt),
            )
    run = rm.open_run(tmp_path / "run")
    assert run.status == "failed"
    assert "60 steps were not enough" in run.message


# Kills --------------------------------------------------------------------------------------------

KILLED = """
    import os, sys
    from pathlib import Path
    sys.path.insert(0, TESTS)
    import remora as rm
    import zarr.storage._local as local
    from plain_settings import grouped
    from simulation.test_resume_anywhere import Q, V, bits, case, check_part
    from remora.simulation.storage import recorder as storage

    storage.FLUSH_SECONDS = 0.0  # every sample is written at once
    storage._chunk_rows = lambda *_: 4
    moved, options = case(CASE)
    whole = rm.simulate(moved, Q, V, **grouped(**options))
    put = local._put
    writes = 0

    def counted(path, value, exclusive=False):
        global writes
        writes += 1
        if writes == LAST:  # half of a file, under its temporary name
            path.parent.mkdir(parents=True, exist_ok=True)
            data = bytes(value.as_buffer_like())
            path.with_suffix(".0123.partial").write_bytes(data[: len(data) // 2])
            os._exit(9)
        return put(path, value, exclusive)

    local._put = counted

    def run_in_a_process(last, folder):
        global LAST, writes
        child = os.fork()
        if child == 0:
            LAST, writes = last, 0
            status = 0
            try:
                rm.simulate(moved, Q, V, **grouped(**options, out=folder, resume=True))
            except BaseException as error:
                print(type(error), error, flush=True)
                status = 1
            os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    LAST, total = -1, None
    folder = Path(OUT)
    kills = 0
    for k in range(1 + FIRST, 10_000, STRIDE):
        place = folder / str(k)
        end = run_in_a_process(k, place)
        if end == 0:
            break
        assert end == 9, end
        kills += 1
        check_part(place, whole)
        assert run_in_a_process(k + 20, place) in (0, 9)  # killed once more
        check_part(place, whole)
        assert run_in_a_process(-1, place) == 0
        end = rm.open_run(place)
        assert end.status == "complete"
        assert bits(end) == bits(whole), k
    print("kills", kills)
"""


@needs.fork
@pytest.mark.parametrize("method", ["system"])
def test_killed_at_any_file_it_writes(method, tmp_path):
    """Each time one process, killed within a write, then another, and a third that ends."""
    tests = str(Path(__file__).parents[1])
    head = f"TESTS, OUT, FIRST, STRIDE, CASE = {tests!r}, {str(tmp_path)!r}, 0, 53, {method!r}\n"
    command = [sys.executable, "-c", head + textwrap.dedent(KILLED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) >= 5
