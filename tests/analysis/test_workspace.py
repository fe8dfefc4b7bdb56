"""Workspaces against closed formulas, independent brute force, and interrupted computations."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.analysis import sampling
from remora.analysis import workspace as module
from remora.analysis.cells import Grid, eroded, measure_of

TURN = (-np.pi, np.pi)


def planar_arm(*lengths, limits=None):
    """An arm of links of these lengths in the x-y plane, on a fixed base at the origin."""
    build = rm.Builder("planar")
    build.body("base", mass=1.0, inertia=np.eye(3))
    build.joint("mount", "fixed", None, "base")
    parent, at = "base", 0.0
    for i, length in enumerate(lengths):
        name = f"link_{i + 1}"
        build.body(name, mass=1.0, com=[length / 2, 0, 0], inertia=np.eye(3))
        more = {} if limits is None else {"lower": limits[i][0], "upper": limits[i][1]}
        build.joint(
            f"joint_{i + 1}", "revolute", parent, name, xyz=[at, 0, 0], axis=[0, 0, 1], **more
        )
        parent, at = name, length
    build.frame("tool", parent, xyz=[lengths[-1], 0, 0])
    return build.build(base="fixed")


@pytest.mark.parametrize("lengths", [(0.5, 0.5), (0.7, 0.3)])
def test_two_links_reach_an_annulus(lengths):
    robot = planar_arm(*lengths)
    found = rm.workspace(robot, "tool", plane="xy", samples=4_000_000, cells=400)
    a, b = lengths
    area = np.pi * ((a + b) ** 2 - (a - b) ** 2)
    assert abs(found.volume / area - 1.0) < 1e-3
    assert found.coverage > 0.98
    assert all(r.default for r in found.ranges)  # no limits: once around


def test_limits_against_brute_force():
    """Every cell against inverse kinematics of a fine grid of points, elbow up and down."""
    limits = [(-1.0, 0.8), (-2.0, 1.2)]
    a, b = 0.6, 0.4
    robot = planar_arm(a, b, limits=limits)
    found = rm.workspace(robot, "tool", plane="xy", samples=6_000_000, cells=500)
    h, fine = found.grid.spacing, 4
    n = np.array(found.grid.shape) * fine
    x, y = (found.grid.origin[k] + h / fine * (np.arange(n[k]) + 0.5) for k in (0, 1))
    X, Y = np.meshgrid(x, y, indexing="ij")
    cosine = (X**2 + Y**2 - a**2 - b**2) / (2 * a * b)
    inside = np.zeros(X.shape, dtype=bool)
    for sign in (1.0, -1.0):
        elbow = sign * np.arccos(np.clip(cosine, -1.0, 1.0))
        shoulder = np.arctan2(Y, X) - np.arctan2(b * np.sin(elbow), a + b * np.cos(elbow))
        shoulder = (shoulder + np.pi) % (2 * np.pi) - np.pi
        fits = (np.abs(cosine) <= 1.0) & (elbow >= limits[1][0]) & (elbow <= limits[1][1])
        inside |= fits & (shoulder >= limits[0][0]) & (shoulder <= limits[0][1])
    assert abs(found.volume / (inside.sum() * (h / fine) ** 2) - 1.0) < 1e-3
    share = inside.reshape(found.grid.shape[0], fine, found.grid.shape[1], fine).mean(axis=(1, 3))
    assert found.mask[share == 1.0].all()
    near = ~eroded(share == 0.0)  # cells next to those with a point inside
    assert near[found.mask].all()


def test_cells_keep_the_best_manipulability():
    robot = planar_arm(0.5, 0.5)
    found = rm.workspace(robot, "tool", plane="xy", samples=1_000_000, cells=50)
    x, y = np.meshgrid(*(found.grid.centers(k) for k in (0, 1)), indexing="ij")
    radius = np.hypot(x, y)
    inner = found.mask & (radius > 0.2) & (radius < 0.8)
    elbow = np.arccos(np.clip((radius**2 - 0.5) / 0.5, -1.0, 1.0))
    expected = 0.25 * np.sin(elbow)
    assert np.abs(found.best - expected)[inner].max() < 0.02
    assert np.isnan(found.best[~found.mask]).all()
    least = rm.workspace(
        robot, "tool", plane="xy", samples=1_000_000, cells=50, measure="condition"
    )
    assert np.nanmin(least.best) >= 1.0


def test_three_links_are_dexterous_in_a_disk():
    robot = planar_arm(0.5, 0.5, 0.3)
    found = rm.workspace(
        robot, "tool", "dexterous", "xy", samples=4_000_000, cells=100, orientations=24
    )
    assert abs(found.volume / (np.pi * 0.7**2) - 1.0) < 0.02
    outer = found.counts > 0
    assert abs(measure_of(outer, found.grid.spacing) / (np.pi * 1.3**2) - 1.0) < 5e-3


@pytest.mark.parametrize(("samples", "cells"), [(200_000, 60), (400_000, 100), (1_000_000, 100)])
def test_the_coverage_of_a_dexterous_workspace_counts_its_orientations(samples, cells):
    """The true region is a ring: its area tells what is missing."""
    robot = planar_arm(1.0, 0.7, 0.3)
    found = rm.workspace(
        robot, "tool", "dexterous", "xy", samples=samples, cells=cells, orientations=24
    )
    share = found.volume / (np.pi * (1.4**2 - 0.6**2))
    assert share < 0.9
    assert abs(found.coverage - share) < 0.03
    assert found.coverage < rm.workspace(robot, "tool", plane="xy", samples=samples).coverage
    more = rm.workspace(robot, "tool", "dexterous", "xy", samples=4_000_000, cells=50)
    assert more.coverage > 0.95


def spherical_arm(reach):
    build = rm.Builder("ball")
    build.body("base", mass=1.0, inertia=np.eye(3))
    build.joint("mount", "fixed", None, "base")
    build.body("arm", mass=1.0, inertia=np.eye(3))
    build.joint("ball", "spherical", "base", "arm", xyz=[0.1, 0, 0])
    build.body("slider", mass=1.0, inertia=np.eye(3))
    build.joint("slide", "prismatic", "arm", "slider", axis=[1, 0, 0])
    build.frame("tool", "slider")
    return build.build(base="fixed")


def test_a_ball_and_a_slider_reach_a_shell():
    robot = spherical_arm(1.0)
    with pytest.raises(rm.errors.InvalidValue, match="'slide' slides without limits"):
        rm.workspace(robot, "tool")
    found = rm.workspace(robot, "tool", ranges={"slide": (0.5, 1.0)}, samples=1_500_000, cells=60)
    volume = 4.0 / 3.0 * np.pi * (1.0 - 0.125)
    assert -0.05 < found.volume / volume - 1.0 < 0.01  # corners of cells are missed in space
    vertices, faces, values = found.surface()
    radius = np.linalg.norm(vertices - [0.1, 0.0, 0.0], axis=-1)
    assert np.minimum(abs(radius - 1.0), abs(radius - 0.5)).max() < 2.5 * found.grid.spacing
    assert faces.max() < len(vertices)
    assert values.shape == (len(vertices),)
    cut = found.slice(z=0.0)
    assert cut.axes == ("x", "y")
    assert abs(cut.volume / (np.pi * 0.75) - 1.0) < 0.03
    with pytest.raises(rm.errors.InvalidValue, match="outside the grid"):
        found.slice(z=5.0)


def test_a_slice_holds_the_cells_of_one_plane():
    ranges = {"slide": (0.5, 1.0)}
    found = rm.workspace(spherical_arm(1.0), "tool", ranges=ranges, samples=20_000, cells=9)
    for axis, name in enumerate("xyz"):
        low, high = found.grid.extent()[axis]
        for k in (0, 3, found.grid.shape[axis] - 1):
            cut = found.slice(**{name: low + (k + 0.7) * found.grid.spacing})
            assert cut.axes == tuple(a for a in "xyz" if a != name)
            assert cut.grid.origin == tuple(np.delete(found.grid.origin, axis))
            assert cut.grid.shape == tuple(np.delete(found.grid.shape, axis))
            assert np.array_equal(cut.counts, np.take(found.counts, k, axis))
            assert np.array_equal(cut.best, np.take(found.best, k, axis), equal_nan=True)
        assert np.array_equal(found.slice(**{name: high}).mask, cut.mask)
        with pytest.raises(rm.errors.InvalidValue, match=f"{name} = .* m is outside the grid"):
            found.slice(**{name: low - 0.01})
    for wrong in ({}, {"x": 0.0, "y": 0.0}, {"w": 0.0}):
        with pytest.raises(rm.errors.InvalidValue, match="name one of the three axes"):
            found.slice(**wrong)
    with pytest.raises(rm.errors.InvalidValue, match="name one of the three axes"):
        cut.slice(x=0.0)


def test_the_sphere_about_an_arm_counts_slides_followers_and_screws():
    build = rm.Builder("slides").body("base", mass=1.0, inertia=np.eye(3))
    for name in ("one", "two", "three"):
        build.body(name, mass=1.0, inertia=np.eye(3))
    robot = (
        build.joint("rail", "prismatic", "base", "one", xyz=(0, 0, 5), lower=-0.7, upper=0.5)
        .joint("copy", "prismatic", "one", "two", xyz=(0.3, 0, 0), mimic=("rail", -2.0, 0.1))
        .joint("screw", "helical", "two", "three", xyz=(0, 0.2, 0), pitch=-0.05, lower=-3, upper=1)
        .frame("tool", "three", xyz=(0, 0, 0.4))
        .build(base="fixed")
    )
    ranges = sampling.joint_ranges(robot, "tool")
    centre, radius = module._sphere(robot, "tool", ranges, rm.neutral(robot), (0, 2))
    assert centre.tolist() == [0.0, 5.0]
    links = 0.3 + 0.2 + 0.4
    assert radius == pytest.approx(links + 0.7 + (2.0 * 0.7 + 0.1) + 0.05 * 3.0)
    q = np.array([-0.2, 1.5])  # of joints that are not sampled
    _, held = module._sphere(robot, "tool", (), q, (0, 1, 2))
    assert held == pytest.approx(links + 0.2 + (2.0 * 0.2 + 0.1) + 0.05 * 1.5)


def test_the_vehicle_and_other_joints_are_where_q_puts_them():
    robot = rm.load("spart17_planar")
    q = rm.integrate(robot, rm.neutral(robot), np.array([0, 0, 0.5, 1.0, 2.0, 0, 0, 0.0]))
    found = rm.workspace(robot, "tool", plane="xy", q=q, samples=100_000, cells=50)
    points = rm.algebra.pose.translation(rm.frame_pose(robot, _with_joints(robot, q, 200), "tool"))
    at = found.grid.cells_of(points[:, :2])
    assert found.mask.reshape(-1)[at].all()


def _with_joints(robot, q, n):
    states = np.tile(q, (n, 1))
    rng = np.random.default_rng(0)
    states[:, 8], states[:, 9] = rng.uniform(-1.4, 1.4, n), rng.uniform(-1.9, 1.9, n)
    return states


def test_an_interrupted_computation_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 1000)
    robot = planar_arm(0.5, 0.5, 0.3)
    options = {"plane": "xy", "samples": 10_000, "cells": 40}
    whole = rm.workspace(robot, "tool", "dexterous", orientations=2, **options)
    file = tmp_path / "kept.npz"

    def interrupt(done, total):
        if done >= 4000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rm.workspace(
            robot, "tool", "dexterous", orientations=2, checkpoint=file, progress=interrupt,
            **options,
        )  # fmt: skip
    assert file.exists()
    with pytest.raises(rm.RemoraError, match="another computation"):
        rm.workspace(robot, "tool", checkpoint=file, **options)
    seen = []
    again = rm.workspace(
        robot, "tool", "dexterous", orientations=2, checkpoint=file,
        progress=lambda done, total: seen.append(done), **options,
    )  # fmt: skip
    assert seen[0] == 5000
    assert not file.exists()
    assert np.array_equal(again.counts, whole.counts)
    assert np.array_equal(again.best, whole.best, equal_nan=True)
    assert np.array_equal(again.dexterity, whole.dexterity)
    file.write_bytes(b"no numbers")
    with pytest.raises(rm.RemoraError, match="damaged"):
        rm.workspace(robot, "tool", "dexterous", orientations=2, checkpoint=file, **options)


def test_area_of_a_polygon_of_cells_is_of_second_order():
    def disk(n):
        centers = (np.arange(n) + 0.5) / n * 2.2 - 1.1
        edge = np.abs(centers) - 1.1 / n  # nearest corner of each cell
        return measure_of(np.hypot(edge[:, None], edge) <= 1.0, 2.2 / n)

    assert abs(disk(100) / np.pi - 1.0) < 2e-3
    assert abs(disk(800) / np.pi - 1.0) < 1e-4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"frame": "base"}, "no joint of the arm"),
        ({"cells": 0}, "the grid is empty"),
        ({"samples": 0}, "samples=0"),
        ({"plane": "zx"}, "xy, xz, yz"),
        ({"kind": "big"}, "reachable, dexterous"),
        ({"measure": "size"}, "volume"),
        ({"target": "tpu"}, "cuda"),
        ({"ranges": {"joint_9": (0, 1)}}, "joint_1"),
        ({"ranges": {"joint_1": (1, 0)}}, "is empty"),
        ({"joints": []}, "joints is empty"),
        ({"kind": "dexterous", "samples": 5}, "workspace of 'tool' is empty"),
    ],
)
def test_refusals_name_what_is_wrong(options, words):
    given = {"frame": "tool", "plane": "xy", "samples": 10, "cells": 10, **options}
    with pytest.raises(rm.RemoraError, match=words):
        rm.workspace(planar_arm(0.5, 0.5), **given)


def test_grids_place_points():
    grid = Grid((0.0, -1.0), 0.5, (4, 6))
    assert_close(grid.centers(1), [-0.75, -0.25, 0.25, 0.75, 1.25, 1.75])
    assert grid.cells_of(np.array([[0.6, -0.9], [1.99, 1.99]])).tolist() == [6, 23]


def test_limits_of_a_follower_hold_for_its_leader():
    build = rm.Builder("pair").body("base", 1.0, inertia=np.eye(3))
    build.joint("mount", "fixed", None, "base")
    for i, (name, parent) in enumerate((("a", "base"), ("b", "a"))):
        build.body(name, 1.0, inertia=np.eye(3))
        build.joint(
            f"j{i}", "revolute", parent, name, axis=(0, 0, 1), xyz=(float(i), 0, 0), lower=-1.0,
            upper=1.0, mimic=("j0", -2.0, 0.1) if i else None,
        )  # fmt: skip
    robot = build.frame("tool", "b", xyz=(1.0, 0, 0)).build(base="fixed")
    (own,) = sampling.joint_ranges(robot, "tool")
    assert own.lower == pytest.approx((-0.45,))  # -2 q + 0.1 in [-1, 1]
    assert own.upper == pytest.approx((0.55,))
