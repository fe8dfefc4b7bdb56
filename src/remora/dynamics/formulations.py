"""The table of dynamics formulations, and the public functions that dispatch to it.

All formulations compute the same quantities by different algorithms. Choose one by name;
docs/formulations.md lists the results, cost and limitations of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from remora.algebra import dual_quaternion, vector
from remora.algebra.array_ops import Array, ArrayLike, is_symbolic, stack
from remora.dynamics.constraints import articulated_loops, dense_loops
from remora.dynamics.constraints.actuation import smallest_forces
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.constraints.reactions import loop_loads
from remora.dynamics.joint_arrays import (
    LoadedState,
    batch_shape,
    checked_arguments,
    prescribed_by_index,
    with_batch,
)
from remora.dynamics.lagrangian import euler_angles, lagrange_equations
from remora.dynamics.maximal import decoupled, image_space, newton_euler
from remora.dynamics.maximal.joint_maps import MaximalSolution
from remora.dynamics.prescribed_solve import solve_prescribed
from remora.dynamics.recursive import articulated_body, recursive_newton_euler
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_of, mass_matrix_size
from remora.dynamics.recursive.coriolis import coriolis_matrix_of
from remora.dynamics.refusals import (
    finite_result,
    needs_dynamics,
    refuse_constraints,
    refuse_undefined,
)
from remora.errors import InvalidValue, UnknownName
from remora.identity.table import Table
from remora.model.joints import actuation_basis, motion_subspace
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot

Hybrid = Callable[[Robot, LoadedState], tuple[Array, Array]]
Constrained = Callable[[Robot, LoadedState], tuple[Array, Array, Array]]
Inverse = Callable[[Robot, Array, Array, Array, Array | None], Array]


@dataclass(frozen=True)
class Formulation:
    """A row of the table.

    Attributes:
        hybrid: forward dynamics with any joints prescribed -> vdot, tau; None if not available.
        inverse: inverse dynamics -> tau; None if not available.
        mass_matrix: (robot, q) -> H; None if not available.
        coriolis_matrix: (robot, q, v) -> C; None if not available.
        followers: whether it supports mimic joints.
        constrained: `hybrid` with active constraints -> vdot, tau, multipliers; None if not
            available.
    """

    hybrid: Hybrid | None
    inverse: Inverse | None
    mass_matrix: Callable[[Robot, Array], Array] | None = None
    coriolis_matrix: Callable[[Robot, Array, Array], Array] | None = None
    followers: bool = False
    constrained: Constrained | None = None


def _by_mass_matrix(robot: Robot, state: LoadedState) -> tuple[Array, Array]:
    """Solve H v̇ = τ - bias for joints not prescribed; H v̇ + bias is the others' force."""
    q, v, tau, wrenches, prescribed = state
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


#: The formulations that compute all reactions together with the accelerations.
MAXIMAL: dict[str, Callable[[Robot, LoadedState], MaximalSolution]] = {
    "newton_euler": newton_euler.solve_maximal,
    "decoupled": decoupled.solve_decoupled,
    "image_space": image_space.solve_image_space,
}


def _maximal(formulation: str) -> Hybrid:
    def hybrid(robot: Robot, state: LoadedState) -> tuple[Array, Array]:
        solution = MAXIMAL[formulation](robot, state)
        return solution.vdot, solution.tau

    return hybrid


#: Those that take active constraints, with their multipliers.
CLOSED_MAXIMAL: dict[str, Callable[[Robot, LoadedState], tuple[MaximalSolution, Array]]] = {
    "newton_euler": newton_euler.solve_closed,
    "image_space": image_space.solve_closed,
}


def _closed_maximal(formulation: str) -> Constrained:
    def constrained(robot: Robot, state: LoadedState) -> tuple[Array, Array, Array]:
        solution, multipliers = CLOSED_MAXIMAL[formulation](robot, state)
        return solution.vdot, solution.tau, multipliers

    return constrained


#: All formulations, by name. The maximal-coordinate ones also compute joint reactions.
FORMULATIONS: Table[str, Formulation] = Table({
    "articulated": Formulation(
        articulated_body.hybrid, None, constrained=articulated_loops.hybrid
    ),
    "recursive": Formulation(None, recursive_newton_euler.inverse, followers=True),
    "composite": Formulation(
        _by_mass_matrix, _inverse_by_mass_matrix, mass_matrix_of, coriolis_matrix_of,
        followers=True, constrained=dense_loops.hybrid,
    ),
    "newton_euler": Formulation(
        _maximal("newton_euler"),
        newton_euler.inverse_maximal,
        constrained=_closed_maximal("newton_euler"),
    ),
    "decoupled": Formulation(_maximal("decoupled"), decoupled.inverse_decoupled),
    "image_space": Formulation(
        _maximal("image_space"),
        image_space.inverse_image_space,
        constrained=_closed_maximal("image_space"),
    ),
    "lagrangian": Formulation(
        lagrange_equations.hybrid,
        lagrange_equations.inverse,
        lagrange_equations.mass_matrix_of,
        lagrange_equations.coriolis_matrix_of,
        followers=True,
    ),
    "euler_angles": Formulation(euler_angles.hybrid, euler_angles.inverse, followers=True),
})  # fmt: skip


def usual_formulation(robot: Robot) -> str:
    """Return the default formulation of forward dynamics for a robot.

    The first row of the table that supports all of its joints: `articulated` (ABA), or `composite`
    (CRBA) if there are mimic joints.
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
    """Return the accelerations vdot `(..., nv)` of H v̇ + C v = τ + Σ JᵀW + gravity + Gᵀλ.

    Gᵀλ are the forces of the robot's active constraints, G v̇ = γ.

    Args:
        robot: the robot; rotor inertias are included, friction is not (see `friction_forces`).
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`; on a free base [torque, force] in body axes.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: a row of FORMULATIONS with `hybrid`: `articulated` O(n), `composite`,
            `newton_euler` [VT18], `decoupled`, `image_space` [DM93], `lagrangian` [FPG11]
            or `euler_angles`; default: the one that suits the robot, see `usual_formulation`.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.random_state(robot, seed=0)
        >>> vdot = rm.forward_dynamics(robot, q, v, np.zeros(robot.nv))
        >>> np.allclose(rm.inverse_dynamics(robot, q, v, vdot), 0.0, atol=1e-9)
        True
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
    """Return the generalized forces tau `(..., nv)` for the accelerations vdot.

    With active constraints, those of smallest Euclidean norm in SI units: what the constraints
    carry is taken off. For weights and passive joints see `constrained_inverse_dynamics`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: a row of FORMULATIONS with `inverse`: `recursive` O(n), `composite`,
            `newton_euler` [VT18], `decoupled`, `image_space` [DM93], `lagrangian` [FPG11]
            or `euler_angles`.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.random_state(robot, seed=0)
        >>> tau = rm.inverse_dynamics(robot, q, v, np.zeros(robot.nv))
        >>> np.allclose(tau, rm.bias_force(robot, q, v))
        True
    """
    able = {name: row.inverse for name, row in FORMULATIONS.items() if row.inverse is not None}
    if formulation not in able:
        raise UnknownName("formulation of inverse dynamics", formulation, able)
    q, v, vdot, w = checked_arguments(robot, q, v, vdot, wrenches, "vdot")
    needed = able[formulation](robot, q, v, vdot, w)
    return finite_result(smallest_forces(robot, q, needed))


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
    """Return vdot and tau with prescribed accelerations of some joints [VT18, eqs. 61-76].

    A joint that follows a trajectory q(t) has its acceleration prescribed, and its q and v taken
    from q(t). A locked joint has zero acceleration. For these joints, `tau` returns the actuation
    they require.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`, including the prescribed joints.
        tau: generalized forces, `(..., nv)`; ignored for prescribed joints.
        prescribed: acceleration by joint name: a number for one degree of freedom, else
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
    state = _checked(robot, q, v, tau, wrenches, prescribed)
    if is_symbolic(state.q) or is_symbolic(state.v):
        refuse_undefined(robot, state.prescribed)
    solve = _constrained(robot, formulation) if active_constraints(robot) else able[formulation]
    vdot, force = solve(robot, state)[:2]
    return finite_result(vdot), finite_result(force)


def _checked(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None,
    prescribed: Mapping[str, ArrayLike] | None = None,
) -> LoadedState:
    """Return the arguments of forward and hybrid dynamics, checked."""
    state = LoadedState(*checked_arguments(robot, q, v, tau, wrenches, "tau"))
    return state._replace(prescribed=prescribed_by_index(robot, prescribed or {}, state.batch))


def _constrained(robot: Robot, formulation: str) -> Constrained:
    """Return a formulation's function for active constraints, or raise if it has none."""
    solve = FORMULATIONS[formulation].constrained
    if solve is None:
        able = [repr(name) for name, row in FORMULATIONS.items() if row.constrained is not None]
        refuse_constraints(
            robot, f"the formulation {formulation!r}", f"use formulation={' or '.join(able)}"
        )
    assert solve is not None
    return solve


@takes_robot
@needs_dynamics
def newton_euler_solution(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    prescribed: Mapping[str, ArrayLike] | None = None,
) -> MaximalSolution:
    """Return the solution of VT18's system: accelerations of all bodies and all reactions.

    For the reactions by another formulation see `reaction_wrenches`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        prescribed: accelerations of joints with prescribed motion, by name.
    """
    state = _checked(robot, q, v, tau, wrenches, prescribed)
    if active_constraints(robot):
        solution = newton_euler.solve_closed(robot, state)[0]
    else:
        solution = newton_euler.solve_maximal(robot, state)
    return MaximalSolution(*map(finite_result, solution))


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

    In body i's frame, about its origin. It does no work along the joint's degrees of freedom; the
    total load on the joint is its sum with the actuation wrench V_act τ_i. (The part of τ_i that
    accelerates the rotor does not reach the joint. The force between a mimic joint and its leader
    is not part of tau and is not included in the reaction, nor is that of a gear.) For the wrenches
    of constraints see `constraint_wrenches`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: used for the accelerations; the maximal ones compute the reactions directly.
            Default: see `usual_formulation`.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.random_state(robot, seed=0)
        >>> loads = rm.reaction_wrenches(robot, q, v, np.zeros(robot.nv))
        >>> loads.shape == (len(robot.joints), 6)
        True
        >>> np.allclose(loads[0], 0.0)  # nothing constrains the free base
        True
    """
    closed = bool(active_constraints(robot))
    if formulation is not None and formulation in (CLOSED_MAXIMAL if closed else MAXIMAL):
        state = _checked(robot, q, v, tau, wrenches)
        if closed:
            return finite_result(CLOSED_MAXIMAL[formulation](robot, state)[0].reactions)
        return finite_result(MAXIMAL[formulation](robot, state).reactions)
    if closed:
        formulation = usual_formulation(robot) if formulation is None else formulation
        solve = _constrained(robot, formulation)
        state = _checked(robot, q, v, tau, wrenches)
        vdot, _, lam = map(finite_result, solve(robot, state))
        loads = loop_loads(robot, state.q, lam)
        wrenches = loads if state.wrenches is None else state.wrenches + loads
    else:
        vdot = forward_dynamics(robot, q, v, tau, wrenches, formulation)
    q, v, vdot, w = checked_arguments(robot, q, v, vdot, wrenches, "vdot")
    reactions: list[Array] = []
    loads = recursive_newton_euler.joint_loads(robot, q, v, vdot, w)
    for joint, (W, _) in zip(robot.joints, loads, strict=True):
        force = vector.apply(vector.transpose(motion_subspace(joint, q)), dual_quaternion.swap(W))
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

    vᵀ(Ḣ - 2C)v = 0 always. By default Ḣ - 2C is also skew-symmetric; for FPG11's C, a different
    matrix, it is not.

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
    """Return the bias force `(..., nv)`: C v and gravity, the tau at which v̇ = 0.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    return recursive_newton_euler.inverse(robot, q, v, 0.0 * v, None)


#: Names by which users of Pinocchio know them: the articulated-body algorithm, the recursive
#: Newton-Euler algorithm, and the composite-rigid-body algorithm.
aba, rnea, crba = forward_dynamics, inverse_dynamics, mass_matrix
