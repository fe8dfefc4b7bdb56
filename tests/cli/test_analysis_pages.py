"""Numbers on the pages of `remora analyze` against computations of their own, without pictures."""

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.cli.analyze import deviations
from remora.cli.console import trimmed_output
from remora.viewer.report import path_analyses
from remora.viewer.report.analyses import ANALYSES

pytest.importorskip("matplotlib")


def page_of(what, robot, target, folder, **options):
    """Return the tiles by their label, the page and its data."""
    page = ANALYSES[what](robot, target, folder / "checkpoint.npz", **options)
    assert len({np.size(column) for column in page.columns.values()}) <= 1
    return {label: value for value, label in page.tiles}, page, page.data


def quarters(robot, part):
    """Return q with every joint of the arm at a part of its range."""
    q = rm.neutral(robot)
    for joint in robot.joints:
        low, high = joint.limits.lower, joint.limits.upper
        if joint.kind == "revolute" and np.all(np.isfinite([low, high])):
            q[joint.q] = low + part * (high - low)
    return q


def in_plane(robot, q):
    """Return the velocity of the tool in x and y by the joints' speeds, `(..., 2, n)`."""
    R = pose.to_rotation_matrix(rm.frame_pose(robot, q, "tool"))
    return (R @ rm.jacobian(robot, q, "tool")[..., 3:, 6:])[..., :2, :]


def test_wheels_store_the_demand_of_the_default_path(tmp_path):
    """Minimum jerk, whose fastest rate is 15/8 of the mean, from 1/4 to 3/4 of each range."""
    robot = rm.load("servicer_wheels")
    robot = robot.replace_joint("wheel_y", rotor_inertia=[0.3])
    tiles, page, data = page_of("wheels", robot, "tool", tmp_path)
    arm = [j for j in robot.joints if np.isfinite(j.limits.lower).all() and j.v.start >= 6]
    low, high, limit = (
        np.array([float(getattr(j.limits, end)[0]) for j in arm])
        for end in ("lower", "upper", "velocity")
    )
    span, t = 0.5 * (high - low), data["t"]
    assert t[-1] == pytest.approx(np.max(15 / 8 * span / limit), rel=1e-9)
    s = t / t[-1]
    q, v = np.tile(rm.neutral(robot), (t.size, 1)), np.zeros((t.size, robot.nv))
    for i, joint in enumerate(arm):
        way = 10 * s**3 - 15 * s**4 + 6 * s**5
        q[:, joint.q.start] = low[i] + span[i] * (0.5 + way)
        v[:, joint.v.start] = span[i] * 30 * s**2 * (1 - s) ** 2 / t[-1]
    h = rm.momentum(robot, q, v)  # of the arm, about the centre of mass; the base is not turned
    demand = h[:, 3:] - np.cross(rm.center_of_mass(robot, q), h[:, :3])
    assert np.allclose(data["demand"], demand, rtol=1e-9, atol=1e-9)
    inertia = [float(robot.bodies[f"rotor_{n}"].inertia[k, k]) for k, n in enumerate("xyz")]
    speed = np.array([float(robot.joints[f"wheel_{n}"].limits.velocity[0]) for n in "xyz"])
    capacity = speed * np.add(inertia, [0.0, 0.3, 0.0])  # wheels along x, y and z: a box
    margin = 1.0 / np.max(np.abs(demand) / capacity, axis=1).max()
    worst = int(np.argmax(np.max(np.abs(demand) / capacity, axis=1)))
    assert tiles == {
        "smallest margin; below 1 the wheels saturate": f"{margin:.3g}",
        "time of the smallest margin": f"{t[worst]:.3g} s",
        "largest demand": f"{np.linalg.norm(demand, axis=1).max():.3g} N m s",
        "capacity of the largest wheel": f"{capacity.max():.3g} N m s",
    }
    settings = dict(page.settings)
    assert settings["wheel_y"] == f"{capacity[1]:.4g} N m s, axis 0.000, 1.000, 0.000"
    _, page, _ = page_of("wheels", robot, "tool", tmp_path, capacity=0.5)
    k = int(np.argmax(np.abs(demand).max(axis=1)))
    assert page.notices == [
        f"The wheels saturate: at {t[k]:.3g} s the arm demands {np.abs(demand[k]).max() / 0.5:.2f} "
        "times what they can store."
    ]


def test_conditioning_is_that_of_the_jacobian_of_the_plane(tmp_path):
    robot = rm.load("spart17_planar_3")
    tiles, _, data = page_of("conditioning", robot, "tool", tmp_path, base="fixed", plane="xy")
    parts = np.linspace(0.25, 0.75, len(data["t"]))
    q = np.array([quarters(robot, x) for x in parts])
    values = np.linalg.svd(in_plane(robot, q), compute_uv=False)
    assert np.allclose(data["singular_values"], values, rtol=1e-9, atol=1e-12)
    assert tiles["smallest singular value"] == f"{values[:, 1].min():.4g}"
    assert values[50, 1] == 0.0  # stretched, halfway
    assert tiles["largest condition number"] == "inf"
    nearest = tiles["nearest singularity, estimated"]
    assert nearest == f"{data['joint_distance'].min():.3g} rad"
    assert np.ptp(data["joint_distance"]) > 0.1
    assert tiles["of a range from the nearest limit"] == "25.0 %"


def test_the_rms_miss_is_that_of_the_robots_drawn(tmp_path):
    robot = rm.load("spart17_planar")
    tiles, _, data = page_of(
        "sensitivity", robot, "tool", tmp_path, error={"mass": 0.02}, samples=40
    )
    drawn = 1e3 * np.sqrt(np.mean(np.sum(data["misses"] ** 2, axis=1)))
    assert tiles["rms miss of 40 robots"] == f"{drawn:.3g} mm"
    each = 1e3 * np.linalg.norm(data["jacobian"] * data["deviations"], axis=0)
    assert tiles["rms miss by derivatives"] == f"{np.sqrt(np.sum(each**2)):.3g} mm"
    worst = int(np.argmax(each))
    assert tiles[f"matters most, {each[worst]:.3g} mm"] == data["labels"][worst]


def test_a_map_is_over_the_joints_that_matter_and_tells_where_it_is_best(tmp_path):
    """The first joint turns the whole arm: the volume in the plane does not depend on it."""
    robot = rm.load("spart17_planar_3")
    tiles, page, data = page_of("manipulability", robot, "tool", tmp_path, base="fixed", plane="xy")
    names = [name for name in data if name != "values"]
    assert names == ["joint_2", "joint_3"]
    at = np.unravel_index(np.argmax(data["values"]), data["values"].shape)
    q = quarters(robot, 0.25)
    here = np.linalg.svd(in_plane(robot, q), compute_uv=False)
    assert tiles["semi-axes at a quarter of all ranges"] == ", ".join(f"{x:.2f}" for x in here)
    for name, k in zip(names, at, strict=True):
        q[robot.joints[name].q] = data[name][k]
        assert tiles[f"{name} there"] == f"{np.degrees(data[name][k]):.4g} °"
    best = np.prod(np.linalg.svd(in_plane(robot, q), compute_uv=False))
    assert data["values"][at] == pytest.approx(best, rel=1e-9)
    assert tiles["largest volume"] == f"{best:.4g}"
    low, high = (f"{np.degrees(x):.4g}°" for x in (data["joint_2"][0], data["joint_2"][-1]))
    assert dict(page.settings)["joint_2"] == f"{low} to {high}"


def test_the_joint_that_disturbs_most_turns_the_base_fastest(tmp_path):
    robot = rm.load("spart17_planar_3")
    tiles, _, data = page_of("coupling", robot, "tool", tmp_path)
    H = rm.mass_matrix(robot, quarters(robot, 0.25))
    turned = np.linalg.norm(np.linalg.solve(H[:6, :6], H[:6, 6:])[:3], axis=0)
    assert np.allclose(data["per_joint"], turned, rtol=1e-9)
    assert tiles["disturbs most"] == robot.joints[1 + int(np.argmax(turned))].name
    assert tiles["largest"] == f"{data['factor'].max():.3f}"
    assert tiles["smallest coupling factor"] == f"{data['factor'].min():.3f}"


class Samples:
    """Samples of a run of a robot, with the number of each in its first speed."""

    def __init__(self, robot, count):
        self.robot, self.t = robot, 0.1 * np.arange(count)
        self.q = np.tile(rm.neutral(robot), (count, 1))
        self.v = np.zeros((count, robot.nv))
        self.v[:, 0] = self.q[:, 4] = np.arange(count)

    def __len__(self):
        return len(self.t)


@pytest.mark.parametrize("count", [5, 1201])
def test_paths_are_thinned_samples_of_a_run_or_half_the_ranges(count, monkeypatch):
    robot = rm.load("servicer")
    run = Samples(robot, count)
    monkeypatch.setattr(path_analyses, "open_run", lambda folder: run)
    expected = np.arange(5) if count == 5 else np.linspace(0, 1200, 400).astype(int)
    q, t, told = path_analyses._path(robot, "tool", "RUN")
    assert (q[:, 4].tolist(), t.tolist(), told) == (
        expected.tolist(), (0.1 * expected).tolist(), "run RUN",
    )  # fmt: skip
    q, v, t, told = path_analyses._motion(robot, "tool", "RUN")
    assert q[:, 4].tolist() == v[:, 0].tolist() == expected.tolist()
    assert t.tolist() == (0.1 * expected).tolist()
    other = rm.load("vt18_satellite")
    for path in (path_analyses._path, path_analyses._motion):
        with pytest.raises(rm.RemoraError, match="was made with other joints"):
            path(other, other.bodies[-1].name, "RUN")
    q, t, _ = path_analyses._path(robot, "tool", None)
    assert t is None
    joint = robot.joints["elbow_pitch"]
    low, high = float(joint.limits.lower[0]), float(joint.limits.upper[0])
    ends = low + np.array([0.25, 0.75]) * (high - low)
    assert q[[0, -1], joint.q.start] == pytest.approx(ends)


def test_the_page_of_a_payload_tells_mass_centre_and_intervals(monkeypatch, tmp_path):
    robot = rm.load("servicer")
    run = Samples(robot, 7)
    parameters = np.arange(1.0, 11.0)
    half = 0.01 * np.arange(1.0, 11.0)
    found = SimpleNamespace(
        parameters=parameters, intervals=np.stack([parameters - half, parameters + half], axis=-1),
        mass=12.25, com=np.array([0.0101, -0.2, 0.3004]), samples=1234, residual=0.0123,
        confidence=0.95, consistent=False, covariance=np.eye(10),
    )  # fmt: skip
    monkeypatch.setattr(path_analyses, "open_run", lambda folder: run)
    monkeypatch.setattr(path_analyses, "identify_payload", lambda *args, **more: found)
    tiles, page, data = page_of("payload", robot, "tool", tmp_path, run="RUN")
    assert tiles == {
        "mass, ± 0.01 kg": "12.25 kg",
        "centre of mass, mm": "10, -200, 300", "samples": "1,234", "relative residual": "0.012",
    }  # fmt: skip
    rows = dict(page.settings)
    assert rows["mass, kg"] == "1 ± 0.01"
    assert rows["Izz, kg m²"] == "10 ± 0.1"
    assert page.figures[0][2].startswith("95 % intervals")
    assert "belong to no body" in page.notices[0]
    assert np.array_equal(data["parameters"], parameters)
    with pytest.raises(rm.errors.InvalidValue, match="needs a recorded manoeuvre"):
        page_of("payload", robot, "tool", tmp_path)
    with pytest.raises(rm.RemoraError, match="was made with other joints"):
        page_of("payload", rm.load("vt18_satellite"), "body_1", tmp_path, run="RUN")


def test_errors_of_the_command_line_are_numbers():
    assert deviations(["mass=0.01", "arm.com=2e-3"]) == {"mass": 0.01, "arm.com": 0.002}
    assert deviations([]) == {}
    with pytest.raises(rm.errors.InvalidValue, match="must be NAME=VALUE"):
        deviations(["mass"])


def test_wheels_are_the_free_ones_on_the_base_and_need_a_limit():
    robot = rm.load("servicer_wheels")
    names = path_analyses.wheel_joints(robot, "tool")
    assert names == ["wheel_x", "wheel_y", "wheel_z"]
    free = robot.replace_joint("wheel_y", limits=replace(robot.joints["wheel_y"].limits,
                                                         velocity=[np.inf]))  # fmt: skip
    with pytest.raises(rm.errors.InvalidValue, match=r"^wheel_y has no limit"):
        path_analyses._capacity(free, names, None)
    assert path_analyses._capacity(free, names, 2.5).tolist() == [2.5] * 3
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(rm.errors.InvalidValue, match="must be positive"):
            path_analyses._capacity(robot, names, bad)


@pytest.mark.parametrize("terminal", [True, False])
def test_blanks_at_the_ends_of_lines_are_left_out_unless_on_a_terminal(terminal, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr("sys.stdout", stream)
    with trimmed_output():
        print("a  \nb \t", end="")
        print(" c ")
    assert stream.getvalue() == ("a  \nb \t c \n" if terminal else "a\nb \t c\n")
