"""The robots that come with Remora: what they are, and that they survive saving."""

from pathlib import Path

import numpy as np
import pytest

import remora.model
from remora.algebra import pose
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.kinematics import poses
from remora.model.formats.bundled import bundled
from remora.model.formats.load import load
from remora.model.formats.yaml.yaml import read_yaml, save_robot
from remora.model.state import neutral, random_state
from remora.model.topology import incidence_matrix, leaves

NAMES = [
    "defunct_satellite", "servicer", "servicer_wheels", "spart17_planar", "spart17_planar_3",
    "vt18_satellite", "vt18_two_arm", "wheeled_bus",
]  # fmt: skip


def frame_position(robot, q, name):
    frame = robot.frame(name)
    return pose.translation(pose.compose(poses(robot, q)[frame.body], frame.placement))


def test_these_are_bundled():
    assert sorted(bundled("robots")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_bundled_robots_load_by_name_without_warnings(name):
    robot = load(name)
    assert robot.name == name
    assert robot.warnings == ()
    assert robot.joints[0].kind == "free"
    assert robot.gravity.tolist() == [0.0, 0.0, 0.0]
    for body in robot.bodies:
        a, b, c = np.linalg.eigvalsh(body.inertia)
        assert body.mass > 0.0
        assert 0.0 < a <= c <= a + b
        assert body.geometry


@pytest.mark.parametrize("name", NAMES)
def test_bundled_robots_survive_saving(tmp_path, name):
    robot = load(name)
    save_robot(robot, tmp_path / "robot.yaml")
    again = load(tmp_path / "robot.yaml")
    assert (again.name, again.bodies.names, again.joints.names) == (
        robot.name,
        robot.bodies.names,
        robot.joints.names,
    )
    assert again.frames.names == robot.frames.names
    for one, two in zip(robot.bodies, again.bodies, strict=True):
        assert one.inertia.tobytes() == two.inertia.tobytes()
        assert len(one.geometry) == len(two.geometry)
    assert poses(robot, neutral(robot)).tobytes() == poses(again, neutral(again)).tobytes()


def test_the_servicer_with_wheels_at_rest_is_the_servicer():
    plain, wheeled = load("servicer"), load("servicer_wheels")
    q = random_state(plain, 1)[0]
    own = np.concatenate([q[:8], [0.3, -1.0, 2.0], q[8:]])
    H, H_wheels = mass_matrix(plain, q), mass_matrix(wheeled, own)
    others = [*range(6), *range(9, 16)]  # without the wheels
    np.testing.assert_allclose(H_wheels[np.ix_(others, others)], H, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.diag(H_wheels)[6:9], 0.0675, rtol=1e-12)
    # each wheel turns about its own axis of the bus, through its centre of mass
    np.testing.assert_allclose(H_wheels[6:9, :3], 0.0675 * np.eye(3), atol=1e-15)
    np.testing.assert_allclose(H_wheels[6:9, 3:6], 0.0, atol=1e-15)


def test_the_panels_of_the_defunct_satellite_swing():
    robot = load("defunct_satellite")
    assert float(robot.mass) == 164.0
    for side in ("left", "right"):
        joint = robot.joints[f"hinge_{side}"]
        body = robot.bodies[f"panel_{side}"]
        about = float(body.inertia[0, 0] + body.mass * body.com[1] ** 2)
        omega = np.sqrt(float(joint.stiffness[0]) / about)
        assert omega / (2 * np.pi) == pytest.approx(0.14, abs=0.005)
        assert float(joint.damping[0]) / (2 * omega * about) == pytest.approx(0.04, abs=0.001)


def test_servicer():
    robot = load("servicer")
    assert (robot.nq, robot.nv) == (15, 13)
    assert robot.mass == pytest.approx(470.9)
    assert [j.parent for j in robot.joints] == [-1, 0, 1, 2, 3, 4, 5, 6]
    assert {j.kind for j in robot.joints[1:]} == {"revolute"}
    assert {"tool", "camera", "gripper", "panel_left", "panel_right"} == set(robot.frames.names)
    for joint in robot.joints[1:]:
        limits = joint.limits
        assert -np.pi < limits.lower[0] < 0 < limits.upper[0] < np.pi
        assert np.isfinite(limits.velocity[0])
        assert np.isfinite(limits.effort[0])
        assert joint.damping == 0.0
    # Straight up, the tool is 2.76 m above the mount on the deck.
    tool = frame_position(robot, neutral(robot), "tool")
    np.testing.assert_allclose(tool, [0.45, 0.0, 0.8 + 2.76], atol=1e-12)


def test_the_servicers_links_have_the_inertia_of_their_solids():
    """Bus box, panel box with its yoke, boom tube: recomputed from the shapes drawn."""
    robot = load("servicer", merge_fixed=True)
    m, (r, length) = robot.bodies["upper_arm"].mass, robot.bodies["upper_arm"].geometry[0].size
    squares = r**2 + 0.055**2
    across = m / 12 * (3 * squares + length**2)
    expected = np.diag([across, across, m / 2 * squares])
    np.testing.assert_allclose(robot.bodies["upper_arm"].inertia, expected, rtol=1e-8)
    flange = robot.bodies["flange"]
    assert flange.mass == pytest.approx(2.5 + 2.0 + 0.4)
    assert 0.0 < flange.com[2] < 0.3
    # The bus with its panels is symmetric, and long along y.
    bus = robot.bodies["bus"]
    assert bus.mass == pytest.approx(428.0)
    np.testing.assert_allclose(bus.com, 0.0, atol=1e-12)
    assert bus.inertia[2, 2] - 96.0 > 10 * (bus.inertia[1, 1] - 123.0) > 0.0


def test_vt18_satellite():
    robot = load("vt18_satellite")
    assert (robot.nq, robot.nv) == (11, 9)
    assert [float(b.mass) for b in robot.bodies] == [10.0, 5.0, 5.0, 5.0]
    assert [np.diag(b.inertia).tolist() for b in robot.bodies] == [
        [50.0, 50.0, 50.0],
        [2.0, 2.0, 1.0],
        [1.0, 2.0, 2.0],
        [1.0, 2.0, 2.0],
    ]
    # Equation 36 without the end-effector's row and column.
    C = incidence_matrix(robot)[1:]
    assert C.tolist() == [[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1]]
    assert leaves(robot) == [3]
    q = neutral(robot)
    x = poses(robot, q)
    centres = [pose.transform_point(x[i], b.com) for i, b in enumerate(robot.bodies)]
    expected = [[0, 0, 0], [0, 0, 3.5], [1.5, 0, 5], [4.5, 0, 5]]
    np.testing.assert_allclose(centres, expected, atol=1e-12)
    np.testing.assert_allclose(frame_position(robot, q, "end_effector"), [6, 0, 5], atol=1e-12)
    # J2 lifts the arm in the vertical plane.
    q[robot.joints["J2"].q] = np.pi / 2
    np.testing.assert_allclose(frame_position(robot, q, "end_effector"), [0, 0, 11], atol=1e-12)


def test_vt18_two_arm():
    robot = load("vt18_two_arm")
    assert (robot.nq, robot.nv) == (24, 20)
    assert robot.mass == pytest.approx(560.0)
    assert robot.bodies.names == [f"body_{i}" for i in range(1, 12)]
    assert robot.joints.names == ["base", *(f"J{i}" for i in range(1, 11))]
    assert [j.parent + 1 for j in robot.joints] == [0, 1, 2, 3, 4, 5, 1, 7, 8, 9, 10]
    arm = ["revolute", "revolute", "prismatic", "revolute", "spherical"]
    assert [j.kind for j in robot.joints] == ["free", *arm, *arm]
    assert leaves(robot) == [5, 10]
    q = neutral(robot)
    for name, y in (("end_effector_1", 0.5), ("end_effector_2", -0.5)):
        np.testing.assert_allclose(frame_position(robot, q, name), [3.25, y, 0], atol=1e-12)


def test_the_yaml_files_are_read_the_same_without_merging():
    folder = Path(remora.model.__file__).parents[1] / "robots"
    files = sorted(folder.glob("*.yaml"))
    assert len(files) == 6
    for file in files:
        name = file.stem
        robot = read_yaml(file).build()
        assert len(robot.bodies) == len(load(name).bodies)


@pytest.mark.parametrize("links", [2, 3])
def test_the_planar_robots_have_the_numbers_of_spart17(links):
    """Table 2: homogeneous; the first joint within ±90°, the others within ±115°."""
    robot = load("spart17_planar" if links == 2 else "spart17_planar_3")
    base, *arm = robot.bodies
    assert base.mass == 100.0
    assert base.inertia[2, 2] == pytest.approx(100.0 * (0.75**2 + 0.75**2) / 12)
    assert len(arm) == links
    for body, joint in zip(arm, robot.joints[1:], strict=True):
        assert body.mass == 10.0
        assert list(body.com) == [0.25, 0, 0]
        assert body.inertia[2, 2] == pytest.approx(10.0 * (0.5**2 + 0.05**2) / 12)
        limit = np.radians(90.0 if body is arm[0] else 115.0)
        assert joint.limits.upper[0] == pytest.approx(limit)
        assert joint.limits.lower[0] == pytest.approx(-limit)
