"""Resets: changes of the state at events of components."""

from __future__ import annotations

from collections import deque

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.system import SystemEvent
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.momentum import kinetic_energy, potential_energy
from remora.errors import SimulationError
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.state import normalize
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.phase.run_state import RunState

#: Tolerance of the norm of a quaternion that a reset returns; within it, it is normalized.
UNIT = 1e-9
#: More resets of one event within this time are chattering, s.
MOST_RESETS, CHATTERING = 1000, 1e-6


class Resets:
    """The resets of a run: applies them, and detects chattering."""

    def __init__(self) -> None:
        """Start without resets."""
        self._times: dict[str, deque[float]] = {}

    def apply(self, system: PhaseDynamics, state: RunState, event: SystemEvent) -> None:
        """Apply the reset of a component to the state at an event.

        The change of kinetic and potential energy counts as work of external forces.

        Raises:
            SimulationError: if it returns NaN or a quaternion that is not of unit norm, or if the
                event chatters.
        """
        assert system.components is not None
        self._note(event, state.t)
        robot = system.robot
        q, v, x, z = system.components.reset(
            event.component, event.name, state.t, state.q, state.v, state.x, state.z
        )
        who = f"the reset of component {event.component!r} at event {event.name!r}"
        for what, values in (("q", q), ("v", v), ("a continuous state", x),
                             ("a discrete state", z)):  # fmt: skip
            if not np.all(np.isfinite(values)):
                raise SimulationError(f"{who} returns {what} that is not finite: {values}", state.t)
        if np.array_equal(q, state.q):
            q = state.q.copy()  # not normalized again: the same bits
        else:
            q = _with_unit_quaternions(robot, q, who, state.t)
        v = v.copy()
        system.set_held(state.t, q, v)
        work = state.work.copy()
        plain = system.latched.robot  # energies do not depend on constraints
        work[1] += _energy(plain, q, v) - _energy(plain, state.q, state.v)
        state.jump(q, v, x.copy(), z.copy(), work)

    def _note(self, event: SystemEvent, t: float) -> None:
        times = self._times.setdefault(str(event), deque(maxlen=MOST_RESETS + 1))
        times.append(t)
        if len(times) > MOST_RESETS and t - times[0] <= CHATTERING:
            raise SimulationError(
                f"event {event.name!r} of component {event.component!r} chatters: it was reset "
                f"{len(times)} times within {t - times[0]:.3g} s; let the reset move the state "
                "away from the event, or end the motion there (a contact that comes to rest needs "
                "a force, or a joint that is locked in a next phase)",
                t,
            )


def _energy(robot: Robot, q: Array, v: Array) -> float:
    moving: Array = kernel(kinetic_energy, robot, ("q", "v"))(q, v)
    lifted: Array = kernel(potential_energy, robot, ("q",))(q)
    return float(moving) + float(lifted)


def _with_unit_quaternions(robot: Robot, q: Array, who: str, t: float) -> Array:
    """Return q with its quaternions normalized, or raise if they are far from unit norm."""
    for joint in robot.joints:
        row = kind(joint)
        if row.quaternion is None:
            continue
        own = q[joint.q]
        r, where = own[row.quaternion], f"{who} returns for joint {joint.name!r}"
        size = float(np.sqrt(r @ r))
        if abs(size - 1.0) > UNIT:
            raise SimulationError(
                f"{where} a quaternion of norm {size:.9g}, not 1: {r.tolist()}", t
            )
        if row.dual is None:
            continue
        d = own[row.dual]
        off = float(r @ d)
        if abs(off) > UNIT * max(1.0, float(np.sqrt(d @ d))):
            raise SimulationError(
                f"{where} no unit dual quaternion: its parts {r.tolist()} and {d.tolist()} are "
                f"not orthogonal (their product is {off:.3g})",
                t,
            )
    return normalize(robot, q)
