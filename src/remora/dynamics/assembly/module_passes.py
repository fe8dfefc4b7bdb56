"""The passes of a robot as a module, pure functions on flat arrays, and their kernels.

A motion is 12 numbers, twist and rate; an inertia with its bias wrench 27 (`LOAD`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array, concatenate
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly.network import LOAD, ModulePass, flat, module_pass, rows
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
from remora.dynamics.kernels.cache_keys import value_key
from remora.dynamics.recursive.articulated_body import (
    ArticulatedBody,
    ForceDriven,
    MotionPrescribed,
)
from remora.dynamics.recursive.outward_pass import BodyMotion
from remora.dynamics.recursive.tree_passes import JointContext
from remora.dynamics.refusals import refuse_mimic_joints
from remora.model import joints

T = TypeVar("T")
#: Indices of the lower triangle of a symmetric matrix, and where its elements are among these.
_ROWS, _COLUMNS = np.tril_indices(3)
_PLACES = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])


def packed_load(load: ArticulatedBody) -> Array:
    """Return inertia and bias wrench as 27 numbers, `(..., 27)`."""
    A, C = (M[..., _ROWS, _COLUMNS] for M in (load.A, load.C))
    B = load.B.reshape(*load.B.shape[:-2], 9)
    return concatenate([A, B, C, load.p])


def unpacked_load(x: Array) -> ArticulatedBody:
    """Return the inertia and bias wrench of 27 numbers."""
    A, C = x[..., _PLACES], x[..., 15 + _PLACES]
    B = x[..., 6:15].reshape(*x.shape[:-1], 3, 3)
    return ArticulatedBody(A, B, C, x[..., 21:])


class _Outward(Generic[T]):
    """The outward half of a recursion, with which every pass of a module begins.

    NumPy calls the passes one after the other with the same arrays: it is computed once.
    """

    def __init__(self, start: Callable[[dict[str, Array]], T], *names: str) -> None:
        self._start, self._names = start, names
        self._used: list[Array] = []
        self._made: list[T] = []

    def __call__(self, arrays: dict[str, Array], last: bool = False) -> T:
        used = [arrays[name] for name in self._names if name in arrays]
        same = self._made and all(a is b for a, b in zip(used, self._used, strict=True))
        made = self._made[0] if same else self._start(arrays)
        self._used, self._made = ([], []) if last else (used, [made])
        return made


def forward_passes(module: RobotModule, ground: Array, external: bool = False) -> list[ModulePass]:
    """Return the three passes of forward dynamics; the first only if there are points.

    Args:
        module: the module.
        ground: minus the acceleration of gravity, `(6,)`, read at the root.
        external: whether there are external wrenches, `(..., nb 6)`.
    """
    robot, count = module.robot, len(module.points)
    refuse_mimic_joints(robot, "articulated")
    base = () if module.ground else (("base_twist", 6),)
    rate = () if module.ground else (("base_rate", 6),)
    state = (("q", robot.nq), ("v", robot.nv))
    memory, pushed = sum(_memory_sizes(module)), _external(module, external)

    def start(arrays: dict[str, Array]) -> ForwardState:
        return start_forward(module, arrays["q"], arrays["v"], arrays.get("base_twist"), ground)

    begin = _Outward(start, "q", "v", "base_twist")

    def twists(arrays: dict[str, Array]) -> tuple[Array, ...]:
        return (flat(begin(arrays).points),)

    def inertias(arrays: dict[str, Array]) -> tuple[Array, ...]:
        loads = [unpacked_load(row) for row in rows(arrays["loads"], count)]
        W = _by_body(module, arrays)
        done, felt = articulate(module, begin(arrays), arrays["tau"], W, loads)
        left = () if felt is None else (packed_load(felt),)
        return (*left, _memory_of(done))

    def accelerations(arrays: dict[str, Array]) -> tuple[Array, ...]:
        done = begin(arrays, last=True)._replace(joints=_from_memory(module, arrays["memory"]))
        vdot, rates = accelerate(module, done, arrays.get("base_rate", ground))
        return vdot, flat(rates)

    felt = () if module.ground else (("felt", LOAD),)
    passes = [
        module_pass("twists", (*state, *base), (("points", 6 * count),), twists),
        module_pass(
            "inertias", (*state, ("tau", robot.nv), *base, *pushed, ("loads", LOAD * count)),
            (*felt, ("memory", memory)), inertias,
        ),
        module_pass(
            "accelerations", (*state, *base, *rate, ("memory", memory)),
            (("result", robot.nv), ("rates", 6 * count)), accelerations,
        ),
    ]  # fmt: skip
    return [way for way in passes if way.outputs]


def inverse_passes(
    module: RobotModule, ground: Array, external: bool = False, loads: bool = False
) -> list[ModulePass]:
    """Return the passes of inverse dynamics: motions if there are points, then wrenches.

    Args:
        module: the module.
        ground: minus the acceleration of gravity, `(6,)`, read at the root.
        external: whether there are external wrenches, `(..., nb 6)`.
        loads: whether the wrenches at the joints are a result, too, `(..., nb 6)`.
    """
    robot, count = module.robot, len(module.points)
    base = () if module.ground else (("base_motion", 12),)
    state = (("q", robot.nq), ("v", robot.nv), ("vdot", robot.nv))
    bodies, pushed = 6 * len(robot.bodies), _external(module, external)

    def start(arrays: dict[str, Array]) -> InverseState:
        moved = BodyMotion(np.zeros(6), ground)
        if not module.ground:
            moved = BodyMotion(arrays["base_motion"][..., :6], arrays["base_motion"][..., 6:])
        W = _by_body(module, arrays)
        return start_inverse(module, arrays["q"], arrays["v"], arrays["vdot"], moved, W)

    begin = _Outward(start, "q", "v", "vdot", "base_motion", "wrenches")

    def motions(arrays: dict[str, Array]) -> tuple[Array, ...]:
        begun = begin(arrays)
        points = [concatenate([point.twist, point.rate]) for point in begun.points]
        return flat(points), flat([body.W for body in begun.bodies])

    def wrenches(arrays: dict[str, Array]) -> tuple[Array, ...]:
        begun = begin(arrays, last=True)
        if count:  # what the first pass computed
            inertial = rows(arrays["inertial"], len(robot.bodies))
            known = zip(begun.bodies, inertial, strict=True)
            begun = begun._replace(bodies=[body._replace(W=W) for body, W in known])
        by_joint, felt = finish_inverse(module, begun, rows(arrays["loads"], count))
        left = () if felt is None else (felt,)
        return *left, generalized_forces(module, by_joint), flat([load.W for load in by_joint])

    inertial = (("inertial", bodies),) if count else ()
    felt = () if module.ground else (("felt", 6),)
    passes = [
        module_pass(
            "motions", (*state, *base, *pushed), (("points", 12 * count), *inertial), motions
        ),
        module_pass(
            "wrenches", (*state, *base, *pushed, *inertial, ("loads", 6 * count)),
            (*felt, ("result", robot.nv), ("joints", bodies * loads)), wrenches,
        ),
    ]  # fmt: skip
    return [way for way in passes if way.outputs and (count or way.name == "wrenches")]


def pose_passes(module: RobotModule, ground: Array) -> list[ModulePass]:
    """Return the pass that finds the poses of a module's points, if it has any.

    Args:
        module: the module.
        ground: read for its shape only; all functions of passes take it.
    """
    base = () if module.ground else (("base_pose", 8),)

    def poses(arrays: dict[str, Array]) -> tuple[Array, ...]:
        contexts = module.contexts(ground, None, q=arrays["q"])
        root = arrays.get("base_pose", dual_quaternion.identity())
        _, bodies = module.outward(_pose_step, contexts, (), root)
        points = [
            dual_quaternion.mul(root if frame.body < 0 else bodies[frame.body], frame.placement)
            for frame in module.points
        ]
        return (flat(points),)

    inputs, outputs = (("q", module.robot.nq), *base), (("poses", 8 * len(module.points)),)
    way = module_pass("poses", inputs, outputs, poses)
    return [way] if way.outputs else []


def _pose_step(at: JointContext, _: object, parent: Array | None) -> tuple[None, Array]:
    relative = joints.relative_pose(at.joint, at.q)
    return None, relative if parent is None else dual_quaternion.mul(parent, relative)


def _external(module: RobotModule, external: bool) -> tuple[tuple[str, int], ...]:
    return (("wrenches", 6 * len(module.robot.bodies)),) if external else ()


def _by_body(module: RobotModule, arrays: dict[str, Array]) -> Array | None:
    """Return external wrenches `(..., nb, 6)`, if there are any."""
    W = arrays.get("wrenches")
    return None if W is None else W.reshape(*W.shape[:-1], len(module.robot.bodies), 6)


def _memory_sizes(module: RobotModule) -> list[int]:
    """Return the numbers that the inward pass leaves at each joint: k and K of `ForceDriven`."""
    sizes: list[int] = []
    for joint in module.joints:
        nv = joint.v.stop - joint.v.start
        sizes.append(nv if joint.parent < 0 else 7 * nv)
    return sizes


def _memory_of(state: ForwardState) -> Array:
    parts: list[Array] = []
    for by in state.joints:
        if isinstance(by, ForceDriven):
            parts.append(by.k)
            if by.K is not None:
                parts.append(by.K.reshape(*by.K.shape[:-2], by.K.shape[-2] * 6))
    return concatenate(parts) if parts else np.zeros(0)


def _from_memory(module: RobotModule, memory: Array) -> list[Any]:
    steps: list[Any] = []
    at = 0
    nothing = ArticulatedBody(np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(6))
    for joint, size in zip(module.joints, _memory_sizes(module), strict=True):
        nv = joint.v.stop - joint.v.start
        k, K = memory[..., at : at + nv], memory[..., at + nv : at + size]
        at += size
        if nv == 0:
            steps.append(MotionPrescribed(nothing, np.zeros(0)))
        else:
            full = None if joint.parent < 0 else K.reshape(*K.shape[:-1], nv, 6)
            steps.append(ForceDriven(full, k))
    return steps


# Kernels -----------------------------------------------------------------------------------------

#: Kernels of modules in this process, by key.
_KERNELS: dict[str, Kernel] = {}
#: The passes of a module: (module, minus the acceleration of gravity) -> passes.
Passes = Callable[[RobotModule, Array], list[ModulePass]]


def module_kernel(module: RobotModule, way: ModulePass, passes: Passes, ground: Array) -> Kernel:
    """Return the kernel of a pass, compiled once in a process; equal modules share it.

    Args:
        module: the module with the points that it carries others with.
        way: the pass.
        passes: the function that returned the pass.
        ground: minus the acceleration of gravity, `(6,)`; compiled into a root.
    """
    points = [(f.body, f.placement) for f in module.points]
    at_root = ground if module.ground else None
    key = value_key(passes, module.robot, way.name, module.ground, points, at_root)
    kernel = _KERNELS.get(key) if key else None
    if kernel is None:
        kernel = Kernel(way.function, way.signatures(), f"module_{way.name}", "float64", key)
        if key:
            _KERNELS[key] = kernel
    return kernel
