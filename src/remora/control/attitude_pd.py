"""PD control of the base's attitude by torques on the base, without a thruster or wheel model."""

from __future__ import annotations

import numpy as np

from remora.algebra import quaternion
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.components.actions import JointForce
from remora.components.component import Component, Interface, set_timing
from remora.components.context import Context
from remora.components.parameter import declared, parameter
from remora.components.signals import Signal
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.model.joints import kind
from remora.model.robot import Robot


class AttitudePD(Component):
    """A PD controller of the base's attitude, sampled every `sample_time` seconds.

    τ = -kp 2 vec(e) - kd ω, body axes, with the error e = r_goal* r. Of e and -e, the one with the
    smaller angle is used; for small errors 2 vec(e) is the rotation vector. [τ, 0] acts on the base
    as an external load, so momentum is not conserved.

    A component of a `System`, with the parameters goal, kp and kd; or a value of `torque=`. In a
    system, ω may be an input `rate`, as measured by a gyro, and τ may be an output `torque`, for an
    actuator, instead of a load.

    The goal may move, in a system. `goal` is then relative to the attitude of a body or frame,
    `goal_frame`, as the law knows it, or, with `goal_input`, to the input `goal_attitude`, `(4,)`,
    whose angular velocity in its own axes is the input `goal_rate`, `(3,)`, rad/s, as of a
    reference or a relative navigation. ω is then relative to that of the goal.
    """

    uses_design = True

    joints: tuple[str, ...]
    r_places: Array
    w_places: Array
    goal: Array = parameter("desired orientation in the inertial frame", "orientation", key="rpy")
    kp: Array = parameter("one or three, body axes", "numbers", unit="N m/rad", minimum=0.0, size=3)
    kd: Array = parameter(
        "one or three, body axes", "numbers", unit="N m s/rad", minimum=0.0, size=3
    )
    rate_input: bool = parameter(
        "whether the angular velocity is an input `rate`, as of a gyro", "flag", in_system=True
    )
    torque_output: bool = parameter(
        "whether the torque is an output, for an actuator, instead of acting", "flag",
        in_system=True,
    )  # fmt: skip
    goal_input: bool = parameter(
        "whether the goal moves and is given by the inputs `goal_attitude` and `goal_rate`", "flag",
        in_system=True,
    )  # fmt: skip
    goal_frame: str | None = parameter(
        "body or frame whose attitude and rate are the goal; none by default", "frame",
        default=None, in_system=True,
    )  # fmt: skip

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
        goal_input: bool = False,
        goal_frame: str | None = None,
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
            goal_input: whether the goal is given by the inputs `goal_attitude` and `goal_rate`,
                relative to which `goal` is then; in a system.
            goal_frame: body or frame whose attitude and rate are the goal, likewise; in a system.
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
        object.__setattr__(self, "joints", (base.name,))
        object.__setattr__(self, "r_places", np.arange(robot.nq)[base.q][part])
        object.__setattr__(self, "w_places", np.arange(robot.nv)[base.v][:3])
        object.__setattr__(self, "goal", quaternion.normalize(r))
        for key, value in (
            ("kp", kp), ("kd", kd), ("rate_input", rate_input), ("torque_output", torque_output),
            ("goal_input", goal_input), ("goal_frame", goal_frame),
        ):  # fmt: skip
            checked = declared(AttitudePD)[key].checked(f"{key} of an attitude PD", value)
            object.__setattr__(self, key, checked)
        if goal_input and goal_frame is not None:
            raise InvalidValue("an attitude PD has one goal: goal_input or goal_frame, not both")
        if goal_frame is not None and robot.frame(goal_frame).body < 1:
            raise RemoraError(f"goal_frame {goal_frame!r} must be on a body that is not the base")
        set_timing(self, name, sample_time, offset, delay)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the base of this robot is another."""
        base, part = robot.joints[0], kind(robot.joints[0]).quaternion
        if part is None or (base.name,) != self.joints:
            raise RemoraError("was made for another robot: make it with the robot of the system")
        inputs = {"rate": Signal(3, "rad/s")} if self.rate_input else {}
        if self.goal_input:
            inputs |= {
                "goal_attitude": Signal(4),
                "goal_rate": Signal(3, "rad/s", (0.0, 0.0, 0.0)),
            }
        return Interface(
            inputs=inputs,
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
        goal = self._moving_goal(at)
        if goal is None:
            return self._torque(at.q, rate)
        r, w = goal
        r = quaternion.mul(r, self.goal)
        seen = quaternion.mul(quaternion.conjugate(at.q[..., self.r_places]), r)
        w = quaternion.rotate(quaternion.conjugate(self.goal), w)
        return self._torque(at.q, rate - quaternion.rotate(seen, w), r)

    def _moving_goal(self, at: Context) -> tuple[Array, Array] | None:
        """Return attitude and rate, in its axes, of the goal to which `goal` is relative."""
        if self.goal_frame is not None:
            return at.rotation(self.goal_frame), at.angular_velocity(self.goal_frame)
        if self.goal_input:
            return at.inputs["goal_attitude"], at.inputs["goal_rate"]
        return None

    def _torque(self, q: Array, rate: Array, goal: Array | None = None) -> Array:
        """Return the torque in body axes, `(..., 3)`, for a rate relative to that of the goal."""
        goal = self.goal if goal is None else goal
        error = quaternion.mul(quaternion.conjugate(goal), q[..., self.r_places])
        off = 2.0 * quaternion.vec(quaternion.shortest(error))
        return -self.kp * off - self.kd * rate

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return the generalized forces, `(nv,)`."""
        tau = np.zeros_like(v)
        tau[self.w_places] = self._torque(q, v[self.w_places])
        return tau
