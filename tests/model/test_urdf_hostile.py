"""Malformed and hostile URDF: refused with file, line, element and reason, in bounded time."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remora.errors import ModelError
from remora.model.formats.bounded_xml import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS
from remora.model.formats.load import load

MASS = '<mass value="2"/>'
UNIT = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
INERTIAL = f"<inertial>{MASS}{UNIT}</inertial>"
A = f'<link name="a">{INERTIAL}</link>'
B = f'<link name="b">{INERTIAL}</link>'
C = f'<link name="c">{INERTIAL}</link>'
ENDS = '<parent link="a"/><child link="b"/>'
MIMIC = '<mimic joint="{}"/>'


def robot(*lines: str) -> str:
    """Return a file with <robot> on line 1 and the parts on the lines from 2."""
    return "\n".join(['<robot name="r">', *lines, "</robot>"])


def bodies(inside: str) -> str:
    """Return a robot of one link (line 2) whose content stands on line 3."""
    return robot('<link name="a">', inside, "</link>")


def inertia(**moments: str) -> str:
    values = {"ixx": "1", "ixy": "0", "ixz": "0", "iyy": "1", "iyz": "0", "izz": "1"} | moments
    text = " ".join(f'{key}="{value}"' for key, value in values.items())
    return bodies(f"<inertial>{MASS}<inertia {text}/></inertial>")


def mass(value: str) -> str:
    return bodies(f'<inertial><mass value="{value}"/>{UNIT}</inertial>')


def joint(inside: str = "", kind: str = 'type="revolute"', ends: str = ENDS) -> str:
    """Return a robot of two links (lines 2, 3) and a joint (line 4), its content on line 5."""
    return robot(A, B, f'<joint name="j" {kind}>{ends}', inside, "</joint>")


def loop(
    inside: str = "",
    kind: str = 'type="revolute"',
    child: str = '<child link="b"/>',
    name: str = "l",
) -> str:
    """Return a robot of two links (2, 3), a joint (4) and a loop (5), its content on line 6."""
    named = f'name="{name}"' if name else ""
    head = f'<loop_joint {named} {kind}><parent link="a"/>{child}'
    return robot(A, B, hinge("j", "a", "b"), head, inside, "</loop_joint>")


def visual(inside: str) -> str:
    return bodies(f"{INERTIAL}<visual>{inside}</visual>")


def mesh(filename: str) -> str:
    return visual(f'<geometry><mesh filename="{filename}"/></geometry>')


def hinge(name: str, parent: str, child: str, inside: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="revolute">{ends}{inside}</joint>'


LINK = '<link name="a">'
LOOP = '<loop_joint name="l">'
JOINT = '<joint name="j">'

#: name: (the file, the line of the fault, what the report must say)
MALFORMED: dict[str, tuple[str | bytes, int | None, tuple[str, ...]]] = {
    # XML
    "empty": ("", None, ("file", "empty")),
    "blank": (" \n \n", 3, ("XML", "no element")),
    "plain text": ("a robot, please", 1, ("XML", "not well-formed")),
    "binary": (bytes(range(256)) * 10, 1, ("XML", "not well-formed")),
    "null bytes": (robot(A).encode().replace(b"mass", b"\0"), 2, ("XML", "not well-formed")),
    "truncated in a tag": (robot(A)[:60], 2, ("XML", "not well-formed")),
    "truncated between tags": (f'<robot name="r">\n{A}', 2, ("XML", "not well-formed")),
    "crossed tags": (robot("<link name='a'><inertial></link></inertial>"), 2, ("mismatched",)),
    "two root elements": (robot(A) + "\n" + robot(B), 4, ("XML", "junk after")),
    "attribute twice": (robot('<link name="a" name="b"/>'), 2, ("duplicate attribute",)),
    "unquoted attribute": (robot("<link name=a/>"), 2, ("XML", "not well-formed")),
    "undefined entity": (mass("&two;"), 3, ("XML", "undefined entity")),
    "wrong encoding": (
        '<?xml version="1.0" encoding="utf-8"?>\n<robot name="r\xe9"/>'.encode("latin-1"),
        2,
        ("XML", "not well-formed"),
    ),
    "unknown encoding": ('<?xml version="1.0" encoding="x-no"?>\n<robot/>', 1, ("encoding",)),
    "multi-byte encoding": ('<?xml version="1.0" encoding="utf-7"?><robot/>', 1, ("encoding",)),
    "half of UTF-16": (robot(A).encode("utf-16")[:-101], None, ("XML", "not well-formed")),
    "document type": ("<!DOCTYPE robot>\n" + robot(A), 1, ("XML", "document type")),
    "external entity": (
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<robot name="&x;"/>',
        1,
        ("XML", "DOCTYPE"),
    ),
    "external DTD": ('<!DOCTYPE r SYSTEM "http://x.invalid/r.dtd">\n<robot/>', 1, ("DOCTYPE",)),
    "parameter entity": ('<!DOCTYPE r [<!ENTITY % p "x"> %p;]><robot/>', 1, ("DOCTYPE",)),
    "long attribute": (robot(f'<link name="{"x" * 20_000}"/>'), 2, ("attribute name", "longer")),
    # Not a URDF
    "SDF": ('<sdf version="1.7"><model name="m"/></sdf>', 1, ("<sdf>", "SDF")),
    "MJCF": ("<mujoco/>", 1, ("<mujoco>", ".xml")),
    "HTML": ("\n<html><body/></html>", 2, ("<html>", "<robot>")),
    "xacro macro": (
        robot(A, '<xacro:macro name="m"/>').replace("<robot", '<robot xmlns:xacro="x"'),
        3,
        ("xacro:macro", "expand it first"),
    ),
    "xacro value": (mass("${m}"), 3, ("<mass>", "expand it first")),
    "no links": (robot(), None, ("robot", "no bodies")),
    # Numbers
    "NaN mass": (mass("nan"), 3, ("<mass>", LINK, 'value="nan"', "not finite")),
    "infinite mass": (mass("-Infinity"), 3, ("<mass>", LINK, "not finite")),
    "overflowing mass": (mass("1e999"), 3, ("<mass>", LINK, "too large")),
    "absurd mass": (mass("1e60"), 3, ("<mass>", LINK, "too large")),
    "decimal comma": (mass("1,5"), 3, ("<mass>", LINK, 'value="1,5"', "comma")),
    "underscore": (mass("1_000"), 3, ("<mass>", LINK, "not a number")),
    "hexadecimal": (mass("0x10"), 3, ("<mass>", LINK, "not a number")),
    "Arabic digits": (mass("١"), 3, ("<mass>", LINK, "not a number")),
    "unit": (mass("5 kg"), 3, ("<mass>", LINK, "must be 1 number, not 2")),
    "blank number": (mass(" "), 3, ("<mass>", LINK, "must be 1 number, not 0")),
    "word": (mass("heavy"), 3, ("<mass>", LINK, "not a number")),
    "mass as text": (
        bodies(f"<inertial><mass>5</mass>{UNIT}</inertial>"),
        3,
        ("<mass>", LINK, "no attribute value"),
    ),
    "two coordinates": (joint('<origin xyz="1 2"/>'), 5, ("<origin>", JOINT, "3 numbers, not 2")),
    "four coordinates": (joint('<origin xyz="1 2 3 4"/>'), 5, ("<origin>", JOINT, "not 4")),
    "commas": (joint('<origin xyz="1,2,3"/>'), 5, ("<origin>", JOINT, "comma")),
    "NaN angle": (joint('<origin rpy="0 nan 0"/>'), 5, ("<origin>", JOINT, "not finite")),
    "inertial origin": (
        bodies(f'<inertial><origin xyz="0 0 x"/>{MASS}{UNIT}</inertial>'),
        3,
        ("<origin>", "<inertial>", LINK, "not a number"),
    ),
    # Mass properties
    "negative mass": (mass("-1"), 2, (LINK, "mass is negative")),
    "no mass": (bodies(f"<inertial>{UNIT}</inertial>"), 3, ("<inertial>", LINK, "no <mass>")),
    "misspelt mass": (
        bodies(f'<inertial><masss value="1"/>{UNIT}</inertial>'),
        3,
        ("<inertial>", LINK, "no <mass>"),
    ),
    "no inertia": (bodies(f"<inertial>{MASS}</inertial>"), 3, ("<inertial>", LINK, "<inertia>")),
    "missing moment": (
        bodies(f"<inertial>{MASS}{UNIT.replace('izz', 'iyx')}</inertial>"),
        3,
        ("<inertia>", LINK, "no attribute izz"),
    ),
    "two inertials": (
        robot('<link name="a">', INERTIAL, INERTIAL, "</link>"),
        4,
        ("<inertial>", LINK, "twice", "line 3"),
    ),
    "two masses": (
        bodies(f"<inertial>{MASS}\n{MASS}{UNIT}</inertial>"),
        4,
        ("<mass>", LINK, "twice"),
    ),
    "two inertias": (bodies(f"<inertial>{MASS}{UNIT}{UNIT}</inertial>"), 3, ("<inertia>", "twice")),
    # Joints
    "no type": (joint(kind=""), 4, (JOINT, "no type", "continuous, prismatic")),
    "unknown type": (joint(kind='type="ball"'), 4, (JOINT, "unknown type 'ball'", "planar")),
    "kind of ours": (joint(kind='type="helical"'), 4, (JOINT, "unknown type 'helical'")),
    "no parent": (joint(ends='<child link="b"/>'), 4, (JOINT, "no <parent>")),
    "no child": (joint(ends='<parent link="a"/>'), 4, (JOINT, "no <child>")),
    "parent without link": (joint(ends='<parent/><child link="b"/>'), 4, ("<parent>", "link")),
    "unknown parent": (joint(ends=ENDS.replace('"a"', '"A"')), 4, (JOINT, "unknown parent 'A'")),
    "unknown child": (joint(ends=ENDS.replace('"b"', '"B"')), 4, (JOINT, "unknown child 'B'")),
    "own parent": (joint(ends=ENDS.replace('"a"', '"b"')), 4, (JOINT, "same link 'b'")),
    "two parents": (joint('<parent link="a"/>'), 5, ("<parent>", JOINT, "twice")),
    "two children": (joint('<child link="b"/>'), 5, ("<child>", JOINT, "twice")),
    "two origins": (joint("<origin/><origin/>"), 5, ("<origin>", JOINT, "twice")),
    "two axes": (joint('<axis xyz="1 0 0"/><axis xyz="0 1 0"/>'), 5, ("<axis>", JOINT, "twice")),
    "two limits": (joint("<limit/>" * 2), 5, ("<limit>", JOINT, "twice")),
    "two mimics": (joint('<mimic joint="j"/>' * 2), 5, ("<mimic>", JOINT, "twice")),
    "zero axis": (joint('<axis xyz="0 0 0"/>'), 4, (JOINT, "axis is zero")),
    "axis without xyz": (joint("<axis/>"), 5, ("<axis>", JOINT, "no attribute xyz")),
    "NaN axis": (joint('<axis xyz="0 nan 1"/>'), 5, ("<axis>", JOINT, "not finite")),
    "limit not finite": (joint('<limit lower="-inf" upper="0"/>'), 5, ("<limit>", "not finite")),
    "negative speed": (joint('<limit velocity="-1"/>'), 5, ("<limit>", JOINT, "negative")),
    "negative damping": (joint('<dynamics damping="-1"/>'), 4, (JOINT, "damping is negative")),
    "NaN friction": (joint('<dynamics friction="NaN"/>'), 5, ("<dynamics>", "not finite")),
    # The tree
    "no name": (robot(A, f"<link>{INERTIAL}</link>"), 3, ("<link>", "no name")),
    "empty name": (robot('<link name=""/>'), 2, ('<link name="">', "no name")),
    "joint without name": (joint().replace(' name="j"', ""), 4, ("<joint>", "no name")),
    "long name": (robot(f'<link name="{"x" * 300}"/>'), 2, ("<link", "longer than 200")),
    "two links of a name": (robot(A, B, A, hinge("j", "a", "b")), 4, (LINK, "twice")),
    "two joints of a name": (
        robot(A, B, C, hinge("j", "a", "b"), hinge("j", "b", "c")),
        6,
        (JOINT, "'j' is used twice"),
    ),
    "two joints for a link": (
        robot(A, B, hinge("j", "a", "b"), hinge("k", "a", "b")),
        5,
        ('<joint name="k">', "'b' already hangs on joint 'j'"),
    ),
    "two roots": (robot(A, B), 3, ('<link name="b">', "several roots", "'a', 'b'")),
    "cycle of all": (
        robot(A, B, hinge("j", "a", "b"), hinge("k", "b", "a")),
        4,
        (JOINT, "cycle: 'j', 'k'"),
    ),
    "cycle aside": (
        robot(A, B, C, hinge("j", "b", "c"), hinge("k", "c", "b")),
        5,
        (JOINT, "cycle: 'j', 'k'"),
    ),
    # Loops
    "loop without a name": (loop(name=""), 5, ("<loop_joint>", "has no name")),
    "loop without a type": (loop(kind=""), 5, (LOOP, "has no type", "revolute")),
    "loop of unknown type": (loop(kind='type="glue"'), 5, (LOOP, "unknown type 'glue'", "rod")),
    "floating loop": (loop(kind='type="floating"'), 5, (LOOP, "constrains nothing")),
    "gear": (loop(kind='type="gear"'), 5, (LOOP, "unknown type 'gear'")),
    "loop without a child": (loop(child=""), 5, (LOOP, "has no <child>")),
    "loop with two children": (
        loop(child='<child link="b"/><child link="a"/>'),
        5,
        ("<child>", LOOP, "is given twice"),
    ),
    "loop of no link": (loop(child="<child/>"), 5, ("<child>", LOOP, "no attribute link")),
    "loop to an unknown link": (loop(child='<child link="x"/>'), 5, (LOOP, "unknown child")),
    "loop to itself": (loop(child='<child link="a"/>'), 5, (LOOP, "'a' to itself")),
    "place of a loop": (
        loop(child='<child link="b"><origin xyz="0 nan 0"/></child>'),
        5,
        ("<origin>", "finite"),
    ),
    "two places of a loop": (
        loop(child='<child link="b"><origin/><origin/></child>'),
        5,
        ("<origin>", "given twice"),
    ),
    "axis of a loop": (loop('<axis xyz="0 0 0"/>'), 5, (LOOP, "axis is zero")),
    "half an axis": (loop('<axis xyz="0 1"/>'), 6, ("<axis>", LOOP, "must be 3 numbers")),
    "one axis of two": (loop(kind='type="universal"'), 5, (LOOP, "both axis and axis2")),
    "screw without a pitch": (loop(kind='type="helical"'), 5, (LOOP, "no attribute pitch")),
    "rod without a length": (loop(kind='type="rod"'), 5, (LOOP, "no attribute length")),
    "rod of no length": (loop(kind='type="rod" length="0"'), 5, (LOOP, "must be positive")),
    "rod of negative length": (loop(kind='type="rod" length="-2"'), 5, (LOOP, "positive")),
    "hinge with a length": (
        loop(kind='type="revolute" length="2"'),
        5,
        (LOOP, "has no length; a rod one has"),
    ),
    "a bit active": (loop(kind='type="fixed" active="maybe"'), 5, (LOOP, "true or false")),
    "two loops of a name": (
        robot(
            A,
            B,
            hinge("j", "a", "b"),
            *[f'<loop_joint name="l" type="fixed">{ENDS}</loop_joint>'] * 2,
        ),
        6,
        (LOOP, "'l' is used twice"),
    ),
    # Mimic
    "mimic of nothing": (joint("<mimic/>"), 5, ("<mimic>", JOINT, "no attribute joint")),
    "mimic of itself": (joint('<mimic joint="j"/>'), 4, (JOINT, "cycle")),
    "mimic cycle": (
        robot(
            A,
            B,
            C,
            hinge("j", "a", "b", MIMIC.format("k")),
            hinge("k", "b", "c", MIMIC.format("j")),
        ),
        5,
        (JOINT, "cycle"),
    ),
    "mimic of a floating joint": (
        joint('<mimic joint="j"/>', kind='type="floating"'),
        4,
        (JOINT, "one degree of freedom"),
    ),
    "mimic ratio": (joint('<mimic joint="j" multiplier="1,5"/>'), 5, ("<mimic>", "comma")),
}


#: Physics that `inertia="strict"` refuses, as above.
IMPOSSIBLE: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "negative moment": (inertia(ixx="-1"), 2, (LINK, "positive semi-definite")),
    "indefinite inertia": (inertia(ixy="3"), 2, (LINK, "positive semi-definite")),
    "triangle inequality": (inertia(izz="2.1"), 2, (LINK, "triangle inequality")),
    "turned triangle inequality": (
        inertia(izz="2.1").replace("<mass", '<origin rpy="0.3 0.5 0.7"/><mass'),
        2,
        (LINK, "triangle inequality"),
    ),
    "no inertial": (robot(A, '<link name="b"/>', hinge("j", "a", "b")), 3, ("zero", "'j'")),
}

#: Looks at fault: each is left out with a warning that says so, and the robot loads.
COSMETIC: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "no geometry": (visual("<origin/>"), 3, ("<visual>", LINK, "no <geometry>")),
    "empty geometry": (visual("<geometry/>"), 3, ("<geometry>", LINK, "one of: box")),
    "two shapes": (
        visual('<geometry><sphere radius="1"/><box size="1 1 1"/></geometry>'),
        3,
        ("<geometry>", LINK, "one of"),
    ),
    "negative radius": (visual('<geometry><sphere radius="-1"/></geometry>'), 3, ("<sphere>",)),
    "flat box": (visual('<geometry><box size="1 1"/></geometry>'), 3, ("<box>", LINK, "3 numbers")),
    "colour": (
        visual('<material name="m"><color rgba="red"/></material>'),
        3,
        ("<color>", LINK, "4 numbers"),
    ),
    "mesh without file": (visual("<geometry><mesh/></geometry>"), 3, ("<mesh>", "filename")),
    "mesh upwards": (mesh("../../etc/passwd"), 3, ("<mesh>", LINK, "leads out")),
    "mesh up and down": (mesh("x/../../other/a.stl"), 3, ("<mesh>", LINK, "leads out")),
    "absolute mesh": (mesh("/etc/passwd"), 3, ("<mesh>", LINK, "leads out")),
    "mesh address": (mesh("file:///etc/passwd"), 3, ("<mesh>", LINK, "leads out")),
    "escaped mesh address": (mesh("file://%2e%2e/%2e%2e/x"), 3, ("<mesh>", LINK, "leads out")),
    "package upwards": (mesh("package://p/../../../x.stl"), 3, ("<mesh>", LINK, "leads out")),
    "package named upwards": (mesh("package://../x.stl"), 3, ("<mesh>", LINK, "leads out")),
    "endless mesh name": (mesh("x" * 5000), 3, ("<mesh>", LINK, "cannot be followed")),
    "two materials": (
        visual('<material name="m"/><material name="n"/><geometry><sphere radius="1"/></geometry>'),
        3,
        ("<material", LINK, "twice"),
    ),
    "four scales": (
        visual('<geometry><mesh filename="a.stl" scale="1 1 1 1"/></geometry>'),
        3,
        ("<mesh>", LINK, "3 numbers, not 4"),
    ),
}


@contextmanager
def bounded(seconds: float, megabytes: float) -> Iterator[None]:
    tracemalloc.start()
    begin = time.process_time()
    try:
        yield
        elapsed, peak = time.process_time() - begin, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert elapsed < seconds
    assert peak < megabytes * 2**20


def refusal(file: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        load(file)
    assert str(file) in str(caught.value)
    assert caught.value.faults
    return caught.value


#: Faults that bring others with them: a part left out leaves a hole in the tree.
KNOCK_ON = {
    "no child", "no parent", "parent without link", "no name", "joint without name",
    "long name", "two joints of a name", "empty name", "mimic cycle", "two mimics", "mimic ratio",
}  # fmt: skip


def test_many_kinds() -> None:
    assert len(MALFORMED) + len(IMPOSSIBLE) + len(COSMETIC) > 90


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_file_is_refused(name: str, tmp_path: Path) -> None:
    content, line, phrases = MALFORMED[name]
    file = tmp_path / "robot.urdf"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    error = refusal(file)
    first = error.faults[0]
    assert line is None or first.line == line, str(error)
    assert name in KNOCK_ON or len(error.faults) == 1, str(error)
    assert line is None or f"line {line}" in str(error)
    for phrase in phrases:
        assert phrase in str(first), str(error)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_physics_is_refused_when_strict(name: str, tmp_path: Path) -> None:
    content, line, phrases = IMPOSSIBLE[name]
    file = tmp_path / "robot.urdf"
    file.write_text(content)
    with pytest.raises(ModelError) as caught:
        load(file, inertia="strict")
    (fault,) = caught.value.faults
    assert fault.line == line
    for phrase in phrases:
        assert phrase in str(fault)


@pytest.mark.parametrize("name", COSMETIC)
def test_looks_never_refuse_a_robot(name: str, tmp_path: Path) -> None:
    content, line, phrases = COSMETIC[name]
    file = tmp_path / "robot.urdf"
    file.write_text(content)
    loaded = load(file)
    assert loaded.bodies["a"].geometry == ()
    first = loaded.warnings[0]
    assert f"line {line}," in first
    assert "left out" in first
    for phrase in phrases:
        assert phrase in first


def test_several_faults_in_one_report(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    file.write_text(
        robot(
            A.replace('value="2"', 'value="-2"'),
            B.replace('ixx="1"', 'ixx="1,0"').replace('izz="1"', 'izz="nan"'),
            hinge("j", "a", "b", '<axis xyz="0 0 0"/>'),
            hinge("k", "a", "nowhere", '<origin xyz="1"/>'),
        )
    )
    error = refusal(file)
    assert [fault.line for fault in error.faults] == [2, 3, 3, 4, 5, 5]
    assert str(error).splitlines()[0] == f"{file}: 6 faults"
    assert str(error).splitlines()[1].startswith('  line 2, <link name="a">: mass is negative')


def test_hostile_names_are_printed_tame(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    file.write_text(mass("-1").replace('name="a"', 'name="&#x9b;31m&#x202e;&#10;x"'))
    text = str(refusal(file))
    assert r"\x9b31m\u202e\n" in text
    assert "\x9b" not in text
    assert len(text.splitlines()) == 2


# What is no ordinary file --------------------------------------------------------------------


def test_missing_file(tmp_path: Path) -> None:
    assert "No such file" in str(refusal(tmp_path / "no.urdf"))


def test_directory(tmp_path: Path) -> None:
    (tmp_path / "folder.urdf").mkdir()
    assert "not a regular file" in str(refusal(tmp_path / "folder.urdf"))


def test_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.urdf")
    assert "not a regular file" in str(refusal(tmp_path / "pipe.urdf"))


def test_file_without_permission(tmp_path: Path) -> None:
    file = tmp_path / "secret.urdf"
    file.write_text(robot(A))
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("this user may read everything")
    assert "Permission denied" in str(refusal(file))


def test_file_that_links_to_itself(tmp_path: Path) -> None:
    (tmp_path / "loop.urdf").symlink_to(tmp_path / "loop.urdf")
    assert "cannot be read" in str(refusal(tmp_path / "loop.urdf"))


def test_mesh_behind_a_link_that_leads_out(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret.stl").touch()
    (inner / "link.stl").symlink_to(tmp_path / "secret.stl")
    (inner / "folder").symlink_to(tmp_path)
    (inner / "loop.stl").symlink_to(inner / "loop.stl")
    for name in ("link.stl", "folder/secret.stl", "folder/none.stl", "package://x/link.stl"):
        (inner / "robot.urdf").write_text(mesh(name))
        loaded = load(inner / "robot.urdf")
        assert "leads out" in loaded.warnings[0]
        assert loaded.bodies["a"].geometry == ()
    (inner / "robot.urdf").write_text(mesh("loop.stl"))
    loaded = load(inner / "robot.urdf")
    assert "cannot be followed" in loaded.warnings[0]
    assert loaded.bodies["a"].geometry == ()


# Bombs ---------------------------------------------------------------------------------------


def test_entity_bomb(tmp_path: Path) -> None:
    entities = ['<!ENTITY e0 "lol">']
    entities += [f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10)]
    file = tmp_path / "laughs.urdf"
    file.write_text(f"<!DOCTYPE r [{''.join(entities)}]>\n<robot name='&e9;'/>")
    with bounded(seconds=2, megabytes=4):
        assert "DOCTYPE" in str(refusal(file))


def test_quadratic_entity(tmp_path: Path) -> None:
    file = tmp_path / "quadratic.urdf"
    file.write_text(f'<!DOCTYPE r [<!ENTITY a "{"x" * 50_000}">]><robot name="{"&a;" * 50_000}"/>')
    with bounded(seconds=2, megabytes=4):
        assert "DOCTYPE" in str(refusal(file))


def test_million_nested_elements(tmp_path: Path) -> None:
    file = tmp_path / "deep.urdf"
    file.write_text('<robot name="r">' + "<link>" * 10**6 + "</link>" * 10**6 + "</robot>")
    with bounded(seconds=5, megabytes=8):
        assert f"deeper than {MAX_DEPTH}" in str(refusal(file))


def test_hundred_megabytes(tmp_path: Path) -> None:
    file = tmp_path / "large.urdf"
    with file.open("wb") as stream:
        stream.write(b'<robot name="r">')
        stream.truncate(100 * 10**6)
    with bounded(seconds=1, megabytes=1):
        assert "larger than 32 MiB" in str(refusal(file))


def test_endless_token(tmp_path: Path) -> None:
    """A start tag that never ends would be hoarded by the parser, attribute by attribute."""
    file = tmp_path / "token.urdf"
    many = " ".join(f'a{i}=""' for i in range(10**6))
    for text in (f"<robot {many}/>", f'<robot name="{"x" * 10**7}"/>', "<r>" + "x" * 10**7):
        file.write_text(text)
        with bounded(seconds=5, megabytes=8):
            assert "no element in" in str(refusal(file))


def test_million_links(tmp_path: Path) -> None:
    file = tmp_path / "wide.urdf"
    text = '<robot name="r">' + "".join(f'<link name="{i}"/>' for i in range(10**6)) + "</robot>"
    assert len(text) < MAX_BYTES
    file.write_text(text)
    with bounded(seconds=20, megabytes=250):
        assert f"more than {MAX_ELEMENTS} elements" in str(refusal(file))


def test_more_links_than_allowed(tmp_path: Path) -> None:
    file = tmp_path / "wide.urdf"
    file.write_text(robot(*(f'<link name="{i}"/>' for i in range(20_000))))
    with bounded(seconds=10, megabytes=50):
        error = refusal(file)
    assert "20000 links; 10000 are allowed" in str(error)
    file.write_text(robot(A, *(hinge(str(i), "a", "b") for i in range(10_001))))
    assert "10001 joints" in str(refusal(file))
    file.write_text(robot('<link name="a">', "<visual/>" * 10_001, "</link>"))
    assert "10001 visuals" in str(refusal(file))


def test_fault_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "bad.urdf"
    bad = [hinge(f"{i}", f"{i:0200}", "y" * 200, '<axis xyz="x"/>') for i in range(9_000)]
    file.write_text(robot(*(f'<link name="{i:0200}"/>' for i in range(9_000)), *bad))
    begin = time.process_time()
    error = refusal(file)
    assert time.process_time() - begin < 20
    assert len(str(error)) < 200_000


def test_long_mimic_chain(tmp_path: Path) -> None:
    file = tmp_path / "chain.urdf"
    links = [f'<link name="{i}">{INERTIAL}</link>' for i in range(2_001)]
    hinges = [hinge(f"{i}", f"{i}", f"{i + 1}", MIMIC.format(i + 1)) for i in range(1_999)]
    file.write_text(robot(*links, *hinges, hinge("1999", "1999", "2000")))
    begin = time.process_time()
    assert "chain of more than 100" in str(refusal(file))
    assert time.process_time() - begin < 10


def test_mimic_ratios_that_overflow_together(tmp_path: Path) -> None:
    file = tmp_path / "chain.urdf"
    follow = [f'<mimic joint="{i + 1}" multiplier="1e40"/>' for i in range(9)]
    links = [f'<link name="{i}">{INERTIAL}</link>' for i in range(11)]
    hinges = [hinge(f"{i}", f"{i}", f"{i + 1}", text) for i, text in enumerate([*follow, ""])]
    file.write_text(robot(*links, *hinges))
    assert "mimic along its chain" in str(refusal(file))


def test_long_chain_of_links_loads(tmp_path: Path) -> None:
    """Depth of the robot is no depth of the file: a chain of thousands is slow, not refused."""
    file = tmp_path / "chain.urdf"
    links = [f'<link name="{i}">{INERTIAL}</link>' for i in range(2_000)]
    file.write_text(robot(*links, *(hinge(f"{i}", f"{i}", f"{i + 1}") for i in range(1_999))))
    assert load(file).nv == 6 + 1_999
