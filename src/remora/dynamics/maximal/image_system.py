"""DM93's system (30) for whole robots: M, h, F, Φ, γ, and its solution with multipliers.

    [M Φᵀ; Φ 0] [Q̈; λ] = [F + h; γ]    [DM93, eq. 30]

Q̈ and λ at coordinates Q and rates Q̇ that are on the constraint manifold or near it: `stabilization`
lets violations decay, and equations that depend on each other on the manifold count as dependent.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from remora.dynamics.maximal import image_rows, image_space, saddle_point
from remora.dynamics.maximal.image_coordinates import (
    MANIFOLD_TOLERANCE,
    checked_coordinates,
    joint_rows_of,
    joint_state,
    refuse_off_manifold,
    unit_residual,
    violation,
)
from remora.dynamics.maximal.image_rows import ClosingRows, JointRows
from remora.dynamics.maximal.image_space import Assembled
from remora.dynamics.maximal.joint_maps import refuse_unfit
from remora.errors import InvalidValue
from remora.model.robot import Robot
from remora.model.state import velocity
from remora.model.takes_robot import takes_robot

_apply = vector.apply


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
            _pull(unit_residual(x), _apply(image_space.unit_rows(x), rate), stabilization)
            for x, rate in zip(at.Q, at.rates, strict=True)
        ]
        B1 = [b + concatenate([np.zeros(8), p]) for b, p in zip(saddle.B1, pull, strict=True)]
        B2: list[Array] = []
        for b, row in zip(saddle.B2, known.rows, strict=True):
            back = _pull(row.value, image_rows.rate_of(row.phi, at.rates), stabilization)
            speeds = np.zeros(b.shape[-1] - back.shape[-1])  # of a prescribed joint
            B2.append(b + concatenate([back, speeds]))
        saddle = replace(saddle, B1=B1, B2=B2)
        gamma = [
            c.gamma + _pull(c.value, image_rows.rate_of(c.phi, at.rates), stabilization)
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
        multipliers.append(-_apply(vector.transpose(c.scale()), part))
    return ImageSpaceSolution(
        with_batch(stack(second, axis=-2), at.batch, trailing=2),
        with_batch(concatenate(multipliers), at.batch, trailing=1),
        with_batch(stack(reactions, axis=-2), at.batch, trailing=2),
        with_batch(wrenches_of(robot, at.state.q, lam), at.batch, trailing=2),
        gather(robot, taus, at.batch),
    )


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
    Qs, rates, batch = checked_coordinates(robot, Q, Q_rate)
    tau = velocity(robot, tau, "tau")
    w = external_wrenches(robot, wrenches)
    rows = joint_rows_of(robot, Qs, rates)
    closing = image_rows.closing_rows(robot, rows, Qs, rates)
    refuse_off_manifold(robot, Qs, rates, rows, closing, tolerance)
    q, v = joint_state(robot, rates, rows, batch)
    batch = batch_shape(q, tau) if w is None else batch_shape(q, tau, w[..., 0, :])
    state = LoadedState(q, v, tau, w, prescribed_by_index(robot, prescribed or {}, batch))
    known = image_space.assembled(robot, state, Qs, rates)
    return known, _Point(Qs, rates, rows, closing, state, batch)


def _loop_rows(at: _Point, gamma: list[Array]) -> saddle_point.LoopRows | None:
    """Return the constraints' rows of the ten equations a body, dependent ones by the violation.

    Equations that depend on each other on the manifold are independent at a distance of g from it,
    by an angle of the order of g, and contradict each other there.
    """
    squares = violation(at.Q, at.rows, at.closing)
    dependent = saddle_point.DEPENDENT_SQUARE + 100.0 * squares
    return image_rows.loop_rows(
        at.closing, gamma, lambda _, rows: image_rows.padded(rows), dependent
    )


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
    bound = (CONTRADICTION + 100.0 * np.sqrt(violation(at.Q, at.rows, at.closing))) * size
    for c, row, known in zip(active_constraints(robot), at.closing, gamma, strict=True):
        gap = np.abs(image_rows.rate_of(row.phi, second) - known)
        if np.any(gap > bound):
            raise InvalidValue(
                f"constraint {c.name!r} contradicts the other constraints or the prescribed "
                f"motion: its equations Φ Q̈ = γ are off by {np.max(gap):.3g}"
            )


def _pull(g: Array, g_rate: Array, alpha: float) -> Array:
    return -2.0 * alpha * g_rate - alpha * alpha * g


def _placed(blocks: dict[int, Array], n: int) -> Array:
    """Return rows `(..., m, 8 n)` with each body's block in its columns."""
    m = next(iter(blocks.values())).shape[-2]
    return concatenate([blocks.get(i, np.zeros((m, 8))) for i in range(n)])
