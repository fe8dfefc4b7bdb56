"""Event functions that jump through zero at a tick or at a reset are events of batches, too."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from sliders import slider

WAYS = [{"step": 0.03}, {"integrator": "dopri5"}]


def times_of(batch, name):
    events = batch.events
    column = events.names.index(name)
    return [
        events.times[0, k]
        for k in range(events.times.shape[-1])
        if events.fired[0, k, column] > 0.5
    ]


class Clock(rm.Component):
    """A sampled time."""

    def interface(self, robot):
        return rm.Interface(outputs={"seen": rm.Signal()})

    def outputs(self, at):
        return {"seen": at.t}


class Alarm(rm.Component):
    """An event of a held output."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"seen": rm.Signal()}, events={"late": rm.ZeroCrossing(1, "record")}
        )

    def crossings(self, at):
        return {"late": at.inputs["seen"] - 0.55}


@pytest.mark.parametrize("options", WAYS)
def test_an_event_of_a_held_output_happens_at_the_tick(options):
    system = rm.System(slider(), [Clock(sample_time=0.1), Alarm()])
    batch = rm.simulate_batch(system, [0.0], [1.0], 1.0, **grouped(True, runs=1, **options))
    assert times_of(batch, "alarm.late") == pytest.approx([0.6], abs=1e-12)


class Count(rm.Component):
    """A reset of one event jumps through the zero of another."""

    def interface(self, robot):
        return rm.Interface(
            continuous={"x": rm.State(0.0)},
            discrete={"emptyings": 0.0},
            events={
                "full": rm.ZeroCrossing(1, "reset"),
                "emptied": rm.ZeroCrossing(-1, "reset"),
            },
        )

    def derivative(self, at):
        return {"x": 1.0 + 0.0 * at.state["x"]}

    def crossings(self, at):
        return {"full": at.state["x"] - 0.3, "emptied": at.state["x"] - 0.1}

    def reset(self, at, event):
        if event == "full":
            return {"x": 0.0 * at.state["x"]}
        return {"emptyings": at.memory["emptyings"] + 1.0}


@pytest.mark.parametrize("options", WAYS)
def test_a_reset_can_cause_another_event(options):
    system = rm.System(slider(), [Count()])
    batch = rm.simulate_batch(system, [0.0], [0.0], 1.0, **grouped(True, runs=1, **options))
    for name in ("count.full", "count.emptied"):
        assert times_of(batch, name) == pytest.approx([0.3, 0.6, 0.9], abs=1e-12)
    assert batch.signals["count.emptyings"][0, -1] == 3.0
    assert abs(batch.signals["count.x"][0, -1] - 0.1) < 1e-12


class Teleport(rm.Component):
    """Moves the robot across the event of another component, by direction."""

    by: float = 0.5

    def interface(self, robot):
        return rm.Interface(events={"go": rm.ZeroCrossing(1, "reset")})

    def crossings(self, at):
        return {"go": at.t - 0.3}

    def reset(self, at, event):
        return {"q": at.q + self.by}


class Line(rm.Component):
    """Counts rising crossings of 0.6."""

    def interface(self, robot):
        return rm.Interface(events={"passed": rm.ZeroCrossing(1, "reset")}, discrete={"count": 0.0})

    def crossings(self, at):
        return {"passed": at.q[..., 0] - 0.6}

    def reset(self, at, event):
        return {"count": at.memory["count"] + 1.0}


@pytest.mark.parametrize("options", WAYS)
def test_jumps_count_in_their_direction_and_once(options):
    system = rm.System(slider(), [Teleport(), Line()])
    by = {"teleport.by": np.array([0.5, -0.5, 0.0, 0.1])}
    batch = rm.simulate_batch(system, [0.0], [1.0], 1.0, **grouped(True, parameters=by, **options))
    assert batch.signals["line.count"][:, -1].tolist() == [1.0, 0.0, 1.0, 1.0]
    for k, moved in enumerate(by["teleport.by"]):
        alone = rm.System(slider(), [Teleport(by=float(moved)), Line()])
        run = rm.simulate(alone, [0.0], [1.0], 1.0)
        assert run.signals["line.count"][-1] == batch.signals["line.count"][k, -1]


class Bump(rm.Component):
    """An excursion early in the step, and a crossing that shows at its end."""

    def interface(self, robot):
        return rm.Interface(
            events={"up": rm.ZeroCrossing(1, "record"), "end": rm.ZeroCrossing(1, "record")}
        )

    def crossings(self, at):
        q = at.q[..., 0]
        return {"up": 0.01 - (q - 0.3) ** 2, "end": q - 0.9}


@pytest.mark.parametrize("options", [{"step": 1.0}, {"integrator": "dopri5", "step": 1.0}])
def test_an_excursion_before_another_event_is_seen(options):
    batch = rm.simulate_batch(
        rm.System(slider(), [Bump()]), [0.0], [1.0], 1.0, **grouped(True, runs=1, **options)
    )
    assert times_of(batch, "bump.up") == pytest.approx([0.2], abs=1e-12)
    assert times_of(batch, "bump.end") == pytest.approx([0.9], abs=1e-12)
