"""Layouts of other libraries, tested against the libraries themselves."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from peers import MUJOCO_KINDS, PINOCCHIO_KINDS, mujoco_model, pinocchio_model
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.errors import RemoraError

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
LINKS = "".join(f'<link name="{n}">{INERTIAL}</inertial></link>' for n in ("bus", "a", "b", "c"))
LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
URDF = f"""<robot name="arm">{LINKS}
<joint name="zeta" type="continuous">
  <parent link="bus"/><child link="a"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
<joint name="alpha" type="prismatic">
  <parent link="bus"/><child link="b"/><origin xyz="0 1 0"/><axis xyz="0 1 0"/>{LIMIT}</joint>
<joint name="mid" type="revolute">
  <parent link="a"/><child link="c"/><origin xyz="0 1 0"/><axis xyz="1 0 0"/>{LIMIT}</joint>
</robot>"""


def everything_comes_back(layout, q, v, rng):
    robot = layout.robot
    vdot, tau = rng.normal(size=v.shape), rng.normal(size=v.shape)
    assert_close(rm.poses(robot, layout.q_from(layout.q_to(q))), rm.poses(robot, q), rtol=1e-14)
    assert_close(layout.v_from(q, layout.v_to(q, v)), v, rtol=1e-13)
    assert_close(layout.vdot_from(q, v, layout.vdot_to(q, v, vdot)), vdot, rtol=1e-13)
    assert_close(layout.tau_from(q, layout.tau_to(q, tau)), tau, rtol=1e-13)
    work = np.sum(tau * v, axis=-1)
    there = np.sum(layout.tau_to(q, tau) * layout.v_to(q, v), axis=-1)
    assert_close(there, work, rtol=1e-12)


def test_a_urdf_in_pinocchio_and_here(tmp_path, rng):
    """Pinocchio sorts branches by name and writes a continuous joint as cosine and sine."""
    pin = pytest.importorskip("pinocchio")
    file = tmp_path / "arm.urdf"
    file.write_text(URDF)
    robot = rm.load(file)
    model = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())
    assert list(model.names)[2:] != robot.joints.names[1:]  # or this would test nothing
    layout = rm.layouts.pinocchio(robot, model)
    q, v = rm.random_state(robot, rng)
    qp, vp = layout.q_to(q), layout.v_to(q, v)
    data = model.createData()
    pin.forwardKinematics(model, data, qp, vp)
    pin.updateFramePlacements(model, data)
    for i, body in enumerate(robot.bodies):
        k = model.getFrameId(body.name)
        assert_close(pose.to_matrix(rm.poses(robot, q)[i]), data.oMf[k].homogeneous)
        motion = pin.getFrameVelocity(model, data, k, pin.LOCAL)
        assert_close(rm.twists(robot, q, v)[i], np.concatenate([motion.angular, motion.linear]))
    everything_comes_back(layout, q, v, rng)


@pytest.mark.parametrize("seed", range(6))
def test_pinocchio_round_trips_in_batches(seed, rng):
    pytest.importorskip("pinocchio")
    robot = rm.random_robot(seed, bodies=10, kinds=PINOCCHIO_KINDS)
    model, _, _ = pinocchio_model(robot)
    everything_comes_back(
        rm.layouts.pinocchio(robot, model), *rm.random_state(robot, rng, (4,)), rng
    )


@pytest.mark.parametrize("seed", range(10))
def test_mujoco_sees_the_same_robot_move(seed, rng):
    mujoco = pytest.importorskip("mujoco")
    base = ("free", "fixed", "spherical", "planar", "cylindrical")[seed % 5]
    robot = rm.random_robot(seed, bodies=9, kinds=(*MUJOCO_KINDS, "fixed"), base=base)
    model = mujoco_model(robot)
    data = mujoco.MjData(model)
    layout = rm.layouts.mujoco(robot, model)
    q, v = rm.random_state(robot, rng)
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    mujoco.mj_forward(model, data)
    x, xi = rm.poses(robot, q), rm.twists(robot, q, v)
    velocity = np.zeros(6)
    for i, body in enumerate(robot.bodies):
        k = model.body(body.name).id
        there = pose.from_parts(np.array(data.xquat[k]), np.array(data.xpos[k]))
        assert_close(pose.to_matrix(x[i]), pose.to_matrix(there))
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, k, velocity, 1)
        assert_close(xi[i], velocity)
    everything_comes_back(layout, q, v, rng)


def test_mujoco_integrates_the_base_the_same_way(rng):
    """One position step of MuJoCo moves the free joint's attitude as rm.integrate does."""
    mujoco = pytest.importorskip("mujoco")
    robot = rm.random_robot(0, bodies=1)
    model = mujoco_model(robot)
    layout = rm.layouts.mujoco(robot, model)
    q, v = rm.random_state(robot, rng)
    qpos = layout.q_to(q)
    mujoco.mj_integratePos(model, qpos, layout.v_to(q, v), 0.1)
    ours = rm.integrate(robot, q, 0.1 * v)
    assert_close(
        pose.to_rotation_matrix(layout.q_from(qpos)), pose.to_rotation_matrix(ours), rtol=1e-12
    )


def test_spart_round_trip_with_offset_inertial_frame(rng):
    robot = (
        rm.Builder()
        .body("bus", mass=10, com=(0.1, 0.2, -0.3), inertia=(1, 1, 1))
        .body("arm", mass=1, inertia=(1, 1, 1))
        .joint("j", "revolute", "bus", "arm", xyz=(1, 0, 0))
        .build()
    )
    q, v = rm.random_state(robot, rng, (3,))
    everything_comes_back(rm.layouts.spart(robot), q, v, rng)
    turned = pose.from_xyz_rpy((0.1, 0.2, -0.3), (0.4, 0.5, 0.6))
    layout = rm.layouts.spart(robot, turned)
    everything_comes_back(layout, q, v, rng)
    there = layout.q_to(q[0])
    com = dq.mul(q[0, :8], turned)
    assert_close(there[:3], pose.translation(com))
    # the centre of mass's velocity by central differences, good to about 1e-9
    h, c = 1e-6, robot.bodies[0].com
    ahead, behind = (
        pose.transform_point(rm.integrate(robot, q[0], s * v[0])[:8], c) for s in (h, -h)
    )
    assert_close(layout.v_to(q, v)[0, 3:6], (ahead - behind) / (2 * h), rtol=1e-8)


def test_spart_counts_the_placement_of_the_base(rng):
    robot = (
        rm.Builder()
        .body("bus", mass=10, com=(0.1, 0.2, -0.3), inertia=(1, 1, 1))
        .body("arm", mass=1, inertia=(1, 1, 1))
        .joint("base", "free", None, "bus", xyz=(1, 2, 3), rpy=(0.3, 0.2, 0.1))
        .joint("j", "prismatic", "bus", "arm", xyz=(1, 0, 0))
        .build()
    )
    q, v = rm.random_state(robot, rng, 3)
    layout = rm.layouts.spart(robot)
    everything_comes_back(layout, q, v, rng)
    x, c = rm.poses(robot, q)[:, 0], robot.bodies[0].com
    there = layout.q_to(q)
    assert_close(there[:, :3], pose.transform_point(x, c), rtol=1e-14)
    assert_close(np.roll(there[:, 3:7], 1, axis=-1), x[:, :4], rtol=1e-14)
    frame = rm.Frame("com", 0, pose.from_translation(c))
    twist = rm.frame_twist(robot, q, v, frame)
    R = pose.to_rotation_matrix(x)
    assert_close(layout.v_to(q, v)[:, :3], twist[:, :3], rtol=1e-14)
    rdot = (R @ twist[:, 3:, None])[..., 0]
    assert_close(layout.v_to(q, v)[:, 3:6], rdot, rtol=1e-14)
    # the velocity's own rate by central differences, good to about 1e-9
    vdot, h = rng.normal(size=v.shape), 1e-6
    ahead, behind = (
        layout.v_to(rm.integrate(robot, q, s * v + 0.5 * s * s * vdot), v + s * vdot)
        for s in (h, -h)
    )
    assert_close(layout.vdot_to(q, v, vdot), (ahead - behind) / (2 * h), rtol=1e-8)


def test_spart_refuses_what_it_does_not_know():
    for robot in (
        rm.random_robot(0, bodies=3, kinds=("helical",)),
        rm.random_robot(0, bodies=3, kinds=("spherical",)),
        rm.random_robot(0, bodies=3, kinds=("revolute",), base="fixed"),
        rm.random_robot(0, bodies=3, kinds=("fixed",), base="fixed"),
        rm.random_robot(0, bodies=3, kinds=("free",), base="fixed"),
    ):
        with pytest.raises(RemoraError, match="SPART supports"):
            rm.layouts.spart(robot)


def test_only_the_base_may_have_another_name_in_pinocchio():
    pytest.importorskip("pinocchio")
    for base, wanted in (("free", "joint_0"), ("fixed", "joint_1")):
        robot = rm.random_robot(0, bodies=3, kinds=("revolute",), base=base)
        model, _, _ = pinocchio_model(robot)
        renamed = robot.replace_joint(wanted, name="other")
        if base == "free":
            assert rm.layouts.pinocchio(renamed, model).nq == model.nq
        else:
            with pytest.raises(RemoraError, match="no joint 'other'"):
                rm.layouts.pinocchio(renamed, model)
    empty, _, _ = pinocchio_model(rm.random_robot(0, bodies=1, base="fixed"))
    with pytest.raises(RemoraError, match="no joint"):
        rm.layouts.pinocchio(rm.random_robot(0, bodies=1), empty)


def test_different_robots_are_refused():
    pytest.importorskip("pinocchio")
    a = rm.random_robot(0, bodies=5, kinds=("revolute",))
    b = rm.random_robot(0, bodies=6, kinds=("revolute",))
    with pytest.raises(RemoraError, match="not the same robot"):
        rm.layouts.pinocchio(a, pinocchio_model(b)[0])
    with pytest.raises(RemoraError, match="no joint 'joint_5'"):
        rm.layouts.pinocchio(b, pinocchio_model(a)[0])
    helical = rm.random_robot(0, bodies=3, kinds=("helical",))
    with pytest.raises(RemoraError, match="MuJoCo has no helical joint"):
        rm.layouts.mujoco(helical, mujoco_model(rm.random_robot(0, bodies=3, kinds=("revolute",))))
    with pytest.raises(RemoraError, match="SPART supports"):
        rm.layouts.spart(rm.random_robot(0, bodies=3, kinds=("spherical",)))


TILTED = """<robot name="tilted">
  <link name="bus"><inertial>
    <origin xyz="0.1 0.05 -0.2" rpy="0.4 -0.7 0.3"/> <mass value="80"/>
    <inertia ixx="4" ixy="0.2" ixz="-0.1" iyy="9" iyz="0.3" izz="11"/>
  </inertial></link>
  <link name="tank"><inertial>
    <origin xyz="0 0 0.1"/> <mass value="20"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="2" iyz="0" izz="2"/>
  </inertial></link>
  <joint name="bolted" type="fixed">
    <parent link="bus"/> <child link="tank"/> <origin xyz="0.5 0 0" rpy="0 0 1"/>
  </joint>
</robot>"""


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("saved", [False, True])
def test_the_base_frame_of_spart_is_that_of_the_file(merge, saved, tmp_path):
    """In SPART's base frame the inertia of the bus is the matrix of the file, unrotated."""
    (tmp_path / "tilted.urdf").write_text(TILTED, encoding="utf-8")
    robot = rm.load(tmp_path / "tilted.urdf", merge_fixed=merge)
    if saved:
        rm.save_robot(robot, tmp_path / "robot.yaml")
        robot = rm.load(tmp_path / "robot.yaml", merge_fixed=False)
    origin = pose.from_xyz_rpy((0.1, 0.05, -0.2), (0.4, -0.7, 0.3))
    q, v = rm.random_state(robot, np.random.default_rng(1))
    layout, told = rm.layouts.spart(robot), rm.layouts.spart(robot, origin)
    assert np.allclose(layout.q_to(q), told.q_to(q), rtol=0, atol=1e-13)
    assert np.allclose(layout.v_to(q, v), told.v_to(q, v), rtol=0, atol=1e-13)
    r0 = pose.transform_point(rm.frame_pose(robot, q, "bus"), np.array([0.1, 0.05, -0.2]))
    assert np.allclose(layout.q_to(q)[:3], r0, rtol=0, atol=1e-13)
    if merge:
        with pytest.raises(rm.errors.InvalidValue, match="merge_fixed=False"):
            rm.papers.spart17.generalized_inertia(robot, q)
    else:
        bus = robot.replace_body("tank", mass=0.0, inertia=np.zeros((3, 3)))
        H0 = rm.papers.spart17.generalized_inertia(bus, q).base[:3, :3]
        assert np.allclose(H0, [[4, 0.2, -0.1], [0.2, 9, 0.3], [-0.1, 0.3, 11]], rtol=1e-12)
