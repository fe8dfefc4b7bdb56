"""Desired- and zero-reaction manoeuvres: joint rates that move a frame and the base together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from remora.components.joint_signals import joint_names, joint_signal, speed_places
from remora.components.parameter import parameter, row_indices
from remora.components.signals import Signal
from remora.control.motion import controlled_motion as motion
from remora.control.motion.pose_goal import POSE_INPUTS, base_inputs, pose_goal
from remora.errors import InvalidValue
from remora.model.robot import Robot

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
    """

    uses_design = True

    frame: str = parameter("body or frame that moves", "frame")
    joints: Sequence[str] = parameter("controlled joints; all by default", "joints", default=())
    rows: str | Sequence[str] = parameter(
        "of the frame's twist, inertial axes; `none`: the frame is free", "rows", default="position"
    )
    base_rows: str | Sequence[str] = parameter(
        "of the base's twist, likewise", "rows", default="orientation"
    )
    gain: ArrayLike = parameter(
        "K of the frame's error, one or six", "numbers", default=1.0, unit="1/s", minimum=0.0,
        size=6,
    )  # fmt: skip
    base_gain: float = parameter(
        "k_0 of the base's error; 0: rates only", default=0.0, unit="1/s", minimum=0.0
    )
    point: str = parameter(
        "axis of the base that points at the frame; `base_rows` are then rows of its angular "
        "velocity", "choice", default="none", choices=tuple(AXES),
    )  # fmt: skip
    method: str = parameter("how it is solved", "choice", default="least_squares", choices=METHODS)
    damping: float = parameter("λ of the least squares", default=0.0, minimum=0.0)
    bound: float = parameter("largest magnitude of k of the adjugate", default=1e6, above=0.0)

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if not row_indices(self.rows) and not row_indices(self.base_rows):
            raise InvalidValue("neither rows nor base_rows has a row to control")
        if self.point != "none" and not set(row_indices(self.base_rows)) <= {0, 1, 2}:
            raise InvalidValue("a base that points at the frame has rows wx, wy, wz only")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if G is not square where it must be."""
        names = joint_names(robot, self.joints)
        robot.frame(self.frame)
        if motion.base_size(robot) == 0:
            raise InvalidValue("the base is fixed: there is no reaction to prescribe")
        rate = joint_signal(robot, names, "speed_unit")
        rows = len(row_indices(self.rows)) + len(row_indices(self.base_rows))
        if self.method == "adjugate" and (rows != rate.size or rows > adjugate.LARGEST):
            raise InvalidValue(
                f"adjugate needs as many rows as joints, at most {adjugate.LARGEST}: there are "
                f"{rows} rows and {rate.size} joints"
            )
        pose = POSE_INPUTS if row_indices(self.rows) else {}
        error = {"error": Signal(6)} if pose else {}
        base = base_inputs() if self.point == "none" else {}
        return Interface(
            inputs={**pose, **base},
            outputs={"rate": rate, **error, "base_error": Signal(6)},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the joint rates and the errors."""
        places = speed_places(at.robot, joint_names(at.robot, self.joints))
        moves = motion.response(at, places, "floating")
        tasks = [
            (at.robot.bodies[0].name, self.base_rows, self.base_gain, "base_"),
            (self.frame, self.rows, self.gain, ""),
        ]
        matrices: list[Array] = []
        commands: list[Array] = []
        errors: dict[str, Array] = {}
        for frame, own_rows, gain, prefix in tasks:
            rows = row_indices(own_rows)
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
        self, at: Context, rows: Sequence[int], places: Sequence[int], moves: motion.Motion
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
