"""Wrench-driven pose control of several end-effectors at once [SA24, section IV].

Two laws with the same error feedback U (eq. 11):

- `printed`: τ of Γ_u = N̄(X, 0, 0, Z_e) with Z_e = swap(U), eq. 12. It is a PD law in the space of
  the end-effectors through the transposed Jacobian, with gravity compensation. SA24 calls it
  feedback linearization, but inertial and Coriolis wrenches are not compensated.
- `linearizing`: accelerations v̇ of the joints for which the twists of the end-effectors change at
  the rate U, J v̇ + J̇ v = U, and τ from inverse dynamics. Where not all of U can be met (or joints
  do not move an end-effector) v̇ minimizes |J v̇ + J̇ v - U|² + λ |v̇ + k_v v|².
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, linear, pose, quaternion, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, less, select, stack
from remora.components.actions import GeneralizedForce
from remora.components.component import Component, Interface, set_timing
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.dynamics.assembly.assembly import Assembly
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.sensor_reading import BaseState, SensorReading
from remora.dynamics.formulations import inverse_dynamics
from remora.dynamics.kinematics import frame_acceleration, frame_pose, frame_twist, jacobian
from remora.errors import RemoraError, ShapeError
from remora.model.arguments import positive
from remora.model.numbers import unit_pose
from remora.model.robot import Frame, Robot

LAWS = ("printed", "linearizing")


def pose_logarithm(x: Array) -> Array:
    """Return SA24's logarithm (φ n + ε p)/2 of a pose, `(..., 8) -> (..., 6)` [SA24, appendix A].

    The inverse of the paper's exp(P + ε D) = e^P + ε D e^P; `dual_quaternion.log` is that of the
    series. Both are zero only at the identity.
    """
    r = quaternion.shortest(pose.rotation(x))
    turned = quaternion.half_angle_over_sine(r) * r[..., 1:]
    return concatenate([turned, 0.5 * pose.translation(x)])


def pose_feedback(
    x: Array,
    twist: Array,
    target: Array,
    kp: Array | float,
    kv: Array | float,
    target_twist: Array | None = None,
    target_rate: Array | None = None,
) -> Array:
    """Return the desired rate U of an end-effector's twist, `(..., 6)` [SA24, eq. 11].

    With x̃ = x_d* x and ξ̃ = ξ - Ad(x̃*) ξ_d:

        U = -k_p log x̃ - k_v ξ̃ + Ad(x̃*) ξ̇_d + (Ad(x̃*) ξ_d) × ξ̃.

    Args:
        x: pose, `(..., 8)`.
        twist: ξ, in its own frame, `(..., 6)`.
        target: desired pose x_d, `(..., 8)`.
        kp: gain, 1/s².
        kv: gain, 1/s.
        target_twist: ξ_d, in the frame of the target; None: at rest.
        target_rate: its rate; None: zero.
    """
    error = dual_quaternion.mul(dual_quaternion.conjugate(target), x)
    if target_twist is None:
        return -kp * pose_logarithm(error) - kv * twist
    wanted = screw.adjoint_inverse(error, target_twist)
    off = twist - wanted
    forward = screw.cross(wanted, off)
    if target_rate is not None:
        forward = forward + screw.adjoint_inverse(error, target_rate)
    return -kp * pose_logarithm(error) - kv * off + forward


def printed_law(robot: Robot, q: Array, frames: tuple[str, ...], U: list[Array]) -> Array:
    """Return τ of Γ_u = N̄(X, 0, 0, Z_e), Z_e = swap(U), `(..., nv)` [SA24, eqs. 10, 12].

    The external wrench of the recursion is what the robot exerts at an end-effector; on the robot
    acts the opposite.
    """
    on = [np.zeros(6)] * len(robot.bodies)
    for name, u in zip(frames, U, strict=True):
        frame = robot.frame(name)
        W = screw.adjoint(frame.placement, dual_quaternion.swap(u))
        on[frame.body] = on[frame.body] - W
    rest = 0.0 * q[..., :1] * np.ones(robot.nv)
    return inverse_dynamics(robot, q, rest, rest, stack(on, axis=-2))


def linearizing_law(
    robot: Robot,
    q: Array,
    v: Array,
    frames: tuple[str, ...],
    U: list[Array],
    kv: Array | float,
    regularization: Array | float,
) -> Array:
    """Return τ for which the twists of the end-effectors change at the rates U, `(..., nv)`."""
    J = concatenate([jacobian(robot, q, name) for name in frames], trailing=2)
    drift = [frame_acceleration(robot, q, v, 0.0 * v, name) for name in frames]
    wanted = concatenate([u - a for u, a in zip(U, drift, strict=True)])
    Jt = vector.transpose(J)
    M = Jt @ J + regularization * np.eye(robot.nv)
    right = vector.apply(Jt, wanted) - regularization * kv * v
    vdot = linear.solve(M, right[..., None])[..., 0]
    return inverse_dynamics(robot, q, v, vdot)


#: A moving target: t -> pose, twist and rate of the twist, the last two in its own axes.
MovingTarget = Callable[[float], tuple[ArrayLike, ArrayLike, ArrayLike]]


def assembly_law(
    assembly: Assembly,
    targets: Mapping[str, ArrayLike | MovingTarget],
    kp: float,
    kv: float,
) -> Callable[[float, Array, Array], Array]:
    """Return the printed law of an assembly with black boxes, (t, q, v) -> tau `(nv,)`.

    Γ_u = N̄(X, 0, 0, Z), where black boxes report their wrenches and the poses and motions of their
    points [SA24, eqs. 11, 12]. A wrench at an end-effector that a black box carries does not pass
    through it: joints before the black box bear what its sensor reads. Each black box is asked once
    in a call. For `torque=` of `rm.simulate_assembly`; of an assembly of robots,
    `EndEffectorWrenchControl` is faster.

    Args:
        assembly: robots and black boxes.
        targets: desired pose `(8,)`, or a moving target t -> (pose, twist, rate of the twist), by
            the name of a frame, "arm/tip".
        kp: gain on the pose, 1/s².
        kv: gain on the twist, 1/s.
    """
    if not targets:
        raise RemoraError("end-effector control needs at least one target")
    frames: dict[str, tuple[str, Frame]] = {}
    for name, target in targets.items():
        part, _, point = name.rpartition("/")
        robot = assembly.part(part).subsystem
        if not isinstance(robot, Robot):
            raise RemoraError(f"target of {name!r}: subsystem {part!r} is not a robot")
        frame = robot.frame(point)
        if frame.body < 0:
            raise RemoraError(f"frame {name!r} is fixed in the base frame of its subsystem")
        if not callable(target):
            unit_pose(f"target of {name!r}", target)
        frames[name] = part, frame
    kp, kv = positive("kp", kp), positive("kv", kv)

    def law(t: float, q: Array, v: Array) -> Array:
        held = assembly
        for name, reading in assembly.readings(q, v, t).items():
            box = assembly.subsystems[name]
            held = held.swap(name, _holding(box, reading))
        wrenches: dict[str, Array] = {}
        for name, (part, frame) in frames.items():
            target = targets[name]
            given = target(t) if callable(target) else (target,)
            x, *rest = (asarray(value) for value in given)
            own = held.frame_pose(q, name, v, t), held.frame_twist(q, v, name, t)
            U = pose_feedback(*own, unit_pose(f"target of {name!r}", x), kp, kv, *rest)
            count = len(held.subsystems[part].bodies)
            on = wrenches.setdefault(part, np.zeros((count, 6)))
            on[frame.body] -= screw.adjoint(frame.placement, dual_quaternion.swap(U))
        rest = np.zeros(held.nv)
        return held.inverse_dynamics(q, rest, rest, wrenches, t)

    return law


def _holding(box: BlackBox, reading: SensorReading) -> BlackBox:
    """Return a black box that reports one reading."""

    def source(t: ArrayLike, base: BaseState | None) -> SensorReading:
        return reading

    return replace(box, source=source, max_age=None)


class EndEffectorWrenchControl(Component):
    """Pose control of several end-effectors by wrenches [SA24, section IV].

    Inputs, for the k-th target, counted from 0: `pose_k`, `(8,)`, of a moving target relative to
    its entry in `targets`; `twist_k` and `twist_rate_k`, `(6,)`, ξ_d and its rate in the axes of
    the moving target (eq. 11). What is not connected stands still.
    """

    uses_design = True

    frames: tuple[str, ...]
    targets: Array = parameter("desired poses by body or frame", "frame poses")
    kp: float = parameter(
        "on the pose; `printed`: N m per rad of half the angle, N per half a metre", unit="1/s²",
        above=0.0,
    )  # fmt: skip
    kv: float = parameter("on the twist; `printed`: N m s/rad, N s/m", unit="1/s", above=0.0)
    law: str = parameter("see `remora.control.end_effector_wrench`", "choice", choices=LAWS)
    regularization: float = parameter("λ of the linearizing law", above=0.0)

    def __init__(
        self,
        robot: Robot | Assembly,
        targets: Mapping[str, ArrayLike],
        kp: float,
        kv: float,
        law: str = "linearizing",
        sample_time: float | None = None,
        *,
        regularization: float = 1e-3,
        name: str = "",
        offset: float = 0.0,
        delay: float = 0.0,
    ) -> None:
        """Check gains, frames and poses.

        Args:
            robot: the robot, or an assembly of robots.
            targets: desired pose `(8,)` by the name of a frame or body.
            kp: gain on the pose, positive.
            kv: gain on the twist, positive.
            law: `printed` or `linearizing`.
            sample_time: s; None: continuous.
            regularization: λ of the linearizing law, positive.
            name: name in a system.
            offset: time of the first tick after the start of the run, s.
            delay: time from a tick until the forces change, s.
        """
        if not targets:
            raise RemoraError("end-effector control needs at least one target")
        poses: list[Array] = []
        robot = robot.to_robot() if isinstance(robot, Assembly) else robot
        for frame, x in targets.items():
            if robot.frame(frame).body < 0:
                raise RemoraError(f"frame {frame!r} is fixed in the inertial frame: it cannot move")
            target = unit_pose(f"target of {frame!r}", x)
            if target.shape != (8,):
                raise ShapeError(f"target of {frame!r} must be one pose (8,), not {target.shape}")
            poses.append(target)
        for key, value in (
            ("frames", tuple(targets)), ("targets", np.array(poses)), ("kp", kp), ("kv", kv),
            ("law", law), ("regularization", regularization),
        ):  # fmt: skip
            object.__setattr__(self, key, value)
        set_timing(self, name, sample_time, offset, delay)
        self.__post_init__()

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the robot has no such frames."""
        inputs: dict[str, Signal] = {}
        for k, frame in enumerate(self.frames):
            robot.frame(frame)
            inputs[f"pose_{k}"] = Signal(8, default=dual_quaternion.identity())
            inputs[f"twist_{k}"] = Signal(6, "", np.zeros(6))
            inputs[f"twist_rate_{k}"] = Signal(6, "", np.zeros(6))
        return Interface(inputs=inputs)

    def act(self, at: Context) -> GeneralizedForce:
        """Return the generalized forces."""
        given: list[tuple[Array, ...]] = []
        for k in range(len(self.frames)):
            x, *rest = (at.inputs[f"{name}_{k}"] for name in ("pose", "twist", "twist_rate"))
            unset = less(vector.dot(x[..., :4], x[..., :4]), 0.25)  # checks of systems pass zeros
            given.append((select(unset, dual_quaternion.identity(), x), *rest))
        return GeneralizedForce(self.forces(at.robot, at.q, at.v, given))

    def forces(
        self, robot: Robot, q: Array, v: Array, moving: Sequence[tuple[Array, ...]] = ()
    ) -> Array:
        """Return the generalized forces at a state, `(..., nv)`.

        Args:
            robot: the robot.
            q: configuration, `(..., nq)`.
            v: velocity, `(..., nv)`.
            moving: for each target, pose relative to `targets`, twist and rate of the twist; by
                default at rest.
        """
        U: list[Array] = []
        for k, name in enumerate(self.frames):
            target, twist, rate = self.targets[k], None, None
            if moving:
                x, twist, rate = moving[k]
                target = dual_quaternion.mul(target, x)
            own = frame_pose(robot, q, name), frame_twist(robot, q, v, name)
            U.append(pose_feedback(*own, target, self.kp, self.kv, twist, rate))
        if self.law == "printed":
            return printed_law(robot, q, self.frames, U)
        return linearizing_law(robot, q, v, self.frames, U, self.kv, self.regularization)

    def errors(self, robot: Robot, q: Array) -> Array:
        """Return the norm of vec₆ log x̃ of every end-effector, `(..., l)`, as SA24's Figure 9."""
        found: list[Any] = []
        for k, name in enumerate(self.frames):
            off = dual_quaternion.mul(
                dual_quaternion.conjugate(self.targets[k]), frame_pose(robot, q, name)
            )
            found.append(np.linalg.norm(pose_logarithm(off), axis=-1))
        return stack(found)
