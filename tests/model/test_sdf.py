"""SDF: the same robot as in URDF, frames resolved, and clear refusals."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remora.algebra import dual_quaternion, pose, quaternion
from remora.dynamics.formulations import bias_force, mass_matrix
from remora.dynamics.kinematics import frame_pose, poses
from remora.errors import ModelError, RemoraError
from remora.model.formats.load import load
from remora.model.formats.sdf.sdf import read_sdf
from remora.model.robot import Robot
from remora.model.state import neutral, random_state

#: A value in a file: an attribute, or the text of an element.
VALUE = re.compile(r'(?<=")[^"<>]*(?=")|(?<=>)[^<>\n]+(?=<)')
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def inertial(mass="2", at="0 0 0 0 0 0", moments="1 0.1 0 1.2 0 1.4"):
    rows = "".join(f"<{k}>{x}</{k}>" for k, x in zip(MOMENTS, moments.split(), strict=True))
    return f"<inertial><pose>{at}</pose><mass>{mass}</mass><inertia>{rows}</inertia></inertial>"


def link(name, at="", more=""):
    return f'<link name="{name}">{at}{inertial()}{more}</link>'


def joint(name, kind, parent, child, more="<axis><xyz>0 0 1</xyz></axis>"):
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{more}</joint>'


def sdf(text, version="1.9", name="m"):
    return f'<sdf version="{version}">\n<model name="{name}">\n{text}\n</model></sdf>'


def robot_of(tmp_path: Path, text: str, **options) -> Robot:
    path = tmp_path / "robot.sdf"
    path.write_text(text)
    return load(path, **options)


# Twins ---------------------------------------------------------------------------------------


def twins(seed: int) -> tuple[str, str]:
    """The same random robot as URDF and as SDF, whose links stand relative to their parents."""
    rng = np.random.default_rng(seed)

    def numbers(values):
        return " ".join(repr(float(x)) for x in values)

    urdf, sdf = [], []
    for i in range(6):
        mass, com, rpy = rng.uniform(1, 2), rng.normal(size=3), rng.normal(size=3)
        a = rng.normal(size=(3, 6))
        I = np.trace(a @ a.T) * np.eye(3) - a @ a.T
        six = I[np.triu_indices(3)]
        urdf.append(
            f'<link name="l{i}"><inertial><origin xyz="{numbers(com)}" rpy="{numbers(rpy)}"/>'
            f'<mass value="{mass!r}"/><inertia '
            + " ".join(f'{k}="{float(x)!r}"' for k, x in zip(MOMENTS, six, strict=True))
            + "/></inertial></link>"
        )
        at = ""
        if i:
            kind = ("revolute", "prismatic", "continuous", "fixed")[int(rng.integers(4))]
            parent, xyz = int(rng.integers(i)), rng.normal(size=3)
            turn, axis = rng.normal(size=3), rng.normal(size=3)
            bounds = "" if kind in ("continuous", "fixed") else '<limit lower="-1" upper="2"/>'
            urdf.append(
                f'<joint name="j{i}" type="{kind}"><parent link="l{parent}"/><child link="l{i}"/>'
                f'<origin xyz="{numbers(xyz)}" rpy="{numbers(turn)}"/><axis xyz="{numbers(axis)}"/>'
                f'{bounds}<dynamics damping="0.1" friction="0.2"/></joint>'
            )
            at = f'<pose relative_to="l{parent}">{numbers(xyz)} {numbers(turn)}</pose>'
            bounds = "<limit><lower>-1</lower><upper>2</upper></limit>" if bounds else ""
            told = "<dynamics><damping>0.1</damping><friction>0.2</friction></dynamics>"
            along = f"<axis><xyz>{numbers(axis)}</xyz>{bounds}{told}</axis>"
            sdf.append(
                joint(f"j{i}", kind, f"l{parent}", f"l{i}", "" if kind == "fixed" else along)
            )
        own = inertial(repr(mass), f"{numbers(com)} {numbers(rpy)}", numbers(six))
        sdf.append(f'<link name="l{i}">{at}{own}</link>')
    return f'<robot name="m">{"".join(urdf)}</robot>', "".join(sdf)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("merge_fixed", [True, False])
def test_a_robot_is_the_same_in_urdf_and_sdf(tmp_path, seed, merge_fixed):
    urdf, text = twins(seed)
    (tmp_path / "robot.urdf").write_text(urdf)
    one = load(tmp_path / "robot.urdf", merge_fixed=merge_fixed)
    two = robot_of(tmp_path, sdf(text), merge_fixed=merge_fixed)
    assert two.joints.names == one.joints.names
    q, v = random_state(one, seed)
    for name in [*one.bodies.names, *one.frames.names]:
        np.testing.assert_allclose(
            pose.to_matrix(frame_pose(two, q, name)), pose.to_matrix(frame_pose(one, q, name)),
            atol=1e-12,
        )  # fmt: skip
    for f in (lambda robot: mass_matrix(robot, q), lambda robot: bias_force(robot, q, v)):
        np.testing.assert_allclose(f(two), f(one), atol=1e-12 * np.abs(f(one)).max())
    for a, b in zip(one.joints, two.joints, strict=True):
        np.testing.assert_allclose(b.limits.lower, a.limits.lower)
        np.testing.assert_allclose(b.damping, a.damping)
        np.testing.assert_allclose(b.friction, a.friction)


# Frames --------------------------------------------------------------------------------------


def test_frames_are_relative_and_attached_to_others(tmp_path):
    """A joint away from its child's origin, an axis expressed elsewhere, nested models."""
    text = (
        '<frame name="f" attached_to="a"><pose>0 0 1 0 0 0</pose></frame>'
        '<frame name="g"><pose relative_to="f">0 2 0 0 0 0</pose></frame>'
        + link("a", '<pose degrees="true">1 0 0 0 0 90</pose>')
        + link("b", '<pose relative_to="f">3 0 0 0 0 0</pose>')
        + joint("j", "revolute", "f", "b",
                '<pose relative_to="g">0 0 0 0 0 0</pose>'
                '<axis><xyz expressed_in="__model__">1 0 0</xyz></axis>')
        + '<model name="sub"><pose relative_to="b">0 0 5 0 0 0</pose>' + link("c") + "</model>"
        + joint("k", "fixed", "b", "sub::c", "")
    )  # fmt: skip
    robot = robot_of(tmp_path, sdf(text), merge_fixed=False)
    assert robot.bodies.names == ["a", "b", "sub::c"]
    q = np.concatenate([[1.0, 0, 0, 0, 0, 0, 0, 0], [0.0]])
    x = dict(zip(robot.bodies.names, poses(robot, q), strict=True))

    def at(name):
        return pose.translation(frame_pose(robot, q, name))

    np.testing.assert_allclose(at("a"), [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(at("f"), [1, 0, 1], atol=1e-15)
    np.testing.assert_allclose(at("g"), [-1, 0, 1], atol=1e-15)  # f is turned by 90 degrees
    np.testing.assert_allclose(at("b_sdf"), [1, 3, 1], atol=1e-15)
    np.testing.assert_allclose(at("b"), at("g"), atol=1e-15)  # the body's frame is at its joint
    np.testing.assert_allclose(at("sub::c"), [1, 3, 6], atol=1e-15)
    assert robot.frames["g"].body == robot.body_index("a")  # the canonical link is the first
    axis = pose.to_rotation_matrix(x["b"]) @ robot.joints["j"].axes[0]
    np.testing.assert_allclose(axis, [1, 0, 0], atol=1e-15)


def test_the_base_stands_where_the_file_says(tmp_path):
    text = '<sdf version="1.9"><world name="w"><gravity>0 0 -1.6</gravity>{}</world></sdf>'
    one = f'<model name="m"><pose>1 2 3 0 0 0</pose>{link("a")}</model>'
    robot = robot_of(tmp_path, text.format(one))
    assert robot.name == "w"
    assert robot.gravity.tolist() == [0.0, 0.0, -1.6]
    assert robot.bodies.names == ["a"]
    np.testing.assert_allclose(pose.translation(robot.joints[0].placement), [1, 2, 3])
    two = f'<model name="n"><static>true</static><pose>4 0 0 0 0 0</pose>{link("a")}</model>'
    robot = robot_of(tmp_path, text.format(one + two + one.replace('"m"', '"o"')))
    assert robot.bodies.names == ["n::a", "m::a", "o::a"]
    assert [j.kind for j in robot.joints] == ["fixed", "free", "free"]
    np.testing.assert_allclose(pose.translation(robot.joints[0].placement), [4, 0, 0])
    assert robot_of(tmp_path, text.format(one).replace("<gravity>0 0 -1.6</gravity>", "")).gravity[
        2
    ] == pytest.approx(-9.8)
    assert robot_of(tmp_path, sdf(link("a"))).gravity.tolist() == [0.0, 0.0, 0.0]


def test_kinds_of_joints(tmp_path):
    axis, axis2 = "<axis><xyz>1 0 0</xyz></axis>", "<axis2><xyz>0 1 0</xyz></axis2>"
    text = link("a") + "".join(link(f"b{i}") for i in range(4))
    text += joint("ball", "ball", "a", "b0", "") + joint("u", "universal", "a", "b1", axis + axis2)
    screw = "<screw_thread_pitch>0.5</screw_thread_pitch>"
    text += joint("s", "screw", "a", "b2", axis + screw)
    text += joint("t", "screw", "a", "b3", axis + "<thread_pitch>-4</thread_pitch>")
    robot = robot_of(tmp_path, sdf(text))
    assert [j.kind for j in robot.joints[1:]] == ["spherical", "universal", "helical", "helical"]
    assert robot.joints["s"].pitch == pytest.approx(0.5 / (2 * np.pi))
    assert robot.joints["t"].pitch == pytest.approx(0.25)
    assert robot.joints["u"].axes.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_limits_springs_and_mimic_joints(tmp_path):
    limit = "<limit><lower>-1e16</lower><upper>inf</upper><effort>-1</effort></limit>"
    spring = "<dynamics><spring_stiffness>3</spring_stiffness></dynamics>"
    follow = (
        '<mimic joint="j"><multiplier>2</multiplier><offset>1</offset>'
        "<reference>0.25</reference></mimic>"
    )
    text = link("a") + link("b") + link("c")
    text += joint("j", "revolute", "a", "b", f"<axis><xyz>0 0 1</xyz>{limit}{spring}</axis>")
    text += joint("k", "revolute", "a", "c", f"<axis><xyz>0 0 1</xyz>{follow}</axis>")
    robot = robot_of(tmp_path, sdf(text, "1.11"))
    j, k = robot.joints["j"], robot.joints["k"]
    assert (j.limits.lower, j.limits.upper, j.limits.effort) == (-np.inf, np.inf, np.inf)
    assert (k.mimic.ratio, k.mimic.offset) == (2.0, 0.5)
    assert (j.stiffness, j.spring_reference) == (3.0, 0.0)
    assert not any("spring" in w for w in robot.warnings)


def test_axes_of_old_versions_are_the_models(tmp_path):
    text = link("a") + link("b", "<pose>0 0 0 0 0 1.5707963267948966</pose>")
    bare = text + joint("j", "revolute", "a", "b", "<axis><xyz>1 0 0</xyz></axis>")
    flag = "<use_parent_model_frame>1</use_parent_model_frame>"
    told = text + joint("j", "revolute", "a", "b", f"<axis><xyz>1 0 0</xyz>{flag}</axis>")
    for version, body, expected in (
        ("1.4", bare, [0, -1, 0]), ("1.6", bare, [1, 0, 0]), ("1.6", told, [0, -1, 0]),
        ("1.9", told, [1, 0, 0]),
    ):  # fmt: skip
        axis = robot_of(tmp_path, sdf(body, version)).joints["j"].axes[0]
        np.testing.assert_allclose(axis, expected, atol=1e-15, err_msg=version)


def test_poses_by_quaternions_and_limits_the_wrong_way_round(tmp_path):
    turned = "<pose rotation_format='quat_xyzw'>1 2 3 0.48 0 0.64 0.6</pose>"
    limits = "<axis><xyz>0 0 1</xyz><limit><lower>1</lower><upper>-1</upper></limit></axis>"
    text = link("a") + link("b", turned) + joint("j", "revolute", "a", "b", limits)
    robot = robot_of(tmp_path, sdf(text))
    expected = pose.from_parts(np.array([0.6, 0.48, 0.0, 0.64]), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(robot.joints["j"].placement, expected, atol=1e-15)
    limits = robot.joints["j"].limits
    assert (limits.lower, limits.upper) == (-np.inf, np.inf)
    assert "lower limit is above the upper one; taken as unlimited" in robot.warnings[0]


def test_the_only_model_of_a_world_has_no_prefix(tmp_path):
    (tmp_path / "arm.sdf").write_text(sdf(link("l")))
    include = "<include><uri>arm.sdf</uri><name>{}</name></include>"
    world = "<sdf version='1.9'><world name='w'>{}</world></sdf>"
    alone = robot_of(tmp_path, world.format(include.format("one")))
    assert alone.bodies.names == ["l"]
    both = include.format("one") + include.format("two")
    both += joint("f", "fixed", "one::l", "two::l", "")
    robot = robot_of(tmp_path, world.format(both), merge_fixed=False)
    assert robot.bodies.names == ["one::l", "two::l"]


def test_models_are_included_below_the_root(tmp_path):
    arm = tmp_path / "models" / "arm"
    arm.mkdir(parents=True)
    (arm / "model.config").write_text(
        '<model><sdf version="1.5">old.sdf</sdf><sdf version="1.9">new.sdf</sdf></model>'
    )
    (arm / "new.sdf").write_text(sdf(link("l") + link("k") + joint("j", "revolute", "l", "k")))
    include = (
        "<include><uri>{}</uri><name>right</name><pose relative_to='a'>0 0 1 0 0 0</pose></include>"
    )
    text = link("a") + include.format("model://arm") + joint("f", "fixed", "a", "right::l", "")
    path = tmp_path / "models" / "robot.sdf"
    path.write_text(sdf(text))
    robot = load(path)
    assert robot.joints.names == ["base", "right::j"]
    np.testing.assert_allclose(pose.translation(robot.frames["right::l"].placement), [0, 0, 1])
    (arm / "new.sdf").write_text(
        sdf(link("l") + "<frame name='grip'><pose>0 3 0 0 0 0</pose></frame>").replace(
            "<model ", "<model placement_frame='grip' "
        )
    )
    for own, lowest in (("", [0, -3, 1]), ("<placement_frame>l</placement_frame>", [0, 0, 1])):
        path.write_text(sdf(text.replace("<name>right", own + "<name>right")))
        found = load(path).frames["right::l"].placement
        np.testing.assert_allclose(pose.translation(found), lowest, atol=1e-15)
    path.write_text(sdf(text))
    (arm / "new.sdf").write_text(sdf(link("l") + "\n<link name='l'/>"))
    with pytest.raises(ModelError, match=r"line 4, <link name=\"l\"> in new.sdf: .* used twice"):
        load(path)
    (tmp_path / "secret.sdf").write_text(sdf(link("l")))
    (arm / "new.sdf").unlink()
    (arm / "new.sdf").symlink_to(tmp_path / "secret.sdf")
    with pytest.raises(ModelError, match="leads out of the model's folder"):
        load(path)
    (arm / "new.sdf").unlink()
    inner = tmp_path / "inner"
    inner.mkdir()
    for uri in ("../models/arm", "/etc", "model://../models/arm", "https://a.b/c"):
        (inner / "robot.sdf").write_text(sdf(link("a") + include.format(uri)))
        with pytest.raises(ModelError, match=r"uri .*(leads out|is no path)"):
            load(inner / "robot.sdf")
    (inner / "robot.sdf").write_text(sdf(link("a") + include.format("robot.sdf")))
    with pytest.raises(ModelError, match="within each other"):
        load(inner / "robot.sdf")
    (inner / "robot.sdf").write_text(sdf(link("a") + include.format("../models/arm")))
    (arm / "new.sdf").write_text(sdf(link("l")))
    assert "right::l" in str(load(inner / "robot.sdf", mesh_root=tmp_path, merge_fixed=False))


def test_looks_never_refuse_a_robot(tmp_path):
    def visual(geometry, more=""):
        return f"<visual name='v'>{more}<geometry>{geometry}</geometry></visual>"

    (tmp_path / "a.stl").touch()
    shapes = [
        visual("<box><size>1 2 3</size></box>", "<pose>1 0 0 0 0 0</pose><material><diffuse>1 0 0"
               "</diffuse></material>"),
        visual("<mesh><uri>a.stl</uri><scale>2 2 2</scale></mesh>"),
        visual("<ellipsoid><radii>1 2 3</radii></ellipsoid>", "<material><diffuse>0.1 0.2 7 0.5"
               "</diffuse></material>"),
        visual("<sphere><radius>nan</radius></sphere>"),
        visual("<mesh><uri>../../etc/passwd</uri></mesh>"),
        visual("<box/>"),
        visual("<box><size>1 -2 3</size></box>"),
        visual("<plane/>"),
        visual("<torus/>"),
        "<visual/>",
    ]  # fmt: skip
    robot = robot_of(tmp_path, sdf(link("a", more="".join(shapes))))
    shown = robot.bodies["a"].geometry
    assert [shape.kind for shape in shown] == ["box", "mesh", "ellipsoid"]
    assert shown[0].color == (1.0, 0.0, 0.0, 1.0)
    assert shown[2].color == (0.1, 0.2, 1.0, 0.5)
    assert shown[1].mesh == str((tmp_path / "a.stl").resolve())
    assert len(robot.warnings) == 6
    for said in ("leads out", "negative size"):
        assert any(said in w for w in robot.warnings)


# Refusals ------------------------------------------------------------------------------------

TREE = link("a") + "\n" + link("b")


def test_a_joint_that_closes_a_loop_is_a_constraint(tmp_path):
    """Its frames are at the joint in the file's configuration, on both of its bodies."""
    place = '<pose relative_to="b">0.3 0.2 0.1 0.1 0.2 0.3</pose>'
    axis = '<axis><xyz expressed_in="a">0 1 0</xyz><limit><lower>-1</lower></limit></axis>'
    parts = link("a") + link("b", "<pose>1 2 3 0.4 0.5 0.6</pose>")
    parts += link("c", "<pose>3 2 1 0 0 0.6</pose>") + joint("j", "revolute", "a", "b")
    parts += joint(
        "i", "revolute", "a", "c", "<axis><xyz>0 0 1</xyz></axis><pose>0 0 1 0 0 0</pose>"
    )
    for kind, ours in (("revolute", "revolute"), ("fixed", "fixed"), ("ball", "spherical")):
        closing = joint("k", kind, "b", "c", place + (axis if kind == "revolute" else ""))
        robot = robot_of(tmp_path, sdf(parts + closing), merge_fixed=False)
        assert robot.joints.names == ["base", "j", "i"]
        (k,) = robot.constraints
        assert (k.name, k.kind, k.active) == ("k", ours, True)
        assert (k.parent, k.child) == (robot.body_index("b"), robot.body_index("c"))
        x = poses(robot, neutral(robot))
        ends = dual_quaternion.mul(x[k.parent], k.parent_placement)
        np.testing.assert_allclose(
            dual_quaternion.mul(x[k.child], k.child_placement), ends, atol=1e-12
        )
        in_b = pose.from_xyz_rpy(np.array([0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3]))
        np.testing.assert_allclose(k.parent_placement, in_b, atol=1e-12)
        if kind == "revolute":
            along = quaternion.rotate(ends[:4], k.axes[0])
            np.testing.assert_allclose(along, [0.0, 1.0, 0.0], atol=1e-12)
            assert any("closes a loop: its lower are left out" in w for w in robot.warnings)


def test_a_loop_may_be_closed_by_the_world(tmp_path):
    closing = joint("j", "revolute", "a", "b") + joint("k", "ball", "world", "b", "")
    (k,) = robot_of(tmp_path, sdf(TREE + closing)).constraints
    assert (k.parent, k.child) == (-1, 1)


CYCLE = (
    '<frame name="f"><pose relative_to="g"/></frame><frame name="g"><pose relative_to="f"/></frame>'
)

# name: (text, line, part of the report)
MALFORMED = {
    "not SDF": ('<robot name="r"/>', 1, "name it .urdf"),
    "too old": ('<sdf version="1.3"/>', 1, "is not known"),
    "no version": ("<sdf/>", 1, "is not known"),
    "no links": (sdf(""), None, "has no bodies"),
    "document type": ('<!DOCTYPE a [<!ENTITY b "c">]>\n<sdf/>', None, "DOCTYPE"),
    "nan": (sdf(link("a").replace("<mass>2<", "<mass>nan<")), 3, "is not finite"),
    "decimal comma": (sdf(link("a").replace("<mass>2<", "<mass>2,5<")), 3, "comma"),
    "negative mass": (sdf(link("a").replace("<mass>2<", "<mass>-2<")), 3, "negative"),
    "pose of five numbers": (sdf(link("a", "<pose>1 2 3 4 5</pose>")), 3, "must be 6 numbers"),
    "quaternion": (
        sdf(link("a", '<pose rotation_format="quat_xyzw">0 0 0 0 0 0 9</pose>')), 3, "unit length"
    ),
    "two links of one name": (sdf(link("a") + "\n" + link("a")), 4, "used twice"),
    "unknown frame": (sdf(link("a", '<pose relative_to="x"/>')), 3, "there is no frame 'x'"),
    "poses in a circle": (sdf(TREE + CYCLE), 4, "depends on itself"),
    "attached in a circle": (
        sdf(TREE + '<frame name="f" attached_to="f"/>'), 4, "itself"
    ),
    "unknown type": (sdf(TREE + joint("j", "hinge", "a", "b")), 4, "unknown type 'hinge'"),
    "gearbox": (sdf(TREE + joint("j", "gearbox", "a", "b")), 4, "mimic"),
    "no axis": (sdf(TREE + joint("j", "revolute", "a", "b", "")), 4, "has no <axis>"),
    "zero axis": (
        sdf(TREE + joint("j", "revolute", "a", "b", "<axis><xyz>0 0 0</xyz></axis>")), 4, "zero"
    ),
    "unknown child": (sdf(TREE + joint("j", "revolute", "a", "x")), 4, "there is no frame 'x'"),
    "no parent": (sdf(TREE + joint("j", "revolute", "", "b")), 4, "has no <parent>"),
    "itself": (sdf(TREE + joint("j", "revolute", "a", "a")), 4, "the same link"),
    "world as a child": (sdf(TREE + joint("j", "revolute", "a", "world")), 4, "swap"),
    "loop of unknown type": (
        sdf(TREE + joint("j", "revolute", "a", "b") + "\n" + joint("k", "glue", "world", "b")),
        5, "unknown type 'glue'"
    ),
    "loop without an axis": (
        sdf(TREE + joint("j", "revolute", "a", "b") + "\n" + joint("k", "screw", "world", "b", "")),
        5, "has no <axis>"
    ),
    "cycle": (
        sdf(TREE + joint("j", "revolute", "a", "b") + joint("k", "revolute", "b", "a")), 4, "cycle"
    ),
    "mass of shapes": (
        sdf('<link name="a"><inertial auto="true"/></link>'), 3, "auto"
    ),
    "two worlds": (
        '<sdf version="1.9"><world name="a"/>\n<world name="b"/></sdf>', 2, "may hold one world"
    ),
    "two masses": (
        sdf(link("a").replace("</inertial>", "\n<mass>3</mass></inertial>")), 4,
        "is given twice; the first is on line 3"
    ),
    "merged include": (sdf('<include merge="true"><uri>x</uri></include>'), 3, "merge"),
    "mimic of nobody": (
        sdf(TREE + joint("j", "revolute", "a", "b",
                         '<axis><mimic joint="x"><multiplier>1</multiplier></mimic></axis>')),
        4, "unknown joint"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_are_refused_with_file_line_and_reason(tmp_path, case):
    text, line, reason = MALFORMED[case]
    with pytest.raises(ModelError) as caught:
        robot_of(tmp_path, text)
    assert str(tmp_path / "robot.sdf") in str(caught.value)
    assert reason in str(caught.value)
    assert line is None or line in [fault.line for fault in caught.value.faults], caught.value


def test_all_faults_are_in_one_report(tmp_path):
    text = link("a").replace("<mass>2<", "<mass>nan<") + "\n" + link("b", "<pose>1</pose>")
    text += "\n" + joint("j", "hinge", "a", "x")
    with pytest.raises(ModelError) as caught:
        robot_of(tmp_path, sdf(text))
    assert [fault.line for fault in caught.value.faults] == [4, 5, 3]


def test_a_long_chain_of_frames_needs_no_deep_stack(tmp_path):
    links = [link("l0")] + [
        link(f"l{i}", f'<pose relative_to="l{i - 1}">0 0 1 0 0 0</pose>') for i in range(1, 2000)
    ]
    ties = [joint(f"j{i}", "fixed", f"l{i - 1}", f"l{i}", "") for i in range(1, 2000)]
    robot = robot_of(tmp_path, sdf("".join(links + ties)))
    np.testing.assert_allclose(pose.translation(robot.frames["l1999"].placement), [0, 0, 1999])


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


WORDS = ["nan", "inf", "-1", "0", "1e300", "", "x", "0 0 0", "1 2", "a", "world", "__model__", "::"]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_fuzzed_values_give_a_robot_or_a_refusal(scratch, data):
    text = sdf(
        TREE + '<frame name="f" attached_to="a"><pose relative_to="b">1 0 0 0 0 0</pose></frame>'
        + joint("j", "revolute", "f", "b")
        + '<model name="sub">' + link("c") + "</model>" + joint("k", "fixed", "b", "sub::c", "")
    )  # fmt: skip
    for _ in range(data.draw(st.integers(1, 3))):
        hit = data.draw(st.sampled_from(list(VALUE.finditer(text))))
        text = text[: hit.start()] + data.draw(st.sampled_from(WORDS)) + text[hit.end() :]
    path = scratch / "robot.sdf"
    path.write_text(text)
    try:
        result = read_sdf(path).build(merge_fixed=True)
    except RemoraError as error:
        result = str(error)
    assert isinstance(result, Robot) or str(path) in result
