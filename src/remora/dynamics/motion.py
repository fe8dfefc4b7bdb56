"""The outward pass that every recursion starts with: transforms, screws, twists, joint by joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.namespace import Array, stack
from remora.algebra.screw import Transform
from remora.errors import ShapeError
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


def moving_links(robot: Robot, q: Array, v: Array) -> list[Link]:
    """Return every link at the state q, v, outward from the base [VT18, eqs. 46, 48]."""
    links: list[Link] = []
    for joint in robot.joints:
        X = joints.relative_transform(joint, q)
        S, dS = joints.motion_screws(joint, q), joints.motion_screws_rate(joint, q, v)
        own = vector.apply(S, v[..., joint.v])
        rate = None if dS is None else vector.apply(dS, v[..., joint.v])
        c = np.zeros(6) if rate is None else rate
        twist = own
        if joint.parent >= 0:
            carried = screw.to_inner(X, links[joint.parent].twist)
            c = c + screw.cross(carried, own)
            twist = carried + own
        links.append(Link(joint.parent, X, S, dS, rate, twist, c))
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


def gather(robot: Robot, parts: list[Array], batch: tuple[int, ...]) -> Array:
    """Join one array `(..., nv_i)` per joint to `(*batch, nv)`; a follower adds to its leader."""
    entries: list[Array] = [np.zeros(())] * robot.nv
    for joint, part in zip(robot.joints, parts, strict=True):
        for k, place in enumerate(range(robot.nv)[joint.v]):
            entries[place] = entries[place] + part[..., k]
    joined = stack(entries) if entries else np.zeros(0)
    return with_batch(joined, batch, trailing=1)


def columns(robot: Robot, blocks: dict[int, Array], batch: tuple[int, ...]) -> Array:
    """Place each joint's columns `(..., 6, nv_i)` where its speeds are, `(*batch, 6, nv)`.

    What a follower adds, adds to its leader's.
    """
    placed: list[Array] = [np.zeros(6)] * robot.nv
    for j, block in blocks.items():
        for k, place in enumerate(range(robot.nv)[robot.joints[j].v]):
            placed[place] = placed[place] + block[..., :, k]
    joined = stack(placed, axis=-1) if placed else np.zeros((6, 0))
    return with_batch(joined, batch, trailing=2)


def with_batch(result: Array, batch: tuple[int, ...], trailing: int) -> Array:
    """Give a result that happens not to depend on the arguments their batch shape."""
    own = result.shape[: result.ndim - trailing]
    shape = np.broadcast_shapes(own, batch) + result.shape[result.ndim - trailing :]
    return result if shape == result.shape else np.broadcast_to(result, shape).copy()


def batch_shape(*arguments: Array) -> tuple[int, ...]:
    """Return the common batch shape of arguments whose last axis holds the coordinates."""
    batches = [a.shape[:-1] for a in arguments]
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        shown = ", ".join(map(str, batches))
        raise ShapeError(f"the arguments' batch shapes do not broadcast: {shown}") from None
