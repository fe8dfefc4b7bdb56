"""Overlays of analysis: the numbers of the library, drawn where the robot is."""

import time

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.viewer.scene import analysis_shapes as shapes

pytest.importorskip("viser")


def arm(base="free"):
    """Return a bus with an arm of two joints and a panel, small enough to compile at once."""
    build = rm.Builder("small").body("bus", mass=20, inertia=(2, 2, 2))
    build.joint("base", base, None, "bus")
    for k, (parent, name) in enumerate((("bus", "upper"), ("upper", "lower"))):
        build.body(name, mass=2, com=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
        build.joint(f"j{k}", "revolute", parent, name, axis=(0, k, 1 - k),
                    xyz=(1.0 if k else 0.3, 0, 0), lower=-2, upper=2)  # fmt: skip
    build.body("solar_panel", mass=1, inertia=(0.1, 0.1, 0.2))
    build.joint("hinge", "revolute", "bus", "solar_panel", axis=(0, 1, 0), xyz=(0, 0.5, 0))
    return build.frame("tool", "lower", xyz=(1.0, 0, 0)).build()


@pytest.fixture(scope="module")
def robot():
    return arm()


@pytest.fixture
def page(robot):
    with rm.view(robot, port=0, open=False) as shown:
        yield shown


def wait_until_prepared(page):
    end = time.monotonic() + 60.0
    while "prepared" in page._analysis.text:
        assert time.monotonic() < end, page._analysis.text
        time.sleep(0.02)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_the_ellipsoid_is_that_of_manipulability(robot, base):
    q, _ = rm.random_state(robot, 4)
    found = shapes.ToolEllipsoid(robot, "tool", base).at(q, rm.poses(robot, q))
    wanted = rm.manipulability(robot, q, "tool", base, joints=["j0", "j1"])
    assert np.allclose(found.semi_axes, wanted.semi_axes, rtol=1e-12, atol=1e-14)
    assert np.allclose(found.center, wanted.center, atol=1e-14)
    # Every point of the surface is J u of a unit vector u, or nearer: |(J J')^(1/2)+ p| = 1.
    away = (shapes.ellipsoid_points(found, 2.0) - found.center) @ found.axes / 2.0
    inside = found.semi_axes > 1e-9
    assert np.all(np.sum((away[:, inside] / found.semi_axes[inside]) ** 2, axis=1) < 1.0 + 1e-9)
    assert np.abs(away).max() == pytest.approx(found.semi_axes[0], rel=0.02)
    assert shapes.ellipsoid_faces().max() < len(away)


def test_coupling_is_that_of_the_library(robot):
    q, _ = rm.random_state(robot, 5)
    found = shapes.joint_coupling(CompiledRobot(robot), q)
    assert list(found) == ["j0", "j1", "hinge"]
    assert np.allclose(list(found.values()), rm.analysis.coupling(robot, q).per_joint, rtol=1e-12)


def test_the_cloud_is_the_boundary_of_the_workspace(robot, monkeypatch):
    monkeypatch.setattr(shapes, "SAMPLES", 20_000)
    cloud = shapes.workspace_cloud(robot, "tool")
    far = np.linalg.norm(cloud.points - [0.3, 0.0, 0.0], axis=1)
    assert far.max() == pytest.approx(2.0, abs=2.0 * cloud.spacing)  # the stretched arm
    assert len(cloud.values) == len(cloud.points)
    assert cloud.volume > 0.0


def test_a_solid_block_is_hollow_inside():
    mask = np.zeros((7, 7, 7), dtype=bool)
    mask[1:6, 1:6, 1:6] = True
    shell = shapes.boundary(mask)
    assert shell.sum() == 5**3 - 3**3
    assert shapes.boundary(np.ones((3, 3, 3), dtype=bool)).sum() == 26  # also at the edge


def test_colours_go_from_the_first_to_the_last():
    colors = shapes.ramp(np.array([0.0, 1.0, 2.0, np.nan, 9.0]), 0.0, 2.0)
    assert colors[0].tolist() == colors[3].tolist() == [68, 1, 84]
    assert colors[1].tolist() == [33, 145, 140]
    assert colors[2].tolist() == colors[4].tolist() == [253, 231, 37]
    assert shapes.ramp(np.zeros(2), 0.0, 0.0).shape == (2, 3)  # all alike


def test_overlays_follow_the_sliders(page, robot):
    page.show("ellipsoid", "coupling")
    wait_until_prepared(page)
    page.move(j0=0.4, j1=-0.9)
    ellipsoid, marks = page._analysis._nodes["ellipsoid"], page._analysis._marks
    tip = rm.frame_pose(robot, page.q, "tool")
    middle = ellipsoid.vertices.min(axis=0) + np.ptp(ellipsoid.vertices, axis=0) / 2
    assert np.allclose(middle, pose.translation(tip), atol=1e-5)
    sizes = rm.manipulability(robot, page.q, "tool", "floating", joints=["j0", "j1"]).semi_axes
    assert ", ".join(f"{s:.3f}" for s in sizes) in page._analysis.text
    per_joint = dict(
        zip(["j0", "j1", "hinge"], rm.analysis.coupling(robot, page.q).per_joint, strict=True)
    )
    for name, (ball, label) in marks.items():
        assert label.text == f"{per_joint[name]:.3f}"
        at = pose.translation(page.poses(page.q)[robot.joint_index(name)])
        assert np.allclose(ball.position, at)
        assert ball.radius == pytest.approx(0.024 * page._analysis._radius)
    values = np.array([per_joint[name] for name in marks])
    colors = shapes.ramp(values, 0.0, values.max(), shapes.WEAK_TO_STRONG)
    assert [ball.color for ball, _ in marks.values()] == [tuple(map(int, c)) for c in colors]
    page.base = "held"
    page.redraw()
    wait_until_prepared(page)
    assert "base held" in page._analysis.text
    page.show("ellipsoid", "coupling", visible=False)
    page.redraw()
    assert page._analysis.text == ""
    assert not ellipsoid.visible
    assert not any(node.visible for pair in marks.values() for node in pair)


def test_the_workspace_moves_with_the_vehicle(page, monkeypatch):
    monkeypatch.setattr(shapes, "SAMPLES", 20_000)
    page.show("workspace")
    wait_until_prepared(page)
    page.move(j0=1.0)
    cloud = page._analysis._nodes["workspace"]
    assert np.allclose(cloud.position, pose.translation(page.q[:8]))
    assert np.allclose(np.abs(cloud.wxyz @ page.q[:4]), 1.0)
    assert "m³ in cells" in page._analysis.text


def test_only_what_applies_is_offered():
    with rm.view(arm("fixed"), port=0, open=False) as page:
        assert {"ellipsoid", "workspace"} <= set(page.toggles)
        assert "coupling" not in page.toggles
    one = rm.Builder("one").body("bus", mass=1, inertia=(1, 1, 1)).joint("b", "free", None, "bus")
    with rm.view(one.build(), port=0, open=False) as page:
        assert not {"ellipsoid", "workspace", "coupling"} & set(page.toggles)


def test_a_run_page_has_them_too(robot):
    q = rm.neutral(robot)
    run = rm.simulate(robot, q, np.zeros(robot.nv), 1.0, torque={"j0": 0.2}, record=0.1)
    with rm.view(run, port=0, open=False, scene="studio") as page:
        page.show("ellipsoid", "coupling")
        wait_until_prepared(page)
        page.time = 0.7
        here = rm.manipulability(robot, page.q, "tool", "floating", joints=["j0", "j1"])
        assert f"{here.semi_axes[0]:.3f}" in page._analysis.text


def test_nothing_is_shown_while_constraints_act(page, robot):
    tied = replace_with_rod(robot)
    page.show("ellipsoid")
    wait_until_prepared(page)
    page._analysis.draw(tied, page.q, page.poses(page.q), "floating")
    assert page._analysis.text == "**ellipsoid**: not while constraints act"
    assert not page._analysis._nodes["ellipsoid"].visible


def replace_with_rod(robot):
    build = rm.Builder("tied").body("a", mass=1, inertia=(1, 1, 1)).joint("b", "free", None, "a")
    build.body("c", mass=1, inertia=(1, 1, 1)).joint("d", "revolute", "a", "c", xyz=(1, 0, 0))
    return build.constraint("rod", "fixed", "a", "c").build()
