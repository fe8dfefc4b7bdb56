"""Constraints at the start of a phase of a batch: capture, latch and release in every run.

The equations are those of single runs, on arrays of runs; what differs by run, robot parameters and
the numbers of constraints that have latched, are numbers of the robot with an axis of runs in
front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.constraints.step_projection import StartCorrection, start_correction
from remora.dynamics.constraints.switch_equations import (
    Velocities,
    capture_jump,
    impulses_by_name,
    latched_field,
    latched_value,
    separation_jump,
)
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.kernels.parameters import parameter
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.simulation.batch.result import BatchSwitch
from remora.simulation.engine.constraint_switching import (
    CLOSED,
    closed,
    refuse_blocked,
    refuse_contradiction,
    refuse_violated,
    velocities,
)
from remora.simulation.inputs.phases import Phase
from remora.simulation.program.event_search import BLOCKED, VIOLATED


@dataclass(frozen=True, eq=False)
class PhaseConstraints:
    """The constraints of a phase.

    Attributes:
        index: of the phase.
        phase: says what is switched.
        before: the robot before the phase.
        robot: the robot in it.
        parameters: names of the robot's parameters that differ by run.
        held: joints that are prescribed or locked.
    """

    index: int
    phase: Phase
    before: Robot
    robot: Robot
    parameters: tuple[str, ...]
    held: tuple[str, ...]

    @property
    def latches(self) -> dict[str, str]:
        """By the name of a constraint that latches: the name of the parameter it sets."""
        names = self.phase.activate if self.phase.latch else ()
        return {name: f"{name}.{latched_field(self.robot, name)}" for name in names}

    @property
    def acts(self) -> bool:
        """Whether something is to be done at the start of the phase."""
        return self.phase.switches or bool(active_constraints(self.robot))


class SwitchedRuns(NamedTuple):
    """All runs after the constraints of a phase began to act.

    Attributes:
        q: configurations, `(runs, nq)`.
        v: velocities, `(runs, nv)`.
        faults: status of the runs in which they cannot act, by index, with the reason.
        latched: values of the parameters that were latched, by name, `(runs, ...)`.
        switch: what was switched; None: nothing.
    """

    q: Array
    v: Array
    faults: dict[int, tuple[int, str]]
    latched: dict[str, Array]
    switch: BatchSwitch | None


def latched_poses(
    own: PhaseConstraints, q: Array, values: Mapping[str, Array], active: Array
) -> dict[str, Array]:
    """Return the numbers that constraints take over at the start of a phase, by parameter.

    Runs that do not come to the phase keep those of the robot.

    Args:
        own: the constraints of the phase.
        q: configurations, `(runs, nq)`.
        values: parameters that differ by run, by name, `(runs, ...)`.
        active: which runs come to the phase, `(runs,)`.
    """
    robot, found = _with(own.robot, values), dict[str, Array]()
    for name, to in own.latches.items():
        with np.errstate(all="ignore"):  # runs that have ended may hold anything
            taken = latched_value(robot, q, name)
        usual = getattr(own.robot.constraints[name], latched_field(own.robot, name))
        found[to] = np.where(active.reshape((-1, *[1] * (taken.ndim - 1))), taken, usual)
    return found


def switched_runs(
    own: PhaseConstraints,
    t: Array,
    q: Array,
    v: Array,
    values: Mapping[str, Array],
    latched: Mapping[str, Array],
    active: Array,
) -> SwitchedRuns:
    """Return the runs after the constraints of a phase began to act; see `engine.run_loop`.

    Args:
        own: the constraints of the phase.
        t: time of each run, `(runs,)`, s.
        q: configurations with held joints in their places, `(runs, nq)`.
        v: velocities, `(runs, nv)`.
        values: parameters that differ by run before the phase, by name, `(runs, ...)`.
        latched: parameters that are latched in it, see `latched_poses`.
        active: which runs come to the phase, `(runs,)`.
    """
    with np.errstate(all="ignore"):  # runs that have ended may hold anything
        return _switched(own, t, q, v, values, latched, active)


def _switched(
    own: PhaseConstraints, t: Array, q: Array, v: Array, values: Mapping[str, Array],
    latched: Mapping[str, Array], active: Array,
) -> SwitchedRuns:  # fmt: skip
    phase, impulses = own.phase, dict[str, Array]()
    pushed, lost = np.zeros(len(t)), np.zeros(len(t))
    faults: dict[int, tuple[int, str]] = {}

    def note(code: int, bad: Array, refuse: Callable[[int], None]) -> None:
        for k in np.flatnonzero(active & bad).tolist():
            if k not in faults:
                faults[k] = code, _told(lambda k=k: refuse(k))

    if phase.separation:
        push_apart = _kernel(separation_jump, own.before, values, own.held, velocities(phase))
        v, push, pushed, misfit = push_apart(q, v)
        note(BLOCKED, _largest(misfit) > CLOSED, lambda k: refuse_blocked(phase, misfit[k]))
        impulses |= impulses_by_name(own.before, push)
    if active_constraints(own.robot):
        known = {**values, **latched}
        correct = _kernel(start_correction, own.robot, known, own.held)
        at_start = StartCorrection(*correct(q, v))
        residual, slip = at_start.residual, at_start.slip
        first = own.index == 0
        watched = np.concatenate([residual, slip if first else 0.0 * slip], axis=-1)
        for k in np.flatnonzero(active & ~(_largest(watched) <= CLOSED)).tolist():
            told = _told(
                lambda k=k: refuse_violated(own.robot, phase.activate, residual[k], slip[k], first)
            )
            if told and k not in faults:
                faults[k] = VIOLATED, told
        before = v
        q, v, misfit = closed(q, at_start, lambda q: StartCorrection(*correct(q, before)))
        caught: Array | None = None
        if phase.switches:
            jump = _kernel(capture_jump, own.robot, known, own.held)
            v, caught, energy, misfit = jump(q, before)
            lost = 0.0 - energy
        note(
            BLOCKED,
            ~(_largest(misfit) <= CLOSED),
            lambda k: refuse_contradiction(own.robot, misfit[k]),
        )
        if caught is not None:
            for name, impulse in impulses_by_name(own.robot, caught).items():
                impulses[name] = impulse + impulses.get(name, 0.0 * impulse)
    switch = None
    if phase.switches:
        done = active.copy()
        done[list(faults)] = False
        fields = {name: {latched_field(own.robot, name): latched[parameter]}
                  for name, parameter in own.latches.items()}  # fmt: skip
        switch = BatchSwitch(
            own.index, tuple(phase.activate), tuple(phase.release), _where(done, t),
            {name: _where(done, x) for name, x in impulses.items()}, _where(done, lost),
            _where(done, pushed),
            {name: {k: _where(done, x) for k, x in own.items()} for name, own in fields.items()},
        )  # fmt: skip
    return SwitchedRuns(q, v, faults, dict(latched), switch)


def _kernel(
    function: Callable[..., Any],
    robot: Robot,
    values: Mapping[str, Array],
    held: tuple[str, ...],
    speeds: Velocities = (),
) -> Callable[[Array, Array], Any]:
    """Return a function (q, v) of all runs, compiled; numbers that differ by run are arguments."""
    fixed: dict[str, Any] = {"held": held} | ({"velocities": speeds} if speeds else {})
    made = kernel(function, robot, ("q", "v"), None, tuple(values), **fixed)
    numbers = [np.ascontiguousarray(x, float) for x in values.values()]
    return lambda q, v: made(*map(np.ascontiguousarray, (q, v)), *numbers)


def _with(robot: Robot, values: Mapping[str, Array]) -> Robot:
    """Return the robot with numbers that differ by run, an axis of runs in front."""
    for name, value in values.items():
        whole = "." not in name  # of all bodies or joints, whose axis comes first
        robot = parameter(robot, name)[1](robot, np.moveaxis(value, 1, 0) if whole else value)
    return robot


def _told(refuse: Callable[[], None]) -> str:
    """Return the message with which single runs refuse such a state; empty if they do not."""
    try:
        refuse()
    except RemoraError as error:
        return str(error)
    return ""


def _largest(x: Array) -> Array:
    return np.max(np.abs(x), axis=-1, initial=0.0)


def _where(done: Array, x: Array) -> Array:
    """Return an array `(runs, ...)` with NaN in the other runs."""
    return np.where(done.reshape((-1, *[1] * (x.ndim - 1))), x, np.nan)
