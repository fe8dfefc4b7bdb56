"""Events happen exactly once, at the first time at which their condition holds."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import remora as rm
from plain_settings import grouped

ALL = ["dop853", "dopri5", "radau", "rk4"]


def slider(gravity=0.0):
    builder = rm.Builder("slider", gravity=(0, 0, gravity)).body("mass", mass=1, inertia=(1, 1, 1))
    return builder.joint("slide", "prismatic", None, "mass", axis=(0, 0, 1)).build()


SLIDER, FALLING = slider(), slider(-10.0)


def recorded(robot, condition, q=0.0, v=1.0, duration=3.0, direction=0, **options):
    event = rm.Event(condition, "it", action="record", direction=direction)
    return rm.simulate(robot, [q], [v], duration, **grouped(events=[event], **options))


def times(*arguments, **options):
    return [e.t for e in recorded(*arguments, **options).events]


# Discontinuous conditions -------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ALL)
@pytest.mark.parametrize("at", [0.1, 0.55, 1.0, 1.7, 2.9999])
def test_a_jump_in_time_is_found_to_the_last_bit(integrator, at):
    """Row of issue 12: it fired before it was true, or 0.4 s late."""
    found = times(SLIDER, lambda t, q, v: 1.0 if t >= at else -1.0, integrator=integrator, step=0.5)
    assert found == [at]


@pytest.mark.parametrize("integrator", ALL)
@pytest.mark.parametrize("at", [0.2, 0.77, 2.3])
def test_a_jump_in_the_state_holds_at_the_reported_state(integrator, at):
    run = recorded(
        FALLING, lambda t, q, v: 3.0 if q[0] <= -at else -0.01, v=0.0, integrator=integrator,
        step=0.4, duration=1.0,
    )  # fmt: skip
    (event,) = run.events
    assert event.q[0] <= -at
    assert event.t == pytest.approx(np.sqrt(0.2 * at), abs=1e-13)
    assert event.q[0] == pytest.approx(-at, abs=1e-13)


@pytest.mark.parametrize("kind", [bool, np.bool_, np.asarray])
@pytest.mark.parametrize(("direction", "expected"), [(0, [0.5]), (1, [0.5]), (-1, [1.25])])
def test_a_truth_value_happens_when_it_becomes_true(kind, direction, expected):
    found = times(SLIDER, lambda t, q, v: kind(0.5 <= q[0] < 1.25), direction=direction)
    assert found == pytest.approx(expected, abs=1e-15)


def test_the_first_time_is_the_first_that_can_be_written():
    condition = lambda t, q, v: q[0] * q[0] - 2.0  # noqa: E731
    run = recorded(SLIDER, condition, v=0.7)
    (event,) = run.events
    assert condition(event.t, event.q, event.v) >= 0.0
    assert abs(event.t - np.sqrt(2.0) / 0.7) <= 2.0 * np.spacing(2.0)


# Time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ALL)
@pytest.mark.parametrize("end", [0.3, 1.0, 2.0, 0.1 + 0.2])
def test_a_time_at_the_end_of_the_run_happens(integrator, end):
    """Row of issue 12: it never fired."""
    options = {"integrator": integrator, "step": 0.07, "duration": end}
    assert times(SLIDER, lambda t, q, v: t - end, **options) == [end]
    assert times(SLIDER, lambda t, q, v: bool(t >= end), **options) == [end]


def test_a_time_at_the_end_of_a_phase_with_its_own_clock():
    seen = rm.Event(lambda t, q, v: t - 0.3, "own", action="record")
    phases = [rm.Phase(0.7), rm.Phase(0.3, own_clock=True, events=[seen]), rm.Phase(0.1)]
    run = rm.simulate(SLIDER, [0.0], [1.0], phases)
    assert [e.t for e in run.events] == [0.7 + 0.3]


# Once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ALL)
def test_no_event_happens_twice(integrator):
    """Row of issue 12: 7 instead of 6, two of them one last place apart."""
    found = times(
        SLIDER, lambda t, q, v: np.sin(np.pi * t), integrator=integrator, duration=6.5, step=0.1,
        start=0.25, sample=0.125, step_to_samples=True,
    )  # fmt: skip
    assert found == pytest.approx([1, 2, 3, 4, 5, 6], abs=1e-14)


@given(
    ticks=st.integers(1, 40),
    shift=st.sampled_from([0.0, 1e-16, -1e-16, 1e-15, -1e-15, 1e-13, -1e-13, 1e-9]),
    integrator=st.sampled_from(ALL),
    slope=st.sampled_from([1.0, 1e-3, -1.0, 37.0]),
)
@settings(max_examples=60, deadline=None)
@example(ticks=3, shift=0.0, integrator="rk4", slope=1.0)
def test_events_at_and_near_ticks_happen_once(ticks, shift, integrator, slope):
    """A crossing at a controller's sample, or a few last places beside it."""
    at = 0.05 * ticks + shift
    law = rm.ZeroOrderHold(lambda t, q, v: [0.0], 0.05)
    found = times(
        SLIDER, lambda t, q, v: slope * (q[0] - at), torque=law, integrator=integrator, step=0.05,
        duration=2.5,
    )  # fmt: skip
    assert found == pytest.approx([at], abs=1e-12)


@pytest.mark.parametrize("late", [0.0, 1e-16, 1e-12, 4e-7, -1e-12])
def test_a_tick_is_not_run_twice_where_a_phase_ends(late):
    """Row of issue 12: an event within 1e-6 of a tick ends the phase; one tick, not two."""
    asked = []

    def law(t, q, v):
        asked.append(t)
        return [0.0]

    hold = rm.ZeroOrderHold(law, 0.1)
    over = rm.Event(lambda t, q, v: q[0] - (0.5 + late), "over", action="next")
    phases = [rm.Phase(1.0, torque=hold, events=[over]), rm.Phase(0.35, torque=hold)]
    run = rm.simulate(SLIDER, [0.0], [1.0], phases)
    assert run.t[-1] == pytest.approx(0.85 + late)
    assert np.round(asked, 5).tolist() == np.round(np.arange(9) * 0.1, 5).tolist()


# Smooth conditions, by Hypothesis -----------------------------------------------------------------

roots = st.lists(st.floats(0.05, 2.95), min_size=1, max_size=5)


@given(roots=roots, integrator=st.sampled_from(ALL), scale=st.sampled_from([1.0, -1.0, 1e-6, 1e6]))
@settings(max_examples=80, deadline=None)
@example(roots=[1.0, 1.0 + 1e-3], integrator="dop853", scale=1.0)
def test_polynomials_with_known_roots(roots, integrator, scale):
    """Of the position, in steps of the integrator's choice: each root once, none missed."""
    roots = np.sort(roots)
    assume(np.all(np.diff(roots) > 1e-3))
    found = times(
        SLIDER, lambda t, q, v: scale * np.prod(q[0] - roots), integrator=integrator, step=0.8
    )
    assert found == pytest.approx(roots.tolist(), abs=1e-11)


@given(
    frequency=st.floats(0.5, 60.0),
    phase=st.floats(0.0, 6.0),
    offset=st.floats(-0.9, 0.9),
    integrator=st.sampled_from(ALL),
    direction=st.sampled_from([-1, 0, 1]),
)
@settings(max_examples=80, deadline=None)
def test_sinusoids_many_times_within_one_step(frequency, phase, offset, integrator, direction):
    """sin(ωt + φ) = c: up to 60 crossings in a step that is as long as the run."""
    duration, low = 3.0, np.arcsin(offset)
    turns = 2.0 * np.pi * np.arange(-1, 40)
    rising, falling = low + turns, np.pi - low + turns
    chosen = {1: rising, -1: falling, 0: np.concatenate([rising, falling])}[direction]
    expected = np.sort((chosen - phase) / frequency)
    assume(np.all(np.abs(expected) > 1e-6))
    assume(np.all(np.abs(expected - duration) > 1e-6))
    expected = expected[(expected > 0.0) & (expected < duration)]
    found = times(
        SLIDER, lambda t, q, v: np.sin(frequency * t + phase) - offset, integrator=integrator,
        direction=direction, step=3.0, rtol=1e-3, duration=duration,
    )  # fmt: skip
    assert len(found) == len(expected)
    assert found == pytest.approx(expected.tolist(), abs=1e-11)


@pytest.mark.parametrize("depth", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("integrator", ALL)
def test_two_crossings_close_to_each_other(integrator, depth):
    """Through zero and back by `depth` of the condition: seen down to 1e-8, see `crossings`."""
    found = times(
        SLIDER,
        lambda t, q, v: (q[0] - 1.3) ** 2 - depth,
        integrator=integrator,
        step=3.0,
        rtol=1e-3,
    )
    width = np.sqrt(depth)
    assert found == pytest.approx([1.3 - width, 1.3 + width], abs=1e-9)


@pytest.mark.parametrize("number", [float, lambda x: x], ids=["called", "traced"])
def test_two_crossings_of_a_speed_within_one_step(number):
    """Python evaluates the condition at the speeds within the step, too."""
    found = times(
        FALLING, lambda t, q, v: (number(v[0]) + 14.0) ** 2 - 0.04, integrator="rk4", step=3.0
    )
    assert found == pytest.approx([1.48, 1.52], abs=1e-12)


def test_an_event_in_a_swinging_pendulum_is_where_scipy_has_it():
    from scipy.integrate import solve_ivp

    robot = (
        rm.Builder("pendulum", gravity=(0, 0, -9.81))
        .body("bob", mass=1, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
        .joint("hinge", "revolute", None, "bob", axis=(0, 1, 0))
        .build()
    )

    def height(t, y):
        return np.cos(y[0]) - 0.3

    part = solve_ivp(
        lambda t, y: [y[1], -9.81 / 1.1 * np.sin(y[0])], (0, 10), [2.0, 0.0], "DOP853",
        events=height, rtol=3e-14, atol=1e-14, max_step=0.02,
    )  # fmt: skip
    event = rm.Event(lambda t, q, v: np.cos(q[0]) - 0.3, "height", action="record")
    for integrator in ("dop853", "dopri5", "radau"):
        run = rm.simulate(robot, [2.0], [0.0], 10.0, events=[event], integrator=integrator)
        assert [e.t for e in run.events] == pytest.approx(part.t_events[0].tolist(), abs=1e-7)


# Step functions, and numbers at the end of the floating-point range -------------------------------


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("start", np.linspace(0.4, 2.7, 8).tolist())
def test_a_window_of_a_thirtieth_of_the_step_is_seen(start, truth):
    """A condition that was constant at the Chebyshev points was not looked at between them."""

    def inside(t, q, v):
        held = start <= t < start + 0.1
        return held if truth else (1.0 if held else -1.0)

    found = times(SLIDER, inside, integrator="rk4", step=3.0, direction=1)
    assert found == [start]


def test_windows_on_both_sides_of_a_jump_are_seen():
    """Intervals that a jump was found to divide have step functions on them, too."""

    def level(t, q, v):
        return 1.0 if 0.61 <= t < 0.67 or 2.0 <= t < 2.06 or t >= 2.5 else -1.0

    found = times(SLIDER, level, integrator="rk4", step=3.0, direction=1)
    assert found == [0.61, 2.0, 2.5]


@pytest.mark.parametrize("integrator", ALL)
@pytest.mark.parametrize(
    "condition",
    [
        lambda t, q, v: 1.0 / (t - 1.5) if t != 1.5 else np.inf,
        lambda t, q, v: 1.7e308 * np.sign(t - 1.5),
        lambda t, q, v: np.inf if t >= 1.5 else -np.inf,
        lambda t, q, v: -1.0 if t < 1.5 else np.inf,
        lambda t, q, v: 1e-310 if t >= 1.5 else -1e-310,
    ],
)
def test_conditions_may_be_infinite_or_denormal(condition, integrator):
    """Interpolants of them overflowed: a LinAlgError."""
    assert times(SLIDER, condition, integrator=integrator, step=0.7) == [1.5]
