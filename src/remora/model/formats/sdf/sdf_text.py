"""Strict reading of SDF elements, whose values are the text of child elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array
from remora.model.building.builder import Builder
from remora.model.building.validate import Place
from remora.model.formats.bounded_xml import Element, shown
from remora.model.formats.urdf.urdf_text import MAX_NAME, ElementReader, why_not_numbers

#: SDF's values for "unlimited".
_UNLIMITED = 1e15
#: Tolerance on the length of a quaternion in a pose; it is normalized.
_UNIT = 1e-2


class SdfText(ElementReader):
    """Reads elements whose values are text; see `ElementReader` for faults and warnings."""

    def __init__(self, builder: Builder) -> None:
        """Report to `builder`."""
        super().__init__(builder)
        #: Suffix of places: the file name, for included files.
        self.inside_file = ""

    def at(self, element: Element, owner: Place | None = None) -> Place:
        """Return the location of an element within its enclosing element."""
        label = f"{element.label} in {owner.element}" if owner else element.label + self.inside_file
        return Place(label, element.line)

    def child(self, element: Element, tag: str, owner: Place) -> Element | None:
        """Return the child of that tag; several are a fault."""
        found = [child for child in element.children if child.tag == tag]
        if len(found) > 1:
            place = self.at(found[1], owner)
            self.fault(place, f"is given twice; the first is on line {found[0].line}")
        return found[0] if found else None

    def word(self, element: Element, tag: str, owner: Place) -> str:
        """Return the text of a child, empty if there is none."""
        child = self.child(element, tag, owner)
        return "" if child is None else child.text[:MAX_NAME]

    def flag(self, element: Element, tag: str, owner: Place) -> bool:
        """Return whether a child has the value true."""
        return self.word(element, tag, owner).lower() in ("true", "1")

    def values(
        self, element: Element, tag: str, owner: Place, count: int, default: Sequence[float] | None
    ) -> Sequence[float]:
        """Return the numbers of a child; the default, or ones if faulty."""
        child = self.child(element, tag, owner)
        if child is None:
            if default is None:
                self.fault(owner, f"has no <{tag}>")
            return default or [1.0] * count
        reason = why_not_numbers(child.text.split(), count)
        if reason is None:
            return [float(word) for word in child.text.split()]
        self.fault(self.at(child, owner), f"{shown(child.text)!r} {reason}")
        return default or [1.0] * count

    def value(self, element: Element, tag: str, owner: Place, default: float | None) -> float:
        """Return the number of a child."""
        return self.values(element, tag, owner, 1, None if default is None else (default,))[0]

    def bound(self, element: Element, tag: str, owner: Place, unlimited: float) -> float:
        """Return a limit, which may be infinite as text or as a huge number."""
        text = self.word(element, tag, owner).lower()
        if text.lstrip("+-") in ("inf", "infinity"):
            return -math.inf if text.startswith("-") else math.inf
        value = self.value(element, tag, owner, unlimited if math.isfinite(unlimited) else 1e16)
        if abs(value) >= _UNLIMITED:
            return unlimited if not math.isfinite(unlimited) else math.copysign(math.inf, value)
        return value

    def pose(self, element: Element, owner: Place) -> tuple[Array, str]:
        """Return the pose in an element's `<pose>`, `(8,)`, and the frame it is relative to."""
        child = self.child(element, "pose", owner)
        if child is None or not child.text:
            here = dual_quaternion.identity()
            return here, "" if child is None else _relative_to(child)
        place, given = self.at(child, owner), child.attributes
        form = given.get("rotation_format", "euler_rpy")
        if form not in ("euler_rpy", "quat_xyzw"):
            self.fault(place, f"rotation_format {shown(form)!r}; known: euler_rpy, quat_xyzw")
            return dual_quaternion.identity(), _relative_to(child)
        count = 7 if form == "quat_xyzw" else 6
        words = child.text.split()
        reason = why_not_numbers(words, count)
        if reason is not None:
            self.fault(place, f"{shown(child.text)!r} {reason}")
            return dual_quaternion.identity(), _relative_to(child)
        numbers = np.array([float(word) for word in words])
        if count == 7:
            r = np.roll(numbers[3:], 1)
            if abs(float(np.linalg.norm(r)) - 1.0) > _UNIT:
                self.fault(place, f"{shown(child.text)!r}: its quaternion is not of unit length")
                return dual_quaternion.identity(), _relative_to(child)
            return pose.from_parts(quaternion.normalize(r), numbers[:3]), _relative_to(child)
        angles = numbers[3:]
        if given.get("degrees", "").lower() in ("true", "1"):
            angles = np.radians(angles)
        return pose.from_xyz_rpy(numbers[:3], angles), _relative_to(child)


def _relative_to(child: Element) -> str:
    return child.attributes.get("relative_to", child.attributes.get("frame", ""))[:MAX_NAME]
