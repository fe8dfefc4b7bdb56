"""Desired- and zero-reaction manoeuvres: joint rates that move a frame and the base together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from remora.algebra import adjugate, least_squares, pose, quaternion
from remora.algebra.array_ops import (
    Array,
    ArrayLike,
    absolute,
    arctan2,
    asarray,
    concatenate,
    less,
    select,
    sqrt,
)
from remora.algebra.vector import apply, cross, dot, skew
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter_checks import number
from remora.components.signals import Signal
from remora.control.law_settings import LawComponentSettings
from remora.control.motion import controlled_motion as motion
from remora.control.motion.gains import gains
from remora.control.motion.joint_signals import joint_signal
from remora.control.motion.pose_goal import POSE_INPUTS, base_inputs, pose_goal
from remora.errors import InvalidValue, UnknownName
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, JointName, NotNegative, Positive

#: How the joint rates are solved for.
METHODS = ("least_squares", "adjugate")
#: Axes of the base that may point at the frame, body axes.
AXES: dict[str, tuple[float, float, float]] = {
    "none": (0.0, 0.0, 0.0),
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
    "-x": (-1.0, 0.0, 0.0),
    "-y": (0.0, -1.0, 0.0),
    "-z": (0.0, 0.0, -1.0),
}


class DesiredReaction(Component):
    """Joint rates with which a frame and a floating base move as desired [SPART17, eqs. 46-49].

    G v_c = [t_0,d + k_0 e_0; t_d + K e] - b with G = [R_c; J*], R_c = -H_0⁻¹H_0c and
    J* = J_c + J_0 R_c; b is the motion that remains at v_c = 0, by momentum and by other joints
    (the terms with M' of eq. 46, from the measured speeds: M' itself is not constant when momentum
    is not zero). Solved by

        least_squares  v_c = G⁺ (...), damped; with more joints than rows, the least rates
        adjugate       v_c = k adj(G) (...), k = 1/det(G) limited to ±`bound` [eq. 48]; G square

    Rows of the base and of the frame are chosen. With `base_rows="orientation"` and no motion of
    the base desired it is a zero-reaction manoeuvre. Joints of a second arm in `joints` compensate
    for the first.

    With `point`, an axis of the base is kept pointing at the frame, as in Figure 4 of [SPART17]:
    ω_0 = d × (ṗ - ṗ_0)/r + k_0 e_0 with p - p_0 = r d and e_0 the rotation vector from the axis to
    d. Both velocities depend on v_c, so their maps are part of G: taken from the measured speeds of
    the last sample the base's own translation would be fed back with a delay of one sample.

    Inputs: `pose`, `twist` of a reference of the frame, if it has rows; `base_pose`, `base_twist`
    of the base, without `point`. Outputs: `rate`, `(k,)`; `error` and `base_error`, `(6,)`,
    inertial axes. It does not act: connect `rate` to a `JointRateServo`.

    Valid for a floating base without external loads, where G has full rank; singularities depend on
    masses and on the base's attitude, too. det(G) has mixed units, so `bound` has the meaning of a
    length of the pseudo-inverse only in these units.

    Attributes:
        frame: name of the frame.
        joints: names of the controlled joints; all by default.
        rows: rows of the frame's twist, inertial axes; `none`: the frame is free.
        base_rows: rows of the base's twist, likewise.
        gain: K, 1/s, one or six.
        base_gain: k_0, 1/s: feedback of the base's pose; 0: rates only.
        point: axis of the base that points at the frame: `x`, `-x`, `y`, ...; `base_rows` are then
            rows of its angular velocity; `none` by default.
        method: `least_squares` or `adjugate`.
        damping: λ of the least squares.
        bound: largest magnitude of k.
    """

    frame: str
    joints: Sequence[str] = ()
    rows: str | Sequence[str] = "position"
    base_rows: str | Sequence[str] = "orientation"
    gain: ArrayLike = 1.0
    base_gain: float = 0.0
    point: str = "none"
    method: str = "least_squares"
    damping: float = 0.0
    bound: float = 1e6

    def __post_init__(self) -> None:
        """Check."""
        if not motion.row_indices(self.rows) and not motion.row_indices(self.base_rows):
            raise InvalidValue("neither rows nor base_rows has a row to control")
        if self.method not in METHODS:
            raise UnknownName("method", self.method, METHODS)
        gain = gains("gain of a desired reaction", self.gain, 6, zero=True)
        object.__setattr__(self, "gain", gain)
        if self.point not in AXES:
            raise UnknownName("axis of the base", self.point, AXES)
        if self.point != "none" and not set(motion.row_indices(self.base_rows)) <= {0, 1, 2}:
            raise InvalidValue("a base that points at the frame has rows wx, wy, wz only")
        for name in ("base_gain", "damping"):
            value = number(f"{name} of a desired reaction", getattr(self, name), 0.0)
            object.__setattr__(self, name, value)
        bound = number("bound of a desired reaction", self.bound, 0.0, above=True)
        object.__setattr__(self, "bound", bound)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if G is not square where it must be."""
        names = motion.joint_names(robot, self.joints)
        robot.frame(self.frame)
        if motion.base_size(robot) == 0:
            raise InvalidValue("the base is fixed: there is no reaction to prescribe")
        rate = joint_signal(robot, names, "speed_unit")
        rows = len(motion.row_indices(self.rows)) + len(motion.row_indices(self.base_rows))
        if self.method == "adjugate" and (rows != rate.size or rows > adjugate.LARGEST):
            raise InvalidValue(
                f"adjugate needs as many rows as joints, at most {adjugate.LARGEST}: there are "
                f"{rows} rows and {rate.size} joints"
            )
        pose = POSE_INPUTS if motion.row_indices(self.rows) else {}
        error = {"error": Signal(6)} if pose else {}
        base = base_inputs() if self.point == "none" else {}
        return Interface(
            inputs={**pose, **base},
            outputs={"rate": rate, **error, "base_error": Signal(6)},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the joint rates and the errors."""
        places = motion.speed_places(at.robot, motion.joint_names(at.robot, self.joints))
        moves = motion.response(at, places, "floating")
        tasks = [
            (at.robot.bodies[0].name, self.base_rows, self.base_gain, "base_"),
            (self.frame, self.rows, self.gain, ""),
        ]
        matrices: list[Array] = []
        commands: list[Array] = []
        errors: dict[str, Array] = {}
        for frame, own_rows, gain, prefix in tasks:
            rows = motion.row_indices(own_rows)
            if not rows and not prefix:
                continue
            if prefix and self.point != "none":
                error, map_ = self._pointing(at, rows, places, moves)
                rate = 0.0 * error
            else:
                goal = pose_goal(at, frame, prefix)
                map_ = motion.frame_rates(at, frame, rows, places, "floating", moves)
                error, rate = goal.error, goal.rate
            errors[f"{prefix}error"] = error
            if rows:
                matrices.append(map_.matrix)
                commands.append((rate + gain * error)[..., rows] - map_.offset)
        G, command = concatenate(matrices, trailing=2), concatenate(commands)
        return {"rate": self._solved(G, command), **errors}

    def _pointing(
        self, at: Context, rows: Sequence[int], places: Sequence[int], moves: Array | None
    ) -> tuple[Array, motion.Affine]:
        """Return the error of the axis, and rows of ω_0 - d × (ṗ - ṗ_0)/r by the joint rates."""
        body, all_rows = at.robot.bodies[0].name, range(6)
        away = pose.translation(at.pose(self.frame)) - pose.translation(at.pose(body))
        r = sqrt(dot(away, away))
        d = away / r
        axis = quaternion.rotate(pose.rotation(at.pose(body)), asarray(AXES[self.point]))
        normal = cross(axis, d)
        sine = sqrt(dot(normal, normal))
        small = less(sine, 1e-12)
        angle = select(small, 1.0, arctan2(sine, dot(axis, d)) / select(small, 1.0, sine))
        base, tool = (
            motion.frame_rates(at, name, all_rows, places, "floating", moves)
            for name in (body, self.frame)
        )
        across = skew(d) / r[..., None]
        matrix = base.matrix[..., :3, :] + across @ (
            base.matrix[..., 3:, :] - tool.matrix[..., 3:, :]
        )
        offset = base.offset[..., :3] + apply(across, base.offset[..., 3:] - tool.offset[..., 3:])
        error = concatenate([angle * normal, 0.0 * normal])
        return error, motion.Affine(matrix[..., rows, :], offset[..., rows])

    def _solved(self, G: Array, command: Array) -> Array:
        if self.method == "least_squares":
            return apply(least_squares.damped_inverse(G, self.damping), command)
        adj, det = adjugate.adjugate(G)
        small = less(absolute(det), 1.0 / self.bound)
        bounded = select(less(det, 0.0), -1.0 * self.bound, self.bound)
        k = select(small, bounded, 1.0 / select(small, 1.0, det))
        return k[..., None] * apply(adj, command)


class DesiredReactionSettings(LawComponentSettings):
    """The settings of a desired_reaction component in a scenario file."""

    component: ClassVar[type[Component]] = DesiredReaction
    type: Literal["desired_reaction"]
    frame: FrameName = Field(description="body or frame that moves")
    joints: list[JointName] = Field(default=[], description="controlled joints; default: all")
    rows: str | list[str] = Field(default="position", description="pose, position, none, ...")
    base_rows: str | list[str] = Field(default="orientation", description="likewise, of the base")
    gain: NotNegative = Field(default=1.0, description="of the frame's error, 1/s")
    base_gain: NotNegative = Field(default=0.0, description="of the base's error, 1/s")
    point: str = Field(default="none", description="axis of the base that points at the frame")
    method: Literal["least_squares", "adjugate"] = "least_squares"
    damping: NotNegative = Field(default=0.0, description="of the least squares")
    bound: Positive = Field(default=1e6, description="largest factor of the adjugate")
