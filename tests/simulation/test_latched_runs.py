"""Runs after a latch: compiled steps, with the latched numbers as arguments of the kernels."""

import numpy as np
import pytest

import remora as rm
from flat_captures import close, dispersed, flat
from plain_settings import grouped
from remora.algebra import pose
from remora.codegen.llvm import host
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.engine.phase_program import PhaseProgram
from remora.simulation.storage import recorder

KINDS = ("fixed", "rod", "gear")


def pair(kind):
    """Return two arms on a fixed base with a constraint that is off, and its name."""
    builder = rm.Builder("pair").body("base", mass=5.0, inertia=(1, 1, 1))
    for name in ("a", "b"):
        builder = builder.body(name, mass=1.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
        builder = builder.joint(name, "revolute", "base", name, axis=(0, 0, 1))
    if kind == "rod":
        builder = builder.rod("own", "a", "b", 1.0, parent_xyz=(0.3, 0, 0), child_xyz=(0.5, 0, 0))
    elif kind == "gear":
        builder = builder.gear("own", "a", "b", ratio=-2.0)
    else:
        builder = builder.constraint("own", kind, "a", "b")
    return builder.build(base="fixed").with_active(off=["own"])


def calls_of(owner, name, monkeypatch):
    """Return a list that grows by one at each call of a function."""
    seen, original = [], getattr(owner, name)

    def counted(*given):
        seen.append(1)
        return original(*given)

    monkeypatch.setattr(owner, name, counted)
    return seen


@pytest.fixture
def made(monkeypatch):
    """Return a list whose length is the number of functions that were compiled."""
    return calls_of(host, "to_object", monkeypatch)


@pytest.fixture
def advanced(monkeypatch):
    """Return a list whose length is the number of calls that made compiled steps."""
    return calls_of(PhaseProgram, "advance", monkeypatch)


@pytest.mark.parametrize("kind", KINDS)
def test_a_latched_run_makes_compiled_steps_that_no_second_pose_compiles_again(
    kind, made, advanced, monkeypatch
):
    robot = pair(kind)
    phases = [
        rm.Phase(0.1), rm.Phase(0.4, activate="own", latch=True, torque=[0.3, -0.1]),
        rm.Phase(0.1, release="own"),
    ]  # fmt: skip
    starts = [([0.3, 1.0], [0.2, 0.5]), ([0.2, -0.7], [-0.1, 0.3])]
    options = {"phases": phases, "rtol": 1e-10, "sample": 0.07}
    found = [rm.simulate(robot, *starts[0], **grouped(**options))]
    count, calls = len(made), len(advanced)
    assert calls >= 3  # a call for each phase
    found.append(rm.simulate(robot, *starts[1], **grouped(**options)))
    assert len(made) == count
    assert len(advanced) == 2 * calls
    monkeypatch.setattr(PhaseDynamics, "programmable", False)  # steps in Python
    for run, start in zip(found, starts, strict=True):
        slow = rm.simulate(robot, *start, **grouped(**options))
        for name in ("q", "v", "tau", "vdot"):
            assert close(getattr(run, name), getattr(slow, name))
        assert run.conservation().constraint < 1e-13


class Seen(rm.Component):
    """Reads the frame that a latch has moved, and pushes along with it; sampled or not."""

    def interface(self, robot):
        return rm.Interface(outputs={"offset": rm.Signal((), "m")})

    def place(self, at):
        grasp = at.robot.constraints["grasp"]
        x = pose.translation(grasp.child_placement)[..., 0]
        return x + (1.0 if grasp.active else 0.0)

    def outputs(self, at):
        return {"offset": self.place(at)}

    def act(self, at):
        return rm.JointForce("bus", self.place(at) * np.array([0.1, 0.0, 0.0]))


@pytest.mark.parametrize("timing", [{}, {"sample_time": 0.1}], ids=["continuous", "sampled"])
def test_components_see_the_constraints_of_the_phase(timing, made):
    """In single runs and in batches, also those that are sampled, and after a release."""
    robot, _ = flat()
    q, v = dispersed(2)
    system = rm.System(robot, [Seen(name="seen", **timing)])
    phases = [
        rm.Phase(0.2), rm.Phase(0.2, activate="grasp", latch=True), rm.Phase(0.2, release="grasp")
    ]  # fmt: skip
    batch = rm.simulate_batch(
        system, q, v, phases, integrator=rm.Integrator(step=0.05), record=0.05
    )
    runs = [batch[0]]
    count = len(made)
    runs.append(batch[1])
    assert len(made) == count
    for k, run in enumerate(runs):
        taken = run.switches[0].latched["grasp"]["child_placement"]
        x = pose.translation(taken)[0]
        seen = run.signals["seen.offset"]
        inner = run.t[:, None] - np.array([0.0, 0.2, 0.4])
        for j, expected in enumerate((-0.3, x + 1.0, x)):
            during = (inner[:, j] > 0.01) & (inner[:, j] < 0.19)
            assert during.any()
            assert close(seen[during], expected)
        assert close(batch.q[k, -1], run.q[-1])
        assert close(batch.v[k, -1], run.v[-1])


class Braking(rm.Component):
    """A noisy brake with a memory, and with the offset that the latch took over."""

    def interface(self, robot):
        return rm.Interface(discrete={"sum": 0.0}, noise={"speed": 1})

    def update(self, at):
        return {"sum": at.memory["sum"] + at.v[0] + 0.1 * at.noise["speed"][0]}

    def act(self, at):
        offset = at.robot.constraints["own"].offset
        return rm.JointForce("a", -0.2 * at.memory["sum"] + offset)


def test_a_run_that_is_interrupted_while_a_latch_is_on_ends_with_the_same_bits(
    tmp_path, monkeypatch
):
    """Two latches with different poses, and ticks in between."""
    system = rm.System(pair("gear"), [Braking(sample_time=0.07, delay=0.03)])
    phases = [
        rm.Phase(0.1), rm.Phase(0.3, activate="own", latch=True), rm.Phase(0.1, release="own"),
        rm.Phase(0.2, activate="own", latch=True),
    ]  # fmt: skip
    options = {"phases": phases, "integrator": "rk4", "step": 0.05, "sample": 0.09, "seed": 3}
    start = [0.3, 1.0], [0.2, 0.5]
    whole = rm.simulate(system, *start, **grouped(**options))
    offsets = [s.latched["own"]["offset"] for s in whole.switches if s.activated]
    assert len(offsets) == 2
    assert abs(offsets[0] - offsets[1]) > 1e-3
    append = recorder.Recorder.append
    for k in (3, 6, len(whole) - 1):  # in both latches, and in the last sample

        def interrupted(self, t, *samples, k=k):
            if len(self) <= k < len(self) + len(t):
                raise KeyboardInterrupt
            append(self, t, *samples)

        folder = tmp_path / str(k)
        with monkeypatch.context() as patch:
            patch.setattr(recorder.Recorder, "append", interrupted)
            with pytest.warns(RuntimeWarning, match="interrupted"):
                rm.simulate(system, *start, **grouped(**options, out=folder))
        run = rm.simulate(system, *start, **grouped(**options, out=folder, resume=True))
        for name, column in whole.columns.items():
            assert run.columns[name].tobytes() == column.tobytes(), (k, name)
        for one, other in zip(run.switches, whole.switches, strict=True):
            assert one.impulses.keys() == other.impulses.keys()
            for name, impulse in other.impulses.items():
                assert one.impulses[name].tobytes() == impulse.tobytes()
