"""Admittance control: a reference that yields to a measured force."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal, State
from remora.model.robot import Robot


class Admittance(Component):
    """A pose reference that is displaced by a measured force [H85].

    M ẍ + D ẋ + K x = f, x the displacement of the position in inertial axes; the orientation is
    kept. At each tick by the implicit Euler rule, which is stable for any sample time:
    (M + h D + h²K) ẋ⁺ = M ẋ + h (f - K x), x⁺ = x + h ẋ⁺.

    Inputs: `force`, `(3,)`, N, of the environment on the frame, inertial axes; `reference_pose`,
    `reference_twist`. Outputs: `pose`, `twist`, for a law that positions the frame, such as
    `ResolvedRate`. Discrete states: `displacement`, `speed`.

    Valid where the inner loop is much faster than √(K/M). Against a stiff wall k_w the loop needs
    M/h² of the order of k_w or greater.
    """

    sampled = True
    mass: ArrayLike = parameter("M, one or three", "numbers", unit="kg", above=0.0, size=3)
    damping: ArrayLike = parameter("D", "numbers", unit="N s/m", above=0.0, size=3)
    stiffness: ArrayLike = parameter(
        "K; 0: the frame drifts as long as it is pushed", "numbers", default=0.0, unit="N/m",
        minimum=0.0, size=3,
    )  # fmt: skip

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        return Interface(
            inputs={
                "force": Signal(3, "N"),
                "reference_pose": Signal(8),
                "reference_twist": Signal(6, default=0.0),
            },
            outputs={"pose": Signal(8), "twist": Signal(6)},
            discrete={
                "displacement": State(np.zeros(3), "m"),
                "speed": State(np.zeros(3), "m/s"),
            },
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the displaced reference."""
        x, twist = at.inputs["reference_pose"], at.inputs["reference_twist"]
        r = pose.rotation(x)
        moved = pose.from_parts(r, pose.translation(x) + at.memory["displacement"])
        own = quaternion.rotate(quaternion.conjugate(r), at.memory["speed"])
        return {"pose": moved, "twist": concatenate([twist[..., :3], twist[..., 3:] + own])}

    def update(self, at: Context) -> Mapping[str, Array]:
        """Return displacement and speed at the next tick."""
        x, speed, h = at.memory["displacement"], at.memory["speed"], self.sample_time
        assert h is not None
        mass, damping, stiffness = (asarray(g) for g in (self.mass, self.damping, self.stiffness))
        pushed = mass * speed + h * (at.inputs["force"] - stiffness * x)
        after = pushed / (mass + h * damping + h * h * stiffness)
        return {"displacement": x + h * after, "speed": after}
