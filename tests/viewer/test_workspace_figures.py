"""Figures of workspaces: every kind is drawn and saved."""

import io

import numpy as np
import pytest

import remora as rm


@pytest.fixture(scope="module")
def planar():
    robot = rm.load("spart17_planar")
    q = rm.neutral(robot)
    q[8:] = 0.6, -1.3
    return robot, q


def drawn(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return len(file.getvalue())


def test_cells_paths_and_regions_are_drawn(planar):
    robot, q = planar
    cells = rm.workspace(robot, "tool", plane="xy", samples=20_000, cells=40)
    shells = rm.analysis.floating_workspace(robot, "tool", "xy", samples=20_000)
    for found in (cells, shells):
        assert drawn(found.plot(robot=robot, q=q)) > 5000
        assert found.plot(title="a title").axes[0].get_title(loc="left") == "a title"


def test_a_straight_path_is_drawn_with_its_reasons(planar):
    robot, q = planar
    found = rm.analysis.straight_path_workspace(robot, q, "tool", "fixed", "xy", directions=40)
    figure = found.plot(robot=robot, q=q)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert {"singular", "limit of joint_1", "limit of joint_2", "start"} == set(labels)
    assert drawn(figure) > 5000
    lines = np.concatenate([line.get_xydata() for line in figure.axes[0].lines])
    assert np.nanmax(np.abs(lines)) < 2.0


def test_a_surface_in_space_is_drawn():
    robot = rm.load("servicer")
    found = rm.workspace(robot, "tool", samples=20_000, cells=16, refine=2)
    assert drawn(found.plot()) > 10_000
    assert drawn(found.slice(z=1.0).plot()) > 5000
