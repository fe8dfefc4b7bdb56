"""DM93's coordinates: eight dual-quaternion coordinates per body, their rates and projection.

Q `(..., nb, 8)` holds the unit dual quaternion of every body's centre of mass in the inertial
frame, real part then dual part, scalars first (DM93 write vectors first); the axes are the
body's. Q and its rate stay on the constraint manifold in exact arithmetic only: for long runs use
Baumgarte stabilization (`stabilization`) or project them at intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, is_symbolic, stack
from remora.dynamics.constraints.contradictions import CONTRADICTION
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.constraints.reactions import wrenches_of
from remora.dynamics.joint_arrays import (
    LoadedState,
    batch_shape,
    external_wrenches,
    gather,
    prescribed_by_index,
    with_batch,
)
from remora.dynamics.maximal import image_space, joint_equations, saddle_point
from remora.dynamics.maximal.image_space import Assembled, ClosingRows, JointRows
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


class ImageSpaceSystem(NamedTuple):
    """The matrices of [DM93, eq. 30] for a robot of nb bodies, with n = 8 nb.

    Attributes:
        M: mass matrix, `(..., n, n)`, block-diagonal and singular [eq. 24].
        h: velocity-dependent forces, `(..., n)` [eq. 25, corrected].
        F: generalized forces of actuation, gravity and external wrenches, `(..., n)` [eq. 21].
        Phi: rows of all constraints, `(..., m, n)`: two for every body, then those of every joint,
            followed by its speeds if it is prescribed, then those of the active constraints.
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
        constraint_wrenches: those of the constraints, `(..., nc, 6)`, as of
            `rm.constraint_wrenches`: on the child, in the child's constraint frame.
        tau: generalized forces, `(..., nv)`; computed for prescribed joints.
    """

    acceleration: Array
    multipliers: Array
    reactions: Array
    constraint_wrenches: Array
    tau: Array


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
    Qs, rates, batch = _checked(robot, Q, Q_rate)
    rows = _rows(robot, Qs, rates)
    _refuse_off_manifold(robot, Qs, rates, rows, [])
    return _joint_state(robot, rates, rows, batch)


@takes_robot
def image_space_constraints(robot: Robot, Q: ArrayLike) -> ImageSpaceConstraints:
    """Return the residuals of the unit conditions and the equations of joints and constraints.

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
    """
    Qs, rates, batch = _checked(robot, Q, np.zeros((len(robot.bodies), 8)))
    rows = _rows(robot, Qs, rates)
    closing = image_space.closing_rows(robot, rows, Qs, rates)
    return ImageSpaceConstraints(
        with_batch(stack([_unit(x) for x in Qs], axis=-2), batch, trailing=2),
        with_batch(concatenate([row.value for row in rows]), batch, trailing=1),
        with_batch(concatenate([np.zeros(0), *(c.value for c in closing)]), batch, trailing=1),
    )


@takes_robot
def image_space_system(
    robot: Robot,
    Q: ArrayLike,
    Q_rate: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    prescribed: Mapping[str, ArrayLike] | None = None,
) -> ImageSpaceSystem:
    """Return M, h, F, Φ and γ of M Q̈ + Φᵀ λ = F + h, Φ Q̈ = γ [DM93, eq. 30].

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
        Q_rate: their rates, `(..., nb, 8)`.
        tau: generalized forces of the joints, `(..., nv)`; ignored for prescribed joints.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        prescribed: accelerations of joints with prescribed motion, by name, as for
            `rm.hybrid_dynamics`.
    """
    known, at = _assembled(robot, Q, Q_rate, tau, wrenches, prescribed)
    n, batch = len(robot.bodies), at.batch
    Phi = [_placed({i: body.unit}, n) for i, body in enumerate(known.bodies)]
    by_joint: dict[int, dict[int, Array]] = {}
    for (j, i), block in known.saddle.S21.items():
        by_joint.setdefault(j, {})[i] = block[..., :8]
    Phi += [_placed(by_joint[j], n) for j in sorted(by_joint)]
    Phi += [_placed(c.phi, n) for c in at.closing]
    h, F = [b.h for b in known.bodies], [b.F for b in known.bodies]
    gamma = [b.unit_rate for b in known.bodies] + known.saddle.B2 + [c.gamma for c in at.closing]
    M = [_placed({i: b.M}, n) for i, b in enumerate(known.bodies)]
    return ImageSpaceSystem(
        with_batch(concatenate(M, trailing=2), batch, trailing=2),
        with_batch(concatenate(h), batch, trailing=1),
        with_batch(concatenate(F), batch, trailing=1),
        with_batch(concatenate(Phi, trailing=2), batch, trailing=2),
        with_batch(concatenate(gamma), batch, trailing=1),
    )


@takes_robot
def image_space_solution(
    robot: Robot,
    Q: ArrayLike,
    Q_rate: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    stabilization: float = 0.0,
    tolerance: float = MANIFOLD_TOLERANCE,
    prescribed: Mapping[str, ArrayLike] | None = None,
) -> ImageSpaceSolution:
    """Return Q̈, the multipliers and the corresponding wrenches [DM93, eq. 30].

    Of redundant constraints the wrenches of smallest norm in N and N m are returned.

    Args:
        robot: the robot.
        Q: coordinates, `(..., nb, 8)`.
        Q_rate: their rates, `(..., nb, 8)`.
        tau: generalized forces of the joints, `(..., nv)`; ignored for prescribed joints.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        stabilization: rate α [1/s] at which violations g decay, g̈ + 2α ġ + α² g = 0 (Baumgarte).
        tolerance: largest accepted violation by Q and its rate, relative to their size.
        prescribed: accelerations of joints with prescribed motion, by name, as for
            `rm.hybrid_dynamics`.

    Raises:
        InvalidValue: if the coordinates or their rates are off the constraint manifold, or if
            constraints contradict each other or the prescribed motion.
    """
    known, at = _assembled(robot, Q, Q_rate, tau, wrenches, prescribed, tolerance)
    saddle = replace(known.saddle, S11_inverse=[body.inverse for body in known.bodies])
    gamma = [c.gamma for c in at.closing]
    if stabilization != 0.0:
        pull = [
            _pull(_unit(x), _apply(image_space.unit_rows(x), rate), stabilization)
            for x, rate in zip(at.Q, at.rates, strict=True)
        ]
        B1 = [b + concatenate([np.zeros(8), p]) for b, p in zip(saddle.B1, pull, strict=True)]
        B2: list[Array] = []
        for b, row in zip(saddle.B2, known.rows, strict=True):
            back = _pull(row.value, image_space.rate_of(row.phi, at.rates), stabilization)
            speeds = np.zeros(b.shape[-1] - back.shape[-1])  # of a prescribed joint
            B2.append(b + concatenate([back, speeds]))
        saddle = replace(saddle, B1=B1, B2=B2)
        gamma = [
            c.gamma + _pull(c.value, image_space.rate_of(c.phi, at.rates), stabilization)
            for c in at.closing
        ]
    y, forces, lam = saddle_point.solve_with_loops(saddle, _loop_rows(at, gamma))
    second = [own[..., :8] for own in y]
    _refuse_contradiction(robot, at, gamma, second)
    reactions: list[Array] = []
    taus: list[Array] = []
    for j, (joint, row) in enumerate(zip(robot.joints, known.rows, strict=True)):
        count = row.gamma.shape[-1]
        own = forces[j][..., :count], forces[j][..., count:]
        load = _apply(vector.transpose(row.phi[j]), own[0])
        reactions.append(image_space.physical_wrench(robot, j, at.Q[j], load))
        taus.append(own[1] if j in at.state.prescribed else at.state.tau[..., joint.v])
    multipliers = [own[..., 8:] for own in y] + [-x for x in forces]
    for c, part in zip(at.closing, _split(at.closing, lam), strict=True):
        multipliers.append(-_apply(vector.transpose(c.scale), part))
    return ImageSpaceSolution(
        with_batch(stack(second, axis=-2), at.batch, trailing=2),
        with_batch(concatenate(multipliers), at.batch, trailing=1),
        with_batch(stack(reactions, axis=-2), at.batch, trailing=2),
        with_batch(wrenches_of(robot, at.state.q, lam), at.batch, trailing=2),
        gather(robot, taus, at.batch),
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
    Qs, rates, batch = _checked(robot, Q, Q_rate)
    zero = [np.zeros(8)] * len(Qs)
    for _ in range(iterations):
        rows = _rows(robot, Qs, zero)
        closing = image_space.closing_rows(robot, rows, Qs, zero)
        unit, values = [_unit(x) for x in Qs], [row.value for row in (*rows, *closing)]
        steps = _least_motion(robot, Qs, rows, closing, unit, values)
        Qs = [x + step for x, step in zip(Qs, steps, strict=True)]
    rows = _rows(robot, Qs, zero)
    closing = image_space.closing_rows(robot, rows, Qs, zero)
    speeds = [image_space.rate_of(row.phi, rates) for row in rows]
    speeds += [image_space.rate_of(c.phi, rates) for c in closing]
    unit = [_apply(image_space.unit_rows(x), own) for x, own in zip(Qs, rates, strict=True)]
    steps = _least_motion(robot, Qs, rows, closing, unit, speeds)
    rates = [own + step for own, step in zip(rates, steps, strict=True)]
    _refuse_off_manifold(robot, Qs, rates, rows, closing, 1e-9, projected=True)
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


class _Point(NamedTuple):
    """Coordinates on the manifold, the state they represent, and the closing equations there."""

    Q: list[Array]
    rates: list[Array]
    rows: list[JointRows]
    closing: list[ClosingRows]
    state: LoadedState
    batch: tuple[int, ...]


def _assembled(
    robot: Robot,
    Q: ArrayLike,
    Q_rate: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None,
    prescribed: Mapping[str, ArrayLike] | None,
    tolerance: float = MANIFOLD_TOLERANCE,
) -> tuple[Assembled, _Point]:
    refuse_unfit(robot, "image_space")
    Qs, rates, batch = _checked(robot, Q, Q_rate)
    tau = velocity(robot, tau, "tau")
    w = external_wrenches(robot, wrenches)
    rows = _rows(robot, Qs, rates)
    closing = image_space.closing_rows(robot, rows, Qs, rates)
    _refuse_off_manifold(robot, Qs, rates, rows, closing, tolerance)
    q, v = _joint_state(robot, rates, rows, batch)
    batch = batch_shape(q, tau) if w is None else batch_shape(q, tau, w[..., 0, :])
    state = LoadedState(q, v, tau, w, prescribed_by_index(robot, prescribed or {}, batch))
    known = image_space.assembled(robot, state, Qs, rates)
    return known, _Point(Qs, rates, rows, closing, state, batch)


def _loop_rows(at: _Point, gamma: list[Array]) -> saddle_point.LoopRows | None:
    """Return the constraints' rows of the ten equations a body, dependent ones by the violation.

    Equations that depend on each other on the manifold are independent at a distance of g from it,
    by an angle of the order of g, and contradict each other there.
    """
    squares = _violation(at.Q, at.rows, at.closing)
    dependent = saddle_point.DEPENDENT_SQUARE + 100.0 * squares
    return image_space.loop_rows(
        at.closing, gamma, lambda _, rows: image_space.padded(rows), dependent
    )


def _violation(Q: list[Array], rows: Sequence[JointRows], closing: Sequence[ClosingRows]) -> Array:
    """Return the sum of the squares of all residuals, `(..., 1)`."""
    g = [*map(_unit, Q), *(row.value for row in (*rows, *closing))]
    return sum((vector.dot(x, x) for x in g if x.shape[-1]), start=np.zeros(1))


def _split(closing: list[ClosingRows], lam: Array) -> list[Array]:
    """Return the multipliers of every constraint."""
    start = np.cumsum([c.gamma.shape[-1] for c in closing])
    return [lam[..., end - c.gamma.shape[-1] : end] for c, end in zip(closing, start, strict=True)]


def _refuse_contradiction(
    robot: Robot, at: _Point, gamma: list[Array], second: list[Array]
) -> None:
    """Raise where the accelerations do not satisfy the constraints' equations."""
    if any(is_symbolic(x) for x in (*second, *gamma)):
        return
    size = 1.0 + sum(np.sum(np.abs(x) + y * y, -1, keepdims=True)
                     for x, y in zip(second, at.rates, strict=True))  # fmt: skip
    bound = (CONTRADICTION + 100.0 * np.sqrt(_violation(at.Q, at.rows, at.closing))) * size
    for c, row, known in zip(active_constraints(robot), at.closing, gamma, strict=True):
        gap = np.abs(image_space.rate_of(row.phi, second) - known)
        if np.any(gap > bound):
            raise InvalidValue(
                f"constraint {c.name!r} contradicts the other constraints or the prescribed "
                f"motion: its equations Φ Q̈ = γ are off by {np.max(gap):.3g}"
            )


def _unit(Q: Array) -> Array:
    """Return ½(q·q - 1) and q·q_o, `(..., 2)`."""
    q, q_o = Q[..., :4], Q[..., 4:]
    return concatenate([0.5 * (vector.dot(q, q) - 1.0), vector.dot(q, q_o)])


def _pull(g: Array, g_rate: Array, alpha: float) -> Array:
    return -2.0 * alpha * g_rate - alpha * alpha * g


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
        B2=[-g for g in values[: len(rows)]],
    )
    loops = image_space.loop_rows(
        closing,
        [-g for g in values[len(rows) :]],
        lambda _, phi: image_space.padded(phi),
        saddle_point.DEPENDENT_SQUARE + 100.0 * _violation(Q, rows, closing),
    )
    return [own[..., :8] for own in saddle_point.solve_with_loops(system, loops)[0]]


def _placed(blocks: dict[int, Array], n: int) -> Array:
    """Return rows `(..., m, 8 n)` with each body's block in its columns."""
    m = next(iter(blocks.values())).shape[-2]
    return concatenate([blocks.get(i, np.zeros((m, 8))) for i in range(n)])


def _refuse_off_manifold(
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
        off = _unit(x)
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
        speed = image_space.rate_of(row.phi, rates)
        judge(f"Q_rate leaves the equations of {name}", speed, largest * fastest)
