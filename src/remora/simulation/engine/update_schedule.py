"""Scheduled updates of a run: ticks of sampled components, and results whose delay has passed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from remora.components.system import System
from remora.errors import SimulationError
from remora.simulation.integrators.step_control import CLOSE
from remora.simulation.phase.run_state import RunState
from remora.simulation.systems.component_evaluation import ComponentEvaluator
from remora.simulation.systems.tick_noise import noise_streams, tick_noise


class UpdateSchedule:
    """The scheduled updates of a system, and how many of each have happened.

    The update k of an entry happens at t = start + offset + k·sample_time; at the same time, in the
    order of `System.schedule`.

    Attributes:
        counts: number of updates of each entry so far.
    """

    def __init__(self, system: System | None, start: float, seed: int, run: int) -> None:
        """Begin at the start of a run.

        Args:
            system: the system; None: nothing is scheduled.
            start: start time of the run, s.
            seed: seed of the noise.
            run: index of the run in its study.
        """
        self._system, self._start, self._seed, self._run = system, start, seed, run
        self._entries = () if system is None else system.schedule
        self._evaluator: ComponentEvaluator | None = None
        self._streams = {} if system is None else noise_streams(system)
        self.counts = [0] * len(self._entries)

    def enter(self, components: ComponentEvaluator | None) -> None:
        """Evaluate components with the robot of a phase from now on: it has other constraints."""
        self._evaluator = components

    def restore(self, counts: Sequence[int]) -> None:
        """Continue from a checkpoint."""
        self.counts[:] = counts

    def next_time(self) -> float:
        """Return the time of the next update, s; infinite if there is none."""
        return min((self._time(k) for k in range(len(self._entries))), default=math.inf)

    def perform(self, state: RunState) -> bool:
        """Do all updates that are due at the state's time; return whether there were any."""
        if self._evaluator is None or self._system is None:
            return False
        now, done = state.t + CLOSE * np.spacing(abs(state.t)), False
        for k, update in enumerate(self._entries):
            if self._time(k) <= now:
                noise = tick_noise(
                    self._system, self._streams, update.names, self._seed, self._run, self.counts[k]
                )
                state.z = self._evaluator.updated(
                    update, state.t, state.q, state.v, state.x, state.z, noise
                )
                self.counts[k] += 1
                done = True
                if self._time(k) <= now:
                    raise SimulationError(
                        f"the sample time of component {update.names[0]!r}, "
                        f"{update.sample_time:g} s, is too short: time does not resolve it",
                        state.t,
                    )
        return done

    def _time(self, k: int) -> float:
        entry = self._entries[k]
        return self._start + (entry.offset + self.counts[k] * entry.sample_time)
