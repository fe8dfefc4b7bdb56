"""Strict reading of URDF elements: which elements are allowed where, and their numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from remora.model.arguments import LARGEST_NUMBER
from remora.model.building.builder import Builder
from remora.model.building.validate import Place
from remora.model.formats.bounded_xml import Element, shown

#: Maximum length of the name of a link or joint.
MAX_NAME = 200

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class _Shape:
    """The allowed content of an element: attributes, single children, repeated children."""

    attributes: frozenset[str]
    once: frozenset[str]
    many: frozenset[str]


def _shape(attributes: str = "", once: str = "", many: str = "") -> _Shape:
    return _Shape(*(frozenset(words.split()) for words in (attributes, once, many)))


_SHAPES = {
    "robot": _shape("name version", many="link joint loop_joint material"),
    "link": _shape("name type", once="inertial", many="visual collision contact material"),
    "inertial": _shape(once="origin mass inertia"),
    "origin": _shape("xyz rpy"),
    "mass": _shape("value"),
    "inertia": _shape("ixx ixy ixz iyy iyz izz"),
    "joint": _shape(
        "name type",
        once="origin parent child axis limit mimic dynamics safety_controller calibration",
    ),
    "loop_joint": _shape("name type active pitch length", once="parent child axis axis2"),
    "loop end": _shape("link", once="origin"),
    "parent": _shape("link"),
    "child": _shape("link"),
    "axis": _shape("xyz"),
    "axis2": _shape("xyz"),
    "limit": _shape("lower upper velocity effort acceleration deceleration jerk"),
    "dynamics": _shape("damping friction"),
    "mimic": _shape("joint multiplier offset"),
    "visual": _shape("name", once="origin geometry material"),
    "geometry": _shape(once="box cylinder sphere capsule mesh"),
    "box": _shape("size"),
    "cylinder": _shape("radius length"),
    "capsule": _shape("radius length"),
    "sphere": _shape("radius"),
    "mesh": _shape("filename scale"),
    "material": _shape("name", once="color texture"),
    "color": _shape("rgba"),
}
#: Elements that have only attributes.
_LEAVES = frozenset(tag for tag, shape in _SHAPES.items() if not shape.once | shape.many)
#: Elements that may have an origin inside a `<loop_joint>`.
_ENDS = ("parent", "child")
#: Elements of other tools, irrelevant to the motion.
EXTENSIONS = frozenset(("gazebo", "transmission", "sensor", "ros2_control", "plugin"))


def inside(owner: Place, element: Element) -> Place:
    """Return the location of an element within another: `<mass> in <link name="arm">`."""
    return Place(f"{element.label} in {owner.element}", element.line)


class ElementReader:
    """Reads elements and reports faults and warnings to the builder.

    The argument `owner` is the location of the enclosing element.

    Attributes:
        faults: number of faults so far.
    """

    def __init__(self, builder: Builder) -> None:
        """Report to `builder`."""
        self._builder = builder
        self._consequence: str | None = None
        self.faults = 0

    @contextmanager
    def cosmetic(self, consequence: str) -> Generator[Callable[[], bool]]:
        """Treat faults as warnings in this context: faulty visuals never refuse a robot.

        Args:
            consequence: what is omitted, for the warnings.

        Yields:
            A function that tells whether there was any fault.
        """
        before, self._consequence = self.faults, consequence
        try:
            yield lambda: self.faults > before
        finally:
            self._consequence = None

    def parts(self, element: Element, place: Place, like: str | None = None) -> dict[str, Element]:
        """Return the children allowed at most once, and report unexpected content.

        Args:
            element: the element.
            place: its location.
            like: the kind of element if its tag does not say it: `loop end`.
        """
        shape = _SHAPES[like or element.tag]
        for key in element.attributes:
            if key not in shape.attributes and key != "xmlns" and ":" not in key:
                self.warn(place, f"unknown attribute {shown(key)!r}; ignored")
        found: dict[str, Element] = {}
        for child in element.children:
            if child.tag == "axis" and child.attributes == found.get("axis", element).attributes:
                self.warn(inside(place, child), "is given twice, with the same numbers")
            elif child.tag in found:
                first = found[child.tag].line
                self.fault(inside(place, child), f"is given twice; the first is on line {first}")
            elif child.tag in shape.once:
                found[child.tag] = child
                if child.tag in _LEAVES and not (
                    element.tag == "loop_joint" and child.tag in _ENDS
                ):
                    self.parts(child, inside(place, child))
            elif child.tag not in shape.many | EXTENSIONS and ":" not in child.tag:
                known = ", ".join(sorted(shape.once | shape.many)) or "none"
                self.warn(inside(place, child), f"unknown element; ignored (known here: {known})")
        return found

    def needed(self, parts: dict[str, Element], tag: str, place: Place) -> Element | None:
        """Return a required child."""
        element = parts.get(tag)
        if element is None:
            self.fault(place, f"has no <{tag}>")
        return element

    def name(self, element: Element, key: str, owner: Place) -> str:
        """Return a name, or an empty text if missing (the builder reports missing own names)."""
        name = element.attributes.get(key, "")
        if len(name) > MAX_NAME:
            self.fault(owner, f"{key} is longer than {MAX_NAME} characters")
        if not name and key != "name":
            self.fault(inside(owner, element), f"has no attribute {key}")
        return name[:MAX_NAME]

    def number(
        self, element: Element, key: str, owner: Place, default: float | None = None
    ) -> float:
        """Return the number of an attribute; the default, or one if faulty."""
        return self.numbers(element, key, owner, 1, None if default is None else (default,))[0]

    def numbers(
        self,
        element: Element,
        key: str,
        owner: Place,
        count: int,
        default: Sequence[float] | None = None,
    ) -> Sequence[float]:
        """Return the numbers of an attribute; the default, or ones if faulty.

        Ones do not cause a second fault in the builder, as a zero mass or axis would.
        """
        text = element.attributes.get(key)
        if text is None and default is not None:
            return default
        reason = f"has no attribute {key}"
        if text is not None:
            words = text.split()
            listed = [word.removesuffix(",") for word in words[:-1]] + words[-1:]
            reason = why_not_numbers(listed, count)
            if reason is None:
                if listed != words:
                    self.warn(inside(owner, element), f"{key} parts its numbers by commas")
                words = listed
                return [float(word) for word in words]
            reason = f'{key}="{shown(text)}" {reason}'
        self.fault(inside(owner, element), reason)
        return default or [1.0] * count

    def fault(self, place: Place, reason: str) -> None:
        """Report a fault; in a `cosmetic` context, a warning."""
        self.faults += 1
        if self._consequence is None:
            self._builder.check.fault(place, reason)
        else:
            self._builder.warn(place, f"{reason}; {self._consequence}")

    def warn(self, place: Place, reason: str) -> None:
        """Report a warning."""
        self._builder.warn(place, reason)


def why_not_numbers(words: Sequence[str], count: int) -> str | None:
    """Return what is wrong with words that should be `count` finite numbers, or None."""
    if any("," in word for word in words):
        return "holds a comma; decimals take a point, and spaces part numbers"
    if len(words) != count:
        return f"must be {count} number{'s' * (count > 1)}, not {len(words)}"
    if any(_NOT_FINITE.fullmatch(word) for word in words):
        return "is not finite"
    if not all(_NUMBER.fullmatch(word) for word in words):
        return "is not a number" if count == 1 else "holds something that is not a number"
    if any(abs(float(word)) > LARGEST_NUMBER for word in words):
        return f"is too large; numbers up to {LARGEST_NUMBER:g} are allowed"
    return None
