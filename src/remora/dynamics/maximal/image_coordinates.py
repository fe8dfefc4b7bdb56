"""DM93's coordinates: eight dual-quaternion coordinates per body, their rates and projection.

Q `(..., nb, 8)` holds the unit dual quaternion of every body's centre of mass in the inertial
frame, real part then dual part, scalars first (DM93 write vectors first); the axes are the
body's. Q and its rate stay on the constraint manifold in exact arithmetic only: for long runs use
Baumgarte stabilization (`stabilization`) or project them at intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, is_symbolic, stack
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.joint_arrays import (
    batch_shape,
    with_batch,
)
from remora.dynamics.maximal import image_rows, image_space, joint_equations, saddle_point
from remora.dynamics.maximal.image_rows import ClosingRows, JointRows
from remora.dynamics.maximal.joint_maps import constraint, mass_properties, refuse_unfit
from remora.dynamics.recursive.outward_pass import moving_links
from remora.dynamics.refusals import refuse_mimic_joints
from remora.errors import InvalidValue
from remora.model import joints
from remora.model.joints import kind
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot

#: Tolerance of the distance from the constraint manifold, relative to the coordinates' size: the
#: stages of a Runge-Kutta step leave it slightly.
MANIFOLD_TOLERANCE = 1e-2


class ImageSpaceConstraints(NamedTuple):
    """The residuals of the constraints.

    Attributes:
        unit: ½(q·q - 1) and q·q_o for every body, `(..., nb, 2)` [DM93, eqs. 3, 4].
        joints: the equations of all joints, `(..., r)`, in order.
        loops: the equations of the active constraints, `(..., m)`, in order; of a gear modulo full
            turns, which poses do not determine.
    """

    unit: Array
    joints: Array
    loops: Array


@takes_robot
def image_coordinates(robot: Robot, q: ArrayLike) -> Array:
    """Return Q, the dual quaternion of every body's centre of mass, `(..., nb, 8)`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    joined = stack(image_space.coordinates_of(robot, q), axis=-2)
    return with_batch(joined, q.shape[:-1], trailing=2)


@takes_robot
def image_rates(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return Q̇ = ½ Q ω, `(..., nb, 8)`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    twists = [link.twist for link in moving_links(robot, q, v)]
    rates = image_space.rates_of(robot, image_space.coordinates_of(robot, q), twists)
    return with_batch(stack(rates, axis=-2), batch_shape(q, v), trailing=2)


@takes_robot
def from_image_coordinates(robot: Robot, Q: ArrayLike, Q_rate: ArrayLike) -> tuple[Array, Array]:
    """Return q `(..., nq)` and v `(..., nv)` for coordinates on the manifold.

    Angles are within ±π; quaternions may have the opposite sign. Constraints are not considered.

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
        Q_rate: their rates, `(..., nb, 8)`.
    """
    refuse_mimic_joints(robot, "image_space")
    Qs, rates, batch = checked_coordinates(robot, Q, Q_rate)
    rows = joint_rows_of(robot, Qs, rates)
    refuse_off_manifold(robot, Qs, rates, rows, [])
    return joint_state(robot, rates, rows, batch)


@takes_robot
def image_space_constraints(robot: Robot, Q: ArrayLike) -> ImageSpaceConstraints:
    """Return the residuals of the unit conditions and the equations of joints and constraints.

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
    """
    Qs, rates, batch = checked_coordinates(robot, Q, np.zeros((len(robot.bodies), 8)))
    rows = joint_rows_of(robot, Qs, rates)
    closing = image_rows.closing_rows(robot, rows, Qs, rates)
    return ImageSpaceConstraints(
        with_batch(stack([unit_residual(x) for x in Qs], axis=-2), batch, trailing=2),
        with_batch(concatenate([row.value for row in rows]), batch, trailing=1),
        with_batch(concatenate([np.zeros(0), *(c.value for c in closing)]), batch, trailing=1),
    )


@takes_robot
def project_image_coordinates(
    robot: Robot, Q: ArrayLike, Q_rate: ArrayLike, iterations: int = 4
) -> tuple[Array, Array]:
    """Return Q and Q̇ projected onto the constraint manifold, orthogonally in the metric M.

    Newton's method solves the constraints, with each step M-orthogonal to the manifold; then the
    part of Q̇ that violates the velocity constraints is removed likewise. The steps act like
    constraint impulses: for a robot free in space they conserve momentum.

    Args:
        robot: the robot.
        Q: coordinates near the manifold, `(..., nb, 8)`.
        Q_rate: their rates, `(..., nb, 8)`.
        iterations: number of Newton steps.

    Raises:
        InvalidValue: if the iteration does not reach the manifold.
    """
    refuse_unfit(robot, "image_space")
    Qs, rates, batch = checked_coordinates(robot, Q, Q_rate)
    zero = [np.zeros(8)] * len(Qs)
    for _ in range(iterations):
        rows = joint_rows_of(robot, Qs, zero)
        closing = image_rows.closing_rows(robot, rows, Qs, zero)
        unit, values = [unit_residual(x) for x in Qs], [row.value for row in (*rows, *closing)]
        steps = _least_motion(robot, Qs, rows, closing, unit, values)
        Qs = [x + step for x, step in zip(Qs, steps, strict=True)]
    rows = joint_rows_of(robot, Qs, zero)
    closing = image_rows.closing_rows(robot, rows, Qs, zero)
    speeds = [image_rows.rate_of(row.phi, rates) for row in rows]
    speeds += [image_rows.rate_of(c.phi, rates) for c in closing]
    unit = [_apply(image_space.unit_rows(x), own) for x, own in zip(Qs, rates, strict=True)]
    steps = _least_motion(robot, Qs, rows, closing, unit, speeds)
    rates = [own + step for own, step in zip(rates, steps, strict=True)]
    refuse_off_manifold(robot, Qs, rates, rows, closing, 1e-9, projected=True)
    return (
        with_batch(stack(Qs, axis=-2), batch, trailing=2),
        with_batch(stack(rates, axis=-2), batch, trailing=2),
    )


_apply = vector.apply


def checked_coordinates(
    robot: Robot, Q: ArrayLike, Q_rate: ArrayLike
) -> tuple[list[Array], list[Array], tuple[int, ...]]:
    """Return Q and its rate by body, `(..., 8)` each, checked, and the batch shape."""
    n = len(robot.bodies)
    Q, Q_rate = finite("Q", Q, n, 8), finite("Q_rate", Q_rate, n, 8)
    batch = batch_shape(Q[..., 0], Q_rate[..., 0])
    return [Q[..., i, :] for i in range(n)], [Q_rate[..., i, :] for i in range(n)], batch


def joint_rows_of(robot: Robot, Q: list[Array], rates: list[Array]) -> list[JointRows]:
    """Return every joint's equations."""
    return [image_rows.joint_rows(robot, j, Q, rates) for j in range(len(robot.joints))]


def joint_state(
    robot: Robot, rates: list[Array], rows: list[JointRows], batch: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return q and v, from the joints' poses and the rates of Q."""
    own = [
        joint_equations.coordinates(joint, row.X)
        for joint, row in zip(robot.joints, rows, strict=True)
    ]
    q = with_batch(concatenate(own), batch, trailing=1)
    v: list[Array] = []
    for joint, row in zip(robot.joints, rows, strict=True):
        twist = sum((_apply(D, rates[i]) for i, D in row.along.items()), start=np.zeros(6))
        if kind(joint).nv:
            v.append(_apply(constraint(joints.actuation_basis(joint, q)), twist))
    speeds = concatenate(v) if v else np.zeros(0)
    return q, with_batch(speeds, batch, trailing=1)


def violation(Q: list[Array], rows: Sequence[JointRows], closing: Sequence[ClosingRows]) -> Array:
    """Return the sum of the squares of all residuals, `(..., 1)`."""
    g = [*map(unit_residual, Q), *(row.value for row in (*rows, *closing))]
    return sum((vector.dot(x, x) for x in g if x.shape[-1]), start=np.zeros(1))


def unit_residual(Q: Array) -> Array:
    """Return ½(q·q - 1) and q·q_o, `(..., 2)`."""
    q, q_o = Q[..., :4], Q[..., 4:]
    return concatenate([0.5 * (vector.dot(q, q) - 1.0), vector.dot(q, q_o)])


def _least_motion(
    robot: Robot,
    Q: list[Array],
    rows: list[JointRows],
    closing: list[ClosingRows],
    unit: list[Array],
    values: list[Array],
) -> list[Array]:
    """Return δ with Φ δ = -g and the least δᵀ M δ, per body; g of joints, then of constraints."""
    bodies = [
        image_space.body_equations(mass, inertia, x, np.zeros(8), np.zeros(3), np.zeros(3))
        for (mass, inertia), x in zip(mass_properties(robot), Q, strict=True)
    ]
    S21 = {
        (j, i): image_rows.padded(phi)
        for j, row in enumerate(rows)
        for i, phi in row.phi.items()
        if row.gamma.shape[-1] > 0
    }
    system = saddle_point.SaddlePointSystem(
        S11=[],
        S11_inverse=[b.inverse for b in bodies],
        S12={(i, j): -vector.transpose(block) for (j, i), block in S21.items()},
        S21=S21,
        B1=[concatenate([np.zeros(8), -g]) for g in unit],
        B2=[-g for g in values[: len(rows)]],
    )
    loops = image_rows.loop_rows(
        closing,
        [-g for g in values[len(rows) :]],
        lambda _, phi: image_rows.padded(phi),
        saddle_point.DEPENDENT_SQUARE + 100.0 * violation(Q, rows, closing),
    )
    return [own[..., :8] for own in saddle_point.solve_with_loops(system, loops)[0]]


def refuse_off_manifold(
    robot: Robot,
    Q: list[Array],
    rates: list[Array],
    rows: list[JointRows],
    closing: list[ClosingRows],
    tolerance: float = MANIFOLD_TOLERANCE,
    projected: bool = False,
) -> None:
    """Raise where coordinates or their rates violate a constraint, naming it."""
    if any(is_symbolic(x) for x in (*Q, *rates)):
        return
    hint = (
        "these steps do not reach the manifold"
        if projected
        else "see rm.papers.dm93.project_image_coordinates"
    )

    def judge(what: str, off: Array, size: Array) -> None:
        worst = np.max(np.abs(off) / size, initial=0.0)
        if worst > tolerance:
            raise InvalidValue(
                f"{what} by {worst:.3g}, more than {tolerance:g}: the coordinates are off the "
                f"constraint manifold; {hint}"
            )

    largest = np.max([np.max(np.abs(x), initial=1.0) for x in Q])
    fastest = np.max([np.max(np.abs(x), initial=1.0) for x in rates])
    names = [f"Q[..., {i}, :] of body {body.name!r}" for i, body in enumerate(robot.bodies)]
    for name, x in zip(names, Q, strict=True):
        off = unit_residual(x)
        judge(f"{name} violates q·q = 1 (DM93, eq. 3)", off[..., 0], np.asarray(1.0))
        judge(f"{name} violates q·q_o = 0 (DM93, eq. 4)", off[..., 1], largest)
    relations: list[tuple[str, JointRows | ClosingRows]] = []
    for joint, row in zip(robot.joints, rows, strict=True):
        relations.append((f"joint {joint.name!r}", row))
    for c, row in zip(active_constraints(robot) if closing else [], closing, strict=True):
        relations.append((f"constraint {c.name!r}", row))
    for name, row in relations:
        judge(f"Q violates the equations of {name}", row.value, largest)
    for name, x, rate in zip(names, Q, rates, strict=True):
        speed = _apply(image_space.unit_rows(x), rate)
        judge(f"the rate of {name} leaves the unit conditions", speed, largest * fastest)
    for name, row in relations:
        speed = image_rows.rate_of(row.phi, rates)
        judge(f"Q_rate leaves the equations of {name}", speed, largest * fastest)
