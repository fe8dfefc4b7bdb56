"""Computed torque in operational space: a frame, and rows of the base, follow references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra import least_squares
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.algebra.vector import apply
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.parameter import parameter, row_indices
from remora.control.laws.operational_law import OperationalLaw
from remora.control.motion import controlled_motion as motion
from remora.control.motion.pose_goal import base_inputs, pose_goal
from remora.errors import InvalidValue
from remora.model.robot import Robot


class OperationalComputedTorque(OperationalLaw):
    """Torques with which a frame follows a reference, resolved at accelerations [LWP80; K87].

    A a = ẍ_d + K_d (ẋ_d - ẋ) + K_p e - b, with ẍ = A a + b the acceleration of the frame for the
    joint accelerations a, solved by damped least squares with -k v_c in the null space, and
    τ_c = H* a + h*. For a floating base A = J* and b holds J̇v and the base's acceleration by the
    bias forces: exact at any momentum. The error obeys ë + K_d ė + K_p e = 0.

    With `base_rows`, rows of the base's motion are added to the frame's: the joints also hold the
    base (zero reaction) or move it, without any torque on it. This is eq. 46 of [SPART17] at the
    level of accelerations, with the same singularities. The gains are those of the frame.

    Inputs: `pose`, `twist`, `twist_rate` of a reference; with `base_rows` `base_pose`,
    `base_twist`, `base_twist_rate`. Outputs: `torque`, `(k,)`; `error`, `(6,)`, inertial axes.

    Valid for exact mass properties and where A has full rank; near a singular pose `damping` bounds
    the accelerations and the frame lags behind.
    """

    kp: ArrayLike = parameter(
        "one or six, rotation first", "numbers", unit="1/s²", above=0.0, size=6
    )
    kd: ArrayLike = parameter("likewise", "numbers", unit="1/s", above=0.0, size=6)
    rows: str | Sequence[str] = parameter("controlled rows of the frame", "rows", default="pose")
    base_rows: str | Sequence[str] = parameter(
        "rows of the base that the joints control, too", "rows", default="none"
    )

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if not row_indices(self.rows):
            raise InvalidValue("rows has no row to control")
        if row_indices(self.base_rows) and self.base != "floating":
            raise InvalidValue("joints move the base only if it floats")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        base = base_inputs(accelerated=True) if row_indices(self.base_rows) else {}
        return self.torque_interface(robot, "error", base)

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques and the error."""
        places = self.places(at)
        dynamics = motion.controlled_dynamics(at, places, self.base)
        tasks = [(self.frame, row_indices(self.rows), "")]
        if row_indices(self.base_rows):
            base = at.robot.bodies[0].name
            tasks.append((base, row_indices(self.base_rows), "base_"))
        matrices: list[Array] = []
        commands: list[Array] = []
        for frame, rows, prefix in tasks:
            goal = pose_goal(at, frame, prefix)
            map_ = motion.frame_accelerations(at, frame, rows, places, dynamics)
            wanted = goal.acceleration + self.kd * (goal.rate - goal.actual) + self.kp * goal.error
            matrices.append(map_.matrix)
            commands.append(wanted[..., rows] - map_.offset)
        A = concatenate(matrices, trailing=2)
        inverse = least_squares.damped_inverse(A, self.damping)
        rest = -self.joint_damping * at.v[..., places]
        a = apply(inverse, concatenate(commands)) + least_squares.projected(A, inverse, rest)
        tau = apply(dynamics.force.matrix, a) + dynamics.force.offset
        return {"torque": tau, "error": pose_goal(at, self.frame).error}
