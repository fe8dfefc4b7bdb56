"""Rates and accelerations of frames by controlled joints, against kinematics and dynamics."""

import numpy as np
import pytest

import remora as rm
from closed_loops import closed, constraint
from laws_on_small_robots import context
from remora.algebra import pose
from remora.components.joint_signals import joint_names, speed_places
from remora.components.parameter import row_indices
from remora.control.motion import controlled_motion as motion


def tree(seed):
    """Return a random tree with a free base that branches in mid-chain, a state, and its joints."""
    rng = np.random.default_rng(seed)
    robot = rm.random_robot(seed, bodies=7, base="free")
    names = joint_names(robot, [j.name for j in robot.joints[1:] if usable(j)])
    q, v = rm.random_state(robot, seed)
    return robot, q, v, names[: max(2, len(names) - 2)], rng


def usable(joint):
    return joint.kind not in ("spherical", "free", "fixed") and joint.mimic is None


def turned(robot, q, frame, x):
    R = pose.to_rotation_matrix(rm.frame_pose(robot, q, frame))
    return np.concatenate([R @ x[:3], R @ x[3:]])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("base", motion.BASES)
def test_rates_keep_the_momentum_and_move_every_frame(seed, base):
    robot, q, v, names, rng = tree(seed)
    places = speed_places(robot, names)
    moves = motion.response(context(robot, q, v), places, base)
    wanted = v.copy()
    wanted[places] = rng.normal(size=len(places))
    if base == "floating":
        wanted[moves.places] += moves.matrix @ (wanted[places] - v[places])
        before, after = rm.momentum(robot, q, v), rm.momentum(robot, q, wanted)
        assert np.abs(after - before).max() < 1e-12 * (1 + np.abs(before).max())
    if base == "fixed":
        wanted[:6] = 0.0
    for body in robot.bodies.names:
        map_ = motion.frame_rates(context(robot, q, v), body, range(6), places, base, moves)
        twist = turned(robot, q, body, rm.frame_twist(robot, q, wanted, body))
        found = map_.matrix @ wanted[places] + map_.offset
        assert np.abs(found - twist).max() < 1e-12 * (1 + np.abs(twist).max())


@pytest.mark.parametrize("seed", range(6))
def test_accelerations_leave_the_base_without_force_at_any_momentum(seed):
    robot, q, v, names, rng = tree(seed)
    places = speed_places(robot, names)
    at = context(robot, q, v)
    dynamics = motion.controlled_dynamics(at, places, "floating")
    a = rng.normal(size=len(places))
    vdot = np.zeros(robot.nv)
    vdot[places] = a
    vdot[dynamics.places] = dynamics.passive.matrix @ a + dynamics.passive.offset
    tau = rm.inverse_dynamics(robot, q, v, vdot)
    scale = np.abs(tau).max()
    assert np.abs(tau[:6]).max() < 1e-11 * scale
    force = dynamics.force.matrix @ a + dynamics.force.offset
    assert np.abs(force - tau[places]).max() < 1e-11 * scale
    for body in robot.bodies.names[1:]:
        map_ = motion.frame_accelerations(at, body, range(6), places, dynamics)
        twist = rm.frame_twist(robot, q, v, body)
        own = rm.dynamics.frame_acceleration(robot, q, v, vdot, body)
        own[3:] += np.cross(twist[:3], twist[3:])
        wanted = turned(robot, q, body, own)
        assert np.abs(map_.matrix @ a + map_.offset - wanted).max() < 1e-11 * np.abs(wanted).max()


@pytest.mark.parametrize("seed", range(4))
def test_the_manipulability_gradient_is_a_derivative(seed):
    robot = rm.load("servicer", base="fixed")
    q, v = rm.random_state(robot, seed)
    rows = row_indices(["position", "pose", "orientation"][seed % 3])

    def logarithm(q):
        J = rm.jacobian(robot, q, "tool")
        R = pose.to_rotation_matrix(rm.frame_pose(robot, q, "tool"))
        J = np.concatenate([R @ J[:3], R @ J[3:]])[rows]
        return 0.5 * np.log(np.linalg.det(J @ J.T))

    found = motion.manipulability_gradient(context(robot, q, v), "tool", rows, range(7), 0.0)
    step = 1e-5 * np.eye(7)
    differences = [(logarithm(q + h) - logarithm(q - h)) / 2e-5 for h in step]
    assert np.abs(found - differences).max() < 1e-6 * np.abs(differences).max()


def test_refusals_name_what_is_known():
    robot = rm.load("servicer")
    with pytest.raises(rm.errors.UnknownName, match="known: pose, orientation"):
        row_indices("attitude")
    with pytest.raises(rm.errors.UnknownName, match="wx, wy"):
        row_indices(("wx", "px"))
    with pytest.raises(rm.RemoraError, match="carries the base"):
        joint_names(robot, ["base"])
    with pytest.raises(rm.RemoraError, match="listed twice"):
        joint_names(robot, ["elbow_pitch", "elbow_pitch"])
    with pytest.raises(rm.RemoraError, match="no joint named"):
        joint_names(robot, ["elbow"])


def grasping(seed, kind="fixed"):
    """Return two random trees of which one holds the other, a state, and its controlled joints."""
    rng = np.random.default_rng(seed)
    parts = {n: rm.random_robot(seed + k, bodies=5, base="free") for k, n in enumerate(("a", "b"))}
    robot = rm.combine(parts)
    q, v = rm.random_state(robot, seed)
    ends = [int(rng.choice([i for i, n in enumerate(robot.bodies.names) if n[0] == x]))
            for x in ("a", "b")]  # fmt: skip
    robot = closed(robot, constraint(kind, robot, q, *ends, rng))
    G = rm.loops.constraint_jacobian(robot, q)
    v = v - np.linalg.pinv(G) @ G @ v
    names = [j.name for j in robot.joints if j.parent >= 0 and usable(j)]
    return robot, q, v, speed_places(robot, names), rng


@pytest.mark.parametrize("kind", ["fixed", "revolute", "prismatic", "spherical", "universal"])
@pytest.mark.parametrize("base", motion.BASES)
def test_a_grasped_body_responds_to_the_joints(kind, base):
    """Accelerations satisfy the equations of motion with multipliers, and the constraint."""
    robot, q, v, places, rng = grasping(4, kind)
    at = context(robot, q, v)
    dynamics = motion.controlled_dynamics(at, places, base)
    root = next(j for j in robot.joints[1:] if j.parent < 0)
    others = range(robot.nv)[root.v]
    assert dynamics.places == [*(range(6) if base == "floating" else ()), *others]
    a, vdot = rng.normal(size=len(places)), np.zeros(robot.nv)
    vdot[places] = a
    vdot[dynamics.places] = dynamics.passive.matrix @ a + dynamics.passive.offset
    G, gamma = rm.loops.constraint_jacobian(robot, q), rm.loops.constraint_bias(robot, q, v)
    assert np.abs(G @ vdot - gamma).max() < 1e-10 * (1 + np.abs(gamma).max())
    needed = rm.inverse_dynamics(robot.with_active(off=robot.constraints.names), q, v, vdot)
    scale = np.abs(needed).max()
    p = dynamics.places
    multipliers = -np.linalg.lstsq(G[:, p].T, needed[p], rcond=None)[0]
    total = needed + G.T @ multipliers
    assert np.abs(total[p]).max() < 1e-10 * scale
    force = dynamics.force.matrix @ a + dynamics.force.offset
    assert np.abs(force - total[places]).max() < 1e-10 * scale
    inertia = motion.controlled_inertia(at, places, base)
    assert np.abs(inertia - dynamics.force.matrix).max() < 1e-12 * np.abs(inertia).max()
    assert np.linalg.eigvalsh(inertia)[0] > 0.0


@pytest.mark.parametrize("seed", range(3))
def test_rates_with_a_grasped_body_keep_the_momentum_of_both(seed):
    robot, q, v, places, rng = grasping(seed)
    at = context(robot, q, v)
    moves = motion.response(at, places, "floating")
    wanted = v.copy()
    wanted[places] = rng.normal(size=len(places))
    wanted[moves.places] += moves.matrix @ (wanted[places] - v[places])
    before, after = rm.momentum(robot, q, v), rm.momentum(robot, q, wanted)
    assert np.abs(after - before).max() < 1e-11 * (1 + np.abs(before).max())
    G = rm.loops.constraint_jacobian(robot, q)
    assert np.abs(G @ wanted).max() < 1e-11 * np.abs(wanted).max()
    for body in robot.bodies.names:  # the grasped body as well: a law can move it to a pose
        map_ = motion.frame_rates(at, body, range(6), places, "floating", moves)
        twist = turned(robot, q, body, rm.frame_twist(robot, q, wanted, body))
        found = map_.matrix @ wanted[places] + map_.offset
        assert np.abs(found - twist).max() < 1e-11 * (1 + np.abs(twist).max())


def held_box(active=True):
    """Return a servicer that holds a box at its tool, and the servicer with both as one body."""
    mass, inertia = 120.0, np.diag([20.0, 30.0, 25.0])
    box = rm.Builder("box").body("box", mass=mass, inertia=inertia)
    box = box.joint("free", "free", None, "box").build()
    arm = rm.load("servicer")
    robot = rm.combine({"arm": arm, "box": box})
    robot = rm.loops.add_constraint(
        robot, "grip", "fixed", parent="arm/tool", child="box/box", active=active
    )
    flange, tool = arm.bodies["flange"], arm.frame("tool").placement
    R, r = pose.to_rotation_matrix(tool), pose.translation(tool)
    total = float(flange.mass) + mass
    com = (float(flange.mass) * flange.com + mass * r) / total

    def moved(own, m, x):
        d = x - com
        return own + m * (d @ d * np.eye(3) - np.outer(d, d))

    own = moved(flange.inertia, float(flange.mass), flange.com)
    own = own + moved(R @ inertia @ R.T, mass, r)
    return robot, arm.replace_body("flange", mass=total, com=com, inertia=0.5 * (own + own.T))


def test_a_grasped_box_is_a_heavier_flange():
    robot, merged = held_box()
    q1, v1 = rm.random_state(merged, 3)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[: merged.nq], v[: merged.nv] = q1, v1
    q[merged.nq :] = rm.frame_pose(merged, q1, "tool")
    v[merged.nv :] = rm.frame_twist(merged, q1, v1, "tool")
    places = speed_places(merged, merged.joints.names[1:])
    for base in motion.BASES:
        one = motion.controlled_dynamics(context(robot, q, v), places, base).force
        other = motion.controlled_dynamics(context(merged, q1, v1), places, base).force
        for a, b in zip(one, other, strict=True):
            assert np.abs(a - b).max() < 1e-11 * np.abs(b).max()


def test_what_is_not_grasped_does_not_respond():
    open_, _ = held_box(active=False)
    assert motion.responding(open_, "floating") == motion.Response([*range(6)], None)
    robot, _ = held_box()
    twice = rm.loops.add_constraint(
        robot, "second", "spherical", parent="arm/wrist", child="box/box"
    )
    places, held = motion.responding(twice, "floating")
    assert places == [*range(6), *range(13, 19)]
    assert [c.name for c in held.constraints if c.active] == ["grip"]
    own = rm.loops.add_constraint(open_, "own", "spherical", parent="arm/bus", child="arm/flange")
    assert motion.responding(own, "floating").held is None
    docked = rm.loops.add_constraint(open_, "dock", "fixed", parent=None, child="arm/bus")
    assert motion.responding(docked, "floating").places == [*range(6)]
    assert motion.responding(docked, "floating").held is not None
    assert motion.responding(docked, "flying").held is None


def test_a_servo_brakes_the_box_that_the_arm_has_caught():
    """Joint speeds decay as e^(-kt) from the moment of the capture, whatever was caught."""
    robot, _ = held_box(active=False)
    names = tuple(n for n in robot.joints.names if n.startswith("arm/"))[1:]
    gain = 2.0
    servo = rm.control.JointRateServo(names, gain)
    system = rm.System(robot, [servo], {"joint_rate_servo.rate": np.zeros(len(names))})
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[8:15] = [0.0, 0.6, 0.0, -1.2, 0.0, 0.8, 0.0]
    q[15:] = rm.frame_pose(robot, q, "arm/tool")
    v[13:] = [0.02, -0.03, 0.04, 0.01, 0.02, -0.01]
    phases = [
        rm.Phase(0.5),
        rm.Phase(1.5, activate="grip", latch=True),
    ]
    integrator = rm.Integrator(rtol=1e-11, atol=1e-13)
    for design in (None, robot.replace_body("arm/bus", mass=471.0)):
        made = rm.System(robot, system.components, system.connections, design=design)
        run = rm.simulate(
            made, q, v, phases, integrator=integrator, record=0.1,
            physics=rm.Physics(limits="ignore"),
        )  # fmt: skip
        after = run.t > 0.5 + 1e-9
        t, speeds = run.t[after] - 0.5, run.v[after][:, 6:13]
        first = speeds[0] * np.exp(gain * t[0])
        assert np.abs(first).max() > 1e-3
        expected = first * np.exp(-gain * t)[:, None]
        off = np.abs(speeds - expected).max() / np.abs(first).max()
        assert off < 1e-8 if design is None else off > 1e-4


def test_a_batch_brakes_what_each_run_has_caught():
    """The law knows the pose in which each run has latched, and the mass of the design."""
    robot, _ = held_box(active=False)
    names = tuple(n for n in robot.joints.names if n.startswith("arm/"))[1:]
    servo = rm.control.JointRateServo(names, 2.0, sample_time=0.05)
    system = rm.System(robot, [servo], {"joint_rate_servo.rate": np.zeros(len(names))})
    rng, runs = np.random.default_rng(5), 3
    q, v = np.tile(rm.neutral(robot), (runs, 1)), np.zeros((runs, robot.nv))
    q[:, 8:15] = [0.0, 0.6, 0.0, -1.2, 0.0, 0.8, 0.0]
    q[:, 15:] = rm.frame_pose(robot, q, "arm/tool")
    v[:, 13:] = 0.03 * rng.normal(size=(runs, 6))
    phases = [rm.Phase(0.5), rm.Phase(1.0, activate="grip", latch=True)]
    settings = {
        "integrator": rm.Integrator("rk4", step=0.01),
        "record": 0.1,
        "physics": rm.Physics(limits="ignore"),
    }
    masses = {"box/box.mass": np.array([120.0, 60.0, 240.0])}
    batch = rm.simulate_batch(system, q, v, phases, runs=rm.Runs(parameters=masses), **settings)
    ends = []
    for k, mass in enumerate(masses["box/box.mass"]):
        one = system.with_parameters({"box/box.mass": mass})
        run = rm.simulate(one, q[k], v[k], phases, **settings)
        assert np.abs(batch.v[k, -1] - run.v[-1]).max() < 1e-10 * np.abs(run.v).max()
        ends.append(np.abs(run.v[-1, 6:13]).max() / np.abs(run.v[:, 6:13]).max())
    light, heavy = ends[1:]
    assert light < ends[0] < heavy  # the law knows 120 kg: too strong for less, too weak for more
