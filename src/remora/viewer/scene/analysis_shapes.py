"""What an analysis looks like in the scene: ellipsoid, workspace cloud, coupling by joint.

The numbers are those of `rm.manipulability`, `rm.workspace` and `rm.analysis.coupling`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.analysis.arm import moving_joints
from remora.analysis.base_coupling import PARTS, coupling_of
from remora.analysis.cells import Mask
from remora.analysis.manipulability import (
    Manipulability,
    characteristic_length,
    ellipsoid_matrix,
    semi_axes_of,
)
from remora.analysis.workspace import workspace
from remora.dynamics.kernels.compiled import CompiledRobot, compile_function
from remora.model.joints import is_free, kind
from remora.model.robot import Robot
from remora.simulation.recording.quantities import evaluated
from remora.viewer.scene.materials import PLAIN
from remora.viewer.scene.primitives import Primitive
from remora.viewer.scene.surfaces import SURFACES, Surface

#: Samples, cells along a side, and rounds of refinement of a workspace: a second or two.
SAMPLES, CELLS, ROUNDS = 120_000, 44, 3
#: Colours from small to large values.
RAMP = np.array(
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], dtype=float
)
#: Colours of weak and strong coupling.
WEAK_TO_STRONG = np.array([(40, 110, 220), (90, 190, 200), (240, 210, 60), (220, 40, 40)], float)


class Cloud(NamedTuple):
    """The boundary of a workspace.

    Attributes:
        points: centres of cells, `(n, 3)`, m, in the frame of the vehicle if it floats.
        values: the largest measure of manipulability in each cell, `(n,)`.
        volume: of the whole region, m³.
        spacing: width of a cell, m.
    """

    points: Array
    values: Array
    volume: float
    spacing: float


def chain_joints(robot: Robot, tool: str) -> list[str]:
    """Return the joints between the vehicle and a tool, without those that follow others."""
    return [
        robot.joints[j].name for j in moving_joints(robot, tool) if robot.joints[j].mimic is None
    ]


class ToolEllipsoid:
    """The ellipsoid of a tool's velocities by the joints between the vehicle and the tool.

    The matrix of `rm.manipulability` as a kernel, so that it follows a robot that is dragged.

    Attributes:
        length: of the arm, m.
    """

    def __init__(self, robot: Robot, tool: str, base: str) -> None:
        """Compile the matrix.

        Args:
            robot: the robot.
            tool: name of a frame or body.
            base: "fixed" or "floating".
        """
        self.length = characteristic_length(robot, tool, None)
        fixed = {
            "frame": tool, "base": base, "kind": "kinematic", "subspace": "translation",
            "length": self.length, "joints": tuple(chain_joints(robot, tool)),
        }  # fmt: skip
        self._matrix: Any = compile_function(ellipsoid_matrix, robot, arguments=["q"], fixed=fixed)
        self._frame = robot.frame(tool)

    def at(self, q: Array, x: Array) -> Manipulability:
        """Return the ellipsoid at a configuration `(nq,)` with poses of the bodies `(nb, 8)`."""
        sigma, U = semi_axes_of(self._matrix(q), "kinematic")
        tip = pose.compose(x[self._frame.body], self._frame.placement)
        return Manipulability(sigma, U, pose.translation(tip), self.length)


def ellipsoid_points(found: Manipulability, scale: float) -> Array:
    """Return the surface of an ellipsoid in the inertial frame, `(n, 3)`.

    Args:
        found: the ellipsoid.
        scale: length of a semi-axis of one unit, m.
    """
    unit = _ball().points
    return found.center + scale * (unit * found.semi_axes) @ found.axes.T


def ellipsoid_faces() -> NDArray[np.int64]:
    """Return the triangles of `ellipsoid_points`."""
    return _ball().faces


@functools.cache
def _ball() -> Surface:
    return SURFACES["sphere"](
        Primitive(0, "sphere", (1.0,), pose.from_translation(np.zeros(3)), PLAIN)
    )


def joint_coupling(fast: CompiledRobot, q: Array) -> dict[str, float]:
    """Return the angular rate of a floating base per unit speed of each joint.

    rad/s per rad/s, or per m/s; of a joint with several degrees of freedom the largest. The numbers
    are those of `rm.analysis.coupling`.

    Args:
        fast: a robot with a free base.
        q: configuration, `(nq,)`.
    """
    response: Array = evaluated(fast, "base_response", q[None])[0]
    per_speed = coupling_of(response[PARTS["rotation"]]).per_joint
    return {
        joint.name: float(np.max(per_speed[joint.v.start - 6 : joint.v.stop - 6]))
        for joint in fast.robot.joints
        if joint.mimic is None and kind(joint).nv and not is_free(joint)
    }


def workspace_cloud(robot: Robot, tool: str) -> Cloud:
    """Return the boundary of the workspace of a tool with the base fixed at its neutral pose."""
    found = workspace(robot, tool, samples=SAMPLES, cells=CELLS, refine=ROUNDS, threads=0)
    shell = boundary(found.mask)
    points = np.asarray(found.grid.origin) + found.grid.spacing * (np.argwhere(shell) + 0.5)
    return Cloud(points, found.best[shell], found.volume, found.grid.spacing)


def boundary(mask: Mask) -> Mask:
    """Return the cells of a region that have a neighbour outside it, `(a, b, c)`."""
    padded = np.pad(mask, 1)
    inner = np.ones_like(mask)
    for axis in range(mask.ndim):
        for step in (-1, 1):
            near = np.roll(padded, step, axis=axis)
            inner &= near[tuple(slice(1, -1) for _ in range(mask.ndim))]
    return mask & ~inner


def ramp(values: Array, low: float, high: float, colors: Array = RAMP) -> NDArray[np.uint8]:
    """Return colours of values between two bounds, `(n, 3)`; NaN counts as low."""
    part = np.clip((np.nan_to_num(values, nan=low) - low) / max(high - low, 1e-300), 0.0, 1.0)
    place = part * (len(colors) - 1)
    mixed = [np.interp(place, np.arange(len(colors)), colors[:, k]) for k in range(3)]
    return np.asarray(np.round(np.stack(mixed, axis=-1)), dtype=np.uint8)
