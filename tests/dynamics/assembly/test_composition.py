"""Dynamics by composition equals the monolithic recursions."""

import itertools

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import WheelBody, arm, cut
from numeric import traced
from trees import Case, relative_error

POSE = rm.algebra.pose


def test_inverse_dynamics_of_100_random_trees_cut_at_random_joints():
    kinds = set()
    for seed in range(100):
        case = Case(seed, largest=12)
        split, at = cut(case)
        kinds |= {joint.kind for joint in case.robot.joints}
        tau = split.assembly.inverse_dynamics(at.q, at.v, at.vdot, at.wrenches)
        expected = rm.inverse_dynamics(case.robot, case.q, case.v, case.vdot, case.wrenches)
        assert relative_error(tau, expected[split.v]) < 1e-13, seed
    assert kinds == set(rm.JOINT_TYPES)


def test_forward_dynamics_of_100_random_trees_cut_at_random_joints():
    for seed in range(100):
        case = Case(seed, largest=10)
        split, at = cut(case)
        vdot = split.assembly.forward_dynamics(at.q, at.v, at.tau, at.wrenches)
        expected = rm.forward_dynamics(case.robot, case.q, case.v, case.tau, case.wrenches)
        assert relative_error(vdot, expected[split.v]) < 1e-12, seed


def test_every_single_cut_and_all_cuts_at_once():
    case = Case(7, largest=12)
    joints = [joint.name for joint in case.robot.joints if joint.parent >= 0]
    expected = rm.inverse_dynamics(case.robot, case.q, case.v, case.vdot)
    for names in [[name] for name in joints] + [joints]:
        split = case.robot.split(names)
        tau = split.assembly.inverse_dynamics(case.q[split.q], case.v[split.v], case.vdot[split.v])
        assert relative_error(tau, expected[split.v]) < 1e-13
        assert len(split.assembly.parts) == len(names) + 1


def test_batches_and_symbols():
    case = Case(13, largest=6)
    split, at = cut(case, 0.5)
    one = split.assembly.inverse_dynamics(at.q, at.v, at.vdot, at.wrenches)
    q, v, vdot = (np.broadcast_to(x, (2, 3, *x.shape)) for x in (at.q, at.v, at.vdot))
    many = split.assembly.inverse_dynamics(q, v, vdot, at.wrenches)
    assert many.shape == (2, 3, case.robot.nv)
    assert relative_error(many[1, 2], one) < 1e-15
    found = traced(split.assembly.inverse_dynamics, [at.q, at.v, at.vdot])
    assert relative_error(found, split.assembly.inverse_dynamics(at.q, at.v, at.vdot)) < 1e-13
    found = traced(split.assembly.forward_dynamics, [at.q, at.v, at.tau])
    assert relative_error(found, split.assembly.forward_dynamics(at.q, at.v, at.tau)) < 1e-12


def test_frames_placements_mounts_and_points_fixed_to_a_base():
    """Connections at frames, with placements and mounts, against the joined robot."""
    rng = np.random.default_rng(3)

    def somewhere():
        r = rng.normal(size=4)
        return POSE.from_parts(r / np.linalg.norm(r), rng.normal(size=3))

    b = rm.Builder("hub")
    b.body("hub", 20.0, (0, 0, 0), np.diag([2.0, 3.0, 4.0]))
    b.joint("base", "free", None, "hub")
    b.frame("left", "hub", somewhere())
    hub = b.build()
    foot = arm()
    foot = foot.replace(frames=[*foot.frames, rm.Frame("foot", -1, somewhere())])
    welded = rm.Builder("tool")
    welded.body("tool", 0.7, (0.1, 0, 0), np.diag([0.1, 0.1, 0.1]))
    welded.joint("weld", "fixed", None, "tool", placement=somewhere())
    welded.frame("grip", "tool", somewhere())
    assembly = rm.Assembly(
        {"hub": hub, "one": foot, "two": foot, "tool": welded.build(), "on foot": arm()},
        [
            rm.papers.sa24.Connection("one", "hub", "left", placement=somewhere()),
            rm.papers.sa24.Connection("two", "hub", "left", mount="foot"),
            rm.papers.sa24.Connection("tool", "one", "tip", mount="grip", placement=somewhere()),
            rm.papers.sa24.Connection("on foot", "two", "foot"),
        ],
        gravity=(0.3, -0.5, -9.0),
    )
    robot = assembly.to_robot()
    q, v = assembly.random_state(rng)
    w, external = rng.normal(size=assembly.nv), rng.normal(size=(assembly.nb, 6))
    expected = rm.inverse_dynamics(robot, q, v, w, external)
    assert relative_error(assembly.inverse_dynamics(q, v, w, external), expected) < 1e-13
    expected = rm.forward_dynamics(robot, q, v, w, external)
    assert relative_error(assembly.forward_dynamics(q, v, w, external), expected) < 1e-12
    by_name = {"one": external[assembly.part("one").bodies]}
    only = np.zeros_like(external)
    only[assembly.part("one").bodies] = by_name["one"]
    a, b = (assembly.inverse_dynamics(q, v, w, x) for x in (by_name, only))
    assert np.array_equal(a, b)
    # `foot` lies on the frame `left`; `grip` has the placement of its connection
    assert np.allclose(
        rm.frame_pose(robot, q, "two/foot"), rm.frame_pose(robot, q, "hub/left"), atol=1e-12
    )


def test_objects_with_the_methods_of_a_subsystem():
    """A hand-written body with a wheel between two robots equals the same as a robot."""
    rng = np.random.default_rng(5)
    wheel, placement = WheelBody(), POSE.from_xyz_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    links = [
        rm.papers.sa24.Connection("wheel", "arm", "tip", placement=placement),
        rm.papers.sa24.Connection("end", "wheel", "tip"),
    ]
    by_hand = rm.Assembly({"arm": arm(), "wheel": wheel, "end": arm()}, links, (0, 0, -9.81))
    robots = rm.Assembly({"arm": arm(), "wheel": wheel.robot(), "end": arm()}, links, (0, 0, -9.81))
    q, v, w = rng.normal(size=(3, 4, 5))
    expected = robots.inverse_dynamics(q, v, w)
    assert relative_error(by_hand.inverse_dynamics(q, v, w), expected) < 1e-13
    expected = robots.forward_dynamics(q, v, w)
    assert relative_error(by_hand.forward_dynamics(q, v, w), expected) < 1e-12
    root = rm.Assembly({"wheel": wheel, "end": arm()}, links[1:])
    expected = rm.Assembly({"wheel": wheel.robot(), "end": arm()}, links[1:])
    q, v, w = rng.normal(size=(3, 3))
    for name in ("inverse_dynamics", "forward_dynamics"):
        a, b = (getattr(x, name)(q, v, w) for x in (root, expected))
        assert relative_error(a, b) < 1e-12


def test_nested_assemblies():
    wing = rm.Assembly({"in": arm(), "out": arm()}, [("out", "in", "tip")])
    pair = rm.Assembly({"wing": wing, "end": arm()}, [("end", "wing", "out/tip")])
    whole = rm.Assembly({"a": arm(), "b": pair}, [("b", "a", "tip")])
    assert whole.names == ["a", "b/wing/in", "b/wing/out", "b/end"]
    rng = np.random.default_rng(1)
    q, v, w = rng.normal(size=(3, 8))
    flat = rm.Assembly(
        {n: arm() for n in "abcd"}, [("b", "a", "tip"), ("c", "b", "tip"), ("d", "c", "tip")]
    )
    for name in ("inverse_dynamics", "forward_dynamics"):
        a, b = (getattr(x, name)(q, v, w) for x in (whole, flat))
        assert np.array_equal(a, b)
    with pytest.raises(rm.RemoraError, match="'wing' is an assembly; name the connection point of"):
        rm.Assembly({"wing": wing, "end": arm()}, [("end", "wing", "tip")])


def test_forward_and_inverse_dynamics_are_inverse_with_a_thousand_parts():
    """No recursion: a chain of 1,200 subsystems is longer than Python's recursion limit."""
    link = arm(axes=((0, 0, 1),))
    names = [f"p{k}" for k in range(1200)]
    links = [(b, a, "tip") for a, b in itertools.pairwise(names)]
    chain = rm.Assembly(dict.fromkeys(names, link), links)
    rng = np.random.default_rng(2)
    q, v, vdot = rng.normal(size=(3, 1200)) * 0.01
    tau = chain.inverse_dynamics(q, v, vdot)
    assert relative_error(chain.forward_dynamics(q, v, tau), vdot) < 1e-6  # ill-conditioned
    assert len(chain.to_robot().bodies) == 1200


def test_mimic_joints_stay_in_one_subsystem():
    b = rm.Builder("mimic")
    for k in range(3):
        b.body(f"b{k}", 1.0, (0, 0, 0.1), np.eye(3))
    b.joint("j0", "revolute", None, "b0", axis=(1, 0, 0))
    b.joint("j1", "revolute", "b0", "b1", axis=(0, 1, 0))
    b.joint("j2", "revolute", "b1", "b2", axis=(0, 0, 1), mimic=("j1", -0.5, 0.1))
    robot = b.build()
    with pytest.raises(rm.RemoraError, match="'j2' and its leading joint 'j1' would come into"):
        rm.papers.sa24.split_robot(robot, ["j2"])
    split = rm.papers.sa24.split_robot(robot, ["j1"])
    q, v, w = np.random.default_rng(0).normal(size=(3, 2))
    a = split.assembly.inverse_dynamics(q[split.q], v[split.v], w[split.v])
    assert relative_error(a, rm.inverse_dynamics(robot, q, v, w)[split.v]) < 1e-13
    with pytest.raises(rm.RemoraError, match="mimic"):
        split.assembly.forward_dynamics(q[split.q], v[split.v], w[split.v])
    robot = split.assembly.to_robot()
    assert relative_error(a, rm.inverse_dynamics(robot, q[split.q], v[split.v], w[split.v])) < 1e-13


def test_parts_of_the_wrenches_add_up_and_gravity_counts_once():
    case = Case(4, largest=8)
    split, at = cut(case, 0.5)
    assembly = split.assembly
    parts = assembly.wrench_parts(at.q, at.v, at.vdot, at.wrenches)
    total = assembly.graph(at.q, at.v, at.vdot, at.wrenches).total
    assert relative_error(sum(parts), total) < 1e-13
    zero = 0.0 * at.v
    still = assembly.graph(at.q, zero, zero).total
    assert relative_error(parts.gravity, still) < 1e-14
    assert np.abs(still).max() > 1.0
    printed = sum(  # SA24's sum has two gravities too many
        assembly.graph(at.q, v, w).total for v, w in ((zero, at.vdot), (at.v, zero), (zero, zero))
    )
    exact = assembly.graph(at.q, at.v, at.vdot).total
    assert relative_error(printed - 2.0 * still, exact) < 1e-12
    box = rm.BlackBox(lambda t, base: rm.papers.sa24.SensorReading(np.zeros(6)))
    with pytest.raises(rm.RemoraError, match="'box' is a black box: its wrenches cannot be split"):
        rm.Assembly({"a": arm(), "box": box}, [("box", "a", "tip")]).wrench_parts(*np.zeros((3, 2)))
