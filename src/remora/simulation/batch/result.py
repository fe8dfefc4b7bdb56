"""The result of a batch: samples, signals, events and outcome of many runs."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.system import System
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.kernels.parameters import parameter
from remora.dynamics.refusals import depends_on_constraints
from remora.errors import RemoraError, UnknownName
from remora.model.robot import Robot
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.batch.single_run import RunArguments, run_alone
from remora.simulation.recording.constraint_switch import BatchSwitch
from remora.simulation.recording.export import pandas
from remora.simulation.recording.quantities import described, elements
from remora.simulation.recording.recording import Recording

#: How a run ended, by the number that its program returns, see `event_search`.
OUTCOMES = ("complete", "stopped", "complete", "not finite", "step too short", "chattering",
            "event is NaN", "invalid reset", "contradiction", "no event", "violated constraint",
            "blocked constraint", "interrupted", "failed")  # fmt: skip
#: Number of a run that Python has made, and that failed.
FAILED = OUTCOMES.index("failed")


class BatchEvents(NamedTuple):
    """Events of the runs of a batch, in the order in which they occurred.

    Attributes:
        names: names of the events, `component.event`.
        counts: number of events of each run, `(...)`; more may have occurred than were stored.
        times: `(..., capacity)`, s; NaN where a run has fewer.
        fired: which events occurred at each of these times, `(..., capacity, len(names))`, 0 or 1.
        first: when each event first occurred, `(..., len(names))`, s; NaN if it did not. Complete
            in all runs, however many events are stored.
    """

    names: tuple[str, ...]
    counts: Array
    times: Array
    fired: Array
    first: Array

    def of(self, name: str) -> Array:
        """Return the times of one event, `(..., capacity)`; NaN elsewhere."""
        if name not in self.names:
            raise UnknownName("event", name, self.names)
        return np.where(self.fired[..., self.names.index(name)] > 0.5, self.times, np.nan)


class FinalStates(NamedTuple):
    """The runs of a batch where each of them ended, also between two samples.

    Attributes:
        t: time, `(...)`, s.
        q: configuration, `(..., nq)`; after the resets of events at this time.
        v: velocity, `(..., nv)`.
        signals: signals and states of components by name, `(..., *shape)`.
    """

    t: Array
    q: Any
    v: Any
    signals: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """Many runs of one robot or system.

    Attributes:
        robot: the robot.
        t: times of the samples, `(n,)`, s.
        q: configurations, `(..., n, nq)`, the runs' batch shape in front; NaN after the end of a
            run that was stopped: `final.q` is where it ended.
        v: velocities, `(..., n, nv)`.
        parameters: parameters that differ from run to run, by name.
        ok: which runs finished with finite numbers and physically possible robot parameters,
            `(...)`.
        status: `complete`, or `interrupted` by Ctrl-C; then `outcome` says which runs were.
        system: the robot with its components.
        signals: signals and states of components by name, `(..., n, *shape)`.
        outcome: how each run ended, one of `OUTCOMES`, `(...)`.
        end: time at which each run ended, `(...)`, s.
        final: state and signals of each run where it ended; those of a run that failed are those of
            its last step, NaN if its parameters are impossible or it was interrupted.
        events: events of the components, or None if they have none.
        arguments: what a run needs to be simulated alone.
        switches: what constraints were switched, phase by phase.
        faults: why constraints could not act, or which component made the run fail, by the number
            of the run, for the first few.
        signal_units: units of the signals, by name.
        component_axes: number of axes of the parameters of components and the design, by name.
    """

    robot: Robot
    t: Array
    q: Any
    v: Any
    parameters: dict[str, Array]
    ok: Array
    status: str
    system: System
    signals: dict[str, Any] = field(default_factory=dict[str, Any])
    outcome: Array = field(default_factory=lambda: np.zeros(0))
    end: Array = field(default_factory=lambda: np.zeros(0))
    final: FinalStates = field(
        default_factory=lambda: FinalStates(np.zeros(0), np.zeros(0), np.zeros(0), {})
    )
    events: BatchEvents | None = None
    arguments: RunArguments | None = None
    switches: tuple[BatchSwitch, ...] = ()
    faults: Mapping[int, str] = field(default_factory=dict[int, str])
    signal_units: Mapping[str, str] = field(default_factory=dict[str, str])
    component_axes: Mapping[str, int] = field(default_factory=dict[str, int])

    def __len__(self) -> int:
        """Return the number of runs."""
        return self.ok.size

    def __getitem__(self, index: int | tuple[int, ...]) -> Recording:
        """Return one run as a recording, with torques, work, reactions and everything else.

        The run is simulated again by `rm.simulate` with the same steps, parameters and noise; it
        equals the run of the batch to rounding. `rm.view(batch[7])` shows it.

        Args:
            index: index of the run; a tuple for a batch with several axes.

        Raises:
            RemoraError: if the batch had `inputs` or `initial` states, or ran in float32: those
                exist in batches only.
        """
        if self.arguments is None:
            raise RemoraError("this batch was not made by rm.simulate_batch")
        return run_alone(self.system, self.parameters, self.ok.shape, self.arguments, index)

    def to_pandas(self) -> Any:
        """Return a data frame with one row per run: parameters, outcome, and the state at the end.

        Columns are named `q.elbow`, `v.elbow`, as those of recordings; numbers of a parameter with
        several elements are `attitude.kp[0]`, ...
        """
        shape, count = self.ok.shape, len(self)
        columns: dict[str, Array] = {"run": np.arange(count)}
        for name, values in self.parameters.items():
            rank = self.component_axes.get(name, -1)
            rank = _trailing(self.robot, name) if rank < 0 else rank
            trailing = values.shape[values.ndim - rank :]
            whole = np.broadcast_to(values, (*shape, *trailing)).reshape((count, -1))
            columns |= zip(elements(name, trailing), whole.T, strict=True)
        columns |= {
            "ok": self.ok.ravel(),
            "outcome": np.ravel(self.outcome),
            "end": self.end.ravel(),
        }
        for name, values in (("q", self.final.q), ("v", self.final.v)):
            last = _host(values).reshape(count, -1)
            labels = [label for label, _ in described(self.robot, name)]
            columns |= zip(labels, last.T, strict=True)
        return pandas().DataFrame(columns)

    def plot(self, *names: str, degrees: bool = True) -> Any:
        """Return a matplotlib Figure with percentile bands over all runs.

        Args:
            *names: `q.elbow`, `v.elbow`, or elements of signals, `gyro.rate[1]`; default: all
                coordinates of joints with one.
            degrees: whether angles are shown in degrees.
        """
        # Figures build on batches, so the function is imported at the call.
        module = importlib.import_module("remora.viewer.figures.percentile_bands")
        return module.plot_batch(self, *names, degrees=degrees)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the batch into a new folder, whole or not at all, and return its path.

        `rm.open_batch` reads it back bit for bit. Components and loads, which may be your own code,
        are not stored. Arrays in GPU memory are copied.

        Args:
            path: the folder; it must not exist, or be empty.

        Raises:
            RemoraError: if the folder is not empty, or cannot be written.
        """
        # Storage builds on batches, so the function is imported at the call.
        module = importlib.import_module("remora.simulation.batch.batch_storage")
        return module.save_batch(self, path)

    def view(
        self,
        *runs: int,
        port: int = 8080,
        open: bool = True,
        dark: bool = False,
        mesh_root: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Show one or several runs together in one scene in the browser.

        The first run is drawn as it is, the others as translucent ghosts of one colour each, with
        the paths of their end-effectors and a plot that compares them. They are drawn from the
        samples of the batch; `rm.view(batch[7])` simulates run 7 again and shows its torques,
        reactions and momentum as well.

        Args:
            *runs: indices of the runs; default: up to eight, evenly spaced.
            port: port on 127.0.0.1; 0: any free port.
            open: whether to open the page in the browser.
            dark: whether to use the dark theme.
            mesh_root: the folder that meshes must be in.

        Raises:
            RemoraError: if viser is not installed, the port is in use, or a run has no samples.
        """
        module = importlib.import_module("remora.viewer.page.batch_page")
        page = module.BatchPage(self, runs, port, dark, mesh_root)
        if open:
            page.open()
        return page

    def run_parameters(self, index: int) -> dict[str, Array]:
        """Return the robot's parameters of one run by name; `index` counts through all runs."""
        place = np.unravel_index(index, self.ok.shape) if self.ok.shape else ()
        found: dict[str, Array] = {}
        for name, values in self.parameters.items():
            if name not in self.component_axes:
                trailing = values.shape[values.ndim - _trailing(self.robot, name) :]
                found[name] = np.broadcast_to(values, (*self.ok.shape, *trailing))[place]
        return found

    def with_arguments(self, system: System, arguments: RunArguments) -> Batch:
        """Return the batch with what its runs need to be simulated alone."""
        return replace(self, system=system, robot=system.robot, arguments=arguments)

    def evaluate(self, function: Callable[..., Any], **fixed: Any) -> Any:
        """Evaluate a library function, or your own, at all samples: `(..., n, *shape)`.

        `batch.evaluate(rm.momentum)`, `batch.evaluate(rm.frame_pose, frame="tool")`; each run
        with its own robot parameters. For batches on the CPU.

        The robot is that of the start of the runs. Where constraints are switched during the runs,
        library functions that depend on them are refused; functions of your own must not.

        Args:
            function: f(robot, q) or f(robot, q, v), with more arguments in `fixed`.
            **fixed: values of the function's other parameters.
        """
        return self.evaluated(function, fixed)

    def evaluated(
        self, function: Callable[..., Any], fixed: Mapping[str, Any], threads: int = 0
    ) -> Any:
        """Evaluate a function at all samples; see `evaluate`.

        Args:
            function: f(robot, q) or f(robot, q, v), with more arguments in `fixed`.
            fixed: values of the function's other parameters.
            threads: CPU threads; 0: one per core.
        """
        if self.switches and depends_on_constraints(function):
            raise RemoraError(
                f"{function.__name__} depends on constraints, which are switched during the runs "
                "of this batch; evaluate it for single runs: batch[0]"
            )
        asked = inspect.signature(function).parameters
        needed = [name for name in ("q", "v") if name in asked]
        values = {n: x for n, x in self.parameters.items() if n not in self.component_axes}
        kernel = compile_function(
            function, self.robot, arguments=needed, fixed=fixed, parameters=tuple(values)
        )
        states = {"q": self.q, "v": self.v}
        values_of = [
            np.expand_dims(value, axis=value.ndim - _trailing(self.robot, name))
            if value.ndim > _trailing(self.robot, name) else value
            for name, value in values.items()
        ]  # fmt: skip
        return kernel(*(states[name] for name in needed), *values_of, threads=threads)

    def on_host(self, parameters: Mapping[str, Array] | None = None) -> Batch:
        """Return the batch with its arrays in memory of the host, in float64.

        Args:
            parameters: the same parameters, if they are there already.
        """
        if not hasattr(self.q, "get"):
            return self
        moved = dict(parameters) if parameters is not None else {
            name: _host(x) for name, x in self.parameters.items()
        }  # fmt: skip
        signals, end = {name: _host(x) for name, x in self.signals.items()}, self.final
        last = {name: _host(x) for name, x in end.signals.items()}
        return replace(
            self, q=_host(self.q), v=_host(self.v), signals=signals, parameters=moved,
            final=FinalStates(end.t, _host(end.q), _host(end.v), last),
        )  # fmt: skip

    def __repr__(self) -> str:
        """Return a summary."""
        unfinished = int(np.count_nonzero(self.outcome == "interrupted"))
        failed = int(np.size(self.ok) - np.count_nonzero(self.ok)) - unfinished
        shown = f", {unfinished} not finished" if unfinished else ""
        shown += f", {failed} failed" if failed else ""
        stopped = int(np.count_nonzero(self.outcome == "stopped"))
        shown += f", {stopped} stopped by events" if stopped else ""
        return (
            f"Batch of {self.robot.name!r}: {len(self)} runs, {self.t.size} samples to "
            f"{self.t[-1]:g} s, {self.status}{shown}"
        )


def _trailing(robot: Robot, name: str) -> int:
    return len(parameter(robot, name)[0].shape)


def _host(x: Any) -> Array:
    return np.asarray(to_host(x), float)
