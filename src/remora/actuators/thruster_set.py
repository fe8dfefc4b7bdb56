"""A set of thrusters on the base that together exert a demanded torque and force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra import least_squares, pose, quaternion
from remora.algebra.array_ops import Array, asarray, concatenate, less, select, stack
from remora.algebra.vector import apply, cross
from remora.components.actions import Wrench
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import InvalidValue
from remora.model.robot import Robot

#: Force on the robot in the axes of a thruster's frame.
DIRECTION = (1.0, 0.0, 0.0)


class ThrusterSet(Component):
    """Thrusters that push only, in opposite pairs; the expelled mass is neglected [MC14].

    Each pushes along the x axis of its frame. With B `(6, n)`, the torque and force of each at unit
    thrust, u = 2 max(B⁺ w, 0) for the demand w: B⁺w is antisymmetric in each pair, so that u ≥ 0
    and B u = w exactly. If a thrust would exceed its limit, all are scaled down: the direction of w
    stays.

    Inputs: `torque` `(3,)`, N m, about the origin of the base, and `force` `(3,)`, N, base axes;
    zero by default. Outputs: `thrust` u, `(n,)`, N; `exerted` `(3,)`, N m, the torque.

    Valid for thrust that can be set between 0 and the limit (proportional thrusters, or pulses that
    are short against the sample time). B must have rank 6, and every thruster an opposite one.
    """

    frames: Sequence[str] = parameter("of the thrusters, on the base", "frames", minimum=6)
    thrust: float = parameter("largest of each", unit="N", above=0.0)

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if len(set(self.frames)) != len(self.frames):
            raise InvalidValue("a frame of a thruster set is listed twice")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the set cannot exert every wrench."""
        for name in self.frames:
            if robot.frame(name).body != 0:
                raise InvalidValue(f"thruster {name!r} is not on the base")
        B: Any = thruster_wrenches(robot, self.frames)
        if B.dtype != object:
            if np.linalg.matrix_rank(B, tol=1e-9) < 6:
                raise InvalidValue("the thrusters cannot exert every torque and force: rank < 6")
            for k, name in enumerate(self.frames):
                if np.abs(B + B[:, k : k + 1]).max(axis=0).min() > 1e-9:
                    raise InvalidValue(f"thruster {name!r} has no opposite one")
        zero = {"torque": Signal(3, "N m", default=0.0), "force": Signal(3, "N", default=0.0)}
        outputs = {"thrust": Signal(len(self.frames), "N"), "exerted": Signal(3, "N m")}
        return Interface(inputs=zero, outputs=outputs)

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the thrusts and the torque that they exert."""
        B = thruster_wrenches(at.robot, self.frames)
        u = self._thrusts(at)
        return {"thrust": u, "exerted": apply(B, u)[..., :3]}

    def act(self, at: Context) -> Wrench:
        """Return the wrench on the base."""
        B = thruster_wrenches(at.robot, self.frames)
        wrench = apply(B, self._thrusts(at))
        return Wrench(at.robot.bodies[0].name, force=wrench[..., 3:], torque=wrench[..., :3])

    def _thrusts(self, at: Context) -> Array:
        """Return the thrusts, which are computed with the thrusters' places of the design."""
        B = thruster_wrenches(at.design.robot, self.frames)
        demand = concatenate([at.inputs["torque"], at.inputs["force"]])
        pushes = 2.0 * apply(least_squares.damped_inverse(B), demand)
        pushes = select(less(pushes, 0.0), 0.0, pushes)
        most = pushes[..., 0]
        for k in range(1, len(self.frames)):
            most = select(less(most, pushes[..., k]), pushes[..., k], most)
        beyond = less(self.thrust, most)
        scale = select(beyond, self.thrust / select(beyond, most, 1.0), 1.0)
        return asarray(scale)[..., None] * pushes


def thruster_wrenches(robot: Robot, frames: Sequence[str]) -> Array:
    """Return [torque; force] of each thruster at unit thrust, base axes, `(..., 6, n)`."""
    columns: list[Array] = []
    for name in frames:
        x = robot.frame(name).placement
        push = quaternion.rotate(pose.rotation(x), asarray(DIRECTION))
        columns.append(concatenate([cross(pose.translation(x), push), push]))
    return stack(columns, axis=-1)
