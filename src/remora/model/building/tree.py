"""Construction of the robot from a checked description: tree order, merging, indices."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from remora.algebra import dual_quaternion, pose, vector
from remora.algebra.array_ops import Array, is_symbolic, select
from remora.model.building.validate import Checker, Place
from remora.model.joint_types import JOINT_TYPES
from remora.model.numbers import frozen
from remora.model.robot import Body, Frame, Joint, Mimic

#: Maximum length of a chain of mimic joints.
MAX_MIMIC_CHAIN = 100


@dataclass(frozen=True)
class BodyDraft:
    """A body as described."""

    body: Body
    place: Place


@dataclass(frozen=True)
class JointDraft:
    """A joint as described: names instead of indices."""

    name: str
    kind: str
    parent: str | None
    child: str
    place: Place
    joint: Joint
    mimic: tuple[str, float, float] | None


@dataclass(frozen=True)
class FrameDraft:
    """A frame as described."""

    name: str
    body: str | None
    place: Place
    placement: Array


@dataclass(frozen=True)
class Carrier:
    """The body that a named body was merged into (None: the inertial frame), and its pose there."""

    body: str | None
    placement: Array


def order(
    bodies: Mapping[str, BodyDraft], joints: Iterable[JointDraft], check: Checker
) -> list[JointDraft]:
    """Return the joints depth-first in the order given, a parent before its children."""
    children: dict[str | None, list[JointDraft]] = {}
    carrier: dict[str, JointDraft] = {}
    for j in joints:
        for role, body in (("parent", j.parent), ("child", j.child)):
            check_known(bodies, body, role, j.place, check)
        if j.child in carrier:
            other = carrier[j.child].name
            check.fault(
                j.place,
                f"body {j.child!r} already hangs on joint {other!r}; constraints close loops",
            )
            continue
        carrier[j.child] = j
        children.setdefault(j.parent, []).append(j)
    result: list[JointDraft] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        j = waiting.pop()
        result.append(j)
        waiting.extend(children.get(j.child, [])[::-1])
    reached = {j.child for j in result}
    lost = [j for j in carrier.values() if j.child not in reached]
    lost = [j for j in lost if j.child in bodies and j.parent in bodies]
    if lost and not check.faults:
        names = ", ".join(repr(j.name) for j in lost[:10])
        check.fault(lost[0].place, f"the joints form a cycle: {names}")
    return result


def check_known(
    bodies: Mapping[str, BodyDraft], name: str | None, role: str, place: Place, check: Checker
) -> None:
    """Report a fault if a name is not a body (None is the inertial frame)."""
    if name is not None and name not in bodies:
        known = ", ".join(map(repr, islice(bodies, 20))) + (", ..." if len(bodies) > 20 else "")
        check.fault(place, f"unknown {role} {name!r}; known: {known}")


def massless_root(bodies: Mapping[str, BodyDraft], joints: Collection[JointDraft]) -> bool:
    """Tell whether a root without a joint is massless, with all bodies fixed to it."""
    carried = {j.child for j in joints}
    rigid = [name for name in bodies if name not in carried]
    if len(rigid) != 1:
        return False
    fixed: dict[str | None, list[str]] = {}
    for j in joints:
        if j.kind == "fixed" and j.child in bodies:
            fixed.setdefault(j.parent, []).append(j.child)
    seen: set[str] = set()
    while rigid:
        name = rigid.pop()
        if name in seen:
            continue
        seen.add(name)
        rigid += fixed.get(name, [])
        if not massless(bodies[name].body):
            return False
    return True


def check_mimics(joints: Iterable[JointDraft], kindless: Set[str], check: Checker) -> None:
    """Report a fault if a mimic joint's leader is unknown, the joint itself, or unsuitable.

    Leaders among the `kindless`, whose types are faulty, are not checked.
    """
    known = {j.name: j for j in joints}
    for j in known.values():
        if j.mimic is None:
            continue
        leader = known.get(j.mimic[0])
        if leader is None:
            check.fault(j.place, f"mimics the unknown joint {j.mimic[0]!r}")
        elif leader.name in kindless:
            continue
        elif JOINT_TYPES[j.kind].nv != 1 or JOINT_TYPES[leader.kind].nv != 1:
            check.fault(
                j.place,
                f"{j.kind} joint mimics {leader.kind} joint {leader.name!r}; "
                "both must have one degree of freedom",
            )
        else:
            _check_chain(j, leader, known, check)


def _check_chain(
    j: JointDraft, leader: JointDraft | None, known: Mapping[str, JointDraft], check: Checker
) -> None:
    seen = {j.name}
    while leader is not None and leader.mimic is not None and leader.name not in seen:
        seen.add(leader.name)
        leader = known.get(leader.mimic[0])
        if len(seen) > MAX_MIMIC_CHAIN:
            check.fault(j.place, f"follows a chain of more than {MAX_MIMIC_CHAIN} joints")
            return
    if leader is not None and leader.name in seen:
        check.fault(j.place, "mimic joints follow each other in a cycle")


def merge(
    bodies: Mapping[str, BodyDraft], ordered: Iterable[JointDraft], merge_fixed: bool
) -> tuple[list[tuple[BodyDraft, JointDraft]], dict[str | None, Carrier]]:
    """Return the remaining bodies with their joints, and the carrier of each name.

    A massless body on a fixed joint is always merged: it becomes a frame.
    """
    here = dual_quaternion.identity()
    carriers: dict[str | None, Carrier] = {None: Carrier(None, here)}
    parts: dict[str, list[tuple[Body, Array]]] = {}
    stay: list[JointDraft] = []
    for j in ordered:
        body = bodies[j.child].body
        on = carriers[j.parent]
        placement = dual_quaternion.mul(on.placement, j.joint.placement)
        if j.kind == "fixed" and on.body is not None and (merge_fixed or massless(body)):
            carriers[j.child] = Carrier(on.body, frozen(placement))
            parts[on.body].append((body, placement))
            continue
        carriers[j.child] = Carrier(j.child, here)
        parts[j.child] = [(body, here)]
        moved = j.joint if on.body == j.parent else replace(j.joint, placement=frozen(placement))
        stay.append(replace(j, joint=moved))
    kept = [(BodyDraft(merged_body(parts[j.child]), bodies[j.child].place), j) for j in stay]
    return kept, carriers


def massless(body: Body) -> bool:
    """Tell whether a body has no mass; a symbolic mass counts as nonzero."""
    return not is_symbolic(body.mass) and body.mass == 0.0


def indexed_joints(
    kept: list[tuple[BodyDraft, JointDraft]], carriers: Mapping[str | None, Carrier], check: Checker
) -> list[Joint]:
    """Return the joints with parents as indices and their slices of q and v."""
    index = body_indices(kept)
    numbers = {j.name: i for i, (_, j) in enumerate(kept)}
    followers = {j.name: j.mimic for _, j in kept if j.mimic is not None}
    joints: list[Joint] = []
    nq = nv = 0
    for _, j in kept:
        row = JOINT_TYPES[j.kind]
        q, v = slice(nq, nq + row.nq), slice(nv, nv + row.nv)
        if j.mimic is None:
            nq, nv = q.stop, v.stop
        parent = index[carriers[j.parent].body]
        joints.append(replace(j.joint, parent=parent, q=q, v=v))
    for i, (_, j) in enumerate(kept):
        if j.mimic is not None:
            mimic = _resolved(j.mimic, followers, numbers)
            check.numbers(j.place, "mimic along its chain", (mimic.ratio, mimic.offset), 2)
            lead = joints[mimic.joint]
            joints[i] = replace(joints[i], mimic=mimic, q=lead.q, v=lead.v)
    return joints


def indexed_frames(
    kept: list[tuple[BodyDraft, JointDraft]],
    carriers: Mapping[str | None, Carrier],
    frames: Iterable[FrameDraft],
) -> list[Frame]:
    """Return the merged bodies as frames, then the described frames."""
    index = body_indices(kept)
    result = [
        Frame(name, index[on.body], on.placement)
        for name, on in carriers.items()
        if name is not None and name != on.body
    ]
    for frame in frames:
        on = carriers[frame.body]
        direct = on.body == frame.body
        moved = frozen(dual_quaternion.mul(on.placement, frame.placement))
        placement = frame.placement if direct else moved
        result.append(Frame(frame.name, index[on.body], placement))
    return result


def body_indices(kept: list[tuple[BodyDraft, JointDraft]]) -> dict[str | None, int]:
    """Return the index of each remaining body; -1 for the inertial frame."""
    return {None: -1} | {draft.body.name: i for i, (draft, _) in enumerate(kept)}


def _resolved(
    mimic: tuple[str, float, float],
    followers: Mapping[str, tuple[str, float, float]],
    numbers: Mapping[str, int],
) -> Mimic:
    """Resolve a chain of mimic joints to the final leader."""
    leader, ratio, offset = mimic
    while leader in followers:
        further, scale, shift = followers[leader]
        leader, offset, ratio = further, ratio * shift + offset, ratio * scale
    return Mimic(numbers[leader], ratio, offset)


def merged_body(parts: Sequence[tuple[Body, Array]]) -> Body:
    """Return one body with the mass properties and geometry of several, named as the first.

    Masses add, and the centre of mass is their weighted mean. Inertias add in common axes about the
    common centre of mass (parallel axis theorem).

    Args:
        parts: bodies with their poses in the frame of the first, `(8,)`.
    """
    if len(parts) == 1:
        return parts[0][0]
    masses = [body.mass for body, _ in parts]
    centres = [pose.transform_point(x, body.com) for body, x in parts]
    mass = sum(masses[1:], masses[0])
    weighted = sum(
        (m * c for m, c in zip(masses[1:], centres[1:], strict=True)), masses[0] * centres[0]
    )
    com = weighted / (mass if is_symbolic(np.asarray(mass)) else select(mass == 0.0, 1.0, mass))
    inertia = np.zeros((3, 3))
    for (body, x), m, c in zip(parts, masses, centres, strict=True):
        R = pose.to_rotation_matrix(x)
        d = vector.skew(c - com)
        inertia = inertia + R @ body.inertia @ vector.transpose(R) - m * (d @ d)
    geometry = tuple(
        dataclasses.replace(g, placement=frozen(dual_quaternion.mul(x, g.placement)))
        for body, x in parts
        for g in body.geometry
    )
    first = parts[0][0]
    own = first.inertial_frame
    if own is None and not is_symbolic(com) and np.any(com != first.com):
        own = tuple(pose.from_translation(first.com).tolist())
    return Body(first.name, frozen(np.asarray(mass)), frozen(com), frozen(inertia), geometry, own)
