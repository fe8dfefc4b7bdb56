"""Constraints: what closes loops of the tree, connects separate trees, or couples coordinates.

A constraint acts beside the joints of the tree. It is a joint of any type but `free` between two
bodies (or a body and the inertial frame), a rod of fixed length between two points, or a gear
between the coordinates of two joints. It can be switched on and off.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue
from remora.model.named import Named
from remora.model.value_equality import ByValue

#: Kinds of constraints that are not types of joints.
ROD, GEAR = "rod", "gear"
#: The numbers that only some kinds have; all others keep the defaults of the field table.
NUMBERS_OF_KIND = {"helical": ("pitch",), ROD: ("length",), GEAR: ("ratio", "offset")}


@dataclass(frozen=True, eq=False)
class Constraint(ByValue):
    """A constraint between two bodies, or between the coordinates of two joints.

    With x the pose of the child's constraint frame in the parent's constraint frame, a constraint
    of a joint type requires x = pose(c) for some coordinates c of that type, as `JOINT_TYPES`
    defines it; a rod requires `|p(x)| = length`; a gear requires
    q_child = ratio · q_parent + offset.

    Attributes:
        name: unique among constraints.
        kind: a key of `JOINT_TYPES` except `free`, or `rod` or `gear`.
        parent: index of a body, -1 for the inertial frame; gear: index of the leading joint.
        child: index of another body, -1 for the inertial frame; gear: index of the driven joint.
        parent_placement: pose of the constraint frame in the parent's frame, `(8,)`.
        child_placement: pose of the constraint frame in the child's frame, `(8,)`.
        axes: the unit axes of the allowed motion in the parent's constraint frame, `(k, 3)`.
        pitch: helical: m per rad.
        length: rod: distance between the origins of both frames, m.
        ratio: gear: factor on the leading coordinate.
        offset: gear: rad or m.
        active: whether it acts; an inactive constraint is only known by its name.
    """

    part: ClassVar[str] = "constraint"
    name: str
    kind: str
    parent: int
    child: int
    parent_placement: Array
    child_placement: Array
    axes: Array
    pitch: Array
    length: Array
    ratio: Array
    offset: Array
    active: bool = True

    def __repr__(self) -> str:
        """Return name, kind, both ends and whether it is active."""
        ends = f"parent={self.parent}, child={self.child}"
        return f"Constraint({self.name!r}, {self.kind}, {ends}{'' if self.active else ', off'})"


def switched(
    constraints: Named[Constraint], on: Iterable[str], off: Iterable[str]
) -> list[Constraint]:
    """Return the constraints with some switched on and some switched off, by name.

    Raises:
        UnknownName: for a name that is not a constraint; the message lists the known ones.
        InvalidValue: for a constraint that is already on or off, or named twice.
    """
    result = list(constraints)
    changed: set[int] = set()
    for names, active in ((on, True), (off, False)):
        for name in (names,) if isinstance(names, str) else names:
            i = constraints.position(name)
            constraint, word = result[i], "on" if active else "off"
            if i in changed:
                raise InvalidValue(f"constraint {constraint.name!r} is named twice")
            if constraint.active == active:
                raise InvalidValue(f"constraint {constraint.name!r} is already {word}")
            changed.add(i)
            result[i] = dataclasses.replace(constraint, active=active)
    return result
