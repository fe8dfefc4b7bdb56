"""Resolved-motion-rate control: joint rates that move a frame as desired, for any base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra import least_squares
from remora.algebra.array_ops import Array, ArrayLike, absolute, asarray, less, select
from remora.algebra.vector import apply
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import (
    check_joint_numbers,
    coordinate_places,
    joint_names,
    joint_signal,
    speed_places,
)
from remora.components.parameter import parameter, row_indices
from remora.control.motion import controlled_motion as motion
from remora.control.motion.pose_goal import POSE_INPUTS, pose_goal
from remora.errors import InvalidValue
from remora.model.joints import kind
from remora.model.robot import Robot

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
    """

    uses_design = True

    frame: str = parameter("body or frame that moves", "frame")
    joints: Sequence[str] = parameter("controlled joints; all by default", "joints", default=())
    rows: str | Sequence[str] = parameter(
        "controlled rows of the twist, inertial axes: the name of a set, or names out of wx, wy, "
        "wz, vx, vy, vz", "rows", default="pose",
    )  # fmt: skip
    base: str = parameter("of the robot", "choice", default="floating", choices=motion.BASES)
    gain: ArrayLike = parameter(
        "K of the error, one or six, rotation first", "numbers", default=1.0, unit="1/s",
        minimum=0.0, size=6,
    )  # fmt: skip
    damping: float = parameter("λ of the least squares, in the unit of A", default=0.0, minimum=0.0)
    minimize: str = parameter("quantity", "choice", default="speed", choices=MINIMIZED)
    weights: ArrayLike | None = parameter(
        "diagonal of W by joint, instead of 1", "by joint", default=None, above=0.0
    )
    secondary: Sequence[str] = parameter(
        "aims of the null motion", "choices", default=(), choices=SECONDARY
    )
    limit_gain: float = parameter("k_l", default=0.1, unit="1/s", minimum=0.0)
    manipulability_gain: float = parameter("k_m", default=0.1, unit="1/s", minimum=0.0)
    max_speed: float | None = parameter(
        "of the fastest joint", default=None, unit="rad/s or m/s", above=0.0
    )

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if self.weights is not None and self.minimize == "energy":
            raise InvalidValue("give weights, or minimize='energy', not both")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if frame, joints or weights do not fit the robot."""
        names = joint_names(robot, self.joints)
        robot.frame(self.frame)
        rate = joint_signal(robot, names, "speed_unit")
        check_joint_numbers(self, rate.size)
        return Interface(inputs=POSE_INPUTS, outputs={"rate": rate, "error": POSE_INPUTS["twist"]})

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the joint rates and the error."""
        names, rows = joint_names(at.robot, self.joints), row_indices(self.rows)
        places = speed_places(at.robot, names)
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
            q = at.q[..., coordinate_places(at.robot, names)]
            z = z - self.limit_gain * held * (q - middle)
        if "manipulability" in self.secondary:
            slope = motion.manipulability_gradient(at, self.frame, rows, places, self.damping)
            z = z + self.manipulability_gain * slope
        return z


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
