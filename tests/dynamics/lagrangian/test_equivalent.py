"""The equivalent manipulator: the same motion of the joints on a fixed base [FPG11, 33-44]."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from peers import mujoco_model, pinocchio_model
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.dynamics.lagrangian.equivalent_manipulator import TURNING
from trees import relative_error


def chain(seed, kinds=TURNING):
    """A random chain on a free base with a tool, its state, and joint forces."""
    rng = np.random.default_rng(seed)
    robot = rm.random_robot(rng, bodies=int(rng.integers(2, 10)), kinds=kinds, branching=0.0)
    last = len(robot.bodies) - 1
    tool = rm.Frame("tool", last, pose.from_xyz_rpy((0.3, 0.2, -0.1), (0.4, 0.5, 0.6)))
    robot = robot.replace(frames=[tool])
    q, v = rm.random_state(robot, rng)
    return robot, q, v, rng.normal(size=robot.nv - 6)


def kept(robot):
    """Speeds that both robots have: all but the base's translation."""
    return [i for i in range(robot.nv) if not 3 <= i < 6]


@pytest.mark.parametrize("seed", range(30))
def test_inertia_accelerations_momentum_and_tool(seed):
    robot, q, v, tau = chain(seed)
    twin = rm.equivalent_manipulator(robot, origin=(1.0, 2.0, 3.0))
    q2, v2 = rm.papers.fpg11.equivalent_state(robot, q, v)
    rest = kept(robot)
    assert (twin.nq, twin.nv) == (robot.nq - 4, robot.nv - 3)
    assert twin.joints[0].kind == "spherical"
    M = rm.papers.fpg11.separated_mass_matrix(robot, q)[np.ix_(rest, rest)]
    assert_close(rm.mass_matrix(twin, q2), M)
    C = rm.papers.fpg11.separated_coriolis_matrix(robot, q, v)[np.ix_(rest, rest)]
    assert_close(rm.coriolis_matrix(twin, q2, v2, "lagrangian"), C)
    full = rm.forward_dynamics(robot, q, v, np.r_[np.zeros(6), tau])[rest]
    same = rm.forward_dynamics(twin, q2, v2, np.r_[np.zeros(3), tau])
    assert relative_error(same, full) < 1e-12
    # what the last body carries is where it is relative to the centre of mass
    com, here = rm.center_of_mass(robot, q), rm.frame_pose(robot, q, "tool")
    there = rm.frame_pose(twin, q2, "tool")
    assert_close(pose.translation(there) - (1.0, 2.0, 3.0), pose.translation(here) - com)
    assert_close(pose.to_rotation_matrix(there), pose.to_rotation_matrix(here))
    # angular momentum about the centre of mass is the twin's about its base
    h = rm.momentum(twin, q2, v2)
    about = h[3:] - np.cross((1.0, 2.0, 3.0), h[:3])
    assert_close(about, rm.dynamics.centroidal_momentum(robot, q, v)[3:], rtol=1e-11)


def test_the_printed_mapping():
    """Masses and lengths of eqs. 35-38 for three bodies whose frames are written out by hand."""
    robot = (
        rm.Builder()
        .body("bus", mass=6, com=(0.1, 0, 0), inertia=(1, 1, 1))
        .body("upper", mass=3, com=(0.4, 0, 0.2), inertia=(0.1, 0.2, 0.2))
        .body("lower", mass=1, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.2))
        .joint("shoulder", "revolute", "bus", "upper", xyz=(1, 0, 0.5), axis=(0, 1, 0))
        .joint("elbow", "revolute", "upper", "lower", xyz=(1, 0, 0), axis=(0, 1, 0))
        .build()
    )
    twin = rm.equivalent_manipulator(robot)
    assert_close([b.mass for b in twin.bodies], [6, 3 * 100 / (6 * 9), 100 / (9 * 10)])
    R1, L2, R2, L3 = (
        np.array(x) for x in ((0.9, 0, 0.5), (0.4, 0, 0.2), (0.6, 0, -0.2), (0.3, 0, 0))
    )
    assert_close(pose.translation(twin.joints[1].placement), 0.6 * R1)
    assert_close(pose.translation(twin.joints[2].placement), 0.9 * R2 + 0.6 * L2)
    assert_close(twin.bodies[0].com, np.zeros(3))
    assert_close(twin.bodies[1].com, 0.6 * L2)
    assert_close(twin.bodies[2].com, 0.9 * L3)
    for a, b in zip(robot.bodies, twin.bodies, strict=True):
        assert_close(a.inertia, b.inertia)
    # the mass of the first body is of no effect
    q, _ = rm.random_state(twin, 0)
    heavy = twin.replace_body("bus", mass=np.asarray(1000.0))
    assert_close(rm.mass_matrix(heavy, q), rm.mass_matrix(twin, q))


def test_a_base_whose_joint_frame_is_turned():
    robot, q, v, _ = chain(3)
    placed = pose.from_xyz_rpy((5, 6, 7), (0.1, 0.2, 0.3))
    robot = robot.replace_joint(0, placement=placed)
    twin = rm.equivalent_manipulator(robot)
    q2, _ = rm.papers.fpg11.equivalent_state(robot, q, v)
    relative = [
        pose.to_rotation_matrix(dq.mul(dq.conjugate(x[0]), x[-1]))
        for x in (rm.poses(robot, q), rm.poses(twin, q2))
    ]
    assert_close(*relative)
    tool = pose.translation(rm.frame_pose(robot, q, "tool")) - rm.center_of_mass(robot, q)
    assert_close(pose.translation(rm.frame_pose(twin, q2, "tool")), tool)


def test_saved_and_loaded(tmp_path):
    robot, q, v, _ = chain(5)
    twin = rm.equivalent_manipulator(robot)
    rm.save_robot(twin, tmp_path / "twin.yaml")
    again = rm.load(tmp_path / "twin.yaml", merge_fixed=False)
    q2, _ = rm.papers.fpg11.equivalent_state(robot, q, v)
    assert np.array_equal(rm.mass_matrix(again, q2), rm.mass_matrix(twin, q2))


def test_states_in_batches_and_symbolic_masses():
    import casadi

    from remora.algebra.array_ops import asarray

    robot, _, _, _ = chain(2, ("revolute",))
    q, v = rm.random_state(robot, 0, (4,))
    q2, v2 = rm.papers.fpg11.equivalent_state(robot, q, v)
    assert_close(q2[2], rm.papers.fpg11.equivalent_state(robot, q[2], v[2])[0])
    assert_close(v2[3], rm.papers.fpg11.equivalent_state(robot, q[3], v[3])[1])
    m = casadi.SX.sym("m")
    symbolic = rm.equivalent_manipulator(robot.replace_body("body_1", mass=asarray(m)))
    numeric = rm.equivalent_manipulator(robot.replace_body("body_1", mass=np.asarray(2.5)))
    M = rm.mass_matrix(symbolic, q2[0])
    value = casadi.Function("f", [m], [casadi.vertcat(*M.reshape(-1).tolist())])(2.5)
    assert_close(np.array(value).reshape(M.shape), rm.mass_matrix(numeric, q2[0]))


@pytest.mark.parametrize("seed", range(6))
def test_pinocchio_and_mujoco_move_the_twin_as_the_floating_robot(seed):
    pin, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    robot, q, v, tau = chain(seed, ("revolute", "spherical"))
    twin = rm.equivalent_manipulator(robot)
    q2, v2 = rm.papers.fpg11.equivalent_state(robot, q, v)
    force = np.r_[np.zeros(3), tau]
    expected = rm.forward_dynamics(robot, q, v, np.r_[np.zeros(6), tau])[kept(robot)]
    model, _, _ = pinocchio_model(twin)
    layout = rm.layouts.pinocchio(twin, model)
    theirs = pin.aba(
        model, model.createData(), layout.q_to(q2), layout.v_to(q2, v2), layout.tau_to(q2, force)
    )
    assert relative_error(layout.vdot_from(q2, v2, theirs), expected) < 1e-12
    model = mujoco_model(twin)
    data, layout = mujoco.MjData(model), rm.layouts.mujoco(twin, model)
    data.qpos[:], data.qvel[:] = layout.q_to(q2), layout.v_to(q2, v2)
    data.qfrc_applied[:] = layout.tau_to(q2, force)
    mujoco.mj_forward(model, data)
    assert relative_error(layout.vdot_from(q2, v2, np.array(data.qacc)), expected) < 1e-11


def two_arms():
    builder = rm.Builder("two arms").body("bus", mass=6, inertia=(1, 1, 1))
    for side, y in (("left", 1.0), ("right", -1.0)):
        builder.body(side, mass=2, com=(0.4, 0, 0), inertia=(0.1, 0.2, 0.2))
        builder.joint(f"{side}_joint", "revolute", "bus", side, xyz=(0, y, 0))
    return builder


def test_no_twin_of_the_same_shape_for_branches():
    """The energy couples the two arms' joints; in any tree rooted at the bus it does not."""
    robot = two_arms().build()
    M = rm.papers.fpg11.separated_mass_matrix(robot, rm.neutral(robot))
    assert abs(M[6, 7]) > 0.01
    for mass in (0.5, 2.0, 50.0):
        pinned = two_arms().base("spherical").build(base="spherical")
        pinned = pinned.replace_body("left", mass=np.asarray(mass))
        assert rm.mass_matrix(pinned, rm.neutral(pinned))[3, 4] == 0.0


def test_two_arms_are_a_chain_from_the_tip_of_one():
    """Written from the left tip on, the same robot has a twin: it hangs on that tip."""
    robot = two_arms().build()
    builder = rm.Builder("from the left").body(
        "left", mass=2, com=(0.4, 0, 0), inertia=(0.1, 0.2, 0.2)
    )
    builder.body("bus", mass=6, com=(0, -1, 0), inertia=(1, 1, 1))
    builder.body("right", mass=2, com=(0.4, 0, 0), inertia=(0.1, 0.2, 0.2))
    builder.joint("left_joint", "revolute", "left", "bus", axis=(0, 0, -1))
    builder.joint("right_joint", "revolute", "bus", "right", xyz=(0, -2, 0))
    turned = builder.build()
    twin = rm.equivalent_manipulator(turned)
    q, v = rm.random_state(robot, 0)
    tau = np.r_[np.zeros(6), 0.3, -0.2]
    expected = rm.forward_dynamics(robot, q, v, tau)[6:]
    left = rm.poses(robot, q)[1]
    q2 = np.r_[left[:4], q[8:]]
    v2 = np.r_[rm.twists(robot, q, v)[1, :3], v[6:]]
    found = rm.forward_dynamics(twin, q2, v2, np.r_[np.zeros(3), 0.3, -0.2])
    assert_close(found[3:], expected, rtol=1e-11)


def test_refusals():
    with pytest.raises(rm.RemoraError, match=r"body 'bus' carries 'left', 'right'.*serial chain"):
        rm.equivalent_manipulator(two_arms().build())
    with pytest.raises(rm.RemoraError, match="base on a free joint, not on a fixed one"):
        rm.equivalent_manipulator(rm.random_robot(0, bodies=3, base="fixed", branching=0.0))
    for kind in ("prismatic", "cylindrical", "planar", "cartesian", "free"):
        robot = rm.random_robot(0, bodies=3, kinds=(kind,), branching=0.0)
        with pytest.raises(rm.RemoraError, match=rf"joint 'joint_1' is {kind}.*allowed are fixed"):
            rm.equivalent_manipulator(robot)
    robot, q, v, _ = chain(0)
    with pytest.raises(rm.errors.ShapeError, match="origin must have shape"):
        rm.equivalent_manipulator(robot, origin=(0, 0))
    with pytest.raises(rm.errors.ShapeError, match="v must have shape"):
        rm.papers.fpg11.equivalent_state(robot, q, v[1:])


def test_frames_that_are_elsewhere_are_left_out_and_named():
    robot = rm.load("servicer")
    last = len(robot.bodies) - 1
    twin = rm.equivalent_manipulator(robot)
    assert {f.name for f in twin.frames} == {f.name for f in robot.frames if f.body == last}
    gone = [f.name for f in robot.frames if f.body != last]
    assert len(gone) == len(twin.warnings)
    assert all(repr(name) in text for name, text in zip(gone, twin.warnings, strict=True))
