"""The timeline at the bottom: phases, events, and names that contain HTML."""

import html
import json
import re

import numpy as np
import pytest

import remora as rm
from remora.viewer.load_words import fixed
from remora.viewer.page.plots import Plot, cursor, offered, picked, plot_of, svg
from remora.viewer.page.timeline import (
    film_html,
    now_html,
    phase_spans,
    span_html,
    timeline_html,
    units_html,
)
from remora.viewer.report.animation_html import html_of


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
    return rm.simulate(robot, *rest, duration=phases, record=rm.Record(0.1, progress=False))


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
    assert 'playing="0"' in now_html(1.25)
    assert 'playing="1"' in now_html(1.25, True)


def data(text, name):
    """Return what an invisible element tells the scripts."""
    return json.loads(html.unescape(re.search(rf'data-remora-{name}="([^"]*)"', text).group(1)))


def test_a_file_tells_its_timeline_and_scenes(spun):
    text = html_of(spun, "dark", pictures=5)
    film = data(text, "film")
    assert film["scene"] == "dark"
    assert film["factor"] == 0.5  # 2 s of the run are played in 4 s
    assert set(film["scenes"]) == {"space", "studio", "dark"}
    assert film["scenes"]["space"]["stars"]
    assert not film["scenes"]["studio"]["dark"]
    assert [p["end"] for p in data(text, "run")["phases"]] == [1.0, 2.0]
    assert "<script>x</script>" not in text
    assert "&lt;b&gt;bus&lt;/b&gt;" in text


def test_units_and_scenes_are_told_as_data():
    assert data(units_html({"a": "°", "b": '"><b>'}), "units") == {"a": "°", "b": '"><b>'}
    assert data(film_html(2.0, "space"), "film")["factor"] == 2.0
    told = data(span_html(np.array([1.0, 3.0]), "s", "b"), "run")  # of a batch
    assert told == {"start": 1, "end": 3, "slider": "s", "button": "b", "phases": [], "events": []}


def test_lines_are_picked_by_parts_of_their_names():
    names = ["a/elbow_pitch", "a/elbow", "a/wrist_roll", "b/wrist_yaw"]
    plot = Plot("°", names, np.arange(3.0), np.arange(12.0).reshape(3, 4))
    assert picked(plot, "elbow, yaw").names == [names[0], names[1], names[3]]
    assert picked(plot, "WRIST").names == names[2:]
    assert picked(plot, "a/elbow").names == ["a/elbow"]  # an exact name is that line only
    assert np.array_equal(picked(plot, "roll").values[:, 0], plot.values[:, 2])
    for text in ("", " , ", "nothing like it"):
        assert picked(plot, text) is plot
    assert 'data-picker="id"' in cursor(plot, 1.0, 1, "id")
    evil = Plot("", ['"><script>'], plot.t, plot.values[:, :1])
    assert "<script>" not in cursor(evil, 1.0, 1, "id")


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
