"""Stills without a browser: the nearest triangle is seen, what is asked for is in the picture."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import remora as rm
from remora.algebra import pose
from remora.simulation.recording.recorded_event import RecordedEvent
from remora.viewer.report import stills as module
from remora.viewer.report.stills import COUNT, still_times
from remora.viewer.scene.camera import Camera, framed
from remora.viewer.scene.raster import depth_image, projected

SIZE = (60, 40)
AHEAD = Camera(np.array([0.0, -5.0, 0.0]), np.zeros(3), np.radians(40.0))


def square(y, half=1.0):
    """Return two triangles of a square across the view, at a distance y + 5."""
    a, b, c, d = (
        [x, y, z] for x, z in ((-half, -half), (half, -half), (half, half), (-half, half))
    )
    return np.array([[a, b, c], [a, c, d]])


def test_the_nearest_triangle_is_seen_in_any_order():
    near, far = square(-1.0, 0.5), square(1.0, 3.0)
    for first, second in ((near, far), (far, near)):
        seen = depth_image(np.concatenate([first, second]), AHEAD, SIZE).face
        middle, corner = seen[20, 30], seen[3, 3]
        assert (middle < 2) == (first is near)
        assert (corner < 2) == (first is far)


def test_nearness_is_the_reciprocal_of_the_depth():
    found = depth_image(square(2.0, 4.0), AHEAD, SIZE)
    assert np.allclose(found.nearness, 1.0 / 7.0, rtol=1e-12)
    assert np.all(found.face >= 0)


def test_a_square_covers_as_many_pixels_as_its_image():
    found = depth_image(square(0.0, 1.0), AHEAD, SIZE)
    side = 2.0 * (0.5 * SIZE[1] / np.tan(np.radians(20.0))) / 5.0
    assert np.count_nonzero(found.face >= 0) == pytest.approx(side**2, rel=0.08)


def test_what_is_behind_the_camera_or_seen_edge_on_is_not_drawn():
    behind = square(-8.0)
    edge = np.array([[[0.0, -1, 0], [0, 1, 0], [0, 0, 0]]])
    assert np.all(depth_image(np.concatenate([behind, edge]), AHEAD, SIZE).face < 0)
    assert np.all(depth_image(np.zeros((0, 3, 3)), AHEAD, SIZE).face < 0)


def test_a_picture_is_that_of_the_origin_wherever_the_camera_is():
    """What is nearer than a part of the distance to the point looked at is left out."""
    far = np.array([300.0, -200.0, 100.0])
    moved = AHEAD._replace(position=AHEAD.position + far, look_at=AHEAD.look_at + far)
    for near in (0.0, 3.0, 4.5):
        here, there = (
            depth_image(square(near) + by, camera, SIZE)
            for by, camera in ((0.0, AHEAD), (far, moved))
        )
        assert np.array_equal(here.face, there.face)
    assert np.any(there.face >= 0)


@pytest.mark.parametrize("along", [None, np.array([0.6, -0.8])])
def test_a_camera_sees_all_points_and_little_else(along):
    cloud = np.random.default_rng(3).normal(size=(50, 3)) * [3.0, 1.0, 0.4] + [10, -4, 2]
    size = (400, 300)
    at, depth = projected(cloud, framed(cloud, along, 4 / 3), size)
    assert np.all(depth > 0.0)
    share = 2.0 * np.abs(at / size - 0.5)
    assert 0.85 < share.max() < 1.0


def test_a_camera_of_one_point_stands_back():
    camera = framed(np.zeros((1, 3)))
    assert np.all(np.isfinite(camera.position))
    assert np.linalg.norm(camera.position) > 0.0


def test_stills_show_the_robot_as_it_moves(run):
    taken = module.stills(run, (160, 120))
    assert [still.t for still in taken] == sorted(still.t for still in taken)
    assert (taken[0].t, taken[-1].t) == (0.0, run.t[-1])
    assert (taken[0].caption, taken[-1].caption) == ("start", "end")
    pictures = [np.asarray(Image.open(io.BytesIO(still.jpeg))).astype(int) for still in taken]
    for picture in pictures:
        assert picture.shape == (120, 160, 3)
        lit = picture.max(axis=2) > 60
        assert 0.03 < lit.mean() < 0.6
        assert lit[10:-10, 10:-10].sum() > 0.9 * lit.sum()  # in the middle
    assert np.sum(np.abs(pictures[0] - pictures[-1]).max(axis=2) > 40) > 200
    golden = (pictures[0][..., 0] > 1.4 * pictures[0][..., 2]) & (pictures[0][..., 0] > 90)
    assert golden.sum() > 50  # the foil of the bus


def test_triangles_are_where_their_bodies_are():
    corners, normals = square(1.0), np.array([[0.0, -1.0, 0.0]] * 2)
    x = np.stack([
        pose.from_xyz_rpy(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.5 * np.pi])),
        pose.from_translation(np.array([-4.0, 0.0, 0.5])),
    ])  # fmt: skip
    own = module.Triangles(corners, normals, np.full((2, 3), 0.5), np.full(2, 0.1))
    placed = module._placed([module._Shape(1, own), module._Shape(0, own)], x)
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    there = np.concatenate(
        [corners + pose.translation(x[1]), corners @ quarter.T + [1.0, 2.0, 3.0]]
    )
    assert np.allclose(placed.corners, there, atol=1e-12)
    assert np.allclose(placed.normals, np.concatenate([normals, normals @ quarter.T]), atol=1e-12)


def test_moments_are_ends_phases_and_events(run):
    moments = still_times(run)
    assert len(moments) == COUNT
    event = replace(run, events=(RecordedEvent(1.0, "seen", "record", run.q[0], run.v[0]),))
    assert ("seen", 1.0) in [(m.caption, m.t) for m in still_times(event)]
    first = replace(run, columns={name: x[:1] for name, x in run.columns.items()})
    assert [m.t for m in still_times(first)] == [0.0]


def test_a_robot_of_too_many_triangles_is_refused(run, monkeypatch):
    monkeypatch.setattr(module, "MOST_TRIANGLES", 10)
    with pytest.raises(rm.RemoraError, match="too many for stills"):
        module.stills(run)
