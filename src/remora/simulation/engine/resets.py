"""Resets: changes of the state at events of components."""

from __future__ import annotations

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

#: Tolerance of the norm of a quaternion that a reset returns; within it, it is normalized.
UNIT = 1e-9


def state_after_reset(
    system: PhaseDynamics, event: SystemEvent, t: float, q: Array, v: Array, x: Array, z: Array,
    work: Array,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """Return q, v, x, z and the works after the reset of a component at an event.

    The change of kinetic and potential energy counts as work of external forces.

    Args:
        system: equations of the phase.
        event: the event.
        t: its time, s.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        x: continuous states, `(nx,)`.
        z: discrete states, `(nz,)`.
        work: `(3,)`, J.

    Raises:
        SimulationError: if the reset returns NaN or a quaternion that is not of unit norm.
    """
    assert system.components is not None
    after = system.components.reset(event.component, event.name, t, q, v, x, z)
    who = f"the reset of component {event.component!r} at event {event.name!r}"
    names = ("q", "v", "a continuous state", "a discrete state")
    for what, values in zip(names, after, strict=True):
        if not np.all(np.isfinite(values)):
            raise SimulationError(f"{who} returns {what} that is not finite: {values}", t)
    q1, v1, x1, z1 = after
    same = np.array_equal(q1, q)  # not normalized again: the same bits
    q1 = q.copy() if same else _with_unit_quaternions(system.robot, q1, who, t)
    v1 = v1.copy()
    system.set_held(t, q1, v1)
    plain = system.latched.robot  # energies do not depend on constraints
    gained = _energy(plain, q1, v1) - _energy(plain, q, v)
    return q1, v1, x1, z1, work + np.array([0.0, gained, 0.0])


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
