"""Well-formed URDF: everything the format says about motion arrives in the robot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import needs
from remora.algebra import pose
from remora.errors import InvalidValue, ModelError, ModelWarning, RemoraError, UnknownName
from remora.model.formats import bundled as bundled_module
from remora.model.formats.bounded_xml import Element, parse
from remora.model.formats.bundled import bundled
from remora.model.formats.load import READERS, load
from remora.model.robot import Robot

ORACLE = Path(__file__).parents[3] / "shared" / "oracle"

INERTIAL = (
    '<inertial><mass value="2"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
)


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, kind: str, parent: str, child: str, inside: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def robot_text(*parts: str) -> str:
    return '<robot name="r">\n' + "\n".join(parts) + "\n</robot>\n"


@pytest.fixture
def read(tmp_path: Path):
    def from_text(*parts: str, **options: object) -> Robot:
        file = tmp_path / "robot.urdf"
        file.write_text(robot_text(*parts))
        return load(file, **options)  # pyright: ignore[reportArgumentType]

    return from_text


KINDS = {
    "revolute": ("revolute", 1, 1),
    "continuous": ("revolute", 1, 1),
    "prismatic": ("prismatic", 1, 1),
    "floating": ("free", 8, 6),
    "planar": ("planar", 3, 3),
    "fixed": ("fixed", 0, 0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_joint_type(read, kind: str) -> None:
    inside = '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 3 4"/>'
    robot = read(link("a"), link("b"), joint("j", kind, "a", "b", inside), merge_fixed=False)
    ours, nq, nv = KINDS[kind]
    j = robot.joints["j"]
    assert (j.kind, j.q.stop - j.q.start, j.v.stop - j.v.start) == (ours, nq, nv)
    assert j.parent == robot.body_index("a")
    np.testing.assert_allclose(j.placement, pose.from_xyz_rpy([1, 2, 3], [0.1, 0.2, 0.3]))
    if kind in ("revolute", "continuous", "prismatic"):
        np.testing.assert_allclose(j.axes, [[0, 0.6, 0.8]])
    if kind == "planar":
        np.testing.assert_allclose(j.axes[2], [0, 0.6, 0.8])


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "planar"])
def test_missing_axis_is_x(read, kind: str) -> None:
    robot = read(link("a"), link("b"), joint("j", kind, "a", "b"))
    np.testing.assert_array_equal(robot.joints["j"].axes[-1], [1, 0, 0])


def test_zero_axis_of_a_fixed_joint_is_fine(read) -> None:
    robot = read(link("a"), link("b"), joint("j", "fixed", "a", "b", '<axis xyz="0 0 0"/>'))
    assert robot.frames.names == ["b"]


def test_inertial_origin_turns_the_inertia(read) -> None:
    inertial = (
        '<inertial><origin xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/><mass value="3"/>'
        '<inertia ixx="1" ixy="0.1" ixz="0" iyy="2" iyz="0" izz="2.5"/></inertial>'
    )
    body = read(link("a", inertial)).bodies["a"]
    assert body.mass == 3.0
    np.testing.assert_array_equal(body.com, [0.1, 0.2, 0.3])
    expected = [[2, -0.1, 0], [-0.1, 1, 0], [0, 0, 2.5]]
    np.testing.assert_allclose(body.inertia, expected, atol=1e-15)
    np.testing.assert_array_equal(body.inertia, body.inertia.T)


def test_merged_links_stay_frames(read) -> None:
    robot = read(
        link("bus"),
        link("mount", ""),
        link("arm"),
        joint("m", "fixed", "bus", "mount", '<origin xyz="1 0 0"/>'),
        joint("j", "revolute", "mount", "arm", '<origin xyz="0 1 0"/>'),
    )
    assert robot.bodies.names == ["bus", "arm"]
    assert robot.frames.names == ["mount"]
    assert robot.frames["mount"].body == 0
    np.testing.assert_allclose(pose.translation(robot.frames["mount"].placement), [1, 0, 0])
    np.testing.assert_allclose(pose.translation(robot.joints["j"].placement), [1, 1, 0])


def test_massless_link_keeps_its_inertia_when_merged(read) -> None:
    massless = INERTIAL.replace('value="2"', 'value="0"')
    robot = read(link("a"), link("b", massless), joint("j", "fixed", "a", "b"))
    np.testing.assert_allclose(robot.bodies["a"].inertia, 2 * np.eye(3))
    assert robot.mass == 2.0
    assert any('<link name="b">' in w and "no mass" in w for w in robot.warnings)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("revolute", 'lower="-1" upper="2" velocity="3" effort="4"', (-1, 2, 3, 4)),
        ("prismatic", 'lower="-1"', (-1, 0, np.inf, np.inf)),
        ("revolute", 'upper="2"', (0, 2, np.inf, np.inf)),
        ("revolute", 'effort="4" velocity="3"', (-np.inf, np.inf, 3, 4)),
        ("continuous", 'lower="5" upper="4" velocity="3"', (-np.inf, np.inf, 3, np.inf)),
    ],
)
def test_limits(read, kind: str, text: str, expected: tuple[float, ...]) -> None:
    robot = read(link("a"), link("b"), joint("j", kind, "a", "b", f"<limit {text}/>"))
    limits = robot.joints["j"].limits
    found = (limits.lower, limits.upper, limits.velocity, limits.effort)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    unlimited = kind != "continuous" and "er=" not in text
    assert any("neither lower nor upper" in w for w in robot.warnings) == unlimited


def test_no_limit_means_none(read) -> None:
    robot = read(link("a"), link("b"), joint("j", "revolute", "a", "b"))
    assert robot.joints["j"].limits.lower == -np.inf
    assert robot.warnings == ()


def test_damping_and_friction(read) -> None:
    dynamics = '<dynamics damping="0.5" friction="0.25"/>'
    robot = read(link("a"), link("b"), joint("j", "prismatic", "a", "b", dynamics))
    assert robot.joints["j"].damping == 0.5
    assert robot.joints["j"].friction == 0.25
    robot = read(link("a"), link("b"), joint("j", "planar", "a", "b", dynamics))
    assert "planar" in robot.warnings[0]


def test_mimic_shares_the_coordinate(read) -> None:
    robot = read(
        *(link(name) for name in "abcd"),
        joint("j3", "revolute", "c", "d", '<mimic joint="j2" multiplier="3" offset="1"/>'),
        joint("j2", "prismatic", "b", "c", '<mimic joint="j1" multiplier="-2" offset="0.5"/>'),
        joint("j1", "revolute", "a", "b"),
    )
    assert (robot.nq, robot.nv) == (9, 7)
    lead, follower = robot.joint_index("j1"), robot.joints["j3"]
    assert follower.mimic is not None
    assert (follower.mimic.joint, follower.mimic.ratio) == (lead, -6.0)
    assert follower.mimic.offset == 2.5
    assert follower.q == robot.joints["j1"].q


def test_geometry_and_materials(read, tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.stl").touch()
    mesh = (tmp_path / "meshes" / "a.stl").resolve()
    shapes = [
        '<origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry><material name="red"/>',
        '<geometry><cylinder radius="1" length="2"/></geometry>'
        '<material name="own"><color rgba="0 0 1 1"/></material>',
        '<geometry><sphere radius="0.5"/></geometry><material name="own"/>',
        '<geometry><capsule radius="0.5" length="2"/></geometry><material name="unheard"/>',
        '<geometry><mesh filename="meshes/a.stl" scale="1 1 -1"/></geometry>',
        '<geometry><mesh filename="package://any/meshes/a.stl"/></geometry>',
        f'<geometry><mesh filename="file://{mesh}"/></geometry>',
        f'<geometry><mesh filename="{mesh}"/></geometry>',
        '<geometry><mesh filename="missing.stl"/></geometry>',
        '<geometry><mesh filename="http://example.org/a.stl"/></geometry>',
    ]
    robot = read(
        '<material name="red"><color rgba="1 0 0 0.5"/></material>',
        link("a", INERTIAL + "".join(f"<visual>{shape}</visual>" for shape in shapes)),
    )
    found = robot.bodies["a"].geometry
    kinds = ["box", "cylinder", "sphere", "capsule", "mesh", "mesh", "mesh", "mesh", "mesh"]
    assert [g.kind for g in found] == kinds
    assert [g.size for g in found[:5]] == [(1, 2, 3), (1, 2), (0.5,), (0.5, 2), (1, 1, -1)]
    blue = (0, 0, 1, 1)
    assert [g.color for g in found[:5]] == [(1, 0, 0, 0.5), blue, blue, None, None]
    assert [g.mesh for g in found[4:8]] == [str(mesh)] * 4
    np.testing.assert_array_equal(pose.translation(found[0].placement), [1, 0, 0])
    assert len(robot.warnings) == 2
    assert "missing.stl" in robot.warnings[0]
    assert "http://" in robot.warnings[1]


def test_meshes_of_a_package_are_sought_up_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "urdf").mkdir()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.stl").touch()
    visual = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    names = ("package://arm/meshes/a.stl", "../meshes/a.stl")
    file = tmp_path / "urdf" / "robot.urdf"
    file.write_text(robot_text(link("a", INERTIAL + "".join(map(visual.format, names)))))
    expected = [str((tmp_path / "meshes" / "a.stl").resolve())] * 2
    robot = load(file, mesh_root=tmp_path)
    assert [g.mesh for g in robot.bodies["a"].geometry] == expected
    robot = load(file)
    assert str(tmp_path / "meshes") not in "".join(g.mesh for g in robot.bodies["a"].geometry)
    assert any("leads out" in w and "mesh_root" in w for w in robot.warnings)


def test_extensions_are_accepted_and_typos_are_named(read) -> None:
    robot = read(
        "<gazebo reference='a'><mu1>$(x)</mu1><thing a='${b}'/></gazebo>",
        "<transmission name='t'><type>x</type></transmission>",
        "<ros2_control name='c' type='system'/>",
        link("a", INERTIAL + "<collision><geometry/></collision>"),
        link("b", INERTIAL + "\n<inertal/>"),
        joint("j", "revolute", "a", "b", '<calibration rising="0"/><axis xyz="1 0 0" xzy="2"/>'),
    )
    assert len(robot.warnings) == 2
    assert "line 7, <inertal> in" in robot.warnings[0]
    assert '<link name="b">' in robot.warnings[0]
    assert "inertial" in robot.warnings[0]
    assert "line 8" in robot.warnings[1]
    assert "'xzy'" in robot.warnings[1]


def test_expanded_xacro_may_keep_its_namespace(tmp_path: Path) -> None:
    file = tmp_path / "r.urdf"
    space = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
    file.write_text(robot_text(link("a")).replace("<robot", f"<robot {space}"))
    assert load(file).warnings == ()


def test_warnings_are_capped(read) -> None:
    robot = read(link("a"), "<wrong/>" * 5000)
    assert len(robot.warnings) == 101


def test_numbers_may_be_written_in_every_usual_way(read) -> None:
    origin = '<origin xyz=" +1. .5e1\t-2E-3 " rpy="0 -0 00"/>'
    robot = read(link("a"), link("b"), joint("j", "revolute", "a", "b", origin))
    placement = robot.joints["j"].placement
    np.testing.assert_allclose(pose.translation(placement), [1, 5, -0.002], rtol=1e-15)


def test_names_of_any_script(read) -> None:
    robot = read(link("плечо"), link("腕"), joint("関節", "revolute", "плечо", "腕"))
    assert robot.bodies.names == ["плечо", "腕"]


# The base ------------------------------------------------------------------------------------


def test_base_defaults_to_free_and_gravity_to_zero(read) -> None:
    robot = read(link("a"))
    assert (robot.joints[0].kind, robot.joints[0].parent) == ("free", -1)
    np.testing.assert_array_equal(robot.gravity, [0, 0, 0])


@pytest.mark.parametrize("base", ["free", "fixed", "spherical", "planar", "cartesian"])
def test_base_may_be_any_kind(read, base: str) -> None:
    robot = read(link("a"), link("b"), joint("j", "revolute", "a", "b"), base=base)
    assert robot.joints[0].kind == base


def test_base_of_unknown_kind(read) -> None:
    with pytest.raises(InvalidValue, match=r"^base='floppy' is not a joint type; known: fixed"):
        read(link("a"), base="floppy")


def test_a_joint_of_unknown_type_draws_no_other_faults(read) -> None:
    with pytest.raises(ModelError) as caught:
        read(
            link("a"), link("b"), link("c"),
            joint("j", "hinge", "a", "b", '<limit lower="2" upper="1"/><mimic joint="k"/>'),
            joint("k", "revolute", "b", "c", '<mimic joint="j"/>'),
        )  # fmt: skip
    assert [f.reason.partition(";")[0] for f in caught.value.faults] == ["unknown type 'hinge'"]


def test_joint_named_like_the_base(read) -> None:
    robot = read(
        link("a"), link("b"), link("c"),
        joint("base", "revolute", "a", "b"), joint("a_base", "revolute", "a", "c"),
    )  # fmt: skip
    assert len(set(robot.joints.names)) == 3


def test_floating_joint_from_the_world(read) -> None:
    parts = (link("world", ""), link("bus"), joint("j", "floating", "world", "bus"))
    robot = read(*parts, base="fixed")
    assert [j.kind for j in robot.joints] == ["fixed", "free"]
    assert robot.nv == 6
    with pytest.warns(ModelWarning, match="no mass: mounted on the ground; base='free'"):
        assert [j.kind for j in read(*parts).joints] == ["fixed", "free"]
    with pytest.warns(ModelWarning, match=r"singular: what joint 'base' \(free\)"):
        read(*parts, base="free")


def test_gravity_is_set_and_checked(read) -> None:
    np.testing.assert_array_equal(read(link("a"), gravity=(0, 0, -9.8)).gravity, [0, 0, -9.8])
    with pytest.raises(ModelError, match=r"(?s)robot.urdf.*gravity"):
        read(link("a"), gravity=(0, np.nan, 0))


YAML = """remora: 1
name: y
bodies:
  - {name: bus, mass: 1, inertia: [1, 1, 1], joint: {name: root, kind: free, parent: null,
     xyz: [1, 0, 0]}}
"""


def test_base_given_overrides_the_one_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "y.yaml"
    file.write_text(YAML)
    assert load(file).joints[0].kind == "free"
    robot = load(file, base="fixed")
    assert (robot.joints[0].name, robot.joints[0].kind) == ("root", "fixed")
    np.testing.assert_array_equal(pose.translation(robot.joints[0].placement), [1, 0, 0])


def test_base_given_for_two_bases_is_ambiguous(tmp_path: Path) -> None:
    file = tmp_path / "y.yaml"
    file.write_text(
        YAML + YAML.partition("bodies:\n")[2].replace("bus", "b").replace("root", "two")
    )
    assert len(load(file).bodies) == 2
    with pytest.raises(ModelError, match="'root', 'two'"):
        load(file, base="fixed")


# What a path may be --------------------------------------------------------------------------


def test_bundled_robots_load_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "probe.urdf").write_text(robot_text(link("a")))
    (tmp_path / "robots" / "README.md").touch()
    monkeypatch.setattr(bundled_module, "_ROOT", tmp_path)
    assert list(bundled("robots")) == ["probe"]
    assert load("probe").bodies.names == ["a"]
    for name in ("prob", ""):
        with pytest.raises(UnknownName, match="known: probe"):
            load(name)


def test_unknown_suffix_lists_the_known(tmp_path: Path) -> None:
    for path in (tmp_path / "robot.step", str(tmp_path / "robot"), tmp_path):
        with pytest.raises(ModelError) as caught:
            load(path)
        assert str(path) in str(caught.value)
        assert all(suffix in str(caught.value) for suffix in READERS)


@pytest.mark.parametrize("path", ["./servicer", "servicer.step", Path("servicer")])
def test_a_bundled_name_with_more_to_it_gets_a_hint(path) -> None:
    with pytest.raises(ModelError, match="for the bundled robot say 'servicer' alone") as caught:
        load(path)
    assert caught.value.source == str(path)


def test_bundled_robots_are_called_by_name_in_refusals() -> None:
    with pytest.raises(ModelError) as caught:
        load("servicer", base="universal")
    assert caught.value.source == "bundled robot 'servicer'"


def test_not_a_path() -> None:
    with pytest.raises(InvalidValue):
        load(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(RemoraError):
        load("a\0b.urdf")


def test_mesh_root_is_a_path() -> None:
    with pytest.raises(InvalidValue, match="a path is needed"):
        load("servicer", mesh_root=5)  # pyright: ignore[reportArgumentType]


def test_upper_case_suffix(tmp_path: Path) -> None:
    (tmp_path / "R.URDF").write_text(robot_text(link("a")))
    assert load(str(tmp_path / "R.URDF")).nv == 6


# XML and the oracles -------------------------------------------------------------------------


def test_elements_carry_lines(tmp_path: Path) -> None:
    file = tmp_path / "x.urdf"
    file.write_text('<?xml version="1.0"?>\n<!-- two\nlines -->\n<a>\n  <b\n c="1"/>\n</a>')
    root = parse(file)
    assert (root.tag, root.line, root.attributes) == ("a", 4, {})
    assert [(c.tag, c.line, c.attributes) for c in root.children] == [("b", 5, {"c": "1"})]


@pytest.mark.parametrize(
    ("name", "bodies", "joints"), [("sc_3dof", 6, 3), ("sc_kuka_lwr", 9, 7), ("dual_iiwa", 17, 14)]
)
def test_oracle_files_load(name: str, bodies: int, joints: int) -> None:
    file = ORACLE / f"{name}.urdf"
    if not file.exists():
        pytest.skip(needs.ORACLE_NEED)
    merged = load(file)
    assert merged.nv == 6 + joints
    assert len(merged.bodies) == 1 + joints
    assert len(merged.bodies) + len(merged.frames) == bodies
    weights = [float(e.attributes["value"]) for e in _walk(parse(file)) if e.tag == "mass"]
    np.testing.assert_allclose(merged.mass, sum(weights), rtol=1e-14)


def _walk(element: Element) -> Iterator[Element]:
    yield element
    for child in element.children:
        yield from _walk(child)


# Loops --------------------------------------------------------------------------------------------


def loops(tmp_path, *lines, **options):
    """A robot of two arms on a bus with these loop joints."""
    moments = "ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'"
    mass = f"<inertial><mass value='1'/><inertia {moments}/></inertial>"
    links = "".join(f'<link name="{n}">{mass}</link>' for n in ("bus", "plate", "left", "right"))
    ends = {"plate": "bus", "left": "plate", "right": "bus"}
    joints = "".join(
        f'<joint name="{c} joint" type="{"fixed" if c == "plate" else "revolute"}">'
        f'<origin xyz="0 0.5 0"/><parent link="{p}"/><child link="{c}"/></joint>'
        for c, p in ends.items()
    )
    path = tmp_path / "loop.urdf"
    path.write_text(f'<robot name="r">{links}{joints}{"".join(lines)}</robot>')
    return load(path, **options)


def loop_joint(kind, inside="", parent="left", child="right", at='<origin xyz="1 0 0"/>'):
    ends = f'<parent link="{parent}">{at}</parent><child link="{child}"/>'
    return f'<loop_joint name="pin" type="{kind}">{ends}{inside}</loop_joint>'


def test_a_loop_joint_is_a_constraint(tmp_path):
    robot = loops(tmp_path, loop_joint("continuous", '<axis xyz="0 0 2"/>'))
    (pin,) = robot.constraints
    assert robot.warnings == ()
    assert (pin.name, pin.kind, pin.active) == ("pin", "revolute", True)
    assert (pin.parent, pin.child) == (robot.body_index("left"), robot.body_index("right"))
    assert np.array_equal(pin.axes, [[0.0, 0.0, 1.0]])
    np.testing.assert_allclose(pose.translation(pin.parent_placement), [1.0, 0.0, 0.0])
    assert np.array_equal(loops(tmp_path, loop_joint("prismatic")).constraints[0].axes, [[1, 0, 0]])


@pytest.mark.parametrize("kind", ["fixed", "planar", "cartesian", "spherical", "cylindrical"])
def test_loop_joints_of_every_type(tmp_path, kind):
    assert loops(tmp_path, loop_joint(kind)).constraints[0].kind == kind


def test_loop_joints_with_more_numbers(tmp_path):
    screw = loop_joint('helical" pitch="0.25', '<axis xyz="0 1 0"/>')
    assert loops(tmp_path, screw).constraints[0].pitch == 0.25
    rod = loop_joint('rod" length="1.5" active="false')
    pin = loops(tmp_path, rod).constraints[0]
    assert (pin.kind, pin.length, pin.active) == ("rod", 1.5, False)
    cross = loop_joint("universal", '<axis xyz="0 1 0"/><axis2 xyz="1 0 0"/>')
    assert np.array_equal(loops(tmp_path, cross).constraints[0].axes, [[0, 1, 0], [1, 0, 0]])


def test_a_loop_joint_on_a_merged_link_and_on_the_world(tmp_path):
    pin = loops(tmp_path, loop_joint("fixed", parent="plate"), merge_fixed=True).constraints[0]
    assert pin.parent == 0
    np.testing.assert_allclose(pose.translation(pin.parent_placement), [1.0, 0.5, 0.0])
    assert loops(tmp_path, loop_joint("fixed", parent="world")).constraints[0].parent == -1
