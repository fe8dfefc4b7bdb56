"""One table of formulations, one signature, and the functions that users call.

A formulation is a way to compute the same thing. Choose by name; see docs/formulations.md for what
each gives, costs and cannot do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from remora.algebra import dual_quaternion, vector
from remora.algebra.namespace import Array, ArrayLike, is_symbolic, stack
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.lagrangian import dynamics as lagrangian
from remora.dynamics.lagrangian import euler_angles, matrices
from remora.dynamics.lagrangian.solving import solve_prescribed
from remora.dynamics.maximal import decoupled, image_space, newton_euler
from remora.dynamics.maximal.joint_maps import Solution
from remora.dynamics.recursive import articulated, recursive_newton_euler
from remora.dynamics.recursive.composite import mass_matrix_of, mass_matrix_size
from remora.dynamics.recursive.coriolis import coriolis_matrix_of
from remora.dynamics.refusals import needs_dynamics, refuse_undefined
from remora.errors import InvalidValue, RemoraError, ShapeError, UnknownName
from remora.identity.table import Table
from remora.model.joints import actuation_basis, kind, motion_screws
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot

Hybrid = Callable[
    [Robot, Array, Array, Array, Array | None, Mapping[int, Array]], tuple[Array, Array]
]
Inverse = Callable[[Robot, Array, Array, Array, Array | None], Array]


@dataclass(frozen=True)
class Formulation:
    """A row of the table.

    Attributes:
        hybrid: forward dynamics with any joints prescribed -> vdot, tau; None where it has none.
        inverse: inverse dynamics -> tau; None where it has none.
        mass_matrix: (robot, q) -> H; None where it has none of its own.
        coriolis_matrix: (robot, q, v) -> C; None where it has none of its own.
        followers: whether it takes joints that mimic others.
    """

    hybrid: Hybrid | None
    inverse: Inverse | None
    mass_matrix: Callable[[Robot, Array], Array] | None = None
    coriolis_matrix: Callable[[Robot, Array, Array], Array] | None = None
    followers: bool = False


def _by_mass_matrix(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None,
    prescribed: Mapping[int, Array],
) -> tuple[Array, Array]:
    """Solve H v̇ = τ - bias for the joints that are free, H v̇ + bias for the others' forces."""
    if robot.nv == 0:
        return 0.0 * v, 0.0 * tau
    H = mass_matrix_of(robot, q)
    size = mass_matrix_size(robot, q)
    bias = recursive_newton_euler.inverse(robot, q, v, 0.0 * v, wrenches)
    try:
        return solve_prescribed(robot, H, bias, tau, prescribed, size)
    except InvalidValue:
        refuse_undefined(robot, prescribed)
        raise


def _inverse_by_mass_matrix(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None
) -> Array:
    """Return H v̇ + C v + gravity - Σ Jᵀ W."""
    moved = vector.apply(mass_matrix_of(robot, q), vdot)
    turned = vector.apply(coriolis_matrix_of(robot, q, v), v)
    return moved + turned + recursive_newton_euler.inverse(robot, q, 0.0 * v, 0.0 * vdot, wrenches)


def _maximal(solve: Callable[..., Solution]) -> Hybrid:
    def hybrid(
        robot: Robot,
        q: Array,
        v: Array,
        tau: Array,
        wrenches: Array | None,
        prescribed: Mapping[int, Array],
    ) -> tuple[Array, Array]:
        solution = solve(robot, q, v, tau, wrenches, prescribed)
        return solution.vdot, solution.tau

    return hybrid


#: Every formulation, by name. The maximal ones find every reaction too.
FORMULATIONS: Table[str, Formulation] = Table({
    "articulated": Formulation(articulated.hybrid, None),
    "recursive": Formulation(None, recursive_newton_euler.inverse, followers=True),
    "composite": Formulation(
        _by_mass_matrix, _inverse_by_mass_matrix, mass_matrix_of, coriolis_matrix_of, followers=True
    ),
    "newton_euler": Formulation(_maximal(newton_euler.solve_maximal), newton_euler.inverse_maximal),
    "decoupled": Formulation(_maximal(decoupled.solve_decoupled), decoupled.inverse_decoupled),
    "image_space": Formulation(
        _maximal(image_space.solve_image_space), image_space.inverse_image_space
    ),
    "lagrangian": Formulation(
        lagrangian.hybrid,
        lagrangian.inverse,
        matrices.mass_matrix_of,
        matrices.coriolis_matrix_of,
        followers=True,
    ),
    "euler_angles": Formulation(euler_angles.hybrid, euler_angles.inverse, followers=True),
})  # fmt: skip

#: The formulations that find every reaction together with the accelerations.
MAXIMAL: dict[str, Callable[..., Solution]] = {
    "newton_euler": newton_euler.solve_maximal,
    "decoupled": decoupled.solve_decoupled,
    "image_space": image_space.solve_image_space,
}


def usual_formulation(robot: Robot) -> str:
    """Return the formulation of forward dynamics that a robot gets unless told otherwise.

    The first of the table that takes all of its joints: `articulated`, and with joints that mimic
    others `composite`.
    """
    follows = any(joint.mimic is not None for joint in robot.joints)
    able = (name for name, row in FORMULATIONS.items() if row.hybrid is not None)
    return next(name for name in able if FORMULATIONS[name].followers or not follows)


@takes_robot
@needs_dynamics
def forward_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    formulation: str | None = None,
) -> Array:
    """Return vdot `(..., nv)`, the rate of v that the forces make: H v̇ + C v = τ + Σ JᵀW + gravity.

    Args:
        robot: the robot; its rotor inertias count, its friction does not (see `passive_forces`).
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`; on a free base [torque, force] in body axes.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: a row of FORMULATIONS with `hybrid`: `articulated` O(n), `composite`,
            `newton_euler` [VT18], `decoupled`, `image_space` [DM93], `lagrangian` [FPG11]
            or `euler_angles`; default: the one that suits the robot, see `usual_formulation`.
    """
    return hybrid_dynamics(robot, q, v, tau, {}, wrenches, formulation)[0]


@takes_robot
@needs_dynamics
def inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    wrenches: ArrayLike | None = None,
    formulation: str = "recursive",
) -> Array:
    """Return the generalized forces tau `(..., nv)` that make the accelerations vdot.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: a row of FORMULATIONS with `inverse`: `recursive` O(n), `composite`,
            `newton_euler` [VT18], `decoupled`, `image_space` [DM93], `lagrangian` [FPG11]
            or `euler_angles`.
    """
    able = {name: row.inverse for name, row in FORMULATIONS.items() if row.inverse is not None}
    if formulation not in able:
        raise UnknownName("formulation of inverse dynamics", formulation, able)
    q, v, vdot, w = checked_arguments(robot, q, v, vdot, wrenches, "vdot")
    return finite_result(able[formulation](robot, q, v, vdot, w))


@takes_robot
@needs_dynamics
def hybrid_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    prescribed: Mapping[str, ArrayLike],
    wrenches: ArrayLike | None = None,
    formulation: str | None = None,
) -> tuple[Array, Array]:
    """Return vdot and tau where some joints follow given accelerations [VT18, eqs. 61-76].

    A joint that follows q(t) has its acceleration prescribed (and its q and v as q(t) says); a
    locked one has it zero. What comes out in `tau` for those joints is the actuation they need.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`, of the prescribed joints too.
        tau: generalized forces, `(..., nv)`; not looked at where prescribed.
        prescribed: acceleration by name of the joint: a number for one degree of freedom, else
            `(..., nv_i)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: a row of FORMULATIONS with `hybrid`: `articulated` O(n), `composite`,
            `newton_euler` [VT18], `decoupled`, `image_space` [DM93], `lagrangian` [FPG11]
            or `euler_angles`; default: the one that suits the robot, see `usual_formulation`.
    """
    formulation = usual_formulation(robot) if formulation is None else formulation
    able = {name: row.hybrid for name, row in FORMULATIONS.items() if row.hybrid is not None}
    if formulation not in able:
        raise UnknownName("formulation of forward dynamics", formulation, able)
    q, v, tau, w = checked_arguments(robot, q, v, tau, wrenches, "tau")
    given = prescribed_by_index(robot, prescribed, q.shape[:-1])
    if is_symbolic(q) or is_symbolic(v):
        refuse_undefined(robot, given)
    vdot, found = able[formulation](robot, q, v, tau, w, given)
    return finite_result(vdot), finite_result(found)


@takes_robot
@needs_dynamics
def newton_euler_solution(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    prescribed: Mapping[str, ArrayLike] | None = None,
    formulation: str = "newton_euler",
) -> Solution:
    """Return everything a maximal formulation finds: all bodies' accelerations, all reactions.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        prescribed: accelerations of joints that follow a given motion, by name.
        formulation: `newton_euler` [VT18], `decoupled` or `image_space` [DM93].
    """
    if formulation not in MAXIMAL:
        raise UnknownName("maximal formulation", formulation, MAXIMAL)
    q, v, tau, w = checked_arguments(robot, q, v, tau, wrenches, "tau")
    given = prescribed_by_index(robot, prescribed or {}, q.shape[:-1])
    return Solution(*map(finite_result, MAXIMAL[formulation](robot, q, v, tau, w, given)))


@takes_robot
@needs_dynamics
def reaction_wrenches(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    formulation: str | None = None,
) -> Array:
    """Return the constraint's wrench [f, τ] on body i through joint i, `(..., nj, 6)`.

    In body i's frame, about its origin. It does no work on the joint's freedoms; with the
    actuation wrench V_act τ_i added it is the whole load on the joint. (Of τ_i, a rotor keeps
    what its own acceleration needs; and of joints that mimic one another the force between them,
    which no tau tells, is left out of the reaction too.)

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: what finds the accelerations; the maximal ones find the reactions with them.
            Default: the one that suits the robot.
    """
    if formulation in MAXIMAL:
        solution = newton_euler_solution(robot, q, v, tau, wrenches, formulation=formulation)
        return solution.reactions
    vdot = forward_dynamics(robot, q, v, tau, wrenches, formulation)
    q, v, vdot, w = checked_arguments(robot, q, v, vdot, wrenches, "vdot")
    reactions: list[Array] = []
    loads = recursive_newton_euler.joint_loads(robot, q, v, vdot, w)
    for joint, (W, _) in zip(robot.joints, loads, strict=True):
        force = vector.apply(vector.transpose(motion_screws(joint, q)), dual_quaternion.swap(W))
        reactions.append(W - vector.apply(actuation_basis(joint, q), force))
    return with_batch(stack(reactions, axis=-2), batch_shape(q, v, vdot), trailing=2)


@takes_robot
@needs_dynamics
def mass_matrix(robot: Robot, q: ArrayLike, formulation: str = "composite") -> Array:
    """Return H `(..., nv, nv)`, symmetric and positive definite: kinetic energy ½ vᵀ H v.

    Args:
        robot: the robot; rotor inertias are on the diagonal.
        q: configuration, `(..., nq)`.
        formulation: `composite`, or `lagrangian` [FPG11, eqs. 9-11].
    """
    able = {n: row.mass_matrix for n, row in FORMULATIONS.items() if row.mass_matrix is not None}
    if formulation not in able:
        raise UnknownName("formulation of the mass matrix", formulation, able)
    return able[formulation](robot, configuration(robot, q))


@takes_robot
@needs_dynamics
def coriolis_matrix(
    robot: Robot, q: ArrayLike, v: ArrayLike, formulation: str = "composite"
) -> Array:
    """Return C `(..., nv, nv)` with C v the velocity-dependent forces.

    vᵀ(Ḣ - 2C)v = 0 always; by default Ḣ - 2C is skew-symmetric, too. FPG11's C is not the same
    matrix, and for it only the former holds.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        formulation: `composite`, or `lagrangian` [FPG11, eq. 26, corrected].
    """
    able = {
        n: row.coriolis_matrix for n, row in FORMULATIONS.items() if row.coriolis_matrix is not None
    }
    if formulation not in able:
        raise UnknownName("formulation of the Coriolis matrix", formulation, able)
    return able[formulation](robot, configuration(robot, q), velocity(robot, v))


@takes_robot
@needs_dynamics
def bias_force(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return C v and gravity's share, `(..., nv)`: the tau at which v̇ = 0.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    return recursive_newton_euler.inverse(robot, q, v, 0.0 * v, None)


def prescribed_by_index(
    robot: Robot, prescribed: Mapping[str, ArrayLike], batch: tuple[int, ...]
) -> dict[int, Array]:
    """Return prescribed accelerations by index of the joint, each `(..., nv_i)`, or raise."""
    result: dict[int, Array] = {}
    for name, value in prescribed.items():
        i = robot.joint_index(name)
        joint, nv = robot.joints[i], kind(robot.joints[i]).nv
        if joint.mimic is not None:
            leader = robot.joints[joint.mimic.joint].name
            raise RemoraError(f"joint {name!r} mimics {leader!r}: prescribe that one")
        what = f"the prescribed acceleration of joint {name!r}"
        array = finite(what, value)
        if nv == 1 and array.ndim <= len(batch):  # one number for every state
            array = array[..., None]
        array = finite(what, array, nv)
        if not set(array.shape[:-1]) <= {1, *batch} or array.ndim > len(batch) + 1:
            raise ShapeError(f"{what} has batch shape {array.shape[:-1]}, the state {batch}")
        result[i] = array
    return result


def finite_result(result: Array) -> Array:
    """Return a result, or raise where the numbers were too large for it."""
    if not is_symbolic(result) and not np.all(np.isfinite(result)):
        raise InvalidValue("the result is not finite: velocities or forces are too large")
    return result


def checked_arguments(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    third: ArrayLike,
    wrenches: ArrayLike | None,
    name: str,
) -> tuple[Array, Array, Array, Array | None]:
    """Return the arguments checked, with one batch shape."""
    q, v, third = configuration(robot, q), velocity(robot, v), velocity(robot, third, name)
    w = None if wrenches is None else finite("wrenches", wrenches, len(robot.bodies), 6)
    batch = batch_shape(q, v, third)
    if w is not None:
        batch = batch_shape(q, v, third, w[..., 0, :])
    return with_batch(q, batch, 1), with_batch(v, batch, 1), with_batch(third, batch, 1), w
