"""Runs: what is conserved, loads in every form, order of convergence, sampling."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from trees import Case

VT18 = rm.load("vt18_satellite")
TORQUE = {
    "J1": rm.Pulse(2, 5, lambda t: 0.5 * np.sin(t - 2)),
    "J2": rm.Pulse(10, 12, lambda t: 0.5 * np.sin(t - 10)),
    "J3": rm.Pulse(20, 22, lambda t: 0.5 * np.sin(t - 20)),
}


def rest(robot):
    return rm.neutral(robot), np.zeros(robot.nv)


def moving(robot, seed=3, size=0.3):
    q, v = rm.random_state(robot, seed)
    return q, size * v


def apart(robot, a, b):
    """Largest difference of two final states."""
    dq = np.abs(rm.difference(robot, a.q[-1], b.q[-1])).max()
    return max(dq, np.abs(a.v[-1] - b.v[-1]).max())


# Conservation -------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["dop853", "dopri5"])
def test_section_4_of_vt18_conserves_momentum_to_thirteen_digits(integrator):
    run = rm.simulate(
        VT18,
        *rest(VT18),
        70.0,
        torque=TORQUE,
        integrator=rm.Integrator(integrator, rtol=2.22e-14, atol=1e-14),
    )
    found = run.conservation()
    assert run.status == "complete"
    assert run.t[-1] == 70.0
    assert found.linear_momentum.relative < 1e-13
    assert found.angular_momentum.relative < 1e-13
    assert found.center_of_mass.relative < 1e-13
    assert found.energy.relative < 5e-12  # of 0.05 J; kinetic energies of the bodies cancel in it
    assert np.abs(run.q[-1, 8:]).max() > 0.5  # it moved


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_with_gravity_and_wrenches_balance_energy_with_work(seed):
    case = Case(seed, largest=5)
    run = rm.simulate(
        case.robot,
        case.q,
        0.3 * case.v,
        0.3,
        torque=0.3 * case.tau,
        wrenches=0.1 * case.wrenches,
        integrator=rm.Integrator(rtol=1e-12, atol=1e-12),
        physics=rm.Physics(limits="ignore"),
    )
    assert run.conservation().energy.relative < 1e-9
    assert np.abs(run.work[-1, 1]) > 0.0


def test_unit_quaternions_stay_unit_without_being_normalized():
    robot = rm.random_robot(7, bodies=4, kinds=("spherical", "free"), base="free")
    q, v = moving(robot, size=1.0)
    run = rm.simulate(robot, q, v, 200.0, integrator=rm.Integrator("rk4", step=0.02), record=1.0)
    for joint in robot.joints:
        r = run.q[:, joint.q][:, :4]
        assert np.abs(np.sum(r * r, axis=1) - 1.0).max() < 2e-15  # after 10,000 steps


def test_damping_and_friction_take_energy_away():
    robot = VT18.replace_joint("J2", damping=0.5, friction=0.1)
    v = np.zeros(robot.nv)
    v[7] = 1.0
    run = rm.simulate(robot, rm.neutral(robot), v, 5.0, integrator=rm.Integrator(rtol=1e-11))
    assert run.work[-1, 2] < -0.1
    assert run.conservation().energy.relative < 1e-10
    assert run.conservation().angular_momentum.relative < 1e-10


# Order of convergence -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("integrator", "order", "steps"),
    [("rk4", 4, (0.04, 0.02)), ("variational", 2, (0.02, 0.01))],
)
def test_order_of_fixed_steps(integrator, order, steps):
    robot = rm.random_robot(5, bodies=4, kinds=("revolute", "spherical", "universal"), base="free")
    q, v = moving(robot, size=0.15)
    exact = rm.simulate(robot, q, v, 1.0, integrator=rm.Integrator(rtol=1e-13, atol=1e-13))
    errors = [
        apart(
            robot,
            rm.simulate(robot, q, v, 1.0, integrator=rm.Integrator(integrator, step=h)),
            exact,
        )
        for h in steps
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize(("integrator", "order", "h"), [("dop853", 8, 0.5), ("dopri5", 5, 0.05)])
def test_order_of_adaptive_methods_at_fixed_steps(integrator, order, h):
    robot = rm.random_robot(5, bodies=4, kinds=("revolute", "spherical", "universal"), base="free")
    q, v = moving(robot, size=0.3)
    exact = rm.simulate(
        robot, q, v, 1.0, integrator=rm.Integrator(rtol=1e-14, atol=1e-14, max_step=0.05)
    )

    def error(h):
        loose = {"rtol": 1e3, "atol": 1e3, "step": h, "max_step": h}  # every step is accepted
        run = rm.simulate(robot, q, v, 1.0, **grouped(integrator=integrator, **loose))
        assert np.allclose(np.diff(run.t), h)
        return apart(robot, run, exact)

    assert np.log2(error(h) / error(h / 2)) == pytest.approx(order, abs=0.7)


@pytest.mark.parametrize("integrator", ["dop853", "dopri5", "radau"])
def test_tighter_tolerances_give_smaller_errors(integrator):
    q, v = moving(VT18)
    exact = rm.simulate(VT18, q, v, 5.0, integrator=rm.Integrator(rtol=1e-13, atol=1e-14))
    errors = []
    for tolerance in (1e-5, 1e-7, 1e-9):
        run = rm.simulate(
            VT18, q, v, 5.0, integrator=rm.Integrator(integrator, rtol=tolerance, atol=tolerance)
        )
        errors.append(apart(VT18, run, exact))
        assert errors[-1] < 100.0 * tolerance
    # with few long steps the error depends on where they end: one may be small by chance
    assert errors[0] > 2.0 * errors[1] > 4.0 * errors[2]
    assert errors[0] > 100.0 * errors[2]


# Loads --------------------------------------------------------------------------------------------


def test_a_torque_may_be_given_in_many_ways():
    q, v = moving(VT18)
    tau = np.zeros(9)
    tau[6:] = 0.3, -0.2, 0.1
    ways = [
        tau,
        tau.tolist(),
        lambda t, q, v: tau,
        {"J1": 0.3, "J2": lambda t, q, v: -0.2, "J3": rm.Profile([-1, 10], [0.1, 0.1])},
        rm.Profile([0, 5, 9], np.tile(tau, (3, 1)), kind="hold"),
        rm.ZeroOrderHold(lambda t, q, v: tau, 0.05),
        {
            "J1": rm.ZeroOrderHold(lambda t, q, v: 0.3, 0.1),
            "J2": rm.Pulse(-1, 9, -0.2),
            "J3": [0.1],
        },
    ]
    runs = [
        rm.simulate(VT18, q, v, 2.0, torque=way, integrator=rm.Integrator(rtol=1e-12))
        for way in ways
    ]
    for run in runs[1:]:
        assert apart(VT18, run, runs[0]) < 1e-11
    assert np.allclose(runs[3].tau[:, 6:], tau[6:])
    assert np.allclose(runs[3].joint("J2").torque, -0.2)


def test_base_wrench_is_a_wrench_on_body_0():
    q, v = moving(VT18)
    push = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    wrenches = np.zeros((4, 6))
    wrenches[0] = push
    a = rm.simulate(
        VT18, q, v, rm.Phase(1.0, base_wrench=push), integrator=rm.Integrator(rtol=1e-12)
    )
    b = rm.simulate(
        VT18, q, v, 1.0, wrenches=lambda t, q, v: wrenches, integrator=rm.Integrator(rtol=1e-12)
    )
    c = rm.simulate(
        VT18, q, v, 1.0, wrenches={"body_1": push}, integrator=rm.Integrator(rtol=1e-12)
    )
    tau = np.concatenate([push[3:], push[:3], np.zeros(3)])
    d = rm.simulate(VT18, q, v, 1.0, torque=tau, integrator=rm.Integrator(rtol=1e-12))
    for other in (b, c, d):
        assert apart(VT18, a, other) < 1e-12
    assert a.frame("body_1").wrench[-1] == pytest.approx(push)
    assert a.conservation().energy.relative < 1e-11


def test_zero_order_hold_is_what_a_digital_controller_does():
    """One joint: with a held torque the motion is a polynomial between samples."""
    robot = (
        rm.Builder("wheel")
        .body("wheel", mass=1, inertia=(1, 1, 2))
        .joint("spin", "revolute", None, "wheel")
        .build()
    )
    period, asked = 0.1, []

    def law(t, q, v):
        asked.append(t)
        return [-4.0 * q[0] - v[0]]

    run = rm.simulate(
        robot,
        [1.0],
        [0.0],
        1.0,
        torque=rm.ZeroOrderHold(law, period),
        integrator=rm.Integrator(rtol=1e-12),
    )
    q, v = 1.0, 0.0
    for _ in range(10):
        a = (-4.0 * q - v) / 2.0
        q, v = q + period * v + 0.5 * period**2 * a, v + period * a
    assert run.q[-1, 0] == pytest.approx(q, rel=1e-12)
    assert run.v[-1, 0] == pytest.approx(v, rel=1e-12)
    assert np.allclose(asked, period * np.arange(10))


def test_two_controllers_of_different_sample_times():
    q, v = moving(VT18)
    times = {"J1": [], "J2": []}

    def law(name):
        def order(t, q, v):
            times[name].append(t)
            return -v[6 if name == "J1" else 7]

        return order

    torque = {"J1": rm.ZeroOrderHold(law("J1"), 0.1), "J2": rm.ZeroOrderHold(law("J2"), 0.25)}
    rm.simulate(VT18, q, v, 1.0, torque=torque)
    assert np.allclose(times["J1"], np.arange(10) * 0.1)
    assert np.allclose(times["J2"], np.arange(4) * 0.25)


def test_effort_limits_bind_where_asked():
    robot = rm.load("servicer")
    q, v = rest(robot)
    tau = np.zeros(robot.nv)
    tau[6:] = 1e4
    limits = np.array([j.limits.effort[0] for j in robot.joints[1:]])
    assert np.all(np.isfinite(limits))
    run = rm.simulate(robot, q, v, 0.01, torque=tau, physics=rm.Physics(saturate=True))
    assert np.allclose(run.tau[:, 6:], limits)
    assert np.allclose(rm.simulate(robot, q, v, 0.01, torque=tau).tau[:, 6:], 1e4)


@pytest.mark.parametrize("formulation", ["articulated", "composite", "newton_euler", "decoupled"])
def test_every_formulation_gives_the_same_run(formulation):
    q, v = moving(VT18)
    a = rm.simulate(
        VT18,
        q,
        v,
        3.0,
        torque=TORQUE,
        integrator=rm.Integrator(rtol=1e-12),
        physics=rm.Physics(formulation=formulation),
    )
    b = rm.simulate(VT18, q, v, 3.0, torque=TORQUE, integrator=rm.Integrator(rtol=1e-12))
    assert apart(VT18, a, b) < 1e-11


def test_large_robots_are_simulated_by_kernels_that_are_loops(monkeypatch):
    from remora.simulation.engine import phase_dynamics

    robot = rm.random_robot(3, bodies=12, base="free")
    q, v = moving(robot, size=0.05)
    wrenches = np.full((12, 6), 0.01)
    whole = rm.simulate(
        robot,
        q,
        v,
        0.3,
        wrenches=wrenches,
        integrator=rm.Integrator(rtol=1e-11),
        physics=rm.Physics(limits="ignore"),
    )
    monkeypatch.setattr(phase_dynamics, "_is_large", lambda model: True)
    parts = rm.simulate(
        robot,
        q,
        v,
        0.3,
        wrenches=wrenches,
        integrator=rm.Integrator(rtol=1e-11),
        physics=rm.Physics(limits="ignore"),
    )
    assert apart(robot, whole, parts) < 1e-10
    assert np.abs(whole.work[-1] - parts.work[-1]).max() < 1e-10
    monkeypatch.undo()
    chain = rm.random_robot(3, bodies=90, kinds=("revolute",), base="free")
    q, v = moving(chain, size=0.02)
    run = rm.simulate(chain, q, v, 0.05, physics=rm.Physics(limits="ignore"))
    assert run.conservation().angular_momentum.relative < 1e-9


def test_jumps_are_stepped_on_exactly():
    """A pulse between two times: its impulse is exact, whatever the tolerance."""
    robot = (
        rm.Builder("mass")
        .body("mass", mass=2, inertia=(1, 1, 1))
        .joint("slide", "prismatic", None, "mass")
        .build()
    )
    for clock in (False, True):
        phases = [
            rm.Phase(0.7, name="wait"),
            rm.Phase(3.0, torque=rm.Pulse(1.0, 1.5, [3.0]), own_clock=clock),
        ]
        run = rm.simulate(
            robot, [0.0], [0.0], phases, integrator=rm.Integrator(rtol=1e-3, atol=1e-3)
        )
        assert run.v[-1, 0] == pytest.approx(3.0 * 0.5 / 2, rel=1e-14)
        end, stop = 3.7, 1.5 + (0.7 if clock else 0.0)
        assert run.q[-1, 0] == pytest.approx(0.75 * 0.25 + 0.75 * (end - stop), rel=1e-13)


# Samples ------------------------------------------------------------------------------------------


def test_samples_at_an_interval_at_times_at_steps():
    q, v = moving(VT18)
    a = rm.simulate(VT18, q, v, 2.0, record=0.25)
    assert np.allclose(a.t, np.arange(9) * 0.25)
    b = rm.simulate(VT18, q, v, 2.0, record=[0.1, 1.7])
    assert b.t.tolist() == [0.0, 0.1, 1.7, 2.0]  # the start and the end are always there
    c = rm.simulate(VT18, q, v, 2.0)
    assert c.t[0] == 0.0
    assert c.t[-1] == 2.0
    assert a.q[-1] == pytest.approx(c.q[-1], abs=1e-9)


@pytest.mark.parametrize(
    ("integrator", "bound"), [("dop853", 3e-9), ("dopri5", 3e-8), ("radau", 1e-7)]
)
def test_dense_output_is_close_to_steps_that_end_there(integrator, bound):
    q, v = moving(VT18)
    options = {"sample": 0.05, "rtol": 1e-10, "atol": 1e-12, "integrator": integrator}
    dense = rm.simulate(VT18, q, v, 3.0, **grouped(**options))
    landed = rm.simulate(VT18, q, v, 3.0, **grouped(step_to_samples=True, **options))
    assert np.abs(rm.difference(VT18, dense.q, landed.q)).max() < bound
    assert np.abs(dense.v - landed.v).max() < 10 * bound


def test_a_start_other_than_zero():
    q, v = moving(VT18)
    a = rm.simulate(VT18, q, v, 2.0, torque=lambda t, q, v: np.full(9, 0.01 * t), start=5.0)
    b = rm.simulate(VT18, q, v, 2.0, torque=lambda t, q, v: np.full(9, 0.01 * (t + 5.0)))
    assert a.t[[0, -1]].tolist() == [5.0, 7.0]
    assert apart(VT18, a, b) < 1e-9


def test_a_pulse_is_not_asked_outside_its_times():
    asked = []

    def value(t):
        asked.append(t)
        return np.sqrt(t - 2.0)

    run = rm.simulate(VT18, *rest(VT18), 6.0, torque={"J1": rm.Pulse(2.0, 5.0, value)})
    assert min(asked) > 2.0
    assert max(asked) < 5.0
    assert run.joint("J1").torque.max() > 1.0


def test_the_last_sample_is_the_end_and_there_once():
    for interval, duration in ((0.03, 0.9), (0.1, 0.7), (0.01, 1.13), (0.3, 0.9)):
        t = rm.simulate(VT18, *rest(VT18), duration, record=interval).t
        assert t[-1] == duration
        assert np.diff(t).min() > 0.5 * min(interval, duration - interval * (len(t) - 2))
        batch = rm.simulate_batch(
            VT18, *rest(VT18), duration, integrator=rm.Integrator(step=0.05), record=interval
        )
        assert np.array_equal(batch.t, t)


def test_times_far_from_zero():
    q, v = moving(VT18)
    run = rm.simulate(VT18, q, v, 0.01, start=1.7e9, record=0.001)
    assert len(run) == 11
    assert np.all(np.diff(run.t) > 0.0)
    run = rm.simulate(VT18, q, v, 10.0, start=-20.0, record=[-15.0, -10.0])
    assert run.t.tolist() == [-20.0, -15.0, -10.0]


def test_between_samples_after_a_jump_of_the_torque():
    torque = {"J2": rm.Pulse(1.0, 2.0, 1.0)}
    run = rm.simulate(
        VT18,
        *rest(VT18),
        3.0,
        torque=torque,
        record=0.05,
        integrator=rm.Integrator(step_to_samples=True, rtol=1e-11),
    )
    fine = rm.simulate(
        VT18,
        *rest(VT18),
        3.0,
        torque=torque,
        record=0.01,
        integrator=rm.Integrator(step_to_samples=True, rtol=1e-11),
    )
    q, v = run.at(fine.t)
    assert np.abs(rm.difference(VT18, fine.q, q)).max() < 1e-6
    assert np.abs(fine.v - v).max() < 2e-5
