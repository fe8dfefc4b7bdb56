"""Rows of Φ and γ: the equations of joints and constraints at a state of all bodies [DM93, eq. 30].

The pose of one frame in another, X = (Q_k κ_k)* Q_j κ_j with constants κ, is bilinear in the
coordinates of two bodies. With the equations g(X) = 0 of `joint_equations`

    Φ = (∂g/∂X)(∂X/∂Q),    γ = -Φ̇ Q̇.

Joints, and constraints between two frames, differ only in κ; a gear has the coordinates of two
joints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import linear, pose, screw, vector
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.dynamics.constraints.constraint_types import constraint_type
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.maximal import joint_equations, saddle_point
from remora.dynamics.maximal.joint_maps import constraint
from remora.dynamics.maximal.saddle_point import LoopRows
from remora.model.constraint import GEAR, Constraint
from remora.model.robot import Robot

_apply, _T = vector.apply, vector.transpose


class JointRows(NamedTuple):
    """The equations of a joint, or of a constraint between two frames, at a state: Φ Q̈ = γ.

    Attributes:
        X: the body's pose in the joint frame, `(..., 8)`.
        X_rate: Ẋ, `(..., 8)`.
        X_bias: Ẍ at Q̈ = 0, `(..., 8)`.
        bodies: by body, ∂X/∂Q, `(..., 8, 8)`.
        along: ∂(twist relative to the joint frame)/∂Q̇, by body, `(..., 6, 8)`.
        value: g, `(..., r)`.
        phi: Φ by body, `(..., r, 8)`.
        gamma: -Φ̇ Q̇, `(..., r)`.
        bias: the relative acceleration at Q̈ = 0, `(..., 6)`.
    """

    X: Array
    X_rate: Array
    X_bias: Array
    bodies: dict[int, Array]
    along: dict[int, Array]
    value: Array
    phi: dict[int, Array]
    gamma: Array
    bias: Array


class ClosingRows(NamedTuple):
    """The equations of an active constraint at a state: Φ Q̈ = γ.

    Attributes:
        value: g, `(..., m_c)`.
        phi: Φ by body, `(..., m_c, 8)`.
        gamma: -Φ̇ Q̇, `(..., m_c)`.
        change: T with ġ = T Λ ξ for the relative twist ξ, `(..., m_c, m_c)`, Λ as in
            `loop_kinematics`; made on use, for a pose may not have it; None: 1.
    """

    value: Array
    phi: dict[int, Array]
    gamma: Array
    change: Callable[[], Array] | None = None

    def scale(self) -> Array:
        """Return T⁻¹: T⁻¹ Φ are the rows of G in image coordinates, of multipliers in N, N m."""
        if self.change is None:
            return np.eye(1)
        T = self.change()
        return linear.solve(_T(T) @ T, _T(T))


def joint_rows(robot: Robot, j: int, Q: list[Array], Q_rate: list[Array]) -> JointRows:
    """Return joint j's equations, with X the pose of its body in the joint frame."""
    joint = robot.joints[j]
    outer = End(joint.parent, asarray(joint.placement))
    return _rows_between(robot, joint, outer, End(j, dq.identity()), Q, Q_rate)


def closing_rows(
    robot: Robot, rows: list[JointRows], Q: list[Array], Q_rate: list[Array]
) -> list[ClosingRows]:
    """Return the equations of the active constraints, in order; `rows` are the joints'."""
    return [
        _gear_rows(robot, c, rows) if c.kind == GEAR else _chain_rows(robot, c, Q, Q_rate)
        for c in active_constraints(robot)
    ]


def _chain_rows(robot: Robot, c: Constraint, Q: list[Array], Q_rate: list[Array]) -> ClosingRows:
    """Return the equations of a constraint between two frames: those of a joint, or of a rod."""
    outer, inner = End(c.parent, c.parent_placement), End(c.child, c.child_placement)
    row = _rows_between(robot, c, outer, inner, Q, Q_rate)

    def change() -> Array:
        Lambda = constraint(constraint_type(c).wrenches(c, screw.transform(row.X)))
        along = 0.5 * dq.left(row.X)[..., (1, 2, 3, 5, 6, 7)]  # Ẋ of unit twists
        G = joint_equations.jacobian(c, row.X)
        return G @ along @ _T(linear.solve(Lambda @ _T(Lambda), Lambda))

    return ClosingRows(row.value, row.phi, row.gamma, change)


def _gear_rows(robot: Robot, c: Constraint, rows: list[JointRows]) -> ClosingRows:
    """Return the equation of a gear: q_child - ratio q_parent = offset."""
    phi: dict[int, Array] = {}
    gap, gamma = -asarray(c.offset)[..., None], np.zeros(1)
    for j, factor in ((c.parent, -asarray(c.ratio)[..., None]), (c.child, np.ones(1))):
        row = rows[j]
        own = joint_equations.coordinate(robot.joints[j], row.X, row.X_rate)
        gap = gap + factor * own.value
        gamma = gamma - factor * (vector.dot(own.gradient, row.X_bias) + own.curvature)
        for i, D in row.bodies.items():
            part = (factor * own.gradient)[..., None, :] @ D
            phi[i] = phi[i] + part if i in phi else part
    value = joint_equations.gear_value(c, robot.joints[c.parent], robot.joints[c.child], gap)
    return ClosingRows(value, phi, gamma)


class End(NamedTuple):
    """A frame that a joint or a constraint connects: on a body, or on the inertial frame (-1)."""

    body: int
    placement: Array


def _rows_between(
    robot: Robot,
    relation: joint_equations.Relation,
    outer: End,
    inner: End,
    Q: list[Array],
    Q_rate: list[Array],
) -> JointRows:
    """Return the equations of X = (Q_k κ_k)* Q_j κ_j, which is bilinear in the two bodies' Q."""
    frames: list[Array] = []
    rates: list[Array] = []
    kappa: list[Array] = []
    for i, placement in (outer, inner):
        if i >= 0:
            placement = dq.mul(
                dq.conjugate(pose.from_translation(robot.bodies[i].com)), asarray(placement)
            )
        kappa.append(placement)
        frames.append(dq.mul(Q[i], placement) if i >= 0 else placement)
        rates.append(dq.mul(Q_rate[i], placement) if i >= 0 else np.zeros(8))
    still, still_rate = dq.conjugate(frames[0]), dq.conjugate(rates[0])
    X = dq.mul(still, frames[1])
    X_rate = dq.mul(still_rate, frames[1]) + dq.mul(still, rates[1])
    X_bias = 2.0 * dq.mul(still_rate, rates[1])
    bodies: dict[int, Array] = {}
    if inner.body >= 0:
        bodies[inner.body] = dq.left(still) @ dq.right(kappa[1])
    if outer.body >= 0:
        signs = np.array([1.0, -1.0, -1.0, -1.0] * 2)
        bodies[outer.body] = dq.right(frames[1]) @ (dq.left(dq.conjugate(kappa[0])) * signs)
    G = joint_equations.jacobian(relation, X)
    back = 2.0 * dq.left(dq.conjugate(X))[..., (1, 2, 3, 5, 6, 7), :]  # 2 vec(X* ·)
    return JointRows(
        X=X,
        X_rate=X_rate,
        X_bias=X_bias,
        bodies=bodies,
        along={i: back @ D for i, D in bodies.items()},
        value=joint_equations.values(relation, X),
        phi={i: G @ D for i, D in bodies.items()},
        gamma=-(_apply(G, X_bias) + joint_equations.curvature(relation, X, X_rate)),
        bias=_apply(back, X_bias),
    )


def loop_rows(
    closing: list[ClosingRows],
    known: list[Array],
    of_body: Callable[[int, Array], Array],
    dependent: Array | float = saddle_point.DEPENDENT_SQUARE,
) -> LoopRows | None:
    """Return the rows T⁻¹ Φ of all active constraints, for multipliers in N and N m.

    Args:
        closing: the constraints' equations; without any the result is None.
        known: right-hand side of Φ Q̈ = γ, by constraint.
        of_body: (body, rows `(..., m, 8)`) -> rows in the unknowns of that body.
        dependent: see `orthogonal.solve_semidefinite`.
    """
    if not closing:
        return None
    S21: dict[int, Array] = {}
    scales = [c.scale() for c in closing]
    for i in sorted({i for c in closing for i in c.phi}):
        blocks = [
            scale @ c.phi[i] if i in c.phi else np.zeros((c.gamma.shape[-1], 8))
            for c, scale in zip(closing, scales, strict=True)
        ]
        S21[i] = of_body(i, concatenate(blocks, trailing=2))
    B2 = [_apply(scale, x) for scale, x in zip(scales, known, strict=True)]
    S12 = {i: -_T(block) for i, block in S21.items()}
    return LoopRows(S12, S21, concatenate(B2), dependent)


def rate_of(phi: dict[int, Array], rates: list[Array]) -> Array:
    """Return Σ Φ_i Q̇_i of a joint's or a constraint's rows by body."""
    parts = [_apply(rows, rates[i]) for i, rows in phi.items()]
    return sum(parts[1:], start=parts[0])


def padded(phi: Array) -> Array:
    """Return joint rows with zeros for the unit conditions' multipliers, `(..., r, 10)`."""
    return concatenate([phi, np.zeros((phi.shape[-2], 2))])
