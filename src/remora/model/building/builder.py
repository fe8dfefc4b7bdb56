"""The builder that every robot is made with, whether from a file or from Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypedDict, Unpack

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_symbolic
from remora.errors import Fault, ModelError
from remora.model.arguments import known_options
from remora.model.building import physical_checks, tree
from remora.model.building.constraint_drafts import DescribesConstraints
from remora.model.building.inertia_consistency import treatment, violation
from remora.model.building.joint_kinds import base_kind, joint_axes, kind_named
from remora.model.building.tree import BodyDraft, FrameDraft, JointDraft
from remora.model.building.validate import Checker, Place
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Body, Geometry, Joint, Limits, Named, Robot

#: Maximum number of bodies; a description with more is refused.
MAX_BODIES = 10_000

#: Maximum number of warnings: a file may have a hundred thousand unknown elements.
MAX_WARNINGS = 100


class JointProperties(TypedDict, total=False):
    """Limits, losses and springs of a joint; one number, or one per speed.

    Attributes:
        lower: smallest coordinate.
        upper: largest coordinate.
        velocity: largest speed.
        effort: largest force or torque.
        damping: viscous friction.
        friction: dry friction.
        rotor_inertia: reflected inertia of the drive.
        stiffness: of a spring in the joint, N m/rad or N/m.
        spring_reference: coordinate at which the spring is relaxed.
    """

    lower: ArrayLike
    upper: ArrayLike
    velocity: ArrayLike
    effort: ArrayLike
    damping: ArrayLike
    friction: ArrayLike
    rotor_inertia: ArrayLike
    stiffness: ArrayLike
    spring_reference: ArrayLike


class Builder(DescribesConstraints):
    """Collects bodies, joints, frames and constraints; `build` validates and makes the Robot.

    They may come in any order.

    Faults are collected, not raised one by one: `build` reports all of them in one `ModelError`.

    Example:
        >>> robot = (
        ...     rm.Builder("one arm")
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
        super().__init__(Checker())
        self.warnings: list[str] = []
        self.loud: list[str] = []
        #: Pose of a root without a joint; None: at the origin of the inertial frame.
        self.root_placement: Array | None = None
        self.dynamics = True
        self._gravity = self.check.numbers(Place("gravity"), "gravity", gravity, 3)
        self._bodies: dict[str, BodyDraft] = {}
        self._joints: dict[str, JointDraft] = {}
        self._frames: dict[str, FrameDraft] = {}
        self._kindless: set[str] = set()
        #: Shapes of bodies that are not described yet.
        self._early_shapes: dict[str, list[tuple[Geometry, Place]]] = {}

    def body(
        self,
        name: str,
        mass: ArrayLike = 0.0,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike | None = None,
        geometry: Sequence[Geometry] = (),
        place: Place | None = None,
        inertial_frame: ArrayLike | None = None,
    ) -> Builder:
        """Add a body.

        Args:
            name: unique among bodies and frames.
            mass: kg; may be zero for a body that is merged by a fixed joint, or inside a chain
                whose outer bodies have inertia.
            com: centre of mass in the body frame, m.
            inertia: about the centre of mass, body axes, kg m²: a 3x3 matrix, its diagonal, or
                xx, xy, xz, yy, yz, zz.
            geometry: visible shapes.
            place: location of the description in its file.
            inertial_frame: pose of the file's inertial frame, `(8,)`, if it is not the centre of
                mass, unrotated; see `Body`.
        """
        place = place or Place(f"body {name!r}")
        early = [shape for shape, _ in self._early_shapes.pop(name, ())]
        body = Body(
            name,
            self.check.mass(place, mass),
            self.check.numbers(place, "centre of mass", com, 3),
            self.check.inertia(place, inertia),
            (*geometry, *early),
            None if inertial_frame is None else self._inertial_frame(place, inertial_frame),
        )
        for shape in geometry:
            self.check.geometry(place, shape)
        if self.check.new_name(place, name, self._bodies, self._frames):
            self._bodies[name] = BodyDraft(body, place)
        return self

    def _inertial_frame(self, place: Place, given: ArrayLike) -> tuple[float, ...]:
        return tuple(float(x) for x in self.check.placement(place, given))

    def geometry(
        self,
        body: str,
        kind: str,
        size: float | Sequence[float] = (1.0, 1.0, 1.0),
        placement: ArrayLike | None = None,
        xyz: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
        color: tuple[float, float, float, float] | None = None,
        mesh: str | None = None,
        place: Place | None = None,
    ) -> Builder:
        """Add a visual shape to a body.

        Args:
            body: the body that it is fixed to.
            kind: `box`, `cylinder`, `sphere`, `capsule`, `ellipsoid` or `mesh`.
            size: as in `Geometry`, m; of a mesh its scale.
            placement: pose of the shape in the body's frame; or give `xyz` and `rpy`.
            xyz: position of its centre, m.
            rpy: its roll, pitch, yaw, rad.
            color: red, green, blue, alpha from 0 to 1.
            mesh: path of the mesh file.
            place: location of the description in its file.
        """
        place = place or Place(f"geometry of body {body!r}")
        pose = self.check.pose(place, placement, xyz, rpy)
        sizes = (size,) if isinstance(size, (int, float)) else tuple(size)
        shape = Geometry(kind, sizes, pose, color, mesh)
        self.check.geometry(place, shape)
        draft = self._bodies.get(body)
        if draft is None:
            self._early_shapes.setdefault(body, []).append((shape, place))
        else:
            shapes = (*draft.body.geometry, shape)
            described = dataclasses.replace(draft.body, geometry=shapes)
            self._bodies[body] = BodyDraft(described, draft.place)
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
        mimic: tuple[str, float, float] | None = None,
        place: Place | None = None,
        **properties: Unpack[JointProperties],
    ) -> Builder:
        """Add the joint that carries the body `child`.

        Args:
            name: unique among joints.
            kind: a key of JOINT_TYPES (or `continuous`, `floating`).
            parent: the body it is mounted on; None for the inertial frame.
            child: the body it carries.
            placement: pose of the joint frame in the parent's frame; or give `xyz` and `rpy`.
            xyz: position of the joint frame in the parent's frame, m.
            rpy: its roll, pitch, yaw, rad.
            axis: direction of motion (planar: normal of the plane); default z. Any length.
            axis2: second axis of a universal joint, in the frame rotated by the first.
            pitch: of a helical joint, m per rad.
            mimic: (leading joint, ratio, offset): q = ratio · q_leader + offset.
            place: location of the description in its file.
            **properties: `lower`, `upper`, `velocity` and `effort` limits, unlimited by default;
                `damping`, `friction`, `rotor_inertia`, `stiffness` and `spring_reference`, zero by
                default; one number, or one per speed. See `JointProperties`.

        Raises:
            UnknownName: for a property that joints do not have.
        """
        known_options("property of a joint", properties, JointProperties.__annotations__)
        place = place or Place(f"joint {name!r}")
        check = self.check
        known = kind_named(kind)
        if known is None:
            check.fault(place, f"unknown kind {kind!r}; known: {', '.join(JOINT_TYPES)}")
            return self.kindless_joint(name, parent, child, place)
        kind, row = known, JOINT_TYPES[known]
        given = properties.get
        low = check.bound(place, "lower limit", given("lower", -np.inf), row.nv)
        high = check.bound(place, "upper limit", given("upper", np.inf), row.nv)
        if np.any(low == np.inf) or np.any(high == -np.inf):
            check.fault(place, f"limits {low} and {high} leave no room to move")
        elif np.any(low > high):
            check.fault(place, f"lower limit {low} is above the upper limit {high}")
        joint = Joint(
            name=name,
            kind=kind,
            parent=-1,
            q=slice(0, 0),
            v=slice(0, 0),
            placement=check.pose(place, placement, xyz, rpy),
            axes=joint_axes(check, place, kind, axis, axis2),
            pitch=check.numbers(place, "pitch", pitch),
            limits=Limits(
                low,
                high,
                check.largest(place, "velocity limit", given("velocity", np.inf), row.nv),
                check.largest(place, "effort limit", given("effort", np.inf), row.nv),
            ),
            damping=check.per_speed(place, "damping", given("damping", 0.0), row.nv),
            friction=check.per_speed(place, "friction", given("friction", 0.0), row.nv),
            rotor_inertia=check.per_speed(
                place, "rotor inertia", given("rotor_inertia", 0.0), row.nv
            ),
            stiffness=check.spring(place, given("stiffness", 0.0), row.nv, row.quaternion is None),
            spring_reference=check.signed(
                place, "spring reference", given("spring_reference", 0.0), row.nv
            ),
        )
        if mimic is not None:
            numbers = check.numbers(place, "mimic ratio and offset", mimic[1:], 2)
            mimic = (mimic[0], float(numbers[0]), float(numbers[1]))
        if self.check.new_name(place, name, self._joints):
            self._joints[name] = JointDraft(name, kind, parent, child, place, joint, mimic)
        return self

    def kindless_joint(self, name: str, parent: str | None, child: str, place: Place) -> Builder:
        """Add a joint of unknown type, so that the tree can still be checked.

        Nothing else about it is checked, since its requirements depend on its type.
        """
        if name not in self._joints:
            self._kindless.add(name)
        return self.joint(name, "fixed", parent, child, place=place)

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
            place: location of the description in its file.
        """
        place = place or Place(f"frame {name!r}")
        x = self.check.pose(place, placement, xyz, rpy)
        if self.check.new_name(place, name, self._bodies, self._frames):
            self._frames[name] = FrameDraft(name, body, place, x)
        return self

    def gravity(self, value: ArrayLike) -> Builder:
        """Set the acceleration of gravity in the inertial frame, `(3,)`, m/s²."""
        self._gravity = self.check.numbers(Place("gravity"), "gravity", value, 3)
        return self

    def base(self, kind: str) -> Builder:
        """Change the type of the joint mounted on the inertial frame, if there is one.

        It keeps its name and placement and loses its axes, limits and friction. If there is none,
        `build` adds one.

        Raises:
            InvalidValue: if there is no such type.
        """
        kind = base_kind(kind)
        bases = [j for j in self._joints.values() if j.parent is None]
        if len(bases) > 1:
            names = ", ".join(repr(j.name) for j in bases[:10])
            self.check.fault(
                Place("base"), f"which joint should be {kind}? On the inertial frame hang {names}"
            )
        elif bases and bases[0].kind != kind:
            (old,) = bases
            del self._joints[old.name]
            x = old.joint.placement
            self.joint(old.name, kind, None, old.child, placement=x, place=old.place)
        return self

    def build(
        self,
        base: str | None = "free",
        merge_fixed: bool = False,
        inertia: str = "strict",
        dynamics: bool | None = None,
    ) -> Robot:
        """Validate everything and return the robot.

        Args:
            base: type of the root body's joint, if the description has none.
            merge_fixed: merge each body on a fixed joint into its parent; its frame is kept.
            inertia: `strict` refuses an inertia that no body can have, `warn` computes with it as
                long as the mass matrix stays positive definite, `repair` replaces it by the
                nearest possible one.
            dynamics: False for a kinematics-only model, whose masses are not checked; default: from
                the description.

        Raises:
            ModelError: with every fault found.
            InvalidValue: if `base` is not a joint type.
            UnknownName: if `inertia` is not one of these.
        """
        base, how = None if base is None else base_kind(base), treatment(inertia)
        dynamics = self.dynamics if dynamics is None else dynamics
        joints = self._with_base(base)
        order = tree.order(self._bodies, joints, self.check)
        for frame in self._frames.values():
            tree.check_known(self._bodies, frame.body, "body", frame.place, self.check)
        for body, shapes in self._early_shapes.items():
            tree.check_known(self._bodies, body, "body", shapes[0][1], self.check)
        tree.check_mimics(joints, self._kindless, self.check)
        self.check_constraints(self._bodies, joints, self._frames, self._kindless)
        if self.check.faults and how == "strict" and dynamics:
            self._judge_links(joints if merge_fixed else ())
        self._raise()
        kept, carriers = tree.merge(self._bodies, order, merge_fixed)
        indexed = tree.indexed_joints(kept, carriers, self.check)
        constraints = self.indexed_constraints(kept, carriers, self._frames)
        self._raise()
        robot = Robot(
            name=self.name,
            bodies=Named((draft.body for draft, _ in kept), "body"),
            joints=Named(indexed, "joint"),
            frames=Named(tree.indexed_frames(kept, carriers, self._frames.values()), "frame"),
            gravity=self._gravity,
            dynamics=dynamics,
            constraints=Named(constraints, "constraint"),
        )
        if dynamics:
            places = [draft.place for draft, _ in kept]
            robot = physical_checks.judged(robot, places, how, self.check, self.warn)
            self._raise()
        return dataclasses.replace(robot, warnings=tuple(self.warnings))

    def has_massless_root(self) -> bool:
        """Tell whether a root without a joint is massless, with all bodies fixed to it."""
        return tree.massless_root(self._bodies, self._joints.values())

    def warn(self, place: Place, reason: str, loud: bool = False) -> None:
        """Record an acceptable irregularity in the robot's `warnings`.

        Args:
            place: where.
            reason: what.
            loud: whether it affects what can be computed; `load` then issues a warning.
        """
        text = str(Fault(place.element, reason, place.line))
        if loud:
            self.loud.append(text)
        if len(self.warnings) < MAX_WARNINGS or loud:
            self.warnings.append(text)
        elif len(self.warnings) == MAX_WARNINGS:
            self.warnings.append(f"... more than {MAX_WARNINGS} warnings")

    # Parts of a description ------------------------------------------------------------------

    def _judge_links(self, joints: Sequence[JointDraft]) -> None:
        """Check links that are not merged with others, if the tree itself is faulty."""
        merged = {end for j in joints if j.kind == "fixed" for end in (j.parent, j.child)}
        for name, draft in self._bodies.items():
            inertia = draft.body.inertia
            reason = None if is_symbolic(inertia) else violation(inertia)
            if reason is not None and name not in merged:
                self.check.fault(draft.place, reason)

    def _with_base(self, base: str | None) -> list[JointDraft]:
        """Return the joints, with one from the inertial frame for a root that has none."""
        joints = list(self._joints.values())
        carried = {j.child for j in joints}
        roots = [name for name in self._bodies if name not in carried]
        if not self._bodies:
            self.check.fault(Place("robot"), "has no bodies")
        elif len(roots) > 1:
            if carried <= self._bodies.keys():  # otherwise the fault is the unknown child
                names = ", ".join(map(repr, roots[:10]))
                place = self._bodies[roots[1]].place
                self.check.fault(place, f"there are several roots (carried by no joint): {names}")
        elif roots and base is None:
            place = self._bodies[roots[0]].place
            self.check.fault(place, f"no joint carries the body {roots[0]!r} and base is None")
        elif roots and base is not None:
            name = "base"
            while name in self._joints:
                name = f"{name}_joint"
            at, place = self.root_placement, Place(f"base of {roots[0]!r}")
            self.joint(name, base, None, roots[0], placement=at, place=place)
            joints = [self._joints.pop(name), *joints] if name in self._joints else joints
        if len(self._bodies) > MAX_BODIES:
            reason = f"has {len(self._bodies)} bodies; {MAX_BODIES} are allowed"
            self.check.fault(Place("robot"), reason)
        return joints

    def _raise(self) -> None:
        if self.check.faults:
            raise ModelError(self.source, self.check.faults)
