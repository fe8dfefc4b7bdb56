"""Resolved-motion-rate control: joint rates that move a frame as desired, for any base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from remora.algebra import least_squares
from remora.algebra.array_ops import Array, ArrayLike, absolute, asarray, less, select
from remora.algebra.vector import apply
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter_checks import number
from remora.control.law_settings import LawComponentSettings
from remora.control.motion import controlled_motion as motion
from remora.control.motion.gains import gains, listed_gains
from remora.control.motion.joint_signals import joint_signal
from remora.control.motion.pose_goal import POSE_INPUTS, pose_goal
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, JointName, NotNegative, PositiveRate

#: What the solution minimizes where joints are redundant.
MINIMIZED = ("speed", "energy")
#: Secondary aims in the null space of the frame's motion.
SECONDARY = ("limits", "manipulability")


class ResolvedRate(Component):
    """Joint rates with which a frame follows a reference [W69; UY89; SPART17, section 3].

    v_c = A⁺ (t_d + K e - b) + (1 - A⁺A) z, where t = A v_c + b is the frame's twist: A is J_c for a
    fixed or flying base, the generalized Jacobian J* = J_c - J_0 H_0⁻¹H_0c for a floating one, and
    b holds the measured motion of a flying base, the momentum of a floating one, and the speeds of
    other joints. A⁺ is the damped inverse weighted by W: 1, given weights, or the inertia
    H_cc - H_c0 H_0⁻¹H_0c, which minimizes the kinetic energy. z moves joints to the middle of their
    range, z = -k_l (q - q_m), or away from singular poses, z = k_m ∂ ln w/∂q with w the
    manipulability of the arm on a fixed base [Yos85].

    Inputs: `pose`, `twist` of a reference. Outputs: `rate`, `(k,)`; `error`, `(6,)`,
    [rotation vector, p_d - p] in inertial axes. It does not act: connect `rate` to a
    `JointRateServo`.

    Valid where A has full rank. Near a singular pose the rates grow without bound unless `damping`
    is positive, which bounds them by ‖t‖/(2 damping); `max_speed` scales them down as a whole, so a
    reference that jumps is followed at that speed, along the same direction.

    Attributes:
        frame: name of the frame that moves.
        joints: names of the controlled joints; all by default.
        rows: rows of the twist that are controlled, in inertial axes: `pose`, `position`,
            `orientation`, `plane`, or names out of wx, wy, wz, vx, vy, vz.
        base: `fixed`, `flying` or `floating`.
        gain: K, 1/s, one or six: three of rotation, three of translation.
        damping: λ of the least squares, in the unit of A.
        minimize: `speed` or `energy`.
        weights: diagonal of W, `(k,)`, positive; 1 by default.
        secondary: `limits`, `manipulability`, or both.
        limit_gain: k_l, 1/s.
        manipulability_gain: k_m, rad²/s.
        max_speed: rad/s or m/s, of the fastest joint; no limit by default.
    """

    frame: str
    joints: Sequence[str] = ()
    rows: str | Sequence[str] = "pose"
    base: str = "floating"
    gain: ArrayLike = 1.0
    damping: float = 0.0
    minimize: str = "speed"
    weights: ArrayLike | None = None
    secondary: Sequence[str] = ()
    limit_gain: float = 0.1
    manipulability_gain: float = 0.1
    max_speed: float | None = None

    def __post_init__(self) -> None:
        """Check."""
        motion.row_indices(self.rows)
        _one_of("base", self.base, motion.BASES)
        _one_of("minimized quantity", self.minimize, MINIMIZED)
        for aim in self.secondary:
            _one_of("secondary aim", aim, SECONDARY)
        object.__setattr__(self, "gain", gains("gain of a resolved rate", self.gain, 6, zero=True))
        for name in ("damping", "limit_gain", "manipulability_gain"):
            value = number(f"{name} of a resolved rate", getattr(self, name), 0.0)
            object.__setattr__(self, name, value)
        if self.max_speed is not None:
            most = number("max_speed of a resolved rate", self.max_speed, 0.0, above=True)
            object.__setattr__(self, "max_speed", most)
        if self.weights is not None:
            weights = listed_gains("weights of a resolved rate", self.weights)
            object.__setattr__(self, "weights", weights)
            if self.minimize == "energy":
                raise InvalidValue("give weights, or minimize='energy', not both")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if frame, joints or weights do not fit the robot."""
        names = motion.joint_names(robot, self.joints)
        robot.frame(self.frame)
        rate = joint_signal(robot, names, "speed_unit")
        if self.weights is not None:
            gains("weights of a resolved rate", self.weights, rate.size)
        return Interface(inputs=POSE_INPUTS, outputs={"rate": rate, "error": POSE_INPUTS["twist"]})

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the joint rates and the error."""
        names, rows = motion.joint_names(at.robot, self.joints), motion.row_indices(self.rows)
        places = motion.speed_places(at.robot, names)
        goal = pose_goal(at, self.frame)
        moves = motion.response(at, places, self.base)
        map_ = motion.frame_rates(at, self.frame, rows, places, self.base, moves)
        command = (goal.rate + self.gain * goal.error)[..., rows] - map_.offset
        inverse = least_squares.damped_inverse(map_.matrix, self.damping, self._weight(at, places))
        rate = apply(inverse, command)
        if self.secondary:
            z = self._secondary(at, names, places, rows)
            rate = rate + least_squares.projected(map_.matrix, inverse, z)
        return {"rate": _slowed(rate, self.max_speed), "error": goal.error}

    def _weight(self, at: Context, places: list[int]) -> Array | None:
        if self.minimize == "energy":
            return motion.controlled_inertia(at, places, self.base)
        if self.weights is None:
            return None
        return asarray(self.weights)[..., None] * np.eye(len(places))

    def _secondary(
        self, at: Context, names: Sequence[str], places: list[int], rows: list[int]
    ) -> Array:
        z: Array = np.zeros(len(places))
        if "limits" in self.secondary:
            middle, held = _middles(at.robot, names)
            q = at.q[..., motion.coordinate_places(at.robot, names)]
            z = z - self.limit_gain * held * (q - middle)
        if "manipulability" in self.secondary:
            slope = motion.manipulability_gradient(at, self.frame, rows, places, self.damping)
            z = z + self.manipulability_gain * slope
        return z


def _one_of(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UnknownName(what, name, known)


def _middles(robot: Robot, names: Sequence[str]) -> tuple[Array, Array]:
    """Return the middles of the ranges, `(k,)`, and 1 where there is a range, else 0."""
    middles: list[float] = []
    held: list[float] = []
    for name in names:
        joint = robot.joints[name]
        for i in range(kind(joint).nv):
            low, high = (float(x[i]) for x in (joint.limits.lower, joint.limits.upper))
            limited = bool(np.isfinite(low) and np.isfinite(high))
            middles.append(0.5 * (low + high) if limited else 0.0)
            held.append(float(limited))
    return np.array(middles), np.array(held)


def _slowed(rate: Array, most: float | None) -> Array:
    """Return rates scaled so that none is greater than `most`."""
    if most is None:
        return rate
    fastest = absolute(rate[..., 0])
    for i in range(1, rate.shape[-1]):
        other = absolute(rate[..., i])
        fastest = select(less(fastest, other), other, fastest)
    over = less(most, fastest)
    scale = select(over, most / select(over, fastest, 1.0), 1.0)
    return scale[..., None] * rate


class ResolvedRateSettings(LawComponentSettings):
    """The settings of a resolved_rate component in a scenario file."""

    component: ClassVar[type[Component]] = ResolvedRate
    type: Literal["resolved_rate"]
    frame: FrameName = Field(description="body or frame that moves")
    joints: list[JointName] = Field(default=[], description="controlled joints; default: all")
    rows: str | list[str] = Field(default="pose", description="pose, position, orientation, ...")
    base: Literal["fixed", "flying", "floating"] = "floating"
    gain: NotNegative = Field(default=1.0, description="of the error, 1/s")
    damping: NotNegative = Field(default=0.0, description="of the least squares")
    minimize: Literal["speed", "energy"] = "speed"
    secondary: list[Literal["limits", "manipulability"]] = Field(default=[])
    max_speed: PositiveRate | None = Field(
        default=None, description="of the fastest joint, rad/s or '5 deg/s'"
    )
