"""What a run records and what follows from it: tables with shapes, names and units; views by name.

A *recorded* column is what the simulation itself knows: time, state, forces, work. A *derived*
quantity is a function of those, sample by sample; kernels compute it for all samples at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from remora.algebra import pose
from remora.algebra.namespace import Array
from remora.dynamics.kernels.compiled import FUNCTIONS, CompiledRobot
from remora.dynamics.kernels.tree_recursions import RECURSIONS
from remora.errors import RemoraError, UnknownName
from remora.model.joints import coordinates, speeds
from remora.model.robot import Joint, Robot

if TYPE_CHECKING:
    from remora.simulation.recording.recording import Recording

#: Up to this many bodies every function is compiled; the straight line of a larger robot would
#: take longer to compile than NumPy takes for a whole run (only recursions are loops there).
LARGEST_COMPILED = 20
#: How many samples of a larger robot are evaluated at a time.
ROWS = 1024

Components = list[tuple[str, str]]
"""The name and the unit of each number of a quantity, in order: `("elbow", "rad")`."""


@dataclass(frozen=True)
class Column:
    """A recorded column: one entry per sample.

    Attributes:
        shape: (robot) -> the shape of one sample.
        components: (robot) -> name and unit of each of its numbers.
        meaning: what it is, for readers of the file.
        dtype: `float64` or `int64`.
    """

    shape: Callable[[Robot], tuple[int, ...]]
    components: Callable[[Robot], Components]
    meaning: str
    dtype: str = "float64"


@dataclass(frozen=True, kw_only=True)
class Quantity(Column):
    """A derived quantity.

    Attributes:
        of: (compiled robot, columns `(n, ...)` by name) -> the values `(n, ...)`.
        stored: whether a run on disk holds it, for readers without Remora.
    """

    of: Callable[[CompiledRobot, Mapping[str, Array]], Array]
    stored: bool = False


# Names and units of the numbers of a joint ------------------------------------------------------

#: Units of a coordinate, a speed, its rate and a force.
_TURN = ("rad", "rad/s", "rad/s²", "N m")
_TRAVEL = ("m", "m/s", "m/s²", "N")
_COORDINATE, _SPEED, _RATE, _FORCE = range(4)

#: The freedoms of each kind of joint; a joint with one freedom needs no name for it.
FREEDOMS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "fixed": (),
    "revolute": (("", _TURN),),
    "prismatic": (("", _TRAVEL),),
    "helical": (("", _TURN),),
    "cylindrical": (("angle", _TURN), ("travel", _TRAVEL)),
    "universal": (("angle1", _TURN), ("angle2", _TURN)),
    "planar": (("x", _TRAVEL), ("y", _TRAVEL), ("angle", _TURN)),
    "cartesian": (("x", _TRAVEL), ("y", _TRAVEL), ("z", _TRAVEL)),
    "spherical": (("wx", _TURN), ("wy", _TURN), ("wz", _TURN)),
    "free": (
        ("wx", _TURN), ("wy", _TURN), ("wz", _TURN),
        ("vx", _TRAVEL), ("vy", _TRAVEL), ("vz", _TRAVEL),
    ),
}  # fmt: skip
_QUATERNION = (("rw", "1"), ("rx", "1"), ("ry", "1"), ("rz", "1"))
_POSE = (*_QUATERNION, ("dw", "m"), ("dx", "m"), ("dy", "m"), ("dz", "m"))
_TWIST = tuple((name, units[_SPEED]) for name, units in FREEDOMS["free"])
_WRENCH = (("fx", "N"), ("fy", "N"), ("fz", "N"), ("tx", "N m"), ("ty", "N m"), ("tz", "N m"))
_MOMENTUM = (
    ("px", "N s"), ("py", "N s"), ("pz", "N s"), ("lx", "N m s"), ("ly", "N m s"), ("lz", "N m s"),
)  # fmt: skip
#: Coordinates that are no freedoms.
_UNIT = {"spherical": _QUATERNION, "free": _POSE}
#: Forces on speeds that have names of their own.
_PUSHES: dict[str, str] = {
    "wx": "tx", "wy": "ty", "wz": "tz", "vx": "fx", "vy": "fy", "vz": "fz",
}  # fmt: skip


def _freedoms(joint: Joint, which: int) -> tuple[tuple[str, str], ...]:
    if which == _COORDINATE and joint.kind in _UNIT:
        return _UNIT[joint.kind]
    named: dict[str, str] = _PUSHES if which == _FORCE else {}
    return tuple((named.get(name, name), units[which]) for name, units in FREEDOMS[joint.kind])


def _per_joint(which: int) -> Callable[[Robot], Components]:
    def components(robot: Robot) -> Components:
        return [
            (f"{joint.name}.{name}" if name else joint.name, unit)
            for joint in robot.joints
            if joint.mimic is None
            for name, unit in _freedoms(joint, which)
        ]

    return components


def _per_body(own: tuple[tuple[str, str], ...]) -> Callable[[Robot], Components]:
    return lambda robot: [(f"{b.name}.{name}", unit) for b in robot.bodies for name, unit in own]


def _plain(*own: tuple[str, str]) -> Callable[[Robot], Components]:
    return lambda robot: list(own)


def _shape(*shape: int) -> Callable[[Robot], tuple[int, ...]]:
    return lambda robot: shape


def _nq(robot: Robot) -> tuple[int, ...]:
    return (robot.nq,)


def _nv(robot: Robot) -> tuple[int, ...]:
    return (robot.nv,)


def _bodies(width: int) -> Callable[[Robot], tuple[int, ...]]:
    return lambda robot: (len(robot.bodies), width)


# How a derived quantity is computed -------------------------------------------------------------


def evaluated(fast: CompiledRobot, name: str, *arrays: Array | None, **static: Any) -> Array:
    """Return a function of the library for all samples, `(n, ...)`.

    By its kernel; or, for a robot too large for one, by NumPy in blocks of samples. As in a
    kernel, a sample that is not finite gives NaN. Arrays are `(n, ...)`, None where left out.
    """
    robot = fast.robot
    if len(robot.bodies) <= LARGEST_COMPILED or (name in RECURSIONS and not static):
        return getattr(fast, name)(*arrays, **static)
    given = [a for a in arrays if a is not None]
    fine = np.all([np.isfinite(a).all(axis=tuple(range(1, a.ndim))) for a in given], axis=0)
    rows = np.flatnonzero(fine)
    function = FUNCTIONS[name]
    parts = [
        function(robot, *(None if a is None else a[block] for a in arrays), **static)
        for block in np.array_split(rows, max(1, -(-len(rows) // ROWS)))
    ]
    result = np.full((len(fine), *parts[0].shape[1:]), np.nan)
    result[rows] = np.concatenate(parts)
    return result


def _by(name: str, *arguments: str) -> Callable[[CompiledRobot, Mapping[str, Array]], Array]:
    return lambda fast, columns: evaluated(fast, name, *(columns[a] for a in arguments))


def _driven(name: str) -> Callable[[CompiledRobot, Mapping[str, Array]], Array]:
    """Return a function of the forces: all generalized forces, and wrenches if there are any."""

    def of(fast: CompiledRobot, columns: Mapping[str, Array]) -> Array:
        # The articulated recursion has no joints that follow others.
        follows = any(joint.mimic is not None for joint in fast.robot.joints)
        static = {"formulation": "composite"} if follows else {}
        total = columns["tau"] + columns["passive"]
        wrenches = columns.get("wrenches")
        return evaluated(fast, name, columns["q"], columns["v"], total, wrenches, **static)

    return of


def _energy(fast: CompiledRobot, columns: Mapping[str, Array]) -> Array:
    return QUANTITIES["kinetic_energy"].of(fast, columns) + QUANTITIES["potential_energy"].of(
        fast, columns
    )


# The tables -------------------------------------------------------------------------------------

#: What the simulation writes down at every sample.
RECORDED: dict[str, Column] = {
    "t": Column(_shape(), _plain(("", "s")), "time"),
    "q": Column(_nq, _per_joint(_COORDINATE), "configuration"),
    "v": Column(_nv, _per_joint(_SPEED), "velocity; of a free base [ω, v] in its own axes"),
    "tau": Column(
        _nv, _per_joint(_FORCE),
        "actuation at every joint, and what prescribed and locked joints need",
    ),
    "passive": Column(_nv, _per_joint(_FORCE), "forces of damping, friction and stops"),
    "wrenches": Column(
        _bodies(6), _per_body(_WRENCH),
        "external wrench [f, τ] on each body, in its own axes, about its origin",
    ),
    "work": Column(
        _shape(3), _plain(("actuation", "J"), ("external", "J"), ("passive", "J")),
        "work done since the start by actuation, external wrenches and passive forces",
    ),
    "phase": Column(_shape(), _plain(("", "1")), "number of the phase of the run", "int64"),
}  # fmt: skip

#: What follows from that.
QUANTITIES: dict[str, Quantity] = {
    "vdot": Quantity(
        _nv, _per_joint(_RATE), "rate of the components of v",
        of=_driven("forward_dynamics"), stored=True,
    ),
    "reactions": Quantity(
        _bodies(6), _per_body(_WRENCH),
        "the constraint's wrench [f, τ] on each body through its joint, in the body's own axes, "
        "about its origin",
        of=_driven("reaction_wrenches"), stored=True,
    ),
    "momentum": Quantity(
        _shape(6), _plain(*_MOMENTUM),
        "[linear, angular about the inertial origin] momentum, inertial axes",
        of=_by("momentum", "q", "v"), stored=True,
    ),
    "centroidal_momentum": Quantity(
        _shape(6), _plain(*_MOMENTUM),
        "[linear, angular about the centre of mass] momentum, inertial axes",
        of=_by("centroidal_momentum", "q", "v"),
    ),
    "kinetic_energy": Quantity(
        _shape(), _plain(("", "J")), "kinetic energy, rotors included",
        of=_by("kinetic_energy", "q", "v"),
    ),
    "potential_energy": Quantity(
        _shape(), _plain(("", "J")), "potential energy of gravity, zero at the inertial origin",
        of=_by("potential_energy", "q"),
    ),
    "energy": Quantity(
        _shape(), _plain(("", "J")), "kinetic and potential energy", of=_energy, stored=True
    ),
    "com": Quantity(
        _shape(3), _plain(("x", "m"), ("y", "m"), ("z", "m")),
        "centre of mass of the whole robot, inertial axes",
        of=_by("center_of_mass", "q"), stored=True,
    ),
    "poses": Quantity(
        _bodies(8), _per_body(_POSE), "pose of each body, a unit dual quaternion, inertial frame",
        of=_by("poses", "q"),
    ),
    "twists": Quantity(
        _bodies(6), _per_body(_TWIST), "twist [ω, v] of each body in its own axes",
        of=_by("twists", "q", "v"),
    ),
}  # fmt: skip

#: Derived quantities that a run on disk holds.
STORED = tuple(name for name, row in QUANTITIES.items() if row.stored)


def column(name: str) -> Column:
    """Return the row of a recorded column or derived quantity; an unknown name lists them."""
    table = {**RECORDED, **QUANTITIES}
    if name not in table:
        raise UnknownName("quantity of a run", name, table)
    return table[name]


def recorded(wrenches: bool) -> list[str]:
    """Return the names of the recorded columns of a run, with external wrenches or without."""
    return [name for name in RECORDED if wrenches or name != "wrenches"]


def unwritten(robot: Robot, name: str, rows: int) -> Array:
    """Return rows `(rows, ...)` of a column or quantity that nothing was written into: NaN, -1."""
    row = column(name)
    fill = np.nan if row.dtype == "float64" else -1
    return np.full((rows, *row.shape(robot)), fill, row.dtype)


def described(robot: Robot, name: str) -> list[tuple[str, str]]:
    """Return the full name and unit of each number of a quantity: `("q.elbow", "rad")`, ..."""
    return [
        (f"{name}.{own}" if own else name, unit) for own, unit in column(name).components(robot)
    ]


# By the name of a joint, body or frame ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JointView:
    """What was recorded of one joint; `(n,)` for one freedom, `(n, nv_i)` for several."""

    run: Recording
    index: int

    @property
    def joint(self) -> Joint:
        """The joint."""
        return self.run.robot.joints[self.index]

    @property
    def q(self) -> Array:
        """Its coordinates, rad or m."""
        return _alone(coordinates(self.joint, self.run.q))

    @property
    def v(self) -> Array:
        """Its speeds, rad/s or m/s."""
        return _alone(speeds(self.joint, self.run.v))

    @property
    def vdot(self) -> Array:
        """The rates of its speeds, rad/s² or m/s²."""
        return _alone(speeds(self.joint, self.run.vdot))

    @property
    def torque(self) -> Array:
        """Its actuation, N m or N; of a free base [torque, force]."""
        return self._force(self.run.tau)

    force = torque  # for joints that slide

    @property
    def passive(self) -> Array:
        """Its damping, friction and stops, N m or N."""
        return self._force(self.run.passive)

    @property
    def power(self) -> Array:
        """Power of its actuation, `(n,)`, W."""
        self._force(self.run.tau)
        return np.sum(self.run.tau[:, self.joint.v] * self.run.v[:, self.joint.v], axis=-1)

    @property
    def reaction(self) -> Array:
        """The constraint's wrench [f, τ] on the body it carries, that body's frame, `(n, 6)`."""
        return self.run.reactions[:, self.index]

    def _force(self, forces: Array) -> Array:
        mimic = self.joint.mimic
        if mimic is not None:
            leader = self.run.robot.joints[mimic.joint].name
            raise RemoraError(
                f"joint {self.joint.name!r} mimics {leader!r}; the forces of both are that one's"
            )
        return _alone(forces[:, self.joint.v])


@dataclass(frozen=True, eq=False)
class FrameView:
    """What was recorded of one body or frame."""

    run: Recording
    name: str

    @property
    def pose(self) -> Array:
        """Its pose in the inertial frame, `(n, 8)`."""
        return self.run.frame_pose(self.name)

    @property
    def twist(self) -> Array:
        """Its twist [ω, v] in its own axes, `(n, 6)`."""
        return self.run.frame_twist(self.name)

    @property
    def position(self) -> Array:
        """Its origin in the inertial frame, `(n, 3)`, m."""
        return pose.translation(self.pose)

    @property
    def orientation(self) -> Array:
        """Its orientation in the inertial frame, a unit quaternion, `(n, 4)`."""
        return pose.rotation(self.pose)

    @property
    def wrench(self) -> Array:
        """The external wrench [f, τ] on the body, its frame, `(n, 6)`; zero in a run without."""
        index = self.run.robot.body_index(self.name)
        wrenches = self.run.wrenches
        return np.zeros((len(self.run), 6)) if wrenches is None else wrenches[:, index]


def _alone(x: Array) -> Array:
    """Return `(n, 1)` as `(n,)`."""
    return x[:, 0] if x.shape[1] == 1 else x
