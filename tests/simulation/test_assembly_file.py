"""Assembly files: loading, nesting, bundled assemblies, and faults with their lines."""

import numpy as np
import pytest

import remora as rm

FILE = """\
name: pair
gravity: [0, 0, -1.6]
subsystems:
  bus: {robot: servicer, base: fixed}
  hand: {robot: hand.yaml}
connections:
  - {child: hand, parent: bus, at: TOOL, xyz: [0, 0, 0.1], rpy: [0, 0, 90 deg]}
"""


@pytest.fixture
def folder(tmp_path):
    b = rm.Builder("hand")
    b.body("palm", 1.0, (0, 0, 0.1), 0.1 * np.eye(3))
    b.joint("wrist", "revolute", None, "palm", axis=(0, 0, 1))
    rm.save_robot(b.build(), tmp_path / "hand.yaml")
    tool = rm.load("servicer").bodies[-1].name
    (tmp_path / "pair.yaml").write_text(FILE.replace("TOOL", tool), encoding="utf-8")
    return tmp_path


def test_robots_poses_and_gravity(folder):
    assembly = rm.load_assembly(folder / "pair.yaml")
    assert assembly.names == ["bus", "hand"]
    assert np.array_equal(assembly.gravity, [0.0, 0.0, -1.6])
    placed = rm.algebra.pose.from_xyz_rpy((0, 0, 0.1), (0, 0, np.pi / 2))
    assert np.allclose(assembly.connections[0].placement, placed, atol=1e-15)
    assert assembly.nv == rm.load("servicer", base="fixed").nv + 1


def test_assemblies_name_assemblies(folder):
    text = """\
subsystems: {hub: {robot: servicer}, one: {assembly: pair.yaml}}
connections: [{child: one, parent: hub, at: bus}]
"""
    (folder / "outer.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(rm.RemoraError, match=r"assembly 'one' has gravity \[0.0, 0.0, -1.6\], the"):
        rm.load_assembly(folder / "outer.yaml")
    loop = "subsystems: {a: {assembly: loop.yaml}}\n"
    (folder / "loop.yaml").write_text(loop, encoding="utf-8")
    with pytest.raises(rm.RemoraError, match="assembly files name each other in a circle"):
        rm.load_assembly(folder / "loop.yaml")
    wing = FILE.replace("gravity: [0, 0, -1.6]\n", "").replace("servicer, base: fixed", "hand.yaml")
    (folder / "wing.yaml").write_text(wing.replace("TOOL", "palm"), encoding="utf-8")
    outer = "subsystems: {hub: {robot: hand.yaml}, w: {assembly: wing.yaml}}\n"
    outer += "connections: [{child: w, parent: hub, at: palm}]\n"
    (folder / "outer.yaml").write_text(outer, encoding="utf-8")
    assert rm.load_assembly(folder / "outer.yaml").names == ["hub", "w/bus", "w/hand"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1\n", "must be a map with keys"),
        ("name: x\n", "subsystems is missing"),
        (
            "subsystems: {a: {robot: servicer, speed: 3}}\n",
            "unknown key 'speed'; known: robot, assembly, base",
        ),
        ("subsystems: {a: {base: free}}\n", "needs either `robot` or `assembly`"),
        ("subsystems: {a: {robot: servicers}}\n", "no bundled robot named 'servicers'"),
        ("subsystems: {a: {robot: none.yaml}}\n", "none.yaml"),
        (
            "subsystems:\n  a: {robot: servicer}\n  b: {robot: servicer}\n"
            "connections:\n  - {child: b, parent: a, at: nose}\n",
            "no connection point of subsystem 'a' named 'nose'",
        ),
        ("subsystems: {a: {robot: servicer}}\ngravity: [0, 0]\n", "gravity"),
    ],
)
def test_faults(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(rm.errors.ModelError) as error:
        rm.load_assembly(path)
    assert message in str(error.value)


def test_bundled_assemblies():
    assert {"sa24_branched", "sa24_mobile"} <= set(rm.bundled("assemblies"))
    assert rm.load_assembly("sa24_branched").nv == 24
    mobile = rm.load_assembly("sa24_mobile")
    assert (mobile.nv, mobile.nb) == (30, 28)
    assert len({id(robot) for robot in mobile.subsystems.values()}) == 3  # one robot a file
    with pytest.raises(rm.errors.UnknownName, match="no bundled assembly named 'sa25'"):
        rm.load_assembly("sa25")


def dh(a, alpha, d, theta):
    """Rz(θ) Tz(d) Tx(a) Rx(α), written out."""
    (ct, ca), (st, sa) = np.cos([theta, alpha]), np.sin([theta, alpha])
    return np.array(
        [
            [ct, -st * ca, st * sa, a * ct],
            [st, ct * ca, -ct * sa, a * st],
            [0, sa, ca, d],
            [0, 0, 0, 1],
        ]
    )


def test_the_arms_have_the_numbers_of_table_4():
    """SA24, Table IV: the same three links in all arms, prismatic in subsystems 3 and 7."""
    half = np.pi / 2
    table = [
        ((0, half, 0.187, half), (0, -0.187, 0), 0.8, 0.8),
        ((0, half, 0.43, half), (0, -0.195, 0), 0.5, 0.5),
        ((0, 0, 0, 0), (0, 0, 0.235), 0.1, 0.1),
    ]
    branched = rm.load_assembly("sa24_branched")
    for name, robot in branched.subsystems.items():
        kind = "prismatic" if name in ("3", "7") else "revolute"
        assert [joint.kind for joint in robot.joints] == [kind] * 3
        before = np.eye(4)
        for k, (numbers, com, mass, inertia) in enumerate(table):
            frame = robot.frame(f"link{k + 1}_dh")
            x = rm.frame_pose(robot, rm.neutral(robot), frame)
            T = rm.algebra.pose.to_matrix(x)
            np.testing.assert_allclose(T, before @ dh(*numbers), atol=1e-15)
            body = robot.bodies[k]
            there = rm.algebra.pose.transform_point(frame.placement, np.array(com))
            np.testing.assert_allclose(body.com, there, atol=1e-15)
            assert body.mass == mass
            np.testing.assert_allclose(body.inertia, inertia * np.eye(3), atol=1e-15)
            before = T
    base = rm.load_assembly("sa24_mobile").subsystems["1"]
    assert base.bodies[0].mass == 80.0
    np.testing.assert_array_equal(base.bodies[0].inertia, 40.0 * np.eye(3))
