"""Straight paths and dynamic singularities against closed forms and independent integration."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import remora as rm
from numeric import assert_close, configuration_rate
from remora.algebra import pose
from remora.analysis import free_floating_workspace

FREE = {"joint_1": (-10.0, 10.0), "joint_2": (-10.0, 10.0)}


def start(robot, *angles):
    q = rm.neutral(robot)
    q[8:] = angles
    return q


def tool(robot, q):
    return pose.translation(rm.frame_pose(robot, q, "tool"))


def test_a_fixed_arm_moves_to_the_circle_of_its_reach():
    robot = rm.load("spart17_planar")
    q = start(robot, 0.6, -1.3)
    found = rm.analysis.straight_path_workspace(
        robot, q, "tool", "fixed", "xy", directions=90, ranges=FREE, smallest=1e-4
    )
    assert set(found.reason) == {"singular"}
    p = found.start - [0.375, 0.0, 0.0]
    along = found.directions @ p
    expected = -along + np.sqrt(along**2 + 1.0 - p @ p)  # to the circle of radius 1 m
    assert_close(found.reach, expected, 1e-5)
    assert_close(found.boundary, tool(robot, found.q), 1e-8)
    assert abs(found.volume / np.pi - 1.0) < 2e-3  # a polygon of 90 corners


def test_limits_end_a_path_where_inverse_kinematics_meets_them():
    robot = rm.load("spart17_planar")
    q = start(robot, 0.6, -1.3)
    found = rm.analysis.straight_path_workspace(robot, q, "tool", "fixed", "xy", directions=60)
    assert {"joint_1", "joint_2"} < set(found.reason)
    for reason, end in zip(found.reason, found.q, strict=True):
        if reason != "singular":
            joint = robot.joints[reason]
            away = min(
                abs(end[joint.q] - joint.limits.lower), abs(end[joint.q] - joint.limits.upper)
            )
            assert away < 1e-4
    p = tool(robot, found.q)[:, :2] - [0.375, 0.0]
    elbow = -np.arccos((np.sum(p**2, axis=-1) - 0.5) / 0.5)  # the branch of the start
    assert_close(found.q[:, 9], elbow, 1e-7)


def test_a_floating_path_is_that_of_an_independent_integration():
    robot = rm.load("spart17_planar")
    q = start(robot, 0.6, -1.3)
    found = rm.analysis.straight_path_workspace(robot, q, "tool", "floating", "xy", directions=8)
    assert_close(found.boundary, tool(robot, found.q), 1e-8)
    center = rm.center_of_mass(robot, q)
    assert_close(rm.center_of_mass(robot, found.q), np.tile(center, (8, 1)), 1e-7)
    d, length = found.directions[3], 0.8 * found.reach[3]

    def rate(_, x):
        x = rm.normalize(robot, x)
        R = pose.to_rotation_matrix(rm.frame_pose(robot, x, "tool"))
        J = R[:2] @ rm.generalized_jacobian(robot, x, "tool")[3:]
        vm = np.linalg.solve(J, d[:2])
        v = np.concatenate([rm.dynamics.base_response(robot, x) @ vm, vm])
        return configuration_rate(robot, x, v)

    end = solve_ivp(rate, (0.0, length), q, rtol=1e-10, atol=1e-12).y[:, -1]
    ours = rm.analysis.straight_path_workspace(
        robot, q, "tool", "floating", "xy", directions=[d], smallest=1e-6
    )
    assert ours.reach[0] >= length
    assert_close(tool(robot, end), found.start + length * d, 1e-8)


def test_paths_in_space_and_held_orientation():
    robot = rm.load("spart17_planar_3")
    q = start(robot, 0.5, -1.2, 0.9)
    free = rm.analysis.straight_path_workspace(robot, q, "tool", "floating", "xy", directions=6)
    held = rm.analysis.straight_path_workspace(
        robot, q, "tool", "floating", "xy", directions=6, hold_orientation=True
    )
    R = pose.to_rotation_matrix(rm.frame_pose(robot, held.q, "tool"))
    R0 = pose.to_rotation_matrix(rm.frame_pose(robot, q, "tool"))
    assert_close(R, np.broadcast_to(R0, R.shape), 1e-7)
    assert held.volume < free.volume


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base": "flying"}, "fixed, floating"),
        ({"plane": "w"}, "xy, xz, yz"),
        ({"directions": 0}, "empty"),
        ({"directions": [[0.0, 0.0, 0.0]]}, "not zero"),
        ({"frame": "base"}, "no joint of the arm"),
        ({"angles": (0.3, 0.0), "base": "fixed"}, "singular at the start"),
        ({"angles": (0.3, 2.1)}, "'joint_2' .* outside its range"),
    ],
)
def test_refusals_name_what_is_wrong(options, words):
    robot = rm.load("spart17_planar")
    given = {"plane": "xy", "frame": "tool", **options}
    q = start(robot, *given.pop("angles", (0.6, -1.3)))
    with pytest.raises(rm.RemoraError, match=words):
        rm.analysis.straight_path_workspace(robot, q, **given)


@pytest.mark.parametrize("ranges", [None, {f"joint_{k}": (-np.pi, np.pi) for k in (1, 2)}])
def test_shells_are_those_of_a_dense_grid(ranges):
    """Sign changes of det J* over a grid of joint angles, by the library's other functions."""
    robot = rm.load("spart17_planar")
    found = rm.analysis.floating_workspace(robot, "tool", "xy", ranges=ranges)
    low, high = ([getattr(r, end)[0] for r in found.ranges] for end in ("lower", "upper"))
    n = 401
    q = np.tile(rm.neutral(robot), (n, n, 1))
    q[..., 8] = np.linspace(low[0], high[0], n)[:, None]
    q[..., 9] = np.linspace(low[1], high[1], n)
    fast = rm.compile(robot)
    rho = np.linalg.norm(
        pose.translation(fast.frame_pose(q, "tool")) - fast.center_of_mass(q), axis=-1
    )
    det = np.linalg.det(fast.generalized_jacobian(q, "tool")[..., 3:5, :])
    assert_close(found.reachable[[0, -1], [0, 1]], [rho.min(), rho.max()], 5e-3)
    changes = np.signbit(det[1:]) != np.signbit(det[:-1])
    across = np.signbit(det[:, 1:]) != np.signbit(det[:, :-1])
    singular = np.concatenate([rho[1:][changes], rho[:, 1:][across]])
    assert_close(found.path_dependent[[0, -1], [0, 1]], [singular.min(), singular.max()], 1e-2)
    within = (found.path_dependent[:, 0] - 1e-2 <= singular[:, None]) & (
        singular[:, None] <= found.path_dependent[:, 1] + 1e-2
    )
    assert within.any(axis=1).all()
    J = rm.generalized_jacobian(robot, found.singular, "tool")[..., 3:5, :]
    assert np.abs(np.linalg.det(J)).max() < 1e-12
    total = found.volume(found.path_dependent) + found.volume(found.path_independent)
    assert_close(total, found.volume(found.reachable), 1e-9)


def test_distances_without_a_gap_are_one_shell():
    rho = np.concatenate([np.linspace(1.0, 1.5, 40), np.linspace(0.2, 0.4, 20), [1.9]])
    found = free_floating_workspace._clusters(rho, np.array([[0.0, 2.0]]))
    assert np.allclose(found, [[0.2, 0.4], [1.0, 1.5], [1.9, 1.9]], atol=1e-15)


def test_the_farthest_point_is_that_of_the_stretched_virtual_manipulator():
    """ρ_max: the stretched arm; its links weighted by the masses before them [PD91]."""
    robot = rm.load("spart17_planar")
    found = rm.analysis.floating_workspace(robot, "tool", "xy")
    stretched = 1.375 - (10 * 0.625 + 10 * 1.125) / 120.0
    assert_close(found.reachable[-1, 1], stretched, 1e-9)


def test_a_redundant_arm_must_name_its_joints():
    robot = rm.load("spart17_planar_3")
    with pytest.raises(rm.errors.InvalidValue, match="not square: name 2 joints"):
        rm.analysis.floating_workspace(robot, "tool", "xy")
    found = rm.analysis.floating_workspace(robot, "tool", "xy", joints=["joint_1", "joint_2"])
    assert len(found.ranges) == 2
    with pytest.raises(rm.errors.InvalidValue, match="free joint"):
        rm.analysis.floating_workspace(rm.load("spart17_planar", base="fixed"), "tool", "xy")
