"""Description of constraints: rods, gears, and joints that close loops, with names for both ends.

An end is a body, a frame or the inertial frame; for a gear it is a joint. `build` resolves the
names after fixed bodies are merged: the constraint then acts on the body that carries its end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Set
from itertools import islice
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array, ArrayLike
from remora.model.arguments import known_options
from remora.model.building.joint_kinds import joint_axes, kind_named
from remora.model.building.tree import BodyDraft, Carrier, FrameDraft, JointDraft, body_indices
from remora.model.building.validate import Checker, Place
from remora.model.constraint import GEAR, ROD, Constraint
from remora.model.joint_types import JOINT_TYPES
from remora.model.numbers import frozen

#: Maximum number of constraints; a description with more is refused.
MAX_CONSTRAINTS = 10_000
#: Kinds of constraints: the joint types that constrain something, rods and gears.
KINDS = (*(name for name in JOINT_TYPES if name != "free"), ROD, GEAR)


class ConstraintEnds(TypedDict, total=False):
    """Poses of the constraint frame in the axes of the bodies or frames that it connects.

    Attributes:
        parent_placement: pose on the parent; or give `parent_xyz` and `parent_rpy`.
        parent_xyz: its position, m.
        parent_rpy: its roll, pitch, yaw, rad.
        child_placement: pose on the child; or give `child_xyz` and `child_rpy`.
        child_xyz: its position, m.
        child_rpy: its roll, pitch, yaw, rad.
    """

    parent_placement: ArrayLike | None
    parent_xyz: ArrayLike
    parent_rpy: ArrayLike
    child_placement: ArrayLike | None
    child_xyz: ArrayLike
    child_rpy: ArrayLike


@dataclasses.dataclass(frozen=True)
class ConstraintDraft:
    """A constraint as described: names instead of indices.

    Attributes:
        parent: a body, a frame, or None for the inertial frame; gear: the leading joint.
        child: likewise; gear: the driven joint.
        place: location of the description in its file.
        constraint: everything else.
    """

    parent: str | None
    child: str | None
    place: Place
    constraint: Constraint


def drafted(
    check: Checker,
    place: Place,
    name: str,
    kind: str,
    parent_placement: Array | None = None,
    child_placement: Array | None = None,
    axes: Array | None = None,
    pitch: ArrayLike = 0.0,
    length: ArrayLike = 0.0,
    ratio: ArrayLike = 1.0,
    offset: ArrayLike = 0.0,
    active: bool = True,
) -> Constraint:
    """Return a constraint whose ends are not known yet."""
    if not isinstance(active, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        check.fault(place, f"active must be True or False, not {active!r}")
    here = frozen(dual_quaternion.identity())
    return Constraint(
        name=name,
        kind=kind,
        parent=-1,
        child=-1,
        parent_placement=here if parent_placement is None else parent_placement,
        child_placement=here if child_placement is None else child_placement,
        axes=frozen(np.zeros((0, 3))) if axes is None else axes,
        pitch=check.numbers(place, "pitch", pitch),
        length=check.numbers(place, "length", length),
        ratio=check.numbers(place, "ratio", ratio),
        offset=check.numbers(place, "offset", offset),
        active=active,
    )


class DescribesConstraints:
    """The part of a builder that collects constraints.

    Attributes:
        check: collects the faults.
    """

    def __init__(self, check: Checker, taken: Iterable[str] = ()) -> None:
        """Start without constraints; the names in `taken` are used already."""
        self.check = check
        self._taken = dict.fromkeys(taken)
        self._constraints: dict[str, ConstraintDraft] = {}

    def constraint(
        self,
        name: str,
        kind: str,
        parent: str | None,
        child: str | None,
        axis: ArrayLike | None = None,
        axis2: ArrayLike | None = None,
        pitch: ArrayLike = 0.0,
        active: bool = True,
        place: Place | None = None,
        **ends: Unpack[ConstraintEnds],
    ) -> Self:
        """Add a joint between two bodies that the tree carries already.

        The pose of the child's constraint frame in the parent's constraint frame must be one that a
        joint of this type can take.

        Args:
            name: unique among constraints.
            kind: a key of JOINT_TYPES except `free`, or `continuous`.
            parent: a body or a frame; None for the inertial frame.
            child: another body or a frame on one; None for the inertial frame.
            axis: direction of the allowed motion (planar: normal of the plane), in the parent's
                constraint frame; default z.
            axis2: second axis of a universal constraint.
            pitch: of a helical constraint, m per rad.
            active: whether it acts from the start.
            place: location of the description in its file.
            **ends: poses of the constraint frame on both ends, in the axes of that body or frame:
                `parent_xyz`, `parent_rpy`, `child_xyz`, `child_rpy` (m, rad), or
                `parent_placement`, `child_placement`; see `ConstraintEnds`.

        Raises:
            UnknownName: for another option.
        """
        known_options("option of a constraint", ends, ConstraintEnds.__annotations__)
        place, check = place or Place(f"constraint {name!r}"), self.check
        known = kind_named(kind)
        if known is None or known == "free":
            why = "a free joint constrains nothing" if known else f"unknown kind {kind!r}"
            hint = "; use rod() or gear()" if kind in (ROD, GEAR) else ""
            check.fault(place, f"{why}; known: {', '.join(KINDS[:-2])}{hint}")
            known = "fixed"
            axis = axis2 = None
        if known != "helical" and np.any(np.asarray(pitch) != 0.0):
            check.fault(place, f"a {known} constraint has no pitch; a helical one has")
            pitch = 0.0
        made = drafted(
            check,
            place,
            name,
            known,
            _end_pose(check, place, "parent", ends),
            _end_pose(check, place, "child", ends),
            joint_axes(check, place, known, axis, axis2, "constraint"),
            pitch,
            active=active,
        )
        return self._draft(ConstraintDraft(parent, child, place, made))

    def rod(
        self,
        name: str,
        parent: str | None,
        child: str | None,
        length: ArrayLike,
        parent_placement: ArrayLike | None = None,
        parent_xyz: ArrayLike = (0.0, 0.0, 0.0),
        child_placement: ArrayLike | None = None,
        child_xyz: ArrayLike = (0.0, 0.0, 0.0),
        active: bool = True,
        place: Place | None = None,
    ) -> Self:
        """Add a massless rod with ball joints at its ends: two points keep their distance.

        Args:
            name: unique among constraints.
            parent: a body or a frame; None for the inertial frame.
            child: another body or a frame on one; None for the inertial frame.
            length: distance of both points, positive, m.
            parent_placement: pose whose origin is the point on the parent; or give `parent_xyz`.
            parent_xyz: the point on the parent, m.
            child_placement: pose whose origin is the point on the child; or give `child_xyz`.
            child_xyz: the point on the child, m.
            active: whether it acts from the start.
            place: location of the description in its file.
        """
        place, check = place or Place(f"constraint {name!r}"), self.check
        made = drafted(
            check,
            place,
            name,
            ROD,
            check.pose(place, parent_placement, parent_xyz),
            check.pose(place, child_placement, child_xyz),
            length=check.positive(place, "length", length),
            active=active,
        )
        return self._draft(ConstraintDraft(parent, child, place, made))

    def gear(
        self,
        name: str,
        parent: str,
        child: str,
        ratio: ArrayLike = 1.0,
        offset: ArrayLike = 0.0,
        active: bool = True,
        place: Place | None = None,
    ) -> Self:
        """Add a gear between two joints with one coordinate: q_child = ratio · q_parent + offset.

        Args:
            name: unique among constraints.
            parent: the leading joint.
            child: the driven joint.
            ratio: factor on the leading coordinate.
            offset: rad or m.
            active: whether it acts from the start.
            place: location of the description in its file.
        """
        place = place or Place(f"constraint {name!r}")
        made = drafted(self.check, place, name, GEAR, ratio=ratio, offset=offset, active=active)
        return self._draft(ConstraintDraft(parent, child, place, made))

    def _draft(self, draft: ConstraintDraft) -> Self:
        if self.check.new_name(draft.place, draft.constraint.name, self._constraints, self._taken):
            self._constraints[draft.constraint.name] = draft
        return self

    def check_constraints(
        self,
        bodies: Mapping[str, BodyDraft],
        joints: Iterable[JointDraft],
        frames: Mapping[str, FrameDraft],
        kindless: Set[str],
    ) -> None:
        """Report unknown ends, and ends that cannot be connected."""
        if len(self._constraints) > MAX_CONSTRAINTS:
            reason = f"has {len(self._constraints)} constraints; {MAX_CONSTRAINTS} are allowed"
            self.check.fault(Place("robot"), reason)
            return
        by_name = {j.name: j for j in joints}
        for draft in self._constraints.values():
            if draft.constraint.kind == GEAR:
                _check_gear(draft, by_name, kindless, self.check)
                continue
            on: list[str | None] = []
            for role, end in (("parent", draft.parent), ("child", draft.child)):
                known = isinstance(end, str | None) and (end in bodies or end in frames)  # pyright: ignore[reportUnnecessaryIsInstance]
                if end is not None and not known:
                    _unknown(draft.place, f"{role} body or frame", end, bodies, self.check)
                else:
                    frame = frames.get(end) if end is not None else None
                    on.append(end if frame is None else frame.body)
            if len(on) == 2 and on[0] == on[1]:
                self.check.fault(draft.place, _same_body(draft, on[0]))

    def indexed_constraints(
        self,
        kept: list[tuple[BodyDraft, JointDraft]],
        carriers: Mapping[str | None, Carrier],
        frames: Mapping[str, FrameDraft],
    ) -> list[Constraint]:
        """Return the constraints with their ends as indices, on the bodies that remain."""
        bodies = body_indices(kept)
        joints = {j.name: i for i, (_, j) in enumerate(kept)}

        def at(end: str | None, placement: Array) -> tuple[int, Array]:
            frame = frames.get(end) if end is not None else None
            if frame is not None:
                end, placement = frame.body, _moved(frame.placement, placement)
            on = carriers[end]
            return bodies[on.body], placement if on.body == end else _moved(on.placement, placement)

        made: list[Constraint] = []
        for draft in self._constraints.values():
            c, changes = draft.constraint, dict[str, Any]()
            if c.kind == GEAR:
                assert draft.parent is not None
                assert draft.child is not None
                parent, child = joints[draft.parent], joints[draft.child]
            else:
                parent, changes["parent_placement"] = at(draft.parent, c.parent_placement)
                child, changes["child_placement"] = at(draft.child, c.child_placement)
                if parent == child:
                    carrier = None if parent < 0 else kept[parent][0].body.name
                    self.check.fault(draft.place, _same_body(draft, carrier))
            made.append(dataclasses.replace(c, parent=parent, child=child, **changes))
        return made


def _end_pose(check: Checker, place: Place, role: str, ends: ConstraintEnds) -> Array:
    """Return the pose of the constraint frame on the parent or on the child."""
    given: dict[str, Any] = {
        key.removeprefix(f"{role}_"): x for key, x in ends.items() if key.startswith(role)
    }
    return check.pose(place, **given)


def _check_gear(
    draft: ConstraintDraft, joints: Mapping[str, JointDraft], kindless: Set[str], check: Checker
) -> None:
    for role, end in (("leading", draft.parent), ("driven", draft.child)):
        joint = joints.get(end) if isinstance(end, str) else None
        if joint is None:
            _unknown(draft.place, f"{role} joint", end, joints, check)
        elif joint.name in kindless:
            continue
        elif JOINT_TYPES[joint.kind].nv != 1:
            reason = f"the {role} joint {end!r} is {joint.kind}; it must have one coordinate"
            check.fault(draft.place, reason)
        elif joint.mimic is not None:
            leader = repr(joint.mimic[0])
            reason = f"the {role} joint {end!r} is a mimic joint of {leader}; name {leader} instead"
            check.fault(draft.place, reason)
    if draft.parent == draft.child:
        check.fault(draft.place, f"connects the joint {draft.parent!r} to itself")


def _unknown(
    place: Place, what: str, name: object, known: Mapping[str, object], check: Checker
) -> None:
    names = ", ".join(map(repr, islice(known, 20))) + (", ..." if len(known) > 20 else "")
    check.fault(place, f"unknown {what} {name!r}; known: {names}")


def _same_body(draft: ConstraintDraft, name: str | None) -> str:
    """Return the reason why both ends are on one body (None: the inertial frame)."""
    ends = [e for e in dict.fromkeys((draft.parent, draft.child)) if e is not None]
    shown = " and ".join(map(repr, ends))
    if name is None:
        return "connects the inertial frame to itself" + (f": {shown} are fixed in it" * bool(ends))
    if ends == [name]:
        return f"connects the body {name!r} to itself"
    return f"connects a body to itself: {shown} are parts of {name!r}"


def _moved(by: Array, x: Array) -> Array:
    return frozen(dual_quaternion.mul(by, x))
