"""Impedance control: a frame behaves as if held by a spring and a damper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra import least_squares
from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.algebra.vector import apply, transpose
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.parameter import parameter, row_indices
from remora.control.laws.operational_law import OperationalLaw
from remora.control.motion import controlled_motion as motion
from remora.control.motion.pose_goal import pose_goal
from remora.errors import InvalidValue
from remora.model.robot import Robot


class Impedance(OperationalLaw):
    """Torques with which a frame yields to forces as a spring and a damper would [H85; K87].

    τ_c = Aᵀ (Λ (ẍ_d - b) + K e + D (ẋ_d - ẋ)) + h* - H*(1 - A⁺A) k v_c, with ẍ = A a + b,
    Λ = (A H*⁻¹Aᵀ + λ²1)⁻¹ and A⁺ = H*⁻¹AᵀΛ. In contact with the force f on the frame
    Λ ë + D ė + K e = -f for a fixed base: stiffness and damping are chosen, the inertia Λ stays the
    arm's own, so no force sensor is needed. For a floating base A = J*, H* and h* are those of the
    joints with the base eliminated, and the right side is -(1 + Λ J_0 H_0⁻¹J_0ᵀ) f: the force also
    pushes the base away, which the joints do not prevent.

    Inputs: `pose`, `twist`, `twist_rate` of a reference. Outputs: `torque`, `(k,)`; `force`,
    `(6,)`, K e + D ė, [torque, force] in inertial axes, zero in rows that are not controlled.

    Valid for exact mass properties; a joint's friction adds to the impedance. Sampled with the time
    h, contact with a stiff wall k_w limits h to about √(Λ/k_w).
    """

    stiffness: ArrayLike = parameter(
        "K: one number, six or 6 × 6, symmetric and positive definite; rotation first", "matrix",
        unit="N m/rad and N/m", above=0.0, size=6,
    )  # fmt: skip
    damping_matrix: ArrayLike = parameter(
        "D, likewise", "matrix", unit="N m s/rad and N s/m", above=0.0, size=6
    )
    rows: str | Sequence[str] = parameter("controlled rows of the frame", "rows", default="pose")

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if not row_indices(self.rows):
            raise InvalidValue("rows has no row to control")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        return self.torque_interface(robot, "force")

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques and the force of spring and damper."""
        places = self.places(at)
        rows = row_indices(self.rows)
        dynamics = motion.controlled_dynamics(at, places, self.base)
        H, h = dynamics.force
        map_ = motion.frame_accelerations(at, self.frame, rows, places, dynamics)
        A = map_.matrix
        goal = pose_goal(at, self.frame)
        held = np.zeros(6)
        held[rows] = 1.0
        error, lag = held * goal.error, held * (goal.rate - goal.actual)
        stiffness, damping = asarray(self.stiffness), asarray(self.damping_matrix)
        force = held * (apply(stiffness, error) + apply(damping, lag))
        inverse = least_squares.damped_inverse(A, self.damping, H)
        ahead = apply(inverse, goal.acceleration[..., rows] - map_.offset)
        still = least_squares.projected(A, inverse, -self.joint_damping * at.v[..., places])
        tau = apply(H, ahead + still) + apply(transpose(A), force[..., rows]) + h
        return {"torque": tau, "force": force}
