"""Zero- and desired-reaction manoeuvres, the reaction null space, and SPART's known mistakes."""

import numpy as np
import pytest

import remora as rm
from arms import arm
from laws_on_small_robots import context, values
from remora.algebra import pose
from remora.components.joint_signals import joint_names, speed_places
from remora.control.motion import controlled_motion as motion

SERVICER = rm.load("servicer")


def base_speeds(robot, q, v, rate, places):
    """Return all speeds after the controlled ones jump to `rate` and momentum is conserved."""
    moved = v.copy()
    moved[places] = rate
    P = rm.dynamics.momentum_matrix(robot, q)
    n0 = motion.base_size(robot)
    others = np.arange(n0, robot.nv)
    left = P @ v - P[:, others] @ moved[others]
    moved[:n0] = np.linalg.lstsq(P[:, :n0], left, rcond=None)[0]
    return moved


def inertial(robot, q, v, frame):
    R = pose.to_rotation_matrix(rm.frame_pose(robot, q, frame))
    own = rm.frame_twist(robot, q, v, frame)
    return np.concatenate([R @ own[:3], R @ own[3:]])


def goal(robot, q, twist, frame="tool"):
    x = rm.frame_pose(robot, q, frame)
    R = pose.to_rotation_matrix(x)
    return {"pose": x, "twist": np.concatenate([R.T @ twist[:3], R.T @ twist[3:]])}


@pytest.mark.parametrize("seed", range(4))
def test_zero_reaction_with_momentum_leaves_the_attitude_alone(seed):
    """Three rows of the tool, three of the base, seven joints; the robot tumbles beforehand."""
    q, v = rm.random_state(SERVICER, seed)
    twist = np.array([0.0, 0.0, 0.0, 0.03, -0.02, 0.01])
    law = rm.control.DesiredReaction("tool", gain=0.0)
    rate = values(law, SERVICER, q, v, goal(SERVICER, q, twist))["rate"]
    moved = base_speeds(SERVICER, q, v, rate, range(6, 13))
    assert np.abs(moved[:3]).max() < 1e-9 * np.abs(rate).max()
    assert np.abs(inertial(SERVICER, q, moved, "tool")[3:] - twist[3:]).max() < 1e-9


def test_a_desired_reaction_moves_base_and_tool_as_prescribed():
    q, v = rm.random_state(SERVICER, 5)
    twist, base = np.array([0, 0, 0, 0.03, -0.02, 0.01]), np.array([0.01, 0.02, -0.01, 0, 0, 0])
    inputs = goal(SERVICER, q, twist)
    wanted = goal(SERVICER, q, base, "bus")
    inputs |= {"base_pose": wanted["pose"], "base_twist": wanted["twist"]}
    rate = values(rm.control.DesiredReaction("tool", gain=0.0), SERVICER, q, v, inputs)["rate"]
    moved = base_speeds(SERVICER, q, v, rate, range(6, 13))
    assert np.abs(inertial(SERVICER, q, moved, "bus")[:3] - base[:3]).max() < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_adjugate_is_the_inverse_far_from_singular_poses_and_bounded_near_them(seed):
    robot = arm(4, "planar", spread=False)  # three rows of the tool, the attitude of the base
    q, v = rm.random_state(robot, seed)
    v = 0.0 * v
    inputs = goal(robot, q, np.array([0, 0, 0.1, 0.05, 0.02, 0]))
    options = {"rows": "plane", "base_rows": ("wz",), "gain": 0.0}
    exact = values(rm.control.DesiredReaction("tool", **options), robot, q, v, inputs)["rate"]
    law = rm.control.DesiredReaction("tool", method="adjugate", bound=1e9, **options)
    assert np.abs(values(law, robot, q, v, inputs)["rate"] - exact).max() < 1e-9
    # the factor k is limited: the same direction, shorter
    places = speed_places(robot, joint_names(robot, ()))
    at = context(robot, q, v)
    moves = motion.response(at, places, "floating")
    G = np.concatenate(
        [
            motion.frame_rates(at, "bus", [2], places, "floating", moves).matrix,
            motion.frame_rates(at, "tool", [2, 3, 4], places, "floating", moves).matrix,
        ]
    )
    factor = abs(1.0 / np.linalg.det(G))
    law = rm.control.DesiredReaction("tool", method="adjugate", bound=factor / 10.0, **options)
    assert np.abs(values(law, robot, q, v, inputs)["rate"] - exact / 10.0).max() < 1e-9
    q = np.zeros(robot.nq)  # outstretched
    far = values(law, robot, q, v, goal(robot, q, np.array([0, 0, 0.1, 0.05, 0.02, 0])))["rate"]
    assert np.all(np.isfinite(far))


def test_sparts_desired_reaction_block_has_the_wrong_sign():
    """SPART's block omits the minus of -H_0⁻¹H_0m [SPART17, eq. 46]: the base turns, doubled."""
    q, v = rm.random_state(SERVICER, 2)
    v = 0.0 * v
    base = np.array([0.02, -0.01, 0.03])
    H = rm.mass_matrix(SERVICER, q)
    response = np.linalg.solve(H[:6, :6], H[:6, 6:])
    inputs = {"base_twist": np.array([*base, 0, 0, 0]), "base_pose": rm.poses(SERVICER, q)[0]}
    law = rm.control.DesiredReaction("tool", rows="none")
    ours = values(law, SERVICER, q, v, inputs)["rate"]
    theirs = np.linalg.pinv(response[:3]) @ base
    assert np.abs(base_speeds(SERVICER, q, v, ours, range(6, 13))[:3] - base).max() < 1e-12
    assert np.abs(base_speeds(SERVICER, q, v, theirs, range(6, 13))[:3] + base).max() < 1e-12


def pointing_error(robot, q, v, axis):
    """Return ω_0 - d × (ṗ - ṗ_0)/r, zero if the axis keeps pointing at the tool, and its angle."""
    base, tool = (inertial(robot, q, v, name) for name in ("bus", "tool"))
    x = rm.frame_pose(robot, q, "bus")
    away = pose.translation(rm.frame_pose(robot, q, "tool")) - pose.translation(x)
    r = np.linalg.norm(away)
    d = away / r
    along = pose.to_rotation_matrix(x) @ axis
    angle = np.arctan2(np.linalg.norm(np.cross(along, d)), along @ d)
    return base[:3] - np.cross(d, tool[3:] - base[3:]) / r, np.cross(along, d), angle


@pytest.mark.parametrize("seed", range(3))
def test_an_axis_of_the_base_is_kept_pointing_at_the_tool(seed):
    """Figure 4 of SPART17; here in space, with momentum, and an axis that is off at first."""
    q, v = rm.random_state(SERVICER, seed)
    twist = np.array([0.0, 0.0, 0.0, 0.03, -0.02, 0.01])
    law = rm.control.DesiredReaction("tool", gain=0.0, base_gain=0.5, point="-y")
    found = values(law, SERVICER, q, v, goal(SERVICER, q, twist))
    moved = base_speeds(SERVICER, q, v, found["rate"], range(6, 13))
    rate, normal, angle = pointing_error(SERVICER, q, moved, np.array([0, -1.0, 0]))
    wanted = 0.5 * angle * normal / np.linalg.norm(normal)
    assert np.abs(rate - wanted).max() < 1e-9 * np.abs(found["rate"]).max()
    assert np.abs(found["base_error"][:3] - 2.0 * wanted).max() < 1e-12
    assert np.abs(inertial(SERVICER, q, moved, "tool")[3:] - twist[3:]).max() < 1e-9


def test_a_pointing_base_has_no_reference_and_only_rows_of_rotation():
    interface = rm.control.DesiredReaction("tool", point="x").interface(SERVICER)
    assert set(interface.inputs) == {"pose", "twist"}
    with pytest.raises(rm.errors.InvalidValue, match="rows wx, wy, wz only"):
        rm.control.DesiredReaction("tool", point="x", base_rows="pose")
    with pytest.raises(
        rm.errors.UnknownName, match="no choice for point of a desired reaction named"
    ):
        rm.control.DesiredReaction("tool", point="up")


def figure_4():
    """Return SPART17's four-link arm and the start of docs/control.md."""
    robot = arm(4, "planar", spread=False)
    return robot, np.array([0, 0, 0, *np.radians([0.0, 40.0, -80.0, 40.0])])


LINE = np.array([-0.5, np.sqrt(0.75), 0.0])


def test_figure_4_of_spart17_is_flown():
    """The tool keeps its orientation on a line there and back, the base points at it; 50 Hz."""
    robot, q = figure_4()
    x = rm.frame_pose(robot, q, "tool")
    away = pose.from_parts(x[:4], pose.translation(x) + 0.2 * LINE)
    tick = {"sample_time": 0.02}
    line = rm.control.PoseReference([x, away, x], 10.0, "straight", **tick)
    law = rm.control.DesiredReaction(
        "tool", rows="plane", base_rows=("wz",), gain=2.0, base_gain=2.0, point="x", **tick
    )
    system = rm.System(robot, [line, law, rm.control.JointRateServo(gain=20.0, **tick)])
    run = rm.simulate(
        system,
        q,
        np.zeros(7),
        22.0,
        integrator=rm.Integrator("rk4", step=0.02),
        record=0.5,
        physics=rm.Physics(limits="ignore"),
    )
    error = run.signals["desired_reaction.error"]
    assert np.linalg.norm(error[:, 3:], axis=1).max() < 1e-3
    assert np.abs(error[:, 2]).max() < np.radians(0.02)
    assert np.abs(run.signals["desired_reaction.base_error"][:, 2]).max() < np.radians(0.02)
    tool = pose.translation(rm.frame_pose(robot, run.q, "tool"))[:, :2] - run.q[:, :2]
    assert np.abs(np.arctan2(tool[:, 1], tool[:, 0]) - run.q[:, 2]).max() < np.radians(0.02)
    assert np.degrees(run.q[:, 2].max()) == pytest.approx(4.1, abs=0.2)
    assert np.abs(run.q[-1] - run.q[0]).max() < 1e-4


def test_a_longer_line_of_figure_4_meets_a_singularity_of_g():
    """Rates per unit of tool speed grow without bound; with the adjugate they stay bounded."""
    robot, q = figure_4()
    options = {"rows": "plane", "base_rows": ("wz",), "gain": 0.0, "point": "x"}
    law = rm.control.DesiredReaction("tool", **options)
    twist = np.concatenate([np.zeros(3), LINE])
    h, sizes = 0.01, []
    for _ in range(40):
        rate = values(law, robot, q, np.zeros(7), goal(robot, q, twist))["rate"]
        sizes.append(np.abs(rate).max())
        if sizes[-1] > 40.0:
            break
        q = q + h * base_speeds(robot, q, np.zeros(7), rate, range(3, 7))
    assert max(sizes[:21]) < 13.0  # up to 0.2 m
    assert sizes[-1] > 40.0
    assert 0.25 < h * len(sizes) < 0.33
    bounded = rm.control.DesiredReaction("tool", method="adjugate", bound=1.0, **options)
    rate = values(bounded, robot, q, np.zeros(7), goal(robot, q, twist))["rate"]
    assert np.abs(rate).max() < 1.0


def branched():
    """Return a floating robot whose tree branches behind its first joint, not at the base."""
    builder = rm.Builder("branched").body("bus", mass=50.0, inertia=(4, 5, 6))
    builder = builder.joint("base", "free", None, "bus")
    for name, parent, axis, xyz in (
        ("trunk", "bus", (0, 0, 1), (0.4, 0, 0)),
        ("left_1", "trunk", (0, 1, 0), (0.3, 0.2, 0)),
        ("left_2", "left_1", (1, 0, 0), (0.4, 0, 0)),
        ("right_1", "trunk", (0, 1, 0), (0.3, -0.2, 0)),
        ("right_2", "right_1", (0, 0, 1), (0.4, 0, 0)),
        ("right_3", "right_2", (0, 1, 0), (0.4, 0, 0)),
    ):
        builder = builder.body(name, mass=5.0, com=(0.2, 0, 0), inertia=(0.02, 0.1, 0.1))
        builder = builder.joint(f"j_{name}", "revolute", parent, name, axis=axis, xyz=xyz)
    return builder.frame("tool", "right_3", xyz=(0.3, 0, 0)).build()


@pytest.mark.parametrize("seed", range(3))
def test_trees_that_branch_in_mid_chain(seed):
    """One branch works, trunk and other branch keep the attitude, by rows of all six joints."""
    robot = branched()
    q, v = rm.random_state(robot, seed)
    twist = np.array([0, 0, 0, 0.02, -0.01, 0.03])
    rate = values(rm.control.DesiredReaction("tool", gain=0.0), robot, q, v, goal(robot, q, twist))[
        "rate"
    ]
    moved = base_speeds(robot, q, v, rate, range(6, robot.nv))
    assert np.abs(moved[:3]).max() < 1e-8 * np.abs(rate).max()
    assert np.abs(inertial(robot, q, moved, "tool")[3:] - twist[3:]).max() < 1e-8
    # joints of the other branch do not move the tool of a fixed base, but that of a floating one
    left = speed_places(robot, ["j_left_1", "j_left_2"])
    at = context(robot, q, v)
    still = motion.response(at, left, "fixed")
    fixed = motion.frame_rates(at, "tool", range(6), left, "fixed", still).matrix
    moves = motion.response(at, left, "floating")
    floating = motion.frame_rates(at, "tool", range(6), left, "floating", moves).matrix
    assert not np.any(fixed)
    assert np.abs(floating).max() > 1e-3


def test_the_momentum_of_eq_46_is_not_constant():
    """H_0 v_0 + H_0m v_m changes along a free motion with momentum, and eq. 46 needs its value."""
    q, v = rm.random_state(SERVICER, 1)
    run = rm.simulate(SERVICER, q, 0.3 * v, 10.0, record=10.0, physics=rm.Physics(limits="ignore"))
    start, end = (
        (rm.mass_matrix(SERVICER, q) @ v)[:6]
        for q, v in zip(run.q[[0, -1]], run.v[[0, -1]], strict=True)
    )
    assert np.abs(end - start).max() > 0.1 * np.abs(start).max()
    q, v = run.q[-1], run.v[-1]
    H = rm.mass_matrix(SERVICER, q)
    twist = np.array([0, 0, 0, 0.03, -0.02, 0.01])
    rate = values(
        rm.control.DesiredReaction("tool", gain=0.0), SERVICER, q, v, goal(SERVICER, q, twist)
    )
    assert np.abs(base_speeds(SERVICER, q, v, rate["rate"], range(6, 13))[:3]).max() < 1e-9
    # with the initial value, as printed, the base turns
    J = rm.jacobian(SERVICER, q, "tool")
    R = pose.to_rotation_matrix(rm.frame_pose(SERVICER, q, "tool"))
    response = -np.linalg.solve(H[:6, :6], H[:6, 6:])
    drift = np.linalg.solve(H[:6, :6], start)
    G = np.concatenate([response[:3], R @ (J[3:, 6:] + J[3:, :6] @ response)])
    right = np.concatenate([-drift[:3], twist[3:] - R @ (J[3:, :6] @ drift)])
    printed = np.linalg.lstsq(G, right, rcond=None)[0]
    assert np.abs(base_speeds(SERVICER, q, v, printed, range(6, 13))[:3]).max() > 1e-3


def test_the_reaction_null_space_is_the_nearest_motion_without_reaction():
    q, v = rm.random_state(SERVICER, 6)
    z = np.random.default_rng(6).normal(size=7)
    law = rm.control.ReactionNullSpace()
    rate = values(law, SERVICER, q, v, {"command": z})["rate"]
    assert np.abs(base_speeds(SERVICER, q, v, rate, range(6, 13))[:3]).max() < 1e-10
    rest = values(law, SERVICER, q, 0 * v, {"command": z})["rate"]
    H = rm.mass_matrix(SERVICER, q)
    B = np.linalg.solve(H[:6, :6], H[:6, 6:])[:3]
    assert np.abs(rest - (z - np.linalg.pinv(B) @ (B @ z))).max() < 1e-10


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: rm.control.DesiredReaction("tool", method="adjugate"), "6 rows and 7 joints"),
        (lambda: rm.control.DesiredReaction("tool", method="inverse"), "no choice for method"),
        (lambda: rm.control.DesiredReaction("tool", rows="none", base_rows="none"), "neither"),
        (lambda: rm.control.DesiredReaction("tool", bound=0.0), "greater than 0"),
        (lambda: rm.control.ReactionNullSpace(rows="none"), "at least one row"),
    ],
)
def test_refusals(make, told):
    with pytest.raises(rm.RemoraError, match=told):
        rm.System(SERVICER, [make()], {"desired_reaction.pose": np.eye(8)[0]})


def test_a_fixed_base_has_no_reaction():
    robot = rm.load("servicer", base="fixed")
    for law in (rm.control.DesiredReaction("tool"), rm.control.ReactionNullSpace()):
        with pytest.raises(rm.RemoraError, match="the base is fixed"):
            law.interface(robot)
