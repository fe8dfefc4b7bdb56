"""`remora analyze`: pages, pictures and data, and refusals."""

import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import remora as rm
from remora.cli import app
from remora.errors import RemoraError

OPTIONS = {
    "workspace": ("--plane", "xy", "--samples", 20000, "--cells", 30, "--quiet"),
    "manipulability": ("--plane", "xy"),
    "conditioning": ("--plane", "xy"),
    "sensitivity": ("--samples", 60, "--error", "mass=0.02", "--quiet"),
}


def analyzed(*arguments):
    return CliRunner().invoke(app, ["analyze", *map(str, arguments)])


@pytest.mark.parametrize("what", ["workspace", "manipulability", "coupling"])
def test_a_page_with_pictures_and_data_is_written(tmp_path, what):
    result = analyzed(what, "spart17_planar", "--out", tmp_path, *OPTIONS.get(what, ()))
    assert result.exit_code == 0, result.output
    text = (tmp_path / f"{what}.html").read_text(encoding="utf-8")
    assert "spart17_planar" in text
    assert "default-src data:" in text
    assert not re.search(r"(src|href)=[\"']?https?:", text)
    assert (tmp_path / f"{what}_1.png").read_bytes()[:4] == b"\x89PNG"
    with np.load(tmp_path / f"{what}.npz") as data:
        assert all(np.asarray(data[name]).size for name in data.files)
    if what != "workspace":
        table = np.genfromtxt(tmp_path / f"{what}.csv", delimiter=",", names=True)
        assert table.dtype.names[:2] == ("joint_1", "joint_2")
        assert len(table) == 200 * 200
    assert not (tmp_path / "workspace.checkpoint.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("magic", "spart17_planar"), "workspace, manipulability, coupling, wheels, conditioning"),
        (("wheels", "spart17_planar"), "has no wheels"),
        (("wheels", "servicer_wheels", "--capacity", "-1"), "must be positive"),
        (("sensitivity", "spart17_planar", "--error", "mass"), "NAME=VALUE"),
        (("workspace", "spart17_planar", "--frame", "base"), "no joint of the arm"),
        (("coupling", "spart17_planar", "--over", "joint_1"), "two joints"),
        (("coupling", "spart17_planar", "--over", "joint_1", "--over", "x"), "joint_2"),
        (("manipulability", "spart17_planar", "--measure", "size"), "volume"),
    ],
)
def test_refusals_name_what_is_wrong(tmp_path, arguments, words):
    with pytest.raises(RemoraError, match=words):
        raise analyzed(*arguments, "--out", tmp_path).exception


def test_options_are_those_of_the_analysis(tmp_path):
    result = analyzed("payload", "spart17_planar", "--out", tmp_path)
    assert result.exit_code == 2
    assert "--run" in result.output
    assert analyzed("coupling", "spart17_planar", "--out", tmp_path, "--plane", "xy").exit_code == 2
    robot = rm.load("spart17_planar")
    with pytest.raises(rm.errors.UnknownName, match=r"option of coupling.*'plane'.*over, threads"):
        rm.analyze(robot, "coupling", tmp_path, plane="xy")
    with pytest.raises(rm.errors.UnknownName, match="workspace, manipulability"):
        rm.analyze(robot, "magic", tmp_path)


@pytest.mark.parametrize(
    ("missing", "extra"), [("skimage.measure", "analysis"), ("matplotlib", "plot")]
)
def test_a_missing_extra_is_named_before_anything_is_computed(
    tmp_path, monkeypatch, missing, extra
):
    monkeypatch.setitem(sys.modules, missing, None)
    error = analyzed("workspace", "spart17_planar", "--out", tmp_path / "new").exception
    assert isinstance(error, RemoraError)
    assert f".[{extra}]" in str(error)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("what", ["conditioning", "sensitivity"])
def test_pages_along_a_path(tmp_path, what):
    result = analyzed(what, "spart17_planar", "--out", tmp_path, *OPTIONS[what])
    assert result.exit_code == 0, result.output
    text = (tmp_path / f"{what}.html").read_text(encoding="utf-8")
    assert "spart17_planar" in text
    assert not re.search(r"(src|href)=[\"']?https?:", text)
    with np.load(tmp_path / f"{what}.npz") as data:
        assert np.all(np.isfinite(data["jacobian" if what == "sensitivity" else "singular_values"]))
    assert not list(tmp_path.glob("*.checkpoint.npz"))


def test_a_payload_from_a_recorded_run(tmp_path):
    robot = rm.load("spart17_planar_3")
    hand = robot.bodies[-1]
    heavy = {"mass": hand.mass + 2.0, "inertia": hand.inertia + np.diag([0.2, 0.3, 0.25])}
    v = 0.3 * np.random.default_rng(0).normal(size=robot.nv)
    loaded = robot.replace_body(hand.name, **heavy)
    rm.simulate(
        loaded, rm.neutral(robot), v, 6.0, record=rm.Record(0.1, folder=tmp_path / "run.zarr")
    )
    result = analyzed(
        "payload", "spart17_planar_3", "--run", tmp_path / "run.zarr", "--frame", hand.name,
        "--out", tmp_path,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "payload.npz") as data:
        found, (low, high) = data["parameters"], data["intervals"].T
    assert found[0] == pytest.approx(2.0, rel=1e-5)
    assert found[1:4] == pytest.approx(2.0 * hand.com, abs=1e-5)
    text = (tmp_path / "payload.html").read_text(encoding="utf-8")
    assert f"<b>2 kg</b><span>mass, ± {0.5 * (high - low)[0]:.2g} kg</span>" in text
    for x, half in zip(found, 0.5 * (high - low), strict=True):
        assert f"<td>{x:.6g} ± {half:.2g}</td>" in text
    other = analyzed("payload", "servicer", "--run", tmp_path / "run.zarr", "--out", tmp_path)
    assert "was made with other joints" in str(other.exception)


def test_wheels_against_the_demand_of_the_arm(tmp_path):
    """The table's demand and margin are those of the library along the same path."""
    result = analyzed("wheels", "servicer_wheels", "--out", tmp_path, "--capacity", 30)
    assert result.exit_code == 0, result.output
    assert "smallest margin" in (tmp_path / "wheels.html").read_text(encoding="utf-8")
    with np.load(tmp_path / "wheels.npz") as data:
        margin, demand, axes = (data[name] for name in ("margin", "demand", "axes"))
        assert data["wheels"].tolist() == ["wheel_x", "wheel_y", "wheel_z"]
        assert np.all(data["capacity"] == 30.0)
    table = np.genfromtxt(tmp_path / "wheels.csv", delimiter=",", names=True)
    assert np.allclose(table["margin"], margin, rtol=1e-6)
    load = np.abs(demand @ axes.T).max(axis=-1) / 30.0  # orthogonal wheels: the envelope is a box
    moving = load > 1e-9
    assert moving.sum() > 90
    assert np.allclose(margin[moving], 1.0 / load[moving], rtol=1e-9)


def test_wheels_that_saturate_are_noted_and_a_run_is_taken(tmp_path):
    robot = rm.load("servicer_wheels")
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[:8] = rm.algebra.pose.from_xyz_rpy([0.1, -0.2, 0.3], [0.5, -0.9, 1.3])
    v[robot.joints["shoulder_pitch"].v] = 0.2
    v[robot.joints["wheel_x"].v] = 50.0  # not a demand
    rm.simulate(robot, q, v, 1.0, record=0.5).save(tmp_path / "run.zarr")
    result = analyzed(
        "wheels", "servicer_wheels", "--out", tmp_path, "--run", tmp_path / "run.zarr",
        "--capacity", 0.5,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "The wheels saturate" in (tmp_path / "wheels.html").read_text(encoding="utf-8")
    with np.load(tmp_path / "wheels.npz") as data:
        v[robot.joints["wheel_x"].v] = 0.0
        inertial = rm.analysis.momentum_demand(robot, q, v)
        R = rm.algebra.pose.to_rotation_matrix(q[:8])
        assert np.allclose(data["demand"][0], R.T @ inertial)
