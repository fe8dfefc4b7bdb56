"""Tables of recorded columns and derived quantities, with shapes, component names and units.

A *recorded* column is an output of the simulation itself: time, state, forces, work. A *derived*
quantity is a function of those, sample by sample; kernels compute it for all samples at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import UnknownName
from remora.model.degrees_of_freedom import ANGULAR_VELOCITY, DUAL_QUATERNION, LINEAR_VELOCITY
from remora.model.joint_types import JointType
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.simulation.recording.constraint_switch import ConstraintSwitch, robot_in_phase
from remora.simulation.recording.evaluation import EvaluatedRobot, NumpyRobot, evaluated
from remora.simulation.recording.synonyms import SYNONYMS

Components = list[tuple[str, str]]
"""Name and unit of each component of a quantity, in order: `("elbow", "rad")`."""


@dataclass(frozen=True)
class Column:
    """A recorded column: one entry per sample.

    Attributes:
        shape: (robot) -> the shape of one sample.
        components: (robot) -> name and unit of each component.
        meaning: description, for readers of the file.
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

    of: Callable[[EvaluatedRobot, Mapping[str, Array]], Array]
    stored: bool = False


@dataclass(frozen=True, kw_only=True)
class SignalColumn(Column):
    """The recorded column of a signal or state of a component.

    Attributes:
        size: shape of one sample.
        unit: SI unit; empty for a pure number.
    """

    size: tuple[int, ...]
    unit: str


#: Recorded signals by name, `"gyro.rate"`.
SignalColumns = Mapping[str, SignalColumn]


def signal_columns(signals: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, SignalColumn]:
    """Return the columns of signals from their shapes and units, see `System.signals`."""
    return {name: _signal(name, *own) for name, own in signals.items()}


def _signal(name: str, size: tuple[int, ...], unit: str) -> SignalColumn:
    indices = [",".join(map(str, place)) for place in np.ndindex(size)]  # "" for a number
    return SignalColumn(
        lambda robot: size,
        lambda robot: [(index, unit or "1") for index in indices],
        f"signal {name}",
        size=size,
        unit=unit,
    )


# Names and units of the components of a joint ---------------------------------------------------

_POSE = DUAL_QUATERNION
_POSITION = (("x", "m"), ("y", "m"), ("z", "m"))
_QUATERNION = (("qw", "1"), ("qx", "1"), ("qy", "1"), ("qz", "1"))
_EULER_ANGLES = (("roll", "rad"), ("pitch", "rad"), ("yaw", "rad"))
_TWIST = tuple((f.name, f.speed_unit) for f in (*ANGULAR_VELOCITY, *LINEAR_VELOCITY))
_WRENCH = (("fx", "N"), ("fy", "N"), ("fz", "N"), ("tx", "N m"), ("ty", "N m"), ("tz", "N m"))
_MOMENTUM = (
    ("px", "N s"), ("py", "N s"), ("pz", "N s"), ("lx", "N m s"), ("ly", "N m s"), ("lz", "N m s"),
)  # fmt: skip


def _coordinates(row: JointType) -> tuple[tuple[str, str], ...]:
    return row.coordinates


def _speeds(row: JointType) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, f.speed_unit) for f in row.freedoms)


def _accelerations(row: JointType) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, f.acceleration_unit) for f in row.freedoms)


def _forces(row: JointType) -> tuple[tuple[str, str], ...]:
    return tuple((f.force_name, f.force_unit) for f in row.freedoms)


def _per_joint(
    names: Callable[[JointType], tuple[tuple[str, str], ...]],
) -> Callable[[Robot], Components]:
    def components(robot: Robot) -> Components:
        return [
            (f"{joint.name}.{name}" if name else joint.name, unit)
            for joint in robot.joints
            if joint.mimic is None
            for name, unit in names(kind(joint))
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


def _frames(width: int) -> Callable[[Robot], tuple[int, ...]]:
    return lambda robot: (len(robot.bodies) + len(robot.frames), width)


def _per_frame(own: tuple[tuple[str, str], ...]) -> Callable[[Robot], Components]:
    return lambda robot: [
        (f"{item.name}.{name}", unit)
        for item in (*robot.bodies, *robot.frames)
        for name, unit in own
    ]


def _constraints(*width: int) -> Callable[[Robot], tuple[int, ...]]:
    return lambda robot: (len(robot.constraints), *width)


def _per_constraint(own: tuple[tuple[str, str], ...]) -> Callable[[Robot], Components]:
    return lambda robot: [
        (f"{c.name}.{name}" if name else c.name, unit)
        for c in robot.constraints
        for name, unit in own
    ]


# Evaluation of derived quantities ---------------------------------------------------------------


def _by(name: str, *arguments: str) -> Callable[[EvaluatedRobot, Mapping[str, Array]], Array]:
    return lambda fast, columns: evaluated(fast, name, *(columns[a] for a in arguments))


def _driven(name: str) -> Callable[[EvaluatedRobot, Mapping[str, Array]], Array]:
    """Return a function of the forces: all generalized forces, and wrenches if there are any."""

    def of(fast: EvaluatedRobot, columns: Mapping[str, Array]) -> Array:
        total = columns["tau"] + columns["passive"]
        wrenches = columns.get("wrenches")
        return evaluated(fast, name, columns["q"], columns["v"], total, wrenches)

    return of


def _loop_wrenches(fast: EvaluatedRobot, columns: Mapping[str, Array]) -> Array:
    if not active_constraints(fast.robot):
        return np.zeros((len(columns["t"]), len(fast.robot.constraints), 6))
    return _driven("constraint_wrenches")(fast, columns)


def _violations(fast: EvaluatedRobot, columns: Mapping[str, Array]) -> Array:
    robot, rows = fast.robot, np.zeros((len(columns["t"]), 0))
    if active_constraints(robot):
        rows = np.abs(_by("constraint_residual", "q")(fast, columns))
    parts, start = list[Array](), 0
    for c in robot.constraints:
        stop = start + (count(c) if c.active else 0)
        parts.append(np.max(rows[:, start:stop], axis=1, initial=0.0))
        start = stop
    return np.stack(parts, axis=1) if parts else rows


def _of_frames(
    part: Callable[[Array], Array],
) -> Callable[[EvaluatedRobot, Mapping[str, Array]], Array]:
    """Return a function of the poses of all bodies and frames, `(n, nb + nf, 8) -> (..., k)`."""

    def of(fast: EvaluatedRobot, columns: Mapping[str, Array]) -> Array:
        x = evaluated(fast, "poses", columns["q"])
        ground = np.broadcast_to(dual_quaternion.identity(), (len(x), 8))
        frames = [
            dual_quaternion.mul(ground if f.body < 0 else x[:, f.body], f.placement)
            for f in fast.robot.frames
        ]
        return part(np.concatenate([x, *(frame[:, None] for frame in frames)], axis=1))

    return of


def _energy(fast: EvaluatedRobot, columns: Mapping[str, Array]) -> Array:
    return QUANTITIES["kinetic_energy"].of(fast, columns) + QUANTITIES["potential_energy"].of(
        fast, columns
    )


# The tables -------------------------------------------------------------------------------------

#: Recorded at every sample.
RECORDED: dict[str, Column] = {
    "t": Column(_shape(), _plain(("", "s")), "time"),
    "q": Column(_nq, _per_joint(_coordinates), "configuration"),
    "v": Column(_nv, _per_joint(_speeds), "velocity; of a free base [ω, v] in its own axes"),
    "tau": Column(
        _nv, _per_joint(_forces),
        "actuation at every joint, and what prescribed and locked joints need",
    ),
    "passive": Column(_nv, _per_joint(_forces), "forces of damping, friction, springs and stops"),
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

#: Derived from the recorded columns.
QUANTITIES: dict[str, Quantity] = {
    "vdot": Quantity(
        _nv, _per_joint(_accelerations), "rate of the components of v",
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
        _shape(3), _plain(*_POSITION),
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
    "positions": Quantity(
        _frames(3), _per_frame(_POSITION), "origin of each body and frame, inertial axes",
        of=_of_frames(pose.translation),
    ),
    "quaternions": Quantity(
        _frames(4), _per_frame(_QUATERNION),
        "orientation of each body and frame in the inertial frame, unit quaternion, scalar first",
        of=_of_frames(pose.rotation),
    ),
    "euler_angles": Quantity(
        _frames(3), _per_frame(_EULER_ANGLES),
        "orientation of each body and frame as roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll)",
        of=_of_frames(pose.to_rpy),
    ),
}  # fmt: skip

#: Derived quantities of robots with constraints.
OF_CONSTRAINTS: dict[str, Quantity] = {
    "constraint_wrenches": Quantity(
        _constraints(6), _per_constraint(_WRENCH),
        "wrench [f, τ] of every constraint on its child, in the axes of its frame there",
        of=_loop_wrenches,
    ),
    "constraint_violations": Quantity(
        _constraints(), _per_constraint((("", "m or rad"),)),
        "largest violation of every constraint that acts", of=_violations,
    ),
}  # fmt: skip

#: Derived quantities that are stored on disk.
STORED = tuple(name for name, row in QUANTITIES.items() if row.stored)


def robots_by_phase(
    robot: Robot, switches: Sequence[ConstraintSwitch]
) -> dict[int, EvaluatedRobot]:
    """Return the robot of the first phase, and of every phase in which constraints are switched."""
    found: dict[int, EvaluatedRobot] = {0: CompiledRobot(robot)}
    latched = False
    for switch in switches:
        own = robot_in_phase(robot, switches, switch.phase)
        latched = latched or bool(switch.latched)
        found[switch.phase] = NumpyRobot(own) if latched else CompiledRobot(own)
    return found


def by_phase(
    quantity: Quantity, robots: Mapping[int, EvaluatedRobot], columns: Mapping[str, Array]
) -> Array:
    """Return a derived quantity at all samples, `(n, ...)`.

    Args:
        quantity: the quantity.
        robots: by the phase from which on it is simulated: the robot; phase 0 is one of them.
        columns: recorded columns by name.
    """
    first = sorted(robots)
    if len(first) == 1:
        return quantity.of(robots[first[0]], columns)
    which = np.searchsorted(first, columns["phase"], side="right") - 1
    edges = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), len(which)]
    parts = [
        quantity.of(
            robots[first[which[a]]],
            {name: np.ascontiguousarray(values[a:b]) for name, values in columns.items()},
        )
        for a, b in itertools.pairwise(edges)
        if b > a
    ]
    if parts:
        return np.concatenate(parts)
    return quantity.of(robots[first[0]], columns)


#: A run without components.
NO_SIGNALS: SignalColumns = {}


def column(name: str, signals: SignalColumns = NO_SIGNALS) -> Column:
    """Return the row of a column, a quantity or a signal; an unknown name lists them."""
    table: dict[str, Column] = {**RECORDED, **QUANTITIES, **signals}
    if name in OF_CONSTRAINTS:
        return OF_CONSTRAINTS[name]
    if name not in table:
        raise UnknownName("quantity of a run", name, table, SYNONYMS)
    return table[name]


def recorded(wrenches: bool) -> list[str]:
    """Return the names of the recorded columns of a run, with or without external wrenches."""
    return [name for name in RECORDED if wrenches or name != "wrenches"]


def described(
    robot: Robot, name: str, signals: SignalColumns = NO_SIGNALS
) -> list[tuple[str, str]]:
    """Return the full name and unit of each component of a quantity: `("q.elbow", "rad")`, ..."""
    row = column(name, signals)
    if isinstance(row, SignalColumn):
        return [(element, row.unit or "1") for element in elements(name, row.size)]
    return [(f"{name}.{own}" if own else name, unit) for own, unit in row.components(robot)]


def elements(name: str, size: tuple[int, ...]) -> list[str]:
    """Return the names of the elements of an array, `gyro.rate[0]`, ...; of a number, its name."""
    return [f"{name}[{','.join(map(str, k))}]" if k else name for k in np.ndindex(size)]
