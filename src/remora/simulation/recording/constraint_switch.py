"""Switches of constraints during a run: what was captured and released, and with which impulse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.robot import Robot


@dataclass(frozen=True, eq=False)
class ConstraintSwitch:
    """Constraints that were switched on and off at the start of a phase.

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

    t: float
    phase: int
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
                told = [f"{x} (latched)" if x in self.latched else x for x in names]
                parts.append(f"{word}: {', '.join(told)}")
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
        return {
            "t": self.t,
            "phase": self.phase,
            "activated": list(self.activated),
            "released": list(self.released),
            "impulses": {name: x.tolist() for name, x in self.impulses.items()},
            "energy_loss": self.energy_loss,
            "separation_work": self.separation_work,
            "latched": {
                name: {key: np.asarray(x).tolist() for key, x in numbers.items()}
                for name, numbers in self.latched.items()
            },
        }


def impulse_text(impulse: Array) -> str:
    """Return the magnitudes of an impulse [f, τ] `(6,)`, or that of a gear `(1,)`, with units."""
    if impulse.size == 1:
        return f"{float(impulse[0]):.4g} N m s or N s"
    force, torque = np.linalg.norm(impulse[:3]), np.linalg.norm(impulse[3:])
    return f"{force:.4g} N s, {torque:.4g} N m s"


def switch_from_plain(data: Mapping[str, Any]) -> ConstraintSwitch:
    """Return the switch of data written by `ConstraintSwitch.plain`."""
    return ConstraintSwitch(
        float(data["t"]),
        int(data["phase"]),
        tuple(str(name) for name in data["activated"]),
        tuple(str(name) for name in data["released"]),
        {str(name): np.array(x, dtype=float) for name, x in data["impulses"].items()},
        float(data["energy_loss"]),
        float(data["separation_work"]),
        {
            str(name): {str(key): np.array(x, dtype=float) for key, x in numbers.items()}
            for name, numbers in data["latched"].items()
        },
    )


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
