"""Figures of runs: every quantity of every kind of robot, names, units, limits, many samples."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import remora as rm
from remora.viewer.figures.figures import INTERVALS, marks, split, thinned
from remora.viewer.figures.panels import MOST_LINES, PANELS, Line, Panel, choice, panels
from remora.viewer.load_words import short

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def servicer_run():
    """A servicer whose arm is driven, in two phases, with a push on its base and an event."""
    robot = rm.load("servicer")
    q = rm.neutral(robot)
    q[8:] = np.radians([0, 30, 0, -60, 0, 45, 0])
    return rm.simulate(
        robot,
        q,
        np.zeros(robot.nv),
        [
            rm.Phase(1.0, torque={"shoulder_pitch": 60.0}, name="push off"),
            rm.Phase(1.0, wrenches={"bus": [1.0, 0, 0, 0, 0, 0.1]}, name="coast"),
        ],
        record=0.1,
        physics=rm.Physics(limits="ignore"),
        events=[rm.Event(lambda t, q, v: t - 0.5, "half a second", action="record")],
    )


def odd_robot(base="free"):
    """Ball, slide, mimic, universal and cylindrical joints, with names that mean mischief."""
    build = (
        rm.Builder("odd").body("bus", mass=50, inertia=(5, 5, 5)).joint("base", base, None, "bus")
    )
    own = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1), "com": (0, 0, 0.2)}
    for name in ("ball", "slide", "jaw", "other", "fork", "piston"):
        build.body(name, **own)
    build.joint("<script>alert(1)</script>", "spherical", "bus", "ball", xyz=(1, 0, 0))
    build.joint("$rail_x$", "prismatic", "bus", "slide", lower=-0.3, upper=0.3, effort=4)
    build.joint("_jaw", "revolute", "slide", "jaw", damping=0.1)
    build.joint("other_jaw", "revolute", "slide", "other", mimic=("_jaw", -1.0, 0.1))
    build.joint("fork", "universal", "ball", "fork", axis=(1, 0, 0), axis2=(0, 1, 0))
    build.joint("line\nbreak", "cylindrical", "bus", "piston")
    return build.build()


def odd_run():
    robot = odd_robot()
    q, v = rm.random_state(robot, 3)
    push = {"ball": rm.Pulse(0.2, 0.4, [1.0, 0, 0, 0, 0, 0]), "fork": [0, 0, 1.0, 0, 0, 0]}
    return rm.simulate(robot, q, v, 1.0, torque={"$rail_x$": 3.9}, wrenches=push, record=0.05)


def fixed_run():
    robot = rm.load("servicer", base="fixed", gravity=(0, 0, -9.81))
    return rm.simulate(robot, np.zeros(7), np.full(7, 0.01), 0.2, record=0.05)


def one_sample():
    robot = rm.load("servicer")
    return rm.simulate(robot, rm.neutral(robot), np.zeros(robot.nv), 0.0)


RUNS = {"servicer": servicer_run, "odd": odd_run, "fixed": fixed_run, "one sample": one_sample}


@pytest.fixture(scope="module", params=RUNS)
def run(request):
    return RUNS[request.param]()


@pytest.fixture(scope="module")
def servicer():
    return servicer_run()


def titles(figure):
    return [ax.get_title(loc="left") for ax in figure.axes]


@pytest.mark.parametrize("name", PANELS)
def test_every_quantity_of_every_run_is_drawn(run, name):
    figure = run.plot(name)
    assert figure.axes
    for ax, panel in zip(figure.axes, panels(run, name, choice(run)), strict=True):
        assert len(ax.get_legend().get_texts() if panel.lines else []) == len(panel.lines)
        assert ax.get_title(loc="left").startswith(panel.title)
        assert ax.get_title(loc="left").endswith(panel.unit)
        assert panel.lines or panel.note
    figure.canvas.draw()


def test_the_overview_has_a_line_in_every_axes(run):
    figure = run.plot()
    assert len(figure.axes) > 5
    assert all(ax.get_legend() is not None for ax in figure.axes)
    figure.canvas.draw()


def test_the_function_and_the_method_are_the_same(servicer):
    assert titles(rm.plot(servicer, "tau")) == titles(servicer.plot("tau"))


def test_names_choose_joints_bodies_and_frames(servicer):
    figure = servicer.plot(["elbow_pitch", "wrist_roll"])
    assert titles(figure) == ["joint angles, °", "joint speeds, °/s", "joint torques, N m"]
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["elbow_pitch", "wrist_roll"]
    shown = figure.axes[0].get_lines()[0].get_ydata()
    assert np.array_equal(shown, np.degrees(1.0) * servicer.joint("elbow_pitch").q)
    assert titles(servicer.plot("position", "tool")) == ["position of tool, inertial axes, m"]
    assert len(servicer.plot(["tool", "elbow_pitch"]).axes) == 5
    assert titles(servicer.plot("q", degrees=False)) == ["joint angles, rad"]


def test_an_unknown_name_lists_what_there_is(servicer):
    with pytest.raises(rm.errors.UnknownName, match=r"'elbo'.*momentum.*elbow_pitch.*bus.*tool"):
        servicer.plot("elbo")


def test_a_run_without_samples_is_refused(servicer):
    columns = {name: values[:0] for name, values in servicer.columns.items()}
    with pytest.raises(rm.RemoraError, match="no samples"):
        replace(servicer, columns=columns).plot("q")


def test_units_follow_the_kind_of_joint():
    run = odd_run()
    units = {name: [p.unit for p in panels(run, name, choice(run))] for name in PANELS}
    assert units["q"] == ["°", "m"]
    assert units["v"] == ["°/s", "m/s", "°/s", "m/s"]  # joints, then what floats
    assert units["tau"] == ["N m", "N"]
    angles, travels = panels(run, "q", choice(run))
    labels = [line.label for line in (*angles.lines, *travels.lines)]
    assert "other_jaw (mimic)" in labels
    assert "$rail_x$" in labels
    assert r"line\nbreak.travel" in labels
    follower = next(line for line in angles.lines if "mimic" in line.label)
    assert np.allclose(follower.values, np.degrees(run.joint("other_jaw").q))


def test_torques_tell_the_share_of_their_limit(servicer):
    (panel,) = panels(servicer, "tau", choice(servicer, ["shoulder_pitch"]))
    assert panel.lines[0].label == "shoulder_pitch  60, 50 %"
    assert panel.lines[0].limits == (-120.0, 120.0)


def test_limits_are_drawn_where_they_are_near():
    (ax,) = odd_run().plot("tau", ["$rail_x$"]).axes
    assert any(np.allclose(line.get_ydata(), 4.0) for line in ax.get_lines()[1:])


def test_the_drift_is_what_conservation_tells():
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 5)
    run = rm.simulate(robot, q, v, 1.0, record=0.1)
    (panel,) = panels(run, "drift", choice(run))
    kept = run.conservation()
    drifts = kept.linear_momentum, kept.angular_momentum, kept.center_of_mass, kept.energy
    for line, drift in zip(panel.lines, drifts, strict=True):
        assert np.max(line.values) == pytest.approx(drift.relative, rel=1e-12)
    assert panel.log


def test_attitude_is_seen_from_the_start():
    build = rm.Builder("top").body("top", mass=1, inertia=(1, 2, 3))
    robot = build.joint("base", "free", None, "top").build()
    q, _ = rm.random_state(robot, 1)
    spin = np.array([0, 0, 2.0, 0, 0, 0])
    run = rm.simulate(robot, q, spin, 8.0, record=0.1)
    (panel,) = panels(run, "attitude", choice(run))
    assert np.allclose(panel.lines[2].values, np.degrees(2.0 * run.t), atol=1e-6)  # 2.5 turns
    tumble = rm.simulate(robot, q, np.array([0, 2.0, 0, 0, 0, 0]), 2.0, record=0.1)
    (panel,) = panels(tumble, "attitude", choice(tumble))
    assert "rotation vector" in panel.title
    whole = np.isfinite(panel.lines[1].values) & (tumble.t < 1.5)
    assert np.allclose(panel.lines[1].values[whole], np.degrees(2.0 * tumble.t[whole]), atol=1e-6)


def test_phases_and_events_are_named_without_overlap(servicer):
    names = ["push off", "half a second", "coast"]
    assert [mark.label for mark in marks(servicer)] == names
    figure = servicer.plot("q")
    figure.canvas.draw()
    ax = figure.axes[0]
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text() in names]
    assert len(boxes) == 3
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])


def events_of(run, count):
    """Return a run with many events."""
    times = np.linspace(0, 2, count)
    named = (
        replace(run.events[0], t=t, name=f"contact of the gripper {k}") for k, t in enumerate(times)
    )
    return replace(run, events=tuple(named))


def test_many_events_leave_a_readable_figure(servicer):
    (ax,) = events_of(servicer, 300).plot("q").axes
    texts = [text.get_text() for text in ax.texts]
    assert any("300 events: ticks below" in text for text in texts)
    assert not any("contact" in text for text in texts)
    figure = events_of(servicer, 15).plot("q")
    figure.canvas.draw()
    texts = figure.axes[0].texts
    assert any("without room" in text.get_text() for text in texts)
    for i, text in enumerate(texts):
        box = text.get_window_extent()
        assert not any(box.overlaps(other.get_window_extent()) for other in texts[:i])


def test_small_numbers_have_their_power_of_ten_in_the_unit():
    robot = rm.load("servicer")
    v = np.zeros(robot.nv)
    v[3:6] = 3e-7, -2e-7, 1e-7
    figure = rm.simulate(robot, rm.neutral(robot), v, 1.0, record=0.1).plot("v")
    figure.canvas.draw()
    ax = figure.axes[2]
    assert ax.get_title(loc="left") == "velocity of bus, body axes, 10⁻⁹ m/s"
    assert "200" in [label.get_text() for label in ax.get_yticklabels()]
    assert ax.yaxis.get_offset_text().get_text() == ""


def test_lines_of_many_joints_are_spread_over_axes():
    lines = tuple(Line(str(k), np.zeros(3)) for k in range(20))
    parts = split(Panel("joint angles", "°", lines))
    assert [len(part.lines) for part in parts] == [7, 6, 7]
    assert [line.label for part in parts for line in part.lines] == [str(k) for k in range(20)]


def test_of_a_very_large_robot_the_joints_that_vary_most_are_shown():
    build = rm.Builder("snake").body("b0", mass=1, inertia=(1, 1, 1))
    build.joint("base", "fixed", None, "b0")
    for k in range(1, 61):
        build.body(f"b{k}", mass=1, inertia=(1, 1, 1)).joint(f"j{k}", "revolute", "b0", f"b{k}")
    robot = build.build()
    speeds = np.arange(60.0)
    run = rm.simulate(robot, np.zeros(60), speeds, 0.1, record=0.05)
    (panel,) = panels(run, "q", choice(run))
    assert [line.label for line in panel.lines] == [f"j{k}" for k in range(61 - MOST_LINES, 61)]
    assert f"{MOST_LINES} of 60" in panel.note


def test_thinning_keeps_every_extreme_and_gap():
    rng = np.random.default_rng(0)
    t = np.concatenate([np.linspace(0, 1, 50_000), np.linspace(1, 10, 10_000)])  # far from uniform
    values = rng.normal(size=t.size)
    values[40_123], values[50_100], values[59_000] = 99.0, -99.0, np.nan
    when, few = thinned(t, values)
    assert len(few) <= 3 * INTERVALS + 2
    assert np.all(np.diff(when) >= 0)
    assert (np.nanmax(few), np.nanmin(few)) == (99.0, -99.0)
    assert np.count_nonzero(np.isnan(few)) == 1
    assert (when[0], when[-1]) == (t[0], t[-1])
    assert thinned(t[:100], values[:100])[1] is not None


def test_names_are_cut_and_escaped():
    assert short("elbow") == "elbow"
    assert short("a" * 50, 11) == "aaaaa…aaaaa"
    assert short("a\x00b\n") == r"a\x00b\n"


def test_without_matplotlib_there_is_one_clear_message(servicer, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(rm.RemoraError, match=r"matplotlib.*\[plot\]"):
        servicer.plot("q")


def test_importing_remora_does_not_import_matplotlib():
    code = "import sys, remora; sys.exit('matplotlib' in sys.modules or 'viser' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_settings_and_style_of_the_user_stay(servicer):
    before = dict(matplotlib.rcParams)
    servicer.plot("q")
    assert dict(matplotlib.rcParams) == before
