"""PD control of the base's attitude by torques on the base, without a thruster or wheel model."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Discriminator, Field, Tag

from remora.algebra import quaternion
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.components.actions import JointForce
from remora.components.component import Component, Interface, set_timing
from remora.components.component_settings import ComponentSettings
from remora.components.context import Context
from remora.components.signals import Signal
from remora.control.motion.gains import gains
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.settings_fields import AngleVector, NotNegative, Positive, Settings


class AttitudePD(Component):
    """A PD controller of the base's attitude, sampled every `sample_time` seconds.

    τ = -kp 2 vec(e) - kd ω, body axes, with the error e = r_goal* r. Of e and -e, the one with the
    smaller angle is used; for small errors 2 vec(e) is the rotation vector. [τ, 0] acts on the base
    as an external load, so momentum is not conserved.

    A component of a `System`, with the parameters goal, kp and kd; or a value of `torque=`. In a
    system, ω may be an input `rate`, as measured by a gyro, and τ may be an output `torque`, for an
    actuator, instead of a load.

    Attributes:
        joints: name of the base's joint.
        r_places: indices of the base's quaternion in q.
        w_places: indices of its angular velocity in v.
        goal: unit quaternion, `(4,)`, desired orientation of the base in the inertial frame.
        kp: `(3,)`, N m/rad, body axes.
        kd: `(3,)`, N m s/rad, body axes.
        rate_input: whether it has the input `rate`, `(3,)`, rad/s, body axes.
        torque_output: whether it has the output `torque`, `(3,)`, N m, body axes, and does not act.
    """

    joints: tuple[str, ...]
    r_places: Array
    w_places: Array
    goal: Array
    kp: Array
    kd: Array
    rate_input: bool
    torque_output: bool

    def __init__(
        self,
        robot: Robot,
        goal: ArrayLike,
        kp: ArrayLike,
        kd: ArrayLike,
        sample_time: float | None,
        *,
        name: str = "",
        offset: float = 0.0,
        delay: float = 0.0,
        rate_input: bool = False,
        torque_output: bool = False,
    ) -> None:
        """Check the gains and look up the base's joint.

        Args:
            robot: the robot; its base is free or spherical.
            goal: desired attitude of the base as a quaternion, `(4,)`.
            kp: N m/rad, one number or `(3,)`, body axes.
            kd: N m s/rad, one number or `(3,)`, body axes.
            sample_time: s; None: continuous.
            name: name in a system.
            offset: time of the first tick after the start of the run, s; in a system.
            delay: time from a tick until the torque changes, s; in a system.
            rate_input: whether the angular velocity is an input `rate`; in a system.
            torque_output: whether the torque is an output instead of acting; in a system.
        """
        base = robot.joints[0]
        part = kind(base).quaternion
        if part is None:
            raise RemoraError(f"the base is {base.kind}: it has no attitude to be controlled")
        try:
            r = np.asarray(goal, dtype=float)
        except (TypeError, ValueError):
            raise InvalidValue(f"the goal must be a quaternion (4,), not {goal!r}") from None
        if r.shape != (4,) or not np.all(np.isfinite(r)) or not np.any(r):
            raise ShapeError(f"the goal must be a quaternion (4,), not {goal}")
        stiffness, damping = (
            gains(f"{name} of an attitude_pd", x, 3, zero=True)
            for name, x in (("kp", kp), ("kd", kd))
        )
        object.__setattr__(self, "joints", (base.name,))
        object.__setattr__(self, "r_places", np.arange(robot.nq)[base.q][part])
        object.__setattr__(self, "w_places", np.arange(robot.nv)[base.v][:3])
        object.__setattr__(self, "goal", quaternion.normalize(r))
        object.__setattr__(self, "kp", stiffness)
        object.__setattr__(self, "kd", damping)
        object.__setattr__(self, "rate_input", bool(rate_input))
        object.__setattr__(self, "torque_output", bool(torque_output))
        set_timing(self, name, sample_time, offset, delay)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the base of this robot is another."""
        base, part = robot.joints[0], kind(robot.joints[0]).quaternion
        if part is None or (base.name,) != self.joints:
            raise RemoraError("was made for another robot: make it with the robot of the system")
        return Interface(
            inputs={"rate": Signal(3, "rad/s")} if self.rate_input else {},
            outputs={"torque": Signal(3, "N m")} if self.torque_output else {},
        )

    def outputs(self, at: Context) -> dict[str, Array]:
        """Return the torque, if it is an output."""
        return {"torque": self._commanded(at)} if self.torque_output else {}

    def act(self, at: Context) -> JointForce | None:
        """Return the torque on the base."""
        if self.torque_output:
            return None
        base = at.robot.joints[0]
        rest = np.zeros(base.v.stop - base.v.start - 3)  # the forces of a free base
        return JointForce(base.name, concatenate([self._commanded(at), rest]))

    def _commanded(self, at: Context) -> Array:
        rate = at.inputs["rate"] if self.rate_input else at.v[..., self.w_places]
        return self._torque(at.q, rate)

    def _torque(self, q: Array, rate: Array) -> Array:
        """Return the torque in body axes, `(..., 3)`."""
        error = quaternion.mul(quaternion.conjugate(self.goal), q[..., self.r_places])
        off = 2.0 * quaternion.vec(quaternion.shortest(error))
        return -self.kp * off - self.kd * rate

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return the generalized forces, `(nv,)`."""
        tau = np.zeros_like(v)
        tau[self.w_places] = self._torque(q, v[self.w_places])
        return tau


def _form(value: Any) -> str:
    return "by axis" if isinstance(value, list) else "all"


_Three: TypeAlias = Annotated[list[NotNegative], Field(min_length=3, max_length=3)]
_Gains: TypeAlias = Annotated[
    Annotated[NotNegative, Tag("all")] | Annotated[_Three, Tag("by axis")], Discriminator(_form)
]


class _AttitudeGoal(Settings):
    """What an attitude_pd needs as a controller of a phase and as a component."""

    rpy: AngleVector = Field(
        default=[0.0, 0.0, 0.0],
        description="roll, pitch, yaw of the base to be reached: rad, or '30 deg'",
    )
    kp: _Gains = Field(description="N m/rad, one for all axes of the base, or three")
    kd: _Gains = Field(description="N m s/rad, one for all axes of the base, or three")

    @property
    def goal(self) -> Array:
        """Desired attitude, `(4,)`."""
        return quaternion.from_rpy(np.array(self.rpy))


class AttitudePDSettings(_AttitudeGoal):
    """The settings of an attitude_pd controller in a scenario file."""

    law: Literal["attitude_pd"]
    sample_time: Positive = Field(description="s")

    def made(self, robot: Robot) -> AttitudePD:
        """Return the controller."""
        return AttitudePD(robot, self.goal, self.kp, self.kd, self.sample_time)


class AttitudePDComponentSettings(_AttitudeGoal, ComponentSettings):
    """The settings of an attitude_pd component in a scenario file."""

    type: Literal["attitude_pd"]
    rate_input: bool = Field(
        default=False, description="whether the angular velocity is an input `rate`, from a gyro"
    )
    torque_output: bool = Field(
        default=False, description="whether the torque is an output, for an actuator"
    )

    def made(self, robot: Robot, name: str) -> AttitudePD:
        """Return the component."""
        return AttitudePD(
            robot, self.goal, self.kp, self.kd, self.sample_time, name=name, offset=self.offset,
            delay=self.delay, rate_input=self.rate_input, torque_output=self.torque_output,
        )  # fmt: skip
