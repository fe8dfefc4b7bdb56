"""Numbers that constraints took over when they latched, as arguments of the kernels of a run.

They differ from capture to capture. Compiled in, each capture would need kernels of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.system import System
from remora.dynamics.kernels.kernel_memory import kernel
from remora.model.robot import Robot
from remora.simulation.recording.constraint_switch import ConstraintSwitch


class LatchedNumbers(NamedTuple):
    """What kernels of a phase are compiled for, and the numbers that they take as arguments.

    Attributes:
        robot: the robot in the phase, with the numbers of constraints before they latched.
        names: parameters that latched, `constraint.field`, see `parameter`.
        values: their numbers, in the same order.
    """

    robot: Robot
    names: tuple[str, ...] = ()
    values: tuple[Array, ...] = ()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes by name."""
        return {name: x.shape for name, x in zip(self.names, self.values, strict=True)}

    def kernel(
        self,
        function: Callable[..., Any],
        arguments: Sequence[str],
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        **fixed: Any,
    ) -> Callable[..., Any]:
        """Return a function of the robot with its latched constraints, compiled; see `kernel`."""
        made = kernel(function, self.robot, arguments, shapes, self.names, **fixed)
        return self.bound(made)

    def bound(self, made: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel whose last arguments are the latched numbers without these arguments."""
        values = self.values
        return (lambda *arrays: made(*arrays, *values)) if values else made

    def open_system(self, system: System) -> System:
        """Return a system that acts on `robot`."""
        return system.acting_on(self.robot)


def latched_in_phase(
    robot: Robot, switches: Sequence[ConstraintSwitch], phase: int, seen: bool
) -> LatchedNumbers:
    """Return what kernels of a phase are compiled for.

    Args:
        robot: the robot at the start of the run.
        switches: all switches, in order.
        phase: index of the phase.
        seen: whether components see the robot: they may read constraints that were released.
    """
    if not switches:
        return LatchedNumbers(robot)
    numbers: dict[str, Array] = {}
    active = {c.name: c.active for c in robot.constraints}
    for switch in switches:
        if switch.phase > phase:
            continue
        active |= dict.fromkeys(switch.activated, True) | dict.fromkeys(switch.released, False)
        for name, own in switch.latched.items():
            for key, value in own.items():
                numbers[f"{name}.{key}"] = np.array(value, dtype=float, order="C")
    numbers = {n: x for n, x in numbers.items() if seen or active[n.rpartition(".")[0]]}
    acting = tuple(name for name, on in active.items() if on)
    return LatchedNumbers(_with_acting(robot, acting), tuple(numbers), tuple(numbers.values()))


@functools.lru_cache(maxsize=64)
def _with_acting(robot: Robot, names: tuple[str, ...]) -> Robot:
    """Return the robot with these constraints active: the same object from run to run."""
    on = [c.name for c in robot.constraints if c.name in names and not c.active]
    off = [c.name for c in robot.constraints if c.name not in names and c.active]
    return robot.with_active(on=on, off=off) if on or off else robot
