"""Export of runs: four formats of one table, read back by the programs they are for."""

import csv
import dataclasses
import sys

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose, quaternion
from remora.simulation.recording.export import FORMATS, _variable
from remora.simulation.recording.quantities import (
    QUANTITIES,
    RECORDED,
    STORED,
    signal_columns,
)
from remora.simulation.recording.recording import Recording
from remora.simulation.recording.synonyms import SYNONYMS
from remora.viewer.figures.panels import PANELS

scipy_io = pytest.importorskip("scipy.io")
DEFAULT = ["positions", "quaternions", "euler_angles"]


@pytest.fixture(scope="module")
def run():
    """A run with signals of components, of a robot with frames on a body and in the world."""
    robot = rm.load("vt18_satellite")
    dock = pose.from_xyz_rpy((1.0, 2.0, 3.0), (0.0, 0.0, 1.0))
    robot = robot.replace(frames=[*robot.frames, rm.Frame("dock", -1, dock)])
    n, rng = 11, np.random.default_rng(4)
    q, v = rm.random_state(robot, rng, batch=n)
    columns = {
        "t": 0.1 * np.arange(n), "q": q, "v": v,
        **{name: rng.normal(size=v.shape) for name in ("tau", "passive")},
        "work": rng.normal(size=(n, 3)), "phase": np.arange(n) // 6,
        "gyro.rate": rng.normal(size=(n, 3)), "wheel.speed": rng.normal(size=n),
    }  # fmt: skip
    signals = signal_columns({"gyro.rate": ((3,), "rad/s"), "wheel.speed": ((), "rad/s")})
    return Recording(robot, {}, columns, status="complete", signal_columns=signals)


def labels_of(run):
    """Return name, unit and values of every column, by the definitions of the quantities."""
    frame = run.to_pandas(*run.columns, *STORED, *DEFAULT)
    units = frame.attrs["units"]
    return {"t": ("s", run.t)} | {n: (units[n], frame[n].to_numpy()) for n in frame.columns}


def test_positions_and_orientations_are_those_of_the_frames(run):
    names = [*run.robot.bodies.names, *run.robot.frames.names]
    assert run.positions.shape == (len(run), len(names), 3)
    for k, name in enumerate(names):
        x = run.frame_pose(name)
        np.testing.assert_allclose(run.positions[:, k], pose.translation(x), atol=1e-14)
        np.testing.assert_allclose(run.quaternions[:, k], x[:, :4], atol=1e-15)
        # the same rotation, whatever the sign of the quaternion
        turned = quaternion.to_matrix(quaternion.from_rpy(run.euler_angles[:, k]))
        np.testing.assert_allclose(turned, quaternion.to_matrix(x[:, :4]), atol=1e-13)
    np.testing.assert_allclose(run.positions[:, -1] - [1.0, 2.0, 3.0], 0.0, atol=1e-14)


def test_csv(run, tmp_path):
    file = run.to_csv(tmp_path / "run.csv")
    with open(file, encoding="utf-8", newline="") as opened:
        head, *rows = list(csv.reader(opened))
    expected = labels_of(run)
    shown = [n if unit == "1" else f"{n} [{unit}]" for n, (unit, _) in expected.items()]
    assert head == shown
    values = np.array(rows, dtype=float)
    assert values.shape == (len(run), len(expected))
    for k, (_, column) in enumerate(expected.values()):
        assert np.array_equal(values[:, k], column), head[k]  # bit for bit


def test_npz(run, tmp_path):
    file = run.to_npz(tmp_path / "run.npz")
    expected = labels_of(run)
    with np.load(file) as data:  # no pickles
        assert np.array_equal(data["q"], run.q)
        assert data["positions"].shape == run.positions.shape
        found = {}
        for name in data.files:
            if f"{name}.names" in data.files:
                flat = data[name].reshape(len(run), -1).T
                told = data[f"{name}.names"].ravel(), data[f"{name}.units"].ravel()
                found |= {n: (u, x) for n, u, x in zip(*told, flat, strict=True)}
        assert list(found) == list(expected)
        for name, (unit, values) in expected.items():
            assert found[name][0] == unit
            assert np.array_equal(found[name][1], values)
        assert str(data["robot"]) == "vt18_satellite"
        assert str(data["status"]) == "complete"


def test_mat(run, tmp_path):
    file = run.to_mat(tmp_path / "run.mat")
    data = scipy_io.loadmat(file, simplify_cells=True)
    for name in (*run.columns, *STORED, *DEFAULT):
        variable = name.replace(".", "_")
        assert np.array_equal(data[variable], run.quantity(name)), name
    assert data["names"]["q"][9] == "q.J2"
    assert data["units"]["v"][0] == "rad/s"
    assert data["names"]["gyro_rate"][2] == "gyro.rate[2]"
    assert data["units"]["vdot"][-1] == "rad/s²"
    assert data["names"]["euler_angles"][-1, -1] == "euler_angles.dock.yaw"
    assert data["names"]["t"] == "t"


def test_parquet(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(run.to_parquet(tmp_path / "run.parquet"))
    expected = labels_of(run)
    assert table.column_names == list(expected)
    for name, (unit, values) in expected.items():
        assert table.schema.field(name).metadata == {b"unit": unit.encode()}
        assert np.array_equal(table[name].to_numpy(), values)
    assert table.schema.metadata[b"robot"] == b"vt18_satellite"


@pytest.mark.parametrize("suffix", FORMATS)
def test_chosen_quantities_and_parts_of_them(run, tmp_path, suffix):
    method = getattr(run, FORMATS[suffix][0])
    file = method(tmp_path / f"part{suffix}", "q.J2", "positions.end_effector", "gyro.rate", "t")
    if suffix == ".csv":
        head = file.read_text(encoding="utf-8").partition("\n")[0].split(",")
        assert head == [
            "t [s]", "q.J2 [rad]", *(f"positions.end_effector.{a} [m]" for a in "xyz"),
            *(f"gyro.rate[{k}] [rad/s]" for k in range(3)),
        ]  # fmt: skip
        method(file, "gyro.rate[1]")
        assert file.read_text(encoding="utf-8").partition("\n")[0] == "t [s],gyro.rate[1] [rad/s]"
    with pytest.raises(rm.errors.UnknownName, match="did you mean 'tau'"):
        method(tmp_path / f"none{suffix}", "torque")
    with pytest.raises(rm.errors.UnknownName, match=r"component of q.*q\.J2"):
        method(tmp_path / f"none{suffix}", "q.J9")
    assert [path.name for path in tmp_path.iterdir()] == [f"part{suffix}"]


def test_every_quantity_of_constraints_can_be_exported(tmp_path):
    robot = (
        rm.Builder("four bars")
        .body("base", mass=1.0, inertia=(1, 1, 1))
        .body("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        .joint("hinge", "revolute", "base", "arm")
        .rod("strut", "base", "arm", 1.0, parent_xyz=(1, 1, 0), child_xyz=(1, 0, 0))
        .build(base="fixed")
    )
    run = rm.simulate(robot, rm.neutral(robot), np.zeros(1), 0.1)
    file = run.to_csv(tmp_path / "run.csv", "constraint_wrenches", "constraint_violations")
    head = file.read_text(encoding="utf-8").partition("\n")[0]
    assert "constraint_wrenches.strut.fx [N]" in head


def test_an_empty_run_has_headers(run, tmp_path):
    empty = dataclasses.replace(run, columns={n: x[:0] for n, x in run.columns.items()})
    for suffix, (method, _) in FORMATS.items():
        getattr(empty, method)(tmp_path / f"empty{suffix}", "t", "q")
    assert len((tmp_path / "empty.csv").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_run_is_not_saved_as_a_folder_with_the_name_of_a_file(run, tmp_path, suffix):
    path = tmp_path / f"copy{suffix}"
    with pytest.raises(
        rm.errors.InvalidValue, match=rf"folder, such as copy\.zarr.*{FORMATS[suffix][0]}"
    ):
        run.save(path)
    with pytest.raises(rm.errors.InvalidValue, match=FORMATS[suffix][0]):
        rm.simulate(
            run.robot, rm.neutral(run.robot), np.zeros(9), 0.1, record=rm.Record(folder=path)
        )
    assert not path.exists()


def test_names_and_places_of_files_are_checked(run, tmp_path):
    with pytest.raises(rm.errors.InvalidValue, match=r"ends with \.npz; to_csv writes \.csv files"):
        run.to_npz(tmp_path / "run.csv")
    with pytest.raises(rm.errors.InvalidValue, match=r"ends with \.mat"):
        run.to_mat(tmp_path / "run")
    with pytest.raises(rm.RemoraError, match="cannot be written: No such file or directory"):
        run.to_csv(tmp_path / "nowhere" / "run.csv")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_replaced_only_by_a_complete_one(run, tmp_path, monkeypatch):
    file = run.to_csv(tmp_path / "run.csv", "t")
    before = file.read_bytes()

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(FORMATS, ".csv", ("to_csv", fails))
    with pytest.raises(rm.RemoraError, match="No space left"):
        run.to_csv(file, "q")
    assert file.read_bytes() == before
    monkeypatch.undo()
    run.to_csv(file, "q")
    assert file.read_bytes() != before
    assert [path.name for path in tmp_path.iterdir()] == ["run.csv"]


def test_pyarrow_is_named_if_it_is_missing(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(rm.RemoraError, match="pip install pyarrow"):
        run.to_parquet(tmp_path / "run.parquet")


def test_names_of_matlab_variables():
    taken = {"names"}
    assert _variable("gyro.rate", taken) == "gyro_rate"
    assert _variable("gyro rate", taken) == "gyro_rate_2"
    assert _variable("names", taken) == "names_2"
    assert _variable("2nd.rate", taken) == "x2nd_rate"
    assert len(_variable("a" * 200, taken)) <= 63


@pytest.mark.parametrize(
    ("word", "quantity", "figure"),
    [
        ("torque", "tau", "tau"), ("Torques", "tau", "tau"), ("velocity", "v", "v"),
        ("angles", "q", "q"), ("acceleration", "vdot", "vdot"), ("rpy", "euler_angles", "attitude"),
        ("xyz", "positions", "position"), ("center_of_mass", "com", "com"),
    ],
)  # fmt: skip
def test_what_was_meant_is_suggested(run, word, quantity, figure):
    with pytest.raises(rm.errors.UnknownName, match=f"named '{word}'; did you mean '{quantity}'"):
        run.quantity(word)
    with pytest.raises(rm.errors.UnknownName, match=f"named '{word}'; did you mean '{figure}'"):
        run.plot(word)


def test_every_synonym_means_something():
    known = {*RECORDED, *QUANTITIES, *PANELS}
    for word, meant in SYNONYMS.items():
        assert word == word.lower()
        assert set(meant) <= known, word
        assert word not in RECORDED


def test_a_run_on_disk_is_exported_as_in_memory(run, tmp_path):
    pytest.importorskip("zarr")
    run.save(tmp_path / "run.zarr")
    again = rm.open_run(tmp_path / "run.zarr")
    files = [one.to_csv(tmp_path / f"{k}.csv") for k, one in enumerate((run, again))]
    head, *rows = (file.read_text(encoding="utf-8").partition("\n") for file in files)
    assert head[0] == rows[0][0]
    one, other = (np.loadtxt(file, delimiter=",", skiprows=1) for file in files)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
