"""Cells, classes of orientations and samples of workspaces, against counting by hand."""

import math

import numpy as np
import pytest

import remora as rm
from remora.analysis import cells, sampling


def test_classes_of_orientations_in_a_plane_are_equal_angles():
    angles = np.radians([-179.0, -91.0, -89.0, 1.0, 89.0, 91.0, 179.0])
    c, s, o = np.cos(angles), np.sin(angles), np.zeros(7)
    about = {
        "xy": [[c, -s, o], [s, c, o], [o, o, 1 + o]],
        "xz": [[c, o, s], [o, 1 + o, o], [-s, o, c]],
        "yz": [[1 + o, o, o], [o, c, -s], [o, s, c]],
    }
    assert cells.count_of(4, "xy") == 4
    for plane, matrix in about.items():
        R = np.moveaxis(np.array(matrix), -1, 0)
        found = cells.bins_of(R, plane, 4)
        x = {"xy": angles, "yz": angles}.get(plane)
        if x is None:  # the angle from z to x of the x axis, which is a quarter turn ahead
            x = np.arctan2(R[:, 0, 0], R[:, 2, 0])
        assert np.array_equal(found, np.floor((x + math.pi) / (0.5 * math.pi)).astype(int))
        assert set(found) == {0, 1, 2, 3}
    turned = np.moveaxis(
        np.array([[[-1.0], [0], [0]], [[0], [-1.0], [0]], [[0], [0], [1.0]]]), -1, 0
    )
    assert cells.bins_of(turned, "xy", 4).tolist() == [3]  # exactly half a turn


@pytest.mark.parametrize(("asked", "given"), [(6, 6), (7, 24), (24, 24), (25, 54), (100, 150)])
def test_classes_of_directions_are_faces_of_a_cube_with_equal_angles(asked, given, rng):
    assert cells.count_of(asked, None) == given
    z = rng.normal(size=(20_000, 3))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    R = np.zeros((len(z), 3, 3))
    R[:, :, 2] = z
    found = cells.bins_of(R, None, given)
    b = math.isqrt(given // 6)
    main = np.abs(z).argmax(axis=1)
    for k in rng.choice(len(z), 200, replace=False):
        axis, sign = main[k], z[k, main[k]] < 0
        number = 2 * axis + sign
        for other in ((axis + 1) % 3, (axis + 2) % 3):
            angle = math.degrees(math.atan2(z[k, other], abs(z[k, axis])))
            number = number * b + min(int((angle + 45.0) / 90.0 * b), b - 1)
        assert found[k] == number
    counts = np.bincount(found, minlength=given)
    assert counts.size == given
    assert counts.min() > 0.3 * len(z) / given


def test_ranges_of_joints_with_several_freedoms_are_pairs():
    robot = (
        rm.Builder("cross").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0)).body("a", mass=1.0)
        .joint("cross", "universal", "bus", "a", axis=(1, 0, 0), axis2=(0, 1, 0))
        .frame("tip", "a", xyz=(0, 0, 1)).build()
    )  # fmt: skip
    (found,) = sampling.joint_ranges(robot, "tip", ranges={"cross": [(-0.5, 1.0), (0.25, 2.0)]})
    assert (found.lower, found.upper) == ((-0.5, 0.25), (1.0, 2.0))
    with pytest.raises(
        rm.errors.InvalidValue, match=r"range of joint 'cross' must be 2 x 2 numbers"
    ):
        sampling.joint_ranges(robot, "tip", ranges={"cross": (-0.5, 1.0)})


def test_samples_of_a_ball_joint_are_uniform_rotations():
    robot = (
        rm.Builder("ball").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0))
        .body("a", mass=1.0).body("b", mass=1.0)
        .joint("hinge", "revolute", "bus", "a", axis=(0, 0, 1), lower=-0.5, upper=1.5)
        .joint("ball", "spherical", "a", "b").frame("tip", "b", xyz=(0, 0, 1)).build()
    )  # fmt: skip
    ranges = sampling.joint_ranges(robot, "tip")
    assert sampling.parameters(ranges) == 4
    u = sampling.additive_recurrence(np.arange(20_000.0)[:, None], 4)
    assert np.all((u >= 0.0) & (u < 1.0))
    assert np.abs(u.mean(axis=0) - 0.5).max() < 1e-3
    corners = (u < 0.5) @ [1, 2, 4, 8]
    assert np.abs(np.bincount(corners) / len(u) - 1 / 16).max() < 2e-3
    q = sampling.configurations(ranges, rm.neutral(robot), u)
    hinge, r = q[:, robot.joints["hinge"].q.start], q[:, robot.joints["ball"].q]
    assert np.allclose(hinge, -0.5 + 2.0 * u[:, 0], atol=1e-12)
    assert np.allclose(np.linalg.norm(r, axis=1), 1.0, atol=1e-12)
    second = r.T @ r / len(r)  # of uniform rotations: 1/4 of the unit matrix
    assert np.abs(second - 0.25 * np.eye(4)).max() < 2e-3
    assert np.abs((r**4).mean(axis=0) - 1 / 8).max() < 2e-3


def hinge(**limits):
    made = rm.Builder("one").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0)).body("a", mass=1.0)
    made.joint("hinge", "revolute", "bus", "a", axis=(0, 0, 1), **limits)
    return made.frame("tip", "a", xyz=(1, 0, 0)).build()


@pytest.mark.parametrize(
    ("limits", "low", "high", "default"),
    [
        ({"lower": -0.5, "upper": 1.5}, -0.5, 1.5, False), ({}, -math.pi, math.pi, True),
        ({"lower": 0.5}, 0.5, 0.5 + 2 * math.pi, True),
        ({"upper": 0.5}, 0.5 - 2 * math.pi, 0.5, True),
    ],
)  # fmt: skip
def test_a_joint_without_a_limit_makes_one_turn(limits, low, high, default):
    (found,) = sampling.joint_ranges(hinge(**limits), "tip")
    assert (found.lower, found.upper, found.default) == (
        pytest.approx((low,)), pytest.approx((high,)), default,
    )  # fmt: skip


def test_a_surface_encloses_the_cells_and_values_are_those_of_the_nearest():
    pytest.importorskip("skimage")
    grid = cells.Grid(np.array([0.1, -0.2, 0.3]), 0.5, (6, 7, 8))
    mask = np.zeros(grid.shape, dtype=bool)
    mask[1:4, 2:5, 0:6] = True
    points, faces = cells.surface(mask, grid, smooth=False)
    assert np.allclose(points.min(axis=0), [0.1 + 0.5 * 1, -0.2 + 0.5 * 2, 0.3], atol=1e-9)
    assert np.allclose(
        points.max(axis=0), [0.1 + 0.5 * 4, -0.2 + 0.5 * 5, 0.3 + 0.5 * 6], atol=1e-9
    )
    a, b, c = (points[faces[:, k]] for k in range(3))
    volume = abs(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0
    assert 0.9 * mask.sum() * 0.125 < volume < mask.sum() * 0.125
    smooth, _ = cells.surface(mask, grid)
    middle = 0.5 * (smooth.min(axis=0) + smooth.max(axis=0))
    assert np.allclose(middle, [0.1 + 1.25, -0.2 + 1.75, 0.3 + 1.5], atol=1e-9)
    values = np.zeros(grid.shape)
    values[1, 2, 0], values[3, 4, 5] = 27.0, 8.0
    at = np.array([[0.1 + 0.25, -0.2 + 0.75, 0.31], [9.0, 9.0, 9.0], [0.1 + 1.8, 2.2, 3.2]])
    mean_of = [values[1:2, 2:3, 0:2].sum() / 2, 0.0, values[2:4, 3:5, 4:6].sum() / 8]
    found = cells.nearest_values(values, mask, grid, at)
    assert found[0] == pytest.approx(mean_of[0])
    assert found[2] == pytest.approx(mean_of[2])
    for wrong, words in ((mask[0], "in the plane"), (0 * mask == 1, "is empty")):
        with pytest.raises(rm.errors.InvalidValue, match=words):
            cells.surface(wrong, grid)
