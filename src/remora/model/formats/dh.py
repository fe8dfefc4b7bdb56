"""Robots from Denavit-Hartenberg tables, serial or branched.

Two conventions use the same four letters and are often confused, so the caller must name one:

- `classic` (distal; Siciliano, SPART17 Table 1): T = Rz(θ) Tz(d) Tx(a) Rx(α). The joint moves
  along the z axis of the frame *before* the link; the link's DH frame is at its far end.
- `modified` (proximal; Craig): T = Rx(α) Tx(a) Rz(θ) Tz(d). The joint moves along the z axis of
  the link's own DH frame; a and α are those of the link before.

SPART17 Table 1 states that α is a rotation about ĵ. The two axes it connects are both normal to î,
so the rotation is about î, as in the book it cites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra import dual_quaternion, pose, vector
from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import UnknownName
from remora.model.building.builder import Builder
from remora.model.building.validate import Checker, Place
from remora.model.robot import Robot

CONVENTIONS = ("classic", "modified")


@dataclass(frozen=True)
class DHLink:
    """A row of a Denavit-Hartenberg table with the link's mass properties.

    Attributes:
        name: of the link; its joint is called `<name>_joint`.
        theta: angle about z, rad; for a revolute joint the value at q = 0.
        d: distance along z, m; for a prismatic joint the value at q = 0.
        a: distance along x, m.
        alpha: angle about x, rad.
        joint: `revolute` or `prismatic`.
        mass: kg.
        com: centre of mass in the link's DH frame, m.
        inertia: about the centre of mass, axes of the link's DH frame, kg m²: a 3x3 matrix, its
            diagonal, or xx, xy, xz, yy, yz, zz.
        parent: the link it follows; None: the row before (the base, for the first row).
        mount: pose of this row's starting frame in the parent's DH frame; None: the same frame.
        lower: smallest q.
        upper: largest q.
    """

    name: str
    theta: ArrayLike = 0.0
    d: ArrayLike = 0.0
    a: ArrayLike = 0.0
    alpha: ArrayLike = 0.0
    joint: str = "revolute"
    mass: ArrayLike = 0.0
    com: ArrayLike = (0.0, 0.0, 0.0)
    inertia: ArrayLike | None = None
    parent: str | None = None
    mount: ArrayLike | None = None
    lower: float = -np.inf
    upper: float = np.inf


def from_dh(
    links: Sequence[DHLink],
    convention: str,
    name: str = "robot",
    base: str = "free",
    base_name: str = "base",
    base_mass: ArrayLike = 0.0,
    base_com: ArrayLike = (0.0, 0.0, 0.0),
    base_inertia: ArrayLike | None = None,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
) -> Robot:
    """Return the robot of a Denavit-Hartenberg table on a base body.

    Each link's DH frame is kept as the frame `<link>_dh`; the body frame, as everywhere, is the
    one that the joint moves.

    Args:
        links: rows; a branch names its `parent` and gives a `mount`.
        convention: `classic` or `modified`; deliberately without a default.
        name: name of the robot.
        base: type of the base joint.
        base_name: name of the base body; its DH frame is its body frame.
        base_mass: kg.
        base_com: m.
        base_inertia: about the centre of mass, kg m².
        gravity: m/s².

    Raises:
        UnknownName: if the convention, a joint type or a parent is unknown.
        ModelError: with every fault of the numbers.
    """
    if convention not in CONVENTIONS:
        raise UnknownName("Denavit-Hartenberg convention", convention, CONVENTIONS)
    builder = Builder(name, gravity)
    place = Place(f"base {base_name!r} (base_mass, base_com, base_inertia)")
    builder.body(base_name, base_mass, base_com, base_inertia, place=place)
    distal: dict[str, Array] = {base_name: dual_quaternion.identity()}
    previous = base_name
    for link in links:
        if link.joint not in ("revolute", "prismatic"):
            raise UnknownName("joint in a DH table", link.joint, ("revolute", "prismatic"))
        parent = link.parent or previous
        if parent not in list(distal):
            raise UnknownName(f"parent of link {link.name!r} before it", parent, distal)
        start = distal[parent]
        if link.mount is not None:
            mount = builder.check.placement(Place(f"mount of link {link.name!r}"), link.mount)
            start = dual_quaternion.mul(start, mount)
        before, after = _split(link, convention, builder.check)
        x = after  # the link's DH frame in the body frame
        builder.body(link.name, link.mass, *_mass_properties(link, x, builder.check))
        builder.joint(
            f"{link.name}_joint",
            link.joint,
            parent,
            link.name,
            placement=dual_quaternion.mul(start, before),
            axis=(0.0, 0.0, 1.0),
            lower=link.lower,
            upper=link.upper,
        )
        builder.frame(f"{link.name}_dh", link.name, placement=x)
        distal[link.name] = x
        previous = link.name
    return builder.build(base=base)


def _split(link: DHLink, convention: str, check: Checker) -> tuple[Array, Array]:
    """Return the part of the row before the joint's motion and the part after it."""
    place = Place(f"link {link.name!r}")
    theta, d = check.numbers(place, "theta", link.theta), check.numbers(place, "d", link.d)
    alpha, a = check.numbers(place, "alpha", link.alpha), check.numbers(place, "a", link.a)
    along_z, along_x = _screw(2, theta, d), _screw(0, alpha, a)
    if convention == "classic":
        return dual_quaternion.identity(), dual_quaternion.mul(along_z, along_x)
    return dual_quaternion.mul(along_x, along_z), dual_quaternion.identity()


def _screw(k: int, angle: Array, length: Array) -> Array:
    """Return the pose of a rotation about, and a translation along, coordinate axis k."""
    axis = np.eye(3)[k]
    turn = pose.from_axis_angle(axis, angle)
    return dual_quaternion.mul(pose.from_translation(axis * length[..., None]), turn)


def _mass_properties(link: DHLink, x: Array, check: Checker) -> tuple[Array, Array]:
    """Return centre of mass and inertia in body axes.

    Malformed values are reported here; the builder checks the inertia's consistency.
    """
    place = Place(f"body {link.name!r}")
    com = pose.transform_point(x, check.numbers(place, "centre of mass", link.com, 3))
    inertia, R = check.inertia_matrix(place, link.inertia), pose.to_rotation_matrix(x)
    return com, R @ inertia @ vector.transpose(R)
