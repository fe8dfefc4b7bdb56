"""A bushing: springs and dampers along and about all three axes between two frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from remora.algebra import pose, quaternion, vector
from remora.algebra.array_ops import Array, asarray
from remora.components.actions import Action, Wrench
from remora.components.component import Component, Interface
from remora.components.component_settings import ContinuousSettings
from remora.components.context import Context
from remora.components.parameter_checks import number
from remora.components.signals import Signal
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, NotNegative
from remora.world.relative_motion import RelativeMotion, motion_between

#: Names of the numbers of a bushing.
NUMBERS = ("stiffness", "damping", "rotational_stiffness", "rotational_damping")


class Bushing(Component):
    """Springs and dampers along and about all axes that hold frame b at frame a.

    With position p and rotation vector φ of b seen from a, in the axes of a,

        f = -k p - c ṗ,    τ = -κ φ - γ ω

    act on b at its origin, and the opposite on a at the same point: momentum is conserved, and the
    springs are conservative, with the energy ½ k p·p + ½ κ φ·φ.

    Outputs: `force` f, N, and `torque` τ, N m, on b, in the axes of a; `energy` of the springs, J.

    Attributes:
        a: name of a body or frame.
        b: name of a body or frame.
        stiffness: k, N/m.
        damping: c, N s/m.
        rotational_stiffness: κ, N m/rad.
        rotational_damping: γ, N m s/rad.
    """

    a: str
    b: str
    stiffness: float
    damping: float = 0.0
    rotational_stiffness: float = 0.0
    rotational_damping: float = 0.0

    def __post_init__(self) -> None:
        """Check."""
        check_numbers(self, "a bushing")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if both frames are on the same body."""
        refuse_same_body(robot, self.a, self.b)
        return Interface(outputs={
            "force": Signal(3, "N"), "torque": Signal(3, "N m"), "energy": Signal((), "J"),
        })  # fmt: skip

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return force, torque and energy."""
        motion = motion_between(at, self.a, self.b)
        force, torque = forces(self, motion)
        return {"force": force, "torque": torque, "energy": energy(self, motion)}

    def act(self, at: Context) -> list[Action]:
        """Return the wrenches on both frames."""
        motion = motion_between(at, self.a, self.b)
        return wrenches(at, self.a, self.b, motion.position, *forces(self, motion))


def check_numbers(component: Component, what: str) -> None:
    """Replace the numbers of a component with springs and dampers by checked ones, or raise."""
    for name in NUMBERS:
        told = f"{name} of {what}".replace("_", " ")
        object.__setattr__(component, name, number(told, getattr(component, name), 0.0))


def refuse_same_body(robot: Robot, a: str, b: str) -> None:
    """Raise if two frames cannot move relative to each other."""
    if robot.frame(a).body == robot.frame(b).body:
        raise RemoraError(f"nothing moves between {a!r} and {b!r}: both are on the same body")


def forces(spring: Component, motion: RelativeMotion) -> tuple[Array, Array]:
    """Return force and torque on b in the axes of a, `(..., 3)` each; see `Bushing`."""
    k, c, kappa, gamma = (asarray(getattr(spring, name))[..., None] for name in NUMBERS)
    return (
        -k * motion.position - c * motion.velocity,
        -kappa * motion.rotation - gamma * motion.rate,
    )


def energy(spring: Component, motion: RelativeMotion) -> Array:
    """Return the energy of the springs, `(...)`, J."""
    k, _, kappa, _ = (asarray(getattr(spring, name))[..., None] for name in NUMBERS)
    stretched, turned = (vector.dot(x, x) for x in (motion.position, motion.rotation))
    return (0.5 * (k * stretched + kappa * turned))[..., 0]


def wrenches(
    at: Context, a: str, b: str, position: Array, force: Array, torque: Array
) -> list[Action]:
    """Return a wrench on b at its origin and the opposite one on a, at the same point.

    Args:
        at: the state.
        a: name of a body or frame.
        b: name of another one.
        position: of b seen from a, in the axes of a, `(..., 3)`, m.
        force: on b, in the axes of a, `(..., 3)`, N.
        torque: on b, about its origin, in the axes of a, `(..., 3)`, N m.
    """
    r = pose.rotation(at.pose(a))
    about_a = torque + vector.cross(position, force)
    found: list[Action] = []
    for name, f, tau in ((a, -force, -about_a), (b, force, torque)):
        if at.robot.frame(name).body >= 0:
            turned = quaternion.rotate(r, f), quaternion.rotate(r, tau)
            found.append(Wrench(name, *turned, axes="inertial"))
    return found


class BushingSettings(ContinuousSettings):
    """The settings of a bushing in a scenario file."""

    type: Literal["bushing"]
    between: Annotated[list[FrameName], Field(min_length=2, max_length=2)] = Field(
        description="two bodies or frames"
    )
    stiffness: NotNegative = Field(description="N/m")
    damping: NotNegative = Field(default=0.0, description="N s/m")
    rotational_stiffness: NotNegative = Field(default=0.0, description="N m/rad")
    rotational_damping: NotNegative = Field(default=0.0, description="N m s/rad")

    def made(self, robot: Robot, name: str) -> Bushing:
        """Return the component."""
        numbers = {key: getattr(self, key) for key in NUMBERS}
        a, b = self.between
        return Bushing(a, b, **numbers, name=name)
