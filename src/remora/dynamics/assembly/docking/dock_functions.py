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
from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly.module_passes import packed_load, unpacked_load
from remora.dynamics.assembly.network import LOAD
from remora.dynamics.assembly.robot_module import to_outer
from remora.dynamics.recursive.articulated_body import inertia_wrench


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
