"""A function of a robot as a function of arrays alone: what a kernel is traced from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remora.algebra.namespace import Array
from remora.dynamics.kernels.keys import tables_digest
from remora.dynamics.kernels.parameters import parameter
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.errors import RemoraError
from remora.identity.table import Table
from remora.model.robot import Robot


@dataclass(frozen=True, eq=False)
class SpecializedFunction:
    """A function with a robot and other values compiled in.

    It holds for the rows of tables (formulations, joint types) that it was made with: a graph that
    is traced later must be that of the machine code.

    Attributes:
        function: f(robot, ...) on arrays.
        robot: the robot.
        name: of the function.
        arguments: names of the arrays it takes.
        fixed: values of its other parameters.
        parameters: numbers of the robot that are arrays, too, after the others.
        rolled: whether its kernel is made of loops instead.
        tables: digest of the rows it was made with; None: they have none.
        changes: how often tables had been changed then; -1: in another process.
    """

    function: Callable[..., Any]
    robot: Robot
    name: str
    arguments: tuple[str, ...]
    fixed: Mapping[str, Any]
    parameters: tuple[str, ...]
    rolled: bool
    tables: str | None
    changes: int

    def __call__(self, *arrays: Array) -> Any:
        """Evaluate on arrays of numbers or symbols."""
        robot = self.robot
        if self.rolled and not fits_straight_line(robot):
            raise RemoraError(
                f"{self.name} of {robot.name!r} is compiled as loops over its {len(robot.bodies)} "
                "bodies; graphs, derivatives, C and object files are made of a straight line, for "
                f"at most {LARGEST_STRAIGHT_LINE}"
            )
        if self.changes != Table.changes if self.tables is None else self.tables != tables_digest():
            raise RemoraError(
                f"a row of a table (FORMULATIONS, JOINTS) was replaced after {self.name} was "
                "compiled: compile it again"
            )
        for name, value in zip(self.parameters, arrays[len(self.arguments) :], strict=True):
            robot = parameter(robot, name)[1](robot, value)
        return self.function(robot, **dict(zip(self.arguments, arrays, strict=False)), **self.fixed)

    def identity_parts(self) -> tuple[Any, ...]:
        """Return what it is by value: how often tables were changed before is no part of it."""
        given = (self.function, self.robot, self.name, self.arguments, self.fixed, self.parameters)
        return *given, self.tables

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: counts of changes mean nothing elsewhere."""
        return {**vars(self), "changes": -1}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what a pickle holds."""
        for name, value in state.items():
            object.__setattr__(self, name, value)
