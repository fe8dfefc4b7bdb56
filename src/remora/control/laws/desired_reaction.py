"""Desired- and zero-reaction manoeuvres: joint rates that move a frame and the base together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from remora.algebra import adjugate, least_squares
from remora.algebra.array_ops import Array, ArrayLike, absolute, concatenate, less, select
from remora.algebra.vector import apply
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

    Inputs: `pose`, `twist` of a reference of the frame, if it has rows; `base_pose`, `base_twist`
    of the base. Outputs: `rate`, `(k,)`; `error` and `base_error`, `(6,)`, inertial axes. It does
    not act: connect `rate` to a `JointRateServo`.

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
        return Interface(
            inputs={**pose, **base_inputs()},
            outputs={"rate": rate, **error, "base_error": Signal(6)},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the joint rates and the errors."""
        places = motion.speed_places(at.robot, motion.joint_names(at.robot, self.joints))
        moves = motion.response(at, places, "floating")
        base = at.robot.bodies[0].name
        tasks = [
            (base, self.base_rows, self.base_gain, "base_"),
            (self.frame, self.rows, self.gain, ""),
        ]
        matrices: list[Array] = []
        commands: list[Array] = []
        errors: dict[str, Array] = {}
        for frame, own_rows, gain, prefix in tasks:
            rows = motion.row_indices(own_rows)
            if not rows and not prefix:
                continue
            goal = pose_goal(at, frame, prefix)
            errors[f"{prefix}error"] = goal.error
            if rows:
                map_ = motion.frame_rates(at, frame, rows, places, "floating", moves)
                matrices.append(map_.matrix)
                commands.append((goal.rate + gain * goal.error)[..., rows] - map_.offset)
        G, command = concatenate(matrices, trailing=2), concatenate(commands)
        return {"rate": self._solved(G, command), **errors}

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
    method: Literal["least_squares", "adjugate"] = "least_squares"
    damping: NotNegative = Field(default=0.0, description="of the least squares")
    bound: Positive = Field(default=1e6, description="largest factor of the adjugate")
