"""Resolved-motion-rate control: SPART's numbers, momentum, redundancy, singular poses."""

import numpy as np
import pytest

import remora as rm
from arms import arm
from laws_on_small_robots import values
from remora.algebra import dual_quaternion, pose
from remora.model.robot import Frame

SERVICER = rm.load("servicer")


def rates(robot, q, v, twist, frame="tool", **options):
    """Return joint rates for a twist in inertial axes, with the frame at its goal."""
    x = rm.frame_pose(robot, q, frame)
    R = pose.to_rotation_matrix(x)
    own = np.concatenate([R.T @ twist[:3], R.T @ twist[3:]])
    law = rm.control.ResolvedRate(frame, gain=0.0, **options)
    return values(law, robot, q, v, {"pose": x, "twist": own})["rate"]


@pytest.mark.parametrize("k", range(8))
def test_rates_of_spart(reference, k):
    """rmrc_um_given_u0 is a flying base, rmrc_um_floating a floating one with momentum."""
    ref = reference
    q, v, _ = ref.state(k)
    for end in ref.data["states"][k]["end_links"]:
        link = ref.robot.frame(ref.links[end["link_id"] - 1])
        shift = pose.from_translation(np.array(end["point_in_link"], dtype=float).reshape(-1))
        point = Frame("point", link.body, dual_quaternion.mul(link.placement, shift))
        robot = ref.robot.replace(frames=[*ref.robot.frames, point])
        target = np.array(end["rmrc_xdot_target"]).reshape(-1)
        for base, name, singular in (
            ("flying", "rmrc_um_given_u0", "sv_Jmp"),
            ("floating", "rmrc_um_floating", "sv_Jstarp"),
        ):
            sizes = np.array(end[singular]).reshape(-1)
            condition = sizes.max() / sizes.min()
            if condition > 1e4:
                continue  # a singular pose: refused, see below
            found = rates(robot, q, v, target, "point", base=base)
            theirs = np.array(end[name]).reshape(-1)
            assert np.abs(found - theirs).max() < 1e-10 * np.abs(theirs).max() * max(
                1.0, 1e-5 * condition**2
            )


@pytest.mark.parametrize("seed", range(3))
def test_a_floating_base_with_momentum_moves_the_tool_as_commanded(seed):
    """Joint speeds are set to the law's; the base follows from the momentum that is conserved."""
    q, v = rm.random_state(SERVICER, seed)
    twist = np.random.default_rng(seed).normal(size=6)
    rate = rates(SERVICER, q, v, twist)
    P = rm.dynamics.momentum_matrix(SERVICER, q)
    moved = np.concatenate([np.linalg.solve(P[:, :6], P @ v - P[:, 6:] @ rate), rate])
    R = pose.to_rotation_matrix(rm.frame_pose(SERVICER, q, "tool"))
    own = rm.frame_twist(SERVICER, q, moved, "tool")
    assert np.abs(np.concatenate([R @ own[:3], R @ own[3:]]) - twist).max() < 1e-9


def test_redundant_joints_minimize_speed_energy_or_weighted_speed():
    q, v = rm.random_state(SERVICER, 4)
    v = 0 * v
    twist = np.array([0.1, 0.0, 0.2, 0.0, 0.1, 0.0])
    H = rm.mass_matrix(SERVICER, q)
    floating = H[6:, 6:] - H[6:, :6] @ np.linalg.solve(H[:6, :6], H[:6, 6:])
    weights = np.arange(1.0, 8.0)
    J = rm.generalized_jacobian(SERVICER, q, "tool")
    null = np.linalg.svd(J)[2][-1]
    for options, W in (
        ({}, np.eye(7)),
        ({"minimize": "energy"}, floating),
        ({"weights": weights}, np.diag(weights)),
    ):
        rate = rates(SERVICER, q, v, twist, **options)
        assert abs(null @ W @ rate) < 1e-9 * np.linalg.norm(W @ rate)  # no better one in null(J)


def test_secondary_aims_do_not_move_the_tool_and_help():
    q, v = rm.random_state(SERVICER, 4)
    v, twist = 0 * v, np.zeros(6)
    J = rm.generalized_jacobian(SERVICER, q, "tool")
    z = rates(SERVICER, q, v, twist, secondary=("limits",))
    assert np.abs(J @ z).max() < 1e-10
    middle = np.array([(j.limits.lower + j.limits.upper)[0] / 2 for j in SERVICER.joints[1:]])
    held = np.isfinite(middle)
    assert ((middle - q[8:]) * z)[held].sum() > 0.0
    z = rates(SERVICER, q, v, twist, secondary=("manipulability",))
    assert np.abs(J @ z).max() < 1e-10

    def measure(q):
        J = rm.jacobian(SERVICER, q, "tool")[:, 6:]
        return np.linalg.det(J @ J.T)

    step = np.concatenate([np.zeros(6), 1e-6 * z / np.linalg.norm(z)])
    assert measure(rm.integrate(SERVICER, q, step)) > measure(q)


def test_an_outstretched_arm_is_an_error_without_damping_and_bounded_with_it():
    robot = arm(3, "fixed", spread=False)
    q, v = np.zeros(3), np.zeros(3)  # outstretched: it cannot move along x
    twist = np.array([0, 0, 0, 0.2, 0.1, 0.0])
    with pytest.raises(rm.errors.SingularMatrix, match="singular"):
        rates(robot, q, v, twist, base="fixed", rows=("vx", "vy"))
    for damping in (0.1, 0.01):
        rate = rates(robot, q, v, twist, base="fixed", rows=("vx", "vy"), damping=damping)
        assert np.linalg.norm(rate) < np.linalg.norm(twist) / (2 * damping)


def test_a_singular_run_ends_with_an_error_that_names_the_law():
    robot = arm(2, "planar", spread=False)
    law = rm.control.ResolvedRate("tool", rows=("vx", "vy"), sample_time=0.1)
    system = rm.System(robot, [law], {"resolved_rate.pose": [1, 0, 0, 0, 0, 0.5, 0, 0]})
    with pytest.raises(rm.errors.SimulationError, match="resolved_rate"):
        rm.simulate(system, np.zeros(5), np.zeros(5), 1.0)


def test_a_reference_that_jumps_is_followed_at_the_largest_speed():
    q, v = rm.random_state(SERVICER, 4)
    far = np.array([1.0, 0, 0, 0, 0, 50.0, 20.0, -30.0])
    free = values(rm.control.ResolvedRate("tool", gain=5.0), SERVICER, q, 0 * v, {"pose": far})[
        "rate"
    ]
    law = rm.control.ResolvedRate("tool", gain=5.0, max_speed=0.3)
    slow = values(law, SERVICER, q, 0 * v, {"pose": far})["rate"]
    assert np.isclose(np.abs(slow).max(), 0.3)
    assert np.allclose(slow / 0.3, free / np.abs(free).max())
    near = values(law, SERVICER, q, 0 * v, {"pose": rm.frame_pose(SERVICER, q, "tool")})
    assert np.abs(near["rate"]).max() < 1e-9
    single, still = arm(1), np.zeros(7)  # the first joint is the fastest, forwards and backwards
    law = rm.control.ResolvedRate("tool", rows=("vy",), gain=5.0, max_speed=0.3)
    for side in (50.0, -50.0):
        goal = np.array([1.0, 0, 0, 0, 0, 0.4, side, 0.0])
        rate = values(law, single, rm.neutral(single), still, {"pose": goal})["rate"]
        assert rate == pytest.approx([np.sign(side) * 0.3])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rows": "attitude"}, "no set of rows named"),
        ({"base": "free"}, "no base named 'free'"),
        ({"gain": -1.0}, "must be zero or positive"),
        ({"damping": -0.1}, "0 or greater"),
        ({"minimize": "time"}, "no minimized quantity"),
        ({"secondary": ("range",)}, "no secondary aim"),
        ({"weights": [1, 1, 0, 1, 1, 1, 1]}, "must be positive"),
        ({"weights": np.ones(7), "minimize": "energy"}, "not both"),
        ({"max_speed": 0.0}, "greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, told):
    with pytest.raises(rm.RemoraError, match=told):
        rm.control.ResolvedRate("tool", **options)


def test_what_does_not_fit_the_robot_is_refused():
    for law, told in (
        (rm.control.ResolvedRate("hand"), "no body or frame named 'hand'|hand"),
        (rm.control.ResolvedRate("tool", weights=np.ones(3)), "one number or 7"),
        (rm.control.ResolvedRate("tool", joints=("base",)), "carries the base"),
    ):
        with pytest.raises(rm.RemoraError, match=told):
            rm.System(SERVICER, [law], {"resolved_rate.pose": np.eye(8)[0]})
