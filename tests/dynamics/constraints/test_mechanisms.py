"""Closed mechanisms against textbook solutions; redundant, singular and locked ones."""

import dataclasses

import numpy as np
import pytest

import remora as rm
from closed_loops import closed, constraint
from mechanisms import four_bar, four_bar_angles, stewart
from numeric import assert_close
from remora.algebra import pose

METHODS = ("articulated", "composite", "newton_euler", "image_space")
OBLIQUE = (0.3, -0.7, 1.1)
A, B, C, D = 1.0, 2.5, 2.0, 3.0


def placed(robot, theta):
    """Return a four-bar's configuration for a crank angle."""
    coupler, rocker = four_bar_angles(theta)
    q = rm.neutral(robot)
    q[-3:] = theta, coupler - theta, rocker
    return q, coupler, rocker


@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), OBLIQUE])
@pytest.mark.parametrize("theta", [0.4, 2.0, -1.3])
def test_four_bar_speeds_and_acceleration(theta, rpy):
    robot = four_bar(rpy=rpy)

    def ratios(angle):
        """Speeds of coupler and rocker per unit crank speed [textbook]."""
        _, t3, t4 = placed(robot, angle)
        turned = A * np.sin(t4 - angle) / (B * np.sin(t3 - t4))
        return turned, A * np.sin(angle - t3) / (C * np.sin(t4 - t3))

    def inertia(angle):
        """Inertia of the whole linkage, reduced to the crank."""
        _, t3, _ = placed(robot, angle)
        w3, w4 = ratios(angle)
        across = A * np.array([-np.sin(angle), np.cos(angle)])
        middle = across + 0.5 * B * w3 * np.array([-np.sin(t3), np.cos(t3)])
        ends = 0.3 + 1.5 * (0.5 * A) ** 2 + w4**2 * (0.3 + 1.5 * (0.5 * C) ** 2)
        return ends + 0.3 * w3**2 + 1.5 * middle @ middle

    q, _, _ = placed(robot, theta)
    assert np.max(np.abs(rm.loops.constraint_residual(robot, q))) < 1e-14
    w3, w4 = ratios(theta)
    rate, torque = 1.7, 2.0
    v = rate * np.array([1.0, w3 - 1.0, w4])
    assert np.max(np.abs(rm.loops.constraint_jacobian(robot, q) @ v)) < 1e-14
    assert_close(rm.loops.project_velocity(robot, q, v), v, rtol=1e-14)
    h = 1e-5
    slope = (inertia(theta + h) - inertia(theta - h)) / (2.0 * h)
    expected = (torque - 0.5 * slope * rate**2) / inertia(theta)
    for method in METHODS:
        vdot = rm.forward_dynamics(robot, q, v, (torque, 0.0, 0.0), None, method)
        assert_close(vdot[0], expected, rtol=1e-8)  # its slope is by differences


@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), OBLIQUE])
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_planar_linkage_with_a_revolute_closure_is_redundant(base, rpy):
    robot = four_bar(rpy=rpy, base=base)
    q, _, _ = placed(robot, 0.9)
    report = rm.loops.constraint_report(robot, q)
    assert (report.equations, report.rank, report.freedoms) == (5, 2, robot.nv - 2)
    assert report.dependent == {"pin": 3}
    assert "'pin' (3 of 5)" in report.warnings[0]
    assert rm.loops.constraint_report(robot)[:4] == report[:4]
    rng = np.random.default_rng(1)
    v, tau = (
        rm.loops.project_velocity(robot, q, rng.normal(size=robot.nv)),
        rng.normal(size=robot.nv),
    )
    plain = four_bar(rpy=rpy, base=base, closing="spherical")
    for method in METHODS:
        vdot = rm.forward_dynamics(robot, q, v, tau, None, method)
        assert_close(vdot, rm.forward_dynamics(plain, q, v, tau), rtol=1e-12)
    # of smallest norm: nothing along the equations that change nothing
    (wrench,) = rm.constraint_wrenches(robot, q, v, tau)
    assert np.max(np.abs(wrench[2:])) < 1e-12 * np.max(np.abs(wrench))


def test_twice_the_same_closure_shares_the_load():
    one = four_bar(closing="spherical")
    (pin,) = one.constraints
    two = closed(one, pin, dataclasses.replace(pin, name="again"))
    q, _, _ = placed(one, 0.9)
    v, tau = rm.loops.project_velocity(one, q, np.ones(3)), np.array([1.0, 2.0, 3.0])
    whole = rm.constraint_wrenches(one, q, v, tau)[0]
    for method in METHODS:
        assert_close(
            rm.forward_dynamics(two, q, v, tau, None, method), rm.forward_dynamics(one, q, v, tau)
        )
    shared = rm.constraint_wrenches(two, q, v, tau)
    assert_close(shared, np.stack([0.5 * whole, 0.5 * whole]), rtol=1e-12)
    assert rm.loops.constraint_report(two, q).dependent == {"pin": 1, "again": 3}


@pytest.mark.parametrize("near", [1e-2, 1e-4, 1e-6])
def test_accuracy_near_a_dead_point(near):
    """A parallelogram close to where its bars are in line: no loss as with squared conditions."""
    robot = four_bar(a=1.0, b=3.0, c=1.0, d=3.0, closing="spherical")
    q = np.array([near, -near, near])
    v = np.array([2.0, -2.0, 2.0])
    tau = np.array([1.0, 0.0, 0.0])
    # one degree of freedom: crank and rocker turn alike, the coupler only moves along a circle
    inertia = 2.0 * (0.3 + 1.5 * 0.25) + 1.5
    assert_close(
        rm.forward_dynamics(robot, q, v, tau), np.array([1.0, -1.0, 1.0]) / inertia, rtol=1e-8
    )


def test_locked_motion_is_named():
    robot = four_bar(closing="spherical")
    q, _, _ = placed(robot, 0.9)
    lock = constraint("fixed", robot, q, 0, 1, np.random.default_rng(2), "lock")
    robot = closed(robot, *robot.constraints, lock)
    report = rm.loops.constraint_report(robot, q)
    assert report.freedoms == 0
    assert any("lock all motion: 'pin', 'lock'" in text for text in report.warnings)
    for method in METHODS:
        vdot = rm.forward_dynamics(robot, q, np.zeros(3), np.ones(3), None, method)
        assert np.max(np.abs(vdot)) < 1e-12


def test_a_loop_that_cannot_close_is_named_with_its_gap():
    robot = four_bar(a=1.0, b=1.0, c=1.0, d=10.0, closing="spherical")
    with pytest.raises(rm.RemoraError, match=r"'pin' \(spherical\) by 7(\.\d+)? m"):
        rm.close_loops(robot, np.array([0.1, 0.2, 0.3]))


def test_close_loops_keeps_fixed_joints():
    robot = four_bar()
    q, v = rm.close_loops(robot, np.array([0.9, -0.4, 1.0]), np.array([1.3, 0.0, 0.0]), ["j2"])
    _, t3, t4 = placed(robot, 0.9)
    assert q[0] == 0.9
    assert v[0] == 1.3
    assert_close(q, np.array([0.9, t3 - 0.9, t4]), rtol=1e-12)
    assert np.max(np.abs(rm.loops.constraint_jacobian(robot, q) @ v)) < 1e-13


def test_close_loops_of_a_batch():
    robot = four_bar()
    q, v = rm.close_loops(robot, np.array([[0.9, -0.4, 1.0], [0.5, -0.1, 1.2]]), np.ones((2, 3)))
    assert q.shape == v.shape == (2, 3)
    assert np.max(np.abs(rm.loops.constraint_residual(robot, q))) < 1e-13


def test_stewart_platform():
    robot = stewart()
    rng = np.random.default_rng(3)
    q = rm.integrate(robot, rm.neutral(robot), 0.05 * rng.normal(size=robot.nv))
    q, v = rm.close_loops(robot, q, rng.normal(size=robot.nv))
    report = rm.loops.constraint_report(robot, q)
    assert (report.equations, report.freedoms) == (18, 12)
    tau = rng.normal(size=robot.nv)
    tau[:6] = 0.0
    first = rm.forward_dynamics(robot, q, v, tau)
    for method in METHODS[1:]:
        assert_close(rm.forward_dynamics(robot, q, v, tau, None, method), first, rtol=1e-11)
    # the platform's motion gives the speeds of the legs: the textbook's inverse Jacobian
    tree = robot.replace(constraints=())
    wrench = rm.constraint_wrenches(robot, q, v, tau)
    force = np.linalg.norm(wrench[:, :3], axis=-1)
    assert np.all(force > 0.0)
    assert not np.any(wrench[:, 3:])
    assert_close(
        rm.dynamics.momentum_matrix(tree, q) @ first,
        rm.dynamics.momentum_matrix(tree, q) @ rm.forward_dynamics(tree, q, v, tau),
        rtol=1e-11,
    )


def chained(light):
    """Return two bodies of 1 kg welded to a light one between them."""
    ends = [rm.Builder(n).body(n, mass=1.0, inertia=(1, 1, 1)).build() for n in "ac"]
    middle = rm.Builder("b").body("b", mass=light, inertia=(light, light, light)).build()
    robot = rm.combine({"a": ends[0], "b": middle, "c": ends[1]})
    robot = rm.loops.add_constraint(robot, "ab", "fixed", "a/a", "b/b")
    return rm.loops.add_constraint(robot, "bc", "fixed", "b/b", "c/c")


@pytest.mark.parametrize("light", [1e-3, 1e-9, 1e-14])
def test_masses_far_apart(light):
    robot = chained(light)
    tau = np.eye(18)[3]
    for method in METHODS[:2]:
        vdot = rm.forward_dynamics(robot, rm.neutral(robot), np.zeros(18), tau, None, method)
        assert_close(vdot[[3, 9, 15]], np.ones(3) / (2.0 + light), rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_masses_too_far_apart_are_refused(method):
    robot = chained(1e-17)
    with pytest.raises(rm.errors.InvalidValue, match="constraint 'bc'"):
        rm.forward_dynamics(robot, rm.neutral(robot), np.zeros(18), np.eye(18)[3], None, method)


def test_a_rod_between_two_free_bodies_by_hand():
    """Tension T on b: d·(a_b - a_a) = -|w|²/L with w the relative velocity, d along the rod."""
    bodies = [
        rm.Builder(n).body(n, mass=m, inertia=(1, 1, 1)).build()
        for n, m in (("a", 2.0), ("b", 3.0))
    ]
    robot = rm.combine(dict(zip("ab", bodies, strict=True)))
    robot = rm.loops.add_constraint(robot, "rod", "rod", "a/a", "b/b", length=1.5)
    d, push = np.array([1.0, 2.0, -2.0]) / 3.0, np.array([0.3, -1.0, 0.7])
    q = rm.neutral(robot)
    q[8:16] = pose.from_translation(1.5 * d)
    v = np.zeros(12)
    v[3:6], v[9:12] = (0.1, 0.2, 0.3), (-1.0, 0.5, 2.0)
    v = rm.loops.project_velocity(robot, q, v)
    w = v[9:12] - v[3:6]
    tension = (d @ push / 2.0 - w @ w / 1.5) / (1.0 / 2.0 + 1.0 / 3.0)
    expected = np.concatenate([(push - tension * d) / 2.0, tension * d / 3.0])
    tau = np.zeros(12)
    tau[3:6] = push
    for method in METHODS:
        vdot = rm.forward_dynamics(robot, q, v, tau, None, method)
        assert_close(np.concatenate([vdot[3:6], vdot[9:12]]), expected, rtol=1e-13)
    assert_close(rm.loops.constraint_multipliers(robot, q, v, tau), np.array([tension]), rtol=1e-13)
    q[8:16] = q[:8]
    with pytest.raises(rm.errors.InvalidValue, match="rod 'rod' has no direction"):
        rm.forward_dynamics(robot, q, v, tau)


def test_a_report_tells_where_open_loops_hide_that_equations_depend_on_each_other():
    """Three parallel cranks and a bar: 1e-5 off, the motion would be locked; runs refuse that."""
    make = rm.Builder("parallel").body("ground", mass=1.0, inertia=(1, 1, 1))
    for k in range(3):
        make.body(f"crank{k}", mass=1.0, inertia=(1, 1, 1))
        make.joint(f"c{k}", "revolute", "ground", f"crank{k}", xyz=(k, 0, 0), axis=(0, 0, 1))
    make.body("bar", mass=1.0, inertia=(1, 1, 1))
    make.joint("hinge", "revolute", "crank0", "bar", xyz=(0, 1, 0), axis=(0, 0, 1))
    for k in (1, 2):
        make.constraint(
            f"pin{k}", "revolute", "bar", f"crank{k}", parent_xyz=(k, 0, 0), child_xyz=(0, 1, 0),
            axis=(0, 0, 1),
        )  # fmt: skip
    robot = make.build(base="fixed")
    q = np.full(4, 0.3)
    q[robot.joints["hinge"].q] = -0.3
    tau = np.eye(4)[robot.joints["c0"].v][0]
    closed = rm.loops.constraint_report(robot, q)
    assert closed.freedoms == 1
    assert not any("open" in text for text in closed.warnings)
    off = q.copy()
    off[robot.joints["c1"].q] += 1e-5
    opened = rm.loops.constraint_report(robot, off)
    assert opened.freedoms == 0
    assert any("open by 1e-05" in text and "'pin2'" in text for text in opened.warnings)
    with pytest.raises(rm.RemoraError, match=r"'pin1' by 1e-05.*close_loops"):
        rm.simulate(robot, off, np.zeros(4), 1.0)
    again, _ = rm.close_loops(robot, off)
    found = rm.forward_dynamics(robot, again, np.zeros(4), tau)
    assert_close(found, rm.forward_dynamics(robot, q, np.zeros(4), tau), rtol=1e-4)
    assert np.abs(found).max() > 0.1
