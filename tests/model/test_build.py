"""The builder: what it makes, what it merges, what it refuses."""

import copy
import dataclasses
import pickle

import casadi
import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import pose
from remora.algebra.array_ops import asarray
from remora.errors import InvalidValue, ModelError, RemoraError, UnknownName

CUBE = (1.0, 1.0, 1.0)


def arm():
    return (
        rm.Builder("arm")
        .body("bus", mass=10.0, inertia=CUBE)
        .body("link", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
        .body("hand", mass=0.5, com=(0.1, 0, 0.03), inertia=(0.01, 0.02, 0.025))
        .joint("shoulder", "revolute", "bus", "link", xyz=(1, 0, 0), axis=(0, 0, 2))
        .joint("wrist", "fixed", "link", "hand", xyz=(1, 0, 0), rpy=(0.3, 0.5, -0.4))
        .frame("tool", "hand", xyz=(0.2, 0, 0))
    )


def test_contract_of_section_4():
    robot = arm().build()
    assert (robot.nq, robot.nv) == (9, 7)
    assert robot.bodies[1].name == "link"
    assert robot.bodies["link"].mass == 1.0
    assert robot.joints[0].kind == "free"
    assert robot.joints[0].parent == -1
    assert (robot.joints[0].q, robot.joints[0].v) == (slice(0, 8), slice(0, 6))
    assert (robot.joints[1].q, robot.joints[1].v) == (slice(8, 9), slice(6, 7))
    assert robot.body_index("hand") == 2
    assert robot.joint_index("wrist") == 2
    assert "tool" in robot.frames
    assert_close(robot.joints["shoulder"].axes, [[0, 0, 1]])
    assert "shoulder" in repr(robot)
    assert "revolute" in repr(robot)


def test_unknown_properties_of_joints_and_options_of_constraints_are_named():
    builder = rm.Builder()
    with pytest.raises(UnknownName, match=r"property of a joint named 'dampng'.*damping"):
        builder.joint("j", "revolute", None, "b", dampng=1.0)
    with pytest.raises(UnknownName, match="option of a constraint named 'parent_pose'"):
        builder.constraint("c", "fixed", None, "b", parent_pose=None)


def test_everything_is_immutable():
    robot = arm().build()
    with pytest.raises(AttributeError):
        robot.name = "other"
    with pytest.raises(AttributeError):
        robot.bodies[0].mass = 3.0
    for array in (
        robot.bodies[1].com,
        robot.bodies[1].inertia,
        robot.joints[1].placement,
        robot.gravity,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_the_caller_keeps_its_own_arrays():
    com = np.zeros(3)
    robot = rm.Builder().body("a", mass=1, com=com, inertia=CUBE).build()
    com[0] = 5.0
    assert robot.bodies[0].com[0] == 0.0


@pytest.mark.parametrize("base", list(rm.JOINT_TYPES))
def test_the_base_may_be_any_kind(base):
    if base == "universal":
        with pytest.raises(ModelError, match="axis2"):
            arm().build(base=base)
    else:
        robot = arm().build(base=base)
        assert robot.joints[0].kind == base
        assert robot.nv == rm.JOINT_TYPES[base].nv + 1


def test_merging_a_fixed_body_keeps_frames_momentum_and_energy():
    whole, merged = arm().build(), arm().build(merge_fixed=True)
    assert merged.bodies.names == ["bus", "link"]
    assert merged.frames.names == ["hand", "tool"]
    q, v = rm.random_state(whole, 0)
    assert_close(rm.frame_pose(merged, q, "hand"), rm.frame_pose(whole, q, "hand"))
    assert_close(rm.frame_pose(merged, q, "tool"), rm.frame_pose(whole, q, "tool"))
    assert_close(rm.jacobian(merged, q, "tool"), rm.jacobian(whole, q, "tool"))
    assert_close(rm.momentum(merged, q, v), rm.momentum(whole, q, v))
    assert_close(rm.kinetic_energy(merged, q, v), rm.kinetic_energy(whole, q, v))
    assert_close(rm.center_of_mass(merged, q), rm.center_of_mass(whole, q))
    assert_close(rm.mass_matrix(merged, q), rm.mass_matrix(whole, q))


def test_chain_of_fixed_bodies_of_no_mass_merges():
    builder = arm().body("flange").body("marker")
    builder.joint("f1", "fixed", "hand", "flange", xyz=(0.1, 0, 0))
    builder.joint("f2", "fixed", "flange", "marker", rpy=(0, 0, 1))
    robot = builder.build(merge_fixed=True)
    assert {"flange", "marker"} <= set(robot.frames.names)
    kept = builder.build(merge_fixed=False)  # what has mass stays a body, what has none cannot
    assert kept.bodies.names == ["bus", "link", "hand"]
    assert kept.frames.names == ["flange", "marker", "tool"]


def test_mimic_shares_the_leaders_coordinate():
    builder = arm()
    for side, ratio, offset in (("left", 1.0, 0.0), ("right", -2.0, 0.1)):
        builder.body(f"finger_{side}", mass=0.1, inertia=(1e-3,) * 3)
        mimic = None if side == "left" else ("left_joint", ratio, offset)
        builder.joint(
            f"{side}_joint", "prismatic", "hand", f"finger_{side}", axis=(0, 1, 0), mimic=mimic
        )
    robot = builder.build()
    assert (robot.nq, robot.nv) == (10, 8)
    q, v = rm.random_state(robot, 3)
    q[9] = 0.2
    x = pose.translation(rm.frame_pose(robot, q, "finger_right")) - pose.translation(
        rm.frame_pose(robot, q, "hand")
    )
    assert np.isclose(np.linalg.norm(x), 0.3)
    for target in ("finger_right", "finger_left"):
        i = robot.body_index(target)
        assert_close(rm.jacobian(robot, q, target) @ v, rm.twists(robot, q, v)[i])
    assert_close(rm.dynamics.momentum_matrix(robot, q) @ v, rm.momentum(robot, q, v))
    moved = rm.integrate(robot, q, v)
    assert_close(rm.difference(robot, q, moved), v)


def test_mimic_of_a_mimic_is_resolved_and_cycles_refused():
    def robot(third):
        builder = rm.Builder().body("a", mass=1, inertia=CUBE)
        for name, mimic in (("b", None), ("c", ("jb", 2.0, 1.0)), ("d", third)):
            builder.body(name, mass=1, inertia=CUBE)
            builder.joint(f"j{name}", "revolute", "a", name, mimic=mimic)
        return builder.build()

    last = robot(("jc", 3.0, 0.5)).joints["jd"].mimic
    assert (last.joint, last.ratio, last.offset) == (1, 6.0, 3.5)
    with pytest.raises(ModelError, match="cycle"):
        robot(("jd", 1.0, 0.0))
    with pytest.raises(ModelError, match="unknown joint 'nobody'"):
        robot(("nobody", 1.0, 0.0))


def test_two_robots_in_one_model():
    robot = (
        rm.Builder("servicer and target")
        .body("chaser", mass=10, inertia=CUBE)
        .body("target", mass=5, inertia=CUBE)
        .joint("a", "free", None, "chaser")
        .joint("b", "free", None, "target")
        .build(base=None)
    )
    assert (robot.nq, robot.nv) == (16, 12)
    assert rm.topology.incidence_matrix(robot).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(RemoraError, match="one base"):
        rm.generalized_jacobian(robot, rm.neutral(robot), "target")


FAULTS = {
    "negative mass": (lambda b: b.body("x", mass=-1), "mass is negative"),
    "mass is text": (lambda b: b.body("x", mass="heavy"), "mass is not numeric"),
    "NaN mass": (lambda b: b.body("x", mass=np.nan), "mass is not finite"),
    "com of two": (lambda b: b.body("x", mass=1, com=(0, 0)), "must be 3 numbers"),
    "inertia of five": (lambda b: b.body("x", mass=1, inertia=(1,) * 5), "3 x 3 numbers"),
    "not symmetric": (
        lambda b: b.body("x", mass=1, inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric",
    ),
    "indefinite": (lambda b: b.body("x", mass=1, inertia=(1, 1, -1)), "positive semi-definite"),
    "triangle": (
        lambda b: b.body("x", mass=1, inertia=(1, 1, 3)),
        "triangle inequality.*smaller must add up to at least the largest",
    ),
    "name twice": (lambda b: b.body("bus", mass=1), "'bus' is used twice"),
    "frame named as body": (lambda b: b.frame("bus", "link"), "'bus' is used twice"),
    "no name": (lambda b: b.body("", mass=1), "has no name"),
    "two roots": (lambda b: b.body("x", mass=1, inertia=CUBE), "several roots.*'bus', 'x'"),
    "unknown kind": (lambda b: b.joint("x", "hinge", "bus", "link"), "unknown kind 'hinge'"),
    "unknown parent": (lambda b: b.joint("x", "revolute", "nobody", "link"), "unknown parent"),
    "two parents": (lambda b: b.joint("x", "revolute", "bus", "hand"), "already hangs on joint"),
    "zero axis": (
        lambda b: b.body("x", mass=1).joint("x", "revolute", "bus", "x", axis=(0, 0, 0)),
        "axis is zero",
    ),
    "axis too many": (
        lambda b: b.body("x", mass=1).joint("x", "spherical", "bus", "x", axis=(0, 0, 1)),
        "takes 0 axes",
    ),
    "parallel axes": (
        lambda b: b.body("x", mass=1).joint(
            "x", "universal", "bus", "x", axis=(0, 0, 1), axis2=(0, 0, -3)
        ),
        "parallel",
    ),
    "limits crossed": (
        lambda b: b.body("x", mass=1).joint("x", "revolute", "bus", "x", lower=1, upper=-1),
        "above the upper limit",
    ),
    "no room between limits": (
        lambda b: b.body("x", mass=1).joint("x", "revolute", "bus", "x", lower=np.inf),
        "no room to move",
    ),
    "negative effort": (
        lambda b: b.body("x", mass=1).joint("x", "revolute", "bus", "x", effort=-1),
        "effort limit is negative",
    ),
    "geometry of no kind": (
        lambda b: b.body("x", mass=1, geometry=[rm.Geometry("cone", (1.0,), np.eye(8)[0])]),
        "unknown kind 'cone'",
    ),
    "negative sphere": (
        lambda b: b.body("x", mass=1, geometry=[rm.Geometry("sphere", (-1.0,), np.eye(8)[0])]),
        "size of the sphere is negative",
    ),
    "damping negative": (
        lambda b: b.body("x", mass=1).joint("x", "revolute", "bus", "x", damping=-1),
        "damping is negative",
    ),
    "placement no pose": (lambda b: b.frame("x", "bus", placement=np.ones(8)), "unit dual"),
    "frame on nothing": (lambda b: b.frame("x", "nobody"), "unknown body 'nobody'"),
    "no mass that moves": (
        lambda b: b.body("x").joint("x", "revolute", "bus", "x"),
        "mass is zero on a body that moves",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_refusals_name_the_robot_and_the_reason(case):
    spoil, reason = FAULTS[case]
    builder = arm()
    spoil(builder)
    with pytest.raises(ModelError, match=reason) as caught:
        builder.build()
    assert str(caught.value).startswith("robot 'arm'")


def test_a_root_needs_a_base():
    with pytest.raises(ModelError, match="body 'bus': no joint carries the body 'bus' and base"):
        arm().build(base=None)


def test_cycle_is_refused():
    builder = rm.Builder().body("root", mass=1, inertia=CUBE)
    for a, b in (("x", "y"), ("y", "x")):
        builder.body(a, mass=1, inertia=CUBE)
        builder.joint(f"{a}{b}", "revolute", a, b)
    with pytest.raises(ModelError, match="cycle: 'xy', 'yx'"):
        builder.build()


def test_shapes_by_position_and_angles():
    builder = (
        rm.Builder("shapes")
        .geometry("bus", "box", (1.0, 1.0, 2.0), xyz=(0, 0, 1), rpy=(0, 0, np.pi / 2))  # before
        .body("bus", mass=1.0, geometry=[rm.Geometry("sphere", (0.1,))])
        .geometry("bus", "sphere", 0.2, color=(1.0, 0.0, 0.0, 1.0))  # and after the body
    )
    for _ in range(2):  # building twice gives the same
        shapes = builder.build().bodies["bus"].geometry
        assert [(s.kind, s.size) for s in shapes] == [
            ("sphere", (0.1,)), ("box", (1.0, 1.0, 2.0)), ("sphere", (0.2,)),
        ]  # fmt: skip
        assert np.array_equal(shapes[0].placement, np.eye(8)[0])
        assert np.array_equal(shapes[1].placement, pose.from_xyz_rpy((0, 0, 1), (0, 0, np.pi / 2)))
        assert shapes[2].color == (1.0, 0.0, 0.0, 1.0)
    bad = rm.Builder("bad").body("bus", mass=1.0).geometry("bas", "cone", 1.0)
    bad.geometry("bus", "box", (1, 1, 1), rpy=(0, 0))
    with pytest.raises(rm.errors.ModelError) as error:
        bad.build()
    for text in ("unknown kind 'cone'", "unknown body 'bas'; known: 'bus'", "rpy must be 3"):
        assert text in str(error.value)


def test_all_faults_come_in_one_report():
    builder = arm().body("x", mass=-1).body("y", mass=np.inf).frame("z", "nobody")
    with pytest.raises(ModelError) as caught:
        builder.build()
    assert len(caught.value.faults) == 4  # two bodies at fault, two more roots than one, a frame
    for part in ("negative", "not finite", "several roots", "nobody"):
        assert part in str(caught.value)


def test_numbers_may_be_symbolic():
    """Mass, centre of mass, inertia and placement as symbols, traced and then given values."""
    m, p = casadi.SX.sym("m"), casadi.SX.sym("p", 3)

    def robot(mass, position):
        builder = rm.Builder().body("bus", mass=10, inertia=CUBE)
        builder.body("link", mass=mass, com=position, inertia=(0.1, 0.2, 0.2))
        placement = pose.from_translation(position)
        return builder.joint("j", "revolute", "bus", "link", placement=placement).build()

    symbolic = robot(m, asarray(p))
    numeric = robot(2.0, np.array([0.1, 0.2, 0.3]))
    q, v = rm.random_state(numeric, 1)
    for function in (rm.momentum, rm.kinetic_energy):
        expression = function(symbolic, q, v)
        flat = casadi.vertcat(*np.asarray(expression).reshape(-1).tolist())
        value = casadi.Function("f", [m, p], [flat])(2.0, [0.1, 0.2, 0.3])
        expected = function(numeric, q, v)
        assert_close(np.array(value).reshape(np.shape(expected)), expected, rtol=1e-14)
    assert "symbolic" in repr(symbolic)


def test_numbers_may_carry_a_batch_shape(rng):
    robot = rm.random_robot(2, bodies=6)
    masses = rng.uniform(1, 2, size=5)
    many = robot.replace_body("body_3", mass=masses)
    q, v = rm.random_state(robot, 0)
    for k, mass in enumerate(masses):
        one = robot.replace_body("body_3", mass=np.asarray(mass))
        assert_close(rm.momentum(many, q, v)[k], rm.momentum(one, q, v), rtol=1e-14)
        assert_close(
            rm.dynamics.momentum_matrix(many, q)[k], rm.dynamics.momentum_matrix(one, q), rtol=1e-14
        )
        assert_close(rm.center_of_mass(many, q)[k], rm.center_of_mass(one, q), rtol=1e-14)


def test_unknown_names_list_the_known_ones():
    robot = arm().build()
    with pytest.raises(RemoraError, match="no body named 'x'; known: bus, link, hand"):
        robot.body_index("x")
    with pytest.raises(RemoraError, match="known: base, shoulder, wrist"):
        robot.joint_index("x")
    with pytest.raises(RemoraError, match="known: bus, link, hand, tool"):
        rm.jacobian(robot, rm.neutral(robot), "x")
    for items, what in ((robot.bodies, "body"), (robot.joints, "joint"), (robot.frames, "frame")):
        with pytest.raises(UnknownName, match=f"no {what} named 'x'; known: {items[0].name}"):
            items["x"]
    bare = robot.replace(frames=[])
    with pytest.raises(UnknownName, match=r"no frame named 'tool'; known: \(none\)"):
        bare.frames["tool"]


def test_indices_are_checked():
    robot = arm().build()
    assert robot.body_index(2) == robot.joint_index(np.int64(2)) == 2
    for index in (3, -1):
        with pytest.raises(UnknownName, match=f"no body {index}; known: 0 to 2"):
            robot.frame(index)
        with pytest.raises(UnknownName, match=f"no joint {index}; known: 0 to 2"):
            robot.joint_index(index)
    with pytest.raises(UnknownName, match="no body None; known: bus"):
        robot.body_index(None)


def test_copies_keep_what_they_hold():
    robot = arm().build()
    for copied in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot)):
        assert copied.bodies.names == robot.bodies.names
        with pytest.raises(UnknownName, match="no joint named 'x'"):
            copied.joints["x"]


def test_only_fields_can_be_replaced():
    robot = arm().build()
    assert robot.replace_body("bus", name="hull").bodies.names == ["hull", "link", "hand"]
    assert robot.replace_joint(1, damping=np.ones(1)).joints["shoulder"].damping == 1.0
    for spoil, reason in (
        (lambda: robot.replace_body("bus", masss=3), "no field of a body named 'masss'.*mass, com"),
        (lambda: robot.replace_joint("wrist", axis=3), "no field of a joint named 'axis'.*axes"),
        (lambda: robot.replace(nq=3), "no field of a robot named 'nq'.*bodies, joints"),
    ):
        with pytest.raises(UnknownName, match=reason):
            spoil()


def test_a_joint_of_unknown_kind_draws_no_other_faults():
    builder = arm().body("x", mass=1).body("y", mass=1)
    builder.joint("jx", "hinge", "bus", "x", axis=(0, 0, 0), lower=(1, 2), mimic=("jy", 1, 0))
    builder.joint("jy", "revolute", "x", "y", mimic=("jx", 1.0, 0.0))
    with pytest.raises(ModelError) as caught:
        builder.build()
    assert [f.reason.partition(";")[0] for f in caught.value.faults] == ["unknown kind 'hinge'"]
    builder.joint("jz", "hinge", "nobody", "x")  # the tree is still judged
    with pytest.raises(
        ModelError, match=r"(?s)unknown parent 'nobody'.*already hangs on joint 'jx'"
    ):
        builder.build()


@pytest.mark.parametrize("make", [
    lambda base: rm.load("servicer", base=base),
    lambda base: rm.load("missing.urdf", base=base),
    lambda base: arm().build(base=base),
    lambda base: arm().base(base),
    lambda base: rm.from_dh([], "classic", base=base, base_mass=1),
    lambda base: rm.random_robot(0, base=base),
])  # fmt: skip
def test_a_base_of_no_kind_is_refused_by_name(make):
    with pytest.raises(InvalidValue, match=r"^base='wheels' is not a joint type; known: fixed"):
        make("wheels")
    for odd in (["free"], {"free": 1}, 3):
        with pytest.raises(InvalidValue, match=r"^base=.* is not a joint type; known: fixed"):
            make(odd)


def test_kinds_and_names_must_be_text():
    builder = arm().joint("odd", ["revolute"], "bus", "hand").body(["x"], mass=1)
    with pytest.raises(ModelError, match=r"(?s)unknown kind \['revolute'\].*name must be text"):
        builder.build()


def test_replaced_numbers_become_arrays_of_the_robots_own():
    robot = arm().build()
    com, gravity = [0.1, 0.2, 0.3], np.zeros(3)
    changed = robot.replace_body("link", mass=2, com=com, inertia=np.eye(3, dtype=np.float32))
    changed = changed.replace_joint("shoulder", rotor_inertia=0.1, damping=1, friction=[2])
    changed = changed.replace_joint(0, damping=0.5).replace(gravity=gravity)
    link, shoulder = changed.bodies["link"], changed.joints["shoulder"]
    assert (link.mass, link.com.tolist(), link.inertia.dtype) == (2.0, com, np.float64)
    assert (shoulder.rotor_inertia.shape, changed.joints[0].damping.shape) == ((1,), (6,))
    q, v = rm.random_state(changed, 0)
    rm.forward_dynamics(changed, q, v, v)
    com[0] = gravity[2] = np.nan
    assert changed.bodies["link"].com[0] == 0.1
    assert changed.gravity[2] == 0.0
    owner = np.ones(3)
    shown = np.broadcast_to(owner, (2, 3))  # read-only, and yet another's
    many = robot.replace_body("link", com=shown)
    owner[:] = 7.0
    assert np.all(many.bodies["link"].com == 1.0)
    for array in (link.mass, link.com, shoulder.damping, changed.gravity):
        assert not array.flags.writeable
    new = dataclasses.replace(robot.bodies["hand"], com=[1, 2, 3])
    assert robot.replace(bodies=[*robot.bodies[:2], new]).bodies[2].com.shape == (3,)


def test_replaced_numbers_may_be_symbols_batches_and_impossible():
    robot = arm().build()
    m, d = casadi.SX.sym("m"), casadi.SX.sym("d")
    assert robot.replace_body("link", mass=m).bodies["link"].mass.dtype == object
    assert robot.replace_joint(0, damping=d).joints[0].damping.shape == (6,)
    many = robot.replace_joint("shoulder", damping=np.ones((4, 1))).replace(gravity=np.ones((4, 3)))
    assert many.joints["shoulder"].damping.shape == (4, 1)
    assert robot.replace_body("link", mass=-1.0).bodies["link"].mass == -1.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.replace(gravity=[0, 0]), r"gravity must have shape \(\.\.\., 3\)"),
        (lambda r: r.replace(gravity=[0, 0, np.nan]), "gravity holds values that are not finite"),
        (lambda r: r.replace_body("link", com=[1, 2]), "com of body 'link' must have shape"),
        (lambda r: r.replace_body("link", mass="x"), "mass of body 'link' is not numeric"),
        (lambda r: r.replace_body("link", mass=np.inf), "mass of body 'link' holds"),
        (lambda r: r.replace_body("link", inertia=(1, 1, 1)), "inertia of body 'link' must have"),
        (lambda r: r.replace_joint("wrist", placement=[1]), "placement of joint 'wrist' must have"),
        (lambda r: r.replace_joint("wrist", pitch=np.nan), "pitch of joint 'wrist' holds"),
        (lambda r: r.replace_joint("wrist", damping=[1, 2]), "damping of joint 'wrist' must have"),
        (lambda r: r.replace_joint("wrist", friction=None), "friction of joint 'wrist' holds"),
        (lambda r: r.replace_joint("wrist", axes=[0, 0, 1]), "axes of joint 'wrist' must have"),
        (
            lambda r: r.replace(frames=[rm.Frame("tool", 0, np.ones(7))]),
            "placement of frame 'tool' must have",
        ),
        (
            lambda r: r.replace_body("link", mass=np.array(np.nan, dtype=object)),
            "mass of body 'link' holds",
        ),
    ],
)
def test_replaced_numbers_are_checked(change, reason):
    with pytest.raises(RemoraError, match=reason):
        change(arm().build())


def test_robots_and_bodies_print_well():
    robot = rm.Builder("puck").body("disc", mass=10, inertia=CUBE).build()
    assert repr(robot.bodies[0]) == "Body('disc', mass=10 kg)"
    assert repr(robot).startswith("Robot 'puck': 1 body, nq=8, nv=6, 10 kg\n")
    assert "3 bodies, nq=9, nv=7, 11.5 kg" in repr(arm().build())
    many = robot.replace_body("disc", mass=np.array([1.0, 2.5]))
    assert repr(many.bodies[0]) == "Body('disc', mass=[1.  2.5] kg)"
