"""The figure of wheels: the outline of their envelope in a plane."""

import itertools

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from remora.viewer.figures.analysis_figures import shadow


@pytest.mark.parametrize("seed", range(5))
def test_the_outline_is_the_hull_of_all_corners(seed):
    rng = np.random.default_rng(seed)
    axes, capacity = rng.normal(size=(3 + seed, 2)), rng.uniform(0.5, 2.0, 3 + seed)
    signs = np.array(list(itertools.product((-1, 1), repeat=3 + seed)))
    corners = signs @ (axes * capacity[:, None])
    hull = ConvexHull(corners)
    outline = shadow(axes, capacity)
    assert ConvexHull(outline).volume == pytest.approx(hull.volume, rel=1e-12)
    assert np.all(hull.equations[:, :2] @ outline.T + hull.equations[:, 2:] < 1e-9)
    assert len(outline) == 2 * (3 + seed)


def test_a_wheel_across_the_plane_adds_nothing():
    axes = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    outline = shadow(axes, np.array([1.0, 2.0, 5.0]))
    assert sorted(map(tuple, np.abs(outline))) == [(1.0, 2.0)] * 4
