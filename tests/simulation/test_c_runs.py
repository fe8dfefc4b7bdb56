"""Runs in C: events, resets, breaks, held joints, constraints and phases, as in a batch of one."""

import numpy as np
import pytest

import needs
import remora as rm
from c_structs import CModule, built_test, verdict
from flat_captures import capture_phases, dispersed, flat
from plain_settings import grouped
from remora.components.noise import normals
from remora.errors import InvalidValue, RemoraError
from remora.simulation.export.c_loop import save_loop_c
from remora.simulation.systems.noise_streams import noise_streams

STEP = 0.05


def arm():
    """Return a free base with two joints."""
    builder = rm.Builder("arm").body("bus", mass=20.0, com=(0.1, 0, 0), inertia=(2, 3, 4))
    builder = builder.joint("base", "free", None, "bus")
    for k, above in enumerate(("bus", "link0")):
        builder = builder.body(f"link{k}", mass=2.0, com=(0.4, 0, 0), inertia=(0.1, 0.2, 0.25))
        builder = builder.joint(
            f"j{k}", "revolute", above, f"link{k}", axis=(0, 1, 0), xyz=(0.6, 0, 0)
        )
    return builder.build()


ARM = arm()
Q = rm.neutral(ARM)
Q[8:] = 0.2, -0.4
V = 0.05 * np.cos(np.arange(ARM.nv)) + np.array([0] * 7 + [0.3])


class Encoder(rm.Component):
    deviation: float = 1e-3

    def interface(self, robot):
        return rm.Interface(outputs={"angles": rm.Signal(2)}, noise={"angles": 2})

    def outputs(self, at):
        return {"angles": at.q[..., 8:] + self.deviation * at.noise["angles"]}


class Control(rm.Component):
    kp: float = 2.0

    def interface(self, robot):
        return rm.Interface(inputs={"angles": rm.Signal(2)}, discrete={"last": np.zeros(2)})

    def act(self, at):
        angles = at.inputs["angles"]
        tau = self.kp * (0.5 - angles) - 5.0 * (angles - at.memory["last"])
        return [rm.JointForce(f"j{k}", tau[..., k : k + 1]) for k in range(2)]

    def update(self, at):
        return {"last": at.inputs["angles"]}


class Lag(rm.Component):
    tau: float = 0.3

    def interface(self, robot):
        return rm.Interface(continuous={"x": 0.5})

    def derivative(self, at):
        return {"x": (np.sin(2.0 * at.t) - at.state["x"]) / self.tau}

    def act(self, at):
        return rm.JointForce("j0", at.state["x"][..., None])


class Wall(rm.Component):
    """Reflects a joint, and counts."""

    place: float = -0.2

    def interface(self, robot):
        return rm.Interface(events={"hit": rm.ZeroCrossing(1, "reset")}, discrete={"count": 0.0})

    def crossings(self, at):
        return {"hit": at.q[..., 9] - self.place}

    def reset(self, at, event):
        flip = np.array([1.0] * 7 + [-1.0])
        return {"v": at.v * flip, "count": at.memory["count"] + 1.0}


def compared(system, q, v, folder, steps, own=(), **options):
    """Return the C module and the batch after some steps: the same numbers.

    Args:
        system: the system.
        q: configuration.
        v: velocity.
        folder: where the files are written.
        steps: number of steps.
        own: pairs of a member of the state and a recorded signal.
        options: of `save_loop_c`.
    """
    ends = STEP * steps
    if "phases" in options:
        ends = min(ends, sum(p.duration for p in options["phases"]))
    lasts = {} if "phases" in options else {"duration": ends}
    times = STEP * np.arange(steps + 1)
    plain = {"step": STEP, "sample": times[times < ends + 1e-9], "runs": 1, "seed": 7, **lasts}
    batch = rm.simulate_batch(system, q, v, **grouped(True, **plain, **options))
    save_loop_c(system, folder, STEP, "run", noise="generated", example=(q, v), **options)
    c = CModule(folder, "run")
    if "parameters" in c.functions["step"]:
        c.set("parameters", **{k.replace(".", "_"): x for k, x in system.parameters.items()})
    c.call("init", np.asarray(q, float), np.asarray(v, float))
    if hasattr(c.state, "seed"):
        c.set("state", seed=[7.0, 0.0])
    sampled = int(np.isfinite(batch.q[0]).all(axis=1).sum()) - 1
    for _ in range(sampled):
        c.call("step")
    assert np.abs(c.get("state", "q") - batch.q[0, sampled]).max() < 1e-12
    size = max(np.abs(batch.v[0]).max(initial=1e-3, where=np.isfinite(batch.v[0])), 1e-3)
    assert np.abs(c.get("state", "v") - batch.v[0, sampled]).max() < 1e-12 * size
    for member, signal in own:
        expected = batch.signals[signal][0, sampled]
        assert np.abs(c.get("state", member) - expected).max() < 1e-12, signal
    for _ in range(steps - sampled):
        c.call("step")
    if hasattr(c.state, "t"):
        assert abs(c.get("state", "t")[0] - batch.end[0]) < 1e-12
    assert verdict(built_test(folder, "run", "-O1")) == (0, 0, "good")
    return c, batch


@needs.compiler
def test_a_loop_with_noise_delay_and_an_event_that_resets(tmp_path):
    parts = [Encoder(sample_time=0.1), Control(sample_time=0.1, delay=0.05), Lag(), Wall()]
    c, batch = compared(
        rm.System(ARM, parts), Q, V, tmp_path, 60,
        own=[("wall_count", "wall.count"), ("lag_x", "lag.x"),
             ("encoder_angles", "encoder.angles")],
    )  # fmt: skip
    assert c.get("state", "wall_count")[0] >= 1.0
    first = batch.events.of("wall.hit")[0, 0]
    assert abs(c.get("state", "wall_hit_time")[0] - first) < 1e-12
    assert c.get("state", "status")[0] == 0.0


@needs.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_given_noise_with_an_event(dtype, tmp_path):
    """The noise of each step is an argument; in single precision, time is kept in double."""
    parts = [Encoder(sample_time=0.1), Control(sample_time=0.1, delay=0.05), Lag(), Wall()]
    system = rm.System(ARM, parts)
    save_loop_c(system, tmp_path, STEP, "run", dtype, example=(Q, V))
    c = CModule(tmp_path, "run")
    c.set("parameters", **{k.replace(".", "_"): x for k, x in system.parameters.items()})
    c.call("init", Q.astype(dtype), V.astype(dtype))
    c.set("state", start=1000.0)
    stream, size = noise_streams(system)["encoder"], system.noise_size
    for k in range(60):
        c.set("noise", encoder_angles=normals(7, 0, stream, k // 2, size))
        c.call("step")
    batch = rm.simulate_batch(
        system,
        Q,
        V,
        60 * STEP,
        integrator=rm.Integrator(step=STEP),
        record=STEP,
        start=1000.0,
        runs=rm.Runs(1, seed=7),
        target=rm.Target(dtype=dtype),
    )
    limit = {"float64": 1e-12, "float32": 1e-4}[dtype]
    assert np.abs(c.get("state", "q") - batch.q[0, -1]).max() < limit
    assert c.get("state", "wall_count")[0] == batch.signals["wall.count"][0, -1] >= 1.0
    assert abs(c.get("state", "t")[0] - 1003.0) < 1e-9
    assert verdict(built_test(tmp_path, "run", "-O2")) == (0, 0, "good")


@needs.compiler
def test_ticks_and_breaks_within_steps(tmp_path):
    """Sample times that are no multiples of the step, and a load that jumps twice in one step."""
    pulse = rm.SignalSource(rm.Pulse(0.31, 0.33, 4.0), "N m", name="pulse")

    class Push(rm.Component):
        def interface(self, robot):
            return rm.Interface(inputs={"value": rm.Signal((), "N m")})

        def act(self, at):
            return rm.JointForce("j0", at.inputs["value"][..., None])

    parts = [Encoder(sample_time=0.07), Control(sample_time=0.07, offset=0.013, delay=0.02), pulse,
             Push()]  # fmt: skip
    system = rm.System(ARM, parts, connect={"push.value": "pulse.value"})
    c, _ = compared(system, Q, V, tmp_path, 20, own=[("control_last", "control.last")])
    assert c.get("state", "tick_0")[0] > 10.0


@needs.compiler
def test_prescribed_and_locked_joints(tmp_path):
    """The base recoils from a prescribed joint; an event stops the run within a step."""
    q, v = Q.copy(), V.copy()
    v[6:] = 0.33, 0.0
    q[8] = 0.1
    motion = {"j0": lambda t: 0.1 + 0.33 * t - 0.03 * t * t}
    stop = rm.Event(lambda t, q, v: q[8] - 0.39, "far", "stop", 1)
    c, batch = compared(
        rm.System(ARM, [Lag()]), q, v, tmp_path, 30, prescribed=motion, locked="j1", events=[stop],
    )  # fmt: skip
    assert c.get("state", "status")[0] == 1.0
    end = batch.events.of("far")[0, 0]
    assert abs(c.get("state", "t")[0] - end) < 1e-12
    assert abs(c.get("state", "far_time")[0] - end) < 1e-12
    assert c.get("state", "q")[9] == q[9]


def chain():
    """Return a closed chain of three links, and a state of it."""
    builder = rm.Builder("loop").body("base", mass=20.0, inertia=(4, 5, 6))
    last = "base"
    for k in range(3):
        builder = builder.body(f"link{k}", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.25))
        reach = 0.7 if k == 0 else 1.0
        builder = builder.joint(
            f"j{k}", "revolute", last, f"link{k}", axis=(0, 0, 1), xyz=(reach, 0, 0)
        )
        last = f"link{k}"
    builder = builder.constraint(
        "pin", "revolute", "base", last, parent_xyz=(-0.5, 0, 0), child_xyz=(1, 0, 0)
    )
    robot = builder.build(base="fixed")
    return robot, *rm.close_loops(robot, [1.7, 1.5, 1.5], [0.3, -0.2, 0.1])


@needs.compiler
def test_constraints(tmp_path):
    robot, q, v = chain()
    c, _ = compared(rm.System(robot), q, v, tmp_path, 40)
    assert np.abs(rm.loops.constraint_residual(robot, c.get("state", "q"))).max() < 1e-13


@needs.compiler
def test_capture_latch_and_release(tmp_path):
    """Each phase begins at the time of an event; a constraint takes over the relative pose."""
    robot, _ = flat()
    q, v = (x[0] for x in dispersed(1))
    phases = capture_phases(robot)
    c, batch = compared(rm.System(robot), q, v, tmp_path, 81, phases=phases)
    assert c.get("state", "phase")[0] == 2.0
    times = [s.t[0] for s in batch.switches]
    assert abs(c.get("state", "phase_start_of_phase_1")[0] - times[0]) < 1e-12
    assert abs(c.get("state", "phase_start_of_phase_2")[0] - times[1]) < 1e-12
    latched = batch.switches[0].latched["grasp"]["child_placement"][0]
    assert np.abs(c.get("state", "grasp_child_placement") - latched).max() < 1e-12


@needs.compiler
def test_a_run_that_misses_its_event_ends(tmp_path):
    robot, _ = flat()
    q, v = (x[0] for x in dispersed(1))
    v[3] = 0.3  # moves away
    c, batch = compared(rm.System(robot), q, v, tmp_path, 70, phases=capture_phases(robot))
    assert batch.outcome.tolist() == ["no event"]
    assert c.get("state", "status")[0] == 9.0
    assert c.get("state", "t")[0] == 3.0


@needs.compiler
def test_phases_by_time_with_held_joints(tmp_path):
    """A joint is prescribed, then locked, then free; loads differ by phase."""
    q, v = Q.copy(), V.copy()
    q[8], v[6] = 0.0, 0.2
    phases = [
        rm.Phase(0.5, prescribed={"j0": rm.Motion(lambda t: 0.2 * t - 0.2 * t * t)}),
        rm.Phase(0.4, locked="j0", torque={"j1": lambda t, q, v: 0.3 - 0.1 * v[7]}, own_clock=True),
        rm.Phase(0.63, torque={"j0": 0.5, "j1": rm.Pulse(0.9, 1.2, -0.4)}),
    ]
    parts = [Encoder(sample_time=0.1), Control(sample_time=0.1, delay=0.05), Lag()]
    compared(rm.System(ARM, parts), q, v, tmp_path, 31, phases=phases,
             own=[("lag_x", "lag.x")])  # fmt: skip


@needs.compiler
def test_an_impulse_stops_a_joint(tmp_path):
    """In C as in a batch; momentum is kept."""
    phases = [rm.Phase(0.5), rm.Phase(0.5, locked="j1", impulse=True)]
    c, _ = compared(rm.System(ARM), Q, V, tmp_path, 20, phases=phases)
    q, v = c.get("state", "q"), c.get("state", "v")
    assert v[7] == 0.0
    assert abs(V[7]) > 0.1
    assert np.abs(rm.momentum(ARM, q, v) - rm.momentum(ARM, Q, V)).max() < 1e-8  # of RK4 steps


def status_of(system, starts, folder, **options):
    """Return the status after the first step from each start; a run that fails does not move."""
    save_loop_c(system, folder, STEP, "run", **options)
    c, found = CModule(folder, "run"), []
    for q, v in starts:
        c.call("init", q, v)
        c.call("step")
        found.append(c.get("state", "status")[0])
        assert c.get("state", "t")[0] == (STEP if found[-1] == 0.0 else 0.0)
    return found


@needs.compiler
def test_starts_that_contradict_what_is_held(tmp_path):
    """A joint that would have to jump, a loop that is open or opens: the run does not begin."""
    q, v = Q.copy(), V.copy()
    q[8], v[6] = 0.1, 0.33
    aside, faster = q + 1e-6 * (np.arange(ARM.nq) == 8), v + 1e-6 * (np.arange(ARM.nv) == 6)
    motion = {"j0": lambda t: 0.1 + 0.33 * t}
    starts = [(q, v), (aside, v), (q, faster)]
    arm_alone = rm.System(ARM)
    assert status_of(arm_alone, starts, tmp_path / "held", prescribed=motion) == [0.0, 8.0, 8.0]
    robot, q, v = chain()
    starts = [(q, v), (q + 1e-6, v), (q, v + np.array([1e-6, 0.0, 0.0]))]
    assert status_of(rm.System(robot), starts, tmp_path / "loop") == [0.0, 10.0, 10.0]


def test_refusals(tmp_path):
    system = rm.System(ARM, [Encoder(sample_time=0.02)])
    with pytest.raises(InvalidValue, match=r"'encoder': its sample_time of 0.02 s is shorter than"):
        save_loop_c(system, tmp_path, 0.05)
    with pytest.raises(RemoraError, match="given in these"):
        save_loop_c(system, tmp_path, 0.01, phases=[rm.Phase(1.0)], locked="j0")
    with pytest.raises(RemoraError, match="phases are empty"):
        save_loop_c(system, tmp_path, 0.01, phases=[])
    with pytest.raises(RemoraError, match="no noise of exported C named 'random'"):
        save_loop_c(system, tmp_path, 0.01, noise="random")
    law = rm.control.JointPD(ARM, {"j0": 0.1}, 2.0, 4.0, 0.02)
    phases = [rm.Phase(1.0), rm.Phase(1.0, torque=law)]
    with pytest.raises(RemoraError, match="phase 2 has a sampled load"):
        save_loop_c(rm.System(ARM), tmp_path, 0.01, phases=phases)
    robot = chain()[0]
    with pytest.raises(RemoraError, match="constraint 'pin' acts: float32 is too coarse"):
        save_loop_c(rm.System(robot), tmp_path, 0.01, dtype="float32")
    assert list(tmp_path.iterdir()) == []
