"""What a report tells: title, tools and targets, captures, peaks, and how far to trust a run."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.simulation.recording.conservation import Conservation, Drift
from remora.simulation.recording.constraint_switch import ConstraintSwitch
from remora.viewer.figures import panels as panels_module
from remora.viewer.figures.panels import Line, Panel, choice, panels
from remora.viewer.report import conditioning_rows, tool_story
from remora.viewer.report import report_sections as sections
from remora.viewer.report.conservation_words import conserved_line, drifts, violations
from remora.viewer.report.peak_loads import exceeded, joint_peaks
from remora.viewer.report.report_sections import is_flat
from remora.viewer.run_tables import capture_tiles, note_of, robot_table, tiles

pytest.importorskip("matplotlib")
GOAL = [1.0, 0.5, 0.25]


@pytest.fixture(scope="module")
def told(run):
    """Return the run as if its only phase were a reach of the tool that ends in a capture."""
    reach = {"reach": "tool", "goal": GOAL, "base": "floating", "path": "line"}
    caught = {"condition": "capture", "grapple": "tool", "fixture": "bus", "distance": 0.1,
              "angle": 0.2, "speed": 0.05}  # fmt: skip
    phase = {"prescribed": {"elbow_pitch": reach}, "events": [["captured", "next", -1, caught]]}
    return replace(run, settings={**run.settings, "phases": [phase]})


def test_title_and_description_are_those_of_the_note(run):
    def of(note):
        return tuple(note_of(replace(run, settings={"note": note})))

    assert of("scenario 'reach_payload'\nA servicer moves.") == (
        "Reach payload", "A servicer moves.",
    )  # fmt: skip
    assert of("my test") == ("My test", "")
    assert of("") == ("", "")


def test_a_scenario_carries_its_description():
    told = rm.load_scenario("hold_attitude")
    short = replace(told, phases=(replace(told.phases[0], duration=0.02),))
    assert note_of(short.run(progress=False)) == ("Hold attitude", told.description)


def test_distances_from_targets_are_those_of_the_frames(told):
    tool, bus = told.frame_pose("tool"), told.frame_pose("bus")
    far = np.linalg.norm(pose.translation(tool) - GOAL, axis=1)
    apart = np.linalg.norm(pose.translation(tool) - pose.translation(bus), axis=1)
    turn = pose.to_rotation_matrix(tool).transpose(0, 2, 1) @ pose.to_rotation_matrix(bus)
    angle = np.degrees(np.arccos(0.5 * (np.trace(turn, axis1=1, axis2=2) - 1.0)))
    assert np.ptp(angle) > 1.0
    k, m = int(np.argmin(far)), int(np.argmin(apart))
    assert 0 < m < k
    assert tool_story.target_table(told).rows == [
        ("tool", "(1, 0.5, 0.25) m", f"{1e3 * far[k]:.4g} mm", f"{told.t[k]:.6g}",
         f"{1e3 * far[-1]:.4g} mm"),
        ("tool", "bus", f"{1e3 * apart[m]:.4g} mm, {angle[m]:.3g}°", f"{told.t[m]:.6g}",
         f"{1e3 * apart[-1]:.4g} mm, {angle[-1]:.3g}°"),
    ]  # fmt: skip
    drawn = {panel.title: panel for panel in tool_story.tool_panels(told)}
    shown = [line.values for line in drawn["distance of the tool from its target"].lines]
    assert np.allclose(shown, [far, apart], atol=1e-14)
    (line,) = drawn["angle between tool and target"].lines
    assert np.allclose(line.values, angle, atol=1e-5)


def test_the_path_of_a_tool_is_that_of_its_positions(run):
    name, start, end, length, fastest = tool_story.tool_table(run).rows[0]
    p = pose.translation(run.frame_pose("tool"))
    assert name == "tool"
    for text, place in ((start, p[0]), (end, p[-1])):
        read = [float(x) for x in text.strip("()").replace("−", "-").split(",")]
        assert read == pytest.approx(place, abs=5.1e-4)
    pieces = np.linalg.norm(np.diff(p, axis=0), axis=1)
    assert length == f"{pieces.sum():.4g}"
    # differences over 0.1 s: the peak is smooth
    speed = np.linalg.norm(p[2:] - p[:-2], axis=1) / (run.t[2:] - run.t[:-2])
    assert float(fastest) == pytest.approx(speed.max(), rel=5e-3)


def test_captures_are_listed_with_impulses_and_energies(run):
    caught = ConstraintSwitch(
        1.5, 1, activated=("grapple",), impulses={"grapple": np.array([3.0, 4.0, 0, 0, 0, 0.5])},
        energy_loss=0.002, latched={"grapple": {}},
    )  # fmt: skip
    freed = ConstraintSwitch(2.5, 2, released=("grapple",), separation_work=0.1)
    text = sections.captures(replace(run, switches=(caught, freed)))
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", text)
    assert cells[:7] == ["1.5", "grapple", "latched", "5", "0.5", "2", ""]
    assert cells[7:] == ["2.5", "grapple", "released", "", "", "", "100"]
    assert sections.captures(run) == ""
    again = replace(caught, t=2.0, impulses={"grapple": np.array([0.3, 0, 0.4, 9.0, 0, 0])})
    told = capture_tiles(replace(run, switches=(caught, again, freed)))
    shown = {label: value for value, label in told}
    assert shown["impulse of the capture, grapple"] == "5 N s"  # of the first, the larger one
    assert shown["kinetic energy lost in captures"] == "4 mJ"
    peaks = joint_peaks(run)
    assert "Impulses at captures and releases are not included" in sections.peaks(peaks, True)
    assert "Impulses" not in sections.peaks(peaks)


def test_peaks_are_compared_with_the_limits(run):
    peaks = {peak.name: peak for peak in joint_peaks(run)}
    joint = run.robot.joints["shoulder_pitch"]
    own, most = peaks["shoulder_pitch"], np.abs(run.v[:, joint.v.start]).max()
    assert own.speed.share == pytest.approx(most / float(joint.limits.velocity[0]), rel=1e-12)
    assert own.speed.text == f"{math.degrees(most):.4g} °/s"
    load = np.abs(run.tau[:, joint.v.start])
    assert own.effort.share == pytest.approx(load.max() / float(joint.limits.effort[0]), rel=1e-12)
    assert (own.effort.text, own.effort.t) == (f"{load.max():.4g} N m", run.t[load.argmax()])
    assert own.speed.t == run.t[np.abs(run.v[:, joint.v.start]).argmax()]
    assert 1.0 < own.speed.t < 3.0
    passed = exceeded(list(peaks.values()))
    assert any("shoulder_pitch passed its speed limit" in text for text in passed)
    assert 'class="bar over"' in sections.peaks(list(peaks.values()))
    free = run.robot.joints["elbow_pitch"]
    assert own.travel.limit == "±120.3°"
    assert peaks["elbow_pitch"].effort.limit == f"{float(free.limits.effort[0]):.4g} N m"


def test_numbers_at_a_glance_are_those_of_the_samples(run):
    """The base's largest turn and move, torques and reactions, from the samples."""
    shown = {label: value for value, label in tiles(run)}
    x = run.frame_pose("bus")
    R = pose.to_rotation_matrix(x)
    cosine = 0.5 * (np.trace(R[0].T @ R, axis1=1, axis2=2) - 1.0)
    turn = math.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)).max())
    assert shown["largest turn of bus"] == f"{turn:.3g}°"
    moved = pose.translation(x) - pose.translation(x)[0]
    assert shown["largest move of bus"] == f"{np.linalg.norm(moved, axis=1).max():.3g} m"
    names, tau = run.robot.joints.names[1:], np.abs(run.tau[:, 6:]).max(axis=0)
    effort = [float(joint.limits.effort[0]) for joint in run.robot.joints[1:]]
    bearing = np.linalg.norm(run.reactions[:, 1:, 3:], axis=2).max(axis=0)
    for what, sizes, text in (
        ("largest joint torque", tau, "{:.3g} N m"),
        ("largest share of an effort limit", tau / effort, "{:.1%}"),
        ("largest reaction torque", bearing, "{:.3g} N m"),
    ):
        assert shown[f"{what}, {names[sizes.argmax()]}"] == text.format(sizes.max())


def test_the_share_of_a_range_counts_from_its_middle():
    """Limits from -0.5 to 1.5 rad: at 1.0 rad the joint is halfway from the middle to its end.

    It turns back from there; nothing acts from outside, so that momentum is conserved.
    """
    robot = (
        rm.Builder("asymmetric")
        .body("bus", mass=10.0, inertia=(1.0, 1.0, 1.0))
        .body("link", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .body("finger", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .joint("hinge", "revolute", "bus", "link", axis=(0, 0, 1), lower=-0.5, upper=1.5)
        .joint("tip", "revolute", "link", "finger", axis=(0, 0, 1), mimic=("hinge", -0.25, 0.0))
        .build()
    )
    q = rm.neutral(robot)
    q[8] = 1.0
    v = np.concatenate([[0.1, 0.2, 0.3], np.zeros(3), [-0.2]])
    run = rm.simulate(
        robot,
        q,
        v,
        0.1,
        record=rm.Record(0.05, progress=False),
        integrator=rm.Integrator(rtol=1e-3),
    )
    hinge = next(peak for peak in joint_peaks(run) if peak.name == "hinge")
    assert hinge.travel.share == pytest.approx(0.5, abs=1e-9)
    assert hinge.travel.limit == "−28.6 to 85.9°"
    kept = run.conservation()
    errors = kept.angular_momentum.relative, kept.linear_momentum.relative
    assert errors[0] != errors[1]
    assert (f"{max(errors):.1e}", "relative error of momentum") in tiles(run)
    rows = {row[4]: row for row in robot_table(robot).rows}
    assert "-0.25 × hinge" in rows["tip"]


def test_wheels_are_in_rpm():
    robot = rm.load("servicer_wheels")
    v = np.zeros(robot.nv)
    v[robot.joints["wheel_x"].v] = 10 * math.pi
    run = rm.simulate(robot, rm.neutral(robot), v, 0.0, record=rm.Record(progress=False))
    peak = next(peak for peak in joint_peaks(run) if peak.name == "wheel_x")
    assert peak.speed.text == "300 rpm"
    assert peak.travel.text == ""
    drawn = next(panel for panel in panels(run, "v", choice(run)) if panel.unit == "rpm")
    assert drawn.title == "wheel speeds"
    assert drawn.lines[0].values == pytest.approx([300.0])
    assert drawn.lines[0].limits == pytest.approx((-5729.578, 5729.578))
    rows = {row[4]: row for row in robot_table(robot).rows}
    assert rows["wheel_x"][7] == "5730 rpm"
    assert rows["elbow_pitch"][7] == "14.3 °/s"
    still = next(peak for peak in joint_peaks(run) if peak.name == "elbow_pitch")
    assert re.fullmatch(r"[−0-9.]+ to [0-9.]+°", still.travel.text)  # no 1e-42


def test_what_is_not_kept_is_told():
    push = Drift(0.5, 2.0, "N s", "peak", "external wrenches")
    kept = Conservation(push, push, push, Drift(1e-9, 4.0, "J", "peak"), 1e-15, 1e-15)
    good = replace(kept, energy=replace(kept.energy, absolute=1e-12))
    assert violations(good) == []
    assert conserved_line(good) == (
        "Relative conservation errors: energy balance 2.5e-13. Momentum is not conserved in this "
        "run: external wrenches."
    )
    assert [name for name, _ in drifts(good)] == ["energy balance"]
    alone = replace(kept.linear_momentum, broken_by="")
    assert [name for name, _ in drifts(replace(good, linear_momentum=alone))] == [
        "linear momentum", "energy balance",
    ]  # fmt: skip
    bad = replace(good, energy=replace(kept.energy, absolute=1e-3 * kept.energy.scale))
    assert violations(bad)[0].startswith("energy balance drifts by")
    broken = replace(good, energy=replace(kept.energy, absolute=float("nan")), constraint=0.1)
    assert len(violations(broken)) == 2
    resting = replace(good, energy=replace(kept.energy, absolute=1e-20, scale=0.0))
    assert violations(resting) == []


def test_one_line_where_all_is_well_and_a_section_where_not(run):
    assert "<details>" in sections.conservation(run, [])
    section = sections.conservation(run, ["the energy <drifts>"])
    assert "the energy &lt;drifts&gt;" in section
    assert "<details>" not in section


def test_the_conditioning_of_a_report_is_that_of_the_jacobian(run):
    """Of the tool, the base held, in the arm's own length: singular values by NumPy."""
    robot = rm.load("servicer", base="fixed")
    q = run.q[:, 8:]
    told = conditioning_rows.conditioning_table(
        conditioning_rows.conditioning_of(
            replace(run, robot=robot, columns={**run.columns, "q": q})
        )
    )
    found = rm.analysis.conditioning(
        robot, q, "tool", "fixed", "twist", t=run.t, joint_distances=False
    )
    J = rm.jacobian(robot, q, "tool") * np.repeat([found.length, 1.0], 3)[:, None]
    values = np.linalg.svd(J, compute_uv=False)
    worst = int(np.argmax(values[:, 0] / values[:, -1]))
    rows = {row[0]: row[1:] for row in told.rows}
    assert rows["condition number of the Jacobian of tool"] == (
        f"{values[worst, 0] / values[worst, -1]:.4g}", f"{run.t[worst]:.6g}",
    )  # fmt: skip
    assert rows["its smallest singular value"][0] == f"{values[worst, -1]:.4g} m/s per rad/s"
    for joint in robot.joints[1:]:
        low, high, x = (
            float(joint.limits.lower[0]),
            float(joint.limits.upper[0]),
            q[:, joint.q.start],
        )
        near = np.minimum(x - low, high - x)
        assert rows[f"{joint.name}: distance to the nearer limit"] == (
            f"{np.degrees(near.min()):.3g}°, {100 * near.min() / (high - low):.1f} % of the range",
            f"{run.t[near.argmin()]:.6g}",
        )  # fmt: skip


def test_lines_of_figures_are_those_of_the_samples(run, monkeypatch):
    """Power of the drives, bearings, and the tool's attitude from its axes at the start."""
    (power,) = panels(run, "power", choice(run, ["elbow_pitch", "wrist_pitch"]))
    for line in power.lines:
        v = run.robot.joints[line.label].v.start
        assert np.array_equal(line.values, run.tau[:, v] * run.v[:, v])
        assert np.ptp(line.values) > 0.0
    force, torque = panels(run, "reactions", choice(run, ["elbow_pitch"]))
    wrench = run.reactions[:, run.robot.joint_index("elbow_pitch")]
    assert np.allclose(force.lines[0].values, np.linalg.norm(wrench[:, :3], axis=1), rtol=1e-12)
    assert np.allclose(torque.lines[0].values, np.linalg.norm(wrench[:, 3:], axis=1), rtol=1e-12)
    for panel, columns in zip(
        panels(run, "momentum", choice(run)), (slice(3), slice(3, 6)), strict=True
    ):
        shown = np.stack([line.values for line in panel.lines], axis=-1)
        assert np.array_equal(shown, run.momentum[:, columns])
    ((balance,),) = (panel.lines for panel in panels(run, "drift", choice(run)))
    change = run.energy - run.energy[0] - run.work.sum(axis=1)
    scale = run.kinetic_energy.max()
    assert np.allclose(balance.values, np.abs(change) / scale, rtol=1e-9, atol=1e-15)
    R = pose.to_rotation_matrix(run.frame_pose("tool"))
    turned = R[0].T @ R
    axis = turned[:, [2, 0, 1], [1, 2, 0]] - turned[:, [1, 2, 0], [2, 0, 1]]
    angle = np.arccos(np.minimum(0.5 * (np.trace(turned, axis1=1, axis2=2) - 1.0), 1.0))
    expected = {
        "roll, pitch, yaw": np.stack([np.arctan2(turned[:, 2, 1], turned[:, 2, 2]),
                                      -np.arcsin(turned[:, 2, 0]),
                                      np.arctan2(turned[:, 1, 0], turned[:, 0, 0])], axis=-1),
        "rotation vector": axis / (2.0 * np.sinc(angle / np.pi))[:, None],
    }  # fmt: skip
    for words, values in expected.items():
        (attitude,) = panels(run, "attitude", choice(run, ["tool"]))
        assert attitude.title.endswith(words)
        shown = np.stack([line.values for line in attitude.lines], axis=-1)
        assert np.abs(values).max() > 0.5
        assert np.allclose(shown, np.degrees(values), atol=1e-5)
        monkeypatch.setattr(panels_module, "STEEP", 0.0)  # as if it were steep


def test_what_is_flat_is_folded_away():
    still, moves = Line("a", np.full(9, 3.0)), Line("b", np.linspace(0.0, 1.0, 9))
    assert is_flat(Panel("p", "m", (still,)))
    assert is_flat(Panel("p", "m", (Line("n", 1e-14 * moves.values), still)))
    assert not is_flat(Panel("p", "m", (still, moves)))
    assert is_flat(Panel("p", "m", (Line("none", np.full(9, np.nan)),)))


def test_flat_figures_are_in_a_fold(run, monkeypatch):
    monkeypatch.setattr(sections, "FIGURES", [f for f in sections.FIGURES if f[1][0] in "q drift"])
    shown, folded = sections.figures(run, broken=False).split("<details>")
    assert "Joint positions" in shown
    assert "Conservation errors" in folded
    assert "<details>" not in sections.figures(run, broken=True)
