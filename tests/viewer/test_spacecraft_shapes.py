"""What links without geometry look like: names and inertias decide, and nothing is invented."""

from pathlib import Path

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.viewer.scene.bus_shapes import bus_size
from remora.viewer.scene.ghost import ghost_bodies
from remora.viewer.scene.link_roles import ROLES, inertia_box, is_flat, named_role, role_of
from remora.viewer.scene.scene import end_effectors
from remora.viewer.scene.shapes import generated_note, shapes
from remora.viewer.scene.surfaces import surface

INSPECTOR = Path(__file__).parents[2] / "examples" / "inspector.urdf"


@pytest.fixture(scope="module")
def inspector():
    return rm.load(INSPECTOR)


def of(robot, name):
    return [s for s in shapes(robot) if s.body == robot.body_index(name)]


def box(mass, x, y, z):
    return mass / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])


def test_roles_of_the_inspector(inspector):
    roles = {body.name: role_of(inspector, i) for i, body in enumerate(inspector.bodies)}
    assert roles["bus"] == "bus"
    assert roles["panel_left"] == roles["panel_right"] == "panel"
    assert roles["wheel"] == "wheel"
    assert roles["gripper"] == "tool"
    assert {roles[n] for n in ("turret", "upper_arm", "forearm", "wrist_1", "wrist_2")} == {"boom"}
    assert set(roles.values()) <= set(ROLES)
    assert end_effectors(inspector) == ["tool"]


def test_the_bus_is_its_inertia_box_up_to_its_mounts(inspector):
    size, centre = bus_size(inspector, 0)
    assert np.allclose(size, (1.3, 1.3, 1.6), atol=1e-5)
    assert np.allclose(centre, 0, atol=1e-5)
    points = np.concatenate([surface(s).points for s in of(inspector, "bus") if s.kind == "box"])
    assert points[:, 2].max() == pytest.approx(0.8, abs=0.03)  # the arm stands on it


def test_a_bus_without_inertia_is_a_cube_about_its_centre_of_mass_up_to_its_mount():
    robot = (
        rm.Builder()
        .body("bus", 8.0, com=(0.3, 0.0, 0.0))
        .body("link", 1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        .joint("mount", "revolute", "bus", "link", xyz=(0.8, 0.1, 0.0))
        .build(dynamics=False)
    )
    size, centre = bus_size(robot, 0)
    assert (*size, *centre) == pytest.approx((1.0, 1.0, 1.0, 0.3, 0.0, 0.0))


@pytest.mark.parametrize("seed", range(10))
def test_no_bus_is_smaller_than_its_inertia(seed):
    robot = rm.random_robot(seed, bodies=8, base="free")
    size, _ = bus_size(robot, 0)
    body = robot.bodies[0]
    moments = np.diagonal(body.inertia)
    lengths = np.sqrt(np.maximum(6 * (moments.sum() - 2 * moments) / body.mass, 0))
    assert np.all(np.array(size) >= lengths - 1e-9)


def test_panels_are_the_plates_of_their_inertia_and_no_wings_are_added(inspector):
    cells = [s for s in shapes(inspector) if s.kind == "cells"]
    left, right = (inspector.body_index(n) for n in ("panel_left", "panel_right"))
    assert {s.body for s in cells} == {left, right}
    points = np.concatenate([surface(s).points for s in cells if s.body == left])
    assert np.allclose(np.ptp(points, axis=0)[:2], (1.1, 2.8), atol=0.1)
    assert np.allclose((points.max(axis=0) + points.min(axis=0)) / 2, (0, 1.9, 0), atol=1e-6)


def test_wings_are_added_only_to_a_spacecraft_without_any():
    def made(name, inertia):
        builder = rm.Builder().body("bus", mass=100, inertia=(20, 20, 20))
        builder.body(name, mass=5, com=(0, 0, 0.5), inertia=inertia)
        return builder.joint("j", "revolute", "bus", name, xyz=(0, 0, 0.6)).build()

    rod, plate = (0.4, 0.4, 0.01), box(5, 0.8, 0.01, 1.0)
    assert {s.body for s in shapes(made("mast", rod)) if s.kind == "cells"} == {0}
    assert {s.body for s in shapes(made("mast", plate)) if s.kind == "cells"} == {1}
    assert {s.body for s in shapes(made("solar_array", rod)) if s.kind == "cells"} == {1}


def test_panels_merged_into_the_bus_are_drawn_where_they_are():
    robot = rm.load("servicer")
    for body in robot.bodies:
        robot = robot.replace_body(body.name, geometry=())
    cells = [s for s in shapes(robot) if s.kind == "cells"]
    assert len(cells) == 4
    assert all(abs(pose.translation(s.placement)[1]) > 0.6 for s in cells)
    assert all(abs(pose.translation(s.placement)[0]) < 1e-9 for s in cells)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("panel_left", "panel"), ("SolarArray2", "panel"), ("wing", "panel"), ("rw1", "wheel"),
        ("reaction_wheel", "wheel"), ("antenna", "antenna"), ("gripper", "tool"),
        ("tool0", "tool"), ("thruster_3", "thruster"), ("forearm", None), ("swinger", None),
        ("<b>panel</b>", "panel"), ("", None),
    ],
)  # fmt: skip
def test_names_tell_roles(name, role):
    assert named_role(name) == role


@pytest.mark.parametrize("name", ["antenna", "thruster", "rw", "panel", "tool"])
@pytest.mark.parametrize("mass", [0.0, 4.0])
def test_every_role_is_drawn_by_finite_shapes_with_or_without_mass(name, mass):
    builder = rm.Builder().body("bus", mass=50, inertia=(9, 9, 9))
    inertia = None if mass == 0.0 else box(mass, 0.3, 0.2, 0.25)
    options = {} if inertia is None else {"mass": mass, "com": (0, 0, 0.2), "inertia": inertia}
    builder.body(name, **options).joint("j", "revolute", "bus", name, xyz=(0.5, 0, 0))
    robot = builder.build(dynamics=mass > 0.0)
    drawn = of(robot, name)
    assert drawn
    assert all(s.generated and min(s.size) > 0 for s in drawn)
    assert all(np.all(np.isfinite(surface(s).points)) for s in drawn)


def test_inertia_box_inverts_the_inertia_of_a_box():
    robot = rm.Builder().body("a", mass=7, inertia=box(7, 0.4, 2.0, 0.02)).build()
    found = inertia_box(robot.bodies[0])
    assert np.allclose(found.size, (2.0, 0.4, 0.02))
    assert np.allclose(np.abs(found.axes[:, 0]), (0, 1, 0))
    assert np.linalg.det(found.axes) == pytest.approx(1.0)
    assert is_flat(robot.bodies[0])


def test_generated_shapes_are_said_to_be_generated(inspector):
    assert generated_note(inspector, shapes(inspector)).startswith("10 of 10 bodies")
    servicer = rm.load("servicer")
    assert generated_note(servicer, shapes(servicer)) is None
    assert not any(s.generated for s in shapes(servicer))


def test_they_can_be_switched_off(inspector):
    with rm.view(inspector, port=0, open=False) as page:
        page.show("generated shapes", visible=False)
        assert not any(node.visible for node in page.scene.nodes)
        page.show("generated shapes")
        assert all(node.visible for node in page.scene.nodes)


def test_the_ghost_is_base_and_panels(inspector):
    names = {inspector.bodies[i].name for i in ghost_bodies(inspector)}
    assert names == {"bus", "panel_left", "panel_right"}
    assert ghost_bodies(rm.load("servicer", base="fixed")) == []
