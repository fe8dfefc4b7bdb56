"""Runs of modular robots: between two changes of their docks they are runs of one robot.

Modules are compiled once, before the run. The forward dynamics of the robot is that of the network
of modules, at any docks; the bases of docked modules follow their carriers exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.assembly.docking.modular_robot import ModularRobot
from remora.dynamics.kernels.composed_robot import composed_robot
from remora.errors import InvalidValue, RemoraError, SimulationError
from remora.model.combine import combine
from remora.simulation.engine.simulation import Simulation
from remora.simulation.inputs.loads import ZeroOrderHold, described
from remora.simulation.module_changes import Attach, Change, Detach, Docking, Swap
from remora.simulation.recording.recorded_event import RecordedEvent
from remora.simulation.recording.recording import Recording

#: A time is that of a tick if it is after it by this part of its magnitude at most.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Ticks:
    """The ticks of a run, at which it is sampled and its torques are computed.

    Attributes:
        times: of all ticks and of the end, `(n,)`, s.
        period: between them, s.
        settings: other arguments of `rm.simulate`.
    """

    times: Array
    period: float
    settings: Mapping[str, Any]

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
            **self.settings, "start": start, "duration": end - start,
            "sample": self.times[first:], "step_to_samples": True,
            "torque": None if torque is None else ZeroOrderHold(torque, self.period),
        }  # fmt: skip


def simulate_modules(
    robot: ModularRobot,
    q: Array,
    v: Array,
    ticks: Ticks,
    torque: Callable[[float, Array, Array], ArrayLike] | None,
    changes: Sequence[Change],
) -> Recording:
    """Simulate a modular robot; the arguments are those of `simulate_assembly`."""
    changes = tuple(changes)
    _check(changes, ticks.times)
    docking, times = Docking(robot, q, v, changes), ticks.times
    network, waiting = docking.network, list(changes)
    moving = composed_robot(combine(robot.modules), network.accelerations)

    def force(t: float, q: Array, v: Array) -> ArrayLike:
        assert torque is not None
        return torque(t, *network.settled(q, v))

    k, last, parts = 0, len(times) - 1, list[Recording]()
    while True:
        while due := [c for c in waiting if _due(c, float(times[k]), network.q, network.v)]:
            for change in due:
                try:
                    docking.apply(float(times[k]), len(parts), change)
                except SimulationError:
                    raise
                except RemoraError as error:
                    raise SimulationError(str(error), float(times[k])) from error
                waiting.remove(change)
        network.synchronize()
        q, v = network.q.copy(), network.v.copy()
        if k == last and parts and not docking.switched(len(parts)):
            break
        given = ticks.arguments(None if torque is None else force, k)
        sim = Simulation(moving, q, v, **given)
        if k == last:  # a change at the end of the run
            parts.append(sim.advance(float(times[k])).recording())
            break
        while k < last:
            k = k + 1 if waiting and any(callable(c.when) for c in waiting) else _next(
                waiting, times, k
            )  # fmt: skip
            sim.advance(float(times[k]))
            network.settle(sim.q, sim.v)
            if any(_due(c, float(times[k]), network.q, network.v) for c in waiting):
                break
        run = sim.recording()
        states = [network.settled(*state) for state in zip(run.q, run.v, strict=True)]
        rows = {"q": np.array([q for q, _ in states]), "v": np.array([v for _, v in states])}
        parts.append(replace(run, columns={**run.columns, **rows}))
        network.settle(run.q[-1], run.v[-1])
    return _joined(docking, parts, waiting)


def _next(waiting: Sequence[Change], times: Array, k: int) -> int:
    """Return the index of the next tick with a change, or that of the end."""
    whens = [float(c.when) for c in waiting if not callable(c.when)]
    found = int(np.searchsorted(times * (1.0 + SAME), min(whens))) if whens else len(times)
    return min(max(found, k + 1), len(times) - 1)


def _due(change: Change, t: float, q: Array, v: Array) -> bool:
    if not callable(change.when):
        return t >= change.when - SAME * abs(change.when)
    try:
        return bool(change.when(t, q.copy(), v.copy()))
    except RemoraError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise SimulationError(
            f"the condition of the change of {change.module!r} raised {kind}: {error}", t
        ) from error


def _check(changes: Sequence[object], times: Array) -> None:
    for change in changes:
        if not isinstance(change, (Attach, Detach, Swap)):
            raise InvalidValue(
                f"changes must be Attach, Detach or Swap, not {type(change).__name__}"
            )
        if not callable(change.when) and not times[0] <= change.when <= times[-1]:
            raise InvalidValue(
                f"change of {change.module!r} at t = {change.when!r} s: the run is from "
                f"{times[0]:.9g} to {times[-1]:.9g} s"
            )


def _joined(
    docking: Docking, parts: Sequence[Recording], waiting: Sequence[Change]
) -> Recording:
    """Return one recording of all parts of a run, each of which is a phase."""
    columns: dict[str, list[Array]] = {name: [] for name in parts[0].columns}
    events, work = list[RecordedEvent](), np.zeros(3)
    for index, part in enumerate(parts):
        switches = [s for s in docking.switches if s.phase == index]
        work[0] += sum(s.separation_work for s in switches)
        work[2] -= sum(s.energy_loss for s in switches)
        own = {"work": part.work + work, "phase": np.full_like(part.phase, index)}
        for name, rows in columns.items():
            rows.append(own.get(name, part.columns[name]))
        events += part.events
        work = columns["work"][-1][-1].copy()
    arrays = {name: np.concatenate(rows) for name, rows in columns.items()}
    for array in arrays.values():
        array.flags.writeable = False
    first, last = parts[0], parts[-1]
    missing = ", ".join(repr(change.module) for change in waiting)
    settings = {
        **first.settings, "phases": [phase for part in parts for phase in part.settings["phases"]],
        "changes": [described(change) for change in docking.changes],
    }  # fmt: skip
    return replace(
        last, robot=docking.whole(), settings=settings, columns=arrays, events=tuple(events),
        message=f"changes whose condition never came true: {missing}" if missing else last.message,
        started=first.started, phase_starts=tuple(float(part.t[0]) for part in parts),
        switches=tuple(docking.switches),
    )  # fmt: skip
