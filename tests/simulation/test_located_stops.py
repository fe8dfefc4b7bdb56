"""Stops and limits are found wherever in a step they are met, by every integrator."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.simulation.phase.phase_loads import PhaseLoads
from sliders import bounced, slider

ADAPTIVE = ["dop853", "dopri5", "radau"]


def test_the_reference_itself():
    """Flight, half an oscillation about mg/k beyond the stop, flight: in closed form."""
    g, k, stop, total = 10.0, 1e4, 4.75, 3.0
    omega = np.sqrt(k)
    speed = np.sqrt(10.0**2 - 2 * g * stop)
    touched = (10.0 - speed) / g
    contact = (np.pi - 2.0 * np.arctan2(g / omega, speed)) / omega
    left = total - touched - contact
    end = stop - speed * left - 0.5 * g * left**2
    assert end == pytest.approx(-24.201989, abs=1e-6)
    y, times = bounced(0.0, 10.0, total, lower=-1e3, upper=stop, gravity=-g, k=k)
    assert y[0] == pytest.approx(end, abs=1e-10)
    assert times == pytest.approx([touched, touched + contact], abs=1e-12)


@pytest.mark.parametrize(
    ("integrator", "options", "tolerance"),
    [
        ("dopri5", {}, 1e-7),
        ("dop853", {}, 1e-7),
        ("radau", {}, 1e-6),
        ("rk4", {"step": 1e-3}, 1e-4),
        ("variational", {"step": 1e-3}, 1e-2),
    ],
)
def test_a_stop_is_not_stepped_over(integrator, options, tolerance):
    """Row of issue 12: it ended at -15 m, as if there were no stop."""
    robot = slider(upper=4.75, gravity=-10.0)
    run = rm.simulate(
        robot, [0.0], [10.0], 3.0, **grouped(stops=1e4, integrator=integrator, **options)
    )
    assert run.q[-1, 0] == pytest.approx(-24.20198903, abs=tolerance)
    assert [e.name for e in run.events] == ["slide upper limit"]
    assert run.events[0].t == pytest.approx(1.0 - np.sqrt(0.05), abs=1e-12)


@pytest.mark.parametrize("integrator", ADAPTIVE)
@pytest.mark.parametrize("damping", [0.0, 0.05])
def test_many_bounces(integrator, damping):
    """Between two stops, against SciPy with each contact located; energy as it should be."""
    setting = {"lower": -0.5, "upper": 0.7, "gravity": -3.0}
    robot = slider(**setting)
    stops = (2e4, damping)
    run = rm.simulate(
        robot,
        [0.0],
        [4.0],
        3.0,
        physics=rm.Physics(stops=stops),
        integrator=rm.Integrator(integrator, rtol=1e-11),
    )
    end, times = bounced(0.0, 4.0, 3.0, **setting, k=2e4, d=damping)
    assert len(times) >= 10
    assert run.q[-1, 0] == pytest.approx(end[0], abs=2e-7)
    assert run.v[-1, 0] == pytest.approx(end[1], abs=2e-6)
    assert len(run.events) == pytest.approx(len(times) / 2, abs=0.5)  # limits passed outwards
    assert [e.t for e in run.events] == pytest.approx(times[::2], abs=1e-8)
    energy = run.conservation().energy
    assert energy.relative < 1e-8
    if damping == 0.0:
        height = 0.5 * run.v[:, 0] ** 2 + 3.0 * run.q[:, 0]
        over = np.maximum(run.q[:, 0] - 0.7, 0.0) + np.maximum(-0.5 - run.q[:, 0], 0.0)
        assert np.abs(height + 1e4 * over**2 - 8.0).max() < 1e-7


@pytest.mark.parametrize("integrator", ADAPTIVE)
def test_few_steps_are_needed_for_a_bounce(integrator):
    """Contact is frozen within a step, so that no step is wasted on finding where it begins."""
    run = rm.simulate(
        slider(upper=1.0), [0.0], [1.0], 2.0, physics=rm.Physics(stops=1e4), integrator=integrator
    )
    assert run.v[-1, 0] == pytest.approx(-1.0, abs=1e-8)
    most = {"dop853": 30, "dopri5": 120, "radau": 300}[integrator]
    assert len(run) < most


def test_rest_on_a_stop():
    """At the limit, without speed: what pushes decides whether the stop is touched."""
    robot = slider(lower=0.0, gravity=-10.0)
    rests = rm.simulate(robot, [0.0], [0.0], 1.0, physics=rm.Physics(stops=1e4), record=1e-4)
    assert rests.q.min() == pytest.approx(-2e-3, rel=1e-5)
    assert rests.q.max() < 1e-12
    leaves = rm.simulate(
        slider(upper=0.0, gravity=-10.0), [0.0], [0.0], 1.0, physics=rm.Physics(stops=1e4)
    )
    assert leaves.q[-1, 0] == pytest.approx(-5.0, abs=1e-10)
    assert np.all(leaves.passive == 0.0)


def test_a_stop_that_is_grazed():
    """Up to the stop to rounding, and back: nothing happens, and the run goes on."""
    robot = slider(upper=1.25, gravity=-10.0)
    for speed in (*np.nextafter(5.0, [4.0, 6.0]).tolist(), 5.0, 5.0 + 1e-12, 5.0 - 1e-12):
        run = rm.simulate(robot, [0.0], [speed], 2.0, physics=rm.Physics(stops=1e6))
        assert run.q[-1, 0] == pytest.approx(-10.0, abs=1e-6)


def test_a_follower_has_stops_of_its_own():
    builder = rm.Builder("pair").body("a", mass=1, inertia=(1, 1, 1))
    builder = builder.body("b", mass=1e-9, inertia=(1e-9,) * 3)
    builder = builder.joint("lead", "prismatic", None, "a", axis=(1, 0, 0))
    robot = builder.joint(
        "follow", "prismatic", "a", "b", axis=(0, 1, 0), upper=1.0, mimic=("lead", 2.0, 0.5)
    ).build()
    run = rm.simulate(
        robot,
        [0.0],
        [1.0],
        1.0,
        physics=rm.Physics(stops=1e5),
        integrator=rm.Integrator(rtol=1e-9),
        record=1e-5,
    )
    assert run.v[-1, 0] == pytest.approx(-1.0, abs=1e-6)
    assert run.q.max() == pytest.approx(0.25 + 1.0 / np.sqrt(4e5), abs=1e-8)  # 2² of the stiffness


@pytest.mark.parametrize("integrator", ADAPTIVE)
@pytest.mark.parametrize("when", [0.19, 0.2, 0.56, 1.3])
def test_a_run_resumed_in_contact_has_the_same_bits(integrator, when, tmp_path, monkeypatch):
    """Interrupted in flight or in contact, with events all the way."""
    robot = slider(lower=-0.5, upper=0.7, gravity=-3.0)
    kept, interrupts = PhaseLoads.torque, [True]

    def torque(self, seen, q, v):
        if seen > when and interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return kept(self, seen, q, v)

    monkeypatch.setattr(PhaseLoads, "torque", torque)
    passing = rm.Event(lambda t, q, v: q[0] - 0.1, "passing", action="record")
    options = {
        "torque": lambda t, q, v: [0.1 * np.sin(9.0 * t)],
        "stops": (2e4, 0.05),
        "events": [passing],
    }
    options |= {"integrator": integrator, "rtol": 1e-8, "out": tmp_path / "run"}
    with pytest.warns(RuntimeWarning, match="interrupted"):
        rm.simulate(robot, [0.0], [4.0], 2.0, **grouped(**options))
    resumed = rm.simulate(robot, [0.0], [4.0], 2.0, **grouped(**options, resume=True))
    whole = rm.simulate(robot, [0.0], [4.0], 2.0, **grouped(**(options | {"out": None})))
    for name in ("t", "q", "v", "passive", "work"):
        assert np.array_equal(getattr(resumed, name), getattr(whole, name)), name
    assert [(e.name, e.t) for e in resumed.events] == [(e.name, e.t) for e in whole.events]
    assert len(whole.events) > 8


# Limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ADAPTIVE)
def test_a_limit_passed_in_the_middle_of_a_step_is_seen(integrator):
    """Row of issue 12: 0.45 s beyond the limit, visible in the samples, and no event."""
    robot = slider(upper=5.0 - 0.25, gravity=-10.0)  # passed for 2 √(2 0.25 / 10) = 0.447 s
    run = rm.simulate(
        robot, [0.0], [10.0], 2.0, physics=rm.Physics(limits="stop"), integrator=integrator
    )
    assert run.t[-1] == pytest.approx(1.0 - np.sqrt(0.05), abs=1e-12)
    assert "slide upper limit" in run.message


@pytest.mark.parametrize("beyond", [0.3, 1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("integrator", ADAPTIVE)
def test_however_little_a_limit_is_passed(integrator, beyond):
    robot = slider(upper=5.0 - beyond, gravity=-10.0)
    run = rm.simulate(
        robot, [0.0], [10.0], 2.0, physics=rm.Physics(limits="stop"), integrator=integrator
    )
    assert run.t[-1] == pytest.approx(1.0 - np.sqrt(2.0 * beyond / 10.0), abs=1e-8)
    assert run.q[-1, 0] > 5.0 - beyond  # it is passed, by rounding
    inside = slider(upper=5.0 + beyond, gravity=-10.0)
    assert (
        rm.simulate(
            inside, [0.0], [10.0], 2.0, physics=rm.Physics(limits="stop"), integrator=integrator
        ).t[-1]
        == 2
    )


@pytest.mark.parametrize("integrator", ADAPTIVE)
def test_a_speed_limit_passed_in_the_middle_of_a_step_is_seen(integrator):
    """A spring: the speed is largest half-way between rest and rest."""
    robot = slider(velocity=0.999)
    run = rm.simulate(
        robot,
        [1.0],
        [0.0],
        4.0,
        torque=lambda t, q, v: -q,
        integrator=rm.Integrator(integrator, rtol=1e-6),
    )
    first = np.arcsin(0.999)
    assert [e.t for e in run.events] == pytest.approx([first], abs=1e-3)
    assert run.events[0].v[0] < -0.999


def test_a_prescribed_joint_beyond_its_limit_and_back_within_one_step():
    robot = slider(upper=0.9)

    def there_and_back(t):
        return np.sin(t), np.cos(t), -np.sin(t)

    run = rm.simulate(
        robot,
        [0.0],
        [1.0],
        3.0,
        prescribed={"slide": there_and_back},
        physics=rm.Physics(limits="stop"),
        integrator=rm.Integrator(rtol=1e-3),
    )
    assert run.t[-1] == pytest.approx(np.arcsin(0.9), abs=1e-12)


def test_fixed_steps_that_stops_make_unstable_are_refused():
    """Of stops far too stiff for the step RK4 made a ball dropped from 1 m rise to 41 m."""
    builder = rm.Builder("ball", gravity=(0, 0, -10)).body("ball", mass=4, inertia=(1, 1, 1))
    robot = builder.joint("fall", "prismatic", None, "ball", axis=(0, 0, 1), lower=0.0).build()
    options = {"integrator": "rk4", "step": 1e-3, "limits": "ignore"}
    with pytest.raises(
        rm.errors.SimulationError, match=r"swing at 5e\+03 rad/s: .* 0.00057 s"
    ) as caught:
        rm.simulate(robot, [1.0], [0.0], 2.0, **grouped(stops=1e8, **options))
    assert caught.value.time == pytest.approx(np.sqrt(0.2), abs=2e-3)
    run = rm.simulate(
        robot, [1.0], [0.0], 1.0, **grouped(stops=2.7**2 * 4e6, **options)
    )  # h ω = 2.7
    assert run.q.max() <= 1.0 + 1e-9
