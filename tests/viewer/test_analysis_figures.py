"""Figures of analyses, read back from what is drawn and compared with the numbers given."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import remora as rm
from remora.algebra import pose
from remora.analysis.cells import Grid
from remora.analysis.jacobian_conditioning import NEAR, SINGULAR
from remora.viewer.figures import workspace_figures as figures
from remora.viewer.figures.analysis_figures import (
    conditioning_figure,
    interval_figure,
    sensitivity_figure,
)
from remora.viewer.figures.interconnection_figure import interconnection_figure
from remora.viewer.figures.percentile_bands import batch_columns, plot_batch
from remora.viewer.report import animation_html, tool_story
from remora.viewer.report.analysis_page import AnalysisPage

pytest.importorskip("matplotlib")


def test_a_sensitivity_is_drawn_in_millimetres_and_percent(rng):
    jacobian, deviations = rng.normal(size=(3, 4)), np.array([0.1, 0.2, 0.05, 0.3])
    size = np.linalg.norm(jacobian * deviations, axis=0)
    found = SimpleNamespace(
        contributions=size, labels=["a", "b", "c", "d"], frame=SimpleNamespace(name="tool"),
        deviations=deviations, miss=lambda x: x @ jacobian.T, rms=float(np.linalg.norm(size)),
    )  # fmt: skip
    misses = rng.normal(size=(50, 3))
    bars, spread = sensitivity_figure(found, misses).axes
    order = np.argsort(-size)
    assert [patch.get_width() for patch in bars.patches] == pytest.approx(1e3 * size[order])
    assert [text.get_text() for text in bars.get_yticklabels()] == [found.labels[k] for k in order]
    drawn, linear, rms = spread.lines
    assert drawn.get_xdata() == pytest.approx(1e3 * np.sort(np.linalg.norm(misses, axis=1)))
    assert drawn.get_ydata() == pytest.approx(np.arange(1.0, 101.0, 2.0))
    x, part = linear.get_data()
    assert part[[0, -1]] == pytest.approx([0.0, 100.0])
    covariance = (jacobian * deviations**2) @ jacobian.T
    other = rng.multivariate_normal(np.zeros(3), covariance, 20_000)
    for percent in (10, 50, 90):
        expected = 1e3 * np.percentile(np.linalg.norm(other, axis=1), percent)
        assert np.interp(percent, part, x) == pytest.approx(expected, rel=0.03)
    assert rms.get_xdata() == pytest.approx([1e3 * found.rms] * 2)
    assert spread.get_xlim() == (0.0, pytest.approx(np.percentile(x, 99.8)))
    assert f"rms {1e3 * found.rms:.2f} mm" in spread.texts[0].get_text()


@pytest.mark.parametrize("joints", [("one", "two"), ()])
def test_a_conditioning_is_drawn_with_what_is_near(joints):
    t = np.linspace(0.0, 4.0, 9)
    values = np.stack([2.0 + t, 1.0 + 0.1 * t, np.abs(t - 2.0) * 0.5 / SINGULAR + 1e-3], axis=-1)
    condition = values[:, 0] / values[:, 2]
    share = np.stack([0.3 - 0.05 * t, 0.5 + 0.1 * t], axis=-1)[:, : len(joints)]
    found = SimpleNamespace(
        t=t, singular_values=values, condition=condition, smallest=values[:, 2], joints=joints,
        frame="tool", base="fixed", limit_share=share, timed=bool(joints),
    )  # fmt: skip
    axes = conditioning_figure(found).axes
    assert len(axes) == 2 + bool(joints)
    for k, line in enumerate(axes[0].lines):
        assert (line.get_label(), line.get_xdata().tolist()) == (f"σ{k + 1}", t.tolist())
        assert np.array_equal(line.get_ydata(), values[:, k])
    assert axes[0].get_title("left") == "singular values of the Jacobian of tool, fixed base"
    curve, level = axes[1].lines
    assert np.array_equal(curve.get_ydata(), condition)
    assert level.get_ydata()[0] == SINGULAR
    shaded = np.concatenate([path.vertices for path in axes[1].collections[0].get_paths()])
    near = t[condition > SINGULAR]
    assert (shaded[:, 0].min(), shaded[:, 0].max()) == (near[0], near[-1])
    assert axes[-1].get_xlabel() == ("time, s" if joints else "point of the path")
    if joints:
        drawn = axes[2].lines[:2]
        assert np.allclose([line.get_ydata() for line in drawn], 100.0 * share.T)
        assert [line.get_label() for line in drawn] == ["one", "two"]
        assert np.ptp(axes[2].patches[0].get_extents().height) == 0.0
        assert axes[2].patches[0].get_height() == pytest.approx(100.0 * NEAR)


def test_systems_have_a_colour_of_their_own_until_colours_run_out():
    names = tuple(f"s{k}" for k in range(11))
    graph = SimpleNamespace(names=names, parents=(-1, *range(10)), black_boxes=(), labels=names)
    ax = interconnection_figure(graph).axes[0]
    discs = [p for p in ax.patches if type(p).__name__ == "Circle" and p.get_facecolor()[3] > 0.0]
    colors = [disc.get_facecolor() for disc in discs]
    assert len(discs) == 11
    assert len(set(colors[:8])) == 8
    assert colors[8:] == colors[:3]


def test_cells_of_a_plane_are_drawn_where_they_are():
    grid = Grid(np.array([-1.0, 0.5]), 0.5, (4, 3))
    best, mask = np.arange(12.0).reshape(4, 3), np.ones((4, 3), dtype=bool)
    mask[0, 0] = mask[3, 1] = False
    found = SimpleNamespace(
        axes=("x", "z"), mask=mask, best=best, dexterity=None, reached=mask, grid=grid,
        measure="volume", kind="reachable", volume=2.5,
    )  # fmt: skip
    ax = figures.workspace_figure(found).axes[0]
    picture = ax.images[0]
    assert picture.get_extent() == pytest.approx([-1.0, 1.0, 0.5, 2.0])
    shown = np.ma.filled(picture.get_array().astype(float), np.nan)
    assert np.array_equal(shown, np.where(mask, best, np.nan).T, equal_nan=True)
    assert picture.origin == "lower"
    assert ax.get_title("left") == "reachable workspace, 2.500 m²"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x, m", "z, m")


def test_boundaries_of_straight_paths_are_drawn_by_reason():
    angle = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
    edge = np.stack([np.cos(angle), 0.0 * angle, 2.0 * np.sin(angle)], axis=-1)
    reason = ["elbow"] * 4 + ["singular"] * 5 + ["wrist"] * 3
    found = SimpleNamespace(plane="xz", boundary=edge, reason=reason, start=np.array([0.1, 9, 0.2]),
                            base="fixed", volume=1.25)  # fmt: skip
    ax = figures.straight_path_figure(found).axes[0]
    assert np.array_equal(ax.patches[0].get_xy()[:12], edge[:, [0, 2]])
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    assert set(lines) == {"singular", "limit of elbow", "limit of wrist", "start"}
    assert lines["start"].tolist() == [[0.1, 0.2]]
    assert len({line.get_color() for line in ax.lines}) == 4
    for label, own in (("limit of elbow", range(4)), ("singular", range(4, 9))):
        drawn = lines[label]
        shown = {k for k in range(12) if np.isfinite(drawn[k, 0])}
        assert shown == {(k + d) % 12 for k in own for d in (-1, 0, 1)}
        assert np.array_equal(drawn[12], drawn[0], equal_nan=True)
        assert np.array_equal(drawn[sorted(shown)], edge[sorted(shown)][:, [0, 2]])
    assert ax.get_title("left") == "straight paths, fixed base, 1.250 m²"
    robot = rm.load("servicer")
    with_robot = figures.straight_path_figure(found, robot, rm.neutral(robot)).axes[0]
    assert len(with_robot.patches) > len(ax.patches)
    assert len(figures.straight_path_figure(found, robot).axes[0].patches) == len(ax.patches)
    with pytest.raises(rm.errors.InvalidValue, match="has no figure"):
        figures.straight_path_figure(SimpleNamespace(plane=None))


@pytest.mark.parametrize("plane", ["xz", None])
def test_shells_of_a_floating_workspace_are_rings_about_the_centre_of_mass(plane):
    robot = rm.load("vt18_satellite")
    q = rm.random_state(robot, 3)[0]
    found = SimpleNamespace(
        plane=plane, path_independent=np.array([[0.5, 1.0], [1.2, 1.5]]),
        path_dependent=np.array([[0.2, 2.0]]), reachable=np.array([[0.0, 0.1], [0.2, 2.0]]),
    )  # fmt: skip
    ax = figures.floating_workspace_figure(found, robot, q).axes[0]
    com = rm.center_of_mass(robot, q)[[0, 2] if plane else [0, 1]]
    rings = [p for p in ax.patches if type(p).__name__ == "Annulus"]
    sizes = [(ring.get_radii()[0], ring.get_width()) for ring in rings]
    assert np.allclose(sizes, [(1.0, 0.5), (1.5, 0.3), (2.0, 1.8)])
    assert all(np.allclose(ring.get_center(), com) for ring in rings)
    assert [ring.get_label() for ring in rings if ring.get_label()] == [
        "path-independent", "path-dependent",
    ]  # fmt: skip
    assert ax.get_xlim() == pytest.approx((com[0] - 2.1, com[0] + 2.1))
    assert ax.get_ylim() == pytest.approx((com[1] - 2.1, com[1] + 2.1))
    assert np.allclose(ax.lines[-1].get_xydata(), com)
    assert ax.get_xlabel() == ("x, m" if plane else "radius, m")
    alone = figures.floating_workspace_figure(found).axes[0]
    assert alone.get_xlim() == pytest.approx((-2.1, 2.1))


def test_ellipses_and_outlines_of_robots():
    figure, ax = figures.new_axes()
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    told = SimpleNamespace(
        axes=turn, semi_axes=np.array([2.0, 0.5]), center=np.array([1.0, 5.0, 3])
    )
    figures.draw_ellipse(ax, told, "xz", 0.1, "red", "")
    curve = ax.lines[0].get_xydata() - [1.0, 3.0]
    own = curve @ turn / [0.2, 0.05]
    assert np.allclose((own**2).sum(axis=1), 1.0)
    assert np.allclose(curve[0], curve[-1])
    assert np.ptp(np.unwrap(np.arctan2(own[:, 1], own[:, 0]))) == pytest.approx(2.0 * np.pi)
    assert figure.axes == [ax]
    robot = rm.load("spart17_planar")
    q = rm.random_state(robot, 4)[0]
    figures.draw_robot(ax, robot, q, "xy")
    x = rm.poses(robot, q)
    outlines = [patch.get_xy()[:-1] for patch in ax.patches]
    shapes = [(x[i], shape) for i, body in enumerate(robot.bodies) for shape in body.geometry
              if shape.kind in ("box", "cylinder", "capsule")]  # fmt: skip
    assert len(outlines) == len(shapes) > 0
    for outline, (at, shape) in zip(outlines, shapes, strict=True):
        size = shape.size if shape.kind == "box" else (2 * shape.size[0],) * 2 + (shape.size[1],)
        corners = [[a, b, c] for a in (-0.5, 0.5) for b in (-0.5, 0.5) for c in (-0.5, 0.5)]
        M = pose.to_matrix(pose.compose(at, shape.placement))
        points = (np.array(corners) * size @ M[:3, :3].T + M[:3, 3])[:, :2]
        hull = ConvexHull(np.round(points, 12))
        assert ConvexHull(outline).volume == pytest.approx(hull.volume)
        area = 0.5 * sum(a[0] * b[1] - a[1] * b[0]
                         for a, b in zip(outline, np.roll(outline, -1, axis=0), strict=True)
                         )  # fmt: skip
        assert area == pytest.approx(hull.volume)  # counter-clockwise, and nothing inside
        assert np.allclose(
            np.sort(outline[:, 0])[[0, -1]], [points[:, 0].min(), points[:, 0].max()]
        )


def test_bands_of_a_batch_are_named_and_in_degrees():
    robot = rm.load("vt18_satellite")
    t, rng = np.linspace(0.0, 1.0, 4), np.random.default_rng(1)
    q, v = rng.normal(size=(5, 4, robot.nq)), rng.normal(size=(5, 4, robot.nv))
    signals = {"gyro.rate": rng.normal(size=(5, 4, 2)), "on": rng.normal(size=(5, 4))}

    class Told(SimpleNamespace):
        def __len__(self):
            return 5

    batch = Told(robot=robot, t=t, q=q, v=v, ok=np.ones(5, dtype=bool), signals=signals,
                 signal_units={"gyro.rate": "rad/s"})  # fmt: skip
    known = batch_columns(batch)
    place = robot.joints["J2"].q.start, robot.joints["J2"].v.start
    assert np.array_equal(known["q.J2"][0], q[..., place[0]])
    assert np.array_equal(known["v.J2"][0], v[..., place[1]])
    assert np.array_equal(known["gyro.rate[1]"][0], signals["gyro.rate"][..., 1])
    assert (known["gyro.rate[1]"][1], known["on"][1]) == ("rad/s", "")
    axes = plot_batch(batch, "q.J2", "gyro.rate[1]", "on").axes
    titles = [ax.get_title("left") for ax in axes]
    assert titles == ["q.J2, deg", "gyro.rate[1], deg/s", "on"]
    values = (np.degrees(q[..., place[0]]), np.degrees(signals["gyro.rate"][..., 1]), signals["on"])
    for ax, own in zip(axes, values, strict=True):
        assert ax.lines[0].get_ydata() == pytest.approx(np.percentile(own, 50, axis=0))
        low = ax.collections[0].get_paths()[0].vertices[:, 1].min()
        assert low == pytest.approx(np.percentile(own, 1, axis=0).min())
    plain = plot_batch(batch, "q.J2", degrees=False).axes[0]
    assert plain.lines[0].get_ydata() == pytest.approx(np.percentile(q[..., place[0]], 50, axis=0))
    assert len(plot_batch(batch).axes) == len(robot.joints) - 1
    with pytest.raises(rm.errors.UnknownName, match=r"q\.none"):
        plot_batch(batch, "q.none")


@pytest.mark.parametrize(
    ("duration", "factor", "frames"),
    [(0.0, 1.0, 1), (10.0, 1.0, 300), (15.0, 1.0, 450), (100.0, 5.0, 600), (0.01, 0.005, 60)],
)
def test_animations_are_as_fast_as_they_must_be(duration, factor, frames):
    found = animation_html.pace(duration, 10_000)
    assert found[1] == (round(30.0 * duration / found[0]) or 1)
    if duration:
        seconds = duration / found[0]
        assert seconds <= animation_html.LONGEST
        assert seconds >= min(animation_html.SHORTEST, duration) or found[0] > 1.0
        assert animation_html.pace(duration, 40)[1] == min(40, found[1])
    if duration == 10.0:
        assert found == (factor, frames)


def test_sizes_of_impulses_and_places():
    assert tool_story._sizes(np.array([3.0, 4.0, 0, 0, 0.6, 0.8])) == ("5", "1")
    assert tool_story._sizes(np.array([-2.0])) == ("-2", "")
    assert tool_story._sizes(None) == tool_story._sizes(np.zeros(6)) == ("", "")
    assert tool_story._at(np.array([-0.0, -1.25, 2.0])) == "(0.000, −1.250, 2.000)"


def test_the_page_of_an_analysis_has_its_notices_and_files():
    page = AnalysisPage("title", "sub", [("1 m", "far")], [], [("robot", "x<y")], ["near"])
    text = page.html(["a.npz"])
    assert "<b>1 m</b><span>far</span>" in text
    assert '<p class="notice">near</p>' in text
    assert "<tr><th>robot</th><td>x&lt;y</td></tr>" in text
    assert "Data beside this page: <code>a.npz</code>" in text
    none = AnalysisPage("title", "sub", [], [], []).html()
    assert "Data beside" not in none
    assert re.search(r"</table>\s*</section>", none)


def test_intervals_are_relative_and_an_estimate_of_zero_has_none():
    ax = interval_figure(
        ["a", "b", "c"], np.array([2.0, 0.0, -4.0]), np.array([0.5, 0.1, 0.2])
    ).axes[0]
    widths = [patch.get_width() for patch in ax.patches]
    assert widths == pytest.approx([25.0, np.nan, 5.0], nan_ok=True)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]
