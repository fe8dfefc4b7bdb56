"""Batches on disk: the same bits after a round trip, damage is named, single runs again."""

import json
import re
import shutil

import numpy as np
import pytest
import zarr

import remora as rm
from plain_settings import grouped

ROBOT = rm.load("vt18_satellite")
GYRO = rm.sensors.RateGyro("body_1", noise=1e-3, sample_time=0.1)
FAST = rm.sensors.Threshold(0.05, "rad/s", size=3, direction="above", action="stop", name="fast")
SYSTEM = rm.System(ROBOT, [GYRO, FAST], connect={"fast.signal": "rate_gyro.rate"})
TORQUE = {"J1": rm.Pulse(0.2, 0.7, 0.3)}


def simulated(system, torque=None, shape=(6,), **more):
    rng = np.random.default_rng(1)
    q, v = rm.neutral(ROBOT), 0.05 * rng.normal(size=(*shape, ROBOT.nv))
    masses = rng.uniform(5, 15, shape)
    return rm.simulate_batch(
        system,
        q,
        v,
        1.0,
        integrator=rm.Integrator(step=0.05),
        record=0.25,
        runs=rm.Runs(seed=4, parameters={"body_2.mass": masses, **more}),
        torque=torque,
    )


@pytest.fixture(scope="module")
def batch():
    noise = np.random.default_rng(2).uniform(0, 1e-2, 6)
    return simulated(SYSTEM, TORQUE, **{"rate_gyro.noise": noise})


@pytest.fixture(scope="module")
def saved(batch, tmp_path_factory):
    return batch.save(tmp_path_factory.mktemp("batch") / "b")


def same_bits(one, other):
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


def test_the_same_bits_come_back(batch, saved):
    again = rm.open_batch(saved)
    for name in ("t", "q", "v", "ok", "end", "outcome"):
        assert same_bits(getattr(again, name), np.asarray(getattr(batch, name))), name
    assert list(again.signals) == list(batch.signals)
    assert all(same_bits(again.signals[n], batch.signals[n]) for n in batch.signals)
    assert all(same_bits(again.parameters[n], batch.parameters[n]) for n in batch.parameters)
    assert again.events.names == batch.events.names
    assert all(same_bits(a, b) for a, b in zip(again.events[1:], batch.events[1:], strict=True))
    assert again.status == batch.status
    assert again.robot == ROBOT
    assert repr(again) == repr(batch)


def test_what_can_be_done_with_an_opened_batch(batch, saved):
    again = rm.open_batch(saved)
    assert again.to_pandas().equals(batch.to_pandas())
    energy = again.evaluate(rm.kinetic_energy)
    assert np.array_equal(energy, batch.evaluate(rm.kinetic_energy), equal_nan=True)
    titles = [ax.get_title(loc="left") for ax in again.plot("rate_gyro.rate[2]").axes]
    assert titles == ["rate_gyro.rate[2], deg/s"]
    with pytest.raises(rm.RemoraError, match="components and loads are not stored"):
        again[2]


def test_with_its_system_and_phases_a_run_can_be_simulated_again(batch, saved):
    phases = [rm.Phase(1.0, torque=TORQUE)]
    run = rm.open_batch(saved, system=SYSTEM, phases=phases)[2]
    assert np.array_equal(run.q, batch[2].q)
    with pytest.raises(rm.RemoraError, match="the phases of this batch differ"):
        rm.open_batch(saved, system=SYSTEM, phases=[rm.Phase(1.0)])
    other = rm.System(ROBOT, [rm.sensors.RateGyro("body_1", noise=2e-3, sample_time=0.1)])
    with pytest.raises(rm.RemoraError, match="the system of this batch differs"):
        rm.open_batch(saved, system=other)


def test_a_batch_of_a_robot_alone_needs_nothing_more(tmp_path):
    batch = simulated(ROBOT, shape=(2, 3))
    again = rm.open_batch(batch.save(tmp_path / "b"))
    assert np.array_equal(again[1, 2].q, batch[1, 2].q)
    single = rm.simulate_batch(
        ROBOT, rm.neutral(ROBOT), np.zeros(ROBOT.nv), 0.1, integrator=rm.Integrator(step=0.1)
    )
    assert same_bits(rm.open_batch(single.save(tmp_path / "one")).q, single.q)


LATE = rm.Event(lambda t, q, v: t - 0.3, "late", "record")


@pytest.mark.parametrize(
    ("given", "left"),
    [({"breaks": [0.25]}, ""), ({"events": [LATE]}, "events="),
     ({"torque": np.ones((2, 9))}, "loads that differ")],
)  # fmt: skip
def test_what_a_folder_does_not_hold_is_told(given, left, tmp_path):
    robot = rm.load("vt18_satellite")
    q, v = np.stack([rm.neutral(robot)] * 2), 0.1 * np.ones((2, 9))
    batch = rm.simulate_batch(
        robot, q, v, 0.5, **grouped(True, integrator="dop853", sample=0.5, **given)
    )
    opened = rm.open_batch(batch.save(tmp_path / "a"))
    again = rm.open_batch(opened.save(tmp_path / "b"))
    if not left:
        assert np.array_equal(again[1].q[-1], batch[1].q[-1])
        return
    assert np.array_equal(batch[1].q[-1], batch.q[1, -1])
    for stored in (opened, again):
        with pytest.raises(rm.RemoraError, match=f"cannot be simulated alone: it had {left}"):
            stored[1]


def test_float32_and_failed_runs(tmp_path):
    q = np.tile(rm.neutral(ROBOT), (3, 1)).astype("float32")
    v = np.zeros((3, ROBOT.nv), "float32")
    batch = rm.simulate_batch(
        ROBOT,
        q,
        v,
        0.2,
        integrator=rm.Integrator(step=0.1),
        target=rm.Target(dtype="float32"),
        record=rm.Record(failures="keep"),
        runs=rm.Runs(parameters={"body_2.mass": np.array([5.0, -1.0, 6.0], "float32")}),
    )
    again = rm.open_batch(batch.save(tmp_path / "b"))
    assert again.q.dtype == np.float32
    assert same_bits(again.q, batch.q)
    assert np.array_equal(again.ok, [True, False, True])
    assert np.isnan(again.q[1]).all()


def test_a_folder_is_not_overwritten(batch, saved, tmp_path):
    with pytest.raises(rm.RemoraError, match="not empty"):
        batch.save(saved)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(rm.RemoraError, match="cannot be written"):
        batch.save(tmp_path / "file" / "b")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def damaged(kind, folder):
    chunk = next(p for p in (folder / "q" / "c").rglob("*") if p.is_file())
    content = chunk.read_bytes()
    match kind:
        case "truncated":
            chunk.write_bytes(content[:-9])
        case "changed":
            chunk.write_bytes(content[:8] + bytes([content[8] ^ 1]) + content[9:])
        case "missing":
            chunk.unlink()
        case "array":
            shutil.rmtree(folder / "v")
        case "attributes":
            told = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
            del told["attributes"]["digests"]
            (folder / "zarr.json").write_text(json.dumps(told), encoding="utf-8")
        case "json":
            text = (folder / "zarr.json").read_text(encoding="utf-8")
            (folder / "zarr.json").write_text(text[: len(text) // 2], encoding="utf-8")
        case "version":
            told = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
            told["attributes"]["remora_batch"] = 99
            (folder / "zarr.json").write_text(json.dumps(told), encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("truncated", r"q[/\\]c.*bytes instead of .*damaged"),
        ("changed", r"[/\\]q: its numbers have changed; the batch is damaged"),
        ("missing", r"q[/\\]c.*is missing; the batch is damaged"),
        ("array", r"[/\\]v: cannot be read, or is damaged"),
        ("attributes", r"zarr.json: cannot be read, or is damaged"),
        ("json", r"zarr.json: cannot be read, or is damaged"),
        ("version", r"format 99, this Remora reads 4"),
    ],
)
def test_damage_is_named_with_its_file(kind, words, saved, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(saved, folder)
    damaged(kind, folder)
    with pytest.raises(rm.RemoraError, match=words):
        rm.open_batch(folder)


def test_every_changed_digit_of_the_attributes_is_refused(saved, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(saved, folder)
    text = (folder / "zarr.json").read_text(encoding="utf-8")
    digits = [m.start() for m in re.finditer("[0-9]", text)]
    for k in digits[:: 1 + len(digits) // 60]:
        changed = text[:k] + str((int(text[k]) + 1) % 10) + text[k + 1 :]
        (folder / "zarr.json").write_text(changed, encoding="utf-8")
        with pytest.raises(rm.RemoraError, match=r"damaged|format|no batch"):
            rm.open_batch(folder)


def test_what_is_no_batch(tmp_path):
    with pytest.raises(rm.RemoraError, match="no such folder"):
        rm.open_batch(tmp_path / "none")
    with pytest.raises(rm.RemoraError, match=r"no zarr\.json"):
        rm.open_batch(tmp_path)
    zarr.create_group(tmp_path / "run").attrs["remora_run"] = 1
    with pytest.raises(rm.RemoraError, match=r"rm\.open_run"):
        rm.open_batch(tmp_path / "run")
