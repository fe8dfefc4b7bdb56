"""A bushing: springs and dampers along and about all three axes between two frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra import pose, quaternion, vector
from remora.algebra.array_ops import Array, asarray
from remora.components.actions import Action, Wrench
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import RemoraError
from remora.model.robot import Robot
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
    """

    between: Sequence[str] = parameter("bodies or frames a and b", "frames", size=2)
    stiffness: float = parameter("k", unit="N/m", minimum=0.0)
    damping: float = parameter("c", default=0.0, unit="N s/m", minimum=0.0)
    rotational_stiffness: float = parameter("κ", default=0.0, unit="N m/rad", minimum=0.0)
    rotational_damping: float = parameter("γ", default=0.0, unit="N m s/rad", minimum=0.0)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if both frames are on the same body."""
        a, b = self.between
        refuse_same_body(robot, a, b)
        return Interface(outputs={
            "force": Signal(3, "N"), "torque": Signal(3, "N m"), "energy": Signal((), "J"),
        })  # fmt: skip

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return force, torque and energy."""
        a, b = self.between
        motion = motion_between(at, a, b)
        force, torque = forces(self, motion)
        return {"force": force, "torque": torque, "energy": energy(self, motion)}

    def act(self, at: Context) -> list[Action]:
        """Return the wrenches on both frames."""
        a, b = self.between
        motion = motion_between(at, a, b)
        return wrenches(at, a, b, motion.position, *forces(self, motion))


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
