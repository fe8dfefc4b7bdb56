"""A star tracker: the attitude of a frame with bias and noise."""

from __future__ import annotations

from collections.abc import Mapping

from remora.algebra import quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import RemoraError
from remora.model.robot import Robot


class StarTracker(Component):
    """A sampled star tracker: the orientation of a frame in the inertial frame.

    r exp(½(bias + σ n)) at each tick, with the orientation r of the frame and standard normal
    numbers n; bias and σ are rotation vectors in the frame's axes, small angles.

    Output: `attitude`, `(4,)`, a unit quaternion.
    """

    sampled = True
    frame: str = parameter("body or frame it is mounted on", "frame")
    bias: ArrayLike = parameter(
        "misalignment, the frame's axes", "numbers", default=0.0, unit="rad", size=3
    )
    noise: ArrayLike = parameter(
        "standard deviation σ, one or by axis", "numbers", default=0.0, unit="rad", minimum=0.0,
        size=3,
    )  # fmt: skip

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the frame does not move."""
        if robot.frame(self.frame).body < 0:
            raise RemoraError(f"frame {self.frame!r} is fixed in the inertial frame")
        return Interface(outputs={"attitude": Signal(4)}, noise={"attitude": 3})

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the measured attitude."""
        off = asarray(self.bias) + asarray(self.noise) * at.noise["attitude"]
        return {"attitude": quaternion.mul(at.rotation(self.frame), quaternion.exp(0.5 * off))}
