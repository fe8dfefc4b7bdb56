"""Marks of constraints: where they are drawn, and which constraints have one."""

from types import SimpleNamespace

import numpy as np

import remora as rm
from remora.algebra import pose, quaternion
from remora.viewer.scene.constraint_marks import add_marks, marked_at


class Drawn:
    """What a viser scene is told."""

    def __init__(self):
        self.nodes = []

    def add_box(self, name, color, dimensions):
        self.nodes.append((name, "box", dimensions))
        return SimpleNamespace()

    def add_icosphere(self, name, radius, color):
        self.nodes.append((name, "ball", radius))
        return SimpleNamespace()


def robot_with_constraints():
    b = rm.Builder("r").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0))
    for name in ("left", "right"):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "revolute", "bus", name, xyz=(0.0, 0.5 if name == "left" else -0.5, 0.0))
    b.rod("rod", "left", "right", 1.2, parent_xyz=(1, 0, 0), child_xyz=(1, 0, 0.2))
    b.constraint("pin", "revolute", None, "left", child_xyz=(0.5, 0, 0))
    b.constraint("off", "fixed", "left", "right", active=False)
    return b.gear("gear", "left", "right").build()


def test_active_constraints_between_bodies_have_a_mark():
    scene = Drawn()
    marks = add_marks(SimpleNamespace(scene=scene), robot_with_constraints(), "/world", 2.0)
    assert [mark.constraint.name for mark in marks] == ["rod", "pin"]
    assert [kind for _, kind, _ in scene.nodes] == ["box", "ball"]
    assert scene.nodes[0][2][2] == 1.2
    assert len({name for name, _, _ in scene.nodes}) == 2


def test_a_bar_lies_along_its_rod_and_a_ball_at_its_joint():
    robot = robot_with_constraints()
    rod, pin = robot.constraints["rod"], robot.constraints["pin"]
    for seed in range(5):
        q, _ = rm.random_state(robot, seed)
        x = rm.poses(robot, q)
        a = pose.transform_point(x[1], np.array([1.0, 0.0, 0.0]))
        b = pose.transform_point(x[2], np.array([1.0, 0.0, 0.2]))
        r, p = marked_at(rod, x)
        np.testing.assert_allclose(p, 0.5 * (a + b), atol=1e-12)
        along = quaternion.rotate(r, np.array([0.0, 0.0, 1.0]))
        np.testing.assert_allclose(along, (b - a) / np.linalg.norm(b - a), atol=1e-12)
        _, p = marked_at(pin, x)
        expected = pose.transform_point(x[1], np.array([0.5, 0.0, 0.0]))
        np.testing.assert_allclose(p, expected, atol=1e-12)


def test_bars_along_the_z_axis_are_not_tilted():
    robot = robot_with_constraints()
    rod = robot.constraints["rod"]
    for z in (1.0, -1.0, 0.0):
        x = np.stack([pose.from_translation(np.array([0.0, 0.0, h])) for h in (0.0, 0.0, z - 0.2)])
        assert np.array_equal(marked_at(rod, x)[0], [1.0, 0.0, 0.0, 0.0])
