"""Single runs in machine code: the same as with parts in Python, and only where that is sound."""

import itertools

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.simulation.engine import hosted_parts
from remora.simulation.engine import phase_program as steps
from remora.simulation.engine import progress as showing
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.inputs.loads import Sum
from remora.simulation.inputs.pure_functions import can_be_traced, is_pure
from remora.simulation.storage import recorder as storage
from sliders import slider

VT18 = rm.load("vt18_satellite")
SERVICER = rm.load("servicer")
SHIFT = 2.0


@pytest.fixture
def loops(monkeypatch):
    """Both ways to make a run: in machine code, and with Python for all that blocks compute.

    Steps, updates, event functions and records are then evaluated in NumPy, or by kernels of their
    own. Returns both runs, and the number of calls of the program in the first.
    """
    calls, loads_in_python = [], []
    advance, loads = steps.PhaseProgram.advance, hosted_parts.HostedParts._loads

    def counted(self, *arguments):
        calls.append(1)
        return advance(self, *arguments)

    def counted_loads(self, *arguments):
        loads_in_python.append(1)
        return loads(self, *arguments)

    monkeypatch.setattr(steps.PhaseProgram, "advance", counted)
    monkeypatch.setattr(hosted_parts.HostedParts, "_loads", counted_loads)

    def both(make):
        calls.clear()
        loads_in_python.clear()
        fast = make()
        made = sum(calls)
        assert not loads_in_python
        with monkeypatch.context() as patch:
            patch.setattr(PhaseDynamics, "programmable", False)
            slow = make()
        assert loads_in_python
        return fast, slow, made

    return both


def assert_same(fast, slow, tolerance):
    """Same samples, events and loads."""
    assert len(fast) == len(slow)
    assert set(fast.columns) == set(slow.columns)
    for name, values in slow.columns.items():
        scale = max(1.0, float(np.abs(values).max(initial=0.0)))
        off = float(np.abs(np.asarray(fast.columns[name]) - values).max(initial=0.0))
        assert off <= tolerance * scale, name
    assert [(e.name, e.action) for e in fast.events] == [(e.name, e.action) for e in slow.events]
    for a, b in zip(fast.events, slow.events, strict=True):
        assert a.t == pytest.approx(b.t, rel=1e-10)


def moving(robot, seed=1, speed=0.3):
    _, v = rm.random_state(robot, seed)
    return rm.neutral(robot), speed * v


LOADS = {
    "none": {},
    "numbers": {"torque": {"J1": 0.2}, "base_wrench": [0.1, 0, 0, 0, 0.2, 0]},
    "pulses": {
        "torque": {
            "J1": rm.Pulse(0.5, 1.5, lambda t: 0.5 * np.sin(t - 0.5)),
            "J2": rm.Pulse(1.0, 2.0, 0.3),
        },
        "wrenches": {"body_3": rm.Pulse(0.3, 0.9, np.arange(6.0) / 10.0)},
    },
    "profiles": {
        "torque": {
            "J1": rm.Profile([0.2, 0.9, 1.7], [0.0, 0.4, -0.2]),
            "J2": rm.Profile([0.1, 0.8, 2.1, 2.6], [0.0, 0.3, 0.1, 0.2], "cubic"),
            "J3": rm.Profile([0.4, 1.1, 1.9], [0.1, -0.3, 0.2], "hold"),
        },
        "base_wrench": rm.Profile([0.2, 0.7], [np.ones(6), np.zeros(6)]),
    },
    "controller": {"torque": rm.ZeroOrderHold(lambda t, q, v: -0.4 * v, 0.13)},
    "sum": {"torque": Sum({"J1": 0.1}, {"J1": rm.Pulse(0.2, 1.2, lambda t: 0.3 * np.cos(t))})},
}
METHODS = {
    "dop853": {"sample": 0.05, "rtol": 1e-12},
    "dopri5": {"integrator": "dopri5", "rtol": 1e-12, "sample": 0.07},
    "landing": {"sample": 0.1, "step_to_samples": True, "rtol": 1e-12},
    "rk4": {"integrator": "rk4", "step": 0.01},
    "rk4 between": {"integrator": "rk4", "step": 0.013, "sample": 0.05},
}


def closeness(method):
    """Return the tolerance: rounding, or the errors of steps and of dense output."""
    return 1e-12 if method.get("integrator") == "rk4" else 2e-10


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("loads", LOADS.values(), ids=LOADS)
def test_machine_code_makes_the_steps_of_python(loads, method, loops):
    q, v = moving(VT18)
    fast, slow, made = loops(
        lambda: rm.simulate(VT18, q, v, **grouped(duration=3.0, **loads, **method, progress=False))
    )
    assert made
    assert_same(fast, slow, closeness(method))


def test_more_segments_than_one_call_makes(loops):
    q, v = moving(VT18)
    times = np.linspace(0.1, 2.9, 23)
    profile = rm.Profile(times, np.sin(np.arange(23.0)))
    for method in ({}, {"integrator": "rk4", "step": 0.05}):
        fast, slow, made = loops(
            lambda m=method: rm.simulate(
                VT18,
                q,
                v,
                3.0,
                **grouped(torque={"J1": profile}, breaks=[1.0, 2.0], progress=False, **m),
            )
        )
        assert made
        assert set(times) <= set(fast.t)
        assert fast.q[-1] == pytest.approx(slow.q[-1], rel=1e-9, abs=1e-9)


def test_friction_springs_saturation_and_gravity(loops):
    robot = SERVICER.replace_joint(SERVICER.joints[1].name, damping=0.3, friction=0.1)
    q, v = moving(robot)
    fast, slow, made = loops(
        lambda: rm.simulate(
            robot,
            q,
            v,
            0.3,
            torque=np.full(robot.nv, 0.5),
            physics=rm.Physics(saturate=True, limits="ignore"),
            record=rm.Record(0.1, progress=False),
            integrator=rm.Integrator(rtol=1e-12),
        )
    )
    assert made
    assert_same(fast, slow, 2e-10)


@pytest.mark.parametrize("options", [{}, {"limits": "stop"}, {"stops": (1e4, 0.1)}])
def test_events_near_limits_are_those_of_python(options, loops):
    robot = slider(upper=1.0)
    fast, slow, made = loops(
        lambda: rm.simulate(
            robot,
            [0.0],
            [0.1],
            5.0,
            **grouped(
                torque=rm.Profile([0.0, 5.0], [0.2, 0.0]),
                sample=0.05,
                max_step=0.1,
                progress=False,
                **options,
            ),
        )
    )
    assert made
    assert_same(fast, slow, 1e-9)
    if "stops" not in options:
        assert fast.events


def test_unstable_steps_are_errors():
    robot = VT18.replace_joint("J2", damping=1e9)
    q, v = moving(robot)
    with (
        pytest.warns(rm.errors.SimulationWarning),
        pytest.raises(rm.errors.SimulationError, match="a state that is not finite"),
    ):
        rm.simulate(
            robot,
            q,
            v,
            20.0,
            integrator=rm.Integrator("rk4", step=0.01),
            record=rm.Record(progress=False),
        )


# Functions of users ------------------------------------------------------------------------------


def test_functions_of_the_state_are_called(loops):
    q, v = moving(VT18)
    fast, slow, made = loops(
        lambda: rm.simulate(
            VT18,
            q,
            v,
            0.5,
            torque=lambda t, q, v: -0.1 * v,
            record=rm.Record(0.1, progress=False),
            integrator=rm.Integrator(rtol=1e-12),
        )
    )
    assert made
    assert_same(fast, slow, 2e-10)
    assert np.ptp(fast.tau[:, 6]) > 0.0


def test_a_pulse_with_a_memory_is_called(loops):
    calls = itertools.count()
    q, v = moving(VT18)
    pulse = rm.Pulse(0.1, 0.4, lambda t: 0.1 + 0.0 * next(calls))
    loops(
        lambda: rm.simulate(VT18, q, v, 0.5, torque={"J1": pulse}, record=rm.Record(progress=False))
    )
    assert next(calls) > 10


def test_numbers_that_a_function_captures_are_not_frozen(monkeypatch, loops):
    """A controller changes a global that a pulse reads: the run sees it."""
    q, v = moving(VT18)
    pulse = rm.Pulse(0.1, 0.9, lambda t: 0.3 * np.sin(SHIFT * t))

    def controller(t, q, v):
        monkeypatch.setitem(globals(), "SHIFT", 2.0 if t < 0.5 else 7.0)
        return np.zeros(VT18.nv)

    def make():
        monkeypatch.setitem(globals(), "SHIFT", 2.0)
        torque = Sum({"J1": pulse}, rm.ZeroOrderHold(controller, 0.25))
        return rm.simulate(
            VT18,
            q,
            v,
            1.0,
            torque=torque,
            record=rm.Record(0.05, progress=False),
            integrator=rm.Integrator(rtol=1e-12),
        )

    fast, slow, made = loops(make)
    assert made
    assert_same(fast, slow, 2e-10)


K = 3.0
cos = object()  # not what np.cos below reads


@pytest.mark.parametrize(
    ("function", "pure"),
    [
        (lambda t: 0.5 * np.sin(t - 2), True),
        (lambda t: K * t**2 + np.pi, True),
        (lambda t, a=2.0: np.exp(-a * t), True),
        (lambda t: np.cos(t), True),
        (lambda t: np.random.default_rng().random() * t, False),
        (lambda t: print(t) or t, False),
        (lambda t: LOADS["none"] and t, False),
        (np.sin, False),
    ],
)
def test_pure_functions(function, pure):
    assert is_pure(function) is pure


def test_what_assigns_or_depends_on_comparisons_is_not_compiled():
    count = 0

    def counting(t):
        nonlocal count
        count += 1
        return t

    def jumping(t):
        return 1.0 if t > 0.5 else 0.0

    assert not is_pure(counting)
    assert not can_be_traced(jumping, (0.2, 0.7))
    assert can_be_traced(lambda t: 0.5 * np.sin(t), (0.2, 0.7))


@pytest.mark.parametrize("kind", ["linear", "hold", "cubic"])
def test_a_profile_is_a_polynomial_between_its_times(kind):
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.2, 1.0, 6))
    profile = rm.Profile(times, rng.normal(size=(6, 2)), kind)
    bounds = [times[0] - 1.0, *times.tolist(), times[-1] + 1.0]
    for low, high in itertools.pairwise(bounds):
        low, high = low + 1e-9, high - 1e-9
        c = profile.coefficients(low, high)
        for t in np.linspace(low, high, 5):
            value = sum(c[k] * (t - low) ** k for k in range(len(c)))
            assert np.allclose(value, profile(t), rtol=1e-12, atol=1e-13)


# Systems -----------------------------------------------------------------------------------------


class Lag(rm.Component):
    """A force that approaches its command exponentially."""

    time_constant: float = 0.3
    command: float = 1.0

    def interface(self, robot):
        return rm.Interface(
            outputs={"force": rm.Signal((), "N m")}, continuous={"x": rm.State(0.0, "N m")}
        )

    def outputs(self, at):
        return {"force": 2.0 * at.state["x"]}

    def derivative(self, at):
        return {"x": (self.command - at.state["x"]) / self.time_constant}

    def act(self, at):
        return rm.JointForce("J1", at.state["x"])


class Tether(rm.Component):
    """A spring between the origins of two bodies."""

    stiffness: float = 10.0

    def act(self, at):
        force = self.stiffness * (at.position("body_3") - at.position("body_1"))
        return [
            rm.Wrench("body_1", force=force, axes="inertial"),
            rm.Wrench("body_3", force=-force, axes="inertial"),
        ]


class Damper(rm.Component):
    """A sampled damper with memory and noise."""

    gain: float = 0.5

    def interface(self, robot):
        return rm.Interface(
            outputs={"torque": rm.Signal((), "N m")}, discrete={"sum": rm.State(0.0, "rad/s")},
            noise={"speed": 1},
        )  # fmt: skip

    def update(self, at):
        seen = at.v[..., 7] + 0.01 * at.noise["speed"][..., 0]
        return {"sum": 0.9 * at.memory["sum"] + 0.1 * seen}

    def outputs(self, at):
        return {"torque": -self.gain * at.memory["sum"]}

    def act(self, at):
        return rm.JointForce("J2", self.outputs(at)["torque"])


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_systems_in_machine_code(method, loops):
    parts = [Lag(name="lag"), Tether(), Damper(sample_time=0.1, name="damper")]
    system = rm.System(VT18, parts)
    q, v = moving(VT18)
    fast, slow, made = loops(
        lambda: rm.simulate(system, q, v, 2.0, **grouped(**method, saturate=True, progress=False))
    )
    assert made
    assert_same(fast, slow, closeness(method))
    assert np.ptp(fast.columns["damper.torque"]) > 0.0


# Resume ------------------------------------------------------------------------------------------


class Kill(BaseException):
    """Ends a run from within, as a kill does."""


@pytest.mark.parametrize(
    ("method", "sampled"),
    [*((method, False) for method in (*METHODS.values(), {})), (METHODS["dop853"], True)],
    ids=[*METHODS, "steps", "sampled"],
)
def test_resumed_runs_have_the_same_bits(method, sampled, tmp_path, monkeypatch):
    """Also where several segments are made in one call: without samples in between."""
    parts = [Lag(name="lag"), *([Damper(sample_time=0.1, name="damper")] if sampled else [])]
    system = rm.System(VT18, parts)
    q, v = moving(VT18)
    load = {
        "J2": rm.Profile([0.1, 0.3, 1.2], [0.0, 0.2, 0.1]),
        "J3": rm.Pulse(0.5, 1.5, lambda t: 0.5 * np.cos(t - 0.5)),
    }
    asked = {"duration": 2.0, "torque": load, **method}
    whole = rm.simulate(system, q, v, **grouped(**asked))
    monkeypatch.setattr(storage, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(showing, "INTERVAL", 0.0)
    monkeypatch.setattr(steps, "FIRST_TRIES", 3)  # also between two calls within a segment
    for kill in (1, 3, 6, 9, 100_000):
        looks = itertools.count(1)

        def progress(status, looks=looks, kill=kill):
            if next(looks) >= kill:
                raise Kill

        with monkeypatch.context() as patch:
            patch.setattr(storage._Folder, "finish", lambda self, *_: self._unlock())
            try:
                rm.simulate(
                    system,
                    q,
                    v,
                    **grouped(**asked, out=tmp_path / "run", resume=True, progress=progress),
                )
            except Kill:
                continue
    run = rm.simulate(system, q, v, **grouped(**asked, out=tmp_path / "run", resume=True))
    assert run.status == "complete"
    for name, values in whole.columns.items():
        assert np.asarray(run.columns[name]).tobytes() == values.tobytes(), name


# What a component reads may change from run to run ------------------------------------------------

PUSH = 1.0


class ReadsGlobal(rm.Component):
    def act(self, at):
        return rm.JointForce("slide", PUSH + 0.0 * at.q[..., 0])


class ReadsField(rm.Component):
    pushes: object = None

    def act(self, at):
        return rm.JointForce("slide", self.pushes[0] + 0.0 * at.q[..., 0])


@pytest.mark.parametrize("what", ["global", "array", "list", "method"])
def test_a_system_that_was_changed_since_is_compiled_again(what, monkeypatch):
    """The same object, another force: 1 N, then 3 N."""
    given = {"array": np.array([1.0]), "list": [1.0]}.get(what)
    component = ReadsGlobal() if given is None else ReadsField(pushes=given)
    system = rm.System(slider(), [component])

    def end():
        run = rm.simulate(
            system,
            [0.0],
            [0.0],
            1.0,
            integrator="dopri5",
            physics=rm.Physics(limits="ignore"),
            record=rm.Record(progress=False),
        )
        return run.q[-1, 0]

    assert end() == pytest.approx(0.5, abs=1e-12)
    if what == "global":
        monkeypatch.setitem(globals(), "PUSH", 3.0)
    elif what == "method":
        monkeypatch.setattr(
            ReadsGlobal, "act", lambda self, at: rm.JointForce("slide", 3.0 + 0.0 * at.q[..., 0])
        )
    else:
        given[0] = 3.0
    assert end() == pytest.approx(1.5, abs=1e-12)


def test_a_default_by_keyword_that_changed_is_compiled_again():
    def force(t, *, size=1.0):
        return size + 0.0 * t

    pulse, robot = rm.Pulse(0.0, 1.0, force), slider()

    def end():
        run = rm.simulate(
            robot, [0.0], [0.0], 1.0, torque={"slide": pulse}, record=rm.Record(progress=False)
        )
        return run.q[-1, 0]

    assert end() == pytest.approx(0.5, abs=1e-12)
    force.__kwdefaults__["size"] = 3.0
    assert end() == pytest.approx(1.5, abs=1e-12)


@pytest.mark.parametrize("options", [{}, {"sample": 0.5}, {"integrator": "rk4", "step": 0.25}])
def test_the_start_is_recorded_if_the_first_phase_has_no_duration(options):
    system = rm.System(slider(), [HeldBrake(sample_time=0.3)])
    phases = [rm.Phase(0.0), rm.Phase(1.0), rm.Phase(0.0), rm.Phase(0.5)]
    run = rm.simulate(system, [0.0], [1.0], **grouped(phases=phases, **options))
    whole = rm.simulate(system, [0.0], [1.0], 1.5, **grouped(breaks=[1.0], **options))
    assert (run.t[0], run.v[0, 0], run.tau[0, 0]) == (0.0, 1.0, -1.0)
    assert np.abs(run.q[-1] - whole.q[-1]).max() < 1e-10
    if "sample" in options:
        assert run.t.tolist() == [0.0, 0.5, 1.0, 1.5]


class HeldBrake(rm.Component):
    """A brake whose force is held between its ticks."""

    def act(self, at):
        return rm.JointForce("slide", -at.v)


@pytest.mark.parametrize("towards", [-1.0, 0.0, 9.0], ids=["before", "at", "after"])
def test_a_sample_may_be_a_rounding_error_away_from_a_tick(towards):
    """Steps end at ticks, and there is no dense output if no sample is within the steps."""
    robot = slider()
    system = rm.System(robot, [HeldBrake(sample_time=0.07)])
    ticks = 0.07 * np.arange(1, 9)
    sample = np.nextafter(ticks, towards) if towards else ticks
    run = rm.simulate(
        system, [0.0], [1.0], 0.6, record=sample, integrator=rm.Integrator("dopri5", rtol=1e-6)
    )
    assert np.abs(run.t[1:-1] - sample).max() < 1e-15
    mass = rm.mass_matrix(robot, [0.0])[0, 0]
    expected = np.cumprod(np.full(8, 1.0 - 0.07 / mass))
    assert np.abs(run.v[1:-1, 0] - expected).max() < 1e-14
