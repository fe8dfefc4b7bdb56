"""A module on a free base and docked to another: two variants, each with its kernels, and docks.

Docked, the free joint of the base is gone: the base body takes the motion of the dock. A dock is a
rigid connection: the base body of the child has a constant pose in the frame of the parent's port.
The pose is an argument of what passes through the dock, so that no module is traced or compiled
anew when it docks somewhere else.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly.module_passes import (
    Passes,
    forward_passes,
    module_kernel,
    packed_load,
    pose_passes,
    unpacked_load,
)
from remora.dynamics.assembly.network import AT_REST, LOAD, ModulePass, exchanged
from remora.dynamics.assembly.robot_module import RobotModule, module_of, point_of, to_outer
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.dynamics.recursive.articulated_body import inertia_wrench
from remora.dynamics.refusals import refuse_mimic_joints
from remora.errors import RemoraError
from remora.model.joints import is_free
from remora.model.robot import Joint, Robot

#: Coordinates and speeds of a free base.
BASE_Q, BASE_V = 8, 6


class Variant(NamedTuple):
    """A module in one of its two roles.

    Attributes:
        kernels: kernel and pass by name: `twists`, `inertias`, `accelerations`, `poses`, and
            `rest` and `jumps`, the passes of inertias and accelerations without gravity.
        skipped: coordinates and speeds of the base that it does not have.
    """

    kernels: dict[str, tuple[Kernel, ModulePass]]
    skipped: tuple[int, int]

    @property
    def arrays(self) -> dict[str, int]:
        """Arrays that its passes exchange: sizes by name."""
        return exchanged(way for _, way in self.kernels.values())


def check_module(name: str, robot: Robot) -> None:
    """Raise unless a robot can be a module."""
    refuse_mimic_joints(robot, "articulated")
    if not fits_straight_line(robot):
        raise RemoraError(
            f"module {name!r} has {len(robot.bodies)} bodies; a module is compiled for at most "
            f"{LARGEST_STRAIGHT_LINE}"
        )
    module_of(name, robot, None, dual_quaternion.identity(), True, [])


def check_dockable(name: str, robot: Robot) -> None:
    """Raise unless a module can dock: its first joint is free and carries all its bodies."""
    first, roots = robot.joints[0], [j.name for j in robot.joints if j.parent < 0]
    if not is_free(first) or len(roots) > 1 or np.any(first.rotor_inertia != 0.0):
        raise RemoraError(
            f"module {name!r} cannot dock or undock: that takes a base body on one free joint, "
            f"and it has {', '.join(f'{n!r} ({robot.joints[n].kind})' for n in roots)} on the "
            "inertial frame"
        )


def floating(name: str, robot: Robot, ports: Sequence[str], ground: Array) -> Variant:
    """Return a module on a free base.

    Args:
        name: of the module.
        robot: the robot.
        ports: names of the points that others may dock at.
        ground: minus the acceleration of gravity, `(6,)`.
    """
    module = module_of(name, robot, None, dual_quaternion.identity(), True, list(ports))
    return Variant(_kernels(module, ground), (0, 0))


def docked(name: str, robot: Robot, ports: Sequence[str], ground: Array) -> Variant:
    """Return a module whose base body moves with a dock; the arguments are those of `floating`.

    Its base frame is the frame of the base body.
    """
    check_dockable(name, robot)
    points = tuple(point_of(name, robot, port) for port in ports)
    for port in points:
        if port.body < 0:
            raise RemoraError(
                f"module {name!r}: the port {port.name!r} is fixed in the inertial frame, not on "
                "the module"
            )
    rigid = [_rigid(robot.joints[0]), *(_shifted(joint) for joint in robot.joints[1:])]
    without = robot.replace(joints=rigid, frames=[])
    joints = [dataclasses.replace(joint, parent=joint.parent + 1) for joint in without.joints]
    module = RobotModule(without, ground=False, points=points, joints=tuple(joints))
    return Variant(_kernels(module, ground), (BASE_Q, BASE_V))


def _kernels(module: RobotModule, ground: Array) -> dict[str, tuple[Kernel, ModulePass]]:
    made: dict[str, tuple[Kernel, ModulePass]] = {}
    at_rest = {name: sweep for sweep, name in AT_REST.items()}
    ways: list[tuple[Passes, Array, dict[str, str]]] = [
        (forward_passes, ground, {}), (pose_passes, ground, {}),
        (forward_passes, 0.0 * ground, at_rest),
    ]  # fmt: skip
    for passes, g, names in ways:
        for way in passes(module, g):
            if names and way.name not in names:
                continue
            made[names.get(way.name, way.name)] = module_kernel(module, way, passes, g), way
    return made


def _rigid(joint: Joint) -> Joint:
    nothing = np.zeros(0)
    limits = dataclasses.replace(
        joint.limits, lower=nothing, upper=nothing, velocity=nothing, effort=nothing
    )
    return dataclasses.replace(
        joint, kind="fixed", q=slice(0, 0), v=slice(0, 0), placement=dual_quaternion.identity(),
        axes=np.zeros((0, 3)), limits=limits, damping=nothing, friction=nothing,
        rotor_inertia=nothing, stiffness=nothing, spring_reference=nothing,
    )  # fmt: skip


def _shifted(joint: Joint) -> Joint:
    q, v = joint.q, joint.v
    return dataclasses.replace(
        joint,
        q=slice(q.start - BASE_Q, q.stop - BASE_Q),
        v=slice(v.start - BASE_V, v.stop - BASE_V),
    )


# Docks -------------------------------------------------------------------------------------------


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
