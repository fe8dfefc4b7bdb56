"""Poses of the parts of an assembly: by joints of robots, and as black boxes measure them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.sensor_reading import SensorReading, checked_point
from remora.dynamics.kinematics import frame_pose


def mounted_pose(
    parts: Sequence[Part], part: Part, q: Array, read: Mapping[str, SensorReading]
) -> Array | None:
    """Return the pose of the connection point that a part is mounted on, `(..., 8)`.

    None where it is not known: beyond a user's object, and beyond a black box whose reading has no
    pose of the point.

    Args:
        parts: of the assembly.
        part: one of them.
        q: configuration of the assembly, `(..., nq)`.
        read: readings of the black boxes on the way, by name.
    """
    if part.parent < 0:
        return dual_quaternion.identity()
    above = parts[part.parent]
    if above.black_box is not None:
        return checked_point(above.name, read[above.name], above.points[part.slot])[1]
    x = mounted_pose(parts, above, q, read)
    if x is None or above.module is None:
        return None
    point = above.module.points[part.slot]
    return dual_quaternion.mul(x, frame_pose(above.module.robot, q[..., above.q], point))


def base_pose(
    parts: Sequence[Part], part: Part, q: Array, read: Mapping[str, SensorReading]
) -> Array | None:
    """Return the pose of a part's base, which the arguments of `mounted_pose` describe."""
    x = mounted_pose(parts, part, q, read)
    return None if x is None else dual_quaternion.mul(x, part.placement)


def boxes_above(parts: Sequence[Part], part: Part) -> bool:
    """Tell whether a part is carried by a black box, directly or by others."""
    while part.parent >= 0:
        part = parts[part.parent]
        if part.black_box is not None:
            return True
    return False
