"""Parts of the pages at single states: read-outs, arrows, speeds, plots, handles."""

import itertools
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose, quaternion
from remora.model.joints import kind
from remora.viewer.figures import panels
from remora.viewer.load_words import fixed
from remora.viewer.page import batch_page, drag_target, plots, robot_page, run_page
from remora.viewer.page.timed_page import SPEEDS, _fitting_speed
from remora.viewer.report import html_page
from remora.viewer.scene import (
    analysis_shapes,
    constraint_marks,
    link_roles,
    overlays,
    scene,
)
from remora.viewer.view import viewable


def test_a_readout_is_in_metres_and_degrees():
    rpy = np.radians([10.0, -20.0, 30.0])
    text = robot_page._readout(pose.from_xyz_rpy(np.array([1.0, -2.0, 0.5]), rpy))
    numbers = [float(x) for x in re.findall(r"-?\d+\.\d+", text)]
    assert numbers == pytest.approx([1.0, -2.0, 0.5, 10.0, -20.0, 30.0])


@pytest.mark.parametrize(("span", "least"), [(0.0, 0.0), (29.0, 29 / 30), (100.0, 3.3), (1e9, 1e9)])
def test_a_run_is_played_in_half_a_minute(span, least):
    speed = float(_fitting_speed(span).rstrip("×"))
    known = [float(s.rstrip("×")) for s in SPEEDS]
    assert speed in known[3:]
    enough = [s for s in known[3:] if s >= span / 30.0]
    assert speed == (enough[0] if enough else known[-1])


def test_scales_and_numbers_of_plots():
    plot = plots.Plot("m", ["a", "b"], np.arange(3.0), np.array([[1.0, -5.0], [np.nan, 2], [3, 0]]))
    assert plots.scale_of(plot) == 5.0
    assert plots.scale_of(replace_values(plot, np.full((3, 2), np.nan))) == 0.0
    assert [plots._number(x) for x in (1234.5, -0.5, 1e-5, 123456.0, np.inf, -0.0)] == [
        "1234", "−0.5", "1e−05", "1.23e+05", "-", "0",
    ]  # fmt: skip
    for low, high, about in ((0.0, 1.0, 5), (-3.2, 7.9, 4), (1e-6, 5e-6, 6)):
        found = plots.ticks(low, high, about)
        steps = np.diff(found)
        assert np.allclose(steps, steps[0])
        digits = steps[0] / 10.0 ** np.floor(np.log10(steps[0] * (1 + 1e-9)))
        assert min(abs(digits - m) for m in (1.0, 2.0, 5.0)) < 1e-6
        assert low - 1e-9 <= found[0] < low + steps[0]
        assert high - steps[0] < found[-1] <= high + 1e-9
        assert (high - low) / about <= steps[0] * 1.001 < 2.6 * (high - low) / about


def replace_values(plot, values):
    return (
        plot._replace(values=values) if hasattr(plot, "_replace") else replace(plot, values=values)
    )


class Shown:
    """Keeps the arrows that are added to a scene."""

    def __init__(self):
        self.scene, self.labels = self, []

    def add_arrows(self, name, points, colors, **options):
        self.points, self.colors = np.asarray(points), np.asarray(colors)
        return SimpleNamespace(points=self.points, colors=self.colors, visible=True, **options)

    def add_label(self, name, text, **options):
        self.labels.append(SimpleNamespace(text=text, visible=True, position=None))
        return self.labels[-1]


def test_arrows_are_scaled_by_the_largest_and_small_ones_left_out():
    server = Shown()
    arrows = overlays.Arrows(
        server, "loads", ((255, 0, 0), (0, 0, 255)), 0.5, ("F", "M"), ("N", "N m")
    )
    arrows.visible = arrows.labels = True
    at = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    first = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 0.05], [0.0, -1.0, 0.0]])
    second = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    arrows.show(at, first, second, (4.0, 2.0))
    assert np.allclose(server.points, [
        [[0, 0, 0], [0, 0.375, 0]], [[2, 0, 0], [2, -0.125, 0]], [[0, 0, 0], [0, 0, 0.5]],
    ])  # fmt: skip
    told = {label.text: label.position for label in server.labels if label.visible}
    assert np.allclose(told["F 3.000 N"], [0.0, 1.06 * 0.375, 0.0])
    assert np.allclose(told["M 2.000 N m"], [0.0, 0.0, 1.06 * 0.5])


def test_phases_and_switches_are_told_at_their_times(run):
    two = replace(run, phase_starts=(0.0, 2.5), settings={"phases": [{"name": "one"}, {}]})
    assert [run_page._phase(two, t) for t in (0.0, 2.4, 2.5, 4.0)] == [
        "phase 1 of 2: one", "phase 1 of 2: one", "phase 2 of 2", "phase 2 of 2",
    ]  # fmt: skip
    assert run_page._phase(replace(two, settings={"phases": [{}]}), 1.0) == ""
    named = replace(two, settings={"phases": [{"name": "one"}]})
    assert run_page._phase(named, 1.0) == "phase 1 of 1: one"
    many = replace(run, switches=tuple(SimpleNamespace(t=0.5 * k) for k in range(40)))
    lines = run_page._switched(many).split("  \n")
    assert lines[1].startswith("**0.5 s**")
    assert lines[-1] == f"and {40 - (len(lines) - 1)} more"


def test_how_much_runs_differ_while_all_of_them_last(rng):
    values = rng.normal(size=(4, 6))
    shown = [SimpleNamespace(index=k, rows=rows) for k, rows in ((3, 6), (1, 4))]
    page = SimpleNamespace(_columns={"q": (values, "rad")}, _by_name={"q, °": "q"}, runs=shown)
    spread = batch_page.BatchPage._spread(page, "q, °")
    assert spread == np.abs(values[3, :4] - values[1, :4]).max()
    page.batch = SimpleNamespace(t=np.arange(6.0))
    plot = batch_page.BatchPage._plot(page, "q, °")
    assert np.allclose(plot.values, np.degrees(values[[3, 1]]).T)
    assert plot.names == ["run 3", "run 1"]


@pytest.mark.parametrize("floating", [True, False])
@pytest.mark.parametrize("turn", [True, False])
def test_a_dragged_tool_turns_or_not_and_wheels_stay(floating, turn, monkeypatch):
    asked = []
    monkeypatch.setattr(
        drag_target, "inverse_kinematics", lambda *args, **named: asked.append((args, named))
    )
    robot = rm.load("servicer_wheels")
    q, aim = rm.neutral(robot), pose.from_xyz_rpy(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0, 0]))
    drag_target.reached(robot, q, "tool", aim, floating, turn)
    ((given, targets, start, base), named) = asked[0]
    assert (given, start is q, base) == (robot, True, "floating" if floating else "fixed")
    assert np.allclose(targets["tool"], aim if turn else [1.0, 2.0, 3.0])
    assert sorted(named["locked"]) == ["wheel_x", "wheel_y", "wheel_z"]


def test_what_can_be_viewed(tmp_path):
    assert viewable("servicer").name == "servicer"
    with pytest.raises(rm.RemoraError, match="is not the folder of a run"):
        viewable("nothing")
    with pytest.raises(rm.RemoraError):
        viewable(tmp_path / "none.urdf")
    with pytest.raises(rm.errors.InvalidValue, match="can be viewed, not 3"):
        viewable(3)


@pytest.mark.parametrize("count", [2, 14])
def test_lines_and_values_of_a_plot_are_where_they_belong(count):
    t = np.linspace(2.0, 6.0, 9)
    values = np.stack([(k + 1) * np.sin(t + k) for k in range(count)], axis=-1)
    plot = plots.Plot("m", [f"line {k}" for k in range(count)], t, values)
    shown = values[:, :12]
    low, high = shown.min(), shown.max()
    low, high = low - 0.06 * (high - low), high + 0.06 * (high - low)
    drawn = re.findall(r'<polyline points="(.*?)"', plots.svg(plot))
    assert len(drawn) == min(count, 12)
    for k, way in enumerate(drawn):
        points = np.array([[float(x) for x in pair.split(",")] for pair in way.split()])
        assert np.allclose(points[:, 0], 250.0 * (t - 2.0), atol=0.051)
        assert np.allclose(points[:, 1], 1000.0 * (high - values[:, k]) / (high - low), atol=0.051)
    text = plots.cursor(plot, 3.0, 4)
    assert "*0.25000)" in text
    told = re.findall(r"<b [^>]*>(.*?)</b>", text)
    largest = np.abs(values).max()
    assert told == [fixed(x, largest) for x in values[4, :12]]
    # as wide as the widest number, which is negative
    widths = set(re.findall(r"min-width:(\d+)ch", text))
    assert widths == {str(len(fixed(-largest, largest)))}
    assert f"minmax(min(100%,{26 + 5 * len(plot.names[:12][-1]) + 7 * int(*widths)}px)" in text
    assert ("and 2 more" in text) == (count > 12)
    flat = plots.svg(plots.Plot("m", ["a"], t, np.full((9, 1), 4.0)))
    heights = {pair.split(",")[1] for pair in re.search('points="(.*?)"', flat)[1].split()}
    assert heights == {"500.0"}


def test_long_lines_keep_their_ends_and_extremes(rng):
    t, y = np.arange(5000.0), rng.normal(size=5000)
    few, kept = plots.thinned(t, y, 50)
    assert len(few) <= 103
    assert (few[0], few[-1], kept.min(), kept.max()) == (0.0, 4999.0, y.min(), y.max())
    assert np.array_equal(y[few.astype(int)], kept)
    edges = np.linspace(0, 5000, 51).astype(int)
    for a, b in itertools.pairwise(edges):
        own = kept[(few >= a) & (few < b)]
        assert (own.min(), own.max()) == (y[a:b].min(), y[a:b].max())
    assert len(plots.thinned(t[:150], y[:150], 50)[0]) == 150


def test_plots_are_the_samples_of_their_joints_in_their_units(rng):
    """On a robot with wheels, a slider, joints of two and three freedoms and a follower."""
    robot = (
        rm.Builder("all").body("bus", mass=20.0, inertia=(2.0, 3.0, 4.0))
        .body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.2)).body("a", mass=1.0).body("b", mass=1.0)
        .body("c", mass=1.0).body("d", mass=1.0).body("e", mass=1.0)
        .joint("spin", "revolute", "bus", "wheel", axis=(0, 0, 1))
        .joint("cyl", "cylindrical", "bus", "a", axis=(0, 0, 1), xyz=(1, 0, 0))
        .joint("uni", "universal", "a", "b", axis=(1, 0, 0), axis2=(0, 1, 0), xyz=(1, 0, 0))
        .joint("turn", "revolute", "b", "c", axis=(0, 0, 1), xyz=(1, 0, 0))
        .joint("follow", "revolute", "c", "d", axis=(0, 0, 1), mimic=("turn", -0.5, 0.1))
        .joint("ball", "spherical", "d", "e").frame("tool", "d", xyz=(1, 0, 0)).build()
    )  # fmt: skip
    t, n = np.linspace(0.0, 1.0, 4), 4
    start = rm.random_state(robot, 2)[0]
    q = np.stack([rm.integrate(robot, start, 0.2 * s * np.ones(robot.nv)) for s in t])
    v, tau, h = (rng.normal(size=(n, k)) for k in (robot.nv, robot.nv, 6))

    class Told(SimpleNamespace):
        def quantity(self, name):
            return {"tau": tau, "v": v, "q": q}[name]

        def frame_pose(self, name):
            return rm.frame_pose(robot, q, name)

        def __len__(self):
            return n

    run = Told(robot=robot, t=t, q=q, v=v, tau=tau, momentum=h, energy=rng.normal(size=n),
               signal_columns={}, signals={})  # fmt: skip
    place = {name: robot.joints[name].v.start for name in ("spin", "cyl", "uni", "turn", "ball")}
    at = {name: robot.joints[name].q.start for name in ("cyl", "uni", "turn")}
    angular = [kind(robot.joints["cyl"]).freedoms[k].angular for k in range(2)]
    turning, sliding = angular.index(True), angular.index(False)
    turns = [place["cyl"] + turning, place["uni"], place["uni"] + 1, place["turn"]]
    turns += [place["ball"] + k for k in range(3)]  # which has no angles
    slides = [place["cyl"] + sliding]
    angles = q[:, [at["cyl"] + turning, at["uni"], at["uni"] + 1, at["turn"]]]
    ball = robot.joints["ball"].q
    away = 2.0 * quaternion.log(quaternion.mul(quaternion.conjugate(q[:1, ball]), q[:, ball]))
    angles = np.degrees(np.column_stack([angles, 0.1 - 0.5 * angles[:, 3], away]))
    speeds = np.insert(v[:, turns], 4, -0.5 * v[:, place["turn"]], axis=1)
    x = rm.frame_pose(robot, q, "bus")
    R = pose.to_rotation_matrix(x)
    since = R[0].T @ R
    size = np.arccos(np.clip(0.5 * (np.trace(since, axis1=1, axis2=2) - 1.0), -1.0, 1.0))
    axis = since[:, [2, 0, 1], [1, 2, 0]] - since[:, [1, 2, 0], [2, 0, 1]]
    expected = {
        "joint angles, °": angles,
        "base attitude, °": np.degrees(axis / (2.0 * np.sinc(size / np.pi))[:, None]),
        "joint torques, N m": tau[:, turns], "joint speeds, °/s": np.degrees(speeds),
        "wheel speeds, rpm": v[:, [place["spin"]]] * 30.0 / np.pi,
        "wheel torques, N m": tau[:, [place["spin"]]],
        "joint travels, m": q[:, [at["cyl"] + sliding]],
        "joint speeds, sliding, m/s": v[:, slides], "joint forces, N": tau[:, slides],
        "base position, m": pose.translation(x),
        "linear momentum, N s": np.stack([np.linalg.norm(h[:, :3] - h[0, :3], axis=1),
                                          np.linalg.norm(h[:, :3], axis=1)], axis=-1),
        "angular momentum, N m s": np.stack([np.linalg.norm(h[:, 3:] - h[0, 3:], axis=1),
                                             np.linalg.norm(h[:, 3:], axis=1)], axis=-1),
        "energy, J": run.energy[:, None],
    }  # fmt: skip
    assert plots.offered(run) == list(plots.PLOTS) == list(expected)
    for name, values in expected.items():
        found = plots.plot_of(run, name)
        assert np.allclose(found.values, values, atol=1e-7), name
        assert name.endswith(found.unit)
        assert len(found.names) == values.shape[1]
    torques = plots.plot_of(run, "joint torques, N m").names
    assert torques == plots.plot_of(run, "joint speeds, °/s").names[:4] + torques[4:]
    still = rm.load("spart17_planar")
    start = rm.neutral(still)
    q, v, tau = np.tile(start, (n, 1)), np.zeros((n, still.nv)), np.zeros((n, still.nv))
    run = Told(robot=still, t=t, q=q, v=v, tau=tau, signal_columns={}, signals={})
    missing = ("joint travels, m", "joint forces, N", "wheel speeds, rpm", "wheel torques, N m")
    assert not set(missing) & set(plots.offered(run))


def test_other_trees_are_seen_side_by_side_unless_above(rng):
    robot = rm.load_scenario("capture").robot
    base = [i for i, joint in enumerate(robot.joints) if joint.parent < 0]
    x = np.tile(pose.from_translation(np.zeros(3)), (3, len(robot.bodies), 1))
    for k in range(3):
        x[k, base[0]] = pose.from_translation(np.array([1.0, 2.0, 3.0 + k]))
        x[k, base[1]] = pose.from_translation(np.array([4.0 + k, 7.0, 0.0]))
    way = np.array([4.0, 5.0])
    assert np.allclose(scene.toward_others(robot, x), way / np.linalg.norm(way))
    x[:, base[1]] = pose.from_translation(np.array([1.1, 2.1, 30.0]))
    assert scene.toward_others(robot, x) is None
    assert scene.toward_others(rm.load("servicer"), x) is None


def test_marks_of_constraints_are_shown_while_they_act():
    robot = rm.load_scenario("capture").robot
    constraint = robot.constraints[0]
    x = rm.poses(robot, rm.random_state(robot, 1)[0])
    turn, at = constraint_marks.marked_at(constraint, x)
    for label in (None, SimpleNamespace(visible=None)):
        for t, on in ((0.9, False), (1.0, True), (1.9, True), (2.0, False), (None, True)):
            node = SimpleNamespace(visible=None, position=None, wxyz=None)
            constraint_marks.ConstraintMark(constraint, node, 1.0, 2.0, label).show(t, x, 0.25)
            assert node.visible is (None if t is None else on)
            assert (node.position is not None) == on
            if on:
                assert np.allclose(node.position, 0.25 * np.round(at / 0.25))
                assert np.allclose(node.wxyz, 0.25 * np.round(turn / 0.25))
            if label is not None:
                assert label.visible is node.visible or t is None


def test_signals_of_components_are_grouped_by_unit(run, rng):
    column = lambda size, unit: SimpleNamespace(  # noqa: E731
        size=size, unit=unit, components=lambda robot: [(f"e{k}", unit) for k in range(size[0])]
    )
    columns = {"pd.a": column((), "N"), "gyro.rate": column((3,), "rad/s"), "pd.b": column((), "N"),
               "pd.c": column((), "m"), "two.x": column((2,), "m")}  # fmt: skip
    signals = {name: rng.normal(size=(4, *own.size)) for name, own in columns.items()}
    told = type("Told", (SimpleNamespace,), {"__len__": lambda self: 4})(
        signal_columns=columns, signals=signals, robot=run.robot
    )
    columns["pd.c"].components = lambda robot: [("", "m")]
    found = panels._signals(told, None)
    assert [(p.title, p.unit, [line.label for line in p.lines]) for p in found] == [
        ("signals of pd", "N", ["a", "b"]), ("gyro.rate", "rad/s", ["x", "y", "z"]),
        ("pd.c", "m", ["pd.c"]), ("two.x", "m", ["e0", "e1"]),
    ]  # fmt: skip
    assert np.array_equal(found[0].lines[1].values, signals["pd.b"])
    assert np.array_equal(found[1].lines[2].values, signals["gyro.rate"][:, 2])
    told.t = np.arange(4.0)
    labels = ["pd.a, N", "gyro.rate, rad/s", "pd.b, N", "pd.c, m", "two.x, m"]
    for name in ("pd.a", "pd.b"):
        columns[name].components = lambda robot: [("", "N")]
    assert list(plots._signals(told)) == labels
    for name, names in (("gyro.rate, rad/s", ["x", "y", "z"]), ("two.x, m", ["e0", "e1"]),
                        ("pd.c, m", ["pd.c"])):  # fmt: skip
        plot, key = plots.plot_of(told, name), name.partition(",")[0]
        assert (plot.names, plot.unit) == (names, name.rpartition(" ")[2])
        assert np.array_equal(plot.values, signals[key].reshape(4, -1))


def test_colours_are_between_their_bounds_and_boundaries_have_a_neighbour_outside():
    colors = np.array([[0, 0, 0], [100, 50, 0], [200, 250, 40]])
    values = np.array([3.0, 4.0, 5.0, 4.5, np.nan, -9.0])
    found = analysis_shapes.ramp(values, 3.0, 5.0, colors)
    assert found.tolist() == [
        [0, 0, 0], [100, 50, 0], [200, 250, 40], [150, 150, 20], [0, 0, 0], [0, 0, 0],
    ]  # fmt: skip
    mask = np.zeros((5, 5, 6), dtype=bool)
    mask[1:4, 1:5, 0:5] = True
    edge = analysis_shapes.boundary(mask)
    inner = np.zeros_like(mask)
    inner[2:3, 2:4, 1:4] = True
    assert np.array_equal(edge, mask & ~inner)


def test_a_drawing_is_cleaned_and_keeps_its_size():
    svg = (
        '<?xml?><svg a="1" viewBox="0 0 10 20" b="2"><metadata>x</metadata><g id="used"/>'
        '<g id="free"/><path d="M 1.25 2.04 L 3.0 4" style="stroke: #123456"/>'
        '<use href="#used"/></svg>'
    )
    assert html_page._cleaned(svg, "two") == (
        '<svg role="img" aria-label="two" viewBox="0 0 10 20"><g id="used"/><g/>'
        '<path d="M 1.2 2 L 3 4" style="stroke: #123456"/><use href="#used"/></svg>'
    )


def test_the_coupling_of_a_joint_is_the_largest_of_its_own_speeds(monkeypatch, rng):
    robot = rm.random_robot(3, bodies=5, kinds=("spherical", "revolute", "universal"))
    B = rng.normal(size=(6, robot.nv - 6))
    monkeypatch.setattr(analysis_shapes, "evaluated", lambda fast, name, q: B[None])
    found = analysis_shapes.joint_coupling(SimpleNamespace(robot=robot), rm.neutral(robot))
    sizes = np.r_[np.zeros(6), np.linalg.norm(B[:3], axis=0)]
    own = {joint.name: sizes[joint.v].max() for joint in robot.joints[1:]}
    assert found == pytest.approx(own)


def role(inertia, com=(0.0, 0.0, 0.0), axis=(0, 0, 1), frame=False):
    made = rm.Builder("one").body("bus", mass=50.0, inertia=(5, 5, 5))
    made.body("x", mass=12.0, inertia=inertia, com=com)
    made.joint("to_x", "revolute", "bus", "x", axis=axis, xyz=(1, 0, 0))
    if frame:
        made.frame("tip", "x", xyz=(0, 0, 1))
    return link_roles.role_of(made.build(), 1)


def test_roles_without_names_follow_from_inertia_and_axis():
    disc, ball, plate = (0.5, 0.5, 1.0), (0.4, 0.4, 0.4), (1.0, 4.0, 5.0)
    assert role(disc) == role(ball) == link_roles.WHEEL
    assert role(disc, axis=(1, 0, 0)) == link_roles.PANEL  # turns in its own plane
    assert role(plate, com=(1.0, 0.0, 0.0), axis=(0, 1, 0)) == link_roles.PANEL
    assert role(disc, com=(0.0, 0.0, 0.3)) == link_roles.WHEEL  # along its axis
    assert role(disc, com=(0.3, 0.0, 0.0)) == link_roles.PANEL
    assert role(ball, com=(0.5, 0.0, 0.0)) == link_roles.BOOM
    assert role(disc, frame=True) != link_roles.WHEEL
