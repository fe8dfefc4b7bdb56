"""The builder: every robot passes through it, whatever file or code describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.namespace import Array, ArrayLike, asarray, is_symbolic
from remora.errors import ModelError
from remora.model.joints import JOINTS
from remora.model.merge import merged_body
from remora.model.robot import Body, Frame, Geometry, Joint, Limits, Mimic, Named, Robot
from remora.model.validate import Checker, Place, frozen

#: More bodies than any machine has; a description with more is refused.
MAX_BODIES = 10_000

#: The longest chain of joints that follow one another.
MAX_MIMIC_CHAIN = 100

#: Other words for a kind of joint, as URDF and the papers have them.
ALIASES = {"continuous": "revolute", "floating": "free"}


@dataclass(frozen=True)
class _Joint:
    """A joint as described: names instead of indices."""

    name: str
    kind: str
    parent: str | None
    child: str
    place: Place
    joint: Joint
    mimic: tuple[str, float, float] | None


@dataclass(frozen=True)
class _Frame:
    name: str
    body: str | None
    place: Place
    placement: Array


class Builder:
    """Collects bodies, joints and frames in any order; `build` validates and makes the Robot.

    Faults are collected, not raised one by one: `build` reports all of them in one `ModelError`.

    Example:
        >>> robot = (
        ...     Builder("one arm")
        ...     .body("bus", mass=100.0, inertia=(20.0, 20.0, 20.0))
        ...     .body("arm", mass=5.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 1.0, 1.0))
        ...     .joint("shoulder", "revolute", "bus", "arm", xyz=(1.0, 0.0, 0.0), axis=(0, 0, 1))
        ...     .build()
        ... )
        >>> robot.nq, robot.nv
        (9, 7)
    """

    def __init__(
        self, name: str = "robot", gravity: ArrayLike = (0.0, 0.0, 0.0), source: str | None = None
    ) -> None:
        """Start a robot.

        Args:
            name: what it is called.
            gravity: acceleration in the inertial frame, m/s².
            source: the file it comes from, for error messages.
        """
        self.name = name
        self.source = source or f"robot {name!r}"
        self.check = Checker()
        self.warnings: list[str] = []
        self._gravity = self.check.numbers(Place("gravity"), "gravity", gravity, 3)
        self._bodies: dict[str, tuple[Body, Place]] = {}
        self._joints: dict[str, _Joint] = {}
        self._frames: dict[str, _Frame] = {}

    def body(
        self,
        name: str,
        mass: ArrayLike = 0.0,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike | None = None,
        geometry: Sequence[Geometry] = (),
        place: Place | None = None,
    ) -> Builder:
        """Add a body.

        Args:
            name: unique among bodies and frames.
            mass: kg; zero only for a body that a fixed joint merges into another.
            com: centre of mass in the body frame, m.
            inertia: about the centre of mass, body axes, kg m²: a 3x3 matrix, its diagonal, or
                xx, xy, xz, yy, yz, zz.
            geometry: visible shapes.
            place: where the description stands in its file.
        """
        place = place or Place(f"body {name!r}")
        body = Body(
            name,
            self.check.mass(place, mass),
            self.check.numbers(place, "centre of mass", com, 3),
            self.check.inertia(place, inertia),
            tuple(geometry),
        )
        if self._new_name(place, name, self._bodies, self._frames):
            self._bodies[name] = (body, place)
        return self

    def joint(
        self,
        name: str,
        kind: str,
        parent: str | None,
        child: str,
        placement: ArrayLike | None = None,
        xyz: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
        axis: ArrayLike | None = None,
        axis2: ArrayLike | None = None,
        pitch: ArrayLike = 0.0,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        velocity: ArrayLike = np.inf,
        effort: ArrayLike = np.inf,
        damping: ArrayLike = 0.0,
        friction: ArrayLike = 0.0,
        rotor_inertia: ArrayLike = 0.0,
        mimic: tuple[str, float, float] | None = None,
        place: Place | None = None,
    ) -> Builder:
        """Add the joint that carries the body `child`.

        Args:
            name: unique among joints.
            kind: a key of JOINTS (or `continuous`, `floating`).
            parent: the body it is mounted on; None for the inertial frame.
            child: the body it carries.
            placement: pose of the joint frame in the parent's frame; or give `xyz` and `rpy`.
            xyz: position of the joint frame in the parent's frame, m.
            rpy: its roll, pitch, yaw, rad.
            axis: direction of motion (planar: normal of the plane); default z. Any length.
            axis2: second axis of a universal joint, in the frame turned by the first.
            pitch: of a helical joint, m per rad.
            lower: smallest coordinate; one number, or one per speed.
            upper: largest coordinate.
            velocity: largest speed.
            effort: largest force or torque.
            damping: viscous friction.
            friction: dry friction.
            rotor_inertia: reflected inertia of the drive.
            mimic: (leading joint, ratio, offset): q = ratio · q_leader + offset.
            place: where the description stands in its file.
        """
        place = place or Place(f"joint {name!r}")
        kind = ALIASES.get(kind, kind)
        check = self.check
        if kind not in JOINTS:
            check.fault(place, f"unknown kind {kind!r}; known: {', '.join(JOINTS)}")
            kind, axis, axis2 = "fixed", None, None
        row = JOINTS[kind]
        low = check.bound(place, "lower limit", lower, row.nv)
        high = check.bound(place, "upper limit", upper, row.nv)
        if np.any(low > high):
            check.fault(place, f"lower limit {low} is above the upper limit {high}")
        joint = Joint(
            name=name,
            kind=kind,
            parent=-1,
            q=slice(0, 0),
            v=slice(0, 0),
            placement=self._placement(place, placement, xyz, rpy),
            axes=self._axes(place, kind, axis, axis2),
            pitch=check.numbers(place, "pitch", pitch),
            limits=Limits(
                low,
                high,
                np.abs(check.bound(place, "velocity limit", velocity, row.nv)),
                np.abs(check.bound(place, "effort limit", effort, row.nv)),
            ),
            damping=check.per_speed(place, "damping", damping, row.nv),
            friction=check.per_speed(place, "friction", friction, row.nv),
            rotor_inertia=check.per_speed(place, "rotor inertia", rotor_inertia, row.nv),
        )
        if mimic is not None:
            numbers = check.numbers(place, "mimic ratio and offset", mimic[1:], 2)
            mimic = (mimic[0], float(numbers[0]), float(numbers[1]))
        if self._new_name(place, name, self._joints):
            self._joints[name] = _Joint(name, kind, parent, child, place, joint, mimic)
        return self

    def frame(
        self,
        name: str,
        body: str | None,
        placement: ArrayLike | None = None,
        xyz: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
        place: Place | None = None,
    ) -> Builder:
        """Add a named frame on a body (None: fixed in the inertial frame).

        Args:
            name: unique among bodies and frames.
            body: the body that carries it.
            placement: pose in the body's frame; or give `xyz` and `rpy`.
            xyz: position, m.
            rpy: roll, pitch, yaw, rad.
            place: where the description stands in its file.
        """
        place = place or Place(f"frame {name!r}")
        x = self._placement(place, placement, xyz, rpy)
        if self._new_name(place, name, self._bodies, self._frames):
            self._frames[name] = _Frame(name, body, place, x)
        return self

    def gravity(self, value: ArrayLike) -> Builder:
        """Set the acceleration of gravity in the inertial frame, `(3,)`, m/s²."""
        self._gravity = self.check.numbers(Place("gravity"), "gravity", value, 3)
        return self

    def base(self, kind: str) -> Builder:
        """Make the joint that hangs on the inertial frame, where there is one, of that kind.

        It keeps its name and placement and loses its axes, limits and friction. Where no joint
        hangs there `build` adds one.
        """
        bases = [j for j in self._joints.values() if j.parent is None]
        if len(bases) > 1:
            names = ", ".join(repr(j.name) for j in bases[:10])
            self.check.fault(
                Place("base"), f"which joint should be {kind}? On the inertial frame hang {names}"
            )
        elif bases and bases[0].kind != ALIASES.get(kind, kind):
            (old,) = bases
            del self._joints[old.name]
            x = old.joint.placement
            self.joint(old.name, kind, None, old.child, placement=x, place=old.place)
        return self

    def build(self, base: str | None = "free", merge_fixed: bool = False) -> Robot:
        """Validate everything and return the robot.

        Args:
            base: kind of joint that carries the root body where the description has none.
            merge_fixed: make each body on a fixed joint part of its parent; it stays a frame.

        Raises:
            ModelError: with every fault found.
        """
        joints = self._with_base(base)
        order = self._order(joints)
        self._raise()
        kept, carriers = self._merge(order, merge_fixed)
        self._check_masses(kept)
        self._raise()
        return self._assemble(kept, carriers)

    # Parts of a description ------------------------------------------------------------------

    def _new_name(self, place: Place, name: str, *tables: Mapping[str, object]) -> bool:
        if not name:
            self.check.fault(place, "has no name")
        elif any(name in table for table in tables):
            self.check.fault(place, f"the name {name!r} is used twice")
        else:
            return True
        return False

    def _placement(
        self, place: Place, placement: ArrayLike | None, xyz: ArrayLike, rpy: ArrayLike
    ) -> Array:
        if placement is not None:
            return self.check.placement(place, placement)
        position = self.check.numbers(place, "xyz", xyz, 3)
        angles = self.check.numbers(place, "rpy", rpy, 3)
        return frozen(pose.from_xyz_rpy(position, angles))

    def _axes(
        self, place: Place, kind: str, axis: ArrayLike | None, axis2: ArrayLike | None
    ) -> Array:
        count = JOINTS[kind].axes
        given = sum(a is not None for a in (axis, axis2))
        if given > count:
            self.check.fault(place, f"a {kind} joint takes {count} axes, {given} are given")
        if count == 0:
            return np.zeros((0, 3))
        first = self.check.unit_axis(place, "axis", (0.0, 0.0, 1.0) if axis is None else axis)
        if kind == "planar":
            return frozen(_plane(first))
        if count == 1:
            return frozen(first[None])
        if axis is None or axis2 is None:
            self.check.fault(place, "a universal joint needs both axis and axis2")
            return frozen(np.eye(3)[:2])
        second = self.check.unit_axis(place, "axis2", axis2)
        if np.linalg.norm(np.cross(first, second)) < 1e-6:
            self.check.fault(place, "axis and axis2 are parallel")
        return frozen(np.stack([first, second]))

    # The tree --------------------------------------------------------------------------------

    def _with_base(self, base: str | None) -> list[_Joint]:
        """Return the joints, with one from the inertial frame for a root that has none."""
        joints = list(self._joints.values())
        carried = {j.child for j in joints}
        roots = [name for name in self._bodies if name not in carried]
        if not self._bodies:
            self.check.fault(Place("robot"), "has no bodies")
        elif len(roots) > 1:
            if carried <= self._bodies.keys():  # else the unknown child is at fault
                names = ", ".join(map(repr, roots[:10]))
                place = self._bodies[roots[1]][1]
                self.check.fault(place, f"there are several roots (carried by no joint): {names}")
        elif roots and base is None:
            place = self._bodies[roots[0]][1]
            self.check.fault(place, f"no joint carries the body {roots[0]!r} and base is None")
        elif roots and base is not None:
            name = "base"
            while name in self._joints:
                name = f"{name}_joint"
            self.joint(name, base, None, roots[0], place=Place(f"base of {roots[0]!r}"))
            joints = [self._joints.pop(name), *joints] if name in self._joints else joints
        if len(self._bodies) > MAX_BODIES:
            reason = f"has {len(self._bodies)} bodies; {MAX_BODIES} are allowed"
            self.check.fault(Place("robot"), reason)
        return joints

    def _order(self, joints: list[_Joint]) -> list[_Joint]:
        """Return the joints depth-first in the order given, a parent before its children."""
        children: dict[str | None, list[_Joint]] = {}
        carrier: dict[str, _Joint] = {}
        for j in joints:
            for role, body in (("parent", j.parent), ("child", j.child)):
                if body is not None and body not in self._bodies:
                    self.check.fault(j.place, f"unknown {role} {body!r}; known: {self._known()}")
            if j.child in carrier:
                other = carrier[j.child].name
                self.check.fault(j.place, f"body {j.child!r} already hangs on joint {other!r}")
                continue
            carrier[j.child] = j
            children.setdefault(j.parent, []).append(j)
        order: list[_Joint] = []
        waiting = children.get(None, [])[::-1]
        while waiting:
            j = waiting.pop()
            order.append(j)
            waiting.extend(children.get(j.child, [])[::-1])
        reached = {j.child for j in order}
        lost = [j for j in carrier.values() if j.child not in reached]
        lost = [j for j in lost if j.child in self._bodies and j.parent in self._bodies]
        if lost and not self.check.faults:
            names = ", ".join(repr(j.name) for j in lost[:10])
            self.check.fault(lost[0].place, f"the joints form a cycle: {names}")
        for frame in self._frames.values():
            if frame.body is not None and frame.body not in self._bodies:
                reason = f"unknown body {frame.body!r}; known: {self._known()}"
                self.check.fault(frame.place, reason)
        self._check_mimics(joints)
        return order

    def _known(self) -> str:
        names = ", ".join(map(repr, islice(self._bodies, 20)))
        return f"{names}, ..." if len(self._bodies) > 20 else names

    def _check_mimics(self, joints: list[_Joint]) -> None:
        known = {j.name: j for j in joints}
        for j in joints:
            if j.mimic is None:
                continue
            leader = known.get(j.mimic[0])
            if leader is None:
                self.check.fault(j.place, f"mimics the unknown joint {j.mimic[0]!r}")
            elif JOINTS[j.kind].nv != 1 or JOINTS[leader.kind].nv != 1:
                self.check.fault(
                    j.place,
                    f"{j.kind} joint mimics {leader.kind} joint {leader.name!r}; "
                    "both must have one degree of freedom",
                )
            else:
                seen = {j.name}
                while leader is not None and leader.mimic is not None and leader.name not in seen:
                    seen.add(leader.name)
                    leader = known.get(leader.mimic[0])
                    if len(seen) > MAX_MIMIC_CHAIN:
                        reason = f"follows a chain of more than {MAX_MIMIC_CHAIN} joints"
                        self.check.fault(j.place, reason)
                        break
                if leader is not None and leader.name in seen:
                    self.check.fault(j.place, "mimic joints follow each other in a cycle")

    # From the tree to the robot --------------------------------------------------------------

    def _merge(
        self, order: list[_Joint], merge_fixed: bool
    ) -> tuple[list[tuple[Body, Place, _Joint]], dict[str | None, tuple[str | None, Array]]]:
        """Return the bodies that stay, and for each name the body that carries it and where."""
        carriers: dict[str | None, tuple[str | None, Array]] = {
            None: (None, dual_quaternion.identity())
        }
        parts: dict[str, list[tuple[Body, Array]]] = {}
        stay: list[_Joint] = []
        for j in order:
            body = self._bodies[j.child][0]
            carrier, x = carriers[j.parent]
            placement = dual_quaternion.mul(x, j.joint.placement)
            if merge_fixed and j.kind == "fixed" and carrier is not None:
                carriers[j.child] = (carrier, frozen(placement))
                parts[carrier].append((body, placement))
                continue
            carriers[j.child] = (j.child, dual_quaternion.identity())
            parts[j.child] = [(body, dual_quaternion.identity())]
            direct = carrier == j.parent
            moved = j.joint if direct else replace(j.joint, placement=frozen(placement))
            stay.append(replace(j, joint=moved))
        kept = [(merged_body(parts[j.child]), self._bodies[j.child][1], j) for j in stay]
        return kept, carriers

    def _check_masses(self, kept: list[tuple[Body, Place, _Joint]]) -> None:
        for body, place, j in kept:
            immobile = j.kind == "fixed" and j.parent is None
            if immobile or is_symbolic(body.mass) or body.mass > 0.0:
                continue
            hint = (
                "; load it with merge_fixed=True, or with base='fixed' if it is the ground"
                if j.kind == "fixed" or j.parent is None
                else ""
            )
            self.check.fault(
                place,
                f"mass is zero on a body that moves (joint {j.name!r}, {j.kind}); "
                f"it must be positive{hint}",
            )

    def _assemble(
        self,
        kept: list[tuple[Body, Place, _Joint]],
        carriers: dict[str | None, tuple[str | None, Array]],
    ) -> Robot:
        index: dict[str | None, int] = {None: -1}
        for i, (body, _, _) in enumerate(kept):
            index[body.name] = i
        numbers = {j.name: i for i, (_, _, j) in enumerate(kept)}
        leaders = {j.name: j for _, _, j in kept if j.mimic is not None}
        joints: list[Joint] = []
        nq = nv = 0
        for _, _, j in kept:
            row = JOINTS[j.kind]
            q, v = slice(nq, nq + row.nq), slice(nv, nv + row.nv)
            if j.mimic is None:
                nq, nv = q.stop, v.stop
            parent = index[carriers[j.parent][0]]
            joints.append(replace(j.joint, parent=parent, q=q, v=v))
        for i, (_, _, j) in enumerate(kept):
            if j.mimic is not None:
                mimic = _resolved(j, leaders, numbers)
                self.check.numbers(j.place, "mimic along its chain", (mimic.ratio, mimic.offset), 2)
                lead = joints[mimic.joint]
                joints[i] = replace(joints[i], mimic=mimic, q=lead.q, v=lead.v)
        self._raise()
        frames = [
            Frame(name, index[carrier], x)
            for name, (carrier, x) in carriers.items()
            if name is not None and name != carrier
        ]
        for frame in self._frames.values():
            carrier, x = carriers[frame.body]
            placement = frozen(dual_quaternion.mul(x, frame.placement))
            direct = carrier == frame.body
            frames.append(
                Frame(frame.name, index[carrier], frame.placement if direct else placement)
            )
        return Robot(
            name=self.name,
            bodies=Named(body for body, _, _ in kept),
            joints=Named(joints),
            frames=Named(frames),
            gravity=self._gravity,
            warnings=tuple(self.warnings),
        )

    def _raise(self) -> None:
        if self.check.faults:
            raise ModelError(self.source, self.check.faults)


def _resolved(j: _Joint, followers: dict[str, _Joint], numbers: dict[str, int]) -> Mimic:
    """Return what a follower follows in the end, where its leader follows another."""
    assert j.mimic is not None
    leader, ratio, offset = j.mimic
    while leader in followers:
        further = followers[leader].mimic
        assert further is not None
        leader, offset, ratio = further[0], ratio * further[2] + offset, ratio * further[1]
    return Mimic(numbers[leader], ratio, offset)


def _plane(normal: Array) -> Array:
    """Return e1, e2, n: for a normal along z these are x, y, z, and so on around."""
    k = (int(np.argmax(np.abs(normal))) + 1) % 3
    e1 = np.eye(3)[k] - normal[k] * normal
    e1 = e1 / np.linalg.norm(e1)
    return asarray(np.stack([e1, np.cross(normal, e1), normal]))
