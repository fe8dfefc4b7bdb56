"""The table of a robot's fields: what each field holds and which consumers read it.

Everything that depends on the fields of a robot reads this table: equality and kernel keys,
parameters of kernels, checks of replaced numbers, YAML files and `remora info`. A test compares it
with the dataclasses, so that a new field without a row fails.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

#: What a field holds. `numbers`: an array; `text`, `flag`, `slice`: as such; `body`, `joint`: the
#: index of one; `end`: the index of a body, or of a joint for a gear; `part`: another part of the
#: robot, or None; `parts`: a tuple of parts; `plain`: text or a tuple of numbers that no equation
#: reads; `derived`: follows from the other fields.
Holds: TypeAlias = Literal[
    "numbers",
    "text",
    "flag",
    "body",
    "joint",
    "end",
    "slice",
    "part",
    "parts",
    "plain",
    "derived",
]
#: The shape of a field with one number per speed of the joint.
PER_SPEED = None


class Field(NamedTuple):
    """A row of the table.

    Attributes:
        name: of the attribute.
        holds: what it holds.
        shape: of numbers, without the batch shape; `PER_SPEED` (None): one per speed of the joint.
        seen: whether an equation may depend on it: it is then part of every kernel's key.
        compared: whether equality of robots depends on it.
        open: whether it can be a kernel argument, see `rm.compile(parameters=...)`.
        looped: whether recursions compiled as loops read it.
        written: its key in YAML files and `remora info`; empty: not written as such.
        absent: default of numbers omitted from a YAML file; None: they are required.
        bounds: whether its numbers may be infinite, which YAML writes as null.
        replaceable: whether `replace`, `replace_body`, ... check it as numbers.
    """

    name: str
    holds: Holds
    shape: tuple[int, ...] | None = ()
    seen: bool = True
    compared: bool = True
    open: bool = False
    looped: bool = False
    written: str = ""
    absent: float | None = None
    bounds: bool = False
    replaceable: bool = False


def _number(name: str, shape: tuple[int, ...] | None, **more: object) -> Field:
    return Field(name, "numbers", shape, replaceable=True, written=name)._replace(**more)


def _bound(name: str, absent: float) -> Field:
    return Field(name, "numbers", PER_SPEED, written=name, absent=absent, bounds=True)


#: All fields of all parts of a robot, in the order of the dataclasses.
FIELDS: dict[str, tuple[Field, ...]] = {
    "robot": (
        Field("name", "text", seen=False, written="name"),
        Field("bodies", "parts"),
        Field("joints", "parts"),
        Field("frames", "parts"),
        _number("gravity", (3,)),
        Field("warnings", "plain", seen=False, compared=False),
        Field("dynamics", "flag", written="dynamics"),
        Field("constraints", "parts"),
        Field("nq", "derived", seen=False, compared=False),
        Field("nv", "derived", seen=False, compared=False),
    ),
    "body": (
        Field("name", "text", written="name"),
        _number("mass", (), open=True, looped=True),
        _number("com", (3,), open=True, looped=True),
        _number("inertia", (3, 3), open=True, looped=True),
        Field("geometry", "parts", seen=False),
        Field("inertial_frame", "plain", seen=False),
    ),
    "joint": (
        Field("name", "text", written="name"),
        Field("kind", "text", written="kind"),
        Field("parent", "body", written="parent"),
        Field("q", "slice"),
        Field("v", "slice"),
        _number("placement", (8,), open=True, looped=True),
        _number("axes", (3,), looped=True, written=""),
        _number("pitch", (), open=True, looped=True, absent=0.0),
        Field("limits", "part"),
        _number("damping", PER_SPEED, open=True, absent=0.0),
        _number("friction", PER_SPEED, open=True, absent=0.0),
        _number("rotor_inertia", PER_SPEED, open=True, looped=True, absent=0.0),
        _number("stiffness", PER_SPEED, open=True, absent=0.0),
        _number("spring_reference", PER_SPEED, open=True, absent=0.0),
        Field("mimic", "part"),
    ),
    "limits": (
        _bound("lower", -math.inf),
        _bound("upper", math.inf),
        _bound("velocity", math.inf),
        _bound("effort", math.inf),
    ),
    "mimic": (
        Field("joint", "joint", written="joint"),
        Field("ratio", "numbers", looped=True, written="ratio"),
        Field("offset", "numbers", looped=True, written="offset"),
    ),
    "frame": (
        Field("name", "text", written="name"),
        Field("body", "body", written="body"),
        _number("placement", (8,)),
    ),
    "constraint": (
        Field("name", "text", written="name"),
        Field("kind", "text", written="kind"),
        Field("parent", "end", written="parent"),
        Field("child", "end", written="child"),
        _number("parent_placement", (8,), open=True),
        _number("child_placement", (8,), open=True),
        _number("axes", (3,), written=""),
        _number("pitch", (), open=True, absent=0.0),
        _number("length", (), open=True, absent=0.0),
        _number("ratio", (), open=True, absent=1.0),
        _number("offset", (), open=True, absent=0.0),
        Field("active", "flag", written="active"),
    ),
    "geometry": (
        Field("kind", "plain", seen=False),
        Field("size", "plain", seen=False),
        Field("placement", "numbers", (8,), seen=False),
        Field("color", "plain", seen=False),
        Field("mesh", "plain", seen=False),
    ),
}


def rows(
    part: str, *, holds: Holds | None = None, only: str | None = None, shape: object = ...
) -> dict[str, Field]:
    """Return the matching rows of a part, by name.

    Args:
        part: a key of FIELDS.
        holds: only those that hold this.
        only: only those where this attribute of the row is true: `open`, `looped`, ...
        shape: only those of this shape.
    """
    return {
        row.name: row
        for row in FIELDS[part]
        if (holds is None or row.holds == holds)
        and (only is None or getattr(row, only))
        and (shape is ... or row.shape == shape)
    }
