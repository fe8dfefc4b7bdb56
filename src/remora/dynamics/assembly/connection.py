"""Connections of an assembly: which subsystem is mounted where on which other."""

from __future__ import annotations

from dataclasses import dataclass

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue
from remora.model.numbers import UNIT_TOLERANCE, finite, frozen, pose_error


@dataclass(frozen=True, eq=False, init=False)
class Connection:
    """The base of `child` is mounted on the connection point `at` of `parent` [SA24, section II].

    Attributes:
        child: name of the succeeding subsystem, j.
        parent: name of the preceding subsystem, i.
        at: the connection point b_ij: a body or frame of a robot, a point of another subsystem.
        mount: the connection point a_j: a frame of the child that does not move in its base
            frame; None for the base frame itself.
        placement: pose of a_j in the frame b_ij, `(8,)`; the identity by default.
    """

    child: str
    parent: str
    at: str
    mount: str | None
    placement: Array

    def __init__(
        self,
        child: str,
        parent: str,
        at: str,
        mount: str | None = None,
        placement: ArrayLike | None = None,
    ) -> None:
        """Check the pose and store the names."""
        x = dual_quaternion.identity() if placement is None else placement
        x = finite(f"placement of the connection of {child!r}", x, 8)
        if x.ndim != 1 or pose_error(x) > UNIT_TOLERANCE:
            raise InvalidValue(
                f"placement of the connection of {child!r} is not one unit dual quaternion (8,)"
            )
        for name, value in (
            ("child", child), ("parent", parent), ("at", at), ("mount", mount),
            ("placement", frozen(x)),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def identity_parts(self) -> tuple[object, ...]:
        """Return its identity by value."""
        return self.child, self.parent, self.at, self.mount, self.placement.tobytes()

    def __eq__(self, other: object) -> bool:
        """Tell whether two connections are the same by value."""
        if not isinstance(other, Connection):
            return NotImplemented
        return self.identity_parts() == other.identity_parts()

    def __hash__(self) -> int:
        """Return a hash that equal connections share."""
        return hash(self.identity_parts())

    def __repr__(self) -> str:
        """Return child, parent and the points."""
        mount = f", mount={self.mount!r}" if self.mount else ""
        return f"Connection({self.child!r} on {self.parent!r} at {self.at!r}{mount})"
