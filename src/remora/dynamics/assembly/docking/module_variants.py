"""A module on its own base and docked to another: two variants, each with its kernels.

Docked, the free joint of the base is gone: the base body takes the motion of the dock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly.docking.dock_functions import pose_passes
from remora.dynamics.assembly.module_functions import ModulePass, forward_passes
from remora.dynamics.assembly.module_kernels import Passes, module_kernel
from remora.dynamics.assembly.robot_module import RobotModule, module_of, point_of
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
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
    def memory(self) -> int:
        """Numbers that its inward pass leaves for the outward one."""
        sizes = dict(self.kernels["inertias"][1].outputs) if "inertias" in self.kernels else {}
        return sizes.get("memory", 0)


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
    """Return a module on its own base.

    Args:
        name: of the module.
        robot: the robot.
        ports: names of the points that others may dock at.
        ground: minus the acceleration of gravity, `(6,)`.
    """
    module = module_of(name, robot, None, dual_quaternion.identity(), True, list(ports))
    return Variant(_kernels(module, ground), (0, 0))


def docked(name: str, robot: Robot, ports: Sequence[str], ground: Array) -> Variant:
    """Return a module whose base body is given its motion; the arguments are those of `floating`.

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
    own = [dataclasses.replace(joint, parent=joint.parent + 1) for joint in without.joints]
    module = RobotModule(without, ground=False, points=points, joints=tuple(own))
    return Variant(_kernels(module, ground), (BASE_Q, BASE_V))


def _kernels(module: RobotModule, ground: Array) -> dict[str, tuple[Kernel, ModulePass]]:
    found: dict[str, tuple[Kernel, ModulePass]] = {}
    at_rest = {"inertias": "rest", "accelerations": "jumps"}
    ways: list[tuple[Passes, Array, dict[str, str]]] = [
        (forward_passes, ground, {}), (pose_passes, ground, {}),
        (forward_passes, 0.0 * ground, at_rest),
    ]  # fmt: skip
    for passes, g, names in ways:
        for way in passes(module, g):
            if names and way.name not in names:
                continue
            found[names.get(way.name, way.name)] = module_kernel(module, way, passes, g), way
    return found


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
