"""DM93's coordinates: eight dual-quaternion coordinates per body, their rates and projection.

Q `(..., nb, 8)` holds the unit dual quaternion of every body's centre of mass in the inertial
frame, real part then dual part, scalars first (DM93 write vectors first); the axes are the
body's. Q and its rate stay on the constraint manifold in exact arithmetic only: for long runs use
Baumgarte stabilization (`stabilization`) or project them at intervals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, is_symbolic, stack
from remora.dynamics.joint_arrays import LoadedState, batch_shape, external_wrenches, with_batch
from remora.dynamics.maximal import image_space, joint_equations, saddle_point
from remora.dynamics.maximal.image_space import Assembled, JointRows
from remora.dynamics.maximal.joint_maps import constraint, mass_properties, refuse_unfit
from remora.dynamics.recursive.outward_pass import moving_links
from remora.dynamics.refusals import refuse_mimic_joints, without_constraints
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


class ImageSpaceSystem(NamedTuple):
    """The matrices of [DM93, eq. 30] for a robot of nb bodies, with n = 8 nb.

    Attributes:
        M: mass matrix, `(..., n, n)`, block-diagonal and singular [eq. 24].
        h: velocity-dependent forces, `(..., n)` [eq. 25, corrected].
        F: generalized forces of actuation, gravity and external wrenches, `(..., n)` [eq. 21].
        Phi: rows of all constraints, `(..., m, n)`: two for every body, then the joints'.
        gamma: -Φ̇ Q̇, `(..., m)`.
    """

    M: Array
    h: Array
    F: Array
    Phi: Array
    gamma: Array


class ImageSpaceSolution(NamedTuple):
    """The solution of [DM93, eq. 30].

    Attributes:
        acceleration: Q̈, `(..., nb, 8)`.
        multipliers: λ, `(..., m)`, in the order of `ImageSpaceSystem.Phi`.
        reactions: the wrenches [f, τ] of the joints' multipliers, `(..., nj, 6)`: on body i through
            joint i, in its frame, about its origin.
    """

    acceleration: Array
    multipliers: Array
    reactions: Array


class ImageSpaceConstraints(NamedTuple):
    """The residuals of the constraints.

    Attributes:
        unit: ½(q·q - 1) and q·q_o for every body, `(..., nb, 2)` [DM93, eqs. 3, 4].
        joints: the equations of all joints, `(..., r)`, in order.
    """

    unit: Array
    joints: Array


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

    Angles are within ±π; quaternions may have the opposite sign.

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
        Q_rate: their rates, `(..., nb, 8)`.
    """
    refuse_mimic_joints(robot, "image_space")
    Qs, rates, batch = _checked(robot, Q, Q_rate)
    rows = _rows(robot, Qs, rates)
    _refuse_off_manifold(robot, Qs, rates, rows)
    return _joint_state(robot, rates, rows, batch)


@takes_robot
@without_constraints
def image_space_constraints(robot: Robot, Q: ArrayLike) -> ImageSpaceConstraints:
    """Return the residuals of the unit conditions and the joints' equations.

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
    """
    Qs, rates, batch = _checked(robot, Q, np.zeros((len(robot.bodies), 8)))
    return _residuals(Qs, _rows(robot, Qs, rates), batch)


@takes_robot
@without_constraints
def image_space_system(
    robot: Robot,
    Q: ArrayLike,
    Q_rate: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
) -> ImageSpaceSystem:
    """Return M, h, F, Φ and γ of M Q̈ + Φᵀ λ = F + h, Φ Q̈ = γ [DM93, eq. 30].

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
        Q_rate: their rates, `(..., nb, 8)`.
        tau: generalized forces of the joints, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
    """
    known, _, _, batch = _assembled(robot, Q, Q_rate, tau, wrenches)
    n = len(robot.bodies)
    Phi: list[Array] = []
    for i, body in enumerate(known.bodies):
        Phi.append(_placed({i: body.unit}, n))
    for row in known.rows:
        if row.gamma.shape[-1] > 0:
            Phi.append(_placed(row.phi, n))
    h, F = [b.h for b in known.bodies], [b.F for b in known.bodies]
    gamma = [b.unit_rate for b in known.bodies] + [row.gamma for row in known.rows]
    M = [_placed({i: b.M}, n) for i, b in enumerate(known.bodies)]
    return ImageSpaceSystem(
        with_batch(concatenate(M, trailing=2), batch, trailing=2),
        with_batch(concatenate(h), batch, trailing=1),
        with_batch(concatenate(F), batch, trailing=1),
        with_batch(concatenate(Phi, trailing=2), batch, trailing=2),
        with_batch(concatenate(gamma), batch, trailing=1),
    )


@takes_robot
@without_constraints
def image_space_solution(
    robot: Robot,
    Q: ArrayLike,
    Q_rate: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    stabilization: float = 0.0,
    tolerance: float = MANIFOLD_TOLERANCE,
) -> ImageSpaceSolution:
    """Return Q̈, the multipliers and the corresponding reactions [DM93, eq. 30].

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
        Q_rate: their rates, `(..., nb, 8)`.
        tau: generalized forces of the joints, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        stabilization: rate α [1/s] at which violations g decay, g̈ + 2α ġ + α² g = 0 (Baumgarte).
        tolerance: largest accepted violation by Q and its rate, relative to their size.

    Raises:
        InvalidValue: if the coordinates or their rates are off the constraint manifold.
    """
    known, Qs, rates, batch = _assembled(robot, Q, Q_rate, tau, wrenches, tolerance)
    saddle = replace(known.saddle, S11_inverse=[body.inverse for body in known.bodies])
    if stabilization != 0.0:
        pull = [
            _pull(_unit(x), _apply(image_space.unit_rows(x), rate), stabilization)
            for x, rate in zip(Qs, rates, strict=True)
        ]
        B1 = [b + concatenate([np.zeros(8), p]) for b, p in zip(saddle.B1, pull, strict=True)]
        B2 = [
            b + _pull(row.value, _speed(row, rates), stabilization)
            for b, row in zip(saddle.B2, known.rows, strict=True)
        ]
        saddle = replace(saddle, B1=B1, B2=B2)
    y, forces = saddle_point.solve(saddle)
    reactions = [
        image_space.physical_wrench(robot, j, x, _apply(vector.transpose(row.phi[j]), part))
        for j, (x, row, part) in enumerate(zip(Qs, known.rows, forces, strict=True))
    ]
    return ImageSpaceSolution(
        with_batch(stack([own[..., :8] for own in y], axis=-2), batch, trailing=2),
        with_batch(
            concatenate([own[..., 8:] for own in y] + [-x for x in forces]), batch, trailing=1
        ),
        with_batch(stack(reactions, axis=-2), batch, trailing=2),
    )


@takes_robot
@without_constraints
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
    Qs, rates, batch = _checked(robot, Q, Q_rate)
    zero = [np.zeros(8)] * len(Qs)
    for _ in range(iterations):
        rows = _rows(robot, Qs, zero)
        steps = _least_motion(robot, Qs, rows, [_unit(x) for x in Qs], [r.value for r in rows])
        Qs = [x + step for x, step in zip(Qs, steps, strict=True)]
    rows = _rows(robot, Qs, zero)
    speeds = [_speed(row, rates) for row in rows]
    unit = [_apply(image_space.unit_rows(x), own) for x, own in zip(Qs, rates, strict=True)]
    steps = _least_motion(robot, Qs, rows, unit, speeds)
    rates = [own + step for own, step in zip(rates, steps, strict=True)]
    _refuse_off_manifold(robot, Qs, rates, rows, 1e-9, projected=True)
    return (
        with_batch(stack(Qs, axis=-2), batch, trailing=2),
        with_batch(stack(rates, axis=-2), batch, trailing=2),
    )


_apply = vector.apply


def _checked(
    robot: Robot, Q: ArrayLike, Q_rate: ArrayLike
) -> tuple[list[Array], list[Array], tuple[int, ...]]:
    n = len(robot.bodies)
    Q, Q_rate = finite("Q", Q, n, 8), finite("Q_rate", Q_rate, n, 8)
    batch = batch_shape(Q[..., 0], Q_rate[..., 0])
    return [Q[..., i, :] for i in range(n)], [Q_rate[..., i, :] for i in range(n)], batch


def _rows(robot: Robot, Q: list[Array], rates: list[Array]) -> list[JointRows]:
    return [image_space.joint_rows(robot, j, Q, rates) for j in range(len(robot.joints))]


def _joint_state(
    robot: Robot, rates: list[Array], rows: list[JointRows], batch: tuple[int, ...]
) -> tuple[Array, Array]:
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


def _assembled(
    robot: Robot,
    Q: ArrayLike,
    Q_rate: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None,
    tolerance: float = MANIFOLD_TOLERANCE,
) -> tuple[Assembled, list[Array], list[Array], tuple[int, ...]]:
    refuse_unfit(robot, "image_space")
    Qs, rates, batch = _checked(robot, Q, Q_rate)
    tau = velocity(robot, tau, "tau")
    w = external_wrenches(robot, wrenches)
    rows = _rows(robot, Qs, rates)
    _refuse_off_manifold(robot, Qs, rates, rows, tolerance)
    q, v = _joint_state(robot, rates, rows, batch)
    batch = batch_shape(q, tau) if w is None else batch_shape(q, tau, w[..., 0, :])
    return image_space.assembled(robot, LoadedState(q, v, tau, w), Qs, rates), Qs, rates, batch


def _unit(Q: Array) -> Array:
    """Return ½(q·q - 1) and q·q_o, `(..., 2)`."""
    q, q_o = Q[..., :4], Q[..., 4:]
    return concatenate([0.5 * (vector.dot(q, q) - 1.0), vector.dot(q, q_o)])


def _speed(row: JointRows, rates: list[Array]) -> Array:
    """Return ġ = Φ Q̇ of a joint."""
    parts = [_apply(phi, rates[i]) for i, phi in row.phi.items()]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _pull(g: Array, g_rate: Array, alpha: float) -> Array:
    return -2.0 * alpha * g_rate - alpha * alpha * g


def _least_motion(
    robot: Robot,
    Q: list[Array],
    rows: list[JointRows],
    unit: list[Array],
    values: list[Array],
) -> list[Array]:
    """Return δ with Φ δ = -g and the least δᵀ M δ, per body."""
    bodies = [
        image_space.body_equations(mass, inertia, x, np.zeros(8), np.zeros(3), np.zeros(3))
        for (mass, inertia), x in zip(mass_properties(robot), Q, strict=True)
    ]
    S21 = {
        (j, i): image_space.padded(phi)
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
        B2=[-g for g in values],
    )
    return [own[..., :8] for own in saddle_point.solve(system)[0]]


def _residuals(
    Q: list[Array], rows: list[JointRows], batch: tuple[int, ...]
) -> ImageSpaceConstraints:
    unit = stack([_unit(x) for x in Q], axis=-2)
    values = concatenate([row.value for row in rows])
    return ImageSpaceConstraints(
        with_batch(unit, batch, trailing=2), with_batch(values, batch, trailing=1)
    )


def _placed(blocks: dict[int, Array], n: int) -> Array:
    """Return rows `(..., m, 8 n)` with each body's block in its columns."""
    m = next(iter(blocks.values())).shape[-2]
    return concatenate([blocks.get(i, np.zeros((m, 8))) for i in range(n)])


def _refuse_off_manifold(
    robot: Robot,
    Q: list[Array],
    rates: list[Array],
    rows: list[JointRows],
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
        off = _unit(x)
        judge(f"{name} violates q·q = 1 (DM93, eq. 3)", off[..., 0], np.asarray(1.0))
        judge(f"{name} violates q·q_o = 0 (DM93, eq. 4)", off[..., 1], largest)
    for joint, row in zip(robot.joints, rows, strict=True):
        judge(f"Q violates the equations of joint {joint.name!r}", row.value, largest)
    for name, x, rate in zip(names, Q, rates, strict=True):
        speed = _apply(image_space.unit_rows(x), rate)
        judge(f"the rate of {name} leaves the unit conditions", speed, largest * fastest)
    for joint, row in zip(robot.joints, rows, strict=True):
        speed = _speed(row, rates)
        judge(f"Q_rate leaves the equations of joint {joint.name!r}", speed, largest * fastest)
