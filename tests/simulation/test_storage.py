"""Runs on disk: the same bits again, whatever ends the process, and clear words for the rest."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
import zarr

import needs
import remora as rm
from remora.identity.json_seal import sealed
from remora.simulation.recording.quantities import QUANTITIES, STORED
from remora.simulation.recording.recording import Recording
from remora.simulation.storage import recorder as storage
from remora.simulation.storage.reading import open_run
from remora.simulation.storage.recorder import Recorder
from trees import Case

ROWS = 2000


def expected(robot, n=ROWS):
    """Deterministic rows: what the recorders of these tests, here and in children, are given."""
    rng = np.random.default_rng(11)
    q, v = rm.random_state(robot, rng, batch=(n,))
    tau, passive = rng.normal(size=(2, n, robot.nv))
    columns = {
        "t": np.cumsum(rng.uniform(0.001, 0.1, size=n)),
        "q": q,
        "v": v,
        "tau": tau,
        "passive": passive,
        "wrenches": rng.normal(size=(n, len(robot.bodies), 6)),
        "work": rng.normal(size=(n, 3)),
        "phase": np.arange(n) // 100,
    }
    return columns


def fill(recorder, columns, start, stop, wrenches=True):
    for i in range(start, stop):
        row = {name: rows[i] for name, rows in columns.items()}
        if not wrenches:
            row["wrenches"] = None
        recorder.append(**row)


def same(run, other):
    assert list(run.columns) == list(other.columns)
    for name, rows in run.columns.items():
        assert rows.dtype == other.columns[name].dtype
        assert rows.tobytes() == other.columns[name].tobytes(), name
    for name in QUANTITIES:
        assert run.quantity(name).tobytes() == other.quantity(name).tobytes(), name
    assert len(run.events) == len(other.events)
    for a, b in zip(run.events, other.events, strict=True):
        assert (a.t, a.name, a.action) == (b.t, b.name, b.action)
        assert (a.q.tobytes(), a.v.tobytes()) == (b.q.tobytes(), b.v.tobytes())
    for name in ("settings", "status", "message", "started", "version"):
        assert getattr(run, name) == getattr(other, name)
    assert rm.robot_to_yaml(run.robot) == rm.robot_to_yaml(other.robot)


def is_prefix(run, whole):
    """Check that a run has the first rows of another, and return how many."""
    n = len(run)
    for name in (*run.columns, *STORED):
        assert run.quantity(name).tobytes() == whole.quantity(name)[:n].tobytes(), name
    return n


@pytest.fixture(scope="module")
def satellite():
    return rm.load("vt18_satellite")


@pytest.fixture(scope="module")
def columns(satellite):
    return expected(satellite)


@pytest.fixture(scope="module")
def whole(satellite, columns):
    """All that the recorders are given, as a recording."""
    return Recording(satellite, {}, columns)


# The same again ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrenches", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 8, 61])
def test_a_run_comes_back_bit_for_bit(satellite, columns, tmp_path, rows, wrenches):
    recorder = Recorder(satellite, {"step": 0.1, "method": "rk4"}, tmp_path / "run", chunk=8)
    for i in range(rows):
        fill(recorder, columns, i, i + 1, wrenches)
        if i % 3 == 2:
            name = "touch" if i % 2 else "limit"
            recorder.event(columns["t"][i], name, columns["q"][i], columns["v"][i], "stop")
    recorder.finish("interrupted", "by hand")
    run = open_run(tmp_path / "run")
    same(run, recorder.recording())
    assert (run.status, run.message) == ("interrupted", "by hand")
    assert run.version == rm.__version__
    assert zarr.open_group(tmp_path / "run", mode="r").attrs["robot"] == rm.robot_to_yaml(satellite)


@pytest.mark.parametrize("seed", range(6))
def test_any_robot_can_be_saved_and_opened(tmp_path, seed):
    """Every kind of base and joint, saved from memory and once more from disk."""
    robot = Case(seed, largest=4).robot
    recorder = Recorder(robot, {})
    fill(recorder, expected(robot, 5), 0, 5)
    recorder.event(0.1, "é", np.zeros(robot.nq), np.zeros(robot.nv), "go\non")
    recorder.finish("complete")
    recorder.recording().save(tmp_path / "a")
    same(open_run(tmp_path / "a"), recorder.recording())
    open_run(tmp_path / "a").save(tmp_path / "b")
    same(open_run(tmp_path / "b"), recorder.recording())


def test_a_robot_without_freedoms_comes_back(tmp_path):
    build = rm.Builder("rock").body("rock", mass=2, inertia=(1, 1, 1))
    robot = build.joint("hold", "fixed", None, "rock").build()
    recorder = Recorder(robot, {}, tmp_path / "run")
    fill(recorder, expected(robot, 5), 0, 5)
    recorder.finish("complete")
    same(open_run(tmp_path / "run"), recorder.recording())


def test_a_run_can_be_opened_while_it_goes_on(satellite, columns, whole, tmp_path):
    recorder = Recorder(satellite, {}, tmp_path / "run", chunk=8)
    assert len(open_run(tmp_path / "run")) == 0  # nothing yet
    seen = []
    for i in range(40):
        fill(recorder, columns, i, i + 1)
        run = open_run(tmp_path / "run")
        assert run.status == "running"
        seen.append(is_prefix(run, whole))
    assert seen[:9] == [1, 1, 1, 1, 1, 1, 1, 8, 8]  # the first sample, then whole chunks
    assert seen[-1] == 40
    recorder.flush()


def test_samples_are_on_disk_after_a_second(satellite, columns, whole, tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(storage.time, "monotonic", lambda: clock[0])
    recorder = Recorder(satellite, {}, tmp_path / "run")
    fill(recorder, columns, 0, 20)
    assert len(open_run(tmp_path / "run")) == 1
    clock[0] += 1.5
    fill(recorder, columns, 20, 30)
    assert len(open_run(tmp_path / "run")) == 21
    clock[0] += 1.5
    fill(recorder, columns, 30, 31)
    assert is_prefix(open_run(tmp_path / "run"), whole) == 31


def test_a_reader_without_remora_understands_the_arrays(satellite, columns, tmp_path):
    recorder = Recorder(satellite, {"step": 0.1}, tmp_path / "run", chunk=16)
    fill(recorder, columns, 0, 30)
    recorder.finish("complete")
    run = recorder.recording()
    group = zarr.open_group(tmp_path / "run", mode="r")
    assert sorted(group.array_keys()) == sorted([*columns, *STORED])
    assert group.attrs["settings"] == {"step": 0.1}
    assert group["reactions"].shape == (30, 4, 6)
    assert np.array_equal(group["energy"][:], run.energy)
    assert np.isnan(group["q"].fill_value)
    v = group["v"].attrs
    assert v["components"][-1] == "J3"
    assert (v["components"][0], v["units"][0]) == ("base.wx", "rad/s")
    assert "velocity" in v["meaning"]


def test_chunks_of_large_robots_stay_small():
    assert storage._chunk_rows(rm.load("servicer")) == 4096
    large = rm.random_robot(1, bodies=1000, kinds=("revolute",), base="free")
    assert storage._chunk_rows(large) == 64


# Killed ------------------------------------------------------------------------------------------


@pytest.fixture
def moments(tmp_path, monkeypatch):
    """Copies of the folder `run` after each file: what a process killed at that moment leaves."""
    local = zarr.storage._local
    folder, put, copies = tmp_path / "run", local._put, []
    alone = threading.Lock()

    def watched(path, value, exclusive=False):
        with alone:
            written = put(path, value, exclusive)
            copy = tmp_path / f"at{len(copies)}"
            shutil.copytree(folder, copy)
            # what zarr's temporary files are called when they are left over
            (copy / f"{path.stem}.0123abcd.partial").write_bytes(b"half")
            (copy / path.relative_to(folder)).with_suffix(".1.partial").touch()
            copies.append(copy)
            return written

    monkeypatch.setattr(local, "_put", watched)
    return copies


def test_after_every_single_file_that_is_written(satellite, columns, whole, tmp_path, moments):
    recorder = Recorder(satellite, {}, tmp_path / "run", chunk=4)
    for i in range(14):
        fill(recorder, columns, i, i + 1)
        if i in (2, 9):
            recorder.event(columns["t"][i], f"e{i}", columns["q"][i], columns["v"][i], "go")
    recorder.finish("complete")
    assert len(moments) > 100
    seen = []
    for copy in moments:
        run = open_run(copy)
        seen.append(is_prefix(run, whole))
        assert [e.name for e in run.events] in ([], ["e2"], ["e2", "e9"])
        assert run.status == ("complete" if copy is moments[-1] else "running")
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 4, 8, 12, 14}


def test_after_every_file_when_wrenches_come_late(satellite, columns, tmp_path, moments):
    recorder = Recorder(satellite, {}, tmp_path / "run", chunk=4)
    fill(recorder, columns, 0, 6, wrenches=False)
    recorder.flush()
    fill(recorder, columns, 6, 9)
    recorder.finish("complete")
    late = recorder.recording()
    assert np.all(late.wrenches[:6] == 0.0)
    assert np.array_equal(late.wrenches[6:], columns["wrenches"][6:9])
    same(open_run(tmp_path / "run"), late)
    seen = []
    for copy in moments:
        run = open_run(copy)
        n = len(run)
        seen.append((n, run.wrenches is not None))
        for name, rows in run.columns.items():
            assert rows.tobytes() == late.columns[name][:n].tobytes(), name
        for name in STORED:  # another kernel may round otherwise
            np.testing.assert_allclose(run.quantity(name), late.quantity(name)[:n], 1e-9, 1e-9)
    assert seen == sorted(seen)
    assert set(seen) == {
        (0, False),
        (1, False),
        (4, False),
        (6, False),
        (6, True),
        (8, True),
        (9, True),
    }


KILLER = """
    import os, random, signal, sys, time
    sys.path.insert(0, TESTS)
    import numpy as np, remora as rm, zarr, zarr.codecs
    from simulation.test_storage import Recorder, Recording, expected, fill
    robot = rm.load("vt18_satellite")
    columns = expected(robot)
    Recording(robot, {}, columns).to_numpy()  # the kernels are in the cache
    random.seed(4)
    child = os.fork()  # how long does it take here?
    start = time.monotonic()
    if child == 0:
        fill(Recorder(robot, {}, f"{OUT}/first", chunk=3), columns, 0, 40)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    unit = time.monotonic() - start
    for k in range(15):
        child = os.fork()
        if child == 0:
            recorder = Recorder(robot, {}, f"{OUT}/{k}", chunk=(3, 16, 64)[k % 3])
            fill(recorder, columns, 0, len(columns["t"]))
            os._exit(1)
        time.sleep(unit * k / 10 * random.random())
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
"""


def child(code, **names):
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    text = head + textwrap.dedent(code)
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs.fork
def test_killed_at_any_moment(whole, tmp_path):
    child(KILLER, TESTS=str(Path(__file__).parents[1]), OUT=str(tmp_path))
    seen = []
    for k in range(15):
        folder = tmp_path / str(k)
        if not (folder / "zarr.json").exists():  # killed before there was anything
            with pytest.raises(rm.RemoraError, match=r"no such folder|no run in this folder"):
                open_run(folder)
            continue
        run = open_run(folder)
        assert run.status == "running"
        seen.append(is_prefix(run, whole))
    assert len(set(seen)) >= 3  # several moments


# The disk ----------------------------------------------------------------------------------------


def overflow(folder, whole, limit):
    """Fill a recorder until the disk refuses; what was written must be readable."""
    columns = whole.columns
    recorder = Recorder(whole.robot, {}, folder, chunk=64)
    recorder.event(0.0, "start", columns["q"][0], columns["v"][0], "go")
    with pytest.raises(rm.RemoraError, match=limit) as told:
        fill(recorder, columns, 0, ROWS)
    assert str(folder) in str(told.value)
    n = len(recorder)
    assert 64 <= n < ROWS
    assert is_prefix(recorder.recording(), whole) == n
    fill(recorder, columns, n, n + 100)  # memory goes on, the disk is left alone
    recorder.finish("failed", "the disk is full")
    assert is_prefix(recorder.recording(), whole) == n + 100
    run = open_run(folder)
    assert 1 <= is_prefix(run, whole) <= n
    assert [e.name for e in run.events] == ["start"]
    assert run.status in ("running", "failed")
    return len(run)


def test_a_full_disk(whole, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=800k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        assert overflow(disk / "run", whole, r"No space left.*make room") >= 64
        with pytest.raises(OSError, match="No space left"):
            (disk / "rest").write_bytes(bytes(800_000))
        with pytest.raises(rm.RemoraError, match=r"other.run: cannot be written: No space left"):
            Recorder(whole.robot, {}, disk / "other" / "run")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_limit_on_the_size_of_files(tmp_path):
    """The same without root, where no file may be longer than some bytes."""
    pytest.importorskip("resource")
    code = """
        import sys
        sys.path.insert(0, TESTS)
        import remora as rm, resource
        from simulation.test_storage import Recording, expected, overflow
        robot = rm.load("vt18_satellite")
        whole = Recording(robot, {}, expected(robot))
        whole.to_numpy()  # the kernels are in the cache
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))
        print(overflow(OUT, whole, r"too large.*make room"))
    """
    out = child(code, TESTS=str(Path(__file__).parents[1]), OUT=str(tmp_path / "run"))
    assert int(out) >= 1


def test_a_folder_that_may_not_be_written(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    code = """
        import os
        import remora as rm
        from remora.simulation.storage.recorder import Recorder
        robot = rm.load("vt18_satellite")
        import zarr
        if hasattr(os, "getuid") and os.getuid() == 0:
            os.setuid(65534)
        try:
            Recorder(robot, {}, OUT)
        except rm.RemoraError as error:
            print(error)
    """
    out = str(locked / "run")
    assert f"{out}: cannot be written: Permission denied" in child(code, OUT=out)


def test_what_is_at_the_place_is_not_overwritten(satellite, columns, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(rm.RemoraError, match="file: is a file"):
        Recorder(satellite, {}, tmp_path / "file")
    with pytest.raises(rm.RemoraError, match="Not a directory"):
        Recorder(satellite, {}, tmp_path / "file" / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thing").write_text("mine")
    with pytest.raises(rm.RemoraError, match="full: is not empty; name a new folder"):
        Recorder(satellite, {}, tmp_path / "full")
    (tmp_path / "empty").mkdir()
    Recorder(satellite, {}, tmp_path / "empty").finish("complete")
    with pytest.raises(rm.RemoraError, match="is not empty"):
        open_run(tmp_path / "empty").save(tmp_path / "empty")
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(p.name for p in (tmp_path / "full").iterdir()) == ["thing"]


def test_what_cannot_be_written_is_refused_before_the_run(satellite, tmp_path):
    with pytest.raises(rm.RemoraError, match="settings of a run must be plain data"):
        Recorder(satellite, {"torque": lambda t: t}, tmp_path / "a")
    batch = satellite.replace_body("body_1", mass=np.ones(3))
    with pytest.raises(rm.RemoraError, match="batches cannot be saved"):
        Recorder(batch, {}, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_ctrl_c_while_writing_loses_nothing(
    satellite, columns, whole, tmp_path, monkeypatch, ctrl_c
):
    """An interrupted wait for the disk; what was being written is finished before the end is."""
    recorder = Recorder(satellite, {}, tmp_path / "run", chunk=8)
    fill(recorder, columns, 0, 7)
    write = storage._Table.write

    def interrupted(table, *arguments):
        os.kill(os.getpid(), signal.SIGINT)
        storage.time.sleep(0.2)
        write(table, *arguments)

    monkeypatch.setattr(storage._Table, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fill(recorder, columns, 7, 8)
    monkeypatch.undo()
    fill(recorder, columns, 8, 9)
    recorder.finish("interrupted")
    same(open_run(tmp_path / "run"), recorder.recording())
    assert is_prefix(open_run(tmp_path / "run"), whole) == 9


# Damaged and foreign -----------------------------------------------------------------------------


@pytest.fixture
def finished(satellite, columns, tmp_path):
    recorder = Recorder(satellite, {}, tmp_path / "run", chunk=8)
    recorder.event(0.0, "start", columns["q"][0], columns["v"][0], "go")
    fill(recorder, columns, 0, 30)
    recorder.finish("complete")
    return tmp_path / "run"


def edit(file, **changes):
    content = json.loads(file.read_text())
    content["attributes"] = sealed({**content["attributes"], **changes})
    file.write_text(json.dumps(content))


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)


DAMAGE = {
    "group cut": (
        lambda p: (p / "zarr.json").write_text('{"attrib'),
        "json: cannot be read",
    ),
    "group is a list": (
        lambda p: (p / "zarr.json").write_text("[]"),
        "json: cannot be read",
    ),
    "array cut": (lambda p: (p / "q" / "zarr.json").write_text("{"), "q: cannot be read"),
    "array gone": (lambda p: shutil.rmtree(p / "v"), "v: cannot be read"),
    "time gone": (lambda p: shutil.rmtree(p / "t"), "t: is missing"),
    "bit flipped": (lambda p: flip(p / "q" / "c" / "1" / "0"), "q: cannot be read"),
    "bit flipped in time": (lambda p: flip(p / "t" / "c" / "2"), "t: cannot be read"),
    "chunk cut": (lambda p: os.truncate(p / "tau" / "c" / "0" / "0", 20), "tau: cannot be read"),
    "chunk empty": (lambda p: os.truncate(p / "tau" / "c" / "0" / "0", 0), "tau: cannot be read"),
    "chunk gone": (lambda p: (p / "v" / "c" / "2" / "0").unlink(), "rows from 16 on are missing"),
    "time chunk gone": (lambda p: (p / "t" / "c" / "2").unlink(), "16 rows of the 30"),
    "robot": (lambda p: edit(p / "zarr.json", robot="name: [1"), "the robot in this folder is"),
    "another robot": (
        lambda p: edit(p / "zarr.json", robot=rm.robot_to_yaml(rm.load("servicer"))),
        "was not expected",
    ),
    "newer": (lambda p: edit(p / "zarr.json", remora_run=7), "format 7, this Remora reads 3"),
    "foreign group": (
        lambda p: (p / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}'),
        "no run of Remora",
    ),
    "array for group": (
        lambda p: shutil.copy(p / "t" / "zarr.json", p),
        "json: cannot be read",
    ),
    "events": (lambda p: edit(p / "events" / "zarr.json", kinds=[]), "events: cannot be read"),
    "no zarr.json": (lambda p: (p / "zarr.json").unlink(), "no run in this folder"),
    "nothing": (shutil.rmtree, "no such folder"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_named(finished, what):
    damage, text = DAMAGE[what]
    damage(finished)
    with pytest.raises(rm.RemoraError, match=text) as told:
        open_run(finished)
    assert str(finished) in str(told.value)


def test_every_changed_digit_of_the_metadata_is_refused_or_harmless(tmp_path):
    """Masses are digits in zarr.json: one changed digit would be another robot."""
    robot = rm.load("vt18_satellite")
    q, v = rm.neutral(robot), np.full(robot.nv, 0.1)
    kick = rm.Event(lambda t, q, v: t - 0.05, "kick", "record")
    rm.simulate(
        robot,
        q,
        v,
        0.1,
        record=rm.Record(0.02, folder=tmp_path / "run", progress=False),
        events=[kick],
    )
    sound = open_run(tmp_path / "run")
    refused = 0
    for file in sorted((tmp_path / "run").glob("**/zarr.json")):
        text = file.read_text(encoding="utf-8")
        digits = [m.start() for m in re.finditer("[0-9]", text)]
        for k in digits[:: 1 + len(digits) // 12]:
            file.write_text(text[:k] + str((int(text[k]) + 1) % 10) + text[k + 1 :], "utf-8")
            try:
                read = open_run(tmp_path / "run")
                same = [np.array_equal(read.columns[n], x) for n, x in sound.columns.items()]
                same.append(np.array_equal(read.momentum, sound.momentum))
            except rm.RemoraError:
                refused += 1
                continue
            assert all(same)
            assert rm.robot_to_yaml(read.robot) == rm.robot_to_yaml(sound.robot)
            assert read.settings == sound.settings
            assert [(e.t, e.name) for e in read.events] == [(e.t, e.name) for e in sound.events]
        file.write_text(text, "utf-8")
    assert refused > 20


def test_a_damaged_quantity_is_named_when_it_is_asked_for(finished):
    flip(finished / "vdot" / "c" / "0" / "0")
    run = open_run(finished)
    assert len(run.com) == 30
    with pytest.raises(rm.RemoraError, match="vdot: cannot be read"):
        run.vdot  # noqa: B018
    shutil.rmtree(finished / "momentum")  # not there at all: computed
    assert open_run(finished).momentum.shape == (30, 6)


def test_a_plain_file_is_no_run(tmp_path):
    (tmp_path / "run").write_text("hello")
    with pytest.raises(rm.RemoraError, match="is a file; a run is a folder"):
        open_run(tmp_path / "run")


def test_a_claim_of_endless_rows_is_not_believed(finished):
    """Only rows whose files are there are asked for."""
    file = finished / "t" / "zarr.json"
    content = json.loads(file.read_text())
    content["shape"] = [10**15]
    file.write_text(json.dumps(content))
    assert len(open_run(finished)) == 30


def test_meshes_are_left_out_unless_their_folder_is_allowed(satellite, columns, tmp_path):
    shape = rm.Geometry("mesh", (1.0, 1.0, 1.0), rm.poses(satellite, columns["q"][0])[0])
    mesh = tmp_path / "meshes" / "bus.stl"
    mesh.parent.mkdir()
    mesh.touch()
    shape = rm.Geometry(shape.kind, shape.size, shape.placement, None, str(mesh))
    robot = satellite.replace_body("body_1", geometry=(*satellite.bodies[0].geometry, shape))
    recorder = Recorder(robot, {}, tmp_path / "run")
    fill(recorder, columns, 0, 3)
    recorder.finish("complete")
    run = open_run(tmp_path / "run")
    assert rm.robot_to_yaml(run.robot) == rm.robot_to_yaml(satellite)
    assert "meshes left out: 1" in run.robot.warnings[-1]
    assert f"add --mesh-root {tmp_path}" in run.robot.warnings[-1]
    same(open_run(tmp_path / "run", mesh_root=tmp_path / "meshes"), recorder.recording())
    with pytest.raises(rm.RemoraError, match="leads out of"):
        open_run(tmp_path / "run", mesh_root=tmp_path / "run")
