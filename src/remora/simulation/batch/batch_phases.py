"""Phases of a batch: each is one compiled program, started from the states the last one left."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_hosted import HostedProgram
from remora.codegen.integration.program_ptx import CudaProgram
from remora.components.run_signals import entered
from remora.components.system import ScheduledUpdate, System
from remora.dynamics.kernels.cache_keys import value_key
from remora.dynamics.kernels.kernel_memory import identity_key, remembered
from remora.errors import RemoraError
from remora.identity.digest import NoIdentity
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.batch.lockstep_program import (
    STEPS,
    RepeatedRun,
    Timetable,
    lockstep_program,
    timetable,
)
from remora.simulation.engine.interrupts import stopping
from remora.simulation.inputs.loads import SAME_SAMPLE
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.program.event_search import (
    FIRST,
    INTERRUPTED,
    NEVER,
    RUNNING,
    all_event_names,
)
from remora.simulation.program.phase_entry import PhaseEntry
from remora.simulation.program.run_blocks import RunBlocks
from remora.simulation.program.run_equations import Break, RunEquations
from remora.simulation.program.run_program import (
    AT_END,
    Recorded,
    StepControl,
    run_program,
)
from remora.simulation.recording.constraint_switch import BatchSwitch

#: Runs per thread between two updates of the progress bar.
BLOCK = 256
#: Offset from the ends of a step where loads are discontinuous there, in units in the last place.
NUDGE = 16.0
#: Numbers of steps that adaptive runs have tried at the end of each round.
BUDGETS = (12.0, 40.0, math.inf)
#: Fewest runs that are made in rounds.
FEWEST = 32
CompiledRun: TypeAlias = ProgramKernel | HostedProgram | CudaProgram


@dataclass(frozen=True, eq=False)
class BatchPhase:
    """One phase of a batch.

    Attributes:
        equations: system, loads and held joints of the phase.
        duration: s.
        breaks: times at which loads are not smooth.
        from_phase: components whose ticks are counted from the start of the phase.
        plain: whether no function or component of the user is compiled in.
        entry: what happens at its start.
    """

    equations: RunEquations
    duration: float
    breaks: tuple[Break, ...]
    from_phase: frozenset[str]
    plain: bool
    entry: PhaseEntry

    def counted_from_phase(self, update: ScheduledUpdate) -> bool:
        """Return whether the ticks of an update are counted from the start of the phase."""
        return any(name in self.from_phase for name in update.names)


@dataclass(frozen=True, eq=False)
class BatchSettings:
    """What all phases of a batch share.

    Attributes:
        control: how steps are chosen.
        signals: names of the recorded signals.
        times: times of the samples, `(n,)`, s.
        start: start of the runs, s.
        dtype: precision.
        target: `cpu` or `cuda`.
        threads: CPU threads.
        max_events: events stored for each run.
    """

    control: StepControl
    signals: tuple[str, ...]
    times: Array
    start: float
    dtype: str
    target: str
    threads: int
    max_events: int


class BatchRuns:
    """The runs of a batch in progress; arrays have one leading axis, the runs.

    Attributes:
        state: cells by name.
        data: what differs by run besides the state: inputs, parameters, numbers of latches.
        t: time of each run, s.
        began: time at which each run began its last phase, s.
        status: outcome of each run so far.
        samples: recorded arrays by name, `(runs, n, *shape)`.
        ends: the same at the end of each run, by name, `(runs, *shape)`.
        events: names, counts, times, flags and first times of the events of each phase.
        switches: constraints that were switched.
        faults: why constraints could not act, by the index of the run.
        interrupted: whether Ctrl-C has ended a phase.
    """

    def __init__(
        self, settings: BatchSettings, runs: int, state: dict[str, Any], data: dict[str, Any],
        array_module: Any,
    ) -> None:  # fmt: skip
        """Begin at the start."""
        self._settings, self.data, self._xp = settings, data, array_module
        self._runs = runs
        self.state = state
        self.t = array_module.full((runs, 1), settings.start)
        self.began = self.t
        self.status = array_module.zeros((runs, 1))
        self.samples: dict[str, Any] = {}
        self.ends: dict[str, Any] = {}
        self.events: list[tuple[list[str], Any, Any, Any, Any]] = []
        self.switches: list[BatchSwitch] = []
        self.faults: dict[int, str] = {}
        self.interrupted = False
        self._filled = array_module.zeros((runs, settings.times.size), bool)

    def fail(self, runs: Array, code: int) -> None:
        """End runs, given by their indices, with a status."""
        changed = self.status.copy()
        changed[self._xp.asarray(runs), 0] = float(code)
        self.status = changed

    def begin(self, plan: Sequence[BatchPhase], free: bool) -> None:
        """Begin to compile all phases: later ones are traced while LLVM compiles earlier ones."""
        self._kernels = {id(phase): self._made(phase, free) for phase in plan}

    def lockstep(
        self, phase: BatchPhase, begin: float, advance: Callable[[int], None]
    ) -> RepeatedRun:
        """Perform a phase in which all runs make the same steps; return how to repeat a run."""
        settings, xp = self._settings, self._xp
        end = begin + phase.duration
        close = 8.0 * np.spacing(max(abs(begin), abs(end)))
        first = begin == settings.start
        low = settings.times >= begin - close if first else settings.times > begin + close
        chosen = np.flatnonzero(low & (settings.times <= end + close))
        updates = phase.equations.system.schedule
        origins = [begin if phase.counted_from_phase(u) else settings.start for u in updates]
        counts = [self.state[f"tick {i}"] for i in range(len(updates))]
        done = [float(count.max()) if count.size else 0.0 for count in counts]
        breaks = [begin + b.time if b.of_phase else b.time for b in phase.breaks]
        table = timetable(
            np.clip(settings.times[chosen], begin, end), begin, end, settings.control.step, breaks,
            list(zip(updates, origins, map(int, done), strict=True)),
        )  # fmt: skip
        kernel = self._kernels[id(phase)]
        given = {"phase start": np.full(1, begin)}
        names = ("sample q", "sample v", *settings.signals)
        rows = self._inputs(kernel, given)
        steps = xp.full((self._runs, 1), math.nan)
        for part, found in self._in_blocks(
            kernel, given, {"tables": table.passed(), "capacity": table.samples}
        ):
            for name in names:
                self._kept(name, found[name])[part, chosen] = found[name]
                if chosen.size:  # the last one is the end of the run
                    self._end_of(name, found[name][:, 0])[part] = found[name][:, -1]
            steps[part] = found.get(f"final {STEPS}", steps[part])
            advance(part.stop - part.start)
        self._filled[:, chosen] = True
        self.t = xp.where(self.status == float(RUNNING), end, self.t)
        self.began = xp.full((self._runs, 1), begin)
        if self.interrupted:
            self._end_early(table, steps, chosen, begin)
        return RepeatedRun(kernel, rows, table)

    def free(self, phase: BatchPhase, begins: Any, advance: Callable[[int], None]) -> None:
        """Perform a phase in which each run has its own steps.

        Runs without events are made in rounds, see `_round`.
        """
        settings, xp = self._settings, self._xp
        kernel = self._kernels[id(phase)]
        until = begins + phase.duration
        given = {
            "t": self.t, "start": np.full(1, settings.start), "until": until, "phase start": begins,
            "status": self.status, "h": xp.full((self._runs, 1), settings.control.step),
            "fresh": xp.ones((self._runs, 1)), "entering": np.ones(1), "known": np.zeros(1),
            **{name: np.full(1, x) for name, x in settings.control.numbers.items()},
        }  # fmt: skip
        names = {o.name for o in kernel.interface.outputs}
        for cell in kernel.interface.inputs:  # the rest of the state begins with zeros
            if f"final {cell.name}" in names and cell.name not in (*given, *self.state):
                dtype = float if cell.wide else settings.dtype
                given[cell.name] = xp.zeros((self._runs, *cell.shape), dtype)
        one = kernel.interface.buffers or settings.target == "cuda" or self._runs < FEWEST
        budgets = (math.inf,) if one or not settings.control.adaptive else BUDGETS
        logged: list[Any] = []
        active = None
        for budget in budgets:
            logged = self._round(kernel, given, active, budget, advance)
            given["entering"] = np.zeros(1)
            going = (given["status"] == float(RUNNING)) & (given["t"] < until)
            active = xp.flatnonzero(going[:, 0])
            left = (until - given["t"])[active, 0] / given["h"][active, 0]
            active = active[xp.argsort(left)]  # neighbours on the lanes take about as many steps
            if self.interrupted:
                going = (given["status"] == float(RUNNING)) & (given["t"] < until)
                given["status"] = xp.where(going, float(INTERRUPTED), given["status"])
                break
        self.t, self.status, self.began = given["t"], given["status"], begins
        if logged:
            left = self._runs - sum(len(x[0]) for x in logged)
            if left:  # that Ctrl-C kept from beginning
                logged.append([xp.full((left, *x.shape[1:]), math.nan) for x in logged[0]])
            times, fired = (xp.concatenate([x[i] for x in logged]) for i in range(2))
            first = xp.where(given[FIRST] < NEVER, given[FIRST], math.nan)
            names = all_event_names(phase.equations)
            self.events.append((names, given["events"], times, fired, first))

    def _round(
        self, kernel: Any, given: dict[str, Any], active: Any, budget: float,
        advance: Callable[[int], None],
    ) -> list[Any]:  # fmt: skip
        """Advance some runs until they end or have tried so many steps; return their events.

        SIMD lanes wait for the one that takes the most steps. Rounds keep the waiting short: after
        the first, runs are ordered by the number of steps that they are expected to take. The
        numbers of a run do not depend on it.

        Args:
            kernel: the program.
            given: cells by name, `(runs, 1)`; those that change are replaced.
            active: indices of the runs; None: all.
            budget: steps that a run may have tried in this phase.
            advance: shows progress.
        """
        settings, xp = self._settings, self._xp
        names = ("sample q", "sample v", *settings.signals)
        logged: list[Any] = []
        columns = slice(0, None)
        if budget < math.inf:  # each try reaches one sample at most
            low: Any = given["t"] if active is None else given["t"][active]
            first = int(np.searchsorted(settings.times, float(low.min(initial=math.inf))))
            columns = slice(first, first + int(budget) + 2)
        tables = {"sample time": settings.times[columns]}
        capacity = dict.fromkeys(kernel.interface.buffers, settings.max_events)
        now = {**given, "budget": np.full(1, budget)}
        finals = {o.name[6:] for o in kernel.interface.outputs if o.name.startswith("final ")}
        ends = {name: x.copy() for name, x in given.items() if name in finals}
        going_on = self.status[:, 0] == float(RUNNING)  # the others ended in a phase before
        for part, found in self._in_blocks(
            kernel, now, {"tables": tables, "capacity": capacity}, active
        ):
            valid = (found["late"][..., 0] == 0.0) & ~self._filled[part, columns]
            for name in names:
                kept = self._kept(name, found[name])
                shape = (*valid.shape, *[1] * (found[name].ndim - 2))
                kept[part, columns] = xp.where(
                    valid.reshape(shape), found[name], kept[part, columns]
                )
            self._filled[part, columns] |= valid
            for name in names:
                last = found[f"{AT_END}{name}"]
                kept = self._end_of(name, last)
                mine = going_on[part].reshape((-1, *[1] * (last.ndim - 1)))
                kept[part] = xp.where(mine, last, kept[part])
            for name in ends:
                ends[name][part] = found[f"final {name}"]
            if "event t" in found:
                logged.append((found["event t"], found["event fired"]))
            going = (found["final status"] == float(RUNNING)) & (
                found["final t"] < given["until"][part]
            )
            advance(len(going) - (int(going.sum()) if budget < math.inf else 0))
        given |= ends
        return logged

    def sampled(self, name: str, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Return the samples of a quantity, `(runs, n, *shape)`; NaN where there are none yet."""
        if name not in self.samples:
            settings = self._settings
            shape = (self._runs, settings.times.size, *shape)
            try:
                self.samples[name] = self._xp.full(shape, math.nan, dtype or settings.dtype)
            except MemoryError:
                raise RemoraError(
                    f"the samples of {self._runs} runs need {math.prod(shape) * 8 / 1e9:.1f} GB "
                    f"for {name}: take fewer samples"
                ) from None
        return self.samples[name]

    def _kept(self, name: str, like: Any) -> Any:
        return self.sampled(name, like.shape[2:], like.dtype)

    def end(self, name: str, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Return a quantity at the end of each run, `(runs, *shape)`; NaN where it never began."""
        if name not in self.ends:
            whole = (self._runs, *shape)
            self.ends[name] = self._xp.full(whole, math.nan, dtype or self._settings.dtype)
        return self.ends[name]

    def _end_of(self, name: str, like: Any) -> Any:
        return self.end(name, like.shape[1:], like.dtype)

    def _in_blocks(
        self, kernel: Any, given: Mapping[str, Any], call: dict[str, Any], runs: Any = None
    ) -> Any:
        """Run in blocks, so that progress is shown and finished runs survive an interrupt.

        Args:
            kernel: the program.
            given: cells by name.
            call: more arguments of the kernel.
            runs: indices of the runs; None: all.
        """
        settings, names = self._settings, [o.name for o in kernel.interface.outputs]
        on_gpu = settings.target == "cuda"
        rows = self._inputs(kernel, given)
        threads = settings.threads or os.cpu_count() or 1
        block = self._runs if on_gpu else BLOCK * threads
        more: dict[str, Any] = {} if on_gpu else {"threads": settings.threads}
        finals: dict[str, Any] = {}
        count = self._runs if runs is None else len(runs)
        with nullcontext() if on_gpu else stopping() as stop:
            more |= {} if stop is None else {"stop": stop}
            for first in range(0, count, max(block, 1)):
                part: Any = slice(first, min(first + block, count))
                part = part if runs is None else runs[part]
                returned = kernel(*(a[part] for a in rows), **call, **more)
                found = dict(zip(names, returned, strict=True))
                for name, value in found.items():
                    if name.startswith("final ") and name[6:] in self.state:
                        old = self.state[name[6:]]
                        whole = finals.setdefault(name[6:], self._xp.array(old, value.dtype))
                        whole[part] = value
                yield part, found
                if stop is not None and stop.made:
                    self.interrupted = True
                    break
        self.state.update(finals)

    def _end_early(self, table: Timetable, steps: Any, chosen: Array, begin: float) -> None:
        """End the runs that have not made all steps of a phase in lockstep.

        Args:
            table: the timetable of the phase.
            steps: number of steps that each run has made, `(runs, 1)`; NaN: it has not begun.
            chosen: indices of the samples within the phase.
            begin: start of the phase, s.
        """
        times = self._settings.times[chosen]
        for run in np.flatnonzero(~(to_host(steps)[:, 0] == table.steps.sum())).tolist():
            made = steps[run, 0]
            reached = table.until(int(made)).end if made > 0 else begin
            for name in self.samples:
                self.samples[name][run, chosen[times > reached]] = math.nan
            if self.status[run, 0] == float(RUNNING):
                self.t[run, 0], self.status[run, 0] = reached, float(INTERRUPTED)

    def _inputs(self, kernel: Any, given: Mapping[str, Any]) -> list[Any]:
        """Return the inputs of a program as they are now, each `(runs, *shape)`."""
        interface, arrays = kernel.interface, {**self.data, **self.state, **given}
        wanted = interface.dtypes(self._settings.dtype)[0]
        rows: list[Any] = []
        for cell, dtype in zip(interface.inputs, wanted, strict=True):
            own = self._xp.asarray(arrays[cell.name], dtype=dtype)
            own = own.reshape((*own.shape[: own.ndim - len(cell.shape)], *cell.shape))
            rows.append(self._xp.broadcast_to(own, (self._runs, *cell.shape)))
        return rows

    def _made(self, phase: BatchPhase, free: bool) -> CompiledRun:
        settings, equations = self._settings, phase.equations.without_functions()
        how = "free" if free else "lockstep"
        # times are always float64
        nudge = NUDGE * float(np.finfo(float).eps) if phase.breaks else 0.0
        if equations.large:
            _refuse_large(equations)
        own_breaks = phase.breaks if how == "free" else ()
        made = functools.partial(
            _program, how, equations, settings.control.tableau, settings.dtype, nudge,
            settings.signals, own_breaks, phase.from_phase,
        )  # fmt: skip
        short = None
        if equations.unloaded and phase.plain:
            short = identity_key(
                equations.robot, how, settings.control.tableau, settings.dtype, settings.target,
                nudge,
                settings.signals, own_breaks, phase.from_phase, equations.parameters,
                equations.formulation, equations.passive, equations.own_clock, equations.started,
                equations.effort, equations.reduced,
                None if equations.limits is None else equations.limits[-2:],
            )  # fmt: skip
        functions = phase.equations.functions

        def compiled(key: str | None) -> CompiledRun:
            name, dtype = f"simulate_{equations.robot.name}", settings.dtype
            if settings.target == "cuda":
                return CudaProgram(made(), name, dtype)
            kind = HostedProgram if functions else ProgramKernel
            if phase.plain and key is not None:
                return kind(made, name, dtype, key)
            # user's functions: on disk, the program is identified by its graphs
            return kind(made(), name, dtype)

        kernel = remembered(
            f"batch on {settings.target}", short, equations.robot,
            lambda: value_key(made, equations.robot), compiled,
        )  # fmt: skip
        return kernel.bound(functions) if isinstance(kernel, HostedProgram) else kernel


def _program(
    how: str, equations: RunEquations, tableau: Tableau, dtype: str, nudge: float,
    signals: Sequence[str], breaks: Sequence[Break], from_phase: Collection[str],
) -> Program:  # fmt: skip
    blocks = RunBlocks(equations, tableau, dtype, nudge)
    if how == "lockstep":
        return lockstep_program(blocks, signals)
    return run_program(blocks, Recorded(tuple(signals)), breaks, from_phase)


def _refuse_large(equations: RunEquations) -> None:
    """Raise if a batch of a large robot asks for what its kernels do not have."""
    robot = equations.robot
    if equations.parameters or equations.held or equations.formulation != "articulated":
        raise RemoraError(
            f"{robot.name!r} has {len(robot.bodies)} bodies: in a batch of so large a robot, "
            "parameters cannot differ, joints cannot be held, and the formulation is "
            "'articulated'; use target='python'"
        )


def carried_states(
    system: System, old: BatchPhase | None, phase: BatchPhase, runs: BatchRuns, count: int,
    array_module: Any,
) -> None:  # fmt: skip
    """Put the states of components into the layout of the next phase; `runs.state` is changed.

    The components of the system come first in all phases, so their states are a prefix. Those of a
    phase, its sampled loads and conditions, begin anew; but a sampled load that is the same in both
    phases and has just been sampled keeps its value, as in `rm.simulate`.

    Args:
        system: the system without what its phases add.
        old: the last phase, or None.
        phase: the next phase.
        runs: the runs.
        count: number of runs.
        array_module: NumPy or CuPy.
    """
    state, new = runs.state, phase.equations.system
    before = {name: state[name] for name in ("x", "z", "rest x")}
    for name, size, total, initial in (
        ("x", system.nx, new.nx, new.initial_x), ("z", system.nz, new.nz, new.initial_z),
        ("rest x", system.nx, new.nx, np.zeros(new.nx)),
    ):  # fmt: skip
        rest = array_module.broadcast_to(
            array_module.asarray(initial[size:], dtype=before[name].dtype), (count, total - size)
        )
        state[name] = array_module.concatenate([before[name][:, :size], rest], axis=-1)
    state["z"] = entered(new.phase_place, state["z"], phase.entry.index, runs.t)
    ticks = {k: state.pop(k) for k in list(state) if k.startswith("tick ")}
    known: dict[tuple[str, str], Any] = {}
    if old is not None:
        for i, update in enumerate(old.equations.system.schedule):
            known |= {(update.kind, name): ticks[f"tick {i}"] for name in update.names}
    for i, update in enumerate(new.schedule):
        number = known.get((update.kind, update.names[0]))
        if number is None or old is None:
            number = array_module.zeros((count, 1))
        elif phase.counted_from_phase(update):
            last = runs.began + update.sample_time * (number - 1.0)
            near = runs.t - last <= min(SAME_SAMPLE, 0.01 * update.sample_time)
            near &= _same_sampled(old, phase, update)
            number = array_module.where(near, 1.0, 0.0)
            for name in update.names if array_module.any(near) else ():
                here, there = (p.equations.system.layouts[name].effective for p in (phase, old))
                held = array_module.where(near, before["z"][:, there], state["z"][:, here])
                state["z"][:, here] = held
        state[f"tick {i}"] = number


def _same_sampled(old: BatchPhase, phase: BatchPhase, update: ScheduledUpdate) -> bool:
    """Return whether the components of an update are sampled loads of the last phase, too."""
    now, then = phase.equations.system.components, old.equations.system.components
    try:
        return all(n in old.from_phase and now[n] == then[n] for n in update.names)
    except NoIdentity:
        return False
