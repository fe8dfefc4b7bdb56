"""The passes of a module as pure functions on flat arrays, from which its kernels are traced.

An articulated-body inertia with its bias wrench is 27 numbers: the lower triangles of A and C, B
and p; a motion is 12: twist and rate. Values at connection points have one row per successor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, concatenate, stack
from remora.codegen.ir.graph import Signature
from remora.dynamics.assembly.robot_module import (
    ForwardState,
    InverseState,
    RobotModule,
    accelerate,
    articulate,
    finish_inverse,
    generalized_forces,
    start_forward,
    start_inverse,
)
from remora.dynamics.recursive.articulated_body import (
    ArticulatedBody,
    ForceDriven,
    MotionPrescribed,
)
from remora.dynamics.recursive.outward_pass import BodyMotion

#: Numbers of an articulated-body inertia with its bias wrench.
LOAD = 27
_LOWER = [(i, j) for i in range(3) for j in range(i + 1)]


class ModulePass(NamedTuple):
    """One pass of a module as a function of flat arrays.

    Attributes:
        name: of the pass.
        inputs: names and sizes of its arguments, none of them empty.
        outputs: names and sizes of its results, none of them empty.
        function: of the arguments; returns the results.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    function: Callable[..., tuple[Array, ...]]

    def signatures(self) -> list[Signature]:
        """Return the arguments as a kernel takes them."""
        return [Signature(name, (size,)) for name, size in self.inputs]


def packed_load(load: ArticulatedBody) -> Array:
    """Return inertia and bias wrench as 27 numbers, `(..., 27)`."""
    A, C = (stack([M[..., i, j] for i, j in _LOWER]) for M in (load.A, load.C))
    B = load.B.reshape(*load.B.shape[:-2], 9)
    return concatenate([A, B, C, load.p])


def unpacked_load(x: Array) -> ArticulatedBody:
    """Return the inertia and bias wrench of 27 numbers."""
    A, C = (_symmetric(x[..., part]) for part in (slice(0, 6), slice(15, 21)))
    B = x[..., 6:15].reshape(*x.shape[:-1], 3, 3)
    return ArticulatedBody(A, B, C, x[..., 21:])


def _symmetric(x: Array) -> Array:
    place = {(i, j): k for k, (i, j) in enumerate(_LOWER)}
    rows = [
        stack([x[..., place[max(i, j), min(i, j)]] for j in range(3)], axis=-1) for i in range(3)
    ]
    return stack(rows, axis=-2)


def forward_passes(module: RobotModule, ground: Array) -> list[ModulePass]:
    """Return the three passes of forward dynamics; the first only if there are points.

    Args:
        module: the module; its points have one entry per successor.
        ground: minus the acceleration of gravity, `(6,)`, read at the root.
    """
    robot, count = module.robot, len(module.points)
    base = () if module.ground else (("base_twist", 6),)
    rate = () if module.ground else (("base_rate", 6),)
    state = (("q", robot.nq), ("v", robot.nv))
    memory = sum(_memory_sizes(module))

    def begin(given: dict[str, Array], tau: Array) -> ForwardState:
        twist = None if module.ground else given["base_twist"]
        return start_forward(module, given["q"], given["v"], tau, twist, ground, None)

    def twists(given: dict[str, Array]) -> tuple[Array, ...]:
        return (_flat(begin(given, np.zeros(robot.nv)).points),)

    def inertias(given: dict[str, Array]) -> tuple[Array, ...]:
        loads = [unpacked_load(row) for row in _rows(given["loads"], count)]
        done, felt = articulate(module, begin(given, given["tau"]), loads)
        left = () if felt is None else (packed_load(felt),)
        return (*left, _memory_of(module, done))

    def accelerations(given: dict[str, Array]) -> tuple[Array, ...]:
        done = begin(given, np.zeros(robot.nv))
        done = done._replace(joints=_from_memory(module, given["memory"]))
        before = ground if module.ground else given["base_rate"]
        vdot, rates = accelerate(module, done, before, ())
        return vdot, _flat(rates)

    outward = (("loads", LOAD * count),)
    felt = () if module.ground else (("felt", LOAD),)
    passes = [
        _pass("twists", (*state, *base), (("points", 6 * count),), twists),
        _pass(
            "inertias", (*state, ("tau", robot.nv), *base, *outward),
            (*felt, ("memory", memory)), inertias,
        ),
        _pass(
            "accelerations", (*state, *base, *rate, ("memory", memory)),
            (("result", robot.nv), ("rates", 6 * count)), accelerations,
        ),
    ]  # fmt: skip
    return [way for way in passes if way.outputs]


def inverse_passes(module: RobotModule, ground: Array) -> list[ModulePass]:
    """Return the passes of inverse dynamics: motions if there are points, then wrenches."""
    robot, count = module.robot, len(module.points)
    base = () if module.ground else (("base_motion", 12),)
    state = (("q", robot.nq), ("v", robot.nv), ("vdot", robot.nv))

    def begin(given: dict[str, Array]) -> InverseState:
        moved = BodyMotion(np.zeros(6), ground)
        if not module.ground:
            moved = BodyMotion(given["base_motion"][..., :6], given["base_motion"][..., 6:])
        return start_inverse(module, given["q"], given["v"], given["vdot"], moved, None)

    def motions(given: dict[str, Array]) -> tuple[Array, ...]:
        found = begin(given)
        points = [concatenate([point.twist, point.rate]) for point in found.points]
        return _flat(points), _flat([body.W for body in found.bodies])

    def wrenches(given: dict[str, Array]) -> tuple[Array, ...]:
        found = begin(given)
        if count:  # what the first pass computed
            own = _rows(given["own"], len(robot.bodies))
            bodies = [body._replace(W=W) for body, W in zip(found.bodies, own, strict=True)]
            found = found._replace(bodies=bodies)
        joints, felt = finish_inverse(module, found, _rows(given["loads"], count))
        left = () if felt is None else (felt,)
        return (*left, generalized_forces(module, joints, ()))

    own = (("own", 6 * len(robot.bodies)),) if count else ()
    felt = () if module.ground else (("felt", 6),)
    passes = [
        _pass("motions", (*state, *base), (("points", 12 * count), *own), motions),
        _pass(
            "wrenches", (*state, *base, *own, ("loads", 6 * count)),
            (*felt, ("result", robot.nv)), wrenches,
        ),
    ]  # fmt: skip
    return [way for way in passes if way.outputs and (count or way.name == "wrenches")]


def _pass(
    name: str,
    inputs: Sequence[tuple[str, int]],
    outputs: Sequence[tuple[str, int]],
    function: Callable[[dict[str, Array]], tuple[Array, ...]],
) -> ModulePass:
    """Return a pass without its empty arguments and results."""
    kept = tuple(item for item in inputs if item[1])
    empty = {key: np.zeros(0) for key, size in inputs if not size}
    wanted = [k for k, (_, size) in enumerate(outputs) if size]

    def on_arrays(*arrays: Array) -> tuple[Array, ...]:
        given = {key: array for (key, _), array in zip(kept, arrays, strict=True)}
        results = function({**given, **empty})
        return tuple(results[k] for k in wanted)

    return ModulePass(name, kept, tuple(item for item in outputs if item[1]), on_arrays)


def _memory_sizes(module: RobotModule) -> list[int]:
    """Return the numbers that the inward pass leaves at each joint: k and K of `ForceDriven`."""
    sizes: list[int] = []
    for joint in module.joints:
        nv = joint.v.stop - joint.v.start
        sizes.append(nv if joint.parent < 0 else 7 * nv)
    return sizes


def _memory_of(module: RobotModule, state: ForwardState) -> Array:
    parts: list[Array] = []
    for by in state.joints:
        if isinstance(by, ForceDriven):
            parts.append(by.k)
            if by.K is not None:
                parts.append(by.K.reshape(*by.K.shape[:-2], by.K.shape[-2] * 6))
    return concatenate(parts) if parts else np.zeros(0)


def _from_memory(module: RobotModule, memory: Array) -> list[Any]:
    found: list[Any] = []
    at = 0
    nothing = ArticulatedBody(np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(6))
    for joint, size in zip(module.joints, _memory_sizes(module), strict=True):
        nv = joint.v.stop - joint.v.start
        k, K = memory[..., at : at + nv], memory[..., at + nv : at + size]
        at += size
        if nv == 0:
            found.append(MotionPrescribed(nothing, np.zeros(0)))
        else:
            full = None if joint.parent < 0 else K.reshape(*K.shape[:-1], nv, 6)
            found.append(ForceDriven(full, k))
    return found


def _rows(x: Array, count: int) -> list[Array]:
    width = x.shape[-1] // count if count else 0
    return [x[..., k * width : (k + 1) * width] for k in range(count)]


def _flat(values: Sequence[Array]) -> Array:
    return concatenate(list(values)) if values else np.zeros(0)
