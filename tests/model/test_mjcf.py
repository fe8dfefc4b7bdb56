"""MJCF through MuJoCo: the same masses, the same poses, and clear refusals."""

import importlib
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remora.algebra import dual_quaternion, pose
from remora.dynamics.formulations import forward_dynamics, mass_matrix
from remora.dynamics.kinematics import poses
from remora.errors import ModelError, RemoraError
from remora.model.formats.mjcf.mjcf import read_mjcf
from remora.model.formats.mjcf.mjcf_equalities import Equalities
from remora.model.layouts.libraries import mujoco as mujoco_layout
from remora.model.robot import Robot
from remora.model.state import random_state

mujoco = pytest.importorskip("mujoco")


J = '<joint name="j"/>'


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


#: Stacks that no one joint moves like: chains, whose inner bodies have no mass.
CHAINS = {
    "hinge and slide across": ['axis="0 0 1" pos="1 0 0"', 'type="slide" axis="1 0 0"'],
    "slide, hinge": ['type="slide" axis="1 0 0"', 'axis="0 1 1" pos="0 1 0"'],
    "hinges that miss": ['axis="0 0 1"', 'axis="1 0 0" pos="0 1 0"'],
    "three hinges": ['axis="1 0 0"', 'axis="0 1 0"', 'axis="0 0 1"'],
    "left-handed slides": [f'type="slide" axis="{a}"' for a in ("1 0 0", "0 0 1", "0 1 0")],
    "slides askew": [f'type="slide" axis="{a}"' for a in ("1 0 0", "0 1 0", "0 0.1 1")],
    "references": ['axis="1 2 3" ref="0.3" pos="0.1 0 0"', 'axis="1 0 0" ref="-0.7" pos="1 0 0"'],
    "ball and slide": ['type="slide" axis="1 2 0"', 'type="ball" pos="0.1 0.2 0.3"'],
    "walker": [
        'type="slide" axis="1 0 0" armature="0.2"', 'type="slide" axis="0 0 1" ref="1.25"',
        'axis="0 1 0" pos="0 0 1.25" armature="0.4"', 'axis="1 0 0"',
    ],
}  # fmt: skip


def agree(tmp_path, robot):
    """Mass matrix, bias and accelerations agree with MuJoCo's to 1e-11."""
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data, layout = mujoco.MjData(model), mujoco_layout(robot, model)
    for seed in range(4):
        q, v = random_state(robot, seed)
        tau = np.random.default_rng(seed).normal(size=robot.nv)
        data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
        np.testing.assert_allclose(layout.q_from(data.qpos), q, atol=1e-12)
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        B = np.stack([layout.v_to(q, e) for e in np.eye(robot.nv)], axis=-1)
        ours = mass_matrix(robot, q)
        np.testing.assert_allclose(ours, B.T @ M @ B, atol=1e-11 * np.abs(ours).max())
        theirs = np.linalg.solve(M, layout.tau_to(q, tau) - data.qfrc_bias)
        vdot = layout.vdot_to(q, v, forward_dynamics(robot, q, v, tau))
        np.testing.assert_allclose(vdot, theirs, atol=1e-11 * np.abs(theirs).max())


@pytest.mark.parametrize("case", CHAINS)
@pytest.mark.parametrize("base", ["<freejoint/>", ""])
def test_other_stacks_are_chains_of_massless_bodies(tmp_path, case, base):
    joints = "".join(f"<joint {text}/>" for text in CHAINS[case])
    robot = robot_of(tmp_path, mjcf(joints, '<option gravity="1 2 3"/>', parent=base))
    count = len(CHAINS[case])
    assert robot.bodies.names[-2:] == ["arm", "hand"]
    assert len(robot.bodies) == 2 + count
    assert all(body.mass == 0.0 for body in robot.bodies[1:count])
    agree(tmp_path, robot)


@pytest.mark.parametrize("case", ONE)
def test_dynamics_of_one_joint_are_mujocos(tmp_path, case):
    agree(tmp_path, robot_of(tmp_path, mjcf(ONE[case][0], '<option gravity="1 2 3"/>')))


def test_armature_of_a_free_joint_is_felt_as_in_mujoco(tmp_path):
    base = '<joint name="base" type="free" armature="2.5"/>'
    text = mjcf('<joint name="j" armature="0.3"/>', '<option gravity="1 2 3"/>', parent=base)
    robot = robot_of(tmp_path, text)
    assert robot.joints.names[:2] == ["base_translation", "base_rotation"]
    assert [j.kind for j in robot.joints[:2]] == ["cartesian", "spherical"]
    agree(tmp_path, robot)


def test_a_joint_of_a_stack_may_lead_and_follow(tmp_path):
    equality = '<equality><joint joint1="k" joint2="grip" polycoef="0.1 -2 0 0 0"/></equality>'
    joints = '<joint name="j" axis="1 0 0"/><joint name="k" axis="0 1 0"/>'
    robot = robot_of(tmp_path, mjcf(joints, equality))
    assert robot.joints["k"].mimic.ratio == -2.0
    assert robot.joints["j"].mimic is None


def test_an_inactive_equality_is_known_by_its_name(tmp_path):
    weld = '<weld name="w" body1="bus" body2="hand" active="false"/>'
    gear = '<joint name="g" joint1="grip" joint2="j" polycoef="0.1 -2 0 0 0" active="false"/>'
    robot = robot_of(tmp_path, mjcf(J, f"<equality>{weld}{gear}</equality>"))
    w, g = robot.constraints
    assert (w.name, w.kind, w.active) == ("w", "fixed", False)
    assert (g.name, g.kind, g.active, g.ratio, g.offset) == ("g", "gear", False, -2.0, 0.1)
    assert (robot.joints[g.parent].name, robot.joints[g.child].name) == ("j", "grip")
    tendons = '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
    text = f'<equality><tendon name="e" tendon1="t" active="false"/></equality>{tendons}'
    assert any("'e': is not active" in w for w in robot_of(tmp_path, mjcf(J, text)).warnings)


def test_joints_of_inactive_equalities_stay_apart(tmp_path):
    gear = '<joint joint1="k" joint2="grip" active="false"/>'
    stack = '<joint name="j" axis="1 0 0"/><joint name="k" axis="0 1 0"/>'
    robot = robot_of(tmp_path, mjcf(stack, f"<equality>{gear}</equality>"))
    assert robot.joints[robot.constraints["equality_0"].child].name == "k"
    taken = '<joint joint1="k" joint2="grip"/><joint joint1="j" joint2="k" active="false"/>'
    robot = robot_of(tmp_path, mjcf(stack, f"<equality>{taken}</equality>"))
    assert robot.constraints == ()
    assert any("one of its joints is a mimic" in w for w in robot.warnings)


SITE = '<site name="palm" pos="0.1 -0.2 0.3" euler="0.2 0.1 0"/>'
EQUALITIES = {
    "connect": ('<connect body1="bus" body2="hand" anchor="0.1 0.2 0.3"/>', "spherical"),
    "connect to the world": ('<connect body1="hand" anchor="0.1 0.2 0.3"/>', "spherical"),
    "connect sites": ('<connect site1="tip" site2="palm"/>', "spherical"),
    "weld": ('<weld body1="bus" body2="hand"/>', "fixed"),
    "weld to the world": ('<weld body1="hand"/>', "fixed"),
    "weld at an anchor": ('<weld body1="hand" body2="bus" anchor="0.1 0.2 0.3"/>', "fixed"),
    "weld at a pose": (
        '<weld body1="bus" body2="hand" anchor="0.1 0.2 0.3" relpose="1 2 3 0.5 0.5 0.5 0.5"/>',
        "fixed",
    ),
    "weld sites": ('<weld site1="tip" site2="palm"/>', "fixed"),
    "weld without torque": ('<weld body1="bus" body2="hand" torquescale="0"/>', "spherical"),
}


@pytest.mark.parametrize("case", EQUALITIES)
def test_connects_and_welds_are_violated_as_in_mujoco(tmp_path, case):
    """The distance of both frames, and the angle between them, are MuJoCo's in random states."""
    text, kind = EQUALITIES[case]
    body = mjcf(J, f"<equality>{text}</equality>")
    body = body.replace('<geom type="ellipsoid"', f'{SITE}<geom type="ellipsoid"')
    robot = robot_of(tmp_path, body)
    (c,) = robot.constraints
    assert (c.name, c.kind, c.active) == ("equality_0", kind, True)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(model)
    for seed in range(3):
        q, _ = random_state(robot, seed)
        data.qpos[:] = mujoco_q(robot, model, q)
        mujoco.mj_forward(model, data)
        ends = []
        for body, placement in ((c.parent, c.parent_placement), (c.child, c.child_placement)):
            on = np.eye(8)[0] if body < 0 else poses(robot, q)[body]
            ends.append(dual_quaternion.mul(on, placement))
        apart = pose.translation(ends[0]) - pose.translation(ends[1])
        found = data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
        np.testing.assert_allclose(found[:3], apart, atol=1e-12)
        if kind == "fixed":
            turn = dual_quaternion.mul(dual_quaternion.conjugate(ends[0]), ends[1])
            sine = np.linalg.norm(turn[1:4])  # of half the angle
            np.testing.assert_allclose(np.linalg.norm(found[3:]), sine, atol=1e-12)


def test_an_equality_within_one_rigid_body_is_left_out(tmp_path):
    weld = '<equality><weld name="w" body1="bus" body2="arm"/></equality>'
    robot = robot_of(tmp_path, mjcf("", weld))
    assert robot.constraints == ()
    assert any("'w': is left out: both" in w for w in robot.warnings)


def test_states_convert_where_nothing_has_a_name(tmp_path):
    robot = robot_of(
        tmp_path,
        '<mujoco><worldbody><body><joint type="slide" axis="1 0 0"/><joint axis="0 1 0"/>'
        '<geom size="1"/><body pos="1 0 0"><joint type="ball"/><geom size="0.5" pos="1 0 0"/>'
        "</body></body></worldbody></mujoco>",
    )
    assert robot.nv == 5
    agree(tmp_path, robot)


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
    assert (j.stiffness, j.spring_reference) == (3.0, 0.0)
    assert not any("spring" in w for w in robot.warnings)
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


def asset(text: str) -> str:
    return mjcf(J, f"<asset>{text}</asset>")


def equality(text: str) -> str:
    return mjcf(J, f"<equality>{text}</equality>")


def world(text: str, rest: str = "") -> str:
    return f"<mujoco>\n{rest}<worldbody>{text}</worldbody></mujoco>"


def from_mesh(file: str) -> str:
    asset = f'<asset><mesh name="m" file="{file}"/></asset>'
    return world('<body name="a"><freejoint/><geom type="mesh" mesh="m"/></body>', asset)


BUILT_IN = '<asset><mesh name="m" builtin="sphere" params="1"/></asset>'


def lump(mass: str, moments: str = "1 1 1") -> str:
    inertial = f'<inertial mass="{mass}" pos="0 0 0" diaginertia="{moments}"/>'
    return world(f"<body><joint/>{inertial}</body>")


BOMB = '<replicate count="9999">' * 9 + '<geom size="1"/>' + "</replicate>" * 9

# name: (text, line, part of the report)
MALFORMED = {
    "tendon": (
        mjcf(J, '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
             '<equality>\n<tendon name="w" tendon1="t"/></equality>'),
        12, "is a tendon constraint, which is not supported",
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
    "nan for a shape with the mass": (
        world('<body name="a"><joint/><geom size="1" mass="1" pos="nan 0 0"/></body>'), 2, "finite"
    ),
    "tendon with inertia": (
        mjcf(J, '<tendon><fixed name="t" armature="1"><joint joint="j" coef="1"/></fixed>'
                "</tendon>"),
        11, "armature"
    ),
    "mass from a missing mesh": (from_mesh("none.stl"), 2, "'none.stl' is not found"),
    "mass from a mesh outside": (from_mesh("/etc/passwd"), 2, "leads out of the folder"),
    "mass from a built-in mesh": (
        world('<body name="a"><freejoint/><geom type="mesh" mesh="m"/></body>', BUILT_IN),
        2, "built-in"
    ),
    "include twice": (
        '<mujoco>\n<include file="robot.xml"/></mujoco>', 2, "is included a second time"
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
    "include that climbs out": ('<mujoco>\n<include file="../a.xml"/></mujoco>', 2, "leads out"),
    "include of the folder": ('<mujoco>\n<include file=""/></mujoco>', None, "file"),
    "missing include": ('<mujoco>\n<include file="none.xml"/></mujoco>', None, "none.xml"),
    "replicate bomb": (world(BOMB), 2, "replicate"),
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
        robot_of(inside, from_mesh("link.stl"))


#: What is wrong with a look: (text beside the body, its shape, what the warning says).
LOOKS = {
    "mesh that climbs out": ("../../etc/passwd", "leads out"),
    "absolute mesh": ("/etc/passwd", "leads out"),
    "backslashes": ("..\\..\\a.stl", "leads out"),
    "address": ("http://a/b.stl", "is an address"),
    "missing": ("none.stl", "is not found"),
    "broken": ("broken.stl", None),
}


@pytest.mark.parametrize("case", LOOKS)
def test_a_mesh_never_refuses_a_robot(tmp_path, case):
    file, reason = LOOKS[case]
    (tmp_path / "broken.stl").write_text("no mesh at all")
    shape = '<geom name="look" type="mesh" mesh="m"/>'
    robot = robot_of(tmp_path, mjcf(J + shape, f'<asset><mesh name="m" file="{file}"/></asset>'))
    meshes = [shape for body in robot.bodies for shape in body.geometry if shape.kind == "mesh"]
    if reason in (None, "is not found"):  # the viewer will say that it is broken or missing
        assert [m.mesh for m in meshes] == [str((tmp_path / file).resolve())]
    else:
        assert meshes == []
    if reason is not None:
        (text,) = [w for w in robot.warnings if "geom 'look'" in w]
        assert reason in text
        assert "body 'arm'" in text
    assert robot.bodies["arm"].mass == 3.0


def test_textures_and_skins_are_left_out_unopened(tmp_path):
    rest = (
        '<compiler texturedir=".."/><asset><texture name="t" file="../../a.png"/>'
        '<texture name="u" type="2d" builtin="flat" width="999999" height="1"/>'
        '<material name="blue" texture="t" rgba="0 0 1 1"/><skin name="fur" file="f.skn"/></asset>'
        '<size nstack="99999999" njmax="99999999"/>'
    )
    robot = robot_of(tmp_path, mjcf(J + '<geom type="box" size="1 1 1" material="blue"/>', rest))
    assert (0.0, 0.0, 1.0, 1.0) in [shape.color for shape in robot.bodies["arm"].geometry]
    assert any("'fur' is left out" in w for w in robot.warnings)


def test_a_mass_that_follows_from_a_mesh_is_mujocos(tmp_path):
    package = tmp_path / "package"
    (package / "robots").mkdir(parents=True)
    (package / "meshes").mkdir()
    corners = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]
    obj = [f"v {x} {y} {z}" for x, y, z in corners] + ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    (package / "meshes" / "wedge.obj").write_text("\n".join(obj))
    text = from_mesh("../meshes/wedge.obj")
    with pytest.raises(ModelError, match="leads out of the folder"):
        robot_of(package / "robots", text)
    path = package / "robots" / "robot.xml"
    for robot in (
        read_mjcf(path, mesh_root=package).build(),
        ((package / "package.xml").write_text("<package/>"), read_mjcf(path).build())[1],
    ):
        assert robot.bodies["a"].mass == pytest.approx(1000.0)  # a volume of 1 m³
        assert [shape.mesh for shape in robot.bodies["a"].geometry] == [
            str((package / "meshes" / "wedge.obj").resolve())
        ]


def test_a_mesh_moved_by_its_reference_keeps_the_frame_of_its_file(tmp_path):
    (tmp_path / "wedge.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 3 2\nf 1 2 4\n")
    mesh = '<asset><mesh name="m" file="wedge.obj" refpos="1 2 3" refquat="0 1 0 0"/></asset>'
    robot = robot_of(tmp_path, mjcf(J + '<geom type="mesh" mesh="m"/>', mesh))
    (shape,) = [shape for shape in robot.bodies["arm"].geometry if shape.kind == "mesh"]
    np.testing.assert_allclose(  # the point (1, 2, 3) of the file is the geom's origin
        pose.transform_point(shape.placement, np.array([1.0, 2.0, 3.0])), np.zeros(3), atol=1e-12
    )
    R = pose.to_rotation_matrix(shape.placement)
    np.testing.assert_allclose(R, np.diag([1.0, -1.0, -1.0]), atol=1e-12)


def test_includes_are_read_and_looked_through(tmp_path):
    (tmp_path / "arm.xml").write_text(
        '<mujoco><worldbody><body name="a"><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    )
    main = '<mujoco><include file="arm.xml"/></mujoco>'
    assert robot_of(tmp_path, main).bodies.names == ["a"]
    (tmp_path / "arm.xml").write_text("<mujoco>\n\n<worldbody><bdy/></worldbody></mujoco>")
    with pytest.raises(ModelError, match=r"line 3, MuJoCo, <bdy> in arm.xml: .*unrecognized"):
        robot_of(tmp_path, main)
    (tmp_path / "arm.xml").write_text("<mujoco>\n<extension/></mujoco>")
    with pytest.raises(ModelError, match=r"line 2, .* in arm.xml: plugins"):
        robot_of(tmp_path, main)
    (tmp_path / "arm.xml").write_text("<mujoco>\n<a")
    with pytest.raises(ModelError, match=r"robot.xml(.|\n)*line 2, XML in arm.xml: .*well-formed"):
        robot_of(tmp_path, main)


def test_paths_are_relative_to_the_including_file(tmp_path):
    parts = tmp_path / "parts"
    (parts / "meshes").mkdir(parents=True)
    (parts / "meshes" / "m.stl").write_text("a mesh")
    (parts / "arm.xml").write_text('<mujoco><include file="body.xml"/></mujoco>')
    (parts / "body.xml").write_text(
        '<mujoco><compiler meshdir="meshes"/><asset><mesh file="m.stl"/></asset><worldbody>'
        '<body name="a"><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    robot = robot_of(tmp_path, '<mujoco><include file="parts/arm.xml"/></mujoco>')
    (shape,) = robot.bodies["a"].geometry
    assert shape.mesh == str((parts / "meshes" / "m.stl").resolve())


def test_without_mujoco_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    def absent(name, *rest):
        if name == "mujoco":
            raise ImportError(name)
        return original(name, *rest)

    original = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(RemoraError, match=r"pip install '\.\[mjcf\]'"):
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


@pytest.mark.parametrize("fluid", ['density="1000"', 'viscosity="0.1"'])
def test_a_fluid_is_left_out_with_a_warning(tmp_path, fluid):
    text = (
        f"<mujoco>\n<option {fluid}/>\n<worldbody><body name='a'><joint name='j'/>"
        "<geom size='0.1'/></body></worldbody></mujoco>"
    )
    (warning,) = robot_of(tmp_path, text).warnings
    assert warning == "line 2, option: density, viscosity: the forces of the fluid are left out"
    assert not robot_of(tmp_path, text.replace(fluid, "")).warnings


def test_joints_in_a_relation_remain_joints():
    gear = SimpleNamespace(leading=4, driven=5)
    told = Equalities({3: ("lead", -2.0, 0.1)}, [], [gear])
    tied = {(k, name): told.ties(k, name) for k in range(6) for name in ("lead", "other")}
    assert tied == {(k, name): k > 2 or name == "lead" for k, name in tied}
