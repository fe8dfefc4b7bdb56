"""Random studies, computed in several ways that must agree: alone, in a batch, in a campaign, ...

    python tests/fuzz.py                    # for two minutes, from a seed of the day; prints seeds
    python tests/fuzz.py --seed 17 --count 1

Each seed makes a small robot, components (a lag whose initial state may be computed from a
parameter, a sampled law with noise, offset and delay, a counter that is reset at events, an event
that occurs hundreds of times, one that reacts to phases and to an event), joint limits, phases with
loads (some of them sampled), locked and prescribed joints, conditions and clocks of their own, and
numbers that differ from run to run. Every run is then made

- alone, by `rm.simulate`, of a system that is made of the run's own numbers;
- in a batch, by `rm.simulate_batch`, with the numbers as parameters;
- in a block of a campaign, whose outputs and criteria are compared with those of
- its replay;
- once by `rm.Simulation`, advanced to random times: the same bits as alone;
- once interrupted at a random sample on its way to a folder, and resumed: the same bits;
- once with the first calls of its program repeated by the interpreter of programs: the same bits;
- once in C, where C has all parts of the case, against a batch of one with the same fixed steps;
- once, where nothing is sampled, reset or switched, by SciPy around `rm.forward_dynamics`.

States at the end, times of all events, samples, outputs and criteria must agree.
"""

import argparse
import contextlib
import dataclasses
import math
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
from scipy.integrate import solve_ivp

import needs
import remora as rm
from c_structs import CModule
from plain_settings import grouped
from remora.campaigns import targets
from remora.campaigns.blocks import replay, run_block
from remora.campaigns.dispersions import Dispersion, Dispersions
from remora.campaigns.outputs import Criterion, output
from remora.campaigns.study import Study
from remora.campaigns.study_schema import CriterionFile, OutputFile
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_interpreter import interpret
from remora.codegen.llvm import host
from remora.components.run_signals import event_key
from remora.model.state import log_rate
from remora.simulation.engine import phase_program
from remora.simulation.export.c_loop import save_loop_c
from remora.simulation.inputs.loads import Sum
from remora.simulation.scenario.scenario import Scenario
from remora.simulation.storage import recorder

#: Seeds that the tests try: many events, a clock of a phase, an end between samples, a parameter
#: that is an initial state.
CHOSEN = (2, 13, 14, 16)
#: Fixed step in C, s.
STEP = 0.02
#: Runs of a case.
RUNS = 4
#: Differences that are allowed, of the largest number compared, by integrator: those with adaptive
#: steps choose other steps alone than in a batch.
TOLERANCE = {"rk4": 1e-9, "dopri5": 1e-6, "dop853": 1e-6}


class Lag(rm.Component):
    """A force that follows a command; it begins with the second of its numbers."""

    numbers: np.ndarray = dataclasses.field(default_factory=lambda: np.array([0.2, 0.0]))
    joint: str = "slide"

    def interface(self, robot):
        return rm.Interface(
            inputs={"command": rm.Signal((), "N", default=0.5)},
            continuous={"force": rm.State(float(self.numbers[1]), "N")},
        )

    def derivative(self, at):
        return {"force": (at.inputs["command"] - at.state["force"]) / self.numbers[0]}

    def act(self, at):
        return rm.JointForce(self.joint, at.state["force"])


class Law(rm.Component):
    """A sampled law with an integral and noise in what it measures."""

    goal: float = 0.3
    spread: float = 0.05
    joint: str = "slide"

    def interface(self, robot):
        return rm.Interface(
            outputs={"command": rm.Signal((), "N")},
            discrete={"sum": rm.State(0.0, "m s")},
            noise={"position": 1},
        )

    def _error(self, at):
        noise = self.spread * at.noise["position"][..., 0]
        return self.goal - at.joint_position(self.joint)[..., 0] + noise

    def outputs(self, at):
        speed = at.joint_velocity(self.joint)[..., 0]
        return {"command": 2.0 * self._error(at) + at.memory["sum"] - 1.5 * speed}

    def update(self, at):
        return {"sum": at.memory["sum"] + self.sample_time * self._error(at)}


class Counter(rm.Component):
    """Counts how often a joint passes a place, and slows it down there."""

    place: float = 0.1
    joint: str = "slide"

    def interface(self, robot):
        return rm.Interface(
            discrete={"passed": rm.State(0.0)}, events={"passes": rm.ZeroCrossing(0, "reset")}
        )

    def crossings(self, at):
        return {"passes": at.joint_position(self.joint)[..., 0] - self.place}

    def reset(self, at, event):
        return {"v": 0.9 * at.v, "passed": at.memory["passed"] + 1.0}


class Beat(rm.Component):
    """An event that occurs again and again, and one that occurs once, late."""

    rate: float = 20.0
    late: float = 3.0

    def interface(self, robot):
        return rm.Interface(
            events={"beats": rm.ZeroCrossing(0, "record"), "late": rm.ZeroCrossing(1, "record")}
        )

    def crossings(self, at):
        return {"beats": np.sin(self.rate * at.t + 0.3), "late": at.t - self.late}


class Watcher(rm.Component):
    """A force that depends on the phase, and on an event and the time since."""

    joint: str = "slide"

    def interface(self, robot):
        return rm.Interface(
            inputs={"seen": rm.Signal(default=0.0), "when": rm.Signal((), "s", default=0.0)},
            outputs={"push": rm.Signal((), "N")},
        )

    def outputs(self, at):
        since = at.inputs["seen"] * (1.0 + 0.1 * (at.t - at.inputs["when"]))
        return {"push": 0.3 * since - 0.2 * at.phase + 0.1 * np.cos(at.phase_time)}

    def act(self, at):
        return rm.JointForce(self.joint, self.outputs(at)["push"])


class Rhythm:
    """A force of time and speed, as a load."""

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, t, q, v):
        return np.reshape(0.4 * np.cos(self.rate * t) - 0.1 * v[-1], (1,))


@dataclasses.dataclass
class Case:
    """A study with random parts.

    Attributes:
        seed: of the case.
        features: what it has, in words.
        make_robot: numbers by name -> the robot.
        make_parts: numbers by name -> the components.
        phases: the phases.
        q: initial configuration of the scenario.
        v: initial velocity of the scenario.
        values: numbers that differ from run to run, by name, `(RUNS,)`.
        options: arguments of `rm.simulate` and `rm.simulate_batch`.
        joint: the joint that is driven.
        connect: sources of inputs.
    """

    seed: int
    features: list
    make_robot: object
    make_parts: object
    phases: tuple
    q: np.ndarray
    v: np.ndarray
    values: dict
    options: dict
    joint: str
    connect: dict

    def __post_init__(self):
        self.robot = self.make_robot({})
        self.system = rm.System(self.robot, self.make_parts({}), self.connect)


class TimeCondition:
    """A condition of time."""

    def __init__(self, at):
        self.at = at

    def __call__(self, t, q, v):
        return t - self.at


class PlaceCondition:
    """A condition of one coordinate or speed."""

    def __init__(self, index, level, of_speed):
        self.index, self.level, self.of_speed = index, level, of_speed

    def __call__(self, t, q, v):
        return (v if self.of_speed else q)[..., self.index] - self.level


def random_case(seed):
    """Return the case of a seed."""
    keys = (20260, 20261, 20262, 20263)
    rng, more, last, grips = (np.random.default_rng([own, seed]) for own in keys)
    features = []

    def chance(p, word, rng=rng):
        yes = bool(rng.random() < p)
        if yes:
            features.append(word)
        return yes

    base = "free" if chance(0.3, "free base") else "fixed"
    hinge = chance(0.4, "two joints")
    kind = "prismatic" if chance(0.6, "slide") else "revolute"
    gravity = float(rng.normal()) if base == "fixed" and chance(0.3, "gravity") else 0.0
    spring = float(rng.uniform(1.0, 8.0)) if chance(0.6, "spring") else 0.0
    damping = float(rng.uniform(0.0, 0.5))
    limits = {}
    if chance(0.4, "limits", last):
        low, high, speed = last.uniform([-0.5, 0.05, 0.1], [-0.05, 0.5, 1.0]).tolist()
        limits = {"lower": low, "upper": high, "velocity": speed}
    captured = chance(0.4, "captures", grips)
    kind_of_grip = str(grips.choice(["fixed", "spherical", "revolute"]))
    values = {}

    def make_robot(numbers):
        builder = rm.Builder("fuzzed", gravity=(0, 0, gravity))
        builder = builder.body("bus", mass=30.0, inertia=(3, 4, 5)).joint("base", base, None, "bus")
        builder = builder.body("mass", mass=numbers.get("mass.mass", 1.5), inertia=(0.2, 0.3, 0.4))
        builder = builder.joint(
            "slide", kind, "bus", "mass", xyz=(0.1, 0, 0), axis=(0, 0, 1),
            damping=numbers.get("slide.damping", damping), stiffness=spring, **limits,
        )  # fmt: skip
        if hinge:
            builder = builder.body("tip", mass=0.4, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
            builder = builder.joint(
                "hinge", "revolute", "mass", "tip", axis=(0, 1, 0), damping=0.05, stiffness=1.0
            )
        if captured:
            builder = builder.body("prey", mass=2.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.2))
            builder = builder.joint("prey", "free", None, "prey", xyz=(0.5, 0.2, 0.1))
            builder = builder.constraint("grip", kind_of_grip, "mass", "prey", active=False)
        return builder.build()

    robot = make_robot({})
    q, v = rm.neutral(robot), 0.3 * rng.normal(size=robot.nv)
    slide = robot.joints["slide"]
    q[slide.q] = rng.normal(scale=0.2)

    # Components
    timing = {
        "sample_time": float(rng.choice([0.05, 0.1, 0.13])),
        "offset": float(rng.choice([0.0, 0.02])),
        "delay": float(rng.choice([0.0, 0.04, 0.1, 0.17])),
    }
    lag, law = chance(0.7, "lag"), chance(0.5, f"law {timing}")
    counter, beat = chance(0.3, "resets"), chance(0.3, "many events")
    numbers_of_lag = np.array([rng.uniform(0.1, 0.5), rng.normal()])
    place, rate = float(rng.normal(scale=0.1)), float(rng.uniform(40.0, 220.0))
    watched_every = [None, 0.07][int(more.integers(2))]
    watcher = chance(0.5, f"watcher every {watched_every} s", more)

    def make_parts(numbers):
        parts = []
        if lag:
            own = [numbers.get(f"lag.numbers[{i}]", x) for i, x in enumerate(numbers_of_lag)]
            parts.append(Lag(np.array(own)))
        if law and lag:
            parts.append(Law(numbers.get("law.goal", 0.3), **timing))
        if counter:
            parts.append(Counter(numbers.get("counter.place", place)))
        if beat:
            parts.append(Beat(numbers.get("beat.rate", rate), late))
        if watcher:
            parts.append(Watcher(sample_time=watched_every))
        return parts

    # Phases
    count = int(rng.integers(1, 4))
    phases, start, late, gripped = [], 0.0, 0.0, False

    def switches(k):
        """Return what a phase switches: the grip on, as it is at that moment, or off again."""
        nonlocal gripped
        if gripped:
            gripped = not chance(0.5, f"released in phase {k}", grips)
            thrown = {"separation": {"grip": float(grips.uniform(0.0, 0.3))}}
            return {} if gripped else {"release": "grip", **[{}, thrown][grips.integers(2)]}
        gripped = k > 0 and chance(0.7, f"gripped in phase {k}", grips)
        return {"activate": "grip", "latch": True, "impulse": True} if gripped else {}

    for k in range(count):
        duration = float(rng.uniform(0.8, 3.0))
        own_clock = chance(0.7, f"own clock in phase {k}")
        clock = 0.0 if own_clock else start
        torque = None
        if chance(0.5, f"load in phase {k}"):
            low, high = np.sort(rng.uniform(0.0, duration, 2)) + clock
            torque = {"slide": rm.Pulse(float(low), float(high), float(rng.normal()))}
        events = []
        for i in range(int(rng.integers(0, 3))):
            action = str(rng.choice(["record", "next", "stop"], p=[0.4, 0.35, 0.25]))
            if rng.random() < 0.5:
                # also times of the run's clock in a phase with its own: they must not count
                at = float(rng.uniform(0.1, 0.95) * duration) + clock
                condition, direction, word = TimeCondition(at), 1, f"time {at:.3g}"
            else:
                speed = bool(rng.random() < 0.5)
                index = slide.v.start if speed else slide.q.start
                level = float(rng.normal(scale=0.3))
                condition = PlaceCondition(index, level, speed)
                direction, word = int(rng.integers(-1, 2)), f"{'v' if speed else 'q'} {level:.3g}"
            features.append(f"{action} at {word} in phase {k}")
            events.append(rm.Event(condition, f"event {k}.{i}", action, direction))
        if chance(0.4, f"sampled load in phase {k}", more):
            held = rm.ZeroOrderHold(Rhythm(float(more.uniform(1.0, 5.0))), 0.09)
            torque = Sum({"slide": held}, *([] if torque is None else [torque]))
        given = {}
        if hinge and k == 0 and chance(0.4, "held hinge", last):
            v[robot.joints["hinge"].v] = 0.0
            end = float(last.normal(scale=0.5))
            moves = rm.Motion.between(clock, clock + duration, 0.0, end)
            given = [{"locked": ["hinge"]}, {"prescribed": {"hinge": moves}}][last.integers(2)]
        if captured:
            given = {**given, **switches(k)}
        phases.append(
            rm.Phase(duration, torque=torque, events=tuple(events), own_clock=own_clock, **given)
        )
        start += duration
        if rng.random() < 0.5 or not late:  # after many others
            late = start - 0.03 * duration

    # Numbers that differ from run to run
    disperse = {
        "mass.mass": (0.5, lambda: rng.uniform(0.8, 3.0, RUNS)),
        "start.joints.slide": (0.5, lambda: rng.normal(scale=0.3, size=RUNS)),
        "start.speeds.slide": (0.5, lambda: rng.normal(scale=0.5, size=RUNS)),
        **({"lag.numbers[0]": (0.3, lambda: rng.uniform(0.1, 0.5, RUNS)),
            "lag.numbers[1]": (0.5, lambda: rng.normal(scale=1.5, size=RUNS))} if lag else {}),
        **({"law.goal": (0.4, lambda: rng.normal(scale=0.3, size=RUNS))} if law and lag else {}),
        **({"counter.place": (0.5, lambda: rng.normal(scale=0.1, size=RUNS))} if counter else {}),
        **({"beat.rate": (0.5, lambda: rng.uniform(40.0, 220.0, RUNS))} if beat else {}),
    }  # fmt: skip
    nominal = {"lag.numbers[0]": numbers_of_lag[0], "lag.numbers[1]": numbers_of_lag[1]}
    for name, (p, draw) in disperse.items():
        if chance(p, f"dispersed {name}"):
            values[name] = draw()
            if rng.random() < 0.5:  # a run that is like the scenario itself
                values[name][0] = nominal.get(name, values[name][0])
    if not values:
        values["start.speeds.slide"] = rng.normal(scale=0.5, size=RUNS)

    integrator = str(rng.choice(["rk4", "dopri5", "dop853"]))
    sample = [None, 0.25, 0.4][int(rng.integers(3))]
    features += [integrator, f"sample {sample}"]
    # batches look for events at fewer points of a step than single runs
    longest = 0.008 if beat else 0.02
    options = {"integrator": integrator, "step": longest if integrator == "rk4" else None}
    options["limits"] = "record" if limits else "ignore"
    if integrator != "rk4":
        options |= {"rtol": 1e-10, "atol": 1e-12, "max_step": longest if beat else np.inf}
    times = {0.0, start}
    if sample is not None:
        times |= {sample * k for k in range(int(start / sample * (1.0 + 1e-12)) + 1)}
    options["sample"] = np.array(sorted(times))
    connect, named = {}, [event.name for phase in phases for event in phase.events]
    if watcher and named:
        event = event_key(named[int(more.integers(len(named)))])
        connect = {"watcher.seen": f"events.{event}", "watcher.when": f"events.{event}_time"}
    return Case(
        seed, features, make_robot, make_parts, tuple(phases), q, v, values, options, "slide",
        connect,
    )  # fmt: skip


def study_of(case):
    """Return the case as a study."""
    system = case.system
    steps = {**case.options}
    physics, times = rm.Physics(limits=steps.pop("limits")), steps.pop("sample")
    integrator = rm.Integrator(steps.pop("integrator"), **steps)
    scenario = Scenario(
        f"case {case.seed}", "", Path(__file__), case.robot, case.q, case.v, case.phases,
        integrator, physics, system=system,
    )  # fmt: skip
    told = {
        "final": {"joint": case.joint},
        "speed": {"speed": case.joint},
        "most": {"joint": case.joint, "take": "max"},
        "least": {"joint": case.joint, "take": "min"},
        "sum": {"speed": case.joint, "take": "integral"},
        "place": {"frame": "mass", "of": "velocity", "element": 2},
    }
    told |= {f"of {name}": {"signal": name} for name in system.signals}
    names = [str(e) for e in system.events] + [e.name for p in case.phases for e in p.events]
    told |= {f"time of {name}": {"event": name} for name in names}
    outputs = {
        name: output(system, name, OutputFile.model_validate(how, context=case.robot))
        for name, how in told.items()
    }
    criteria = {"low": {"output": "final", "below": 0.1}}
    criteria |= {f"no {name}": {"event": name, "occurs": False} for name in names}
    return Study(
        name="fuzz", description="", source=Path(__file__), text="", scenario=scenario,
        system=system, runs=RUNS, seed=case.seed,
        dispersions=Dispersions(
            tuple(
                Dispersion(name, "table", {}, "value", 0.0, rows)
                for name, rows in case.values.items()
            ),
            seed=case.seed, sampling="random", runs=RUNS,
        ),
        targets={n: targets.target(system, case.q, case.v, n) for n in case.values},
        outputs=outputs, bands={},
        success={n: Criterion(n, CriterionFile.model_validate(how)) for n, how in criteria.items()},
        integrator=integrator, physics=physics, times=times,
    )  # fmt: skip


def of_replay(study, run):
    """Return outputs and criteria of a run alone, computed from its recording here."""
    times, robot, found = study.times, study.system.robot, {}
    same = [np.flatnonzero(np.abs(run.t - t) < 1e-12 * (1.0 + t)) for t in times]  # to rounding
    at = [found[-1] for found in same if found.size]
    if at[-1] != len(run.t) - 1:
        at.append(len(run.t) - 1)
    for name, own in study.outputs.items():
        told = own.quantity.settings
        if told.event is not None:
            when = [e.t for e in run.events if e.name == told.event]
            found[name] = when[0] if when else np.nan
            continue
        if told.signal is not None:
            x = run.signals[told.signal][at]
        elif told.frame is not None:
            twist = np.array([rm.frame_twist(robot, run.q[i], run.v[i], told.frame) for i in at])
            turned = np.array([rm.frame_pose(robot, run.q[i], told.frame)[:4] for i in at])
            x = rm.algebra.quaternion.rotate(turned, twist[:, 3:])[:, told.element]
        else:
            joint = robot.joints[told.joint or told.speed]
            x = (run.q[at][:, joint.q] if told.joint else run.v[at][:, joint.v])[:, 0]
        t = run.t[at]
        found[name] = {
            "final": lambda x, t: x[-1], "max": lambda x, t: x.max(), "min": lambda x, t: x.min(),
            "integral": lambda x, t: np.sum(0.5 * (x[1:] + x[:-1]) * np.diff(t)),
        }[own.take](x, t)  # fmt: skip
    for name, own in study.success.items():
        told = own.settings
        if told.event is not None:
            occurred = any(e.name == told.event for e in run.events)
            found[name] = float(occurred == told.occurs)
        else:
            found[name] = float(found[told.output] < told.below)
    return found


def arguments(case, study, k, **more):
    """Return arguments and options of run k, of its own robot, components and state."""
    numbers = {name: float(x[k]) for name, x in case.values.items()}
    _, inputs = study.inputs(k, k + 1)
    system = rm.System(case.make_robot(numbers), case.make_parts(numbers), case.connect)
    options = {"phases": case.phases, "seed": case.seed, "run": k, "step_to_samples": True}
    return (system, inputs.q[0], inputs.v[0]), grouped(**options, **case.options, **more)


def alone(case, study, k, **more):
    """Return run k, made of its own robot, components and state."""
    given, options = arguments(case, study, k, progress=False, **more)
    return rm.simulate(*given, **options)


def cut(case, study, run, k):
    """Return run k of `rm.Simulation`, advanced to random times."""
    given, options = arguments(case, study, k)
    sim = rm.Simulation(*given, **options)
    rng = np.random.default_rng(case.seed)
    for t in np.sort(rng.uniform(0.0, run.t[-1], 9)):
        sim.advance(float(t))
    return sim.advance(float(run.t[-1]) + 1.0).recording()


def resumed(case, study, run, k):
    """Return run k, interrupted when a random sample is stored, and resumed."""
    stop = int(np.random.default_rng(case.seed).integers(1, len(run.t) + 1))
    append = recorder.Recorder.append

    def interrupting(self, t, *samples):
        if len(self) < stop <= len(self) + len(t):
            raise KeyboardInterrupt
        append(self, t, *samples)

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(recorder, "FLUSH_SECONDS", 0.0),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)  # of the interruption
        with mock.patch.object(recorder.Recorder, "append", interrupting):
            part = alone(case, study, k, out=f"{folder}/run")
        if part.status != "interrupted":
            raise AssertionError(f"the run of seed {case.seed} was not interrupted: {part.status}")
        again = alone(case, study, k, out=f"{folder}/run", resume=True)
        return SimpleNamespace(columns=dict(again.columns.items()), events=list(again.events))


@contextlib.contextmanager
def interpreted(found):
    """Repeat the first call of each program of single runs by the interpreter: the same bits.

    Yields the outputs that were compared.

    Args:
        found: receives a line for each output with other bits.
    """
    compared, done, single_run = [], set(), ProgramKernel.single_run

    def bind(self, rows, entries):
        self._capacity = 0  # also memory of an earlier run
        first(self, rows, entries)

    def watched(self, arguments, outputs, capacity=0, tables=()):
        run, names = single_run(self, arguments, outputs, capacity, tables), self.interface.tables

        def both(entries=0):
            if id(self) in done:
                run(entries)
                return
            done.add(id(self))
            before = [np.array(x) for x in arguments]
            rows = {n: x[:entries].copy() for n, x in zip(names, tables, strict=True)}
            run(entries)
            program = self.program.prepared("float64", host.host().fma)
            seen = interpret(program, before, rows, capacity)
            for o, mine, theirs in zip(self.interface.outputs, outputs, seen, strict=True):
                known = np.isfinite(theirs)  # rows that are not written keep what they had
                own = mine.ravel()[: theirs.size].reshape(theirs.shape)
                compared.append(o.name)
                if not np.array_equal(own[known], theirs[known]):
                    found.append(f"{o.name}: other bits by the interpreter")

        return both

    first = phase_program._Memory.bind
    with (
        mock.patch.object(ProgramKernel, "single_run", watched),
        mock.patch.object(phase_program._Memory, "bind", bind),
    ):
        yield compared


def in_c(case, folder):
    """Return what differs between a run in C and the same fixed steps in a batch of one."""
    found = []
    save_loop_c(case.system, folder, STEP, "run", noise="generated", phases=case.phases)
    c = CModule(folder, "run")
    if "parameters" in c.functions["step"]:
        own = case.system.parameters
        c.set("parameters", **{k.replace(".", "_"): x for k, x in own.items()})
    c.call("init", case.q, case.v)
    if hasattr(c.state, "seed"):
        c.set("state", seed=[float(case.seed), 0.0], run=2.0)
    duration = sum(p.duration for p in case.phases)
    for _ in range(round(duration / STEP) + 2 + len(case.phases)):
        c.call("step")
    batch = rm.simulate_batch(
        case.system,
        case.q,
        case.v,
        case.phases,
        integrator=rm.Integrator(step=STEP),
        record=rm.Record(np.arange(0.0, duration, STEP), max_events=2000, progress=False),
        runs=rm.Runs(1, seed=case.seed, index=2),
    )

    def compare(what, one, other):
        if not np.abs(np.asarray(one) - other).max() < 1e-9 * (1.0 + np.abs(other).max()):
            found.append(f"{what} in C and in a batch: {one} and {other}")

    compare("end", c.get("state", "t")[0], batch.end[0])
    compare("q", c.get("state", "q"), batch.final.q[0])
    compare("v", c.get("state", "v"), batch.final.v[0])
    members = [name for name, _ in c.state._fields_]
    for name in batch.events.names if batch.events is not None else ():
        own = name.replace(".", "_").replace(" ", "_") + "_time"
        mine = [c.get("state", m)[0] for m in members if m.startswith(own)]
        theirs = batch.events.of(name)[0]
        theirs = theirs[np.isfinite(theirs)]
        compare(f"first {name}", min(mine), theirs[0] if theirs.size else 1e300)
    return found


def finer(case):
    """Return a case with an eighth of its fixed steps."""
    return dataclasses.replace(case, options={**case.options, "step": case.options["step"] / 8.0})


def by_scipy(case, study, k):
    """Return q and v at the end of run k by SciPy; None where more than loads acts."""
    plain = all(e.action == "record" for p in case.phases for e in p.events)
    held = any(p.locked or p.prescribed for p in case.phases)
    sampled = any(isinstance(p.torque, Sum) for p in case.phases)
    switched = any(p.activate or p.release for p in case.phases)
    if case.system.components or held or sampled or switched or not plain:
        return None
    numbers = {name: float(x[k]) for name, x in case.values.items()}
    _, inputs = study.inputs(k, k + 1)
    robot, t = case.make_robot(numbers), 0.0
    q, v, slide = inputs.q[0], inputs.v[0], robot.joints["slide"]
    for phase in case.phases:
        pulse = None if phase.torque is None else phase.torque["slide"]
        clock = t if phase.own_clock else 0.0
        inner = [] if pulse is None else [x + clock for x in (pulse.start, pulse.stop)]
        ends = sorted(x for x in (t, t + phase.duration, *inner) if t <= x <= t + phase.duration)
        for low, high in pairwise(ends):
            tau = np.zeros(robot.nv)
            if pulse is not None and inner[0] <= 0.5 * (low + high) < inner[1]:
                tau[slide.v] = pulse.value

            def rates(_, y, start=q, tau=tau):
                u, speed = y[: robot.nv], y[robot.nv :]
                here = rm.integrate(robot, start, u)
                passive = rm.dynamics.spring_forces(robot, here) + rm.dynamics.friction_forces(
                    robot, speed
                )
                vdot = rm.forward_dynamics(robot, here, speed, tau + passive)
                return np.concatenate([log_rate(robot, u, speed), vdot])

            # in short pieces: exponential coordinates stay small
            times = np.linspace(low, high, 1 + math.ceil((high - low) / 0.25))
            for begin, end in pairwise(times):
                y0 = np.concatenate([np.zeros(robot.nv), v])
                given = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13, "args": (q, tau)}
                y = solve_ivp(rates, (begin, end), y0, **given).y[:, -1]
                q, v = rm.integrate(robot, q, y[: robot.nv]), y[robot.nv :]
        t += phase.duration
    return q, v


def differences(seed):
    """Return the case of a seed, and what does not agree in it, one line each."""
    case = random_case(seed)
    study, found = study_of(case), []
    limit = TOLERANCE[case.options["integrator"]]

    def compare(what, k, one, other):
        one, other = np.asarray(one, float), np.asarray(other, float)
        if one.shape != other.shape:
            found.append(f"{what} of run {k}: {one.shape} and {other.shape} numbers")
            return
        far = ~(np.abs(one - other) <= limit * (1.0 + np.abs(one))) & ~(
            np.isnan(one) & np.isnan(other)
        )
        if np.any(far):
            i = int(np.argmax(far.ravel()))
            found.append(f"{what} of run {k}: {one.ravel()[i]:.9g} and {other.ravel()[i]:.9g}")

    _, inputs = study.inputs(0, RUNS)
    batch = rm.simulate_batch(
        case.system,
        inputs.q,
        inputs.v,
        **grouped(
            True,
            phases=case.phases,
            parameters=inputs.parameters or None,
            seed=case.seed,
            max_events=2000,
            failures="keep",
            progress=False,
            **case.options,
        ),
    )
    if needs.CC:
        try:
            with tempfile.TemporaryDirectory() as folder:
                found += in_c(case, Path(folder))
        except rm.RemoraError as error:
            case.features.append(f"not in C: {error}")
    block = run_block(study, 0, RUNS)
    for k in range(RUNS):
        run, again = alone(case, study, k), replay(study, k)
        if k == 1:
            end = by_scipy(case, study, k)
            with interpreted(found) as compared:
                pieces = {"is interpreted": alone(case, study, k)}
            case.features.append(f"{len(compared)} outputs interpreted")
            pieces["is cut"] = cut(case, study, run, k)
            pieces["is resumed"] = resumed(case, study, run, k)
            for how, other in pieces.items():
                for name, x in run.columns.items():
                    if other.columns[name].tobytes() != x.tobytes():
                        found.append(f"{name} of run {k}: other bits if it {how}")
                if [(e.t, e.name) for e in other.events] != [(e.t, e.name) for e in run.events]:
                    found.append(f"events of run {k}: others if it {how}")
            if end is not None:  # fixed steps: an eighth of them has 4,096 times less error
                fine = run if case.options["step"] is None else alone(finer(case), study, k)
                compare("q at the end alone and by SciPy", k, fine.q[-1], end[0])
                compare("v at the end alone and by SciPy", k, fine.v[-1], end[1])
        compare("end alone and in a batch", k, run.t[-1], batch.end[k])
        names = sorted({e.name for e in run.events})
        for name in names if batch.events is None else batch.events.names:
            mine = [e.t for e in run.events if e.name == name]
            theirs = [] if batch.events is None else batch.events.of(name)[k]
            theirs = np.array(theirs)[np.isfinite(theirs)]
            compare(f"times of {name!r} alone and in a batch", k, mine, theirs)
        last = final_of(batch, k)
        if last is not None:
            compare("q at the end alone and in a batch", k, run.q[-1], last.q)
            compare("v at the end alone and in a batch", k, run.v[-1], last.v)
            for name, x in last.signals.items():
                compare(f"{name} at the end alone and in a batch", k, run.signals[name][-1], x)
        for i, t in enumerate(batch.t):
            at = np.flatnonzero(run.t == t)
            if at.size and not np.isnan(batch.q[k, i]).any():
                compare(f"q at {t:g} s alone and in a batch", k, run.q[at[-1]], batch.q[k, i])
        compare("end of a run and its replay", k, run.t[-1], again.t[-1])
        if run.t[-1] == again.t[-1]:
            compare("q of a run and its replay", k, run.q[-1], again.q[-1])
        for name, x in of_replay(study, again).items():
            compare(f"{name!r} of a replay and its campaign", k, x, block.columns[name][k])
    return case, found


def final_of(batch, k):
    """Return q, v and signals at the end of a run of a batch."""
    if hasattr(batch, "final"):
        end = batch.final
        return SimpleNamespace(
            q=end.q[k], v=end.v[k], signals={n: x[k] for n, x in end.signals.items()}
        )
    if np.isnan(batch.q[k, -1]).any():  # versions without the state at the end
        return None
    own = {n: x[k, -1] for n, x in batch.signals.items()}
    return SimpleNamespace(q=batch.q[k, -1], v=batch.v[k, -1], signals=own)


def main():
    """Try seeds until the time is over; return how many did not agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--count", type=int, default=0, help="number of seeds; 0: by time")
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    print(f"remora of {rm.__file__}")
    warnings.simplefilter(
        "ignore", rm.errors.SimulationWarning
    )  # joints that start beyond their limits
    begin, bad, seed = time.monotonic(), [], given.seed
    while (
        seed < given.seed + given.count if given.count else time.monotonic() - begin < given.seconds
    ):
        try:
            case, found = differences(seed)
            features = "; ".join(case.features)
        except rm.RemoraError as error:
            features, found = "", [f"refused: {error}"]
        print(f"seed {seed}: {'agree' if not found else f'{len(found)} differences'} ({features})")
        for line in found[:8]:
            print(f"    {line}")
        if found:
            bad.append(seed)
        sys.stdout.flush()
        seed += 1
    print(f"{seed - given.seed} cases from seed {given.seed}; not in agreement: {bad or 'none'}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main() > 0)
