"""The pages without a browser: state, refusals, and what a control does."""

import importlib
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.viewer.interpolation import configurations
from remora.viewer.page.floating_drag import drag_joint
from remora.viewer.page.page import FREE, MASS, RIDE
from remora.viewer.page.plots import offered, plot_of, svg, thinned, ticks
from remora.viewer.page.robot_page import freedoms
from remora.viewer.page.run_page import RunPage
from remora.viewer.page.server import own_origins


@pytest.fixture
def page(run):
    with rm.view(run, port=0, open=False) as page:
        yield page


@pytest.fixture
def servicer():
    with rm.view("servicer", port=0, open=False) as page:
        yield page


def base_turn(page):
    return np.degrees(np.linalg.norm(pose.to_rpy(page.q[:8])))


# Runs ---------------------------------------------------------------------------------------------


def test_time_and_samples(page, run):
    assert (page.time, page.index) == (0.0, 0)
    assert np.array_equal(page.q, run.q[0])
    page.step(3)
    assert (page.time, page.index) == (run.t[3], 3)
    assert np.array_equal(page.q, run.q[3])
    page.time = 1e9
    assert page.index == len(run) - 1
    page.step(-len(run))
    assert page.index == 0
    page.time = 0.5 * (run.t[4] + run.t[5])
    middle, _ = run.at(page.time)
    assert np.abs(rm.difference(run.robot, page.q, middle)).max() < 1e-3


def test_buttons_step_by_samples_or_to_the_ends(page, run):
    last = len(run) - 1
    press(page, "sample", "▶")
    press(page, "sample", "▶")
    assert page.index == 2
    press(page, "sample", "◀")
    assert page.index == 1
    page.step(last // 2)
    press(page, "sample", "▶|")
    assert page.index == last
    page.step(-1)
    press(page, "sample", "|◀")
    assert page.index == 0


def press(page, name, value):
    """Do what a click on a button of a browser does."""
    for handle in page.server.gui._gui_input_handle_from_uuid.values():
        if getattr(handle._impl.props, "label", None) == name:
            handle._impl.value = value
            for function in handle._impl.update_cb:
                function(SimpleNamespace(target=handle, client_id=1, client=None))


def test_playing_moves_the_robot_and_ends(page, run):
    before = page.scene.nodes[-1].position.copy()
    page.play()
    assert page.playing
    wait_for(lambda: page.index > 8)
    page.pause()
    assert np.linalg.norm(page.scene.nodes[-1].position - before) > 1e-3
    still = page.time
    time.sleep(0.1)
    assert page.time == still
    page._loop.value = False
    page.time = run.t[-1] - 0.05
    page.play()
    wait_for(lambda: not page.playing)
    assert page.time == run.t[-1]


def test_what_is_sent_is_where_the_bodies_are(page, run):
    page.follow.value = FREE
    page.time = run.t[40]
    x = run.poses[40]
    for node, there in zip(page.scene.nodes, x, strict=True):
        assert np.allclose(node.wxyz, there[:4])
        assert np.allclose(node.position, pose.translation(there))
    assert np.allclose(page.scene.world.position, 0)


@pytest.mark.parametrize("what", [MASS, RIDE, "tool", "base"])
def test_the_camera_follows_by_the_world_moving_the_other_way(page, run, what):
    page.follow.value = what
    page.time = run.t[60]
    world = pose.from_parts(page.scene.world.wxyz, page.scene.world.position)
    point = {MASS: run.com, "tool": run.frame("tool").position}.get(
        what, run.frame("bus").position
    )[60]
    assert np.abs(pose.transform_point(world, point)).max() < 1e-6  # sent as it is recorded
    turned = pose.compose(world, run.poses[60, 0])
    if what == RIDE:
        assert np.allclose(np.abs(turned[0]), 1)


def test_everything_can_be_shown_at_once(page, run):
    page.show(*page.toggles)
    assert page._reactions.visible
    assert page._axes.visible
    page.time = run.t[50]
    assert all(trail._pieces for trail in page._trails)
    shown = [node.visible for trail in page._trails for end, node in trail._pieces]
    assert any(shown)
    assert not all(shown)
    for name in ("reactions", "wrenches", "momentum"):
        assert min(page._most[name]) >= 0 < max(page._most[name])
    assert page._external._handle.points.shape == (1, 2, 3)
    assert "reactions" in page._legend.content


def test_arrows_and_axes_have_labels(page, run):
    page.time = 2.0
    page.show("wrenches", "momentum", "frames")
    try:
        page.redraw()
        tips = {name: [n.text for n in arrows._tips._nodes if n.visible] for name, arrows in
                {"wrenches": page._external, "momentum": page._momentum}.items()}  # fmt: skip
        assert tips["wrenches"] == ["F 1.000 N"]
        assert [text.split()[0] for text in tips["momentum"]] == ["p", "h"]
        assert page._axes_labels.visible
        page.show("labels", visible=False)
        assert not any(node.visible for node in page._external._tips._nodes)
        assert not page._axes_labels.visible
    finally:
        page.show("labels")
        page.show("wrenches", "momentum", "frames", visible=False)
    assert not any(node.visible for node in page._external._tips._nodes)
    assert not page._axes_labels.visible


def test_a_click_on_a_name_shows_that_line_or_all(page):
    shown = page._shown[0]
    every = shown.names
    assert len(every) > 3
    shown._pick.value = every[1]
    assert shown.names == [every[1]]
    shown._pick.value = every[1]
    assert shown.names == every
    shown.pick("elbow")
    assert shown.names == ["elbow_pitch"]
    shown.pick("")
    assert shown.names == every


def test_every_plot_has_finite_lines_and_names(run):
    for name in offered(run):
        made = plot_of(run, name)
        assert made.values.shape == (len(run), len(made.names)), name
        assert name.endswith(made.unit)
        assert np.all(np.isfinite(made.values))
        assert svg(made).count("<polyline") == len(made.names)


def test_decimation_keeps_the_peaks():
    t = np.linspace(0, 1, 60_001)
    y = np.sin(3 * t)
    y[31_234] = 7.0
    few_t, few_y = thinned(t, y, 250)
    assert len(few_t) < 600
    assert few_y.max() == 7.0
    assert np.all(np.diff(few_t) > 0)
    assert (few_t[0], few_t[-1]) == (0, 1)


def test_ticks_are_round_and_inside():
    assert ticks(-1.02, 3.3, 4) == [-1, 0, 1, 2, 3] or ticks(-1.02, 3.3, 4) == [0, 2]
    for low, high in ((1e-13, 3e-13), (-4e5, 2e6), (0.99, 1.01)):
        found = ticks(low, high, 4)
        assert 2 <= len(found) <= 6
        assert low - 1e-15 <= found[0] < found[-1] <= high + 1e-9 * abs(high)


def test_between_samples_the_way_is_short(run):
    t = 0.5 * (run.t[:-1] + run.t[1:])
    q = configurations(run, t)
    middle, _ = run.at(t)
    assert np.abs(rm.difference(run.robot, q, middle)).max() < 1e-2
    assert np.array_equal(configurations(run, run.t[:-1]), run.q[:-1])


def test_a_page_shows_itself_in_a_notebook(page):
    assert f'<iframe src="{page.url}"' in page._repr_html_()
    assert page.url in repr(page)


# Robots -------------------------------------------------------------------------------------------


def test_a_slider_turns_a_floating_base_and_not_a_held_one(servicer):
    robot = servicer.robot
    start = servicer.q
    servicer.move(shoulder_pitch=1.0)
    target = start.copy()
    target[robot.joints["shoulder_pitch"].q] = servicer.q[robot.joints["shoulder_pitch"].q]
    wanted = drag_joint(robot, lambda q: rm.dynamics.base_response(robot, q), start, target)
    assert np.abs(servicer.q - wanted).max() < 1e-12
    assert base_turn(servicer) > 5
    servicer.reset()
    assert np.array_equal(servicer.q, start)
    servicer.base = "held"
    servicer.move(shoulder_pitch=1.0)
    assert base_turn(servicer) == 0
    servicer.base = "floating"
    assert servicer.base == "floating"
    with pytest.raises(rm.errors.UnknownName, match="sliding"):
        servicer.base = "sliding"
    with pytest.raises(rm.errors.UnknownName, match="elbow_pitch"):
        servicer.move(knee=1.0)


def test_there_is_a_slider_for_each_freedom_within_its_limits():
    robot = rm.load("servicer")
    found = freedoms(robot)
    assert [f.name for f in found] == robot.joints.names[1:]
    for freedom, joint in zip(found, robot.joints[1:], strict=True):
        assert (freedom.low, freedom.high) == (joint.limits.lower[0], joint.limits.upper[0])
        assert freedom.unit == "°"


@pytest.mark.parametrize("base", ["free", "fixed", "planar", "spherical"])
def test_every_kind_of_joint_and_base_has_sliders(base):
    robot = rm.random_robot(5, bodies=12, base=base)
    names = [f.name for f in freedoms(robot)]
    assert len(names) == robot.nv - (6 * sum(j.kind == "free" for j in robot.joints))
    with rm.view(robot, port=0, open=False) as page:
        page.move(**dict.fromkeys(names, 0.2))
        assert np.all(np.isfinite(page.q))
        assert np.abs(rm.difference(robot, rm.neutral(robot), page.q)).max() > 0.1
        if base != "free":
            with pytest.raises(rm.errors.InvalidValue, match="cannot float"):
                page.base = "floating"


def test_followers_have_no_slider():
    builder = rm.Builder("r").body("a", mass=1, inertia=(1, 1, 1)).body("b", mass=1)
    builder.body("c", mass=1).joint("lead", "revolute", "a", "b")
    builder.joint("follow", "revolute", "a", "c", mimic=("lead", -2.0, 0.25))
    assert [f.name for f in freedoms(builder.build())] == ["lead"]


# Refusals -----------------------------------------------------------------------------------------


def test_the_page_is_for_this_machine_alone(servicer):
    assert servicer.server.get_host() == "127.0.0.1"
    assert servicer.server.request_share_url() is None  # no tunnel to the internet
    with pytest.raises(rm.errors.UnknownName, match=r"known: .*grid"):
        servicer.show("halos")


@pytest.mark.parametrize(
    ("origin", "answer"),
    [
        (None, 101),
        ("http://127.0.0.1:{own}", 101),
        ("http://localhost:{own}", 101),
        ("http://127.0.0.1:{other}", 403),  # another program on this machine
        ("http://localhost:{other}", 403),
        ("http://127.0.0.1:{own}1", 403),
        ("http://127.0.0.1", 403),
        ("http://localhost", 403),
        ("https://127.0.0.1:{own}", 403),
        ("http://127.0.0.1:{own}/", 403),
        ("null", 403),
        ("https://example.com", 403),
        ("http://evil.localhost.com:{own}", 403),
    ],
)
def test_pages_from_elsewhere_may_not_listen(servicer, origin, answer):
    origin = origin and origin.format(own=servicer.port, other=servicer.port - 1)
    lines = [
        "GET / HTTP/1.1", f"Host: 127.0.0.1:{servicer.port}", "Connection: Upgrade",
        "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
        f"Sec-WebSocket-Protocol: viser-v{importlib.import_module('viser').__version__}",
        *([f"Origin: {origin}"] if origin else []),
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", servicer.port), timeout=10) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        assert int(connection.recv(1000).split()[1]) == answer


def test_browsers_leave_out_the_default_port():
    assert own_origins(80) == ["http://127.0.0.1", "http://localhost"]


def test_a_port_in_use_is_refused_and_stays_with_its_user():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            rm.RemoraError,
            match=rf"port {port} of .* is in use.*port={port + 1} \(.*--port {port + 1}\)",
        ):
            rm.view("servicer", port=port, open=False)
    with pytest.raises(rm.errors.InvalidValue, match="65535"):
        rm.view("servicer", port=70_000, open=False)


def test_what_is_not_there_or_not_whole_is_refused(tmp_path, run):
    with pytest.raises(rm.RemoraError, match="not the folder of a run, a robot file"):
        rm.view(tmp_path / "nowhere", port=0, open=False)
    with pytest.raises(rm.RemoraError, match="no run in this folder"):
        rm.view(tmp_path, port=0, open=False)
    with pytest.raises(rm.RemoraError, match="can be viewed, not 3"):
        rm.view(3, port=0, open=False)
    run.save(tmp_path / "run")
    (tmp_path / "run" / "t" / "c" / "0").unlink()
    with pytest.raises(rm.RemoraError, match="damaged"):
        rm.view(tmp_path / "run", port=0, open=False)


def test_a_run_without_samples_is_refused(run):
    empty = {name: values[:0] for name, values in run.columns.items()}
    with pytest.raises(rm.RemoraError, match="no samples yet"):
        RunPage(rm.Recording(run.robot, {}, empty), port=0)


def test_without_viser_the_message_says_how_to_get_it(monkeypatch):
    real = importlib.import_module

    def without(name, *rest):
        if name == "viser":
            raise ModuleNotFoundError("No module named 'viser'", name="viser")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(rm.RemoraError, match=r"pip install '\.\[view\]'"):
        rm.view("servicer", open=False)


def test_importing_remora_imports_no_viser():
    code = "import sys, remora; print([m for m in ('viser', 'trimesh') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


@pytest.mark.parametrize("base", ["free", "fixed"])
def test_a_kinematics_only_robot_is_moved_without_masses(base):
    robot = (
        rm.Builder("bare")
        .body("bus")
        .body("arm")
        .joint("elbow", "revolute", "bus", "arm", xyz=(1, 0, 0))
        .build(base=base, dynamics=False)
    )
    with rm.view(robot, port=0, open=False) as page:
        page.move(elbow=0.5)
        assert page.base == "held"
        assert page.q[-1] == pytest.approx(0.5, abs=1e-3)
        assert np.array_equal(page.q[:-1], rm.neutral(robot)[:-1])


# The target that is dragged -----------------------------------------------------------------------


@pytest.mark.parametrize("base", ["floating", "held"])
def test_a_tool_follows_its_target_and_a_floating_base_recoils(servicer, base):
    servicer.move(shoulder_pitch=0.5, elbow_pitch=-1.2, wrist_pitch=0.4)
    servicer.base = base
    before = servicer.q
    robot = servicer.robot
    start = rm.frame_pose(robot, before, "tool")
    goal = pose.from_parts(
        pose.rotation(start), pose.translation(start) + np.array([0.1, 0.05, -0.1])
    )
    assert servicer.reach("tool", goal) == "reached"
    there = rm.frame_pose(robot, servicer.q, "tool")
    assert np.abs(pose.translation(there) - pose.translation(goal)).max() < 1e-5
    assert (np.abs(servicer.q[:8] - before[:8]).max() > 1e-4) == (base == "floating")
    joints = [f.value * s.scale for f, s in zip(servicer._sliders, servicer.freedoms, strict=True)]
    assert np.allclose(joints, servicer.q[8:], atol=1e-9)
    servicer.reset()
    assert np.allclose(servicer.q, rm.neutral(robot))


def test_an_unreachable_target_is_approached_and_said_so(servicer):
    far = pose.from_translation(np.array([30.0, 0.0, 0.0]))
    assert servicer.reach("tool", far, turn=False).endswith("mm short of it")
    assert np.all(np.isfinite(servicer.q))
    with pytest.raises(rm.RemoraError):
        servicer.reach("nothing", far)


def test_the_handle_is_at_the_tool(servicer):
    servicer._drags.value = True
    tip = rm.frame_pose(servicer.robot, servicer.q, "tool")
    assert servicer._target.node.visible
    assert np.allclose(servicer._target.node.position, pose.translation(tip))
    assert servicer.follow.value == MASS
    servicer._target.node.position = tuple(pose.translation(tip) - [0.0, 0.0, 0.2])
    servicer._target._moved(None)
    assert "tool: " in servicer._outcome.content
    servicer._drags.value = False
    assert not servicer._target.node.visible
