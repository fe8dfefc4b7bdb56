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
            "unknown key 'speed'; known: robot, assembly, box, base",
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


# Black boxes, and saving --------------------------------------------------------------------------


def recording(poses=True, max_gap=None):
    rng = np.random.default_rng(8)
    t = np.cumsum(rng.uniform(0.01, 0.02, 30))
    wrench, twist, rate = rng.normal(size=(3, 30, 6))
    x = [rm.algebra.pose.from_xyz_rpy(*rng.uniform(-1, 1, (2, 3))) for _ in t]
    point = rm.papers.sa24.PointReading(twist, rate, np.array(x) if poses else None)
    return rm.papers.sa24.SensorRecording(t, wrench, {"end": point}, max_gap)


def answer(t, base):
    return rm.papers.sa24.SensorReading(0.3 * base.twist, time=t)


def with_boxes():
    """A branched assembly with oblique connections, a recorded and a live black box, nested."""
    arm = rm.random_robot(4, bodies=3, base="revolute")
    other = rm.random_robot(5, bodies=2, base="universal")
    aside = rm.algebra.pose.from_xyz_rpy((0.1, -0.2, 0.3), (0.4, -0.5, 1.6))
    link = rm.papers.sa24.Connection
    wing = rm.Assembly(
        {"arm": arm, "gripper": rm.BlackBox(answer, max_age=0.01)},
        [link("gripper", "arm", "body_2", placement=aside)],
    )
    return rm.Assembly(
        {"hub: 1": other, "wing": wing, "load": rm.BlackBox(recording(), ("end",), "actuation"),
         "twin": arm},
        [link("wing", "hub: 1", "body_1", placement=aside), ("load", "wing", "arm/body_1"),
         link("twin", "load", "end", placement=aside)],
        (0.3, 0.2, -9.0),
    )  # fmt: skip


def test_an_assembly_is_saved_and_loaded_exactly(tmp_path):
    assembly = with_boxes()
    rm.save_assembly(assembly, tmp_path / "robot.yaml")
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == [
        "robot.hub__1.yaml", "robot.load.csv", "robot.wing_arm.yaml", "robot.yaml"
    ]  # equal robots share a file  # fmt: skip
    again = rm.load_assembly(tmp_path / "robot.yaml", boxes={"wing/gripper": answer})
    assert again.names == assembly.names
    assert again.connections == assembly.connections
    assert np.array_equal(again.gravity, assembly.gravity)
    for name in ("hub: 1", "wing/arm", "twin"):
        assert again.subsystems[name] == assembly.subsystems[name]
    q, v = assembly.random_state(1)
    at = {"t": 0.2}
    assert np.array_equal(
        again.inverse_dynamics(q, v, v, **at), assembly.inverse_dynamics(q, v, v, **at)
    )
    assert again.subsystems["wing/gripper"].max_age == 0.01
    with pytest.raises(rm.RemoraError, match=r"is a live black box: pass its program, boxes=\{'wi"):
        rm.load_assembly(tmp_path / "robot.yaml")
    with pytest.raises(rm.errors.UnknownName, match="no live black box named 'load'"):
        rm.load_assembly(tmp_path / "robot.yaml", boxes={"wing/gripper": answer, "load": answer})
    own = rm.Assembly({"own": Own()})
    with pytest.raises(rm.RemoraError, match="subsystem 'own' is a Own; only robots and black"):
        rm.save_assembly(own, tmp_path / "own.yaml")
    with pytest.raises(rm.RemoraError, match=r"an assembly is written to a \.yaml file"):
        rm.save_assembly(assembly, tmp_path / "robot.json")


class Own:
    nq, nv, points = 0, 0, ()

    def point_motions(self, base, q, v, vdot):
        return {}

    def inverse_dynamics(self, base, q, v, vdot, loads):
        return rm.papers.sa24.SubsystemLoads(np.zeros(6), np.zeros(0))


@pytest.mark.parametrize("poses", [True, False])
def test_black_boxes_in_files(folder, poses):
    data = recording(poses)
    text = "subsystems:\n  hand: {robot: hand.yaml}\n  load: {box: load.csv, max_gap: 0.05, KEYS}\n"
    text += "connections: [{child: load, parent: hand, at: palm}]\n"
    file = folder / "boxed.yaml"
    file.write_text(text.replace("KEYS", "sensor: actuation"), encoding="utf-8")
    columns = {"t": data.t[:, None], "wrench": data.wrench}
    point = data.points["end"]
    columns |= {"end.twist": point.twist, "end.rate": point.rate}
    columns |= {"end.pose": point.pose} if poses else {}
    names = ["t" if key == "t" else f"{key}[{k}]" for key, x in columns.items()
             for k in range(x.shape[1])]  # fmt: skip
    rows = np.concatenate(list(columns.values()), axis=1)
    lines = [",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]
    (folder / "load.csv").write_text("\n".join(lines), encoding="utf-8")
    box = rm.load_assembly(file).subsystems["load"]
    assert (box.points, box.sensor, box.accelerometer) == (("end",), "actuation", False)
    assert box.source.max_gap == 0.05
    assert np.array_equal(box.source.wrench, data.wrench)
    assert (box.source.points["end"].pose is None) != poses
    for damage, words in (
        ([*lines[:-1], lines[-1] + ",1"], r"load.csv.*line 31, recording: has \d+ values for \d+"),
        ([lines[0].replace("wrench[2]", "w"), *lines[1:]], r"has no column 'wrench\[2\]'"),
        ([lines[0].replace("end.rate[0]", "x"), *lines[1:]], r"has no columns 'end.rate\[0\]' to"),
        ([lines[0].replace("t,", "s,", 1), *lines[1:]], "has no column 't', the times in s"),
        ([lines[0] + ",temperature", *(line + ",1" for line in lines[1:])], "unknown column 'temp"),
        ([lines[0], lines[2], lines[1]], "must be an array .* of at least two increasing times"),
        ([lines[0], *lines[1:-1], lines[-1].replace(",", ",nan,", 1).rsplit(",", 1)[0]], "finite"),
        ([lines[0], lines[1].replace(",", ",x", 1)], "line 2, recording: could not convert string"),
        ([lines[0].replace("t,", "wrench[0],", 1)], "line 1, recording: names a column twice"),
    ):
        (folder / "load.csv").write_text("\n".join(damage), encoding="utf-8")
        with pytest.raises(rm.RemoraError, match=f"(?s){words}"):
            rm.load_assembly(file)
    for keys, words in (
        ("robot: hand.yaml", "needs either `robot` or `assembly`, a file or a bundled name, or `b"),
        ("sensor: wrong", "reaction"),
        ("max_age: 1.0", "`max_age` is for live boxes"),
    ):
        file.write_text(text.replace("KEYS", keys), encoding="utf-8")
        with pytest.raises(rm.RemoraError, match=words):
            rm.load_assembly(file)
    file.write_text(text.replace("box: load.csv", "box: live").replace(", KEYS", ""), "utf-8")
    with pytest.raises(rm.RemoraError, match="`max_gap` is for recordings"):
        rm.load_assembly(file)
    file.write_text("subsystems: {a: {robot: hand.yaml, points: [x]}}\n", encoding="utf-8")
    with pytest.raises(rm.RemoraError, match="`points` is for black boxes, which have the key"):
        rm.load_assembly(file)
