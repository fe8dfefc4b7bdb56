"""Table of integrators by name, with their order and error estimate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from remora.algebra.array_ops import Array
from remora.identity.table import Table
from remora.simulation.integrators import radau, tableaus, variational_step
from remora.simulation.integrators.step_result import StepResult


class StepSystem(radau.ImplicitSystem, variational_step.VariationalSystem, Protocol):
    """The interface that all integrators together require of a system."""


#: (system, t, y, rate, h, scale, again) -> one step; again: at a start, or after a rejected step.
Step = Callable[[StepSystem, float, Array, Array, float, Array, bool], StepResult]


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        step: makes one step; None: the program of a run does, by the tableau.
        order: of the solution.
        error_order: the error estimate of a step is O(h^(error_order + 1)); 0: it has none, and
            steps are of the length that the user gives.
        stable: fixed steps make an undamped oscillation grow whose frequency times the step is
            more than this.
        tableau: how the program of a run makes its steps.
    """

    step: Step | None
    order: int
    error_order: int
    tableau: tableaus.Tableau
    stable: float = math.inf


def _explicit(tableau: tableaus.Tableau) -> Method:
    # of RK4, the one without an error estimate; the others shorten such steps by themselves
    stable = math.inf if tableau.error_order else 2.0 * math.sqrt(2.0)
    return Method(None, tableau.order, tableau.error_order, tableau, stable)


def _hosted(step: Step, order: int, error_order: int) -> Method:
    return Method(step, order, error_order, tableaus.hosted(order, error_order))


#: Every integrator, by name.
INTEGRATORS: Table[str, Method] = Table({
    "dop853": _explicit(tableaus.DOP853),
    "dopri5": _explicit(tableaus.DOPRI5),
    "rk4": _explicit(tableaus.RK4),
    "radau": _hosted(radau.attempt, radau.ORDER, radau.ERROR_ORDER),
    "variational": _hosted(variational_step.attempt, variational_step.ORDER, 0),
})  # fmt: skip
