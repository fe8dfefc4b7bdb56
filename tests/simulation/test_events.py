"""Events: located to the accuracy of the integrator, and what follows from them."""

from dataclasses import replace

import numpy as np
import pytest

import remora as rm
from remora.simulation.inputs.events import joint_limits


def slider(lower=-np.inf, upper=np.inf, gravity=(0, 0, 0), **joint):
    builder = rm.Builder("slider", gravity=gravity).body("mass", mass=2, inertia=(1, 1, 1))
    limits = {"lower": lower, "upper": upper}
    return builder.joint(
        "slide", "prismatic", None, "mass", axis=(0, 0, 1), **limits, **joint
    ).build()


@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("start", [0.0, 1e-9, 0.5, -0.5])
def test_what_is_at_or_beyond_zero_at_the_start_occurs_there(direction, start):
    """Also a condition that is exactly zero; one on the other side occurs when it crosses."""

    def condition(t, q, v):
        return direction * (start + t)

    event = rm.Event(condition, "there", "record", direction, at_start=True)
    run = rm.simulate(slider(), [0.0], [0.1], 2.0, events=[event])
    times = [e.t for e in run.events if e.name == "there"]
    assert times == pytest.approx([max(0.0, -start)], abs=1e-12)


@pytest.mark.parametrize("integrator", ["dop853", "dopri5", "radau", "rk4"])
def test_a_thrown_mass_is_at_its_top_when_it_should_be(integrator):
    robot = slider(gravity=(0, 0, -10))
    top = rm.Event(lambda t, q, v: v[0], "top", action="record", direction=-1)
    ground = rm.Event(lambda t, q, v: q[0], "ground", action="stop", direction=-1)
    run = rm.simulate(
        robot,
        [0.0],
        [7.0],
        10.0,
        events=[top, ground],
        integrator=rm.Integrator(integrator, step=0.3),
    )
    assert [e.name for e in run.events] == ["top", "ground"]
    assert run.events[0].t == pytest.approx(0.7, abs=1e-13)
    assert run.events[1].t == pytest.approx(1.4, abs=1e-13)
    assert run.t[-1] == run.events[1].t
    assert run.status == "complete"
    assert "ground" in run.message


def test_an_event_is_located_as_accurately_as_the_run_itself():
    """A pendulum's passage through the bottom, against a much tighter run."""
    robot = (
        rm.Builder("pendulum", gravity=(0, 0, -9.81))
        .body("bob", mass=1, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
        .joint("hinge", "revolute", None, "bob", axis=(0, 1, 0))
        .build()
    )
    bottom = rm.Event(lambda t, q, v: q[0], "bottom", action="record")
    times = {}
    for rtol in (1e-6, 1e-8, 1e-13):
        run = rm.simulate(
            robot,
            [2.0],
            [0.0],
            10.0,
            events=[bottom],
            integrator=rm.Integrator(rtol=rtol, atol=rtol),
        )
        times[rtol] = np.array([e.t for e in run.events])
        # the time's last bit, at some rad/s
        assert max(abs(e.q[0]) for e in run.events) < 1e-13
    assert len(times[1e-13]) == 7
    assert np.abs(times[1e-6] - times[1e-13]).max() < 1e-4
    assert np.abs(times[1e-8] - times[1e-13]).max() < 1e-6
    period = np.diff(times[1e-13])
    assert np.abs(period - period[0]).max() < 1e-11


def test_two_crossings_within_one_step_are_seen():
    robot = slider()
    near = rm.Event(lambda t, q, v: abs(q[0] - 5.0) - 0.5, "near", action="record")
    run = rm.simulate(
        robot,
        [0.0],
        [1.0],
        10.0,
        events=[near],
        integrator=rm.Integrator(step=4.0, rtol=1e-3, atol=1e-3),
    )
    assert [e.t for e in run.events] == pytest.approx([4.5, 5.5], abs=1e-12)


def test_direction():
    robot = slider()
    events = [
        rm.Event(lambda t, q, v: np.sin(t), f"{way}", action="record", direction=way)
        for way in (-1, 0, 1)
    ]
    run = rm.simulate(
        robot, [0.0], [1.0], 10.0, events=events, integrator=rm.Integrator(max_step=0.5), start=0.1
    )
    at = {way: [e.t for e in run.events if e.name == f"{way}"] for way in (-1, 0, 1)}
    assert at[-1] == pytest.approx([np.pi, 3 * np.pi])
    assert at[1] == pytest.approx([2 * np.pi])
    assert at[0] == pytest.approx([np.pi, 2 * np.pi, 3 * np.pi])


def test_an_event_changes_the_phase():
    """Pushed until it is fast enough, then braked until it stands."""
    robot = slider()
    fast = rm.Event(lambda t, q, v: v[0] - 3.0, "fast", action="next")
    still = rm.Event(lambda t, q, v: v[0], "still", action="next", direction=-1)
    phases = [
        rm.Phase(100.0, torque=[4.0], events=[fast], name="push"),
        rm.Phase(100.0, torque=[-6.0], events=[still], name="brake"),
        rm.Phase(1.0, name="rest"),
    ]
    run = rm.simulate(robot, [0.0], [0.0], phases)
    assert [e.t for e in run.events] == pytest.approx([1.5, 2.5], abs=1e-12)
    assert run.t[-1] == pytest.approx(3.5)
    assert run.q[-1, 0] == pytest.approx(0.5 * 2 * 1.5**2 + 3 - 1.5, abs=1e-12)
    assert run.v[-1, 0] == pytest.approx(0.0, abs=1e-13)
    assert run.phase.tolist()[0] == 0
    assert run.phase.tolist()[-1] == 2
    assert [p["name"] for p in run.settings["phases"]] == ["push", "brake", "rest"]


def test_events_at_the_same_time_both_happen():
    robot = slider()
    events = [
        rm.Event(lambda t, q, v: q[0] - 1.0, name, action="record") for name in ("one", "two")
    ]
    run = rm.simulate(robot, [0.0], [1.0], 2.0, events=events)
    assert [(e.name, e.t) for e in run.events] == [
        ("one", pytest.approx(1.0)),
        ("two", pytest.approx(1.0)),
    ]


def test_passing_a_limit_is_noted_or_ends_the_run_or_is_ignored():
    robot = slider(lower=-1.0, upper=0.5)
    noted = rm.simulate(robot, [0.0], [1.0], 2.0)
    assert [(e.name, e.t) for e in noted.events] == [("slide upper limit", pytest.approx(0.5))]
    assert noted.t[-1] == 2.0
    assert repr(noted).endswith("\n  limits passed: slide upper limit at 0.5 s")
    twice = replace(noted, events=noted.events * 4596)
    assert repr(twice).endswith("slide upper limit at 0.5 s, and 4,595 more")
    ended = rm.simulate(robot, [0.0], [-1.0], 2.0, physics=rm.Physics(limits="stop"))
    assert ended.t[-1] == pytest.approx(1.0)
    assert "slide lower limit" in ended.message
    ignored = rm.simulate(robot, [0.0], [1.0], 2.0, physics=rm.Physics(limits="ignore"))
    assert not ignored.events
    assert "limits" not in repr(ignored)


def test_passing_a_speed_limit_is_noted_too():
    robot = slider(velocity=2.0)
    run = rm.simulate(robot, [0.0], [0.0], 4.0, torque=[2.0])  # 1 m/s²
    assert [(e.name, e.t) for e in run.events] == [("slide speed limit", pytest.approx(2.0))]
    ended = rm.simulate(robot, [0.0], [0.0], 4.0, torque=[-2.0], physics=rm.Physics(limits="stop"))
    assert ended.t[-1] == pytest.approx(2.0)


# Stops and stiffness ------------------------------------------------------------------------------


def test_a_stop_without_losses_gives_all_speed_back():
    robot = slider(lower=-1.0, upper=1.0)
    run = rm.simulate(
        robot,
        [0.0],
        [1.0],
        6.0,
        physics=rm.Physics(stops=1e4),
        integrator=rm.Integrator(rtol=1e-11, max_step=0.05),
    )
    assert np.abs(run.v[-1, 0]) == pytest.approx(1.0, rel=1e-8)
    assert np.abs(run.q).max() < 1.0 + 1.1 * np.sqrt(2.0 / 1e4)
    assert run.conservation().energy.relative < 1e-8


def test_a_stop_with_losses_takes_the_energy_it_should():
    """Of a gentle impact at speed v the fraction 4/3 d v [HC75]."""
    d, speed = 0.02, 0.5
    robot = slider(upper=1.0)
    run = rm.simulate(
        robot,
        [0.9],
        [speed],
        1.0,
        physics=rm.Physics(stops=(1e6, d)),
        integrator=rm.Integrator(rtol=1e-10, max_step=0.01),
    )
    lost = 1.0 - (run.v[-1, 0] / speed) ** 2
    assert lost == pytest.approx(4.0 / 3.0 * d * speed, rel=0.02)
    assert run.v[-1, 0] < 0.0


def test_a_stop_never_pulls():
    robot = slider(upper=0.0)
    forces = rm.dynamics.stop_forces(
        robot, [[1e-3], [1e-3], [-1.0]], [[-1e3], [0.1], [5.0]], 1e4, 0.5
    )
    assert forces[0, 0] == 0.0
    assert forces[1, 0] < -10.0
    assert forces[2, 0] == 0.0


@pytest.mark.filterwarnings("ignore:steps of 0.01 s are unstable:remora.errors.SimulationWarning")
def test_stiffness_does_not_defeat_the_implicit_method():
    """A joint with a very stiff damper: explicit steps must be short, Radau's need not."""
    robot = rm.load("vt18_satellite").replace_joint("J2", damping=1e9)
    v = np.zeros(robot.nv)
    v[6:] = 0.3, 0.2, -0.1
    q = rm.neutral(robot)
    run = rm.simulate(robot, q, v, 20.0, integrator=rm.Integrator("radau", rtol=1e-8, atol=1e-10))
    assert len(run) < 500
    assert run.conservation().angular_momentum.relative < 1e-6
    # the joint is as good as locked: the same as a run in which an impulse locked it
    phase = rm.Phase(20.0, locked=["J2"], impulse=True)
    rigid = rm.simulate(robot, q, v, [phase], integrator=rm.Integrator(rtol=1e-10))
    assert np.abs(rm.difference(robot, run.q[-1], rigid.q[-1])).max() < 2e-5  # rtol, over 450 steps
    with pytest.raises(rm.errors.SimulationError, match="radau"):
        rm.simulate(robot, q, v, 20.0, integrator=rm.Integrator("rk4", step=0.01))


@pytest.mark.parametrize("seed", range(4))
def test_the_jacobian_of_implicit_steps_is_that_of_the_rates(seed):
    from remora.dynamics.forces.equations_of_motion import PassiveParameters
    from remora.simulation.engine.phase_dynamics import PhaseDynamics, RunSettings
    from trees import Case

    case = Case(seed, largest=5)
    robot = case.robot
    for joint in robot.joints:
        if joint.v.stop > joint.v.start:
            robot = robot.replace_joint(joint.name, damping=0.3, friction=0.1)
    free = [j.name for j in robot.joints if j.v.stop > j.v.start]
    rest = np.zeros(robot.nv)

    def law(t, q, v):
        return -2.0 * v + np.sin(t)

    for held in ((), tuple(free[-1:])):
        if held and robot.joints[held[0]].v.stop - robot.joints[held[0]].v.start == robot.nv:
            continue
        phase = rm.Phase(1.0, torque=law, wrenches=case.wrenches, locked=held)
        q, v = case.q, case.v.copy()
        for name in held:
            v[robot.joints[name].v] = 0.0
        system = PhaseDynamics(
            RunSettings(robot, "articulated", PassiveParameters(0.1, 0.0, 0.0), False),
            phase,
            0.0,
            q,
        )
        system.given.enter(0.0, 1.0)
        y = np.concatenate([rest, v, np.zeros(3)])
        J = system.jacobian(0.3, y)
        n = 2 * robot.nv
        e = 1e-6
        for k in range(n):
            d = np.zeros(y.size)
            d[k] = e
            slope = (system.rates(0.3, y + d) - system.rates(0.3, y - d)) / (2 * e)
            size = 1.0 + np.abs(J[:n]).max()
            assert np.abs(slope[:n] - J[:n, k]).max() < 1e-6 * size


def test_a_run_that_begins_beyond_a_limit_says_so():
    robot = slider(upper=0.5)
    with pytest.warns(rm.errors.SimulationWarning, match="starts at 0.7 m, beyond its upper limit"):
        run = rm.simulate(robot, [0.7], [0.1], 1.0)
    assert [(e.name, e.t) for e in run.events] == [("slide upper limit", 0.0)]
    with pytest.raises(rm.errors.SimulationError, match="begins beyond the slide upper limit"):
        rm.simulate(robot, [0.7], [0.1], 1.0, physics=rm.Physics(limits="stop"))


# What a review found ------------------------------------------------------------------------------


def test_a_limit_within_one_long_step_is_seen():
    """From rest to rest in one step: the speeds at its ends say nothing."""
    robot = slider(upper=0.5, velocity=3.0)
    motion = {"slide": rm.Motion.between(5.0, 6.0, 0.0, 2.0)}
    run = rm.simulate(robot, [0.0], [0.0], 7.0, prescribed=motion)
    assert [e.name for e in run.events] == ["slide speed limit", "slide upper limit"]
    robot = slider(upper=0.5)
    ended = rm.simulate(
        robot, [0.0], [0.0], 7.0, prescribed=motion, physics=rm.Physics(limits="stop")
    )
    assert ended.q[-1, 0] == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("over", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("integrator", ["dop853", "dopri5"])
def test_every_short_excursion_beyond_a_limit_is_seen(integrator, over):
    """An oscillation whose peaks are just beyond a limit, in steps of a third of its period."""
    robot = slider(upper=1.0 - over)
    mass = rm.mass_matrix(robot, [0.0])[0, 0]
    spring = rm.control.JointPD(robot, {"slide": 0.0}, mass, 0.0, None)
    run = rm.simulate(
        rm.System(robot, [spring]),
        [0.0],
        [1.0],
        40.0,
        integrator=rm.Integrator(integrator, rtol=1e-10),
    )
    peaks = 0.5 * np.pi + 2.0 * np.pi * np.arange(7)
    assert [e.name for e in run.events] == ["slide upper limit"] * 7
    assert [e.t for e in run.events] == pytest.approx(peaks - np.arccos(1.0 - over), abs=5e-6)


def test_a_limit_that_is_touched_at_the_start_and_then_passed():
    run = rm.simulate(slider(upper=0.0), [0.0], [0.1], 1.0, physics=rm.Physics(limits="stop"))
    assert run.t[-1] < 1e-9
    inward = rm.simulate(slider(upper=0.0), [0.0], [-0.1], 1.0, physics=rm.Physics(limits="stop"))
    assert inward.t[-1] == 1.0


@pytest.mark.parametrize("integrator", ["dop853", "radau", "rk4"])
@pytest.mark.parametrize("at", [0.1, 0.3, 0.7, 1.0])
def test_an_event_at_a_break_happens_once(integrator, at):
    event = rm.Event(lambda t, q, v: q[0] - at, "there", action="record")
    run = rm.simulate(
        slider(),
        [0.0],
        [1.0],
        2.0,
        events=[event],
        integrator=rm.Integrator(integrator, step=0.05, step_to_samples=True),
        record=0.1,
    )
    assert [e.t for e in run.events] == pytest.approx([at], abs=1e-12)


def test_an_event_at_the_boundary_of_phases_is_not_lost():
    event = rm.Event(lambda t, q, v: t - 1.0, "noon", action="record")
    phases = [rm.Phase(1.0), rm.Phase(1.0, own_clock=True)]
    run = rm.simulate(slider(), [0.0], [1.0], phases, events=[event])
    assert [e.t for e in run.events] == pytest.approx([1.0])
    late = rm.Event(lambda t, q, v: t - 1.5, "late", action="record")  # the time of the run
    run = rm.simulate(slider(), [0.0], [1.0], phases, events=[late])
    assert [e.t for e in run.events] == pytest.approx([1.5])


def test_stop_wins_over_next():
    events = [
        rm.Event(lambda t, q, v: t - 0.5, name, action=action)
        for name, action in (("a", "next"), ("b", "stop"))
    ]
    run = rm.simulate(slider(), [0.0], [1.0], [rm.Phase(1.0), rm.Phase(1.0)], events=events)
    assert run.t[-1] == pytest.approx(0.5)


def test_functions_cannot_change_the_state():
    def torque(t, q, v):
        q -= 1.0
        return -q

    with pytest.raises(rm.errors.SimulationError, match="read-only"):
        rm.simulate(slider(), [0.0], [1.0], 1.0, torque=torque)

    def condition(t, q, v):
        v[:] = 0.0
        return 1.0

    with pytest.raises(rm.errors.SimulationError, match="read-only"):
        rm.simulate(slider(), [0.0], [1.0], 1.0, events=[rm.Event(condition)])
    with pytest.raises(rm.errors.SimulationError, match="'bad' raised ZeroDivisionError"):
        rm.simulate(slider(), [0.0], [1.0], 1.0, events=[rm.Event(lambda t, q, v: 1 / 0, "bad")])


def followed(**limits):
    """A slider, and another that moves -2 times as far from 0.5 m on."""
    builder = rm.Builder("pair").body("a", mass=1, inertia=(1, 1, 1))
    builder = builder.body("b", mass=1, inertia=(1, 1, 1))
    builder = builder.joint("lead", "prismatic", None, "a", axis=(1, 0, 0))
    return builder.joint(
        "follow", "prismatic", "a", "b", axis=(0, 1, 0), mimic=("lead", -2.0, 0.5), **limits
    ).build()


def test_limits_of_a_mimic_joint_are_watched():
    """They were left out: `limits="stop"` did not stop a gripper's second finger."""
    robot = followed(lower=-1.0, upper=3.0)
    run = rm.simulate(robot, [0.0], [1.0], 2.0, physics=rm.Physics(limits="stop"))
    assert run.message.startswith("stopped by 'follow lower limit'")
    assert run.t[-1] == pytest.approx(0.75, abs=1e-14)
    back = rm.simulate(robot, [0.0], [-1.0], 2.0)
    assert [e.name for e in back.events] == ["follow upper limit"]
    assert back.events[0].t == pytest.approx(1.25, abs=1e-14)
    with pytest.raises(rm.errors.SimulationError, match="begins beyond the follow lower limit"):
        rm.simulate(robot, [1.0], [0.0], 1.0, physics=rm.Physics(limits="stop"))


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_speed_limits_of_a_mimic_joint_are_watched(way):
    run = rm.simulate(
        followed(velocity=1.5),
        [0.0],
        [0.0],
        1.0,
        torque=[way * 5.0],
        physics=rm.Physics(limits="stop"),
    )
    assert run.message.startswith("stopped by 'follow speed limit'")
    assert run.v[-1, 0] == pytest.approx(way * 0.75, abs=1e-12)


def test_distances_to_limits_and_their_rates_within_a_step(rng):
    robot = (
        rm.Builder("lead").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0))
        .body("a", mass=1.0, inertia=(1.0, 1.0, 1.0)).body("b", mass=1.0, inertia=(1.0, 1.0, 1.0))
        .joint("turn", "revolute", "bus", "a", lower=-0.5, upper=1.5, velocity=0.8)
        .joint("copy", "revolute", "a", "b", mimic=("turn", -2.0, 0.1), lower=-3.5, velocity=1.2)
        .build(base="fixed")
    )  # fmt: skip
    limits = joint_limits(robot, "record", at_start=False)
    assert limits.names == (
        "turn upper limit", "turn lower limit", "copy lower limit",
        *("turn speed limit", "copy speed limit") * 2,
    )  # fmt: skip

    def distances(q, v):
        copy = -2.0 * q + 0.1
        return [1.5 - q, q + 0.5, copy + 3.5, 0.8 - v, 1.2 + 2.0 * v, 0.8 + v, 1.2 - 2.0 * v]

    q, v, dq, dv, rate, gain = rng.normal(size=6)
    values, rates = limits.along(
        np.array([q]), np.array([v]), np.array([dq, dv]), np.array([rate, gain])
    )
    assert values - limits.rounding == pytest.approx(distances(q + dq, v + dv))
    assert limits.values(np.array([q]), np.array([v])) == pytest.approx(distances(q, v))
    changed = np.subtract(distances(q + rate, v + gain), distances(q, v))  # they are linear
    assert rates == pytest.approx(changed)
