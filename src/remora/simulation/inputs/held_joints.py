"""Held joints: joints that are prescribed or locked during a phase."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue
from remora.model.joint_types import JointType
from remora.model.robot import Joint
from remora.simulation.inputs.profiles import Motion

#: Tolerance of the norm of a prescribed quaternion.
UNIT = 1e-9


class HeldJoint(NamedTuple):
    """A joint that is prescribed or locked.

    Attributes:
        joint: the joint.
        row: its joint type.
        motion: its motion.
    """

    joint: Joint
    row: JointType
    motion: Motion

    def checked(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return q, v and v̇, or raise if they are not a motion of the joint.

        Each must have the right number of finite values, and a quaternion unit norm: an error there
        would scale the inertia of everything that the joint carries.
        """
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
        if self.row.quaternion is not None:
            self._check_unit(q)
        return q, v, a

    def _check_unit(self, q: Array) -> None:
        r = q[self.row.quaternion]
        length = math.sqrt(float(r @ r))
        if abs(length - 1.0) > UNIT:
            raise InvalidValue(
                f"q of the prescribed joint {self.joint.name!r} must be a unit quaternion, it is "
                f"{r.tolist()}, of length {length:.9g}"
            )
        if self.row.dual is not None:
            d = q[self.row.dual]
            off = float(r @ d)
            if abs(off) > UNIT * max(1.0, math.sqrt(float(d @ d))):
                raise InvalidValue(
                    f"q of the prescribed joint {self.joint.name!r} must be a unit dual "
                    f"quaternion, its dual part {d.tolist()} is not orthogonal to its real part "
                    f"{r.tolist()} "
                    f"(their product is {off:.3g})"
                )
