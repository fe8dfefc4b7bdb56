"""A function of a robot as a function of arrays alone, from which a kernel is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remora.algebra.array_ops import Array
from remora.dynamics.kernels.cache_keys import tables_digest
from remora.dynamics.kernels.parameters import parameter
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.errors import RemoraError
from remora.identity.table import Table
from remora.model.robot import Robot


@dataclass(frozen=True, eq=False)
class SpecializedFunction:
    """A function with a robot and other values compiled in.

    It is valid only for the table rows (formulations, joint types) that it was made with: a graph
    traced later must match the machine code.

    Attributes:
        function: f(robot, ...) on arrays.
        robot: the robot.
        name: of the function.
        arguments: names of the arrays it takes.
        fixed: values of its other parameters.
        parameters: robot parameters that are additional arrays, after the others.
        rolled: whether its kernel is made of loops.
        tables: digest of the rows it was made with; None if they have none.
        changes: value of the table change counter at that time; -1: from another process.
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
                f"a row of a table (FORMULATIONS, JOINT_TYPES) was replaced after {self.name} was "
                "compiled: compile it again"
            )
        for name, value in zip(self.parameters, arrays[len(self.arguments) :], strict=True):
            robot = parameter(robot, name)[1](robot, value)
        return self.function(robot, **dict(zip(self.arguments, arrays, strict=False)), **self.fixed)

    def identity_parts(self) -> tuple[Any, ...]:
        """Return its identity by value, without the table change counter."""
        given = (self.function, self.robot, self.name, self.arguments, self.fixed, self.parameters)
        return *given, self.tables

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the change counter of this process."""
        return {**vars(self), "changes": -1}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state from a pickle."""
        for name, value in state.items():
            object.__setattr__(self, name, value)
