"""A joint that is prescribed or locked during a phase."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from remora.algebra.namespace import Array
from remora.errors import InvalidValue
from remora.model.joint_types import Kind
from remora.model.robot import Joint
from remora.simulation.inputs.profiles import Motion


class HeldJoint(NamedTuple):
    """A joint that is prescribed or locked.

    Attributes:
        joint: the joint.
        row: its kind.
        motion: how it moves.
    """

    joint: Joint
    row: Kind
    motion: Motion

    def checked(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return q, v and v̇, or raise where they are not finite or too many or few."""
        for what, x, size in (
            ("q", q, self.row.nq),
            ("v", v, self.row.nv),
            ("vdot", a, self.row.nv),
        ):
            if x.size == size == 1 and math.isfinite(x.item()):
                continue
            if x.shape != (size,) or not np.all(np.isfinite(x)):
                shown = "not finite" if x.shape == (size,) else f"of shape {x.shape}"
                raise InvalidValue(
                    f"{what} of the prescribed joint {self.joint.name!r} must be {size} numbers, "
                    f"it is {shown}"
                )
        return q, v, a
