"""Conversion of SDF joints: types, axes, limits and mimic relations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.building.validate import Place
from remora.model.formats.bounded_xml import Element, shown
from remora.model.formats.sdf.sdf_text import SdfText

#: SDF's joint types: Remora's type and the number of axes.
KINDS = {
    "fixed": ("fixed", 0),
    "revolute": ("revolute", 1),
    "continuous": ("revolute", 1),
    "prismatic": ("prismatic", 1),
    "screw": ("helical", 1),
    "universal": ("universal", 2),
    "revolute2": ("universal", 2),
    "ball": ("spherical", 0),
}
_REFUSED = {"gearbox": "a gearbox ties two other joints; say <mimic> on one of them instead"}


def kind_of(text: SdfText, joint: Element, place: Place) -> tuple[str, int] | None:
    """Return the type of a joint and its number of axes, or None if it is faulty."""
    kind = joint.attributes.get("type", "")
    if kind in KINDS:
        return KINDS[kind]
    what = f"unknown type {shown(kind)!r}" if kind else "has no type"
    text.fault(place, _REFUSED.get(kind, f"{what}; allowed: {', '.join(KINDS)}"))
    return None


def axis_of(text: SdfText, axis: Element, owner: Place, minor: int) -> tuple[Array, str | None]:
    """Return an axis and the frame it is expressed in; None: the joint's own.

    Before SDF 1.5 that was the model's frame; in 1.5 and 1.6 it could be.

    Args:
        text: the reader of elements.
        axis: the element.
        owner: location of the joint.
        minor: of SDF's version 1.minor.
    """
    place = text.at(axis, owner)
    xyz = np.array(text.values(axis, "xyz", place, 3, (0.0, 0.0, 1.0)))
    child = text.child(axis, "xyz", place)
    named = child.attributes.get("expressed_in") if child is not None else None
    old = minor < 5 or (minor < 7 and text.flag(axis, "use_parent_model_frame", place))
    return xyz, named or ("__model__" if old else None)


def drive_of(text: SdfText, axes: list[Element], owner: Place, kind: str) -> dict[str, Any]:
    """Return limits, damping, friction and springs of a joint, one number per axis."""
    rows: list[dict[str, float]] = []
    for axis in axes:
        place = text.at(axis, owner)
        row = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
        row |= {"damping": 0.0, "friction": 0.0, "stiffness": 0.0, "spring_reference": 0.0}
        limit = text.child(axis, "limit", place)
        if limit is not None:
            at = text.at(limit, place)
            row["lower"] = text.bound(limit, "lower", at, -math.inf)
            row["upper"] = text.bound(limit, "upper", at, math.inf)
            for key in ("velocity", "effort"):  # negative: unlimited
                largest = text.bound(limit, key, at, math.inf)
                row[key] = largest if largest >= 0.0 else math.inf
        if row["lower"] > row["upper"]:
            text.warn(place, "its lower limit is above the upper one; taken as unlimited")
            row |= {"lower": -math.inf, "upper": math.inf}
        dynamics = text.child(axis, "dynamics", place)
        if dynamics is not None:
            at = text.at(dynamics, place)
            for key in ("damping", "friction"):
                row[key] = text.value(dynamics, key, at, 0.0)
            row["stiffness"] = text.value(dynamics, "spring_stiffness", at, 0.0)
            row["spring_reference"] = text.value(dynamics, "spring_reference", at, 0.0)
        rows.append(row)
    if not rows or kind in ("fixed", "spherical"):
        return {}
    if len(rows) == 1:
        return dict(rows[0])
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def mimic_of(text: SdfText, axis: Element, owner: Place) -> tuple[str, float, float] | None:
    """Return the mimic relation of a joint: q = multiplier (q_leader - reference) + offset."""
    place = text.at(axis, owner)
    mimic = text.child(axis, "mimic", place)
    if mimic is None:
        return None
    at = text.at(mimic, place)
    leader = mimic.attributes.get("joint", "")
    if not leader:
        text.fault(at, "has no attribute joint")
        return None
    if mimic.attributes.get("axis", "axis") != "axis":
        text.fault(at, "follows a second axis, which is not supported")
        return None
    ratio = text.value(mimic, "multiplier", at, None)
    offset = text.value(mimic, "offset", at, 0.0)
    reference = text.value(mimic, "reference", at, 0.0)
    return leader, ratio, offset - ratio * reference


def pitch_of(text: SdfText, joint: Element, place: Place) -> float:
    """Return the pitch of a screw joint, m per rad.

    `screw_thread_pitch` is in m per turn; the older `thread_pitch` in rad per m of a left-handed
    thread.
    """
    if text.child(joint, "screw_thread_pitch", place) is not None:
        return text.value(joint, "screw_thread_pitch", place, None) / (2.0 * math.pi)
    thread = text.value(joint, "thread_pitch", place, None)
    if thread == 0.0:
        text.fault(place, "thread_pitch is zero: the screw would never turn")
        return 1.0
    return -1.0 / thread
