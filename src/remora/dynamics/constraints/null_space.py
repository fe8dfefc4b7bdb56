"""A basis of the motions that active constraints allow, in independent speeds.

    v = N s,    G N = 0,    s = v_i:

the speeds i of some joints, as many as degrees of freedom remain, determine those of all others d:
G_d N_d = -G_i [WH82, coordinate partitioning].
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from remora.algebra import orthogonal
from remora.algebra.array_ops import Array, ArrayLike, is_symbolic, less, select, stack
from remora.dynamics.constraints.loop_kinematics import active_constraints, constraint_jacobian
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.errors import InvalidValue
from remora.model.robot import Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot

#: Singular values of G below this part of the largest one count as zero.
DEPENDENT = 1e-8
#: Largest slip G N, relative to G, of speeds that the constraints leave independent.
SLIP = 1e-7


@takes_robot
def independent_speeds(robot: Robot, q: ArrayLike) -> tuple[int, ...]:
    """Return the indices in v of speeds that determine all others, ascending.

    As many as degrees of freedom remain. Of the allowed motions, an orthonormal basis in SI units,
    the speed with the largest part is taken, then the one with the largest part of what is left.

    Args:
        robot: the robot.
        q: configuration, `(nq,)`; it must satisfy the constraints.
    """
    q = configuration(robot, q)
    if is_symbolic(q) or q.ndim != 1:
        raise InvalidValue("independent_speeds needs the numbers of one configuration, (nq,)")
    if not active_constraints(robot):
        return tuple(range(robot.nv))
    _, values, Vt = np.linalg.svd(constraint_jacobian(robot, q))
    rank = int(np.sum(values > DEPENDENT * np.max(values, initial=0.0)))
    rest, chosen = Vt[rank:].T, list[int]()
    for _ in range(rest.shape[1]):
        sizes = np.sum(rest * rest, axis=1)
        sizes[chosen] = -1.0
        best = int(np.argmax(sizes))
        along = rest[best] / np.sqrt(sizes[best])
        rest = rest - np.outer(rest @ along, along)
        chosen.append(best)
    return tuple(sorted(chosen))


@takes_robot
def constraint_null_space(
    robot: Robot, q: ArrayLike, independent: Iterable[str | int] | None = None
) -> Array:
    """Return N `(..., nv, n)`, a basis of the velocities that active constraints allow: G N = 0.

    v = N s with the independent speeds s `(..., n)`, whose rows of N are those of the identity.
    NᵀMN is the mass matrix of the n degrees of freedom that remain, NᵀF the forces on them, J N a
    Jacobian.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`; it must satisfy the constraints.
        independent: joints by name, all of whose speeds are meant, or indices in v. By default
            `independent_speeds` of the (first) configuration; with symbols they must be given.

    Raises:
        InvalidValue: if these speeds do not determine all others, or are not independent; in
            compiled code the result is then not finite.
    """
    q = configuration(robot, q)
    if independent is None:
        if is_symbolic(q):
            raise InvalidValue(
                "with symbols, say which speeds are independent: "
                "independent=rm.loops.independent_speeds(robot, q) of a configuration"
            )
        chosen = list(independent_speeds(robot, q.reshape(-1, robot.nq)[0])) if q.size else []
    else:
        chosen = _places(robot, independent)
    others = [i for i in range(robot.nv) if i not in chosen]
    eye = np.eye(robot.nv)[:, chosen]
    if not active_constraints(robot):
        if others:
            raise InvalidValue(
                f"no constraints are active: all {robot.nv} speeds are independent, not "
                f"{len(chosen)} of them"
            )
        return with_batch(eye, batch_shape(q), trailing=2)
    G = constraint_jacobian(robot, q)
    m: int = G.shape[-2]
    size = np.sum(np.sum(G * G, axis=-1), axis=-1, keepdims=True)
    slip, parts, undetermined = -G[..., chosen], dict[int, Array](), 0.0 * size
    nothing = 0.0 * slip[..., 0, :]
    if others:  # the least-squares solution of G_d N_d = -G_i, exact for independent speeds
        columns = orthogonal.orthogonalize(
            G[..., others], np.ones(m), np.broadcast_to(size, (*size.shape[:-1], len(others)))
        )
        slip, along = orthogonal.closest(columns, slip)
        found = -orthogonal.basic_multipliers(columns.R, columns.kept, along)
        parts = {i: found[..., k, :] for k, i in enumerate(others)}
        undetermined = np.sum(1.0 - columns.kept, axis=-1, keepdims=True)
    N = stack([parts[i] if i in parts else eye[i] + nothing for i in range(robot.nv)], axis=-2)
    beyond = np.sum(np.sum(slip * slip, axis=-1), axis=-1, keepdims=True) - SLIP**2 * size
    return with_batch(_checked(robot, N, chosen, undetermined, beyond), batch_shape(q), trailing=2)


def _checked(robot: Robot, N: Array, chosen: list[int], undetermined: Array, slip: Array) -> Array:
    """Return N, or raise if the speeds do not determine all others, or are not independent."""
    bad = undetermined + select(less(0.0, slip), 1.0, 0.0)
    if is_symbolic(bad):
        return select(less(0.5, bad)[..., None], np.inf, N)
    named = f"speeds {', '.join(map(str, chosen))} of {robot.nv}"
    if np.any(undetermined > 0.5):
        raise InvalidValue(
            f"{named} do not determine all others: {int(np.max(undetermined))} more degrees of "
            "freedom remain; rm.loops.independent_speeds(robot, q) returns a choice"
        )
    if np.any(slip > 0.0):
        raise InvalidValue(
            f"{named} are not independent of each other: the constraints couple them, or q does "
            "not satisfy the constraints; rm.loops.independent_speeds(robot, q) returns a choice"
        )
    return N


def _places(robot: Robot, independent: Iterable[str | int]) -> list[int]:
    """Return the indices in v of joints given by name, or of speeds given by index."""
    found = list[int]()
    for given in independent:
        if isinstance(given, str):
            found += range(robot.nv)[robot.joints[robot.joint_index(given)].v]
        elif isinstance(given, (int, np.integer)) and 0 <= given < robot.nv:  # pyright: ignore[reportUnnecessaryIsInstance]
            found.append(int(given))
        else:
            raise InvalidValue(
                f"independent: {given!r} is neither a joint nor an index from 0 to {robot.nv - 1}"
            )
    if len(set(found)) != len(found):
        raise InvalidValue(f"independent: a speed occurs twice in {found}")
    return sorted(found)
