"""States of the papers, integrated: the motion is that of `rm.simulate`."""

import numpy as np
import pytest

import remora as rm
import trees
from remora.papers import integrated_states

STATES = list(rm.papers.STATES)
FREE = ["revolute", "prismatic", "helical", "spherical", "universal", "cylindrical", "fixed"]


def robot_of(seed=35, base="free", gravity=False, kinds=FREE):
    """Return a branched robot with oblique frames and full inertias, and a start."""
    rng = np.random.default_rng(seed)
    robot = rm.random_robot(rng, bodies=6, kinds=kinds, base=base, gravity=gravity)
    assert max(np.bincount([j.parent + 1 for j in robot.joints])) > 1  # it branches
    q, v = rm.random_state(robot, rng)
    return robot, q, 0.5 * v


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("seed", range(4))
def test_rates_are_those_of_forward_dynamics(state, seed):
    """All joint types: the rates of x are its derivative along the motion that ABA computes."""
    case = trees.Case(trees.EVERY_KIND if seed == 0 else 40 + seed, 10, base="free")
    robot, q, v = case.state
    row = rm.papers.STATES[state]
    x = row.start(robot, q, v)
    found = row.rates(robot, x, case.tau)
    vdot, h = rm.forward_dynamics(robot, q, v, case.tau), 1e-5

    def moved(s):
        return row.start(robot, rm.integrate(robot, q, s * v + 0.5 * s * s * vdot), v + s * vdot)

    expected = (8.0 * (moved(h) - moved(-h)) - moved(2 * h) + moved(-2 * h)) / (12.0 * h)
    assert np.abs(found - expected).max() < 1e-8 * (1.0 + np.abs(expected).max())  # a difference
    back_q, back_v = row.state(robot, x)
    assert np.abs(rm.difference(robot, back_q, q)).max() < 1e-12
    assert np.abs(back_v - v).max() < 1e-11 * (1.0 + np.abs(v).max())


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("base", ["free", "fixed"])
def test_a_run_is_that_of_simulate(state, base):
    robot, q, v = robot_of(base=base, gravity=True)

    def torque(t, q, v):
        return 0.3 * np.cos(3.0 * t + np.arange(robot.nv)) - 0.1 * v

    run = rm.papers.integrate_state(robot, q, v, 0.2, state, step=1e-3, torque=torque, every=50)
    other = rm.simulate(
        robot, q, v, 0.2, torque=torque, integrator=rm.Integrator("dop853", rtol=1e-12, atol=1e-13)
    )
    assert np.allclose(run.t, [0.0, 0.05, 0.1, 0.15, 0.2], rtol=0.0, atol=1e-15)
    apart = np.abs(rm.difference(robot, rm.normalize(robot, run.q[-1]), other.q[-1])).max()
    assert apart < 1e-9  # the truncation error of steps of 1 ms
    assert np.abs(run.v[-1] - other.v[-1]).max() < 1e-8
    assert np.abs(run.center_of_mass[-1] - other.com[-1]).max() < 1e-9
    assert np.abs(run.momentum[-1] - other.momentum[-1]).max() < 1e-7 * np.abs(run.momentum).max()


@pytest.mark.parametrize("state", STATES)
def test_motions_of_bodies_give_the_robots_momentum(state):
    robot, q, v = robot_of(2)
    row = rm.papers.STATES[state]
    run = integrated_states.PaperRun(robot, state, np.zeros(1), row.start(robot, q, v)[None])
    expected = rm.momentum(robot, q, v)
    assert np.abs(run.momentum[0] - expected).max() < 1e-13 * np.abs(expected).max()
    assert np.abs(run.center_of_mass[0] - rm.center_of_mass(robot, q)).max() < 1e-14


def drift(run):
    """Return the largest change of the centre of mass, relative to its path, P and L."""
    P = run.momentum[:, :3]
    path = run.center_of_mass - np.outer(run.t, P[0]) / sum(b.mass for b in run.robot.bodies)
    kept = path, P, run.momentum[:, 3:]
    return np.array([np.abs(x - x[0]).max() for x in kept])


def test_linear_functions_of_the_state_do_not_drift():
    """With a coarse step truncation stands out of rounding by four orders.

    Runge-Kutta methods keep linear invariants of the state: linear momentum of velocities in
    inertial axes, and the centre of mass of positions.
    """
    robot, q, v = robot_of(9)
    found = {
        name: drift(rm.papers.integrate_state(robot, q, v, 1.0, name, step=0.025))
        for name in STATES
    }
    scale = np.abs(rm.momentum(robot, q, v)).max()
    for name in ("decoupled", "decoupled joints"):
        assert found[name][1] < 1e-13 * scale < 1e-9 * scale < found["VT18"][1]
    assert found["decoupled"][0] < 1e-13 < 1e-9 < found["VT18"][0]
    same = found["decoupled joints, body axes"]  # a state equivalent to VT18's
    assert same == pytest.approx(found["VT18"], rel=1e-4)
    assert found["DM93"][1] > 1e-9 * scale


def test_dm93_integrates_closed_chains():
    b = rm.Builder("arms", gravity=(0.3, -9.0, 1.0))
    full = np.array([[0.2, 0.02, 0.01], [0.02, 0.3, -0.03], [0.01, -0.03, 0.25]])
    for side, x in (("a", 0.0), ("b", 1.5)):
        b.body(f"{side}1", 3.0, (0.5, 0.05, 0.02), full)
        b.body(f"{side}2", 2.0, (0.5, -0.03, 0.01), full)
        b.joint(f"{side} shoulder", "revolute", None, f"{side}1", xyz=(x, 0, 0))
        b.joint(f"{side} elbow", "revolute", f"{side}1", f"{side}2", xyz=(1, 0, 0))
    b.constraint("pin", "revolute", "a2", "b2", parent_xyz=(1, 0, 0), child_xyz=(1, 0, 0))
    robot = b.build(base=None)
    q, v = rm.close_loops(robot, [1.9, -1.3, 1.2, 1.3], np.zeros(4))
    run = rm.papers.integrate_state(robot, q, v, 0.3, "DM93", step=1e-3)
    other = rm.simulate(robot, q, v, 0.3, integrator=rm.Integrator(rtol=1e-12, atol=1e-12))
    assert np.abs(run.q[-1] - other.q[-1]).max() < 1e-8
    with pytest.raises(rm.RemoraError, match=r"'VT18' is that of a tree.*use the state 'DM93'"):
        rm.papers.integrate_state(robot, q, v, 0.1, "VT18", step=0.01)


def test_discontinuities_at_the_ends_of_steps():
    """A torque that ends at 0.1 s belongs to the step before: no stage sees both sides."""
    robot, q, v = robot_of(0)
    on = np.zeros(robot.nv)
    on[6] = 1.0
    seen = []

    def torque(t, q, v):
        seen.append(t)
        return on if t < 0.1 else 0.0 * on

    run = rm.papers.integrate_state(robot, q, v, 0.2, "VT18", step=0.01, torque=torque)
    first = rm.papers.integrate_state(robot, q, v, 0.1, "VT18", step=0.01, torque=on)
    assert np.array_equal(first.x[-1], run.x[10])
    assert not any(t in (0.0, 0.1, 0.2) for t in seen)
    assert repr(run) == "PaperRun('VT18', 21 samples, to 0.2 s)"


def test_refusals():
    robot, q, v = robot_of(0)
    run = rm.papers.integrate_state
    with pytest.raises(rm.errors.UnknownName, match=r"no state of a paper named 'VT17'; did you"):
        run(robot, q, v, 1.0, "VT17", step=0.1)
    with pytest.raises(rm.errors.InvalidValue, match=r"duration=1.0 s must be a multiple of step"):
        run(robot, q, v, 1.0, "VT18", step=0.3)
    with pytest.raises(rm.errors.InvalidValue, match="step must be positive"):
        run(robot, q, v, 1.0, "VT18", step=-0.1)
    with pytest.raises(rm.errors.InvalidValue, match="one state at a time"):
        run(robot, np.stack([q, q]), np.stack([v, v]), 1.0, "VT18", step=0.1)
    with pytest.raises(rm.RemoraError, match="every must be"):
        run(robot, q, v, 1.0, "VT18", step=0.1, every=0)
