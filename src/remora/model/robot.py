"""The robot: a tree of bodies on joints, as immutable data.

Joint i carries body i. A joint's parent is a body with a smaller index, or -1 for the inertial
frame. Joint 0 carries the base and is treated like any other. Every number (mass, centre of mass,
inertia, placement, gravity) is an array that may be symbolic and may carry a leading batch shape;
the tree is static.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array, ArrayLike, asarray, is_symbolic
from remora.errors import ShapeError, UnknownName
from remora.model.constraint import Constraint, switched
from remora.model.named import Named
from remora.model.numbers import finite, frozen
from remora.model.robot_fields import rows
from remora.model.value_equality import ByValue


@dataclass(frozen=True, eq=False)
class Geometry(ByValue):
    """A visual shape of a body, not used by the dynamics.

    Attributes:
        kind: `box`, `cylinder`, `sphere`, `capsule`, `ellipsoid` or `mesh`.
        size: box: full lengths x, y, z; cylinder and capsule: radius, length along z; sphere:
            radius; ellipsoid: three radii; mesh: scale along x, y, z. Metres (scale: none).
        placement: pose in the body's frame, `(8,)`; `Builder.geometry` takes `xyz` and `rpy`, too.
        color: red, green, blue, alpha in [0, 1], or None.
        mesh: absolute path of the mesh file, or None. Loading does not open it.
    """

    part: ClassVar[str] = "geometry"
    kind: str
    size: tuple[float, ...]
    placement: Array = field(default_factory=dual_quaternion.identity)
    color: tuple[float, float, float, float] | None = None
    mesh: str | None = None


@dataclass(frozen=True, eq=False)
class Body(ByValue):
    """A rigid body; its frame is the frame its joint moves (the URDF link frame).

    Attributes:
        name: unique among bodies and frames.
        mass: `()`, kg.
        com: centre of mass in the body frame, `(3,)`, m.
        inertia: about the centre of mass in body axes, `(3, 3)`, kg m².
        geometry: visual shapes.
        inertial_frame: pose `(8,)` of the frame in which the file gives mass and inertia of the
            body, before fixed links were merged into it (the URDF `<inertial>`); None: the centre
            of mass, unrotated. No equation reads it: SPART's conventions depend on it.
    """

    part: ClassVar[str] = "body"
    name: str
    mass: Array
    com: Array
    inertia: Array
    geometry: tuple[Geometry, ...] = ()
    inertial_frame: tuple[float, ...] | None = None

    @property
    def inertial_placement(self) -> Array:
        """Pose of the inertial frame in the body's, `(8,)`: by default at `com`, unrotated."""
        if self.inertial_frame is None:
            return pose.from_translation(self.com)
        return np.array(self.inertial_frame)

    @property
    def is_centred(self) -> bool:
        """Whether the inertial frame is at the centre of mass; not if fixed links were merged."""
        if self.inertial_frame is None or is_symbolic(self.com):
            return True
        off = np.abs(pose.translation(self.inertial_placement) - self.com).max()
        return bool(off <= 1e-9 * (1.0 + np.abs(self.com).max()))

    def __repr__(self) -> str:
        """Return name and mass."""
        return f"Body({self.name!r}, mass={_number(self.mass)} kg)"


@dataclass(frozen=True)
class Mimic:
    """The relation of a mimic joint, with one degree of freedom: q = ratio · q_joint + offset.

    Attributes:
        joint: index of the leading joint; never a mimic joint itself.
        ratio: factor on its coordinate.
        offset: rad or m.
    """

    part: ClassVar[str] = "mimic"
    joint: int
    ratio: float
    offset: float


@dataclass(frozen=True, eq=False)
class Limits(ByValue):
    """The limits of a joint; each `(nv,)`, infinite if not specified.

    Attributes:
        lower: smallest coordinate, rad or m.
        upper: largest coordinate, rad or m.
        velocity: largest speed, rad/s or m/s.
        effort: largest torque or force, N m or N.
    """

    part: ClassVar[str] = "limits"
    lower: Array
    upper: Array
    velocity: Array
    effort: Array


@dataclass(frozen=True, eq=False)
class Joint(ByValue):
    """The joint that carries a body.

    Attributes:
        name: unique among joints.
        kind: a key of `remora.model.joint_types.JOINT_TYPES`.
        parent: index of the body it is mounted on, -1 for the inertial frame.
        q: slice of its coordinates in `q (..., nq)`; a mimic joint has its leader's.
        v: slice of its speeds in `v (..., nv)`; a mimic joint has its leader's.
        placement: pose of the joint frame in the parent's frame, `(8,)`.
        axes: the unit axes of its motion in the joint frame, `(k, 3)`.
        pitch: of a helical joint, m per rad.
        limits: position, speed and effort limits.
        damping: viscous damping, `(nv,)`, N m s/rad or N s/m.
        friction: dry friction, `(nv,)`, N m or N.
        rotor_inertia: reflected inertia of the actuator, `(nv,)`, kg m² or kg.
        stiffness: spring stiffness, `(nv,)`, N m/rad or N/m; zero for joints without a spring.
        spring_reference: coordinates at which the spring is relaxed, `(nv,)`, rad or m.
        mimic: the relation to its leading joint, or None.
    """

    part: ClassVar[str] = "joint"
    name: str
    kind: str
    parent: int
    q: slice
    v: slice
    placement: Array
    axes: Array
    pitch: Array
    limits: Limits
    damping: Array
    friction: Array
    rotor_inertia: Array
    stiffness: Array
    spring_reference: Array
    mimic: Mimic | None = None

    def __repr__(self) -> str:
        """Return name, type, parent and the slices of q and v."""
        return (
            f"Joint({self.name!r}, {self.kind}, parent={self.parent}, "
            f"q={self.q.start}:{self.q.stop}, v={self.v.start}:{self.v.stop})"
        )


@dataclass(frozen=True, eq=False)
class Frame(ByValue):
    """A named frame fixed to a body, such as a tool, a sensor or a merged link.

    Attributes:
        name: unique among bodies and frames.
        body: index of the body that carries it; -1: fixed in the inertial frame.
        placement: pose in that body's frame, `(8,)`.
    """

    part: ClassVar[str] = "frame"
    name: str
    body: int
    placement: Array

    def __repr__(self) -> str:
        """Return name and carrying body."""
        return f"Frame({self.name!r}, body={self.body})"


FrameLike = str | int | Frame
"""A frame: the name of a body or frame, the index of a body, or a Frame."""

P = TypeVar("P", Body, Joint, Frame, Constraint)
#: The parts of a robot that are replaced as a whole, and what one of them is called.
_PARTS = {"bodies": "body", "joints": "joint", "frames": "frame", "constraints": "constraint"}
_NO_CONSTRAINTS: Named[Constraint] = Named((), "constraint")


@dataclass(frozen=True, eq=False)
class Robot(ByValue):
    """A tree of bodies on joints, with named frames, gravity and constraints.

    Robots are made and validated by `rm.load`, `rm.Builder`, `rm.from_dh` or `rm.random_robot`.

    Attributes:
        name: name of the robot.
        bodies: body i is carried by joint i.
        joints: ordered so that a parent comes before its children.
        frames: named frames in addition to the body frames.
        gravity: acceleration in the inertial frame, `(3,)`, m/s².
        warnings: irregularities that the loader accepted.
        dynamics: False for a kinematics-only model, refused by functions that need masses.
        constraints: what acts beside the joints: closed loops, rods and gears.
    """

    part: ClassVar[str] = "robot"
    name: str
    bodies: Named[Body]
    joints: Named[Joint]
    frames: Named[Frame]
    gravity: Array
    warnings: tuple[str, ...] = ()
    dynamics: bool = True
    constraints: Named[Constraint] = _NO_CONSTRAINTS
    nq: int = field(init=False)
    nv: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute nq and nv."""
        super().__post_init__()
        object.__setattr__(self, "nq", max((j.q.stop for j in self.joints), default=0))
        object.__setattr__(self, "nv", max((j.v.stop for j in self.joints), default=0))

    @property
    def mass(self) -> Array:
        """Total mass, `()`, kg."""
        total = self.bodies[0].mass
        for body in self.bodies[1:]:
            total = total + body.mass
        return total

    def body_index(self, body: str | int) -> int:
        """Return the index of the body with that name; an index is checked and returned."""
        return self.bodies.position(body)

    def joint_index(self, joint: str | int) -> int:
        """Return the index of the joint with that name; an index is checked and returned."""
        return self.joints.position(joint)

    def frame(self, frame: FrameLike) -> Frame:
        """Return the frame meant by a frame's or body's name, a body's index, or a Frame."""
        if isinstance(frame, Frame):
            if frame.body >= 0:
                self.body_index(frame.body)  # of another robot, it may not exist here
            return frame
        if isinstance(frame, str):
            if frame in self.frames:
                return self.frames[frame]
            if frame not in self.bodies:
                known = [*self.bodies.names, *self.frames.names]
                raise UnknownName("body or frame", frame, known)
        index = self.body_index(frame)
        return Frame(self.bodies[index].name, index, dual_quaternion.identity())

    def replace(self, **changes: Any) -> Robot:
        """Return a copy with another `name`, `bodies`, `joints`, `frames`, `gravity`, ...

        Here and in `replace_body`, `replace_joint` and `replace_constraint` the numbers may be
        symbolic or carry a batch shape; they are copied, and must have the right shape and be
        finite. Physical consistency (a positive mass, a unit pose) is not validated.

        Raises:
            UnknownName: for a field that a robot (body, joint) does not have; the message lists the
                known ones.
            ShapeError: for numbers of the wrong shape or that are not finite.
        """
        _check_fields(self, "robot", changes)
        for key, what in _PARTS.items():
            if key in changes:
                known = {id(item) for item in getattr(self, key)}
                items = [i if id(i) in known else _with_arrays(i, what) for i in changes[key]]
                changes[key] = Named(items, what)
        if "gravity" in changes:
            changes["gravity"] = frozen(finite("gravity", changes["gravity"], 3))
        return dataclasses.replace(self, **changes)

    def replace_body(self, body: str | int, /, **changes: Any) -> Robot:
        """Return a copy in which one body has another `mass`, `com`, `inertia` or `geometry`.

        An inertial frame at the centre of mass moves with it.
        """
        index = self.body_index(body)
        changes = _with_inertial_frame(self.bodies[index], changes)
        return self.replace(bodies=_replaced(self.bodies, index, changes))

    def replace_joint(self, joint: str | int, /, **changes: Any) -> Robot:
        """Return a copy in which one joint has another `placement`, `pitch`, `damping`, ...

        A single number applies to all speeds of the joint.
        """
        return self.replace(joints=_replaced(self.joints, self.joint_index(joint), changes))

    def replace_constraint(self, constraint: str | int, /, **changes: Any) -> Robot:
        """Return a copy in which one constraint has another `length`, `child_placement`, ..."""
        index = self.constraints.position(constraint)
        return self.replace(constraints=_replaced(self.constraints, index, changes))

    def with_active(self, on: Iterable[str] = (), off: Iterable[str] = ()) -> Robot:
        """Return a copy with constraints switched on and off, by name; itself if there are none.

        Raises:
            UnknownName: for a name that is not a constraint; the message lists the known ones.
            InvalidValue: for a constraint that is already on or off.
        """
        constraints = switched(self.constraints, on, off)
        if all(new is old for new, old in zip(constraints, self.constraints, strict=True)):
            return self
        return dataclasses.replace(self, constraints=Named(constraints, "constraint"))

    def split(self, joints: Any) -> Any:
        """Return the robot cut into subsystems at some joints; see `rm.papers.sa24.split_robot`."""
        # Assemblies build on robots, so the public function is imported at the call.
        return importlib.import_module("remora.papers.sa24").split_robot(self, joints)

    def __repr__(self) -> str:
        """Return the tree, one line per joint, its frames and its constraints."""
        depth = {-1: 0}
        count = "1 body" if len(self.bodies) == 1 else f"{len(self.bodies)} bodies"
        head = f"Robot {self.name!r}: {count}, nq={self.nq}, nv={self.nv}"
        lines = [f"{head}, {_number(self.mass)} kg"]
        for i, (body, joint) in enumerate(zip(self.bodies, self.joints, strict=True)):
            depth[i] = depth[joint.parent] + 1
            indent = "  " * depth[i]
            lines.append(f"{indent}{i} {body.name}  <- {joint.name} ({joint.kind})")
        if self.frames:
            lines.append("  frames: " + ", ".join(self.frames.names))
        if self.constraints:
            shown = (f"{c.name} ({c.kind}{'' if c.active else ', off'})" for c in self.constraints)
            lines.append("  constraints: " + ", ".join(shown))
        return "\n".join(lines)


def _check_fields(
    item: Robot | Body | Joint | Frame | Constraint, what: str, changes: Iterable[str]
) -> None:
    known = [f.name for f in dataclasses.fields(item) if f.init]
    for key in changes:
        if key not in known:
            raise UnknownName(f"field of a {what}", key, known)


def _replaced(items: Named[P], index: int, changes: dict[str, Any]) -> list[P]:
    _check_fields(items[index], items.what, changes)
    return [
        dataclasses.replace(item, **changes) if i == index else item for i, item in enumerate(items)
    ]


def _with_inertial_frame(body: Body, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of a body, with its inertial frame where that was at the old `com`."""
    if body.inertial_frame is None or "com" not in changes or not body.is_centred:
        return changes
    com = asarray(changes["com"])
    if is_symbolic(com) or com.shape != (3,):
        return changes
    moved = pose.from_parts(body.inertial_placement[:4], com)
    return {"inertial_frame": tuple(moved.tolist())} | changes


def _with_arrays(item: P, what: str) -> P:
    """Return the part with its numbers checked and copied to read-only arrays."""
    clean: dict[str, Array] = {}
    for key, row in rows(what, only="replaceable").items():
        name = f"{key} of {what} {item.name!r}"
        if row.shape is None and isinstance(item, Joint):
            clean[key] = _per_speed(name, getattr(item, key), item.v.stop - item.v.start)
        else:
            clean[key] = frozen(finite(name, getattr(item, key), *(row.shape or ())))
    if "axes" in clean and clean["axes"].ndim != 2:
        shape = clean["axes"].shape
        raise ShapeError(f"axes of {what} {item.name!r} must have shape (k, 3), not {shape}")
    return dataclasses.replace(item, **clean)


def _per_speed(name: str, value: ArrayLike, nv: int) -> Array:
    array = finite(name, value)
    if array.shape == ():
        array = np.broadcast_to(array, (nv,))
    return frozen(finite(name, array, nv))


def _number(x: Array) -> str:
    x = asarray(x)
    if is_symbolic(x):
        return "symbolic"
    return f"{float(x):.6g}" if x.shape == () else np.array2string(x, precision=6)
