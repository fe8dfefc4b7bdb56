"""`remora info` of constraints: a table, the remaining degrees of freedom, what is redundant."""

import io
import json

import pytest
from rich.console import Console

import remora as rm
from remora.cli.robot_tables import as_dictionary, print_constraints


def four_bar(rocker=0.8):
    b = rm.Builder("four-bar")
    for name in ("ground", "crank", "coupler", "rocker"):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("a", "revolute", "ground", "crank")
    b.joint("b", "revolute", "crank", "coupler", xyz=(0.4, 0, 0))
    b.joint("d", "revolute", "ground", "rocker", xyz=(1.0, 0, 0))
    b.constraint(
        "c[red]", "revolute", "coupler", "rocker", parent_xyz=(1, 0, 0), child_xyz=(rocker, 0, 0)
    )
    b.rod("strut", None, "crank", 1.5, active=False)
    return b.gear("drive", "a", "d", ratio=2.0, active=False)


def printed(robot):
    text = io.StringIO()
    print_constraints(robot, Console(file=text, width=200, highlight=False))
    return text.getvalue()


def test_the_table_says_what_is_between_what_and_what_remains():
    text = printed(four_bar().build(base="fixed"))
    assert "c[red]      revolute  coupler and rocker" in text
    assert "strut       rod       the inertial frame and crank  off" in text
    assert "drive       gear      a and d                       off" in text
    assert "1 of 3 degrees of freedom remain: 5 equations, 2 independent" in text
    assert "warning: constraints are redundant: equations of 'c[red]' (3 of 5)" in text
    active = printed(four_bar().build(base="fixed").with_active(on=["drive", "strut"]))
    assert "1.5 m" in active
    assert "ratio 2" in active


def test_loops_that_cannot_close_are_told():
    text = printed(four_bar(rocker=5.0).build(base="fixed"))
    assert "warning: " in text
    assert "c[red]" in text.partition("warning: ")[2]
    assert "remain" not in text


def test_json_has_all_numbers_of_the_constraints():
    robot = four_bar().build(base="fixed")
    told = json.loads(json.dumps(as_dictionary(robot)))
    assert [c["name"] for c in told["constraints"]] == ["c[red]", "strut", "drive"]
    assert told["constraints"][1]["parent"] == "the inertial frame"
    assert told["constraints"][2]["parent"] == "a"
    assert told["constraints"][1]["length"] == 1.5
    assert told["constraint_report"]["freedoms"] == 1
    assert "constraint_report" not in as_dictionary(rm.load("vt18_satellite"))


@pytest.mark.parametrize("dynamics", [False])
def test_a_kinematics_only_model_has_no_rank(dynamics):
    text = printed(four_bar().build(base="fixed", dynamics=dynamics))
    assert "not determined for a kinematics-only model" in text
