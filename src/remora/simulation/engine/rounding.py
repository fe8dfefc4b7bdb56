"""Rounding of accelerations at high speeds, below which no error tolerance can be kept.

In true orbital coordinates a satellite moves at 7.6 km/s. Terms such as v × m v are zero, but the
rounding of their parts is not: about ε m v². An adaptive method takes it for an error and shortens
its steps to no avail. How short they become is estimated to an order of magnitude only.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.formulations import forward_dynamics
from remora.errors import InvalidValue, RemoraError, SimulationWarning
from remora.model.robot import Robot

#: Speed below which rounding is not looked at, m/s or rad/s.
FAST = 100.0
#: Weights of rounding errors in the error estimates of `dop853` and `dopri5`: of accelerations, and
#: of what turned speeds make of angular ones.
WEIGHT, TURNED = 0.02, 0.05
#: Number of steps due to rounding from which on there is a warning.
MANY = 20_000
#: How many times more steps than allowed are refused.
MARGIN = 10.0
#: Length of steps that the advised tolerance allows, s.
USEFUL = 0.1
#: Number of states, equal up to rounding, at which accelerations are compared.
STATES = 16


class Rounding(NamedTuple):
    """Rounding against an error tolerance.

    Attributes:
        speed: largest speed, m/s or rad/s.
        rate: spread of the acceleration that exceeds its tolerance most, m/s² or rad/s².
        step: estimated length of the steps at which the tolerance is just kept, s.
    """

    speed: float
    rate: float
    step: float

    def described(self, atol: float) -> str:
        """Return the cause and the remedy."""
        needed = max(self.speed * self.rate * USEFUL**2, 10.0 * atol)
        enough = 10.0 ** math.ceil(math.log10(needed))
        return (
            f"rounding exceeds atol={atol:g}: at {self.speed:.4g} m/s accelerations are rounded to "
            f"{self.rate:.1g} m/s² (rad/s²), which allows steps of about {self.step:.1g} s only; "
            f"use rm.Integrator(atol={enough:.0e}), or coordinates relative to a point that moves "
            "along"
        )


def rounding_of(robot: Robot, q: Array, v: Array, rtol: float, atol: float) -> Rounding | None:
    """Return how rounding limits the steps of an adaptive method; None at low speeds.

    Accelerations without loads are compared at states that differ in the last bit of the speeds.

    Args:
        robot: the robot.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        rtol: relative error tolerance.
        atol: absolute error tolerance.
    """
    speed = float(np.max(np.abs(v), initial=0.0))
    if not FAST < speed < math.inf:
        return None
    bits = np.random.default_rng(0).integers(-1, 2, (STATES, robot.nv))
    near = v * (1.0 + np.finfo(float).eps * bits)
    there = np.broadcast_to(q, (STATES, robot.nq))
    try:
        vdot = forward_dynamics(robot, there, near, np.zeros(near.shape))
    except RemoraError:  # such as a joint without inertia, which is held in the run
        return None
    rates = np.ptp(vdot, axis=0)
    errors = WEIGHT * rates / (atol + rtol * np.abs(v))
    worst = int(np.argmax(errors))
    rate = float(rates[worst])
    if not errors[worst] > 0.0:
        return None
    step = min(1.0 / float(errors[worst]), math.sqrt(atol / (TURNED * speed * rate)))
    return Rounding(speed, rate, step)


def check_rounding(
    robot: Robot, q: Array, v: Array, rtol: float, atol: float, duration: float, most: int,
    stacklevel: int = 2,
) -> None:  # fmt: skip
    """Raise if rounding alone forces more steps than allowed; warn if it forces many.

    Args:
        robot: the robot.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        rtol: relative error tolerance.
        atol: absolute error tolerance.
        duration: s.
        most: allowed number of steps.
        stacklevel: of the warning, as seen from the caller.
    """
    found = rounding_of(robot, q, v, rtol, atol)
    if found is None:
        return
    if duration > MARGIN * most * found.step:
        why = found.described(atol)
        raise InvalidValue(f"{most} steps are not enough for {duration:g} s: {why}")
    if duration > MANY * found.step:
        warnings.warn(found.described(atol), SimulationWarning, stacklevel=stacklevel + 1)
