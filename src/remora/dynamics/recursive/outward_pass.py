"""The outward pass of the recursive algorithms: transforms, motion subspaces and twists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array
from remora.algebra.screw import Transform
from remora.dynamics.recursive.tree_passes import JointContext, Pass, run
from remora.model import joints
from remora.model.robot import Robot


@dataclass(frozen=True)
class Link:
    """A body and its joint at one state.

    Attributes:
        parent: index of the body it is mounted on, -1 for the inertial frame.
        X: transform from its frame to its parent's.
        S: the joint's motion subspace, `(..., 6, nv_i)`, body frame.
        dS: rate of S, or None if S is constant.
        rate: Ṡ v, `(..., 6)`, or None if S is constant.
        twist: the body's twist, `(..., 6)`, body frame.
        c: velocity-product acceleration, Ṡ v + (x* ω_parent x) × S v.
    """

    parent: int
    X: Transform
    S: Array
    dS: Array | None
    rate: Array | None
    twist: Array
    c: Array


class MovingBody(NamedTuple):
    """The outward pass's result at a joint, for later passes.

    Attributes:
        X: transform from the body's frame to its parent's.
        S: the joint's motion subspace, `(..., 6, nv_i)`, body frame.
        rate: Ṡ v, `(..., 6)`, or None if S is constant.
        twist: the body's twist, `(..., 6)`, body frame.
    """

    X: Transform
    S: Array
    rate: Array | None
    twist: Array

    def c(self, at: JointContext) -> Array:
        """Return the velocity-product acceleration of the body: Ṡ v + ω × S v.

        ω × S v equals (x* ω_parent x) × S v, since S v × S v = 0. At a root this is Ṡ v.
        """
        rate = np.zeros(6) if self.rate is None else self.rate
        if at.is_root:
            return rate
        return rate + screw.cross(self.twist, vector.apply(self.S, at.v[..., at.joint.v]))


def moving(at: JointContext, _: Any, twist: Array | None) -> tuple[MovingBody, Array]:
    """Return a joint's and its body's motion [VT18, eq. 46]; passes the twist to the children."""
    joint = at.joint
    X = joints.relative_transform(joint, at.q)
    S, dS = joints.motion_subspace(joint, at.q), joints.motion_subspace_rate(joint, at.q, at.v)
    speeds = at.v[..., joint.v]
    own = vector.apply(S, speeds)
    if twist is not None:
        own = screw.to_inner(X, twist) + own
    rate = None if dS is None else vector.apply(dS, speeds)
    return MovingBody(X, S, rate, own), own


class BodyMotion(NamedTuple):
    """A body's twist and its rate, passed to its children, `(..., 6)`, body frame."""

    twist: Array
    rate: Array


def accelerating(
    at: JointContext, _: Any, parent: BodyMotion | None
) -> tuple[tuple[MovingBody, Array], BodyMotion]:
    """Return a joint's and its body's motion with accelerations; passes it to the children.

    ω̇_i = x* ω̇_parent x + S_i v̇_i + c_i [VT18, eq. 64]; at a root, ω̇_parent is
    the ground's acceleration.
    """
    here, twist = moving(at, (), None if parent is None else parent.twist)
    before = at.ground if parent is None else parent.rate
    own = vector.apply(here.S, at.vdot[..., at.joint.v])
    a = screw.to_inner(here.X, before) + own + here.c(at)
    return (here, a), BodyMotion(twist, a)


def moving_links(robot: Robot, q: Array, v: Array) -> list[Link]:
    """Return every link at the state q, v, outward from the base [VT18, eqs. 46, 48]."""
    links: list[Link] = []
    sites, (left,) = run(robot, (Pass(inward=False, step=moving),), q=q, v=v)
    for at, here in zip(sites, left, strict=True):
        dS = joints.motion_subspace_rate(at.joint, q, v)
        links.append(Link(at.joint.parent, here.X, here.S, dS, here.rate, here.twist, here.c(at)))
    return links


def accelerations_of(links: list[Link], own: list[Array], root: Array) -> list[Array]:
    """Return ω̇_i = x* ω̇_parent x + S_i v̇_i + c_i outward from the base [VT18, eq. 64].

    Args:
        links: from `moving_links`.
        own: S_i v̇_i for every joint, `(..., 6)`.
        root: acceleration of the inertial frame, `(6,)`: zero, or minus gravity.
    """
    a: list[Array] = []
    for link, part in zip(links, own, strict=True):
        before = root if link.parent < 0 else a[link.parent]
        a.append(screw.to_inner(link.X, before) + part + link.c)
    return a
