"""Progress display of a run: simulated time, speed, momentum drift."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.momentum import momentum
from remora.model.robot import Robot

#: Minimum duration of a run before a bar is shown, s.
PATIENCE = 2.0
#: Time between two updates, s.
INTERVAL = 0.1
#: Time between two log lines if there is no terminal, s.
LOG_INTERVAL = 5.0


class Status(NamedTuple):
    """Progress of a run.

    Attributes:
        t: simulated time, s.
        fraction: fraction of the duration, 0 to 1.
        speed: simulated seconds per second.
        drift: norm of the change of the momentum [linear, angular] since the start.
    """

    t: float
    fraction: float
    speed: float
    drift: float


Show: TypeAlias = Callable[[Status], None]


def _bar(before: str, after: str | None = None) -> Any:
    """Return a bar of `rich` with texts before and after it, which is removed at the end."""
    # imported when a bar is shown: it takes longer than a short run
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    behind = [TextColumn(after)] if after else []
    columns = TextColumn(before), BarColumn(), *behind, TimeRemainingColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def batch_bar(runs: int, progress: bool | None) -> Generator[Callable[[int], None]]:
    """Show a progress bar over the runs of a batch; yields a function that advances it."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda done: None
        return
    with _bar("{task.completed:.0f} of {task.total:.0f} runs") as bar:
        task = bar.add_task("", total=runs)
        yield lambda done: bar.advance(task, done)


@contextmanager
def campaign_bar(
    runs: int, done: int, progress: bool | None
) -> Generator[Callable[[int, int], None]]:
    """Show a progress bar over the runs of a campaign; yields (runs, failures) -> None.

    Args:
        runs: number of runs.
        done: number of runs that were complete before.
        progress: True for a bar, False for none; None: a bar on a terminal.
    """
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda more, failed: None
        return
    since, made, bad = time.monotonic(), 0, 0
    texts = (
        "{task.completed:,.0f} of {task.total:,.0f} runs",
        "{task.fields[rate]}{task.fields[failures]}",
    )
    with _bar(*texts) as bar:
        task = bar.add_task("", total=runs, completed=done, rate="", failures="")

        def advance(more: int, failed: int) -> None:
            nonlocal made, bad
            made, bad = made + more, bad + failed
            rate = f"{made / max(time.monotonic() - since, 1e-9):,.0f} runs/s"
            told = f", {bad} failed" if bad else ""
            bar.update(task, advance=more, rate=rate, failures=told)

        yield advance


class ProgressReporter:
    """Reports the progress of a run, ten times a second."""

    def __init__(
        self,
        robot: Robot,
        start: float,
        stop: float,
        q: Array,
        v: Array,
        progress: Any,
        now: float | None = None,
    ) -> None:
        """Initialize.

        Args:
            robot: the robot.
            start: start time of the run, s.
            stop: end time of the run, s.
            q: initial configuration, `(nq,)`.
            v: initial velocity, `(nv,)`.
            progress: True for a bar, False for none, None for a bar on a terminal after two
                seconds; or a function that receives a `Status`.
            now: current time of a resumed run, s.
        """
        wanted = progress is not False and (progress is not None or sys.stderr.isatty())
        self._wanted, self._show = wanted, progress if callable(progress) else None
        self._patience = PATIENCE if progress is None else 0.0
        self._start, self._stop = start, stop
        self._from = start if now is None else now
        self._bar: Any = None
        self._task: Any = None
        self._robot, self._first = robot, (q.copy(), v.copy())
        self._momentum: Any = None
        self._begun = self._looked = self._told = time.monotonic()

    def look(self, t: float, q: Array, v: Array, last: bool = False) -> None:
        """Update the display, if it is due."""
        if not self._wanted:
            return
        now = time.monotonic()
        if not last and (now - self._looked < INTERVAL or now - self._begun < self._patience):
            return
        if last and self._patience and self._bar is None:
            return
        self._looked = now
        status = self._status(t, q, v, now - self._begun)
        if self._show is not None:
            self._show(status)
        else:
            self._drawn(status)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _status(self, t: float, q: Array, v: Array, elapsed: float) -> Status:
        if self._momentum is None:
            self._momentum = kernel(momentum, self._robot, ("q", "v"))
            self._before = self._momentum(*self._first)
        drift = float(np.linalg.norm(self._momentum(q, v) - self._before))
        whole = self._stop - self._start
        fraction = (t - self._start) / whole if whole > 0.0 else 1.0
        return Status(t, fraction, (t - self._from) / max(elapsed, 1e-9), drift)

    def _drawn(self, status: Status) -> None:
        text = f"t = {status.t:.4g} s, {status.speed:.3g}x real time, drift {status.drift:.1e}"
        if not sys.stderr.isatty():  # occasional lines for a log
            now = time.monotonic()
            if status.fraction >= 1.0 or now - self._told > LOG_INTERVAL:
                self._told = now
                print(f"{100.0 * status.fraction:3.0f} %  {text}", file=sys.stderr, flush=True)
            return
        if self._bar is None:
            self._bar = _bar("{task.description}", "{task.percentage:>3.0f} %")
            self._task = self._bar.add_task("", total=1.0)
            self._bar.start()
        self._bar.update(self._task, completed=status.fraction, description=text)
