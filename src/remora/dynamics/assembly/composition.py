"""Inverse and forward dynamics by composition: sweeps over the subsystems of an assembly.

Every sweep is a loop over the parts in breadth-first order or its reverse; the cost is linear in
their number, and nothing is recursive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import screw
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.robot_module import (
    accelerate,
    articulate,
    finish_inverse,
    generalized_forces,
    start_forward,
    start_inverse,
    to_outer,
    wrench_only,
)
from remora.dynamics.assembly.sensor_reading import SensorReading
from remora.dynamics.assembly.subsystem import ForwardSubsystem
from remora.dynamics.joint_arrays import with_batch
from remora.dynamics.recursive.articulated_body import ArticulatedBody
from remora.dynamics.recursive.outward_pass import BodyMotion
from remora.dynamics.recursive.recursive_newton_euler import JointLoad
from remora.dynamics.recursive.tree_passes import added
from remora.errors import RemoraError


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
    """

    q: Array
    v: Array
    w: Array
    wrenches: Array | None
    t: ArrayLike | None
    gravity: Array
    batch: tuple[int, ...]

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
        joints: loads on its joints, if it is a robot.
        tau: its generalized forces, `(..., nv_i)`.
        base: wrench of its predecessor on it, in the frame of the connection point b.
        on_points: wrench on its successors at each used point, in the point's frame.
        state: the outward half of its recursion.
        motion: motion of the frame it is mounted on; None at the root.
    """

    joints: list[JointLoad]
    tau: Array
    base: Array | None
    on_points: list[Array | None]
    state: Any
    motion: BodyMotion | None


def inverse_sweeps(parts: Sequence[Part], given: Arguments) -> list[PartLoads]:
    """Propagate motions outward and wrenches inward [SA24, Algorithms 1 to 3]."""
    states: list[Any] = []
    motions: list[BodyMotion | None] = []
    at_points: list[list[BodyMotion]] = []
    for part in parts:
        base = None if part.parent < 0 else at_points[part.parent][part.slot]
        if base is not None and part.placement is not None:
            X = screw.transform(part.placement)
            base = BodyMotion(screw.to_inner(X, base.twist), screw.to_inner(X, base.rate))
        state, points = _move(part, given, base)
        states.append(state)
        motions.append(base)
        at_points.append(points)
    loads: list[list[Array | None]] = [[None] * len(part.points) for part in parts]
    found: list[Any] = [None] * len(parts)
    for i in reversed(range(len(parts))):
        part = parts[i]
        result = _load(part, given, states[i], motions[i], loads[i])
        found[i] = result
        if part.parent >= 0 and result.base is not None:
            here = loads[part.parent][part.slot]
            loads[part.parent][part.slot] = result.base if here is None else here + result.base
    return found


def _move(part: Part, given: Arguments, base: BodyMotion | None) -> tuple[Any, list[BodyMotion]]:
    q, v, vdot, wrenches = given.of(part)
    box = part.black_box
    if part.module is not None:
        state = start_inverse(part.module, q, v, vdot, base or given.ground, wrenches)
        return state, state.points
    if box is not None:
        reading = box.read(part.name, given.t, None if base is None else base.twist)
        return reading, box.motions(part.name, reading, part.points, given.gravity)
    moved = part.subsystem.point_motions(base or given.ground, q, v, vdot)
    return None, [_named(part, moved, point) for point in part.points]


def _load(
    part: Part,
    given: Arguments,
    state: Any,
    base: BodyMotion | None,
    loads: list[Array | None],
) -> PartLoads:
    q, v, vdot, _ = given.of(part)
    box = part.black_box
    joints: list[JointLoad] = []
    if part.module is not None:
        joints, wrench = finish_inverse(part.module, state, loads)
        tau = generalized_forces(part.module, joints, given.batch)
    elif box is not None:
        tau = np.zeros((*given.batch, 0))
        wrench = None if part.parent < 0 else box.wrench(part.name, state)
    else:
        on = {
            point: np.zeros(6) if W is None else W
            for point, W in zip(part.points, loads, strict=True)
        }
        wrench, tau = part.subsystem.inverse_dynamics(base or given.ground, q, v, vdot, on)
        tau = with_batch(tau, given.batch, trailing=1)
    if wrench is not None and part.placement is not None:
        wrench = screw.to_outer(screw.transform(part.placement), wrench)
    return PartLoads(joints, tau, wrench, loads, state, base)


def forward_sweeps(parts: Sequence[Part], given: Arguments) -> list[Array]:
    """Return vdot of every part: twists outward, inertias inward, accelerations outward.

    Each part exposes at its base its articulated-body inertia and bias wrench, given those of its
    successors at its connection points. A black box is a given wrench on its predecessor and given
    motions of its connection points.
    """
    states, twists = _twists(parts, given)
    loads: list[list[Any]] = [[None] * len(part.points) for part in parts]
    for i in reversed(range(len(parts))):
        part = parts[i]
        states[i], felt = _articulate(part, given, states[i], twists[i], loads[i])
        if felt is None or part.parent < 0:
            continue
        if part.placement is not None:
            felt = to_outer(part.placement, felt)
        loads[part.parent][part.slot] = added(loads[part.parent][part.slot], felt)
    found: list[Array] = []
    rates: list[list[Array]] = []
    for i, part in enumerate(parts):
        rate = given.ground.rate if part.parent < 0 else rates[part.parent][part.slot]
        if part.placement is not None:
            rate = screw.to_inner(screw.transform(part.placement), rate)
        vdot, points = _accelerate(part, given, states[i], twists[i], rate, loads[i])
        found.append(vdot)
        rates.append(points)
    return found


def readings(parts: Sequence[Part], given: Arguments) -> dict[str, SensorReading]:
    """Return the readings of all black boxes, by name; they are asked from the root outward."""
    states = zip(parts, _twists(parts, given)[0], strict=True)
    return {part.name: state[0] for part, state in states if part.black_box is not None}


def _twists(parts: Sequence[Part], given: Arguments) -> tuple[list[Any], list[Array | None]]:
    """Return the outward half of every part's recursion, and the twist of its base."""
    states: list[Any] = []
    twists: list[Array | None] = []
    at_points: list[list[Any]] = []
    for part in parts:
        base = None if part.parent < 0 else at_points[part.parent][part.slot]
        if base is not None and part.placement is not None:
            base = screw.to_inner(screw.transform(part.placement), base)
        state, points = _twist(part, given, base)
        states.append(state)
        twists.append(base)
        at_points.append(points)
    return states, twists


def _twist(part: Part, given: Arguments, base: Array | None) -> tuple[Any, list[Array]]:
    q, v, tau, wrenches = given.of(part)
    box = part.black_box
    if part.module is not None:
        ground = given.ground.rate
        state = start_forward(part.module, q, v, tau, base, ground, wrenches)
        return state, state.points
    if box is not None:
        reading = box.read(part.name, given.t, base)
        motions = box.motions(part.name, reading, part.points, given.gravity)
        return (reading, motions), [motion.twist for motion in motions]
    if not isinstance(part.subsystem, ForwardSubsystem):
        raise RemoraError(
            f"subsystem {part.name!r} ({type(part.subsystem).__name__}) has no forward dynamics: "
            "it needs point_twists, articulated and accelerations (rm.papers.sa24.ForwardSubsystem)"
        )
    moved = part.subsystem.point_twists(np.zeros(6) if base is None else base, q, v)
    return None, [_named(part, moved, point) for point in part.points]


def _articulate(
    part: Part, given: Arguments, state: Any, base: Array | None, loads: list[Any]
) -> tuple[Any, ArticulatedBody | None]:
    q, v, tau, _ = given.of(part)
    box = part.black_box
    if part.module is not None:
        return articulate(part.module, state, loads)
    if box is not None:
        felt = None if part.parent < 0 else wrench_only(box.wrench(part.name, state[0]))
        return state, felt
    twist = np.zeros(6) if base is None else base
    return state, part.subsystem.articulated(twist, q, v, tau, _all_points(part, loads))


def _accelerate(
    part: Part,
    given: Arguments,
    state: Any,
    base: Array | None,
    rate: Array,
    loads: list[Any],
) -> tuple[Array, list[Array]]:
    q, v, tau, _ = given.of(part)
    if part.module is not None:
        return accelerate(part.module, state, rate, given.batch)
    if part.black_box is not None:
        return np.zeros((*given.batch, 0)), [motion.rate for motion in state[1]]
    motion = BodyMotion(np.zeros(6) if base is None else base, rate)
    found = part.subsystem.accelerations(motion, q, v, tau, _all_points(part, loads))
    vdot = with_batch(found.vdot, given.batch, trailing=1)
    return vdot, [_named(part, found.points, point) for point in part.points]


def _all_points(part: Part, loads: list[Any]) -> dict[str, ArticulatedBody]:
    nothing = wrench_only(np.zeros(6))
    return {
        point: nothing if load is None else load
        for point, load in zip(part.points, loads, strict=True)
    }


def _named(part: Part, values: Any, point: str) -> Any:
    if point not in values:
        raise RemoraError(
            f"subsystem {part.name!r} ({type(part.subsystem).__name__}) returned nothing for its "
            f"connection point {point!r}"
        )
    return values[point]
