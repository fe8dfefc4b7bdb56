"""Reading of `<loop_joint>`, Remora's extension of URDF for joints that close a loop.

    <loop_joint name="pin" type="revolute">
      <parent link="coupler"> <origin xyz="1 0 0"/> </parent>
      <child link="rocker"> <origin xyz="0 0 0.5" rpy="0 0 0"/> </child>
      <axis xyz="0 0 1"/>
    </loop_joint>

The type is one of Remora's joint types except `free`, or `rod`. `axis`, x by default as in URDF, is
in the parent's origin frame. A helical joint has the attribute `pitch` (m per rad), a rod `length`
(m), a universal joint an `<axis2>`. `active="false"` switches it off. The link `world`, if the file
does not have it, is the inertial frame. Other readers of URDF ignore the element or warn about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remora.model.building.builder import Builder
from remora.model.building.constraint_drafts import KINDS
from remora.model.building.joint_kinds import kind_named
from remora.model.building.validate import Place
from remora.model.constraint import GEAR, ROD
from remora.model.formats.bounded_xml import Element, shown
from remora.model.formats.urdf.urdf_text import ElementReader, inside
from remora.model.joint_types import JOINT_TYPES

_ZERO = (0.0, 0.0, 0.0)
_X = (1.0, 0.0, 0.0)
_ACTIVE = {"true": True, "1": True, "false": False, "0": False}
_TYPES = tuple(kind for kind in KINDS if kind != GEAR)


def read_loop_joint(
    text: ElementReader,
    builder: Builder,
    is_world: Callable[[str], bool],
    loop: Element,
    place: Place,
) -> None:
    """Read a `<loop_joint>` into a builder.

    Args:
        text: the reader of elements.
        builder: receives the constraint.
        is_world: tells whether the name of a link means the inertial frame.
        loop: the element.
        place: its location.
    """
    parts, faults = text.parts(loop, place), text.faults
    type_name = loop.attributes.get("type", "")
    kind = kind_named(type_name) or type_name
    if kind not in _TYPES:
        what = f"unknown type {shown(type_name)!r}" if type_name else "has no type"
        what = "a floating joint constrains nothing" if kind == "free" else what
        text.fault(place, f"{what}; allowed: {', '.join(_TYPES)}")
    active = _ACTIVE.get(loop.attributes.get("active", "true"))
    if active is None:
        shown_flag = shown(loop.attributes["active"])
        text.fault(place, f'active="{shown_flag}" must be true or false')
    ends: dict[str, str | None] = {}
    given: dict[str, Any] = {"active": active, "place": place}
    for role in ("parent", "child"):
        element = text.needed(parts, role, place)
        if element is None:
            continue
        at = inside(place, element)
        name = text.name(element, "link", place)
        ends[role] = None if is_world(name) else name
        origin = text.parts(element, at, "loop end").get("origin")
        if origin is not None:
            given[f"{role}_xyz"] = text.numbers(origin, "xyz", at, 3, _ZERO)
            if kind != ROD:
                given[f"{role}_rpy"] = text.numbers(origin, "rpy", at, 3, _ZERO)
    name = text.name(loop, "name", place)
    if kind in JOINT_TYPES and kind != "free":
        tags = ("axis", "axis2")[: 1 if kind == "planar" else JOINT_TYPES[kind].axes]
        for tag in tags:
            default = _X if tag == "axis" else None
            element = parts.get(tag)
            if element is not None:
                given[tag] = text.numbers(element, "xyz", place, 3)
            elif default is not None:
                given[tag] = default
        if kind == "helical":
            given["pitch"] = text.number(loop, "pitch", place)
    elif kind == ROD:
        given["length"] = text.number(loop, "length", place)
    for key, owner in (("pitch", "helical"), ("length", ROD)):
        if key in loop.attributes and kind != owner:
            text.fault(place, f"a {shown(type_name)} joint has no {key}; a {owner} one has")
    if text.faults > faults:  # all reported; the builder would repeat some of them
        return
    if kind == ROD:
        builder.rod(name, ends["parent"], ends["child"], **given)
    else:
        builder.constraint(name, kind, ends["parent"], ends["child"], **given)
