"""Table of integrators by name, with their order and error estimate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from remora.algebra.array_ops import Array
from remora.identity.table import Table
from remora.simulation.integrators import explicit, radau, tableaus, variational_step
from remora.simulation.integrators.step_result import StepResult


class StepSystem(radau.ImplicitSystem, variational_step.VariationalSystem, Protocol):
    """The interface that all integrators together require of a system."""


#: (system, t, y, rate, h, scale, again) -> one step; again: at a start, or after a rejected step.
Step = Callable[[StepSystem, float, Array, Array, float, Array, bool], StepResult]


@dataclass(frozen=True)
class Integrator:
    """A row of the table.

    Attributes:
        step: makes one step.
        order: order of the solution.
        error_order: the error estimate of a step is O(h^(error_order + 1)); 0: no estimate, and the
            user chooses a fixed step size.
    """

    step: Step
    order: int
    error_order: int


def _explicit(tableau: tableaus.Tableau) -> Integrator:
    step = functools.partial(explicit.attempt, tableau)
    return Integrator(step, tableau.order, tableau.error_order)


#: Every integrator, by name.
INTEGRATORS: Table[str, Integrator] = Table({
    "dop853": _explicit(tableaus.DOP853),
    "dopri5": _explicit(tableaus.DOPRI5),
    "rk4": _explicit(tableaus.RK4),
    "radau": Integrator(radau.attempt, 5, 3),
    "variational": Integrator(variational_step.attempt, 2, 0),
})  # fmt: skip
