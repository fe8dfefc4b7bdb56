"""The timeline at the bottom: phases, events, and names that contain HTML."""

import html
import json
import re

import numpy as np
import pytest

import remora as rm
from remora.viewer.page.plots import Plot, cursor, fixed, offered, plot_of, svg
from remora.viewer.page.timeline import now_html, phase_spans, timeline_html


@pytest.fixture(scope="module")
def spun():
    """Return 2 s of a bus with a reaction wheel and an evil name, in two phases."""
    robot = (
        rm.Builder("<b>bus</b>")
        .body("bus", mass=100, inertia=(20, 20, 20))
        .body("rw", mass=5, inertia=(0.02, 0.02, 0.04))
        .joint("spin", "revolute", "bus", "rw", axis=(0, 0, 1))
        .build()
    )
    phases = [rm.Phase(1.0, torque={"spin": 0.4}, name="<script>x</script>"), rm.Phase(1.0)]
    rest = rm.neutral(robot), np.zeros(robot.nv)
    return rm.simulate(robot, *rest, phases=phases, sample=0.1, progress=False)


def test_phases_and_their_names_are_told_as_data(spun):
    spans = phase_spans(spun)
    assert [(s.start, s.end) for s in spans] == [(0.0, 1.0), (1.0, 2.0)]
    text = timeline_html(spun, "abc")
    assert "<script" not in text
    told = json.loads(html.unescape(re.search(r'data-remora-run="([^"]*)"', text).group(1)))
    assert told["phases"][0]["name"] == "<script>x</script>"
    assert (told["start"], told["end"], told["slider"]) == (0.0, 2.0, "abc")
    assert told["events"] == []
    assert '"1.250000"' in now_html(1.25)


def test_wheels_have_their_own_plot_in_rpm(spun):
    names = offered(spun)
    assert "wheel speeds, rpm" in names
    plot = plot_of(spun, "wheel speeds, rpm")
    assert plot.names == ["spin"]
    assert np.allclose(plot.values[:, 0], spun.v[:, -1] * 60 / (2 * np.pi))
    assert plot.values.max() > 50


def test_no_choice_is_empty(spun, run):
    for one in (spun, run):
        for name in offered(one):
            assert plot_of(one, name).values.shape[1] > 0
    assert "joint travels, m" not in offered(run)
    assert "wheel speeds, rpm" not in offered(run)
    assert "joint angles, °" not in offered(spun)


@pytest.mark.parametrize("size", [1e-42, 3e-5, 0.02, 1.0, 57.3, 9999.9, 2e7])
def test_values_have_a_fixed_width(size):
    widest = len(fixed(-size, size))
    assert all(len(fixed(x, size)) <= widest for x in np.linspace(-size, size, 41))
    assert len({fixed(x, size).partition(".")[2] == "" for x in (0.1 * size, size)}) == 1
    assert fixed(float("nan"), size) == "-"


def test_rounding_noise_in_a_large_plot_is_zero():
    assert fixed(1.673e-42, 3.0) == "0.000"
    assert fixed(-1e-9, 3.0) == "0.000"


def test_plots_can_be_dragged_and_names_are_text():
    t = np.linspace(0, 1, 5)
    plot = Plot("m", ["<i>x</i>"], t, np.column_stack([t]))
    assert "data-remora-plot" in svg(plot)
    assert "<i>x" not in cursor(plot, 0.5, 2)
