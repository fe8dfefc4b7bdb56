"""Results of runs that later versions must reproduce, frozen in `tests/reference`.

    python tests/reference_runs.py            # compute all cases and write their files
    python tests/reference_runs.py capture    # those whose name contains a word

The bundled scenarios and studies, some examples, and a small system with every integrator: states
at some times, times and names of events, works, peak loads, impulses. The files were made before
the engines of a run became one; write a file again only if its results were wrong, and say why in
the commit.

Of each case the tolerance is relative to the largest number of a quantity, or to `SMALLEST`. With
fixed steps it is rounding; with adaptive ones it is larger than what other steps change, which
`python tests/reference_runs.py --spread` prints (at most 8e-13 in the scenarios that have 1e-11 or
1e-9, 2e-11 in `grasp_push`, 8e-10 where the tolerance is 3e-9).
"""

import argparse
import contextlib
import dataclasses
import io
import json
import runpy
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import captures
import remora as rm
from plain_settings import grouped
from remora.campaigns.blocks import run_block

FOLDER = Path(__file__).with_name("reference")
EXAMPLES = Path(__file__).parents[1] / "examples"
#: Samples of which states are kept, and runs of a batch.
TIMES, RUNS = 10, 3
#: Of runs with fixed steps: rounding only.
ROUNDING = 1e-12
#: Of runs in which an event ends a step or starts a phase: its time is known to some digits less.
LOCATED = 1e-9
#: Of runs with rtol 1e-10 that amplify the errors of their steps: fast, or pressed into stops.
FAST = 3e-9
#: Numbers below are compared absolutely, in SI units: works and impulses that cancel.
SMALLEST = 1e-3


@dataclasses.dataclass(frozen=True)
class Case:
    """A case.

    Attributes:
        made: options of its integrator that replace its own -> results by name.
        tolerance: relative.
    """

    made: object
    tolerance: float


# Results -----------------------------------------------------------------------------------------


def recorded(run):
    """Return numbers and names of a recording."""
    rows = np.unique(np.linspace(0, len(run) - 1, TIMES).astype(int))
    times = np.unique(run.t[rows])
    last = [int(np.flatnonzero(np.abs(run.t - t) < 1e-9)[-1]) for t in times]  # of several at once
    found = {"status": [run.status], "t": times, "q": run.q[last], "v": run.v[last]}
    found |= {"phase starts": run.phase_starts, "work": run.work[last]}
    found["peak tau"] = np.abs(run.tau).max(axis=0)
    if run.wrenches is not None:
        found["peak wrenches"] = np.abs(run.wrenches).max(axis=0)
    if run.events:
        found["event names"] = [event.name for event in run.events]
        found["event times"] = [event.t for event in run.events]
        found["event v"] = [event.v for event in run.events]
    for k, switch in enumerate(run.switches):
        found[f"switch {k} names"] = [*switch.activated, "/", *switch.released]
        found[f"switch {k} t"] = [switch.t, switch.energy_loss, switch.separation_work]
        found |= {f"switch {k} of {name}": x for name, x in switch.impulses.items()}
    for name, x in run.signals.items():
        found |= {f"signal {name}": x[-1], f"peak signal {name}": np.abs(x).max()}
    return found


def batched(batch):
    """Return numbers and names of the first runs of a batch."""
    q, v = (np.asarray(x).reshape(-1, *x.shape[-2:]) for x in (batch.q, batch.v))
    rows = np.unique(np.linspace(0, q.shape[1] - 1, TIMES // 2).astype(int))
    found = {"t": batch.t[rows], "q": q[:RUNS, rows], "v": v[:RUNS, rows]}
    if batch.events is not None:
        first = batch.events.first.reshape(-1, len(batch.events.names))
        found |= {"event names": batch.events.names, "event times": first[:RUNS]}
    return found


# Scenarios and studies ---------------------------------------------------------------------------


def scenario(name):
    """Return the case of a bundled scenario."""

    def made(**changed):
        own = rm.load_scenario(name)
        options = {"sample": own.sample or 1.0, "integrator": own.integrator, **changed}
        options |= {"physics": own.physics, "seed": own.seed}
        system = own.robot if own.system is None else own.system
        return recorded(rm.simulate(system, own.q, own.v, own.phases, **grouped(**options)))

    return made


def study(name):
    """Return the case of some runs of a bundled study."""

    def made(**changed):
        own = rm.load_study(name, runs=RUNS)
        own = replace(own, integrator=replace(own.integrator, **changed))
        block = run_block(own, 0, RUNS)
        return {**block.columns, **{f"band {n}": x[:, ::20] for n, x in block.bands.items()}}

    return made


# Examples ----------------------------------------------------------------------------------------


def example(file, count=2, **own):
    """Return the case of the first runs and batches of an example, with some arguments changed."""

    def made(**changed):
        runs, changed = [], {**own, **changed}

        def noting(name):
            call = getattr(rm, name)

            def noted(*given, **options):
                runs.append(call(*given, **{**options, **changed}))
                return runs[-1]

            return noted

        before = {name: getattr(rm, name) for name in ("simulate", "simulate_batch")}
        arguments = sys.argv
        try:
            for name in before:
                setattr(rm, name, noting(name))
            sys.argv = [file]
            with contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(str(EXAMPLES / file), run_name="__main__")
        finally:
            sys.argv = arguments
            for name, call in before.items():
                setattr(rm, name, call)
        found = {}
        for k, run in enumerate(runs[:count]):
            parts = recorded(run) if isinstance(run, rm.Recording) else batched(run)
            found |= {f"run {k} {name}": x for name, x in parts.items()}
        return found

    return made


# A small system ----------------------------------------------------------------------------------


class Damper(rm.Component):
    """A sampled law with noise: a torque against the rate of the bus, and a sum of it."""

    gain: float = 2.0

    def interface(self, robot):
        return rm.Interface(
            outputs={"torque": rm.Signal((3,), "N m")},
            discrete={"sum": rm.State(np.zeros(3), "N m s")},
            noise={"rate": 3},
        )

    def outputs(self, at):
        rate = at.angular_velocity("bus") + 1e-3 * at.noise["rate"]
        return {"torque": -self.gain * rate - 0.1 * at.memory["sum"]}

    def update(self, at):
        return {"sum": at.memory["sum"] + self.sample_time * at.angular_velocity("bus")}


class Wheels(rm.Component):
    """A torque on the bus that follows its command, with or without a lag."""

    lag: float = 0.3
    states: bool = True

    def interface(self, robot):
        torque = rm.State(np.zeros(3), "N m")
        return rm.Interface(
            inputs={"torque": rm.Signal((3,), "N m")},
            continuous={"actual": torque} if self.states else {},
        )

    def derivative(self, at):
        return (
            {"actual": (at.inputs["torque"] - at.state["actual"]) / self.lag} if self.states else {}
        )

    def act(self, at):
        torque = at.state["actual"] if self.states else at.inputs["torque"]
        return rm.Wrench("bus", np.zeros(3), torque)


def tug(x):
    """Return a force on the arm that is switched on at 0.7 s and off at 1.3 s, as a profile."""
    return rm.Pulse(0.7, 1.3, np.array([0.0, x, 0.0, 0.0, 0.0, 0.0]))


def small(integrator, **options):
    """Return the case of a small system with a capture, an event and a prescribed joint."""

    def made(**changed):
        robot = captures.joined()
        q, v = captures.state(robot, gap=0.25, speed=(-0.12, 0.0, 0.0), rate=(0.02, -0.01, 0.03))
        v[6], states = 0.0, integrator != "variational"
        parts = [
            Damper(name="damper", sample_time=0.05, delay=0.05),
            Wheels(name="wheels", states=states),
        ]
        moves = (
            {"prescribed": {"shoulder": rm.Motion.between(0.0, 2.5, 0.4, 0.55)}} if states else {}
        )
        events = rm.capture_events(robot, "grapple", "fixture", distance=0.1, speed=1.0)
        seen = rm.Event(lambda t, q, v: q[8] - 0.42, "shoulder passes", "record")
        phases = [
            rm.Phase(4.0, wrenches={"arm": tug(0.2)}, events=[*events, seen], own_clock=True,
                     name="approach", **moves),
            rm.Phase(3.0, torque={"shoulder": 0.05}, activate="grasp", latch=True,
                     after_event=True, name="stack"),
            rm.Phase(1.0, release="grasp", separation={"grasp": 0.05}, name="release"),
        ]  # fmt: skip
        given = {
            "integrator": integrator,
            "sample": 0.25,
            "seed": 3,
            "run": 2,
            **options,
            **changed,
        }
        return recorded(
            rm.simulate(rm.System(robot, parts), q, v, **grouped(phases=phases, **given))
        )

    return made


def servicer(peak=40.0, **options):
    """Return the case of the servicer with torques that drive it beyond its limits."""

    def made(**changed):
        robot = rm.load("servicer")
        q, v = rm.neutral(robot), np.zeros(robot.nv)
        q[8:] = np.radians([0, 30, 0, -60, 0, 45, 0])
        torque = {"shoulder_pitch": rm.Pulse(1.0, 2.0, peak)}
        given = {"torque": torque, "sample": 0.5, "rtol": 1e-10, "atol": 1e-12}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.errors.SimulationWarning)
            return recorded(
                rm.simulate(robot, q, v, 6.0, **grouped(**{**given, **options, **changed}))
            )

    return made


def blocked():
    """Return the case of a joint that an impulse locks and that is let go again."""

    def made(**changed):
        robot = rm.load("servicer")
        q, v = rm.random_state(robot, 4)
        phases = [
            rm.Phase(1.0),
            rm.Phase(1.0, locked=["elbow_pitch", "wrist_roll"], impulse=True),
            rm.Phase(1.0, torque={"elbow_pitch": 1.0}),
        ]
        given = {"rtol": 1e-10, "atol": 1e-12, "sample": 0.25, "limits": "ignore", **changed}
        return recorded(rm.simulate(robot, q, 0.05 * v, **grouped(phases=phases, **given)))

    return made


CASES = {
    "scenario_capture": Case(scenario("capture"), LOCATED),
    "scenario_grasp_push": Case(scenario("grasp_push"), LOCATED),
    "scenario_hold_attitude": Case(scenario("hold_attitude"), ROUNDING),
    "scenario_reach_payload": Case(scenario("reach_payload"), ROUNDING),
    "scenario_unfold": Case(scenario("unfold"), 1e-11),
    "scenario_vt18": Case(scenario("vt18"), 1e-11),
    "study_capture": Case(study("capture"), LOCATED),
    "study_reach_payload": Case(study("reach_payload"), ROUNDING),
    "study_rigid_capture": Case(study("rigid_capture"), LOCATED),
    "example_first_run": Case(example("10_first_run.py"), LOCATED),
    "example_pendulum": Case(example("13_dm93_double_pendulum.py"), LOCATED),
    "example_capture": Case(example("16_capture.py"), LOCATED),
    # a sample at a tick is before or after it, by rounding: these are at none; a servo of 50 per
    # second amplifies the rounding of speeds
    "example_circle": Case(example("24_circle_with_a_floating_base.py", record=0.10357), 1e-11),
    # impulses of 1e-13 N s that cancel, of a module of 900 kg
    "example_berthing": Case(example("44_berthing.py"), 1e-8),
    "small_rk4": Case(small("rk4", step=0.01), LOCATED),
    "small_dopri5": Case(small("dopri5", rtol=1e-10, atol=1e-12), LOCATED),
    "small_dop853": Case(small("dop853", rtol=1e-10, atol=1e-12), LOCATED),
    "small_radau": Case(small("radau", rtol=1e-9, atol=1e-11), 1e-8),
    "small_variational": Case(small("variational", step=0.01), LOCATED),
    "limits_recorded": Case(servicer(), FAST),
    "limits_stop": Case(servicer(limits="stop"), LOCATED),
    "stops": Case(servicer(stops=(2000.0, 50.0)), FAST),
    "saturated": Case(servicer(peak=200.0, saturate=True, limits="ignore"), FAST),
    "reduced": Case(servicer(model="reduced", limits="ignore"), LOCATED),
    "locked_by_an_impulse": Case(blocked(), LOCATED),
}


# Files -------------------------------------------------------------------------------------------


def plain(x):
    """Return names as a list, numbers as nested lists; NaN is None."""
    values = np.asarray(x)
    if values.dtype.kind in "US":
        return values.tolist()
    nested = np.where(np.isnan(values.astype(float)), None, values.astype(float).astype(object))
    return nested.tolist()


def stored(name):
    """Return the frozen results of a case: lists of names, and arrays."""
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return {key: x if _names(x) else np.array(x, dtype=float) for key, x in found.items()}


def _names(x):
    return isinstance(x, list) and any(isinstance(own, str) for own in x)


def differences(found, reference):
    """Return by name how far results are from the reference, relative; infinite if in kind."""
    off = dict.fromkeys(found.keys() ^ reference.keys(), np.inf)
    for name in found.keys() & reference.keys():
        own, other = found[name], reference[name]
        if isinstance(other, list):
            off[name] = 0.0 if list(own) == other else np.inf
            continue
        own = np.asarray(own, dtype=float)
        if own.shape != other.shape or not np.array_equal(np.isnan(own), np.isnan(other)):
            off[name] = np.inf
        elif own.size:
            peak = reference.get(name.replace("signal ", "peak signal ", 1), other)
            scale = np.nanmax(np.abs(peak), initial=0.0)
            off[name] = float(np.nanmax(np.abs(own - other), initial=0.0)) / max(scale, SMALLEST)
    return off


def main():
    """Write files, or print what other steps change."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name, case in CASES.items():
        if given.word not in name:
            continue
        if given.spread or given.check:
            for changed in ({"max_step": 0.037}, {"step": 1e-4}) if given.spread else ({},):
                off = differences(case.made(**changed), stored(name))
                worst = max(off, key=off.get)
                print(f"{name:26} {changed!s:20} {off[worst]:9.2e} of {case.tolerance:g} {worst}")
            continue
        text = json.dumps({key: plain(x) for key, x in case.made().items()}, separators=(",", ":"))
        (FOLDER / f"{name}.json").write_text(text.replace(',"', ',\n"') + "\n", encoding="utf-8")
        print(f"{name}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
