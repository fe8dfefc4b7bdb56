"""Campaigns: results, reproducibility, resume, faults of studies, reports."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext

import numpy as np
import pandas
import pytest

import needs
import remora as rm
from remora.campaigns import campaign as module
from remora.campaigns.blocks import run_block
from remora.campaigns.storage import CampaignFolder

SCENARIO = """
scenario: 1
robot: vt18_satellite
seed: 3
start: {speeds: {J1: 0.1}}
components:
  - {type: rate_gyro, name: gyro, frame: body_1, sample_time: 0.1, noise: 1.0e-4}
phases:
  - {name: spin, duration: 2, torque: {J2: {pulse: {start: 0.5, stop: 1, value: 0.2}}}}
integrator: {name: rk4, step: 0.1}
output: {sample: 0.5}
"""
STUDY = """
campaign: 1
description: a small study
scenario: small.yaml
runs: 40
seed: 9
disperse:
  body_2.mass: {uniform: {low: 5, high: 15}}
  gyro.noise: {log_normal: {sigma: 0.5}}
  start.speeds.J1: {normal: {std: 0.02}}
  start.base.rpy[2]: {normal: {std: 1 deg}}
outputs:
  angle: {joint: J1, at: 1.25, unit: deg}
  speed: {speed: J2, take: max}
  rate: {signal: gyro.rate, element: 1, take: mean}
  tip: {frame: body_3, point: [0, 0, 0]}
bands:
  elbow: {joint: J2, unit: deg}
success:
  slow: {output: speed, below: 0.0122}
"""
FAST = {"workers": 0, "progress": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("study")
    (path / "small.yaml").write_text(SCENARIO, encoding="utf-8")
    (path / "study.yaml").write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def study(folder):
    return rm.load_study(folder / "study.yaml")


@pytest.fixture(scope="module")
def made(study, tmp_path_factory):
    return rm.campaign(study, tmp_path_factory.mktemp("out") / "a", block=16, **FAST)


def same(one, other):
    names = [*one.dispersions, *one.outputs, *one.criteria, *one.bands, "ok", "end", "success"]
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in names)


def test_results(made):
    assert len(made) == 40
    assert np.all(made["ok"] == 1.0)
    assert made["elbow"].shape == (40, made.t.size)
    assert 1.25 in made.t
    table = pandas.read_parquet(made.folder.path / "summary.parquet")
    assert table["run"].tolist() == list(range(40))
    assert np.array_equal(table["angle"], made["angle"])
    assert np.array_equal(table["success"], made["speed"] < 0.0122)
    rate, low, high = made.success_rate()
    assert rate == np.mean(made["speed"] < 0.0122)
    assert low < rate < high
    assert 5.0 <= made["body_2.mass"].min() < made["body_2.mass"].max() <= 15.0
    assert "40 of 40 runs" in repr(made)


def test_blocks_do_not_change_results(made, study, tmp_path):
    assert same(made, rm.campaign(study, tmp_path / "b", block=40, **FAST))


def test_a_run_can_be_replayed(made):
    run = made.replay(17)
    robot = run.robot
    assert robot.bodies["body_2"].mass == made["body_2.mass"][17]
    assert run.v[0, robot.joints["J1"].v.start] == made["start.speeds.J1"][17]
    at = np.array([s for s in run.t if s in made.t])
    rows = [int(np.flatnonzero(run.t == s)[0]) for s in at]
    columns = [int(np.flatnonzero(made.t == s)[0]) for s in at]
    elbow = run.joint("J2").q[rows]
    assert np.allclose(elbow, made["elbow"][17, columns], rtol=1e-11, atol=1e-13)
    assert np.mean(run.signals["gyro.rate"][rows, 1]) != 0.0


def test_a_missing_package_is_named_before_anything_is_computed(study, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(rm.RemoraError, match=r"campaigns need pyarrow: .*'\.\[campaign\]'"):
        rm.campaign(study, tmp_path / "new", workers=0, progress=False)
    assert not (tmp_path / "new").exists()


def test_resume_computes_what_is_missing(made, study, tmp_path, monkeypatch):
    out = tmp_path / "c"

    def stopping(own, start, stop, **options):
        if start >= 16:
            raise KeyboardInterrupt
        return run_block(own, start, stop, **options)

    monkeypatch.setattr(module, "run_block", stopping)
    with pytest.raises(KeyboardInterrupt):
        rm.campaign(study, out, block=16, **FAST)
    assert len(rm.open_campaign(out)) == 16
    computed = []

    def counting(own, start, stop, **options):
        computed.append(start)
        return run_block(own, start, stop, **options)

    monkeypatch.setattr(module, "run_block", counting)
    again = rm.campaign(study, out, resume=True, **FAST)
    assert computed == [16, 32]
    assert same(made, again)
    rm.campaign(study, out, resume=True, **FAST)
    assert computed == [16, 32]


def test_a_bar_begins_with_the_runs_that_are_there(made, study, tmp_path, monkeypatch):
    rm.campaign(study, tmp_path / "c", block=16, **FAST)
    (tmp_path / "c" / "blocks" / "000002.json").unlink()
    shown = []
    monkeypatch.setattr(
        module, "campaign_bar",
        lambda runs, before, _: (shown.append((runs, before)),
                                 nullcontext(lambda *done: shown.append(done)))[1],
    )  # fmt: skip
    assert same(made, rm.campaign(study, tmp_path / "c", resume=True, **FAST))
    assert shown == [(40, 32), (8, 0)]


def test_damaged_blocks_are_computed_again(made, study, tmp_path):
    out = tmp_path / "d"
    one = rm.campaign(study, out, block=16, **FAST)
    shard = next((out / "results.zarr" / "angle" / "c").iterdir())
    for place in (10, -10):  # a number, and the index of the shard, which zarr reads to write it
        content = bytearray(shard.read_bytes())
        content[place] ^= 0xFF
        shard.write_bytes(bytes(content))
        assert len(one.folder.complete_blocks()) < 3
        assert same(made, rm.campaign(study, out, resume=True, **FAST))


def test_resume_with_damaged_metadata_tells_what_to_remove(made, study, tmp_path):
    out = tmp_path / "m"
    rm.campaign(study, out, block=16, **FAST)
    for removed, file in (("angle", "angle/zarr.json"), ("zarr.json", "zarr.json")):
        (out / "results.zarr" / file).write_text("{", encoding="utf-8")
        with pytest.raises(rm.RemoraError, match=f"results.zarr/{removed}: is damaged .* remove"):
            rm.campaign(study, out, resume=True, **FAST)
        place = out / "results.zarr" / removed
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        assert same(made, rm.campaign(study, out, resume=True, **FAST))


def test_another_study_is_refused(study, folder, tmp_path):
    out = tmp_path / "e"
    rm.campaign(study, out, block=40, **FAST)
    with pytest.raises(rm.RemoraError, match="not empty"):
        rm.campaign(study, out, **FAST)
    other = folder / "other.yaml"
    other.write_text(STUDY.replace("seed: 9", "seed: 10"), encoding="utf-8")
    with pytest.raises(rm.RemoraError, match="seed differs"):
        rm.campaign(other, out, resume=True, **FAST)
    other.write_text(STUDY.replace("high: 15", "high: 16"), encoding="utf-8")
    with pytest.raises(rm.RemoraError, match="disperse differs"):
        rm.campaign(other, out, resume=True, **FAST)
    with pytest.raises(rm.RemoraError, match="runs"):
        rm.campaign(folder / "study.yaml", out, runs=41, resume=True, **FAST)


def test_another_scenario_is_refused(folder, tmp_path):
    """What acts in a phase is known by value: a pulse of another size is another study."""
    (folder / "pulse.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "of_pulse.yaml").write_text(STUDY.replace("small", "pulse"), encoding="utf-8")
    before = rm.load_study(folder / "of_pulse.yaml").identity()
    (folder / "pulse.yaml").write_text(SCENARIO.replace("0.2}}}", "0.21}}}"), encoding="utf-8")
    after = rm.load_study(folder / "of_pulse.yaml").identity()
    assert [name for name in before if before[name] != after[name]] == ["scenario"]


def test_impossible_runs_are_kept_with_their_reason(folder, tmp_path):
    text = STUDY.replace("uniform: {low: 5, high: 15}", "uniform: {low: -5, high: 15}")
    (folder / "impossible.yaml").write_text(text, encoding="utf-8")
    made = rm.campaign(folder / "impossible.yaml", tmp_path / "f", **FAST)
    bad = made["body_2.mass"] <= 0.0
    assert 0 < bad.sum() < 40
    assert np.array_equal(made["ok"] == 0.0, bad)
    table = made.to_pandas()
    assert set(table["outcome"][bad]) == {"impossible"}
    assert not table["success"][bad].any()
    page = rm.campaign_report(made, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "impossible" in page
    assert page.count("<path") > 100  # the drawings
    assert "http" not in page.replace("http-equiv", "")


TABLES = {
    "runs: 40": ("runs: 0", "line 5, runs: must be 1 or greater"),
    "body_2.mass: {": ("body_9.mass: {", "no parameter named 'body_9.mass'"),
    "high: 15": ("high: 4", "low must be below high"),
    "sigma: 0.5": ("sigma: -1", "must be greater than 0"),
    "start.speeds.J1": ("start.speeds.J7", "no joint named 'J7'"),
    "rpy[2]": ("rpy", "name one number of it, such as start.base.rpy[0]"),
    "at: 1.25": ("at: 3", "at 3 s the run is over"),
    "take: max}": ("take: median}", "must be"),
    "signal: gyro.rate": ("signal: gyro.ratee", "no signal named 'gyro.ratee'"),
    "frame: body_3": ("frame: body_7", "no body or frame named 'body_7'"),
    "output: speed": ("output: spead", "no output named 'spead'"),
    "description:": ("descriptoin:", "did you mean 'description'"),
    "unit: deg}\n  speed": ("unit: m}\n  speed", "unit must be 'rad' or 'deg'"),
}


GROUPS = [
    ("{names: [gyro.noise, mass], matrix: [[1, 0], [0, 1]]}", "dispersed number named 'mass'"),
    ("{names: [gyro.noise, gyro.noise], matrix: [[1, 0], [0, 1]]}", "'gyro.noise' is in two"),
    ("{names: [gyro.noise, body_2.mass], matrix: [[1, 2], [2, 1]]}", "correlat"),
    (
        "{names: [gyro.noise, body_2.mass], matrix: [[1, 0], [0, 1]]}, "
        "{names: [start.speeds.J1, body_2.mass], matrix: [[1, 0], [0, 1]]}",
        "'body_2.mass' is in two groups",
    ),
]


def test_numbers_of_a_study_are_correlated(folder):
    names = "[start.speeds.J1, body_2.mass]"
    group = f"correlate: [{{names: {names}, matrix: [[1, -0.9], [-0.9, 1]]}}]\noutputs:"
    text = STUDY.replace("outputs:", group).replace("runs: 40", "runs: 4000")
    (folder / "correlated.yaml").write_text(text, encoding="utf-8")
    values, _ = rm.load_study(folder / "correlated.yaml").inputs(0, 4000)
    drawn = pandas.DataFrame(values).corr("spearman")
    # Spearman's correlation of a Gaussian copula, within three of its standard errors
    own = drawn.loc["start.speeds.J1", "body_2.mass"]
    assert own == pytest.approx(-6.0 / np.pi * np.arcsin(0.45), abs=3.0 / np.sqrt(4000))
    assert abs(drawn.loc["gyro.noise", "body_2.mass"]) < 3.0 / np.sqrt(4000)
    (folder / "table.csv").write_text("mass\n" + "5\n" * 4000, encoding="utf-8")
    text = text.replace("{uniform: {low: 5, high: 15}}", "{table: {file: table.csv, column: mass}}")
    (folder / "correlated.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(rm.errors.ModelError, match=r"'body_2.mass' comes from a table and cannot"):
        rm.load_study(folder / "correlated.yaml")


def test_a_study_without_dispersions_repeats_its_scenario(folder):
    text = re.sub(r"disperse:.*outputs:", "disperse: {}\noutputs:", STUDY, flags=re.S)
    (folder / "same.yaml").write_text(text, encoding="utf-8")
    same = rm.load_study(folder / "same.yaml")
    values, inputs = same.inputs(3, 7)
    assert values == {}
    assert np.array_equal(inputs.q, np.tile(same.scenario.q, (4, 1)))
    assert np.array_equal(inputs.v, np.tile(same.scenario.v, (4, 1)))
    with pytest.raises(
        rm.errors.UnknownName, match=r"bundled study named 'rigid_captur'.*rigid_capture"
    ):
        rm.load_study("rigid_captur")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [(old, *told) for old, told in TABLES.items()]
    + [("outputs:", f"correlate: [{groups}]\noutputs:", words) for groups, words in GROUPS],
)
def test_faulty_studies(old, new, words, folder):
    (folder / "faulty.yaml").write_text(STUDY.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(rm.RemoraError) as refused:
        rm.load_study(folder / "faulty.yaml")
    assert words in str(refused.value)
    assert "line " in str(refused.value)


def test_all_faults_at_once(folder):
    text = (
        STUDY.replace("body_2.mass", "body_9.mass")
        .replace("body_3", "body_7")
        .replace("seed: 9", "seed: -1")
    )
    (folder / "faulty.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(rm.errors.ModelError) as refused:
        rm.load_study(folder / "faulty.yaml")
    assert "seed" in str(refused.value)
    assert "body_7" in str(refused.value)


def test_tables(folder, tmp_path):
    rows = "mass,other\n" + "\n".join(f"{5 + 0.1 * k},0" for k in range(40))
    (folder / "masses.csv").write_text(rows, encoding="utf-8")
    text = STUDY.replace("{uniform: {low: 5, high: 15}}", "{table: {file: FILE, column: mass}}")

    def made(file):
        (folder / "table.yaml").write_text(text.replace("FILE", file), encoding="utf-8")
        return rm.load_study(folder / "table.yaml").dispersions.draw(3, 5)["body_2.mass"]

    assert made("masses.csv") == pytest.approx([5.3, 5.4])
    pandas.read_csv(folder / "masses.csv").to_parquet(folder / "masses.parquet")
    assert made("masses.parquet") == pytest.approx([5.3, 5.4])
    for file, words in (
        ("../x.csv", "outside"),
        ("none.csv", "no such file"),
        ("study.yaml", ".csv"),
    ):
        with pytest.raises(rm.RemoraError, match=words):
            made(file)


def test_bundled_studies_load():
    assert {*rm.bundled("studies")} == {"capture", "reach_payload", "rigid_capture"}
    for name in rm.bundled("studies"):
        assert rm.load_study(name, runs=2).runs == 2


@pytest.mark.timeout(300)
def test_the_bundled_capture(tmp_path):
    """The grapple closes in most runs, and pulls harder the faster the satellite drifts."""
    made = rm.campaign("capture", tmp_path / "n", runs=128, target="cpu", **FAST)
    assert made["ok"].all()
    held = made["captured"] == 1.0
    assert 0.5 < held.mean() < 1.0
    assert np.array_equal(np.isfinite(made["peak force"]), held)
    assert np.array_equal(np.isfinite(made["time of capture"]), held)
    assert np.all(made["impulse"][held] > 0.0)
    strongest = list(made.drivers("impulse"))[:2]
    assert {*strongest} == {"start.bases.target/base.velocity[0]", "target/bus.mass"}
    before = made["force of the grapple"][:, made.t < 2.0]
    assert np.all(before == 0.0)


@pytest.mark.timeout(300)
def test_the_bundled_rigid_capture_and_its_replay(tmp_path):
    """Impulse, energy and time of the capture are those of a replayed run, and of mechanics."""
    made = rm.campaign("rigid_capture", tmp_path / "n", runs=16, target="cpu", **FAST)
    assert made["ok"].all()
    held = made["captured"] == 1.0
    assert 0.5 < held.mean() <= 1.0
    for name in ("time of capture", "impulse", "angular impulse", "energy lost"):
        assert np.array_equal(np.isfinite(made[name]), held)
    assert np.all(made["energy lost"][held] > 0.0)
    expected = held & (made["impulse"] < 0.5) & (made["energy lost"] < 0.01)
    expected &= made["tumble at the end"] < np.radians(1.0)
    assert np.array_equal(made["success"] == 1.0, expected)
    number = int(np.flatnonzero(held)[-1])
    run = made.replay(number)
    (switch,) = run.switches
    assert switch.t == pytest.approx(made["time of capture"][number], abs=1e-9)
    assert switch.energy_loss == pytest.approx(made["energy lost"][number], rel=1e-6)
    pull = switch.impulses["grapple"]
    assert np.linalg.norm(pull[:3]) == pytest.approx(made["impulse"][number], rel=1e-6)
    assert np.linalg.norm(pull[3:]) == pytest.approx(made["angular impulse"][number], rel=1e-6)
    spin = rm.frame_twist(run.robot, run.q[-1], run.v[-1], "target/bus")[:3]
    assert np.linalg.norm(spin) == pytest.approx(made["tumble at the end"][number], rel=1e-6)


# Workers -----------------------------------------------------------------------------------------

SCRIPT = """
import sys, remora as rm
print(rm.campaign(sys.argv[1], sys.argv[2], block=2, resume=True, workers=2, progress=False))
"""


@pytest.mark.timeout(300)
def test_workers_and_client_may_be_killed(made, folder, tmp_path):
    """Workers are killed while they compute, then the client; the numbers stay the same."""
    out = tmp_path / "g"
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    command = [sys.executable, str(script), str(folder / "study.yaml"), str(out)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        until = time.monotonic() + 200.0
        while not (workers := _workers(process.pid)) and time.monotonic() < until:
            assert process.poll() is None
            time.sleep(0.1)
        os.kill(workers[0], signal.SIGKILL)
        while not _markers(out) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert 0 < len(rm.open_campaign(out)) <= 40
    again = rm.campaign(folder / "study.yaml", out, resume=True, workers=2, progress=False)
    assert same(made, again)
    assert len(_markers(out)) == 20  # besides, the killed process may have left an unfinished one


def _markers(out):
    return list((out / "blocks").glob("[0-9]*.json")) if (out / "blocks").exists() else []


def _workers(parent):
    """Return the processes that compute: grandchildren started by the nannies."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[1:]
    rows = [line.split(None, 2) for line in listed]
    children = [int(p) for p, up, _ in rows if int(up) == parent]
    return [int(p) for p, up, args in rows if int(up) in children and "spawn_main" in args]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_workers_does_not_change_a_bit(workers, made, study, tmp_path):
    again = rm.campaign(study, tmp_path / "h", block=8, workers=workers, progress=False)
    assert same(made, again)
    assert again.processors == {"cpu": 40} or made.processors == again.processors


def test_a_creation_that_was_interrupted_is_begun_again(made, study, tmp_path):
    """Killed after any of the files, in the order in which they are written."""
    out = tmp_path / "i"
    begun = CampaignFolder.create(out, study, 16)
    for gone in (*(f"results.zarr/{name}" for name in begun.names()), "results.zarr", "blocks"):
        shutil.rmtree(out / gone)
        assert len(rm.open_campaign(out)) == 0
    (out / "study.yaml").unlink()
    (out / ".remora-x.json").write_text("", encoding="utf-8")
    assert same(made, rm.campaign(study, out, resume=True, **FAST))
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / ".remora-x.json").write_text("", encoding="utf-8")
    assert same(made, rm.campaign(study, tmp_path / "j", resume=True, block=16, **FAST))


@pytest.mark.parametrize("mine", ["results.zarr/a/c/0", "study.yaml", "blocks/notes", "thesis.tex"])
def test_nothing_is_removed_that_remora_did_not_write(mine, study, tmp_path):
    out = tmp_path / "mine"
    (out / mine).parent.mkdir(parents=True)
    (out / mine).write_text("the work of three months", encoding="utf-8")
    for resume in (False, True):
        with pytest.raises(rm.RemoraError, match="mine: exists and is not empty; name a new"):
            rm.campaign(study, out, resume=resume, **FAST)
    assert (out / mine).read_text(encoding="utf-8") == "the work of three months"


def test_changed_numbers_are_refused_when_they_are_read(study, tmp_path):
    """A flipped bit in a result is no result: neither columns nor a report are made of it."""
    out = tmp_path / "k"
    rm.campaign(study, out, block=16, **FAST)
    shard = sorted((out / "results.zarr" / "angle" / "c").iterdir())[1]
    content = shard.read_bytes()
    shard.write_bytes(content[:10] + bytes([content[10] ^ 1]) + content[11:])
    damaged = rm.open_campaign(out)
    with pytest.raises(rm.RemoraError, match=r"angle: .* runs 16 to 31 have changed since"):
        damaged["angle"]
    with pytest.raises(rm.RemoraError, match="the campaign is damaged"):
        rm.campaign_report(damaged, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    shard.unlink()  # missing numbers are no runs that were not computed
    with pytest.raises(rm.RemoraError, match="the campaign is damaged"):
        damaged.to_pandas()
    assert len(rm.campaign(study, out, resume=True, **FAST)) == 40


@pytest.mark.parametrize("file", ["campaign.json", "blocks/000001.json", "results.zarr"])
def test_every_changed_digit_of_the_metadata_is_refused_or_harmless(file, study, tmp_path):
    out = tmp_path / "l"
    rm.campaign(study, out, block=16, **FAST)
    names = sorted((out / file).glob("**/zarr.json")) if file == "results.zarr" else [out / file]
    sound = rm.open_campaign(out)
    before = sound.to_pandas(), [sound[name] for name in sound.bands], sound.t
    refused = 0
    for name in names:
        text = name.read_text(encoding="utf-8")
        for k in [m.start() for m in re.finditer("[0-9]", text)][:: 1 + len(text) // 400]:
            name.write_text(text[:k] + str((int(text[k]) + 1) % 10) + text[k + 1 :], "utf-8")
            try:
                read = rm.open_campaign(out)
                after = read.to_pandas(), [read[name] for name in read.bands], read.t
            except rm.RemoraError:
                refused += 1
                continue
            assert before[0].equals(after[0])
            assert all(map(np.array_equal, before[1], after[1]))
            assert np.array_equal(before[2], after[2])
        name.write_text(text, "utf-8")
    assert refused > 5


def test_where_blocks_were_computed(made, study, tmp_path):
    assert sum(made.processors.values()) == 40
    assert set(made.to_pandas()["processor"]) == {*made.processors}
    with pytest.raises(rm.errors.UnknownName, match="auto"):
        rm.campaign(study, tmp_path / "j", target="gpu", **FAST)


@needs.no_gpu
def test_without_a_gpu(study, tmp_path):
    with pytest.raises(rm.RemoraError, match=r"GPU|CuPy|cupy"):
        rm.campaign(study, tmp_path / "k", target="cuda", **FAST)
    assert run_block(study, 0, 2, target="auto").processor == "cpu"


@needs.gpu
def test_on_a_gpu(study, tmp_path):
    on_gpu = rm.campaign(study, tmp_path / "l", target="cuda", **FAST)
    on_cpu = rm.campaign(study, tmp_path / "m", target="cpu", **FAST)
    assert list(on_gpu.processors) != ["cpu"]
    for name in (*on_cpu.outputs, *on_cpu.bands):
        assert np.allclose(on_gpu[name], on_cpu[name], rtol=1e-9, atol=1e-12)


def test_command_line(folder, tmp_path):
    out = tmp_path / "cli"
    command = [sys.executable, "-c", "from remora.cli import main; main()", "campaign"]
    options = {"capture_output": True, "text": True, "check": False, "cwd": tmp_path}
    done = subprocess.run(
        [*command, str(folder / "study.yaml"), "--out", str(out), "--runs", "8", "--workers", "0"],
        **options,
    )
    assert done.returncode == 0, done.stderr
    assert "8 of 8 runs" in done.stdout
    assert json.loads((out / "campaign.json").read_text(encoding="utf-8"))["runs"] == 8
    assert (out / "report.html").exists()
    done = subprocess.run([*command, "replay", str(out), "3"], **options)
    assert done.returncode == 0, done.stderr
    assert len(rm.open_run(tmp_path / "run_3")) > 1
    done = subprocess.run([*command, "replay", str(out), "nine"], **options)
    assert done.returncode == 2
    assert "replay DIR RUN" in done.stderr


def test_prescribed_moves(folder, tmp_path):
    """Moves start at the positions of the joints; where these differ, nothing is begun."""
    scenario = SCENARIO.replace("torque: {J2: {pulse: {start: 0.5, stop: 1, value: 0.2}}}",
                                "prescribed: {J2: {to: 20 deg}}")  # fmt: skip
    (folder / "moves.yaml").write_text(scenario)
    study = STUDY.replace("small.yaml", "moves.yaml").replace("runs: 40", "runs: 4")
    (folder / "moving.yaml").write_text(study)
    found = rm.campaign(folder / "moving.yaml", tmp_path / "out", **FAST)
    assert len(found) == 4
    dispersed = study.replace("start.speeds.J1", "start.joints.J2")
    (folder / "differing.yaml").write_text(dispersed)
    with pytest.raises(rm.RemoraError, match=r"scenario 'moves': joint 'J2' in 'spin'.*differs"):
        rm.campaign(folder / "differing.yaml", tmp_path / "none", **FAST)
    assert not (tmp_path / "none").exists()
