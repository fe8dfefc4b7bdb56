"""Maps of YAML robot files, read by key: texts, references, flags, numbers, angles and poses."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.model.building.joint_kinds import kind_named
from remora.model.building.validate import Checker, Place
from remora.model.degrees import Degrees, in_degrees
from remora.model.formats.yaml.yaml_tree import YamlNode, shown
from remora.model.joint_types import JOINT_TYPES

#: Maximum length of a name or path.
MAX_TEXT = 1000
#: The keys of a pose.
POSE = ("placement", "xyz", "rpy")
#: Keys whose numbers may be angles, and the unit of degrees there.
DEGREES = {
    **dict.fromkeys(("rpy", "parent_rpy", "child_rpy"), "deg"),
    **dict.fromkeys(("lower", "upper", "spring_reference", "offset"), "deg"),
    "velocity": "deg/s",
}


class YamlMap:
    """The entries of a map, read by key; each fault names the line of its key."""

    def __init__(
        self, check: Checker, node: YamlNode, element: str, known: tuple[str, ...], what: str = ""
    ) -> None:
        """Wrap `node`, reported as `element` until its own name as a `what` is known."""
        self.check = check
        self.element = element
        self._line = node.line
        self._entries = node.value if isinstance(node.value, dict) else {}
        if not isinstance(node.value, dict):
            reason = f"must be a map with the keys {', '.join(known)}, not {shown(node)}"
            check.fault(self.place(), reason)
        own = self._entries.get("name")
        if what and own is not None and isinstance(own.value, str):
            self.element = f"{what} {own.value[:60]!r}"
        for key in self._entries:
            if key not in known:
                reason = f"unknown key {key[:60]!r}; known: {', '.join(known)}"
                check.fault(self.place(key), reason)

    def place(self, key: str | None = None) -> Place:
        """Return the location of the map, or of one of its keys."""
        entry = self._entries.get(key) if key is not None else None
        return Place(self.element, self._line if entry is None else entry.line)

    def node(self, key: str) -> YamlNode | None:
        """Return the value of a key, or None if it is absent."""
        return self._entries.get(key)

    def items(self, key: str) -> list[YamlNode]:
        """Return the items of a list; empty if absent."""
        node = self.node(key)
        if node is None:
            return []
        if isinstance(node.value, list):
            return node.value
        self.check.fault(self.place(key), f"{key} must be a list, not {shown(node)}")
        return []

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text, or the default; without a default a missing text is a fault."""
        node = self.node(key)
        if node is None:
            if default is None:
                self.check.fault(self.place(), f"{key} is missing")
        elif not isinstance(node.value, str):
            reason = f"{key} must be text, not {shown(node)}; put it in quotes"
            self.check.fault(self.place(key), reason)
        elif len(node.value) > MAX_TEXT:
            self.check.fault(self.place(key), f"{key} is longer than {MAX_TEXT} characters")
        elif not node.value and default is None:
            self.check.fault(self.place(key), f"{key} is empty")
        else:
            return node.value
        return default or ""

    def name(self) -> str:
        """Return the name, or a placeholder (and a fault) so that other faults are found too."""
        return self.text("name") or self.element

    def reference(self, key: str) -> str | None:
        """Return the name of a body, or None for null: the inertial frame."""
        node = self.node(key)
        if node is None:
            reason = f"{key} is missing: name a body, or null for the inertial frame"
            self.check.fault(self.place(), reason)
        return None if node is None or node.value is None else self.text(key)

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false, or the default."""
        node = self.node(key)
        if node is None:
            return default
        if isinstance(node.value, bool):
            return node.value
        self.check.fault(self.place(key), f"{key} must be true or false, not {shown(node)}")
        return default

    def numbers(self, key: str, null: float | None = None) -> Any:
        """Return a number or nested lists of numbers; None if absent or faulty."""
        node = self.node(key)
        if node is None:
            return None
        unit = DEGREES.get(key)
        numbers, wrong = _plain(node, null, unit)
        if wrong is None:
            return numbers
        wanted = "finite numbers" + (f", or degrees such as '30 {unit}'" if unit else "")
        self.check.fault(self.place(key), f"{key} must be {wanted}, not {shown(wrong)}")
        return None

    def check_degrees(self, key: str, value: Any, joint: str, kind: str) -> None:
        """Record a fault if a coordinate in metres is given in degrees.

        Args:
            key: which number of this map.
            value: its value, one number or one per degree of freedom.
            joint: name of the joint.
            kind: type of the joint.
        """
        known = kind_named(kind)
        if known is None:  # already a fault
            return
        freedoms = JOINT_TYPES[known].freedoms
        each: list[Any] = [*value] if isinstance(value, list) else [value] * len(freedoms)
        for number, freedom in zip(each, freedoms, strict=False):  # the builder counts them
            if isinstance(number, Degrees) and not freedom.angular:
                reason = f"{key} is in degrees, but joint {joint[:60]!r} ({kind}) moves by metres"
                self.check.fault(self.place(key), reason)
                return

    def given(self, *keys: str) -> dict[str, Any]:
        """Return the numbers of those keys that are present."""
        found = {key: self.numbers(key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def pose(self, prefix: str = "") -> dict[str, Any]:
        """Return the pose's keys; `placement` excludes `xyz` and `rpy`."""
        found = self.given(*(f"{prefix}{key}" for key in POSE))
        placement = f"{prefix}placement"
        if placement in found and len(found) > 1:
            reason = f"gives a {placement} and {prefix}xyz or {prefix}rpy; give one of them"
            self.check.fault(self.place(placement), reason)
        return found


def _plain(
    node: YamlNode, null: float | None, unit: str | None = None
) -> tuple[Any, YamlNode | None]:
    """Return a node as nested lists of numbers, or the part that is not a finite number.

    With a `unit`, such as `deg`, texts such as `30 deg` are numbers, too.
    """
    value = node.value
    if isinstance(value, list):
        numbers: list[Any] = []
        for item in value:
            number, wrong = _plain(item, null, unit)
            if wrong is not None:
                return None, wrong
            numbers.append(number)
        return numbers, None
    if value is None and null is not None:
        return null, None
    if unit is not None and isinstance(value, str):
        value = in_degrees(value, unit)
    if isinstance(value, float) and np.isfinite(value):
        return value, None
    return None, node
