"""Commands in words: units, degrees, times of the run, names once; damaged settings do no harm."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.viewer.command_words import commanded, force_text, place_text, value_text, wrench_text
from remora.viewer.component_words import component_settings, controller_text


@pytest.fixture(scope="module")
def robot():
    return rm.load("servicer")


def told(robot, *phases, starts=None, end=20.0):
    """Return the words of phases with these descriptions, without a simulation."""
    described = [phase.described() if isinstance(phase, rm.Phase) else phase for phase in phases]
    starts = tuple(10.0 * k for k in range(len(phases))) if starts is None else starts
    run = SimpleNamespace(
        robot=robot, settings={"phases": described}, phase_starts=starts, t=np.array([0.0, end]),
        phase=np.zeros(2, dtype=int),
    )  # fmt: skip
    return commanded(run)


def test_times_are_those_of_the_run_and_angles_in_degrees(robot):
    move = {"prescribed": {"elbow_pitch": {"to": [math.radians(-95)], "between": [1.0, 8.0]}}}
    first, second = told(robot, {**move, "own_clock": True}, {**move, "own_clock": True})
    assert first.lines == ["joints move from 1 to 8 s, from rest to rest: elbow_pitch to −95°"]
    assert second.lines == ["joints move from 11 to 18 s, from rest to rest: elbow_pitch to −95°"]
    shared = told(robot, {}, {**move, "own_clock": False})[1]  # a clock of the whole run
    assert "from 1 to 8 s" in shared.lines[0]


def test_a_phase_that_was_not_reached_has_its_own_times(robot):
    move = {"prescribed": {"elbow_pitch": {"to": [0.5], "between": [1.0, 8.0]}}, "own_clock": True}
    words = told(robot, {}, move, starts=(0.0,))[1]
    assert words.start is None
    assert "from 1 s into it to 8 s into it" in words.lines[0]


def test_separations_have_units_and_axes(robot):
    apart = {"grasp": 0.1, "latch": (-0.1, 0.0, 0.02)}
    words = told(robot, rm.Phase(10.0, release=["grasp", "latch"], separation=apart))[0]
    assert words.lines == [
        "constraint grasp, latch is switched off",
        "at the release of grasp, its child leaves at 0.1 m/s along z of the constraint's frame on "
        "the parent",
        "at the release of latch, its child leaves at (−0.1, 0, 0.02) m/s in the axes of the "
        "constraint's frame on the parent",
    ]


def test_phases_of_the_library_are_told_in_words(robot):
    pulse = rm.Pulse(0.5, 1.0, 30.0)
    push = rm.Pulse(2.0, 3.0, [4.0, 2.0, 0.0, 0.0, 0.0, 0.1])
    phase = rm.Phase(
        10.0, torque={"shoulder_pitch": pulse}, wrenches={"flange": push}, name="push",
        locked=["wrist_roll", "wrist_pitch"], own_clock=True,
        events=[rm.Event(lambda t, q, v: t - 5.0, "quiet", action="next")],
    )  # fmt: skip
    words = told(robot, rm.Phase(10.0), phase)[1]
    assert words.name == "push"
    assert words.lines == [
        "joints locked: wrist_roll, wrist_pitch",
        "shoulder_pitch is driven by 30 N m from 10.5 to 11 s",
        "from outside on flange: force (4, 2, 0) N and torque (0, 0, 0.1) N m from 12 to 13 s",
        "the phase ends at the event quiet",
    ]


def test_limits_of_a_capture_have_units(robot):
    limits = {"grapple": "tool", "fixture": "bus", "distance": 0.05, "angle": 0.2, "speed": 0.03}
    (line,) = told(robot, {"events": [["caught", "next", -1, limits]]})[0].lines
    assert line == (
        "the phase ends when tool is within 50 mm and 11.46° of bus, at 30 mm/s or less (caught)"
    )


def test_generalized_forces_are_told_by_joint(robot):
    tau = np.zeros(robot.nv)
    tau[robot.joints["elbow_pitch"].v] = 2.5
    tau[:6] = [0, 0, 1, 3, 0, 0]
    lines = told(robot, rm.Phase(1.0, torque=tau))[0].lines
    assert lines[0].endswith("is driven by torque (0, 0, 1) N m and force (3, 0, 0) N")
    assert lines[1] == "elbow_pitch is driven by 2.5 N m"


def test_a_reach_a_curve_and_a_sine(robot):
    reach = {"reach": "tool", "goal": [1.0, -0.5, 0.25], "base": "floating", "path": "line"}
    both = dict.fromkeys(["elbow_pitch", "wrist_pitch"], reach)
    (phase,) = told(robot, {"prescribed": both})
    assert phase.lines == ["tool reaches (1, −0.5, 0.25) m in a straight line; the base recoils"]
    curve = {"through": [[0.1], [math.radians(30)]], "times": [2.0, 4.0]}
    wave = {"sine": {"amplitude": [math.radians(10)], "omega": math.pi, "phase": 0.0}}
    (phase,) = told(robot, {"prescribed": {"elbow_pitch": curve, "wrist_roll": wave}})
    assert phase.lines == [
        "joints follow curves through 2 points until 4 s: elbow_pitch to 30°",
        "joints swing: wrist_roll by ±10° every 2 s",
    ]
    ends = {"motion": {"from": [0.0], "to": [math.radians(20)]}, "breaks": [1.0, 2.0, 5.0]}
    points = {"motion": {"times": [2.0, 3.0, 4.0], "values": [[0.1], [0.3], [math.radians(30)]]}}
    (phase,) = told(robot, {"prescribed": {"elbow_pitch": ends, "wrist_roll": points}})
    assert phase.lines == [
        "joints move from 1 to 5 s, from rest to rest: elbow_pitch from 0° to 20°",
        "joints follow curves through 3 points until 4 s: wrist_roll to 30°",
    ]
    load = {"profile": "linear", "times": [1.0, 2.0, 6.0], "values": [0.0, 1.0, 0.0]}
    (phase,) = told(robot, {"torque": {"elbow_pitch": load}})
    assert phase.lines == [
        "elbow_pitch is driven by a linear profile through 3 points from 1 to 6 s"
    ]


def test_values_have_the_units_of_their_joint():
    build = rm.Builder("r").body("a", mass=1, inertia=(1, 1, 1)).joint("base", "free", None, "a")
    axes = {"axis": (1, 0, 0), "axis2": (0, 1, 0)}
    for k, kind in enumerate(("prismatic", "universal", "spherical")):
        build.body(f"b{k}", mass=1, inertia=(1, 1, 1))
        build.joint(f"j{k}", kind, "a", f"b{k}", **(axes if kind == "universal" else {}))
    robot = build.build()
    assert value_text(robot.joints["j0"], [-0.25]) == "−0.25 m"
    assert value_text(robot.joints["j1"], [math.pi, 0.0]) == "(180°, 0°)"
    assert value_text(robot.joints["j2"], [1, 0, 0, 0]) == "(1, 0, 0, 0)"
    assert force_text(robot.joints["j0"], [2.0]) == "2 N"
    assert wrench_text(np.zeros(6)) == "zero"
    assert place_text("station") == "station"
    here = pose.from_xyz_rpy(np.array([1.0, 2, 3]), np.array([0, 0, math.pi / 2]))
    assert place_text(here) == "(1, 2, 3) m, roll, pitch, yaw (0°, 0°, 90°)"


def test_settings_of_controllers_have_units(robot):
    law = rm.control.JointPD(
        robot, {"elbow_pitch": 1.0, "wrist_pitch": -0.5}, {"elbow_pitch": 4.0, "wrist_pitch": 2.0},
        {"elbow_pitch": 1.0, "wrist_pitch": 1.0}, 0.05,
    )  # fmt: skip
    (line,) = told(robot, rm.Phase(1.0, torque=law))[0].lines
    assert line == (
        "JointPD: goal elbow_pitch 57.3°, wrist_pitch −28.6°, kp (4, 2) N m/rad, kd 1 N m s/rad, "
        "every 0.05 s"
    )
    turn = {"made by": "AttitudePD", "joints": ["base"], "goal": [1, 0, 0, 0], "kp": [20, 20, 20]}
    assert controller_text(robot, turn).endswith(
        "goal roll, pitch, yaw (0°, 0°, 0°), kp 20 N m/rad"
    )
    wheels = rm.load("servicer_wheels")
    given = {
        "made by": "ReactionWheels",
        "joints": ["wheel_x", "wheel_y"],
        "max_torque": 4.0,
        "max_speed": 100 * math.pi,
    }
    assert component_settings(wheels, given)[1:] == ["max_torque 4 N m", "max_speed 3000 rpm"]
    arm = {
        "made by": "ResolvedRate",
        "joints": ["elbow_pitch", "wrist_pitch"],
        "max_speed": math.pi / 30,
    }
    assert component_settings(robot, arm)[-1] == "max_speed 6 °/s"


def test_damaged_phases_are_told_as_such(robot):
    odd = [
        7, {}, {"prescribed": 3, "locked": "x", "torque": []},
        {"prescribed": {"elbow_pitch": {"to": [0.1], "between": [1]}}},
        {"torque": {"elbow_pitch": {"pulse": [1]}}}, {"events": [1, [2]]},
        {"wrenches": {"nobody": [1, 2]}, "base_wrench": "?"},
    ]  # fmt: skip
    for phase in told(robot, *odd):
        assert phase.lines
        assert all(isinstance(line, str) for line in phase.lines)


def test_a_name_is_not_changed_by_the_signs_of_numbers():
    build = rm.Builder("r").body("a", mass=1, inertia=(1, 1, 1)).joint("base", "free", None, "a")
    build.body("b", mass=1, inertia=(1, 1, 1)).joint("arm-1", "revolute", "a", "b")
    robot = build.build()
    given = {"made by": "JointPD", "joints": ["arm-1"], "goal": [-1.0]}
    assert "arm-1 −57.3°" in component_settings(robot, given)[-1]
