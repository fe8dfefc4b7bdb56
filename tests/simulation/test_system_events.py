"""Events of components in single runs: location, actions, resets, chattering, NaN."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.algebra.array_ops import sqrt
from sliders import slider

METHODS = ["dop853", "dopri5", "radau", "rk4", "variational"]


def step_of(integrator, step):
    fixed = integrator in ("rk4", "variational")
    return {"integrator": integrator, "step": step if fixed else None}


class Floor(rm.Component):
    """A floor at q = 0 on which a mass bounces with a coefficient of restitution."""

    restitution: float = 0.8
    direction: int = -1

    def interface(self, robot):
        return rm.Interface(
            continuous={"flight": rm.State(0.0, "s")},
            discrete={"bounces": rm.State(0.0)},
            events={"hit": rm.ZeroCrossing(self.direction, "reset")},
        )

    def derivative(self, at):
        return {"flight": 1.0 + 0.0 * at.state["flight"]}

    def crossings(self, at):
        return {"hit": at.q[..., 0]}

    def reset(self, at, event):
        return {
            "v": -self.restitution * at.v,
            "flight": 0.0 * at.state["flight"],
            "bounces": at.memory["bounces"] + 1.0,
        }


class QuietFloor(Floor):
    """Without a continuous state, for the variational integrator."""

    def interface(self, robot):
        return rm.Interface(events={"hit": rm.ZeroCrossing(self.direction, "reset")})

    def derivative(self, at):
        return {}

    def reset(self, at, event):
        return {"v": -self.restitution * at.v}


def impacts(height, gravity, restitution, duration):
    """Times of impact of a ball that is dropped, closed form."""
    t, flight = np.sqrt(2.0 * height / gravity), 2.0 * np.sqrt(2.0 * height / gravity)
    times = []
    while t < duration:
        times.append(t)
        flight *= restitution
        t += flight
    return np.array(times)


@pytest.mark.parametrize("direction", [-1, 0])
@pytest.mark.parametrize("integrator", METHODS)
def test_a_ball_bounces_at_the_right_times(integrator, direction):
    floor = QuietFloor if integrator == "variational" else Floor
    system = rm.System(slider(gravity=-10.0), [floor(name="floor", direction=direction)])
    run = rm.simulate(system, [1.0], [0.0], 3.5, **grouped(**step_of(integrator, 0.01)))
    times = impacts(1.0, 10.0, 0.8, 3.5)
    assert len(times) == 9
    assert [e.name for e in run.events] == ["floor.hit"] * 9
    assert [e.action for e in run.events] == ["reset"] * 9
    assert np.abs([e.t for e in run.events] - times).max() < 1e-12
    assert run.q.min() > -1e-12
    kept = run.conservation()
    assert kept.energy.relative < 1e-12  # what bounces lose is counted as external work
    for t in [e.t for e in run.events]:
        before, after = np.flatnonzero(run.t == t)
        assert run.v[before, 0] < 0.0 < run.v[after, 0]
        assert run.v[after, 0] == -0.8 * run.v[before, 0]
    if integrator != "variational":
        assert run.signals["floor.bounces"][-1] == 9.0
        assert run.signals["floor.flight"][-1] == pytest.approx(3.5 - times[-1], abs=1e-12)


def test_samples_before_and_after_a_reset_are_recorded_beside_those_asked_for():
    system = rm.System(slider(gravity=-10.0), [Floor(name="floor")])
    run = rm.simulate(system, [1.0], [0.0], 1.0, record=0.25)
    (t,) = [e.t for e in run.events]
    assert run.t.tolist() == [0.0, 0.25, t, t, 0.5, 0.75, 1.0]


def test_a_ball_that_comes_to_rest_is_reported_and_does_not_fall_through():
    system = rm.System(slider(gravity=-10.0), [Floor(name="floor", restitution=0.5)])
    with pytest.raises(
        rm.errors.SimulationError, match="event 'hit' of component 'floor' chatters"
    ) as e:
        rm.simulate(system, [1.0], [0.0], 4.0)
    assert e.value.time == pytest.approx(3.0 * np.sqrt(0.2), abs=1e-5)
    assert e.value.recording.q.min() > -1e-9


def test_a_reset_that_stops_the_motion_at_the_event_chatters():
    system = rm.System(slider(gravity=-10.0), [Floor(name="floor", restitution=0.0)])
    with pytest.raises(
        rm.errors.SimulationError, match="event 'hit' of component 'floor' chatters"
    ):
        rm.simulate(system, [1.0], [0.0], 4.0)


@pytest.mark.parametrize("direction", [-1, 0])
def test_a_reset_of_other_states_happens_once(direction):
    class Gate(Floor):
        def reset(self, at, event):
            return {"bounces": at.memory["bounces"] + 1.0}

    system = rm.System(slider(gravity=-10.0), [Gate(name="gate", direction=direction)])
    run = rm.simulate(system, [1.0], [0.0], 1.0)
    assert [e.t for e in run.events] == pytest.approx([np.sqrt(0.2)], abs=1e-14)
    assert run.q[-1, 0] == pytest.approx(-4.0, abs=1e-12)
    assert run.signals["gate.bounces"][-1] == 1.0


@pytest.mark.parametrize("action", ["record", "stop", "next"])
def test_other_actions(action):
    class Watch(rm.Component):
        def interface(self, robot):
            return rm.Interface(events={"down": rm.ZeroCrossing(-1, action)})

        def crossings(self, at):
            return {"down": at.q[..., 0] - 0.5}

    system = rm.System(slider(gravity=-10.0), [Watch()])
    phases = [rm.Phase(0.6), rm.Phase(0.2, torque=[10.0])]
    run = rm.simulate(system, [1.0], [0.0], phases)
    (event,) = run.events
    t = np.sqrt(0.1)
    assert (event.name, event.action) == ("watch.down", action)
    assert event.t == pytest.approx(t, abs=1e-14)
    assert run.t[-1] == pytest.approx({"record": 0.8, "stop": t, "next": t + 0.2}[action])


def test_an_event_of_a_held_output_happens_at_the_tick():
    """The event function jumps where the sampled output does."""

    class Clock(rm.Component):
        def interface(self, robot):
            return rm.Interface(outputs={"seen": rm.Signal()})

        def outputs(self, at):
            return {"seen": at.t}

    class Alarm(rm.Component):
        def interface(self, robot):
            return rm.Interface(
                inputs={"seen": rm.Signal()}, events={"late": rm.ZeroCrossing(1, "record")}
            )

        def crossings(self, at):
            return {"late": at.inputs["seen"] - 0.55}

    system = rm.System(slider(), [Clock(sample_time=0.1), Alarm()])
    for integrator in ("dop853", "rk4"):
        run = rm.simulate(system, [0.0], [1.0], 1.0, **grouped(**step_of(integrator, 0.03)))
        (event,) = run.events
        assert event.t == pytest.approx(0.6, abs=1e-12)


def test_a_reset_can_cause_another_event():
    class Count(rm.Component):
        def interface(self, robot):
            return rm.Interface(
                continuous={"x": rm.State(0.0)},
                events={
                    "full": rm.ZeroCrossing(1, "reset"),
                    "emptied": rm.ZeroCrossing(-1, "record"),
                },
            )

        def derivative(self, at):
            return {"x": 1.0 + 0.0 * at.state["x"]}

        def crossings(self, at):
            return {"full": at.state["x"] - 0.3, "emptied": at.state["x"] - 0.1}

        def reset(self, at, event):
            return {"x": 0.0 * at.state["x"]}

    run = rm.simulate(rm.System(slider(), [Count()]), [0.0], [0.0], 1.0)
    assert [e.name for e in run.events] == ["count.full", "count.emptied"] * 3
    assert [e.t for e in run.events] == pytest.approx([0.3, 0.3, 0.6, 0.6, 0.9, 0.9], abs=1e-12)
    assert run.signals["count.x"][-1] == pytest.approx(0.1, abs=1e-12)


def test_resets_that_change_momentum_are_named():
    class Kick(rm.Component):
        def interface(self, robot):
            return rm.Interface(events={"now": rm.ZeroCrossing(1, "reset")})

        def crossings(self, at):
            return {"now": at.t - 0.5}

        def reset(self, at, event):
            return {"v": 1.5 * at.v}

    robot = rm.load("vt18_satellite")
    _, v = rm.random_state(robot, 1)
    run = rm.simulate(rm.System(robot, [Kick()]), rm.neutral(robot), 0.1 * v, 1.0)
    kept = run.conservation()
    assert kept.linear_momentum.broken_by == "resets"
    assert kept.energy.relative < 1e-9
    assert run.work[-1, 1] == pytest.approx(1.25 * run.kinetic_energy[0], rel=1e-9)


# Faults -------------------------------------------------------------------------------------------


class Wrong(rm.Component):
    """Resets a free robot to something at t = 0.5."""

    what: str = "v"
    value: tuple = ()

    def interface(self, robot):
        return rm.Interface(events={"now": rm.ZeroCrossing(1, "reset")})

    def crossings(self, at):
        return {"now": at.t - 0.5}

    def reset(self, at, event):
        return {self.what: np.array(self.value)}


def test_resets_of_quaternions_are_checked():
    robot = rm.load("vt18_satellite")
    rest = tuple(rm.neutral(robot)[8:])

    def run(*base):
        system = rm.System(robot, [Wrong(what="q", value=(*base, *rest))])
        return rm.simulate(system, rm.neutral(robot), np.zeros(robot.nv), 1.0)

    where = "the reset of component 'wrong' at event 'now' returns for joint"
    with pytest.raises(
        rm.errors.SimulationError, match=f"{where} .* a quaternion of norm 1.1, not 1"
    ):
        run(1.1, 0, 0, 0, 0, 0, 0, 0)
    with pytest.raises(rm.errors.SimulationError, match=f"{where} .* no unit dual quaternion"):
        run(1, 0, 0, 0, 0.1, 0, 0, 0)
    near = run(1.0 + 3e-10, 0, 0, 0, 0, 0.5, 0, 0)
    assert abs(np.sum(near.q[-1, :4] ** 2) - 1.0) < 1e-15
    assert near.frame(robot.bodies[0].name).position[-1] == pytest.approx([1, 0, 0])


def test_resets_must_be_finite_and_of_the_right_shape():
    with pytest.raises(
        rm.errors.SimulationError, match="at event 'now' returns v that is not finite"
    ):
        rm.simulate(rm.System(slider(), [Wrong(value=(np.nan,))]), [0.0], [0.0], 1.0)
    with pytest.raises(
        rm.errors.SimulationError, match="reset of component 'wrong': 'v' must have shape"
    ):
        rm.simulate(rm.System(slider(), [Wrong(value=(1.0, 2.0))]), [0.0], [0.0], 1.0)


class Failing(rm.Component):
    """Returns NaN in one of its methods once q is beyond 0.5."""

    place: str = "act"

    def interface(self, robot):
        sampled = self.sample_time is not None
        return rm.Interface(
            outputs={"y": rm.Signal()},
            continuous={} if sampled else {"x": rm.State(0.0)},
            discrete={"d": rm.State(0.0)} if sampled else {},
            events={} if sampled else {"e": rm.ZeroCrossing()},
        )

    def _root(self, at, place):
        return sqrt(0.5 - at.q[..., 0]) if place == self.place else 0.0 * at.q[..., 0]

    def outputs(self, at):
        return {"y": self._root(at, "outputs")}

    def act(self, at):
        return rm.JointForce("slide", self._root(at, "act"))

    def derivative(self, at):
        return {"x": self._root(at, "derivative")}

    def update(self, at):
        return {"d": self._root(at, "update")}

    def crossings(self, at):
        return {"e": 1.0 + self._root(at, "crossings")}


class OpaqueFailing(Failing):
    def act(self, at):
        float(at.t)
        return super().act(at)


@pytest.mark.parametrize("kind", [Failing, OpaqueFailing])
@pytest.mark.parametrize("integrator", ["dop853", "radau", "rk4"])
@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("act", "the force on joint 'slide' of component 'c' is not finite"),
        ("outputs", "output 'y' of component 'c' is not finite"),
        ("derivative", "the derivative of state 'x' of component 'c' is not finite"),
        ("crossings", "the function of event 'e' of component 'c' is NaN"),
    ],
)
def test_nan_of_a_continuous_component_names_it(place, text, integrator, kind):
    system = rm.System(slider(), [kind(name="c", place=place)])
    with pytest.raises(rm.errors.SimulationError, match=text) as error:
        rm.simulate(system, [0.0], [1.0], 1.0, **grouped(**step_of(integrator, 0.1)))
    assert 0.0 < error.value.time <= 1.0


@pytest.mark.parametrize("kind", [Failing, OpaqueFailing])
@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("act", "the force on joint 'slide' of component 'c' is not finite"),
        ("outputs", "output 'y' of component 'c' is not finite"),
        ("update", "discrete state 'd' of component 'c' is not finite"),
    ],
)
@pytest.mark.parametrize("delay", [0.0, 0.15])
def test_nan_at_a_tick_names_the_component(place, text, delay, kind):
    part = kind(name="c", place=place, sample_time=0.1, delay=delay)
    with pytest.raises(rm.errors.SimulationError, match=text) as error:
        rm.simulate(rm.System(slider(), [part]), [0.0], [1.0], 1.0)
    assert 0.49 < error.value.time < 0.75


def test_an_error_in_a_component_names_it():
    class Broken(rm.Component):
        def act(self, at):
            return rm.JointForce("slide", 1.0 / [1.0, 0.0][int(float(at.t) > 0.5)])

    with pytest.raises(
        rm.errors.SimulationError, match="act of component 'broken' raised ZeroDivision"
    ):
        rm.simulate(rm.System(slider(), [Broken()]), [0.0], [0.0], 1.0)


def test_actions_must_not_change_their_targets():
    class Moody(rm.Component):
        def act(self, at):
            return None if float(at.t) < 0.5 else rm.JointForce("slide", 1.0)

    with pytest.raises(
        rm.errors.SimulationError, match="act of component 'moody' must always act on the"
    ):
        rm.simulate(rm.System(slider(), [Moody()]), [0.0], [0.0], 1.0)


class Window(rm.Component):
    """A force that is NaN in a short interval of time, which whole steps pass over."""

    def act(self, at):
        return rm.JointForce("slide", 1e-9 * sqrt((at.t - 0.512) * (at.t - 0.538)))


@pytest.mark.parametrize("order", [1, -1])
def test_nan_of_a_law_in_a_step_to_a_contact_is_not_blamed_on_the_wall(order):
    wall = rm.world.Wall("mass", (0, 0, 0.56), (0, 0, -1), 1.0)
    system = rm.System(slider(), [Window(name="law"), wall][::order])
    text = "the force on joint 'slide' of component 'law' is not finite"
    with pytest.raises(rm.errors.SimulationError, match=text):
        rm.simulate(system, [0.0], [1.0], 1.0, integrator=rm.Integrator("rk4", step=0.1))


class Rooted(rm.Component):
    """A force that is NaN once q is beyond 0.5, as an output, too."""

    def interface(self, robot):
        return rm.Interface(outputs={"y": rm.Signal(1)})

    def outputs(self, at):
        return {"y": sqrt(0.5 - at.q[..., :1])}

    def act(self, at):
        return rm.JointForce("slide", self.outputs(at)["y"])


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "dopri5"}])
def test_a_law_that_fails_in_contact_is_named_in_a_batch(order, options):
    wall = rm.world.Wall("mass", (0, 0, 0.2), (0, 0, -1), 1.0)
    system = rm.System(slider(), [Rooted(name="law"), wall][::order])
    with pytest.raises(
        rm.errors.SimulationError, match="output 'y' of component 'law' is not finite"
    ):
        rm.simulate_batch(system, [0.0], [1.0], 1.0, **grouped(True, runs=2, **options))


class FailingQuietly(Failing):
    """Without events, so that a batch makes its steps in lockstep and checks none of them."""

    def interface(self, robot):
        whole = super().interface(robot)
        return rm.Interface(
            outputs=whole.outputs, continuous=whole.continuous, discrete=whole.discrete
        )

    def _root(self, at, place):
        return (sqrt(0.5 - at.q) if place == self.place else 0.0 * at.q)[..., 0]

    def crossings(self, at):
        return {}


@pytest.mark.parametrize(
    ("place", "sample_time", "text"),
    [
        ("act", None, "the force on joint 'slide' of component 'law' is not finite"),
        ("derivative", None, "the derivative of state 'x' of component 'law' is not finite"),
        ("act", 0.1, "the force on joint 'slide' of component 'law' is not finite"),
        ("update", 0.1, "discrete state 'd' of component 'law' is not finite"),
    ],
)
def test_a_component_that_fails_in_lockstep_is_named_with_its_run(place, sample_time, text):
    """Only run 1 of 3 comes so far, in the second phase."""
    law = FailingQuietly(name="law", place=place, sample_time=sample_time)
    system = rm.System(slider(), [law])
    given = {"step": 0.01, "sample": 0.25, "phases": [rm.Phase(0.3), rm.Phase(0.7)]}
    speeds = np.array([[-1.0], [0.8], [-2.0]])
    with pytest.raises(rm.errors.SimulationError, match=r"run \[1\]") as error:
        rm.simulate_batch(system, np.zeros((3, 1)), speeds, **grouped(True, **given))
    assert text in str(error.value)
    kept = rm.simulate_batch(
        system, np.zeros((3, 1)), speeds, **grouped(True, **given, failures="keep")
    )
    assert kept.ok.tolist() == [True, False, True]
    assert kept.faults == {1: text}


def test_the_component_behind_a_nan_is_named_not_the_one_that_passes_it_on():
    class Passing(rm.Component):
        def interface(self, robot):
            return rm.Interface(inputs={"u": rm.Signal(())}, outputs={"y": rm.Signal(())})

        def outputs(self, at):
            return {"y": 2.0 * at.inputs["u"]}

    parts = [Passing(name="after"), Failing(name="law", place="outputs")]
    system = rm.System(slider(), parts, {"after.u": "law.y"})
    with pytest.raises(rm.errors.SimulationError, match="output 'y' of component 'law'"):
        rm.simulate(system, [0.0], [1.0], 1.0)


# A reset that makes another event occur ---------------------------------------------------------


class Wall(rm.Component):
    """Throws a joint back."""

    def interface(self, robot):
        return rm.Interface(events={"hit": rm.ZeroCrossing(1, "reset")})

    def crossings(self, at):
        return {"hit": at.joint_position("slide")[..., 0] - 0.3}

    def reset(self, at, event):
        return {"v": -0.9 * at.v}


@pytest.mark.parametrize("method", [{}, {"integrator": "rk4", "step": 0.01}], ids=["dop853", "rk4"])
@pytest.mark.parametrize("action", ["record", "next"])
@pytest.mark.parametrize("speed", [0.37, 0.5, 0.83])
def test_a_reset_that_makes_another_event_occur_happens_once(speed, action, method):
    """The step that finds the other one is so short that the joint is still at the wall."""
    system = rm.System(slider(), [Wall()])
    back = rm.Event(lambda t, q, v: v[0], "back", action, -1)
    phases = [rm.Phase(1.0, events=[back]), rm.Phase(0.5)]
    run = rm.simulate(system, [0.0], [speed], **grouped(phases=phases, **method))
    assert [e.name for e in run.events] == ["wall.hit", "back"]
    assert run.v[-1] == pytest.approx([-0.9 * speed], rel=1e-14)
    left = run.t[-1] - 0.3 / speed
    assert run.q[-1] == pytest.approx([0.3 - 0.9 * speed * left], rel=1e-12)
    batch = rm.simulate_batch(system, [[0.0]], [[speed]], **grouped(True, phases=phases, **{
        "integrator": "dop853", **method}))  # fmt: skip
    assert batch.final.v == pytest.approx(run.v[-1:], rel=1e-14)
