"""Parts of the analyses: errors of robots, subspaces, integrals over samples, moved frames."""

from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.analysis import arm, base_coupling, pseudo_inertia, straight_path, subspaces
from remora.analysis.free_floating_workspace import FloatingWorkspace
from remora.analysis.robot_errors import deviated, robot_errors


def test_errors_change_masses_by_parts_and_places_by_lengths():
    robot = rm.load("spart17_planar")
    frame = robot.frame("tool")
    link, joint = robot.bodies[1], robot.joints[1]
    errors = robot_errors(
        robot,
        {f"{link.name}.{k}": 0.1 for k in ("mass", "inertia", "com")}
        | {f"{joint.name}.length": 0.1, "tool.length": 0.1},
        frame,
    )
    x = np.arange(1.0, 1 + sum(len(e.labels) for e in errors)) / 100.0
    own, at = {}, 0
    for error in errors:
        own[error.kind, error.part] = x[at : at + len(error.labels)]
        at += len(error.labels)
    assert at == 1 + 1 + 3 + 3 + 3
    changed, moved = deviated(robot, frame, errors, x)
    now = changed.bodies[1]
    assert float(now.mass) == pytest.approx(float(link.mass) * (1.0 + own["mass", link.name][0]))
    scale = 1.0 + own["inertia", link.name][0]
    assert np.allclose(now.inertia, np.asarray(link.inertia) * scale)
    assert np.allclose(now.com, link.com + own["com", link.name])
    at = pose.translation(joint.placement) + own["length", joint.name]
    assert np.allclose(pose.translation(changed.joints[1].placement), at)
    at = pose.translation(frame.placement) + own["length", "tool"]
    assert np.allclose(pose.translation(moved.placement), at)
    assert np.allclose(pose.rotation(moved.placement), pose.rotation(frame.placement))
    every = robot_errors(robot, {"length": 0.1, "mass": 0.2, f"{link.name}.mass": 0.3}, frame)
    placed = {joint.name for joint in robot.joints if joint.parent >= 0}
    assert {e.part for e in every if e.kind == "length"} == placed | {"tool"}
    sizes = {e.part: e.deviation for e in every if e.kind == "mass"}
    light = robot.replace_body(robot.bodies[2].name, mass=0.3)
    light = light.replace_body(robot.bodies[0].name, mass=0.0)
    named = {e.part for e in robot_errors(light, {"mass": 0.1}, frame)}
    assert named == {body.name for body in robot.bodies[1:]}
    assert sizes[link.name] == 0.3
    assert {x for name, x in sizes.items() if name != link.name} == {0.2}


def test_subspaces_have_a_length_only_where_they_mix():
    assert np.array_equal(subspaces.selection("xz", 3.0), np.eye(6)[[3, 5]])
    planar = subspaces.selection("planar", 3.0)
    assert np.array_equal(planar, np.diag([3.0] * 3 + [1.0] * 3)[[2, 3, 4]])
    turn = np.eye(6)[:3]
    assert np.array_equal(subspaces.selection(turn, 3.0), turn)
    assert (subspaces.unit(turn), subspaces.unit(planar)) == ("rad/s", "m/s")
    assert subspaces.unit(np.eye(6)[3:]) == "m/s"
    with pytest.raises(rm.errors.InvalidValue, match="linearly dependent"):
        subspaces.selection(np.ones((2, 6)), 1.0)
    for length in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(rm.errors.InvalidValue, match="must be a positive number of metres"):
            subspaces.selection("planar", length)


def test_integrals_over_samples_are_exact_for_parabolas():
    t = np.array([0.0, 0.3, 0.5, 1.2, 1.3, 2.0])
    x = np.stack([1.0 + 2.0 * t, 3.0 * t**2 - t, np.ones_like(t)], axis=-1)
    exact = [2.0 + 4.0, 8.0 - 2.0, 2.0]
    assert np.allclose(base_coupling._integral(t, x), exact, atol=1e-12)
    even = np.linspace(0.0, 2.0, 21)
    near = base_coupling._integral(even, np.sin(even)[:, None])[0]
    assert near == pytest.approx(1.0 - np.cos(2.0), abs=2e-5)


def test_frames_that_no_joint_moves_are_told_with_those_that_are():
    robot = rm.load("servicer")
    with pytest.raises(
        rm.errors.InvalidValue, match="fixed to body 'bus'; moved are: gripper, "
    ) as told:
        arm.moving_joints(robot, "bus")
    assert " bus" not in str(told.value).partition("moved are:")[2]
    assert arm.last_moved_frame(robot) == "tool"
    moving = arm.moving_joints(robot, "tool")
    assert [robot.joints[j].name for j in moving] == list(robot.joints.names[1:])
    assert arm.check_base(rm.load("servicer", base="fixed"), "fixed") == "fixed"
    with pytest.raises(rm.RemoraError):
        arm.check_base(rm.load("servicer", base="fixed"), "floating")


def test_directions_are_even_and_volumes_those_of_balls_and_shells():
    lines = straight_path.sphere_directions(2000)
    assert np.allclose(np.linalg.norm(lines, axis=1), 1.0)
    assert np.abs(lines.mean(axis=0)).max() < 1e-3
    assert np.allclose(lines.T @ lines / 2000, np.eye(3) / 3.0, atol=2e-3)
    near = np.sort(np.arccos(np.clip(lines @ lines[1000], -1, 1)))[1]
    assert near > 0.8 * np.sqrt(4.0 * np.pi / 2000)  # no two of them are close
    flat = straight_path._directions(8, "xz")
    assert np.allclose(flat[1], [np.sqrt(0.5), 0.0, np.sqrt(0.5)])
    assert np.allclose(straight_path._directions([[0.0, 3.0, 4.0]], None), [[0.0, 0.6, 0.8]])
    shells = np.array([[0.5, 1.0], [1.5, 2.0]])
    ball = SimpleNamespace(plane=None)
    volume = FloatingWorkspace.volume(ball, shells)
    assert volume == pytest.approx(4 / 3 * np.pi * (1 - 0.125 + 8 - 3.375))
    ball.plane = "xy"
    assert FloatingWorkspace.volume(ball, shells) == pytest.approx(np.pi * (0.75 + 1.75))
    reach = SimpleNamespace(plane=None, reach=np.array([1.0, 2.0]))
    volume = straight_path.StraightPathWorkspace.volume.fget(reach)
    assert volume == pytest.approx(4 / 3 * np.pi * 4.5)


def test_bodies_of_points_lines_and_plates_are_consistent_and_no_others():
    def parameters(points, masses):
        J = sum(m * np.outer([*p, 1.0], [*p, 1.0]) for p, m in zip(points, masses, strict=True))
        return pseudo_inertia.parameters_of(J)

    corners = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, 0.5]])
    for count in (1, 2, 3, 4):
        x = parameters(corners[:count], [2.0] * count)
        assert pseudo_inertia.is_consistent(x, 1e-12)
        assert x[0] == pytest.approx(2.0 * count)
    assert not pseudo_inertia.is_consistent(parameters(corners, [3.0, 3.0, 3.0, -1.0]), 1e-12)
    assert not pseudo_inertia.is_consistent(-parameters(corners, [1.0] * 4), 1e-12)
    assert not pseudo_inertia.is_consistent(np.zeros(10))
