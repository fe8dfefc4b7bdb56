"""A spring and damper between two frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from remora.algebra.array_ops import Array, asarray, less, select, sqrt
from remora.components.actions import Action, Wrench
from remora.components.component import Component, Interface
from remora.components.component_settings import ContinuousSettings
from remora.components.context import Context
from remora.components.parameter_checks import number
from remora.components.signals import Signal
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, NotNegative

#: Square of the length below which the spring has no direction and exerts no force, m².
SHORTEST = 1e-24


class Spring(Component):
    """A spring and damper along the line between the origins of two frames.

    f = k (l - l₀) + c l̇, a tension: at both ends it pulls along n = (p_b - p_a) / l, with
    l = ‖p_b - p_a‖. It is internal, so momentum is conserved; a frame that is fixed in the inertial
    frame feels no force.

    Outputs: `length` l, m; `force` f, N.

    Attributes:
        a: name of a body or frame.
        b: name of another body or frame.
        stiffness: k, N/m.
        length: l₀, m.
        damping: c, N s/m.
    """

    a: str
    b: str
    stiffness: float
    length: float = 0.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        """Check."""
        for name in ("stiffness", "length", "damping"):
            value = number(f"{name} of a spring", getattr(self, name), 0.0)
            object.__setattr__(self, name, value)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if no end moves."""
        if self.a == self.b or all(robot.frame(x).body < 0 for x in (self.a, self.b)):
            raise RemoraError(f"nothing moves between {self.a!r} and {self.b!r}")
        return Interface(outputs={"length": Signal((), "m"), "force": Signal((), "N")})

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return length and tension."""
        length, force, _ = self._stretched(at)
        return {"length": length, "force": force}

    def act(self, at: Context) -> list[Action]:
        """Return the forces at both ends."""
        _, force, direction = self._stretched(at)
        pull = force[..., None] * direction
        ends = ((self.a, pull), (self.b, -pull))
        return [Wrench(x, f, axes="inertial") for x, f in ends if at.robot.frame(x).body >= 0]

    def _stretched(self, at: Context) -> tuple[Array, Array, Array]:
        """Return length, tension and the unit vector from a to b."""
        offset = at.position(self.b) - at.position(self.a)
        square = asarray((offset * offset).sum(axis=-1))
        stretched = less(SHORTEST, square)
        length = sqrt(select(stretched, square, SHORTEST))
        direction = offset / length[..., None]
        speed = ((self._velocity(at, self.b) - self._velocity(at, self.a)) * direction).sum(axis=-1)
        force = self.stiffness * (length - self.length) + self.damping * speed
        return length, select(stretched, force, 0.0), direction

    @staticmethod
    def _velocity(at: Context, frame: str) -> Array:
        fixed = at.robot.frame(frame).body < 0
        return 0.0 * at.position(frame) if fixed else at.velocity(frame)


class SpringSettings(ContinuousSettings):
    """The settings of a spring in a scenario file."""

    type: Literal["spring"]
    between: Annotated[list[FrameName], Field(min_length=2, max_length=2)] = Field(
        description="two bodies or frames"
    )
    stiffness: NotNegative = Field(description="N/m")
    length: NotNegative = Field(default=0.0, description="free length, m")
    damping: NotNegative = Field(default=0.0, description="N s/m")

    def made(self, robot: Robot, name: str) -> Spring:
        """Return the component."""
        a, b = self.between
        return Spring(a, b, self.stiffness, self.length, self.damping, name=name)
