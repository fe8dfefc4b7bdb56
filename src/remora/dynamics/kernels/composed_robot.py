"""Robots whose forward dynamics is composed: of modules that are compiled one by one, for instance.

Kinematics, states and passive forces are those of any robot; `rm.simulate` integrates it as one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from remora.algebra.array_ops import Array
from remora.model.robot import Robot

#: (q, v, tau) of one state -> vdot.
Accelerations = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True, eq=False)
class ComposedRobot(Robot):
    """A robot for runs, whose accelerations a function computes; only this function knows docks.

    Attributes:
        accelerations: the function.
    """

    accelerations: Accelerations | None = None

    def forward_dynamics(self, q: Array, v: Array, tau: Array, **options: Any) -> Array:
        """Return vdot `(nv,)` of one state, as a kernel of forward dynamics does."""
        assert self.accelerations is not None
        return self.accelerations(q, v, tau)


def composed_robot(robot: Robot, accelerations: Accelerations) -> ComposedRobot:
    """Return a robot whose accelerations a function computes."""
    own = {f.name: getattr(robot, f.name) for f in fields(robot) if f.init}
    return ComposedRobot(**own, accelerations=accelerations)
