"""A wall: a plane that pushes back a frame that enters it."""

from __future__ import annotations

from collections.abc import Mapping

from remora.algebra.array_ops import Array, ArrayLike, asarray, less, select
from remora.components.actions import Wrench
from remora.components.component import Component, Interface, ZeroCrossing
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import InvalidValue
from remora.model.robot import Robot


class Wall(Component):
    """A half space, at rest in the inertial frame, that a frame's origin presses into.

    f = k d - c ḋ·(d > 0) along the outward normal n, with the depth d = n·(p_w - p), and never a
    pull: f ≥ 0. There is no friction. Unilateral: f = 0 where d ≤ 0.

    Outputs: `force`, `(3,)`, N, on the frame, inertial axes; `depth` d, m, negative outside.
    Events: `contact` and `release`, recorded; steps end there.

    Valid for one point against a plane; a body with shape needs a contact model of its own.
    """

    frame: str = parameter("body or frame that touches", "frame")
    point: ArrayLike = parameter("p_w of the surface, inertial axes", "vector", unit="m", size=3)
    normal: ArrayLike = parameter("n, outward, inertial axes, normalized", "direction", size=3)
    stiffness: float = parameter("k", unit="N/m", above=0.0)
    damping: float = parameter("c", default=0.0, unit="N s/m", minimum=0.0)

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if self.sample_time is not None:
            raise InvalidValue("a wall is continuous: it has no sample_time")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        if robot.frame(self.frame).body < 0:
            raise InvalidValue(f"frame {self.frame!r} is fixed in the inertial frame")
        return Interface(
            outputs={"force": Signal(3, "N"), "depth": Signal((), "m")},
            events={"contact": ZeroCrossing(1), "release": ZeroCrossing(-1)},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return force and depth."""
        n = asarray(self.normal)
        depth = self._depth(at)
        closing = -asarray((n * at.velocity(self.frame)).sum(axis=-1))
        push = self.stiffness * depth + self.damping * closing
        push = select(less(0.0, depth), select(less(push, 0.0), 0.0, push), 0.0)
        return {"force": push[..., None] * n, "depth": depth}

    def act(self, at: Context) -> Wrench:
        """Return the force on the frame."""
        return Wrench(self.frame, force=self.outputs(at)["force"], axes="inertial")

    def crossings(self, at: Context) -> Mapping[str, Array]:
        """Return the depth: it rises through zero at contact and falls at release."""
        depth = self._depth(at)
        return {"contact": depth, "release": depth}

    def _depth(self, at: Context) -> Array:
        off = asarray(self.point) - at.position(self.frame)
        return asarray((asarray(self.normal) * off).sum(axis=-1))
