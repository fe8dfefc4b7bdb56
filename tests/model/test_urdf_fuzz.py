"""Whatever a file holds, loading it returns a robot or raises `RemoraError`."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remora.errors import ModelError, RemoraError
from remora.model.formats.load import load
from remora.model.robot import Robot

#: What is odd about a robot is told; here any robot is fine.
pytestmark = pytest.mark.filterwarnings("ignore::remora.errors.ModelWarning")

VALID = """<?xml version="1.0" encoding="utf-8"?>
<robot name="probe">
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="bus">
    <inertial>
      <origin xyz="0.05 -0.03 0.02" rpy="0.1 -0.2 0.3"/>
      <mass value="120"/>
      <inertia ixx="14.0" ixy="0.6" ixz="-0.4" iyy="17.5" iyz="0.3" izz="12.2"/>
    </inertial>
    <visual><geometry><box size="1 1 1"/></geometry><material name="grey"/></visual>
    <visual><geometry><mesh filename="package://probe/meshes/bus.stl"/></geometry></visual>
  </link>
  <link name="mount"/>
  <link name="arm">
    <inertial>
      <mass value="5"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
  </link>
  <link name="slide">
    <inertial>
      <origin xyz="0 0 0.1"/>
      <mass value="1"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>
    </inertial>
  </link>
  <joint name="weld" type="fixed">
    <origin xyz="1 0 0" rpy="0 0.3 0"/>
    <parent link="bus"/>
    <child link="mount"/>
  </joint>
  <joint name="shoulder" type="revolute">
    <parent link="mount"/>
    <child link="arm"/>
    <axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="2" effort="100"/>
    <dynamics damping="0.1" friction="0.2"/>
  </joint>
  <joint name="rail" type="prismatic">
    <parent link="arm"/>
    <child link="slide"/>
    <mimic joint="shoulder" multiplier="0.5" offset="0.1"/>
  </joint>
  <loop_joint name="pin" type="universal" active="false">
    <parent link="mount"><origin xyz="0.1 0 0" rpy="0 0.1 0"/></parent>
    <child link="slide"><origin xyz="0 0.2 0"/></child>
    <axis xyz="0 0 1"/>
    <axis2 xyz="0 1 0"/>
  </loop_joint>
  <loop_joint name="strut" type="rod" length="1.5">
    <parent link="world"/>
    <child link="arm"/>
  </loop_joint>
</robot>
"""
#: Values that have broken readers before.
ODD = (
    "", " ", "nan", "inf", "-inf", "1e308", "-1e308", "1e50", "-1e50", "1e-320", "0", "-0", "1,5",
    "1_0", "0x1p3", "1e", "--1", "1 2", "1 2 3", "0 0 0", "1e50 1e50 1e50", "bus", "arm", "slide",
    "fixed", "floating", "planar", "continuous", "../../x", "/etc/passwd", "package://", "file://",
    "package://../..", "http://x", "~", "\ud7ff", "ı", "９", "${x}", "x" * 300, "shoulder", "base",
    "rod", "helical", "gear", "true", "world",
)  # fmt: skip

FUZZ = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def attempt(content: bytes, **options: object) -> Robot | None:
    """Load the content of a file; anything but a sane robot or a RemoraError fails the test."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fuzz.urdf"
        file.write_bytes(content)
        refused = None
        try:
            robot = load(file, **options)  # pyright: ignore[reportArgumentType]
        except RemoraError as error:
            refused = error
    if refused is not None:
        assert isinstance(refused, ModelError)
        assert refused.faults
        assert str(file) in str(refused)
        return None
    for body in robot.bodies:
        assert np.isfinite(body.mass)
        assert np.all(np.isfinite(body.com))
        assert np.all(np.isfinite(body.inertia))
    for joint in robot.joints:
        assert np.all(np.isfinite(joint.placement))
        assert np.all(np.isfinite(joint.axes))
    for constraint in robot.constraints:
        assert constraint.parent != constraint.child or constraint.kind == "gear"
        assert np.all(np.isfinite(constraint.parent_placement))
        assert np.all(np.isfinite(constraint.child_placement))
    assert repr(robot)
    return robot


def test_valid_file_loads() -> None:
    robot = attempt(VALID.encode())
    assert robot is not None
    assert (robot.nq, robot.nv, len(robot.bodies)) == (9, 7, 3)
    assert [c.active for c in robot.constraints] == [False, True]


@FUZZ
@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    attempt(content)


@FUZZ
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), max_size=8))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    content = bytearray(VALID.encode())
    for position, byte in changes:
        content[position] = byte
    attempt(bytes(content))


@FUZZ
@given(st.integers(0, len(VALID)), st.integers(0, 200), st.integers(0, len(VALID)))
def test_cut_and_moved_pieces(start: int, length: int, to: int) -> None:
    content = VALID.encode()
    piece, rest = content[start : start + length], content[:start] + content[start + length :]
    attempt(rest)
    attempt(rest[:to] + piece + rest[to:])
    attempt(content[:to] + piece + content[to:])
    attempt(content[:start])


VALUES = [m.span(1) for m in re.finditer(r'="([^"]*)"', VALID)][2:]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters='<&"'), max_size=12)
NUMBER = st.floats().map(repr) | st.lists(st.floats(width=32), max_size=4).map(
    lambda xs: " ".join(map(repr, xs))
)


@FUZZ
@given(
    st.lists(
        st.tuples(st.sampled_from(VALUES), st.sampled_from(ODD) | NUMBER | TEXT),
        min_size=1,
        max_size=4,
        unique_by=lambda change: change[0],
    ),
    st.sampled_from(["free", "fixed", "planar", "universal", "revolute"]),
    st.booleans(),
)
def test_odd_values(
    changes: list[tuple[tuple[int, int], str]], base: str, merge_fixed: bool
) -> None:
    text = VALID
    for (start, end), value in sorted(changes, reverse=True):
        text = text[:start] + value + text[end:]
    attempt(text.encode("utf-8", "surrogatepass"), base=base, merge_fixed=merge_fixed)


@FUZZ
@given(st.integers(0, 2**32), st.integers(0, 3))
def test_shuffled_lines(seed: int, drops: int) -> None:
    """Lines of the file swapped within their element's depth, some dropped, some doubled."""
    generator = random.Random(seed)
    lines = VALID.splitlines()
    for _ in range(drops):
        i, j = generator.randrange(1, len(lines)), generator.randrange(1, len(lines))
        change: Callable[[], object] = generator.choice(
            [lambda i=i: lines.pop(i), lambda i=i, j=j: lines.insert(i, lines[j])]
        )
        change()
    i, j = generator.randrange(1, len(lines)), generator.randrange(1, len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    attempt("\n".join(lines).encode())


TAGS = (
    "robot",
    "link",
    "joint",
    "inertial",
    "mass",
    "inertia",
    "origin",
    "axis",
    "limit",
    "mimic",
    "dynamics",
    "parent",
    "child",
    "visual",
    "geometry",
    "box",
    "mesh",
    "sphere",
    "material",
    "color",
    "collision",
    "gazebo",
    "other",
    "a:b",
)
KEYS = (
    "name",
    "type",
    "value",
    "xyz",
    "rpy",
    "ixx",
    "ixy",
    "ixz",
    "iyy",
    "iyz",
    "izz",
    "lower",
    "upper",
    "link",
    "joint",
    "multiplier",
    "size",
    "filename",
    "rgba",
    "radius",
)
ELEMENT = st.recursive(
    st.builds(
        lambda tag, attributes: (tag, attributes, []),
        st.sampled_from(TAGS),
        st.dictionaries(st.sampled_from(KEYS), st.sampled_from(ODD), max_size=4),
    ),
    lambda inner: st.builds(
        lambda tag, attributes, children: (tag, attributes, children),
        st.sampled_from(TAGS),
        st.dictionaries(st.sampled_from(KEYS), st.sampled_from(ODD), max_size=4),
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)


def written(element: tuple[str, dict[str, str], list]) -> str:  # pyright: ignore
    tag, attributes, children = element
    inside = "".join(written(child) for child in children)
    words = " ".join([tag, *(f'{key}="{value}"' for key, value in attributes.items())])
    return f"<{words}>{inside}</{tag}>"


@FUZZ
@given(st.lists(ELEMENT, max_size=5))
def test_random_elements(elements: list[tuple[str, dict[str, str], list]]) -> None:  # pyright: ignore
    attempt(f"<robot name='r'>{''.join(map(written, elements))}</robot>".encode())


LINK_NAMES = st.sampled_from("abcd")


@FUZZ
@given(
    st.lists(LINK_NAMES, max_size=5),
    st.lists(
        st.tuples(
            st.sampled_from("jklm"),
            st.sampled_from(["fixed", "revolute", "continuous", "prismatic", "floating", "planar"]),
            LINK_NAMES,
            LINK_NAMES,
            st.none() | st.sampled_from("jklm"),
        ),
        max_size=5,
    ),
    st.booleans(),
)
def test_random_graphs(
    links: list[str], joints: list[tuple[str, str, str, str, str | None]], merge_fixed: bool
) -> None:
    """Trees and what is none: cycles, doubles, several roots, mimic among any kinds."""
    inertial = VALID[VALID.index("<inertial>") : VALID.index("</inertial>")] + "</inertial>"
    parts = [f'<link name="{name}">{inertial}</link>' for name in links]
    for name, kind, parent, child, leader in joints:
        mimic = f'<mimic joint="{leader}" multiplier="2"/>' if leader else ""
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        parts.append(f'<joint name="{name}" type="{kind}">{ends}{mimic}</joint>')
    robot = attempt(f'<robot name="r">{"".join(parts)}</robot>'.encode(), merge_fixed=merge_fixed)
    if robot is not None:
        assert len(robot.bodies) + len(robot.frames) == len(links)
        assert all(joint.parent < i for i, joint in enumerate(robot.joints))
