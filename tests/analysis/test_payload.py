"""A payload's inertia from recorded motion: exact, noisy, inconsistent and undetermined data."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import pose, screw
from remora.analysis import payload
from remora.analysis.payload import momentum_regressor
from remora.analysis.pseudo_inertia import (
    is_consistent,
    move_matrix,
    moved,
    nearest_consistent,
    parameters_of,
    pseudo_inertia,
)

MASS, COM = 12.0, np.array([0.1, -0.05, 0.3])
INERTIA = np.array([[0.9, 0.1, 0.0], [0.1, 1.2, -0.05], [0.0, -0.05, 0.7]])


def parameters(mass, com, inertia):
    about = screw.inertia(np.asarray(mass), com, inertia).about_origin
    upper = [about[i, j] for i in range(3) for j in range(i, 3)]
    return np.array([mass, *(mass * com), *upper])


TRUE = parameters(MASS, COM, INERTIA)


def arm():
    build = rm.Builder("arm")
    build.body("bus", mass=80.0, inertia=[12.0, 14.0, 9.0])
    parent = "bus"
    for k, axis in enumerate(([0, 0, 1], [0, 1, 0], [1, 0, 0])):
        build.body(f"link_{k}", mass=5.0, com=[0.2, 0, 0.1], inertia=[0.1, 0.2, 0.2])
        build.joint(f"joint_{k}", "revolute", parent, f"link_{k}", xyz=[0.4, 0.1, 0], axis=axis)
        parent = f"link_{k}"
    build.frame("tool", parent, xyz=[0.5, 0.1, -0.2], rpy=[0.3, -0.4, 0.5])
    return build.build()


def with_payload(robot):
    frame = robot.frame("tool")
    own = rm.dynamics.inertia_parameters(robot)[10 * frame.body : 10 * frame.body + 10]
    total = own + moved(TRUE, frame.placement)
    m, c = total[0], total[1:4] / total[0]
    a, b, d, e, f, g = total[4:]
    about = np.array([[a, b, d], [b, e, f], [d, f, g]])
    inertia = about - m * (c @ c * np.eye(3) - np.outer(c, c))
    return robot.replace_body(frame.body, mass=m, com=c, inertia=inertia)


def motion(robot, n=60):
    """States of the robot with its payload at zero momentum."""
    full = with_payload(robot)
    q, _ = rm.random_state(robot, 1, n)
    vm = 0.3 * np.random.default_rng(0).normal(size=(n, robot.nv - 6))
    return q, np.concatenate(
        [(rm.dynamics.base_response(full, q) @ vm[..., None])[..., 0], vm], axis=-1
    )


def test_parameters_move_with_their_frame():
    x = pose.from_xyz_rpy([0.3, -0.2, 0.5], [0.4, 0.5, -0.6])
    R, p = pose.to_rotation_matrix(x), pose.translation(x)
    expected = parameters(MASS, R @ COM + p, R @ INERTIA @ R.T)
    assert_close(moved(TRUE, x), expected)
    assert_close(move_matrix(x) @ TRUE, expected)
    assert_close(parameters_of(pseudo_inertia(TRUE)), TRUE)
    assert is_consistent(TRUE)
    assert not is_consistent(parameters(MASS, COM, np.diag([1.0, 1.0, 3.0])))


def test_the_regressor_is_the_momentum_of_the_payload():
    robot = rm.random_robot(7, bodies=6)
    target = robot.bodies[-1].name
    q, v = rm.random_state(robot, 2, 3)
    B = momentum_regressor(robot, q, v, target)
    more = robot.replace_body(target, mass=robot.bodies[-1].mass + 2.0)
    # two more kilograms at the body's own centre of mass
    change = rm.momentum(more, q, v) - rm.momentum(robot, q, v)
    point = parameters(2.0, np.asarray(robot.bodies[-1].com), np.zeros((3, 3)))
    assert_close(B @ point, change, 1e-12)


def test_without_noise_the_payload_is_exact():
    robot = arm()
    q, v = motion(robot)
    found = rm.analysis.identify_payload(robot, q, v, "tool")
    assert found.consistent
    assert_close(found.parameters, TRUE, 1e-10)
    assert_close(found.mass, MASS, 1e-10)
    assert_close(found.com, COM, 1e-10)
    assert_close(found.inertia, INERTIA, 1e-10)
    assert found.residual < 1e-12


def test_torques_and_unknown_momentum():
    robot = arm()
    full = with_payload(robot)
    q, v = rm.random_state(robot, 5, 40)  # any momentum: each state has its own
    vdot = np.random.default_rng(1).normal(size=v.shape)
    tau = rm.inverse_dynamics(full, q, v, vdot)
    h = rm.momentum(full, q[:1], v[:1])[0]
    # the base moves so that all states have the momentum of the first
    A = rm.dynamics.momentum_matrix(full, q)
    base = np.linalg.solve(A[..., :6], (h - (A[..., 6:] @ v[:, 6:, None])[..., 0])[..., None])
    same = np.concatenate([base[..., 0], v[:, 6:]], axis=-1)
    assert_close(
        rm.analysis.identify_payload(robot, q, same, "tool", momentum=h).parameters, TRUE, 1e-10
    )
    assert_close(
        rm.analysis.identify_payload(robot, q, same, "tool", momentum=None).parameters, TRUE, 1e-9
    )
    tau = rm.inverse_dynamics(full, q, same, vdot)
    both = rm.analysis.identify_payload(robot, q, same, "tool", momentum=None, vdot=vdot, tau=tau)
    assert_close(both.parameters, TRUE, 1e-10)


def test_a_recorded_run():
    """A payload on a simulated robot, from what the run recorded."""
    robot = arm()
    full = with_payload(robot)

    def torque(t, q, v):
        own = [1.5 * np.sin(1.1 * t), 1.2 * np.cos(0.7 * t), 0.8 * np.sin(1.9 * t + 0.4)]
        return np.concatenate([np.zeros(6), np.array(own) - 2.0 * v[6:]])

    run = rm.simulate(
        full,
        rm.neutral(full),
        np.zeros(full.nv),
        6.0,
        torque=torque,
        record=0.1,
        integrator=rm.Integrator(step_to_samples=True),
    )
    found = rm.analysis.identify_payload(robot, run.q, run.v, "tool")
    assert_close(found.parameters, TRUE, 1e-8)


def test_noise_stays_within_the_stated_confidence():
    """100 seeds; of 95 % intervals, each parameter is inside in at least 84 (99.99 %)."""
    robot = arm()
    q, v = motion(robot, 120)
    inside = np.zeros(10)
    for seed in range(100):
        noise = np.random.default_rng(seed).normal(size=v.shape)
        found = rm.analysis.identify_payload(robot, q, v + 1e-4 * noise, "tool")
        low, high = found.intervals.T
        inside += (low <= TRUE) & (high >= TRUE)
    assert inside.min() >= 84
    assert 920 <= inside.sum() <= 985


@pytest.mark.parametrize(("n", "least"), [(20, 0.68), (120, 0.93)])
def test_the_stated_errors_are_those_of_repeated_trials(n, least):
    """The root mean square of stated and of actual errors; few samples also have to fit weights."""
    robot = arm()
    q, v = motion(robot, n)
    stated, actual = [], []
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(size=v.shape)
        found = rm.analysis.identify_payload(robot, q, v + 1e-5 * noise, "tool")
        stated.append((np.diff(found.intervals)[:, 0] / (2.0 * 1.96)) ** 2)
        actual.append((found.intervals.mean(axis=1) - TRUE) ** 2)
    ratio = np.sqrt(np.mean(stated, axis=0) / np.mean(actual, axis=0))
    assert least < ratio.mean() < 1.07


def test_much_noise_still_gives_a_body():
    robot = arm()
    q, v = motion(robot, 30)
    count = 0
    for seed in range(6):
        noise = np.random.default_rng(seed).normal(size=v.shape)
        found = rm.analysis.identify_payload(robot, q, v + 3e-2 * noise, "tool")
        assert is_consistent(found.parameters, 1e-9)
        count += not found.consistent
        if found.consistent:
            assert_close(found.parameters, found.unconstrained)
    assert count > 0


def test_the_nearest_consistent_parameters_are_a_minimum():
    rng = np.random.default_rng(0)
    wrong = parameters(2.0, np.array([0.1, 0.2, 0.0]), np.diag([1.0, 1.0, 2.6]))
    A = rng.normal(size=(12, 10))
    normal = A.T @ A
    found = nearest_consistent(wrong, normal)
    assert is_consistent(found, 1e-9)
    cost = (found - wrong) @ normal @ (found - wrong)
    J = pseudo_inertia(found)
    for _ in range(200):
        step = 1e-3 * rng.normal(size=(4, 4))
        other = parameters_of((np.eye(4) + step) @ J @ (np.eye(4) + step).T)
        assert (other - wrong) @ normal @ (other - wrong) > cost * (1.0 - 1e-6)


def test_refusals_name_what_is_wrong():
    planar = rm.load("spart17_planar_3")
    q = np.tile(rm.neutral(planar), (20, 1))
    q[:, 8:] = np.random.default_rng(0).uniform(-1, 1, size=(20, 3))
    vm = np.random.default_rng(1).normal(size=(20, 3))
    v = np.concatenate(
        [(rm.dynamics.base_response(planar, q) @ vm[..., None])[..., 0], vm], axis=-1
    )
    with pytest.raises(rm.errors.InvalidValue, match=r"does not determine .*Ixx"):
        rm.analysis.identify_payload(planar, q, v, "tool")
    robot = arm()
    q, v = motion(robot, 5)
    for options, words in (
        ({"confidence": 1.5}, "between 0 and 1"),
        ({"tau": v}, "pass both tau and vdot"),
        ({"tau": v[:2], "vdot": v}, "like v"),
    ):
        with pytest.raises(rm.RemoraError, match=words):
            rm.analysis.identify_payload(robot, q, v, "tool", **options)
    with pytest.raises(rm.errors.ShapeError, match="n > 1"):
        rm.analysis.identify_payload(robot, q[0], v[0], "tool")
    with pytest.raises(rm.errors.InvalidValue, match="is not free"):
        rm.analysis.identify_payload(
            rm.load("servicer", base="fixed"), np.zeros((3, 7)), np.zeros((3, 7)), "tool"
        )


def test_an_estimate_tells_its_numbers_and_half_widths():
    parameters = np.arange(1.0, 11.0)
    deviations = 0.01 * np.arange(1.0, 11.0)
    estimate = rm.analysis.PayloadEstimate(
        parameters, np.diag(deviations**2), 0.95, True, parameters, 0.0, 50
    )
    head, *rows = repr(estimate).splitlines()
    assert head == "PayloadEstimate of 50 samples, 95% intervals"
    for row, value, deviation in zip(rows, parameters, deviations, strict=True):
        *_, shown, _, half = row.split()
        assert float(shown) == value
        assert float(half) == pytest.approx(1.95996 * deviation, rel=0.05)  # two digits are shown


def test_what_only_occurs_together_is_not_determined(rng):
    A = rng.normal(size=(30, 2, 10))
    A[..., 4] = 2.0 * A[..., 1]
    with pytest.raises(rm.errors.InvalidValue, match="does not determine m cx, Ixx:"):
        payload._solved(A, rng.normal(size=(30, 2)), 0)
