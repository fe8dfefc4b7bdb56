"""Runs of modular robots: between two changes of their docks they are runs of one robot.

Modules are compiled once, before the run. The forward dynamics of the robot is that of the network
of modules, at any docks; the bases of docked modules follow their carriers exactly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.assembly.docking.modular_robot import ModularRobot
from remora.dynamics.kernels.composed_robot import Accelerations, composed_robot
from remora.errors import InvalidValue, RemoraError, SimulationError
from remora.model.arguments import is_several
from remora.model.combine import combine
from remora.model.robot import Robot
from remora.simulation.box_exchange import with_signals
from remora.simulation.engine.simulation import Simulation
from remora.simulation.inputs.loads import ZeroOrderHold, described
from remora.simulation.inputs.run_settings import Integrator, Physics, Record
from remora.simulation.integrators.table import INTEGRATORS
from remora.simulation.module_changes import Attach, Change, Detach, Docking, Swap
from remora.simulation.recording.recorded_event import RecordedEvent
from remora.simulation.recording.recording import Recording

#: Maximum number of ticks between two states to which an interrupted run may go back.
MOST_TICKS = 100
#: A time is that of a tick if it is after it by this part of its magnitude at most.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Ticks:
    """The ticks of a run, at which it is sampled and its torques are computed.

    Attributes:
        times: of all ticks and of the end, `(n,)`, s.
        period: between them, s.
        integrator: settings of the steps.
        physics: settings of the equations of motion.
        note: text stored with the recording.
    """

    times: Array
    period: float
    integrator: Integrator
    physics: Physics
    note: str

    def arguments(
        self, torque: Callable[[float, Array, Array], ArrayLike] | None, first: int = 0
    ) -> dict[str, Any]:
        """Return arguments of `rm.simulate` for a run from a tick to the end.

        Args:
            torque: computed at ticks and held; None: none.
            first: index of the tick.
        """
        start, end = float(self.times[first]), float(self.times[-1])
        return {
            "integrator": self.integrator, "physics": self.physics,
            "start": start, "duration": end - start,
            "record": Record(self.times[first:], note=self.note),
            "torque": None if torque is None else ZeroOrderHold(torque, self.period),
        }  # fmt: skip

    def composed(self, robot: Robot, accelerations: Accelerations) -> tuple[Robot, dict[str, Any]]:
        """Return a robot whose accelerations a function computes, and arguments that its runs need.

        Args:
            robot: its bodies and joints.
            accelerations: the function.

        Raises:
            InvalidValue: for a method that needs more of its equations than accelerations.
        """
        name = self.integrator.method
        if self.integrator.row.tableau.hosted:
            able = [n for n, row in INTEGRATORS.items() if not row.tableau.hosted]
            raise InvalidValue(
                f"integrator={name!r} is not for modules that dock, or that black boxes carry: "
                f"use {', '.join(able)}"
            )
        physics = replace(self.physics, formulation="articulated")
        return composed_robot(robot, accelerations), {"physics": physics}


def simulate_modules(
    robot: ModularRobot,
    q: Array,
    v: Array,
    ticks: Ticks,
    torque: Callable[[float, Array, Array], ArrayLike] | None,
    changes: Sequence[Change],
) -> Recording:
    """Simulate a modular robot; the arguments are those of `simulate_assembly`."""
    run = _DockingRun(robot, q, v, ticks, torque, _checked(changes, ticks.times))
    try:
        run.go()
    except SimulationError as error:
        if run.parts:
            error.recording = run.recording("failed", str(error))
        raise
    except KeyboardInterrupt:
        if not run.parts:
            raise
        message = f"interrupted at t = {run.parts[-1].t[-1]:.9g} s"
        warnings.warn(f"{message}: what was computed is kept", RuntimeWarning, stacklevel=3)
        return run.recording("interrupted", message)
    missing = ", ".join(repr(change.module) for change in run.waiting)
    never = f"changes whose condition never came true: {missing}"
    return run.recording("complete", never if missing else "")


class _DockingRun:
    """A run in progress.

    Attributes:
        waiting: changes that have not happened yet.
        parts: recordings between changes.
    """

    def __init__(
        self, robot: ModularRobot, q: Array, v: Array, ticks: Ticks,
        torque: Callable[[float, Array, Array], ArrayLike] | None, changes: tuple[Change, ...],
    ) -> None:  # fmt: skip
        self._ticks, self.waiting = ticks, list(changes)
        self._docking = Docking(robot, q, v, changes, float(ticks.times[0]))
        self._network = self._docking.network
        self._boxes = self._docking.boxes
        self._robot, self._more = ticks.composed(
            combine(robot.modules), self._accelerations if robot.boxes else
            self._network.accelerations,
        )  # fmt: skip
        self._torque = torque
        self.parts: list[Recording] = []
        self._k = 0  # index of the tick

    @property
    def _t(self) -> float:
        return float(self._ticks.times[self._k])

    def go(self) -> None:
        """Make the run."""
        due, last = self._due(), len(self._ticks.times) - 1
        while True:
            while due:
                self._change(due)
                due = self._due()
            if self._k == last and self.parts and not self._docking.switched(len(self.parts)):
                return
            due = self._advance(last)

    def _due(self) -> list[Change]:
        return [c for c in self.waiting if _is_due(c, self._t, self._network.q, self._network.v)]

    def _change(self, due: Sequence[Change]) -> None:
        for change in due:
            try:
                self._docking.apply(self._t, len(self.parts), change)
            except RemoraError as error:
                raise SimulationError(str(error), self._t) from error
            self.waiting.remove(change)
        self._network.synchronize()

    def _accelerations(self, q: Array, v: Array, tau: Array) -> Array:
        return self._network.accelerations(q, v, tau + self._boxes.forces(q))

    def _force(self, t: float, q: Array, v: Array) -> ArrayLike:
        q, v = self._network.settled(q, v)
        self._boxes.sample(t, q, v)
        return np.zeros(len(v)) if self._torque is None else self._torque(t, q, v)

    def _advance(self, last: int) -> list[Change]:
        """Advance to the next changes or the end; return the changes that are due."""
        due: list[Change] = []
        network, times = self._network, self._ticks.times
        sampled = self._torque is not None or self._boxes.exchanges
        options = self._ticks.arguments(self._force if sampled else None, self._k)
        sim = Simulation(self._robot, network.q, network.v, **{**options, **self._more})
        watched = any(callable(change.when) for change in self.waiting)
        try:
            while self._k < last and not due:
                k = self._k + 1 if watched else _next(self.waiting, times, self._k)
                self._k = min(k, self._k + MOST_TICKS)
                sim.advance(self._t)
                network.settle(sim.q, sim.v)
                due = self._due()
        finally:
            self._record(sim.recording())
        return due

    def _record(self, run: Recording) -> None:
        if len(run):
            settled = self._network.settled
            states = [settled(*state) for state in zip(run.q, run.v, strict=True)]
            rows = {"q": np.array([q for q, _ in states]), "v": np.array([v for _, v in states])}
            self.parts.append(replace(run, columns={**run.columns, **rows}))

    def recording(self, status: str, message: str) -> Recording:
        """Return one recording of all parts, each of which is a phase."""
        parts, docking = self.parts, self._docking
        columns: dict[str, list[Array]] = {name: [] for name in parts[0].columns}
        events, work = list[RecordedEvent](), np.zeros(3)
        for index, part in enumerate(parts):
            switches = [s for s in docking.switches if s.phase == index]
            work[0] += sum(s.separation_work for s in switches)
            work[1] += docking.placing.get(index, 0.0)
            work[2] -= sum(s.energy_loss for s in switches)
            changed = {"work": part.work + work, "phase": np.full_like(part.phase, index)}
            for name, rows in columns.items():
                rows.append(changed.get(name, part.columns[name]))
            events += part.events
            work = columns["work"][-1][-1].copy()
        arrays = {name: np.concatenate(rows) for name, rows in columns.items()}
        for array in arrays.values():
            array.flags.writeable = False
        phases = [phase for part in parts for phase in part.settings["phases"]]
        changes = [described(change) for change in docking.changes]
        run = replace(
            parts[0], robot=docking.whole(), columns=arrays, events=tuple(events), status=status,
            settings={**parts[0].settings, "phases": phases, "changes": changes}, message=message,
            phase_starts=tuple(float(part.t[0]) for part in parts),
            switches=tuple(s for s in docking.switches if s.phase < len(parts)),
        )  # fmt: skip
        return with_signals(run, self._boxes.exchanges.values(), self._ticks.period)


def _next(waiting: Sequence[Change], times: Array, k: int) -> int:
    """Return the index of the next tick with a change, or that of the end."""
    whens = [float(c.when) for c in waiting if not callable(c.when)]
    due = int(np.searchsorted(_latest(times), min(whens))) if whens else len(times)
    return min(max(due, k + 1), len(times) - 1)


def _latest(times: Array) -> Array:
    """Return the latest times that are the same as these."""
    return times + SAME * np.abs(times)


def _is_due(change: Change, t: float, q: Array, v: Array) -> bool:
    if not callable(change.when):
        return bool(_latest(np.array(t)) >= change.when)
    try:
        return bool(change.when(t, q.copy(), v.copy()))
    except RemoraError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise SimulationError(
            f"the condition of the change of {change.module!r} raised {kind}: {error}", t
        ) from error


def _checked(changes: Any, times: Array) -> tuple[Change, ...]:
    """Return changes as a tuple, or raise."""
    listed: tuple[Any, ...] = tuple(changes) if is_several(changes) else (changes,)
    for change in listed:
        if not isinstance(change, (Attach, Detach, Swap)):
            raise InvalidValue(
                f"changes must be Attach, Detach or Swap, not {type(change).__name__}"
            )
        if not callable(change.when) and not times[0] <= change.when <= times[-1]:
            raise InvalidValue(
                f"change of {change.module!r} at t = {change.when!r} s: the run is from "
                f"{times[0]:.9g} to {times[-1]:.9g} s"
            )
    return listed
