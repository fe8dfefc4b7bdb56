"""What passes through a dock between two modules, as pure functions on flat arrays.

A dock is a rigid connection: the base body of the child has a constant pose in the frame of the
parent's port. The pose is an argument, so that no module is traced or compiled anew when it docks
somewhere else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array, concatenate
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly.module_functions import LOAD, ModulePass, packed_load, unpacked_load
from remora.dynamics.assembly.robot_module import RobotModule, to_outer
from remora.dynamics.recursive.articulated_body import inertia_wrench
from remora.dynamics.recursive.tree_passes import JointContext
from remora.model import joints


class DockFunction(NamedTuple):
    """A function of a dock.

    Attributes:
        inputs: names and sizes of its arguments.
        outputs: names and sizes of its results.
        function: of the arguments.
    """

    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    function: Callable[..., Array]


def docked_motion(placement: Array, motion: Array, offset: Array) -> Array:
    """Return a twist, its rate or its jump at a docked module's base body, `(..., 6)`.

    Args:
        placement: pose of the base body in the port's frame, `(..., 8)`.
        motion: at the port, in its frame.
        offset: what the motion of the base body is less by, in its frame: zero, but in an impulse.
    """
    return screw.adjoint_inverse(placement, motion) - offset


def docked_load(placement: Array, felt: Array, push: Array, offset: Array) -> Array:
    """Return articulated-body inertia and bias wrench of a docked module at its port, `(..., 27)`.

    The base body accelerates by a - offset, with a that of the port in its frame, so that the
    wrench is I (a - offset) + p - W.

    Args:
        placement: pose of the base body in the port's frame, `(..., 8)`.
        felt: articulated-body inertia I and bias wrench p in the base body's frame, `(..., 27)`.
        push: generalized force on the base body, [τ, f]: the external wrench W = [f, τ].
        offset: see `docked_motion`.
    """
    load = unpacked_load(felt)
    p = load.p - dual_quaternion.swap(push) - inertia_wrench(load, offset)
    return packed_load(to_outer(placement, load._replace(p=p)))


def docked_pose(placement: Array, pose: Array) -> Array:
    """Return the pose of a docked module's base body from that of the port, `(..., 8)`."""
    return dual_quaternion.mul(pose, placement)


#: What passes through a dock, by name.
DOCK_FUNCTIONS = {
    "motion": DockFunction(
        (("placement", 8), ("motion", 6), ("offset", 6)), (("base", 6),), docked_motion
    ),
    "load": DockFunction(
        (("placement", 8), ("felt", LOAD), ("push", 6), ("offset", 6)),
        (("load", LOAD),), docked_load,
    ),
    "pose": DockFunction((("placement", 8), ("pose", 8)), (("base", 8),), docked_pose),
}  # fmt: skip


@functools.cache
def dock_kernel(name: str) -> Kernel:
    """Return the kernel of a function of docks, compiled once in a process."""
    way = DOCK_FUNCTIONS[name]
    signatures = [Signature(key, (size,)) for key, size in way.inputs]
    return Kernel(way.function, signatures, f"dock_{name}", "float64")


def pose_passes(module: RobotModule, ground: Array) -> list[ModulePass]:
    """Return the pass that finds the poses of a module's points, if it has any.

    Args:
        module: the module.
        ground: not used; all functions of passes take it.
    """
    if not module.points:
        return []
    base = () if module.ground else (("base_pose", 8),)
    inputs = tuple(item for item in (("q", module.robot.nq), *base) if item[1])

    def on_arrays(*arrays: Array) -> tuple[Array, ...]:
        given = {key: array for (key, _), array in zip(inputs, arrays, strict=True)}
        q = given.get("q", 0.0 * ground)
        contexts = module.contexts(ground, None, q=q)
        root = given.get("base_pose", dual_quaternion.identity())
        _, bodies = module.outward(_pose_step, contexts, (), root)
        points = [
            dual_quaternion.mul(root if frame.body < 0 else bodies[frame.body], frame.placement)
            for frame in module.points
        ]
        return (concatenate(points),)

    return [ModulePass("poses", inputs, (("poses", 8 * len(module.points)),), on_arrays)]


def _pose_step(at: JointContext, _: object, parent: Array | None) -> tuple[None, Array]:
    own = joints.relative_pose(at.joint, at.q)
    return None, own if parent is None else dual_quaternion.mul(parent, own)
