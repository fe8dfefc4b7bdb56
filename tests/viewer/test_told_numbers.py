"""Words and numbers of reports: settings, loads, components, moments, bars, against own ones."""

import json
import math
import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.simulation.recording.constraint_switch import ConstraintSwitch
from remora.viewer import (
    command_words,
    component_words,
    load_words,
    run_tables,
)
from remora.viewer.figures.figures import marks
from remora.viewer.figures.panels import Line, Panel
from remora.viewer.page import timeline
from remora.viewer.report import conditioning_rows, html_page, peak_loads
from remora.viewer.report import report as report_module
from remora.viewer.report import report_sections as sections
from remora.viewer.report.report_sections import is_flat
from remora.viewer.report.stills import COUNT, still_times

pytest.importorskip("matplotlib")
MOTION = {"motion": {"from": 0.5, "to": [1.5]}, "breaks": [1.0, 3.0]}
CURVE = {"motion": {"times": [0.0, 2.0, 5.0], "values": [[0.1], [0.2], [0.3]]}}
THIRTEEN = {f"n{k}": k for k in range(14)}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"function": "f.<locals>.g"}, "function g"),
        ({"sum": [None, 2.0, {}, [3.0]]}, "2; 3"),
        ({"made by": "PD", "kp": 2.0, "sample_time": 0.5}, "PD: kp 2, every 0.5 s"),
        ({"made by": "PD", "kp": 2.0, "sample_time": 0.0}, "PD: kp 2"),
        ({"sampled": [1.0], "sample_time": 0.1}, "1, every 0.1 s"),
        ({"pulse": [0.5, 2.0], "value": [3.0, 0.0]}, "(3, 0) from 0.5 s to 2 s"),
        ({"profile": "linear", "times": [0.5, 1.0, 4.0]}, "linear profile, 3 points, 0.5 s to 4 s"),
        ({"profile": "linear", "times": []}, "linear profile, 0 points, "),
        ({"profile": 3.0}, "profile: 3"),
        (MOTION, "0.5 to 1.5 from 1 s to 3 s"),
        ({"motion": {"from": 1.0, "to": 2.0}}, "1 to 2 from 0 s to 0 s"),
        (CURVE, "0.1 to 0.3 from 0 s to 5 s, a curve through 3 points"),
        ({"motion": {"function": "f"}}, "function f"),
        ({"to": 2.0, "between": [1.0, 4.0]}, "to 2 from 1 s to 4 s"),
        ({"through": [1.0, 2.0], "times": [0.5, 4.0]}, "to 2 at 4 s, a curve through 2 points"),
        ({"a": 1.0, "b": [0.0, 0.0]}, "a: 1, b: zero"),
        (THIRTEEN, ", ".join(f"n{k}: {k}" for k in range(12)) + " and 2 more"),
        (dict(list(THIRTEEN.items())[:12]), ", ".join(f"n{k}: {k}" for k in range(12))),
        ([[1.0, 2.0], [3.0, 4.0]], "(1, 2, 3, 4)"),
        (list(range(1, 14)), "(" + ", ".join(map(str, range(1, 13))) + ", ...)"),
        (list(range(1, 13)), "(" + ", ".join(map(str, range(1, 13))) + ")"),
        (0.25, "0.25"),
        ("text", "text"),
    ],
)
def test_loads_in_words(given, text):
    assert load_words.loaded(given) == text


def test_settings_and_names_in_words():
    given = {"name": "a", "sample_time": 1.0, "kp": 2.0, "on": True, "off": False, "x_places": [1],
             "joints": ["a", "b"], "none": None, "goal": [1.0, 2.0]}  # fmt: skip
    assert load_words.settings_in_words(given) == ["kp 2", "on", "joints a, b", "goal (1, 2)"]
    assert len(load_words.settings_in_words(THIRTEEN)) == 12
    assert load_words.short("a" * 24) == "a" * 24
    assert load_words.short("abcdefghij" * 3) == "abcdefghijab…jabcdefghij"
    assert run_tables.labelled("x" * 40, ", y") == "x" * 15 + "…" + "x" * 15 + ", y"
    assert run_tables.labelled("x" * 40, "y" * 30) == "xxxxx…xxxx" + "y" * 30


@pytest.mark.parametrize(
    ("x", "size", "text"),
    [
        (1.5, 2.0, "1.500"), (-1.5, 20.0, "−1.50"), (123.456, 999.0, "123.5"), (5.0, 2e4, "5"),
        (5.0, 999_999.0, "5"), (5.0, 1e6, "0.000e6"), (0.002, 0.0011, "0.002000"),
        (5e-4, 9.9e-4, "5.000e−4"), (-1e-9, 1.0, "0.000"), (math.inf, 1.0, "-"), (0.0, 0.0, "0"),
        (3e6, 4.5e6, "3.000e6"),
    ],
)  # fmt: skip
def test_values_have_the_digits_of_the_largest(x, size, text):
    assert load_words.fixed(x, size) == text


def test_components_are_told_with_timing_inputs_and_signals(run):
    settings = {
        **run.settings,
        "components": {
            "gyro": {"made by": "rate_gyro", "sample_time": 0.5, "offset": 0.1, "delay": 0.0,
                     "noise": 2.0},
            "pd": {"made by": "AttitudePD", "kp": 3.0},
        },
        "connections": {"pd.rate": "gyro.rate", "pd.goal": [1.0, 2.0], "gyro.in": "x.y"},
    }  # fmt: skip
    columns = {"gyro.rate": SimpleNamespace(unit="rad/s"), "pd.gain": SimpleNamespace(unit="")}
    told = SimpleNamespace(settings=settings, robot=run.robot, signal_columns=columns)
    table = component_words.component_table(told)
    assert table.rows == [
        ("gyro (rate_gyro)", "every 0.5 s, offset 0.1 s", "in ← x.y", "rate [rad/s]", "noise 2"),
        (
            "pd (AttitudePD)",
            "continuous",
            "rate ← gyro.rate; goal ← (1, 2)",
            "gain [1]",
            "kp 3 N m/rad",
        ),
    ]
    assert table.more == 0
    many = {f"c{k}": {} for k in range(103)}
    told.settings = {"components": many}
    table = component_words.component_table(told)
    assert (len(table.rows), table.more) == (
        100, 3,
    )  # fmt: skip


def test_the_first_fifty_frames_of_a_robot_are_named():
    made = rm.Builder("many").body("bus", mass=1.0, inertia=(1, 1, 1))
    for k in range(52):
        made.frame(f"f{k}", "bus")
    text = sections.robot(SimpleNamespace(robot=made.build()))
    named = re.search("Frames: (.*?)</p>", text)[1].split(", ")
    assert named == [f"f{k}" for k in range(50)]


def test_goals_gains_and_speeds_have_the_units_of_their_joints():
    robot = (
        rm.Builder("mixed")
        .body("bus", mass=10.0, inertia=(1.0, 1.0, 1.0))
        .body("a", mass=1.0).body("b", mass=1.0).body("wheel", mass=1.0, inertia=(1.0, 1.0, 1.0))
        .joint("arm/turn", "revolute", "bus", "a", axis=(0, 0, 1), xyz=(1, 0, 0))
        .joint("arm/slide", "prismatic", "a", "b", axis=(0, 0, 1))
        .joint("spin", "revolute", "bus", "wheel", axis=(0, 0, 1))
        .build()
    )  # fmt: skip

    def words(law="JointPD", **given):
        return component_words.component_settings(robot, {"made by": law, **given})

    both = ["arm/turn", "arm/slide"]
    assert words(joints=both, goal=[-0.5, 0.25]) == [
        f"goal turn −{math.degrees(0.5):.1f}°, slide 0.25 m"
    ]
    (alone,) = words(joints=["arm/turn", "spin"], goal=[0.5, 0.0])
    assert alone == f"goal arm/turn {math.degrees(0.5):.1f}°, spin 0°"
    assert words(joints=both, kp=[1.0, 2.0]) == [
        "joints arm/turn, arm/slide", "kp (1, 2) N m/rad or N/m"
    ]  # fmt: skip
    assert words(joints=["arm/slide"], kp=[2.0])[-1] == "kp 2 N/m"
    assert words(joints=["arm/turn", "spin"], kp=[2.0, 2.0])[-1] == "kp 2 N m/rad"
    turned = rm.random_state(rm.load("servicer"), 3)[0][:4]
    (goal,) = words("AttitudePD", goal=turned.tolist())
    w, x, y, z = turned
    rpy = (math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), math.asin(2 * (w * y - z * x)),
           math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))  # fmt: skip
    text = ", ".join(f"{math.degrees(a):.4g}°" for a in rpy).replace("-", "−")
    assert goal == f"goal roll, pitch, yaw ({text})"
    assert words("ReactionWheels", joints=["spin"], max_speed=math.pi)[-1] == "max_speed 30 rpm"
    assert (
        words("JointReference", joints=["arm/turn"], max_speed=0.1)[-1]
        == f"max_speed {math.degrees(0.1):.4g} °/s"
    )
    assert words("JointReference", joints=["arm/slide"], max_speed=0.1)[-1] == "max_speed 0.1 m/s"
    assert words("JointReference", joints=both, max_speed=0.1)[-1] == "max_speed 0.1 rad/s or m/s"
    assert words("ReactionWheels", null_gain=[0.0], speeds=[0.0, 0.0]) == []


def test_moments_of_stills_are_captures_then_phases_then_events_then_between(run):
    def event(t, name):
        return SimpleNamespace(t=t, name=name, action="record")

    bare = replace(run, phase_starts=(0.0,), events=(), switches=())
    assert [s.t for s in still_times(bare)] == pytest.approx(
        [0.0, 1.0, 1.5, 2.0, 3.0, 4.0], abs=2.0
    )
    assert len(still_times(bare)) == COUNT
    gaps = np.diff([s.t for s in still_times(bare)])
    assert sorted(set(gaps)) == [0.5, 1.0]  # halves of the largest gap
    caught = ConstraintSwitch(1.5, 1, activated=("grapple",), released=("pin",))
    both = replace(run, phase_starts=(0.0, 2.5), events=(event(1.0, "near"), event(3.0, "late"),
                   event(3.1, "next to it"), event(3.5, "last")), switches=(caught,),
                   settings={**run.settings, "phases": [{"name": "one"}, {}]})  # fmt: skip
    told = {s.t: s.caption for s in still_times(both)}
    assert told == {0.0: "start", 1.0: "near", 1.5: "grapple on; pin off", 2.5: "phase 2 begins",
                    3.0: "late", 4.0: "end"}  # fmt: skip
    named = replace(both, events=(event(1.5, "captured"),))
    assert {s.t: s.caption for s in still_times(named)}[1.5] == "captured"
    instant = SimpleNamespace(t=np.array([2.0]))
    assert still_times(instant) == [(2.0, "")]


def test_spans_of_phases_on_the_timeline(run):
    two = replace(run, phase_starts=(0.0, 2.5), settings={"phases": [{"name": "one"}, {}]})
    assert timeline.phase_spans(two) == [("one", 0.0, 2.5), ("phase 2", 2.5, 4.0)]
    assert timeline.phase_spans(replace(run, phase_starts=(0.0,), settings={})) == []
    named = replace(run, phase_starts=(0.0,), settings={"phases": [{"name": "one"}]})
    assert timeline.phase_spans(named) == [("one", 0.0, 4.0)]
    told = json.loads(unescape(re.search('run="(.*?)"', timeline.timeline_html(two, "s", "b"))[1]))
    assert (told["start"], told["end"], told["slider"], told["button"]) == (0.0, 4.0, "s", "b")
    assert told["phases"][1] == {"name": "phase 2", "start": 2.5, "end": 4.0}
    assert timeline.now_html(1.25, True).count('"1.250000"') == 1
    assert 'playing="1"' in timeline.now_html(1.25, True)
    assert 'playing="0"' in timeline.now_html(1.25)
    without = replace(two, phase_starts=(), columns={**two.columns, "phase": 1 * (two.t > 2.0)})
    assert run_tables.phase_starts(without) == [0.0, float(two.t[two.t > 2.0][0])]


def test_bars_show_the_share_of_a_limit():
    def bar(share, limit="3 N m", text="2 N m"):
        return sections._peak(peak_loads.Peak(text, limit, share, 1.25))

    for share, look, percent, width in (
        (0.5, "ok", "50", "0.500"), (0.95, "near", "95", "0.950"), (1.5, "over", "150", "1.000"),
        (0.005, "ok", "0.5", "0.005"), (0.01, "ok", "1", "0.010"), (0.9, "ok", "90", "0.900"),
    ):  # fmt: skip
        shown = bar(share)
        assert f'class="bar {look}" style="--w:{width}"' in shown
        assert f'title="{percent} % at 1.25 s"' in shown
        assert '2 N m <span class="muted">of 3 N m</span>' in shown
    assert bar(math.nan, "") == "<td>2 N m</td>"
    assert bar(math.nan, "", "") == "<td></td>"


def test_limits_that_were_passed_are_told_with_numbers():
    def peak(share):
        return peak_loads.Peak("2 N", "1 N", share, 0.5)

    own = peak_loads.JointPeaks("elbow", peak(1.1), peak(1.0), peak(0.5))
    other = peak_loads.JointPeaks("wrist", peak(math.nan), peak(0.2), peak(1.01))
    assert peak_loads.exceeded([own, other]) == [
        "elbow passed its effort limit: 2 N at 0.5 s, the limit is 1 N",
        "wrist passed its range limit: 2 N at 0.5 s, the limit is 1 N",
    ]


def test_ranges_of_sliders_and_turns_of_a_run():
    robot = (
        rm.Builder("sliding")
        .body("bus", mass=10.0, inertia=(1.0, 1.0, 1.0)).body("a", mass=1.0).body("b", mass=1.0)
        .joint("slide", "prismatic", "bus", "a", axis=(0, 0, 1), lower=-0.5, upper=1.5, velocity=2,
               effort=5)
        .joint("free", "revolute", "a", "b", axis=(0, 0, 1))
        .build()
    )  # fmt: skip
    t = np.array([0.0, 1.0, 2.0])
    q = np.tile(rm.neutral(robot), (3, 1))
    q[:, 8], q[:, 9] = (0.3, -0.4, 0.2), (1e-13, 0.0, 0.0)
    v, tau = np.zeros((3, robot.nv)), np.zeros((3, robot.nv))
    v[:, 6], tau[:, 6] = (0.1, -1.0, 0.4), (1.0, 2.0, -3.0)
    told = SimpleNamespace(robot=robot, t=t, q=q, v=v, tau=tau)
    slide, free = peak_loads.joint_peaks(told)
    assert slide.travel == ("−0.4 to 0.3 m", "−0.5 to 1.5 m", pytest.approx(0.9), 1.0)
    assert slide.speed == ("1 m/s", "2 m/s", 0.5, 1.0)
    assert slide.effort == ("3 N", "5 N", pytest.approx(0.6), 2.0)
    assert free.travel[0] == "0 to 0°"
    assert math.isnan(free.travel.share)
    assert free.speed.limit == free.effort.limit == ""


def test_the_settings_of_a_run_are_told(run):
    shown = dict(run_tables.setup(run))
    mass = sum(float(body.mass) for body in run.robot.bodies)
    assert shown["robot"] == (
        f"servicer: {len(run.robot.bodies)} bodies, 13 degrees of freedom, {mass:.6g} kg; "
        "its base floats"
    )
    assert shown["gravity"] == "none"
    assert shown["simulated"] == "from 0 s to 4 s, 81 samples, every 0.05 s; by dense output"
    assert "adaptive: rtol 1e-06, atol 1e-08" in shown["integrator"]
    fixed = replace(run, robot=replace(rm.load("servicer", base="fixed"), gravity=[0, 0, -9.81]))
    settings = {"integrator": "rk4", "step": 0.1, "sample": 0.5, "step_to_samples": True,
                "saturate": True, "limits": "stop", "stops": [5.0, 0.25],
                "wall_time": 2.5}  # fmt: skip
    other = replace(fixed, settings=settings, message="too far", status="stopped")
    shown = dict(run_tables.setup(other))
    assert shown["robot"].endswith("; its base on a fixed joint")
    assert shown["gravity"] == "(0, 0, -9.81) m/s²"
    assert shown["simulated"].endswith("every 0.5 s; steps end at them")
    assert shown["integrator"] == "rk4, order 4, steps of 0.1 s"
    assert shown["drives"] == "limited to the joints' efforts"
    assert shown["joint limits"] == "end the run; elastic stops, 5 N m/rad or N/m, damping 0.25"
    assert (shown["wall time"], shown["ended"]) == ("2.5 s", "stopped: too far")
    adaptive = {"integrator": "dop853", "rtol": 1e-6, "atol": 1e-9, "max_step": 0.2}
    assert run_tables._integrator(adaptive).endswith("; steps of at most 0.2 s")
    assert run_tables._integrator({"integrator": "mine"}) == "mine"
    assert run_tables._sampling(None, False) == ", one for every step"
    assert run_tables._sampling([1.0], False) == ", at given times"
    assert run_tables._limits({"limits": "record", "stops": [0.0, 1.0]}) == "noted when passed"
    assert [run_tables._count(n, "body", "bodies") for n in (1, 2, 1234)] == [
        "1 body", "2 bodies", "1\u202f234 bodies",
    ]  # fmt: skip


def test_the_tree_of_a_robot_is_indented_and_numbers_are_its_own():
    robot = rm.load("vt18_two_arm")
    table = run_tables.robot_table(robot)
    assert table.more == 0
    depth = {-1: -1}
    for i, row in enumerate(table.rows):
        joint, body = robot.joints[i], robot.bodies[i]
        depth[i] = depth[joint.parent] + 1
        lead = "\u2003" * (depth[i] - 1) + "└ " if depth[i] else ""
        com = "(" + ", ".join(f"{x:.4g}" for x in body.com) + ")"
        assert row[:6] == (str(i), lead + body.name, f"{float(body.mass):.4g}", com, joint.name,
                           joint.kind)  # fmt: skip
    assert max(depth.values()) > 2
    cut = run_tables._cut(("a",), ((str(k),) for k in range(30)), 30, 25)
    assert (len(cut.rows), cut.more) == (25, 5)
    html = html_page.table(replace(cut, head=("#a",)))
    assert "and 5 more" in html
    assert html.count('<td class="n">') == 25
    assert "more" not in html_page.table(run_tables.TextTable(("a",), [("1",)]))
    assert "and 1 more" in html_page.table(run_tables.TextTable(("a",), [("1",)], 1))


def test_what_is_constant_relative_to_its_scale_is_flat():
    x = np.linspace(-1.0, 1.0, 9)
    assert is_flat(Panel("p", "m", (Line("a", 1e-6 - 1e-16 * x),), scale=1.0))
    assert not is_flat(Panel("p", "m", (Line("a", 1e-6 * x),), scale=1.0))
    assert is_flat(Panel("p", "m", (Line("a", -5.0 + 1e-13 * x),)))
    assert is_flat(Panel("p", "m", (Line("a", 1e6 + 1e-5 * x),)))  # 2e-11 of its size
    assert is_flat(Panel("p", "m", (Line("a", -1e6 + 1e-5 * x),)))
    assert not is_flat(Panel("p", "m", (Line("a", 1e-6 + 1e-11 * x),), scale=0.0))


def test_notices_tell_how_a_run_ended_and_what_came_near(run):
    def notices(**changes):
        return report_module._notices(replace(run, **changes), ["a passed"], ["b is near"])

    assert re.findall(">(.*?)</p>", notices()) == ["a passed.", "B is near."]
    assert "up to 4 s" in notices(status="running")
    assert "ended before its time: stopped. far" in notices(status="stopped", message="far")
    text = report_module._subtitle(replace(run, settings={"phases": [{}, {}]}, started=""))
    assert text == "servicer: a run of 4 s in 2 phases"
    one = replace(run, settings={"phases": [{}]}, started="2026-01-02T03:04:05+00:00")
    assert report_module._subtitle(one) == "servicer: a run of 4 s, 2026-01-02 03:04:05 UTC"
    said = SimpleNamespace(warnings=lambda: [f"w{k}" for k in range(11)])
    assert conditioning_rows.conditioning_warnings(said)[-1] == "and 3 more of the same kind"
    few = SimpleNamespace(warnings=lambda: ["w"] * 8)
    assert conditioning_rows.conditioning_warnings(few) == ["w"] * 8


def test_marks_of_figures_are_phases_and_events_in_time_order(run):
    def event(t, name):
        return SimpleNamespace(t=t, name=name, action="record")

    two = replace(run, phase_starts=(0.0, 2.5), settings={"phases": [{"name": "one"}, {}]},
                  events=(event(3.0, "late"), event(1.0, "early")))  # fmt: skip
    assert [tuple(mark)[:2] for mark in marks(two)] == [
        (0.0, "one"), (1.0, "early"), (2.5, "phase 2"), (3.0, "late"),
    ]  # fmt: skip
    assert marks(replace(run, phase_starts=(0.0,), settings={}, events=())) == []


@pytest.mark.parametrize(("lost", "text"), [(0.5, "500 mJ"), (1.5, "1.5 J"), (0.0, "0 mJ")])
def test_energies_are_in_joules_from_one_on(run, lost, text):
    impulses = {"grapple": np.array([3.0, 4.0, 0.0, 9.0, 0.0, 0.0])}
    caught = ConstraintSwitch(1, 1, activated=("grapple",), energy_loss=lost, impulses=impulses)
    told = run_tables.capture_tiles(replace(run, switches=(caught,)))
    assert told == [
        ("5 N s", "impulse of the capture, grapple"), (text, "kinetic energy lost in captures"),
    ]  # fmt: skip
    assert run_tables.capture_tiles(replace(run, switches=())) == []


def test_phases_end_where_the_next_one_begins_and_names_are_counted(run):
    two = replace(run, phase_starts=(0.0, 2.5), settings={"phases": [{"name": "one"}, {}, {}]})
    spans = [(phase.name, phase.start, phase.end) for phase in command_words.commanded(two)]
    assert [span[1:] for span in spans[:2]] == [(0.0, 2.5), (2.5, 4.0)]
    assert spans[2][1] is None
    names = [f"arm/j{k}" for k in range(command_words.MOST_NAMES + 3)]
    of, text = command_words._listed(names)
    assert of == " of arm"
    assert text == ", ".join(f"j{k}" for k in range(command_words.MOST_NAMES)) + " and 3 more"
    assert command_words._listed(["arm/a", "leg/b"], ["1°", "2°"]) == ("", "arm/a 1°, leg/b 2°")
    assert command_words._listed(["arm/a"]) == ("", "arm/a")


def test_the_table_of_conditioning_is_cut():
    n = 40
    found = SimpleNamespace(
        condition=np.array([2.0, 5.0]), smallest=np.array([0.5, 0.1]), t=np.array([0.0, 1.5]),
        frame="tool", joints=[f"j{k}" for k in range(n)], limit_share=np.full((2, n), 0.25),
        limit_distance=np.stack([np.full(n, 0.3), np.full(n, 0.2)]),
        distance_text=lambda x, k: f"{x:g} of {k}",
    )  # fmt: skip
    rows = conditioning_rows.conditioning_table(found).rows
    assert len(rows) == 30
    assert rows[0] == ("condition number of the Jacobian of tool", "5", "1.5")
    assert rows[1] == ("its smallest singular value", "0.1 m/s per rad/s", "1.5")
    assert rows[2] == (
        "j0: distance to the nearer limit", "0.2 of 0, 25.0 % of the range", "1.5",
    )  # fmt: skip
