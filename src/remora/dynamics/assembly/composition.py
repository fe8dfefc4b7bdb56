"""Inverse and forward dynamics by composition: sweeps over the subsystems of an assembly.

The cost is linear in their number, and nothing is recursive. This file has the passes of black
boxes and of users' objects; those of robots are in `module_passes`, the sweeps in `network`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import screw
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate
from remora.dynamics.assembly.module_passes import (
    forward_passes,
    inverse_passes,
    packed_load,
    unpacked_load,
)
from remora.dynamics.assembly.network import (
    FORWARD,
    INVERSE,
    LOAD,
    ModulePass,
    Node,
    evaluate,
    flat,
    module_pass,
    rows,
)
from remora.dynamics.assembly.part_poses import base_pose
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.robot_module import to_outer, wrench_only
from remora.dynamics.assembly.sensor_reading import BaseState, SensorReading
from remora.dynamics.assembly.subsystem import ForwardSubsystem
from remora.dynamics.joint_arrays import with_batch
from remora.dynamics.recursive.outward_pass import BodyMotion
from remora.errors import RemoraError
from remora.model.numbers import finite


class Arguments(NamedTuple):
    """Arguments of a sweep, for the whole assembly.

    Attributes:
        q: `(..., nq)`.
        v: `(..., nv)`.
        w: vdot for inverse, tau for forward dynamics, `(..., nv)`.
        wrenches: external, `(..., nb, 6)`, or None.
        t: time, for black boxes.
        gravity: `(3,)`.
        batch: common batch shape.
        parts: of the assembly.
    """

    q: Array
    v: Array
    w: Array
    wrenches: Array | None
    t: ArrayLike | None
    gravity: Array
    batch: tuple[int, ...]
    parts: Sequence[Part]

    @property
    def ground(self) -> BodyMotion:
        """The motion of the inertial frame; its acceleration acts like gravity."""
        return BodyMotion(np.zeros(6), concatenate([np.zeros(3), -self.gravity]))

    def of(self, part: Part) -> tuple[Array, Array, Array, Array | None]:
        """Return the arguments of one part."""
        wrenches = None if self.wrenches is None else self.wrenches[..., part.bodies, :]
        return self.q[..., part.q], self.v[..., part.v], self.w[..., part.v], wrenches


class PartLoads(NamedTuple):
    """The result of inverse dynamics at a part.

    Attributes:
        joints: wrenches through its joints, in the frames of their bodies, `(..., n, 6)`.
        tau: its generalized forces, `(..., nv_i)`.
        base: wrench of its predecessor on it, in the frame of the connection point b.
        on_points: wrench on its successors at each used point, in the point's frame.
        motion: motion of the frame it is mounted on; None at the root.
    """

    joints: Array
    tau: Array
    base: Array | None
    on_points: list[Array]
    motion: BodyMotion | None


class WrenchParts(NamedTuple):
    """Parts of the wrenches [f, τ] at all joints, each `(..., nb, 6)`.

    Attributes:
        inertial: Γ_M, of accelerations.
        coriolis: Γ_C, of velocities.
        gravity: Γ_g.
        external: Γ_Z, what the joints bear of external wrenches on the bodies.
    """

    inertial: Array
    coriolis: Array
    gravity: Array
    external: Array


def inverse_dynamics(parts: Sequence[Part], arguments: Arguments) -> list[PartLoads]:
    """Propagate motions outward and wrenches inward [SA24, Algorithms 1 to 3]."""
    nodes = _nodes(parts, arguments, "vdot", _inverse)
    evaluate(nodes, INVERSE)
    loads: list[PartLoads] = []
    for part, node in zip(parts, nodes, strict=True):
        arrays = node.arrays
        joints = arrays.get("joints", np.zeros(0))
        motion = None if part.parent < 0 else _motion(arrays["base_motion"])
        loads.append(
            PartLoads(
                joints.reshape(*joints.shape[:-1], part.count, 6), _result(arrays, arguments),
                arrays.get("felt"), rows(arrays.get("loads", np.zeros(0)), len(part.points)),
                motion,
            )
        )  # fmt: skip
    return loads


def forward_dynamics(parts: Sequence[Part], arguments: Arguments) -> list[Array]:
    """Return vdot of every part: twists outward, inertias inward, accelerations outward.

    Each part exposes at its base its articulated-body inertia and bias wrench, given those of its
    successors at its connection points. A black box is a known wrench on its predecessor and known
    motions of its connection points.
    """
    nodes = _nodes(parts, arguments, "tau", _forward)
    evaluate(nodes, FORWARD)
    return [_result(node.arrays, arguments) for node in nodes]


def readings(parts: Sequence[Part], arguments: Arguments) -> dict[str, SensorReading]:
    """Return the readings of all black boxes, by name; they are sampled from the root outward."""
    read: dict[str, SensorReading] = {}
    evaluate(_nodes(parts, arguments, "tau", _forward, read), ["twists"])
    return read


def base_twists(parts: Sequence[Part], arguments: Arguments) -> list[Array]:
    """Return the twist of the connection point that each part is mounted on; zero at the root."""
    nodes = _nodes(parts, arguments, "tau", _forward)
    evaluate(nodes, ["twists"])
    return [node.arrays.get("base_twist", np.zeros(6)) for node in nodes]


def wrench_parts(parts: Sequence[Part], arguments: Arguments) -> WrenchParts:
    """Return the parts of the wrenches at all joints, of v̇, v, gravity and external wrenches.

    `mass_center_wrenches.wrench_parts` has SA24's split, by the motions of the centres of mass.
    """
    for part in parts:
        if part.module is None:
            what = "a black box" if part.black_box is not None else "no robot"
            raise RemoraError(f"subsystem {part.name!r} is {what}: its wrenches cannot be split")
    rest = arguments._replace(v=0.0 * arguments.v, w=0.0 * arguments.w, wrenches=None)
    gravity = _wrenches(parts, rest)
    inertial = _wrenches(parts, rest._replace(w=arguments.w)) - gravity
    coriolis = _wrenches(parts, rest._replace(v=arguments.v)) - gravity
    external = np.zeros_like(gravity)
    if arguments.wrenches is not None:
        external = _wrenches(parts, rest._replace(wrenches=arguments.wrenches)) - gravity
    return WrenchParts(inertial, coriolis, gravity, external)


def _wrenches(parts: Sequence[Part], arguments: Arguments) -> Array:
    rows = [load.joints for load in inverse_dynamics(parts, arguments)]
    return with_batch(concatenate(rows, trailing=2), arguments.batch, trailing=2)


#: Returns the passes of a part.
_Passes = Callable[[Part, Arguments, dict[str, SensorReading]], Sequence[ModulePass]]


def _nodes(
    parts: Sequence[Part],
    arguments: Arguments,
    third: str,
    passes: _Passes,
    read: dict[str, SensorReading] | None = None,
) -> list[Node]:
    """Return the parts with their passes and their rows of the arguments.

    Args:
        parts: of the assembly.
        arguments: of the sweeps.
        third: what `arguments.w` is: vdot or tau.
        passes: returns the passes of a part.
        read: receives the readings of black boxes, by name.
    """
    read = {} if read is None else read
    nodes: list[Node] = []
    for part in parts:
        q, v, w, wrenches = arguments.of(part)
        arrays = {"q": q, "v": v, third: w}
        if wrenches is not None:
            arrays["wrenches"] = wrenches.reshape(*wrenches.shape[:-2], 6 * part.count)
        by_name = {way.name: way for way in passes(part, arguments, read)}
        nodes.append(Node(part.parent, part.slot, by_name, arrays))
    return nodes


def _result(arrays: Mapping[str, Array], arguments: Arguments) -> Array:
    return with_batch(arrays.get("result", np.zeros(0)), arguments.batch, trailing=1)


def _motion(x: Array) -> BodyMotion:
    return BodyMotion(x[..., :6], x[..., 6:])


# Passes ------------------------------------------------------------------------------------------


def _inverse(
    part: Part, arguments: Arguments, read: dict[str, SensorReading]
) -> Sequence[ModulePass]:
    """Return the passes of inverse dynamics of a part."""
    if part.module is not None:
        external = arguments.wrenches is not None
        return inverse_passes(part.module, arguments.ground.rate, external, loads=True)
    base = () if part.parent < 0 else (("base_motion", 12),)
    state = _sizes(part, "vdot")

    def at_base(arrays: dict[str, Array]) -> BodyMotion:
        motion = arrays.get("base_motion")
        if motion is None:
            return arguments.ground
        twist, rate = _motion(motion)
        return BodyMotion(_to_base(part, twist), _to_base(part, rate))

    def motions(arrays: dict[str, Array]) -> tuple[Array, ...]:
        if part.black_box is not None:
            moved = _box_motions(part, arguments, at_base(arrays) if base else None, read)
        else:
            returned = _called(
                part, "point_motions", at_base(arrays), *_state(arrays), arrays["vdot"]
            )
            moved = [
                BodyMotion(
                    *_pair(part, f"point_motions[{point!r}]", _named(part, returned, point), 6, 6)
                )
                for point in part.points
            ]
        return (flat([concatenate([twist, rate]) for twist, rate in moved]),)

    def wrenches(arrays: dict[str, Array]) -> tuple[Array, ...]:
        if part.black_box is not None:
            return (_from_base(part, part.black_box.wrench(part.name, read[part.name])),)
        loads = dict(zip(part.points, rows(arrays["loads"], len(part.points)), strict=True))
        returned = _called(
            part, "inverse_dynamics", at_base(arrays), *_state(arrays), arrays["vdot"], loads
        )
        W, tau = _pair(part, "inverse_dynamics", returned, 6, nv)
        return (*((_from_base(part, W),) if base else ()), tau)

    count, nv = len(part.points), part.v.stop - part.v.start
    felt = (("felt", 6),) if base else ()
    outward = module_pass("motions", (*state, *base), (("points", 12 * count),), motions)
    if part.black_box is not None:
        return [outward, *([module_pass("wrenches", (), felt, wrenches)] if base else [])]
    inputs = (*state, *base, ("loads", 6 * count))
    return [outward, module_pass("wrenches", inputs, (*felt, ("result", nv)), wrenches)]


def _forward(
    part: Part, arguments: Arguments, read: dict[str, SensorReading]
) -> Sequence[ModulePass]:
    """Return the passes of forward dynamics of a part."""
    if part.module is not None:
        return forward_passes(part.module, arguments.ground.rate, arguments.wrenches is not None)
    if part.black_box is not None:
        return _forward_of_box(part, arguments, read)
    subsystem, count = part.subsystem, len(part.points)
    if not isinstance(subsystem, ForwardSubsystem):
        raise RemoraError(
            f"subsystem {part.name!r} ({type(subsystem).__name__}) has no forward dynamics: "
            "it needs point_twists, articulated and accelerations (rm.papers.sa24.ForwardSubsystem)"
        )
    state, known = _sizes(part), _sizes(part, "tau")
    root = part.parent < 0
    base, rate = () if root else (("base_twist", 6),), () if root else (("base_rate", 6),)

    def at_base(arrays: dict[str, Array]) -> Array:
        return np.zeros(6) if root else _to_base(part, arrays["base_twist"])

    def loads(arrays: dict[str, Array]) -> dict[str, Any]:
        felt = [unpacked_load(row) for row in rows(arrays["loads"], count)]
        return dict(zip(part.points, felt, strict=True))

    def twists(arrays: dict[str, Array]) -> tuple[Array, ...]:
        moved = _called(part, "point_twists", at_base(arrays), *_state(arrays))
        return (flat([_row(part, "point_twists", moved, point) for point in part.points]),)

    def inertias(arrays: dict[str, Array]) -> tuple[Array, ...]:
        forces = *_state(arrays), arrays["tau"]
        felt = _called(part, "articulated", at_base(arrays), *forces, loads(arrays))
        return () if root else (packed_load(to_outer(part.placement, felt)),)

    def accelerations(arrays: dict[str, Array]) -> tuple[Array, ...]:
        before = arguments.ground.rate if root else _to_base(part, arrays["base_rate"])
        motion = BodyMotion(at_base(arrays), before)
        forces = *_state(arrays), arrays["tau"]
        returned = _called(part, "accelerations", motion, *forces, loads(arrays))
        vdot, points = _two(part, "accelerations", returned)
        vdot = finite(f"{_who(part)}: vdot of accelerations", vdot, part.v.stop - part.v.start)
        return vdot, flat([_row(part, "accelerations", points, point) for point in part.points])

    points, felt = (("loads", LOAD * count),), () if root else (("felt", LOAD),)
    result = ("result", part.v.stop - part.v.start), ("rates", 6 * count)
    return [
        module_pass("twists", (*state, *base), (("points", 6 * count),), twists),
        module_pass("inertias", (*known, *base, *points), felt, inertias),
        module_pass("accelerations", (*known, *base, *rate, *points), result, accelerations),
    ]


def _forward_of_box(
    part: Part, arguments: Arguments, read: dict[str, SensorReading]
) -> Sequence[ModulePass]:
    """Return the passes of a black box: a known wrench, and known motions of its points."""
    box, count = part.black_box, len(part.points)
    assert box is not None
    base = () if part.parent < 0 else (("base_twist", 6),)
    moved: list[BodyMotion] = []

    def twists(arrays: dict[str, Array]) -> tuple[Array, ...]:
        motion = (_to_base(part, arrays["base_twist"]), None) if base else None
        moved[:] = _box_motions(part, arguments, motion, read)
        return (flat([motion.twist for motion in moved]),)

    def inertias(arrays: dict[str, Array]) -> tuple[Array, ...]:
        felt = wrench_only(box.wrench(part.name, read[part.name]))
        return (packed_load(to_outer(part.placement, felt)),)

    def accelerations(arrays: dict[str, Array]) -> tuple[Array, ...]:
        return (flat([motion.rate for motion in moved]),)

    passes = [
        module_pass("twists", base, (("points", 6 * count),), twists),
        module_pass("accelerations", (), (("rates", 6 * count),), accelerations),
    ]
    return [*passes, *([module_pass("inertias", (), (("felt", LOAD),), inertias)] if base else [])]


def _box_motions(
    part: Part,
    arguments: Arguments,
    motion: BodyMotion | tuple[Array, None] | None,
    read: dict[str, SensorReading],
) -> list[BodyMotion]:
    """Read the sensors of a black box, and return the motions of its points.

    Args:
        part: the black box.
        arguments: of the sweep.
        motion: twist of its base and its rate, with minus the acceleration of gravity, where it is
            known; None for a root.
        read: receives the reading.
    """
    box = part.black_box
    assert box is not None
    base = None
    if motion is not None:
        (twist, rate), ground = motion, arguments.ground.rate
        x = base_pose(arguments.parts, part, arguments.q, read)
        if rate is not None and np.any(asarray(arguments.gravity) != 0.0):
            rate = None if x is None else rate - screw.adjoint_inverse(x, ground)
        base = BaseState(twist, rate, x, arguments.gravity)
    reading = read[part.name] = box.read(part.name, arguments.t, base)
    return box.motions(part.name, reading, part.points, arguments.gravity)


def _sizes(part: Part, third: str = "") -> tuple[tuple[str, int], ...]:
    """Return names and sizes of the rows of a user's object in the arguments."""
    nq, nv = part.q.stop - part.q.start, part.v.stop - part.v.start
    return (("q", nq), ("v", nv), *(((third, nv),) if third else ()))


def _state(arrays: Mapping[str, Array]) -> tuple[Array, Array]:
    return arrays["q"], arrays["v"]


def _to_base(part: Part, x: Array) -> Array:
    """Return a twist or rate at the base of a part from that at the connection point."""
    return screw.to_inner(screw.transform(part.placement), x)


def _from_base(part: Part, W: Array) -> Array:
    """Return a wrench at the connection point from that at the base of a part."""
    return screw.to_outer(screw.transform(part.placement), W)


# Users' objects ----------------------------------------------------------------------------------


def _who(part: Part) -> str:
    return f"subsystem {part.name!r} ({type(part.subsystem).__name__})"


def _called(part: Part, method: str, *arguments: Any) -> Any:
    """Return what a method of a user's object returns; errors name the subsystem."""
    try:
        return getattr(part.subsystem, method)(*arguments)
    except Exception as error:
        kind = type(error).__name__
        raise RemoraError(f"{_who(part)}: {method} raised {kind}: {error}") from error


def _named(part: Part, values: Any, point: str) -> Any:
    if point not in values:
        raise RemoraError(f"{_who(part)} returned nothing for its connection point {point!r}")
    return values[point]


def _row(part: Part, method: str, values: Any, point: str) -> Array:
    return finite(f"{_who(part)}: {method}[{point!r}]", _named(part, values, point), 6)


def _two(part: Part, what: str, values: Any) -> tuple[Any, Any]:
    """Return the two values that a method returned, or raise."""
    try:
        first, second = values
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise RemoraError(f"{_who(part)}: {what} must return two values, not {kind}") from None
    return first, second


def _pair(part: Part, what: str, values: Any, first: int, second: int) -> tuple[Array, Array]:
    """Return the two rows of numbers that a method returned, or raise."""
    a, b = _two(part, what, values)
    who = f"{_who(part)}: {what}"
    return finite(f"{who}[0]", a, first), finite(f"{who}[1]", b, second)
