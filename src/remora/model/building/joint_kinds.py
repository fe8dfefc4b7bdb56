"""Joint types in descriptions: their names and aliases, and their axes."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue
from remora.model.building.validate import Checker, Place
from remora.model.joint_types import JOINT_TYPES, plane
from remora.model.numbers import frozen

#: Alternative names of joint types, from URDF and the papers.
ALIASES = {"continuous": "revolute", "floating": "free"}


def base_kind(base: str) -> str:
    """Return the joint type for the option `base`.

    Raises:
        InvalidValue: if there is no such type; the message lists the known ones.
    """
    kind = kind_named(base)
    if kind is None:
        raise InvalidValue(f"base={base!r} is not a joint type; known: {', '.join(JOINT_TYPES)}")
    return kind


def kind_named(name: object) -> str | None:
    """Return the joint type of that name or alias; None if there is none."""
    kind = ALIASES.get(name, name) if isinstance(name, str) else None
    return kind if kind in JOINT_TYPES else None


def joint_axes(
    check: Checker,
    place: Place,
    kind: str,
    axis: ArrayLike | None,
    axis2: ArrayLike | None,
    what: str = "joint",
) -> Array:
    """Return the unit axes `(k, 3)` of a joint type; wrong ones are faults.

    Args:
        check: collects the faults.
        place: location of the description.
        kind: a key of JOINT_TYPES.
        axis: first axis, of any length; None: z.
        axis2: second axis of a universal joint.
        what: what it is called in messages: a joint or a constraint.
    """
    count = JOINT_TYPES[kind].axes
    given = sum(a is not None for a in (axis, axis2))
    if given > count:
        check.fault(place, f"a {kind} {what} takes {count} axes, {given} are given")
    if count == 0:
        return np.zeros((0, 3))
    first = check.unit_axis(place, "axis", (0.0, 0.0, 1.0) if axis is None else axis)
    if kind == "planar":
        return frozen(plane(first))
    if count == 1:
        return frozen(first[None])
    if axis is None or axis2 is None:
        check.fault(place, f"a universal {what} needs both axis and axis2")
        return frozen(np.eye(3)[:2])
    second = check.unit_axis(place, "axis2", axis2)
    if np.linalg.norm(np.cross(first, second)) < 1e-6:
        check.fault(place, "axis and axis2 are parallel")
    return frozen(np.stack([first, second]))
