"""A spring and damper between two frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra.array_ops import Array, asarray, less, select, sqrt
from remora.components.actions import Action, Wrench
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import RemoraError
from remora.model.robot import Robot

#: Square of the length below which the spring has no direction and exerts no force, m².
SHORTEST = 1e-24


class Spring(Component):
    """A spring and damper along the line between the origins of two frames.

    f = k (l - l₀) + c l̇, a tension: at both ends it pulls along n = (p_b - p_a) / l, with
    l = ‖p_b - p_a‖. It is internal, so momentum is conserved; a frame that is fixed in the inertial
    frame feels no force.

    Outputs: `length` l, m; `force` f, N.
    """

    between: Sequence[str] = parameter("bodies or frames a and b", "frames", size=2)
    stiffness: float = parameter("k", unit="N/m", minimum=0.0)
    length: float = parameter("free length l₀", default=0.0, unit="m", minimum=0.0)
    damping: float = parameter("c", default=0.0, unit="N s/m", minimum=0.0)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if no end moves."""
        a, b = self.between
        if a == b or all(robot.frame(x).body < 0 for x in (a, b)):
            raise RemoraError(f"nothing moves between {a!r} and {b!r}")
        return Interface(outputs={"length": Signal((), "m"), "force": Signal((), "N")})

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return length and tension."""
        length, force, _ = self._stretched(at)
        return {"length": length, "force": force}

    def act(self, at: Context) -> list[Action]:
        """Return the forces at both ends."""
        _, force, direction = self._stretched(at)
        pull = force[..., None] * direction
        ends = zip(self.between, (pull, -pull), strict=True)
        return [Wrench(x, f, axes="inertial") for x, f in ends if at.robot.frame(x).body >= 0]

    def _stretched(self, at: Context) -> tuple[Array, Array, Array]:
        """Return length, tension and the unit vector from a to b."""
        a, b = self.between
        offset = at.position(b) - at.position(a)
        square = asarray((offset * offset).sum(axis=-1))
        stretched = less(SHORTEST, square)
        length = sqrt(select(stretched, square, SHORTEST))
        direction = offset / length[..., None]
        speed = ((self._velocity(at, b) - self._velocity(at, a)) * direction).sum(axis=-1)
        force = self.stiffness * (length - self.length) + self.damping * speed
        return length, select(stretched, force, 0.0), direction

    @staticmethod
    def _velocity(at: Context, frame: str) -> Array:
        fixed = at.robot.frame(frame).body < 0
        return 0.0 * at.position(frame) if fixed else at.velocity(frame)
