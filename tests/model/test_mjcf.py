"""MJCF through MuJoCo: the same masses, the same poses, and clear refusals."""

import importlib
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remora.algebra import pose
from remora.dynamics.kinematics import poses
from remora.errors import ModelError, RemoraError
from remora.model.formats.mjcf import read_mjcf
from remora.model.robot import Robot
from remora.model.state import random_state

mujoco = pytest.importorskip("mujoco")


def robot_of(tmp_path, text, merge=False):
    path = tmp_path / "robot.xml"
    path.write_text(text)
    return read_mjcf(path).build(merge_fixed=merge)


def mjcf(body: str, rest: str = "", parent: str = "<freejoint/>") -> str:
    return f"""<mujoco model="test"><compiler angle="radian"/>
<worldbody><geom type="plane" size="1 1 1"/>
<body name="bus" pos="1 2 3" euler="0.1 0.2 0.3">{parent}<geom type="box" size="1 2 3"/>
<body name="arm" pos="0.5 0.6 0.7" euler="0.4 -0.5 0.6">
{body}
<inertial pos="0.1 0.2 0.3" quat="0.9 0.1 0.2 0.3" mass="3" diaginertia="1 1.5 2"/>
<geom type="capsule" size="0.1 0.2" rgba="1 0 0 1"/><site name="tip" pos="0.3 0 0" euler="1 0 0"/>
<body name="hand" pos="0.1 0.2 0.3" euler="1 2 3">
  <joint name="grip" type="hinge" axis="1 1 0" pos="0.2 0.1 0"/>
  <geom type="ellipsoid" size="0.1 0.2 0.3" pos="0.1 0 0"/>
</body></body></body></worldbody>{rest}</mujoco>"""


def mujoco_q(robot, model, q):
    """Remora's q in MuJoCo's layout: only a free joint's numbers differ."""
    out = np.zeros(model.nq)
    for joint in robot.joints:
        body = robot.bodies[robot.joint_index(joint.name)].name
        first = model.body(body).jntadr[0]
        if first < 0:
            continue
        own = q[joint.q]
        if joint.mimic is not None:
            own = joint.mimic.ratio * own + joint.mimic.offset
        if joint.kind == "free":
            own = np.concatenate([pose.translation(own), own[:4]])
        start = model.jnt_qposadr[first]
        out[start : start + len(own)] = own
    return out


def compare(tmp_path, robot):
    """Masses, centres, inertias and frames agree with MuJoCo in random configurations."""
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(model)
    assert robot.bodies.names == [model.body(i).name for i in range(1, model.nbody)]
    for seed in range(5):
        q, _ = random_state(robot, seed)
        data.qpos[:] = mujoco_q(robot, model, q)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        x = poses(robot, q)
        for i, body in enumerate(robot.bodies):
            there = data.body(body.name)
            assert body.mass == model.body(body.name).mass[0]
            com = pose.transform_point(x[i], body.com)
            np.testing.assert_allclose(com, there.xipos, atol=1e-12)
            R, Ri = pose.to_rotation_matrix(x[i]), there.ximat.reshape(3, 3)
            moments = np.diag(model.body(body.name).inertia)
            np.testing.assert_allclose(R @ body.inertia @ R.T, Ri @ moments @ Ri.T, atol=1e-12)
            own = robot.frames.names
            frame = robot.frame(f"{body.name}_mjcf" if f"{body.name}_mjcf" in own else body.name)
            T = pose.to_matrix(pose.compose(x[i], frame.placement))
            np.testing.assert_allclose(T[:3, 3], there.xpos, atol=1e-12)
            np.testing.assert_allclose(T[:3, :3], there.xmat.reshape(3, 3), atol=1e-12)
        frame = robot.frames["tip"]
        T = pose.to_matrix(pose.compose(x[frame.body], frame.placement))
        np.testing.assert_allclose(T[:3, 3], data.site("tip").xpos, atol=1e-12)
        np.testing.assert_allclose(T[:3, :3], data.site("tip").xmat.reshape(3, 3), atol=1e-12)


ONE = {
    "hinge": ('<joint name="j" axis="1 2 3"/>', "revolute"),
    "hinge off centre": ('<joint name="j" axis="1 2 3" pos="0.3 -0.2 0.1"/>', "revolute"),
    "hinge with reference": ('<joint name="j" axis="1 2 3" pos="1 0 0" ref="0.4"/>', "revolute"),
    "slide": ('<joint name="j" type="slide" axis="1 2 3" pos="0.3 -0.2 0.1"/>', "prismatic"),
    "slide with reference": ('<joint name="j" type="slide" axis="0 2 3" ref="-2"/>', "prismatic"),
    "ball": ('<joint name="j" type="ball" pos="0.3 -0.2 0.1"/>', "spherical"),
    "welded": ("", "fixed"),
    "cylindrical": (
        '<joint name="j" axis="1 2 3" pos="1 0 0"/><joint name="k" type="slide" axis="1 2 3"/>',
        "cylindrical",
    ),
    "universal": (
        '<joint name="j" axis="1 0 0" pos="1 2 3"/><joint name="k" axis="1 1 0" pos="1 2 3"/>',
        "universal",
    ),
    "planar": (
        '<joint name="j" type="slide" axis="0 1 0"/><joint name="k" type="slide" axis="0 0 1"/>'
        '<joint name="l" axis="1 0 0" pos="0.1 0.2 0.3"/>',
        "planar",
    ),
    "planar turned": (
        '<joint name="j" type="slide" axis="3 4 0"/><joint name="k" type="slide" axis="-4 3 0"/>'
        '<joint name="l" axis="0 0 1"/>',
        "planar",
    ),
    "cartesian": (
        '<joint name="j" type="slide" axis="0 1 0"/><joint name="k" type="slide" axis="0 0 1"/>'
        '<joint name="l" type="slide" axis="1 0 0"/>',
        "cartesian",
    ),
}


@pytest.mark.parametrize("case", ONE)
@pytest.mark.parametrize("base", ["<freejoint/>", "", '<joint type="ball" pos="0.1 0.2 0.3"/>'])
def test_poses_and_masses_are_those_of_mujoco(tmp_path, case, base):
    text, kind = ONE[case]
    robot = robot_of(tmp_path, mjcf(text, parent=base))
    assert robot.joints[1].kind == kind
    compare(tmp_path, robot)


def test_the_numbers_of_a_joint_are_kept(tmp_path):
    robot = robot_of(
        tmp_path,
        mjcf(
            '<joint name="j" axis="0 0 2" range="-0.5 1.5" damping="0.2" frictionloss="0.3" '
            'armature="0.4" actuatorfrcrange="-2 2" stiffness="3"/>',
            '<option gravity="0 0 -1.62"/>',
        ),
    )
    j = robot.joints["j"]
    assert (j.limits.lower, j.limits.upper, j.limits.effort) == (-0.5, 1.5, 2.0)
    assert (j.damping, j.friction, j.rotor_inertia) == (0.2, 0.3, 0.4)
    assert robot.gravity.tolist() == [0.0, 0.0, -1.62]
    assert robot.name == "test"
    assert any("spring" in w for w in robot.warnings)
    capsule = robot.bodies["arm"].geometry[0]
    assert (capsule.kind, capsule.size, capsule.color) == ("capsule", (0.1, 0.4), (1, 0, 0, 1))


def test_angles_in_degrees_and_defaults_are_mujocos_business(tmp_path):
    robot = robot_of(
        tmp_path,
        '<mujoco><default><geom density="100"/></default><worldbody><body name="a">'
        '<joint name="j" range="-90 90"/><geom type="box" size="1 1 1"/></body></worldbody>'
        "</mujoco>",
    )
    assert robot.bodies["a"].mass == pytest.approx(800.0)
    assert robot.joints["j"].limits.upper == pytest.approx(np.pi / 2)
    assert robot.gravity.tolist() == [0.0, 0.0, -9.81]


def test_a_linear_equality_is_a_mimic_joint(tmp_path):
    equality = '<equality><joint joint1="grip" joint2="j" polycoef="0.1 -2 0 0 0"/></equality>'
    robot = robot_of(tmp_path, mjcf('<joint name="j" axis="1 2 3" ref="0.5"/>', equality))
    grip = robot.joints["grip"]
    assert (grip.mimic.joint, grip.mimic.ratio) == (1, -2.0)
    assert grip.mimic.offset == pytest.approx(0.1 + 2 * 0.5)
    assert robot.nv == 7
    compare(tmp_path, robot)


def test_names_that_clash_or_are_missing_are_made(tmp_path):
    robot = robot_of(
        tmp_path,
        '<mujoco><worldbody><site name="a" pos="1 0 0"/><body name="a"><joint/><geom size="1"/>'
        '<body><joint/><geom size="1"/><site/></body></body></worldbody></mujoco>',
    )
    assert robot.bodies.names == ["a", "body_2"]
    assert robot.joints.names == ["a_joint", "body_2_joint"]
    assert robot.frames.names == ["a_site"]
    assert robot.frames["a_site"].body == -1
    assert any("'a_site'" in w for w in robot.warnings)


def test_meshes_keep_the_frame_of_their_file(tmp_path):
    (tmp_path / "assets").mkdir()
    corners = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]
    faces = ["1 3 2", "1 2 4", "1 4 3", "2 3 4"]
    obj = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {face}" for face in faces]
    (tmp_path / "assets" / "wedge.obj").write_text("\n".join(obj))
    robot = robot_of(
        tmp_path,
        '<mujoco><compiler meshdir="assets"/><asset><mesh file="wedge.obj" scale="2 2 2"/></asset>'
        '<worldbody><body name="a"><freejoint/><geom type="mesh" mesh="wedge" pos="1 2 3"/></body>'
        "</worldbody></mujoco>",
    )
    (mesh,) = robot.bodies["a"].geometry
    assert (mesh.kind, mesh.size) == ("mesh", (2.0, 2.0, 2.0))
    assert mesh.mesh == str((tmp_path / "assets" / "wedge.obj").resolve())
    np.testing.assert_allclose(pose.to_matrix(mesh.placement)[:3, 3], [1, 2, 3], atol=1e-9)
    np.testing.assert_allclose(pose.to_rotation_matrix(mesh.placement), np.eye(3), atol=1e-9)


# Refusals ------------------------------------------------------------------------------------

J = '<joint name="j"/>'


def asset(text: str) -> str:
    return mjcf(J, f"<asset>{text}</asset>")


def equality(text: str) -> str:
    return mjcf(J, f"<equality>{text}</equality>")


def world(text: str) -> str:
    return f"<mujoco>\n<worldbody>{text}</worldbody></mujoco>"


def lump(mass: str, moments: str = "1 1 1") -> str:
    inertial = f'<inertial mass="{mass}" pos="0 0 0" diaginertia="{moments}"/>'
    return world(f"<body><joint/>{inertial}</body>")


def stack(*joints: str) -> str:
    return mjcf("".join(f"<joint {joint}/>" for joint in joints))


def slides(*axes: str) -> str:
    return stack(*(f'type="slide" axis="{axis}"' for axis in axes))


BOMB = '<replicate count="9999">' * 9 + '<geom size="1"/>' + "</replicate>" * 9

# name: (text, line, part of the report)
MALFORMED = {
    "hinge and slide across": (
        stack('name="k" axis="0 0 1"', 'name="l" type="slide" axis="1 0 0"'), 4, "slide 'l'"
    ),
    "wrong order": (stack('name="k" type="slide"', 'name="l"'), 4, "allowed: one free"),
    "hinges that miss": (
        stack('name="k"', 'name="l" axis="1 0 0" pos="0 1 0"'), 4, "hinge 'k', hinge 'l'"
    ),
    "left-handed slides": (slides("1 0 0", "0 0 1", "0 1 0"), 4, "right-handed"),
    "slides askew": (slides("1 0 0", "0 1 0", "0 0.1 1"), 4, "right-handed"),
    "four joints": (stack(*["type='slide'"] * 4), 4, "allowed: one free"),
    "reference in a stack": (stack("", 'type="slide" ref="1"'), 4, "ref 0"),
    "weld": (equality('<weld name="w" body1="bus" body2="hand"/>'), 11, "closed loops"),
    "connect": (
        equality('<connect name="w" body1="bus" body2="hand" anchor="0 0 0"/>'), 11, "closed loops"
    ),
    "curved equality": (
        equality('<joint name="w" joint1="grip" joint2="j" polycoef="0 1 2 0 0"/>'), 11, "linear"
    ),
    "held still": (equality('<joint name="w" joint1="grip"/>'), 11, "holds it still"),
    "followed twice": (
        equality('<joint name="v" joint1="grip" joint2="j"/>'
                 '<joint name="w" joint1="grip" joint2="j"/>'), 11, "the second on that joint"
    ),
    "mimic cycle": (
        equality('<joint joint1="grip" joint2="j"/><joint joint1="j" joint2="grip"/>'), 5, "cycle"
    ),
    "unknown element": (world("<bdy/>"), 2, "unrecognized element"),
    "unknown attribute": (world('<body mass="1"/>'), 2, "mass"),
    "decimal comma": (world('<geom size="1,5"/>'), 2, "size"),
    "nan": (lump("nan"), 2, "mass"),
    "nan for a place": (world('<body name="a" pos="nan 0 0"><geom size="1"/></body>'), 2, "finite"),
    "nan for a shape": (
        world('<body name="a"><geom size="1" mass="1" pos="nan 0 0"/></body>'), 2, "finite"
    ),
    "negative mass": (lump("-1"), 2, "mass"),
    "no mass": (world("<body><joint/></body>"), 2, "mass"),
    "triangle inequality": (lump("1", "1 1 3"), 2, "inertia"),
    "two bodies of one name": (world('<body name="a"/><body name="a"/>'), 2, "repeated name"),
    "no body": ("<mujoco><worldbody/></mujoco>", None, "no bodies"),
    "not MJCF": ('<robot name="r"/>', 1, "name it .urdf"),
    "truncated": ("<mujoco>\n<worldbody>\n<body", 3, "not well-formed"),
    "empty": ("", None, "empty"),
    "document type": ('<!DOCTYPE a [<!ENTITY b "c">]>\n<mujoco/>', None, "DOCTYPE"),
    "nested": ("<mujoco>" + "<body>" * 100_000, 1, "nested deeper"),
    "mesh that climbs out": (asset('<mesh name="m" file="../../etc/passwd"/>'), 11, "leads out"),
    "absolute mesh": (asset('<mesh name="m" file="/etc/passwd"/>'), 11, "leads out"),
    "folder that climbs out": (mjcf(J, '<compiler meshdir=".."/>'), 11, "leads out"),
    "texture that climbs out": (asset('<texture fileright="../a.png"/>'), 11, "leads out"),
    "backslashes": (asset('<mesh name="m" file="..\\..\\a.stl"/>'), 11, "leads out"),
    "address": (asset('<mesh name="m" file="http://a/b.stl"/>'), 11, "leads out"),
    "include that climbs out": ('<mujoco>\n<include file="../a.xml"/></mujoco>', 2, "leads out"),
    "include of the folder": ('<mujoco>\n<include file=""/></mujoco>', None, "file"),
    "missing mesh": (asset('<mesh name="m" file="none.stl"/>'), None, "none.stl"),
    "missing include": ('<mujoco>\n<include file="none.xml"/></mujoco>', None, "none.xml"),
    "replicate bomb": (world(BOMB), 2, "replicate"),
    "huge texture": (
        asset('<texture type="2d" builtin="flat" width="999999" height="1"/>'), 11, "more than"
    ),
    "huge field": (asset('<hfield name="h" nrow="99999" ncol="9"/>'), 11, "more than"),
    "huge user data": (mjcf(J, '<size nuser_body="999999999"/>'), 11, "more than"),
    "composite": (world('<composite type="cable" count="9 1 1"/>'), 2, "deformable"),
    "plugin": ("<mujoco>\n<extension><plugin plugin='a'/></extension></mujoco>", 2, "plugins"),
    "sub-model": (asset('<model name="m" file="a.xml"/>'), 11, "sub-models"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_are_refused_with_file_line_and_reason(tmp_path, case):
    text, line, reason = MALFORMED[case]
    with pytest.raises(ModelError) as caught:
        robot_of(tmp_path, text)
    assert str(tmp_path / "robot.xml") in str(caught.value)
    assert reason in str(caught.value)
    assert line is None or line in [fault.line for fault in caught.value.faults], caught.value


def test_links_are_followed_before_judging(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.stl").write_text("secret")
    (inside / "link.stl").symlink_to(tmp_path / "secret.stl")
    with pytest.raises(ModelError, match="leads out of the folder"):
        robot_of(inside, asset('<mesh name="m" file="link.stl"/>'))


def test_includes_are_read_and_looked_through(tmp_path):
    (tmp_path / "arm.xml").write_text(
        '<mujoco><worldbody><body name="a"><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    )
    main = '<mujoco><include file="arm.xml"/></mujoco>'
    assert robot_of(tmp_path, main).bodies.names == ["a"]
    (tmp_path / "arm.xml").write_text(
        '<mujoco>\n<asset><mesh name="m" file="../../x.stl"/></asset></mujoco>'
    )
    with pytest.raises(ModelError, match=r"line 2, .* in arm.xml: .* leads out"):
        robot_of(tmp_path, main)
    (tmp_path / "arm.xml").write_text("<mujoco>\n<a")
    with pytest.raises(ModelError, match=r"robot.xml(.|\n)*line 2, XML in arm.xml: .*well-formed"):
        robot_of(tmp_path, main)


def test_without_mujoco_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    def absent(name, *rest):
        if name == "mujoco":
            raise ImportError(name)
        return original(name, *rest)

    original = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(RemoraError, match=r"pip install 'remora\[mjcf\]'"):
        robot_of(tmp_path, mjcf(J))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


WORDS = ["nan", "inf", "-1", "0", "1e300", "", "x", "0 0 0", "1 2", "1e-300", "ball", "9" * 20]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_fuzzed_values_give_a_robot_or_a_refusal(scratch, data):
    text = mjcf(data.draw(st.sampled_from(sorted(ONE.values())))[0])
    for _ in range(data.draw(st.integers(1, 2))):
        hit = data.draw(st.sampled_from(list(re.finditer(r'(?<=")[^"<>]*(?=")', text))))
        text = text[: hit.start()] + data.draw(st.sampled_from(WORDS)) + text[hit.end() :]
    try:
        result = robot_of(scratch, text, merge=True)
    except RemoraError as error:
        result = str(error)
    assert isinstance(result, Robot) or str(scratch / "robot.xml") in result
