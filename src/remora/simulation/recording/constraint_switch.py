"""Switches of constraints during a run: what was captured and released, and with which impulse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.robot import Robot

Numbers = TypeVar("Numbers", float, Array)


@dataclass(frozen=True, eq=False)
class Switch(Generic[Numbers]):
    """Constraints that were switched on and off at the start of a phase.

    Its attributes are described in `ConstraintSwitch`.
    """

    t: Numbers
    phase: int
    activated: tuple[str, ...]
    released: tuple[str, ...]
    impulses: Mapping[str, Array]
    energy_loss: Numbers
    separation_work: Numbers
    latched: Mapping[str, Mapping[str, Array]]

    def description(self) -> dict[str, Any]:
        """Return what is no number, as JSON-compatible data."""
        latched = [[name, key] for name, numbers in self.latched.items() for key in numbers]
        return {
            "phase": self.phase, "activated": list(self.activated),
            "released": list(self.released), "impulses": list(self.impulses), "latched": latched,
        }  # fmt: skip

    def arrays(self) -> list[Array]:
        """Return all numbers as arrays, in a fixed order."""
        latched = [x for numbers in self.latched.values() for x in numbers.values()]
        numbers = (self.t, self.energy_loss, self.separation_work)
        return [np.asarray(x) for x in (*numbers, *self.impulses.values(), *latched)]

    @classmethod
    def of(cls, description: Mapping[str, Any], arrays: Sequence[Any]) -> Self:
        """Return the switch with this `description` and these `arrays`."""
        t, lost, work = arrays[:3]
        names = [str(name) for name in description["impulses"]]
        impulses = dict(zip(names, arrays[3:], strict=False))
        latched: dict[str, dict[str, Array]] = {}
        for (name, key), x in zip(description["latched"], arrays[3 + len(names) :], strict=True):
            latched.setdefault(str(name), {})[str(key)] = x
        on, off = (tuple(map(str, description[which])) for which in ("activated", "released"))
        return cls(t, int(description["phase"]), on, off, impulses, lost, work, latched)


@dataclass(frozen=True, eq=False)
class BatchSwitch(Switch[Array]):
    """Constraints that were switched at the start of a phase, in each run at its own time.

    Its numbers are those of `ConstraintSwitch`, as arrays with the batch shape `(...)` in front;
    NaN where a run did not come to the phase.
    """

    def shaped(self, batch: tuple[int, ...]) -> BatchSwitch:
        """Return it with the batch shape of the runs in front of all arrays."""
        parts = [x.reshape((*batch, *x.shape[1:])) for x in self.arrays()]
        return BatchSwitch.of(self.description(), parts)


@dataclass(frozen=True, eq=False)
class ConstraintSwitch(Switch[float]):
    """Constraints that were switched on and off at the start of a phase of a run.

    Attributes:
        t: time, s.
        phase: index of the phase.
        activated: names of the constraints that were switched on.
        released: names of the constraints that were switched off.
        impulses: by the name of a constraint that acted: impulse [f, τ] on its child, in the axes
            of the constraint's frame on the child, about its origin, `(6,)`, N s and N m s; of a
            gear `(1,)`.
        energy_loss: kinetic energy lost in a capture, J.
        separation_work: kinetic energy gained in a separation, J.
        latched: numbers that constraints took over at that moment, by constraint and field.
    """

    activated: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    impulses: Mapping[str, Array] = field(default_factory=dict[str, Array])
    energy_loss: float = 0.0
    separation_work: float = 0.0
    latched: Mapping[str, Mapping[str, Array]] = field(
        default_factory=dict[str, Mapping[str, Array]]
    )

    def __str__(self) -> str:
        """Return what was switched, with the sizes of the impulses and the energies."""
        parts: list[str] = []
        for word, names in (("on", self.activated), ("off", self.released)):
            if names:
                shown = [f"{x} (latched)" if x in self.latched else x for x in names]
                parts.append(f"{word}: {', '.join(shown)}")
        for name, impulse in self.impulses.items():
            if np.any(impulse):
                parts.append(f"impulse of {name} {impulse_text(impulse)}")
        if self.energy_loss:
            parts.append(f"{self.energy_loss:.4g} J lost")
        if self.separation_work:
            parts.append(f"{self.separation_work:.4g} J by the separation")
        return "; ".join(parts)

    def applied(self, robot: Robot) -> Robot:
        """Return the robot after the switch."""
        robot = robot.with_active(on=self.activated, off=self.released)
        for name, numbers in self.latched.items():
            robot = robot.replace_constraint(name, **numbers)
        return robot

    def plain(self) -> dict[str, Any]:
        """Return it as JSON-compatible data, exact to the last bit of a float."""
        return {**self.description(), "numbers": [x.tolist() for x in self.arrays()]}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> ConstraintSwitch:
        """Return the switch of data written by `plain`."""
        numbers = [np.array(x, dtype=float) for x in data["numbers"]]
        return cls.of(data, [*map(float, numbers[:3]), *numbers[3:]])


def impulse_text(impulse: Array) -> str:
    """Return the magnitudes of an impulse [f, τ] `(6,)`, or that of a gear `(1,)`, with units."""
    if impulse.size == 1:
        return f"{float(impulse[0]):.4g} N m s or N s"
    force, torque = np.linalg.norm(impulse[:3]), np.linalg.norm(impulse[3:])
    return f"{force:.4g} N s, {torque:.4g} N m s"


def robot_in_phase(robot: Robot, switches: Sequence[ConstraintSwitch], phase: int) -> Robot:
    """Return the robot with the constraints that act in a phase.

    Args:
        robot: the robot at the start of the run.
        switches: all switches, in order.
        phase: index of the phase.
    """
    for switch in switches:
        if switch.phase <= phase:
            robot = switch.applied(robot)
    return robot
