"""The outward pass that every recursion starts with: transforms, screws, twists, joint by joint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.namespace import Array
from remora.algebra.screw import Transform
from remora.dynamics.recursive.tree_passes import JointContext, Pass, run
from remora.model import joints
from remora.model.robot import Robot


@dataclass(frozen=True)
class Link:
    """A body with the joint that carries it, at one state.

    Attributes:
        parent: index of the body it is mounted on, -1 for the inertial frame.
        X: its frame seen from its parent's.
        S: the joint's screws, `(..., 6, nv_i)`, body frame.
        dS: their rate, or None where they are constant.
        rate: Ṡ v, `(..., 6)`, or None where the screws are constant.
        twist: the body's own twist, `(..., 6)`, body frame.
        c: the part of its acceleration that v alone makes: Ṡ v + (x* ω_parent x) × S v.
    """

    parent: int
    X: Transform
    S: Array
    dS: Array | None
    rate: Array | None
    twist: Array
    c: Array


class MovingBody(NamedTuple):
    """What the outward pass leaves at a joint for those that follow.

    Attributes:
        X: the body's frame seen from its parent's.
        S: the joint's screws, `(..., 6, nv_i)`, body frame.
        rate: Ṡ v, `(..., 6)`, or None where the screws are constant.
        twist: the body's own twist, `(..., 6)`, body frame.
    """

    X: Transform
    S: Array
    rate: Array | None
    twist: Array

    def c(self, at: JointContext) -> Array:
        """Return the part of the body's acceleration that v alone makes: Ṡ v + ω × S v.

        ω × S v is (x* ω_parent x) × S v, for the rest of ω is S v itself; a root has only that.
        """
        rate = np.zeros(6) if self.rate is None else self.rate
        if at.is_root:
            return rate
        return rate + screw.cross(self.twist, vector.apply(self.S, at.v[..., at.joint.v]))


def moving(at: JointContext, _: Any, twist: Array | None) -> tuple[MovingBody, Array]:
    """Return what a joint and its body do [VT18, eq. 46]; to the children, the body's twist."""
    joint = at.joint
    X = joints.relative_transform(joint, at.q)
    S, dS = joints.motion_screws(joint, at.q), joints.motion_screws_rate(joint, at.q, at.v)
    speeds = at.v[..., joint.v]
    own = vector.apply(S, speeds)
    if twist is not None:
        own = screw.to_inner(X, twist) + own
    rate = None if dS is None else vector.apply(dS, speeds)
    return MovingBody(X, S, rate, own), own


class Motion(NamedTuple):
    """A body's motion, as its children are told: twist and its rate, `(..., 6)`, body frame."""

    twist: Array
    rate: Array


def accelerating(
    at: JointContext, _: Any, parent: Motion | None
) -> tuple[tuple[MovingBody, Array], Motion]:
    """Return what a joint and its body do, accelerations too; to the children, the motion.

    ω̇_i = x* ω̇_parent x + S_i v̇_i + c_i [VT18, eq. 64]; at a root the ground's instead.
    """
    here, twist = moving(at, (), None if parent is None else parent.twist)
    before = at.ground if parent is None else parent.rate
    own = vector.apply(here.S, at.vdot[..., at.joint.v])
    a = screw.to_inner(here.X, before) + own + here.c(at)
    return (here, a), Motion(twist, a)


def moving_links(robot: Robot, q: Array, v: Array) -> list[Link]:
    """Return every link at the state q, v, outward from the base [VT18, eqs. 46, 48]."""
    links: list[Link] = []
    sites, (left,) = run(robot, (Pass(inward=False, step=moving),), q=q, v=v)
    for at, here in zip(sites, left, strict=True):
        dS = joints.motion_screws_rate(at.joint, q, v)
        links.append(Link(at.joint.parent, here.X, here.S, dS, here.rate, here.twist, here.c(at)))
    return links


def accelerations_of(links: list[Link], own: list[Array], root: Array) -> list[Array]:
    """Return ω̇_i = x* ω̇_parent x + S_i v̇_i + c_i outward from the base [VT18, eq. 64].

    Args:
        links: from `moving_links`.
        own: S_i v̇_i of every joint, `(..., 6)`.
        root: acceleration of the inertial frame, `(6,)`: zero, or minus gravity.
    """
    a: list[Array] = []
    for link, part in zip(links, own, strict=True):
        before = root if link.parent < 0 else a[link.parent]
        a.append(screw.to_inner(link.X, before) + part + link.c)
    return a
