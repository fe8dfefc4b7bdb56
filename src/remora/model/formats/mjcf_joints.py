"""The joints that MuJoCo stacks on one body, as the one joint of Remora's that they are together.

MuJoCo applies the joints of a body one after the other, each in the frame that those before have
moved. The bodies that Remora would need in between have no mass, so only stacks that one kind of
joint moves exactly like are known; the order of the coordinates stays MuJoCo's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.namespace import Array

#: How far axes may be from parallel or square to count as such: rounding.
SQUARE = 1e-12

#: MuJoCo's numbers of the types of joints.
FREE, BALL, SLIDE, HINGE = range(4)
WORDS = ("free", "ball", "slide", "hinge")


@dataclass(frozen=True)
class Stack:
    """The one joint that several of MuJoCo's are.

    Attributes:
        kind: Remora's kind.
        moved: pose of the joint (and so of Remora's body frame) in MuJoCo's body frame, `(8,)`.
        axes: the builder's `axis` and `axis2`, in the joint's frame.
    """

    kind: str
    moved: Array
    axes: dict[str, Array] = field(default_factory=dict[str, Array])

    def at(self, q: float) -> Array:
        """Return the pose of a hinge or slide at q."""
        axis = self.axes["axis"]
        if self.kind == "prismatic":
            return pose.from_translation(axis * q)
        return pose.from_axis_angle(axis, np.array(q))


def _anchored(kind: str, p: Array, **axes: Array) -> Stack:
    return Stack(kind, pose.from_translation(p), axes)


def _cylindrical(p: Array, a: Array) -> Stack | None:
    same = np.max(np.abs(a[0] - a[1])) <= SQUARE
    return _anchored("cylindrical", p[0], axis=a[0]) if same else None


def _universal(p: Array, a: Array) -> Stack | None:
    meet = np.max(np.abs(p[0] - p[1])) <= SQUARE and np.linalg.norm(np.cross(*a)) > 1e-6
    return _anchored("universal", p[0], axis=a[0], axis2=a[1]) if meet else None


def _planar(p: Array, a: Array) -> Stack | None:
    if not _right_handed(a):
        return None
    return Stack("planar", pose.from_rotation_matrix(a.T, p[2]), {"axis": np.eye(3)[2]})


def _cartesian(p: Array, a: Array) -> Stack | None:
    turned = pose.from_rotation_matrix(a.T)
    return Stack("cartesian", turned) if _right_handed(a) else None


def _right_handed(a: Array) -> bool:
    """Tell whether three axes are square to each other, the third the product of the others."""
    return bool(np.max(np.abs(a @ a.T - np.eye(3))) <= SQUARE and np.linalg.det(a) > 0.0)


#: By the types on one body, in order: what they are together (anchors and axes `(n, 3)` -> joint).
STACKS: dict[tuple[int, ...], Callable[[Array, Array], Stack | None]] = {
    (): lambda p, a: Stack("fixed", dual_quaternion.identity()),
    (FREE,): lambda p, a: Stack("free", dual_quaternion.identity()),
    (BALL,): lambda p, a: _anchored("spherical", p[0]),
    (SLIDE,): lambda p, a: _anchored("prismatic", np.zeros(3), axis=a[0]),
    (HINGE,): lambda p, a: _anchored("revolute", p[0], axis=a[0]),
    (HINGE, SLIDE): _cylindrical,
    (HINGE, HINGE): _universal,
    (SLIDE, SLIDE, HINGE): _planar,
    (SLIDE, SLIDE, SLIDE): _cartesian,
}
ALLOWED = (
    "one free, ball, hinge or slide; hinge, slide along one axis (cylindrical); two hinges through "
    "one anchor (universal); slide, slide, hinge (planar) or three slides (cartesian) along "
    "square, right-handed axes"
)
