"""Conversion of MuJoCo's stacked joints on one body to Remora's joint types.

MuJoCo applies the joints of a body one after the other, each in the frame moved by those before. If
one joint type has the same motion, it is used (`STACKS`); otherwise each becomes a joint of its
own, with a massless body in between. The order of the coordinates is MuJoCo's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array

#: Tolerance for parallel and perpendicular axes: rounding.
SQUARE = 1e-12

#: MuJoCo's joint type numbers.
FREE, BALL, SLIDE, HINGE = range(4)


@dataclass(frozen=True)
class ConvertedJoint:
    """A Remora joint, made of one or several MuJoCo joints (or of a part of one).

    Attributes:
        kind: Remora's joint type.
        moved: pose of the joint (and so of Remora's body frame) in MuJoCo's body frame, `(8,)`.
        axes: the builder's `axis` and `axis2`, in the joint's frame.
        joints: indices of its joints among those of the body.
        part: the speeds of a free joint that belong to this joint; None: all.
    """

    kind: str
    moved: Array
    axes: dict[str, Array] = field(default_factory=dict[str, Array])
    joints: range = range(1)
    part: range | None = None

    def at(self, q: float) -> Array:
        """Return the pose of a hinge or slide at q."""
        axis = self.axes["axis"]
        if self.kind == "prismatic":
            return pose.from_translation(axis * q)
        return pose.from_axis_angle(axis, np.array(q))


def links(
    types: Sequence[int], p: Array, a: Array, apart: bool, armature: bool
) -> list[ConvertedJoint]:
    """Return the chain of joints of a body; the last one carries it.

    A free joint's armature acts along world axes, since its linear speeds are in the world frame.
    Three translations and a ball joint are equivalent.

    Args:
        types: MuJoCo's joint types, in order.
        p: their anchors in the body's frame, `(n, 3)`.
        a: their axes in the body's frame, `(n, 3)`.
        apart: whether each must remain a separate joint.
        armature: whether they have any.
    """
    if not types:
        return [ConvertedJoint("fixed", dual_quaternion.identity(), joints=range(0))]
    if tuple(types) == (FREE,) and armature:
        here = dual_quaternion.identity()
        return [
            ConvertedJoint("cartesian", here, part=range(3)),
            ConvertedJoint("spherical", here, part=range(3, 6)),
        ]
    make = None if apart else STACKS.get(tuple(types))
    whole = make(p, a) if make else None
    if whole is not None:
        return [whole]
    return [_SINGLE[t](p[k], a[k], range(k, k + 1)) for k, t in enumerate(types)]


_SINGLE: dict[int, Callable[[Array, Array, range], ConvertedJoint]] = {
    FREE: lambda p, a, k: ConvertedJoint("free", dual_quaternion.identity(), joints=k),
    BALL: lambda p, a, k: ConvertedJoint("spherical", pose.from_translation(p), joints=k),
    SLIDE: lambda p, a, k: ConvertedJoint("prismatic", dual_quaternion.identity(), {"axis": a}, k),
    HINGE: lambda p, a, k: ConvertedJoint("revolute", pose.from_translation(p), {"axis": a}, k),
}


def _cylindrical(p: Array, a: Array) -> ConvertedJoint | None:
    same = np.max(np.abs(a[0] - a[1])) <= SQUARE
    return _anchored("cylindrical", p[0], axis=a[0]) if same else None


def _universal(p: Array, a: Array) -> ConvertedJoint | None:
    meet = np.max(np.abs(p[0] - p[1])) <= SQUARE and np.linalg.norm(np.cross(*a)) > 1e-6
    return _anchored("universal", p[0], axis=a[0], axis2=a[1]) if meet else None


def _anchored(kind: str, p: Array, **axes: Array) -> ConvertedJoint:
    return ConvertedJoint(kind, pose.from_translation(p), axes, range(2))


def _planar(p: Array, a: Array) -> ConvertedJoint | None:
    if not _right_handed(a):
        return None
    turned = pose.from_rotation_matrix(a.T, p[2])
    return ConvertedJoint("planar", turned, {"axis": np.eye(3)[2]}, range(3))


def _cartesian(p: Array, a: Array) -> ConvertedJoint | None:
    turned = pose.from_rotation_matrix(a.T)
    return ConvertedJoint("cartesian", turned, joints=range(3)) if _right_handed(a) else None


def _right_handed(a: Array) -> bool:
    """Tell whether three axes are orthogonal and right-handed."""
    return bool(np.max(np.abs(a @ a.T - np.eye(3))) <= SQUARE and np.linalg.det(a) > 0.0)


#: By the types on one body, in order: their equivalent (anchors and axes `(n, 3)` -> joint).
STACKS: dict[tuple[int, ...], Callable[[Array, Array], ConvertedJoint | None]] = {
    (HINGE, SLIDE): _cylindrical,
    (HINGE, HINGE): _universal,
    (SLIDE, SLIDE, HINGE): _planar,
    (SLIDE, SLIDE, SLIDE): _cartesian,
}
