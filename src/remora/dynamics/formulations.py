"""One table of formulations, one signature, and the functions that users call.

A formulation is a way to compute the same thing. Choose by name; see docs/formulations.md for what
each gives, costs and cannot do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from remora.algebra import dual_quaternion, linear, vector
from remora.algebra.namespace import Array, ArrayLike, stack
from remora.dynamics import articulated, decoupled, newton_euler, recursive
from remora.dynamics.composite import mass_matrix_of
from remora.dynamics.coriolis import coriolis_matrix_of
from remora.dynamics.motion import batch_shape, moving_links, with_batch
from remora.dynamics.newton_euler import Solution
from remora.errors import RemoraError, UnknownName
from remora.model.joints import actuation_basis, kind
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.validate import finite

Forward = Callable[[Robot, Array, Array, Array, Array | None], Array]
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
        cost: how it grows with the number of bodies n.
    """

    hybrid: Hybrid | None
    inverse: Inverse | None
    cost: str


def _by_mass_matrix(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None,
    prescribed: Mapping[int, Array],
) -> tuple[Array, Array]:
    """Solve H v̇ = τ - bias for the joints that are free, H v̇ + bias for the others' forces."""
    H = mass_matrix_of(robot, q)
    zero = 0.0 * v
    bias = recursive.inverse(robot, q, v, zero, wrenches)
    held = [i for j in prescribed for i in range(robot.nv)[robot.joints[j].v]]
    free = [i for i in range(robot.nv) if i not in held]
    batch = batch_shape(q, v, tau, bias)
    values = [with_batch(prescribed[j], batch, trailing=1) for j in prescribed]
    given = {
        place: values[k][..., n]
        for k, j in enumerate(prescribed)
        for n, place in enumerate(range(robot.nv)[robot.joints[j].v])
    }
    rest = tau - bias
    if given:
        known = stack([given[i] for i in held])
        rest = rest - vector.apply(H[..., :, held], known)
    entries: dict[int, Array] = dict(given)
    if free:
        right = stack([rest[..., i] for i in free])
        found = linear.solve(H[..., free, :][..., :, free], right[..., None])[..., 0]
        entries |= {place: found[..., n] for n, place in enumerate(free)}
    vdot = with_batch(stack([entries[i] for i in range(robot.nv)]), batch, trailing=1)
    if not held:
        return vdot, with_batch(tau, batch, trailing=1)
    force = vector.apply(H, vdot) + bias
    parts = [force[..., i] if i in given else tau[..., i] for i in range(robot.nv)]
    return vdot, with_batch(stack(parts), batch, trailing=1)


def _inverse_by_mass_matrix(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None
) -> Array:
    """Return H v̇ + C v + gravity - Σ Jᵀ W."""
    moved = vector.apply(mass_matrix_of(robot, q), vdot)
    turned = vector.apply(coriolis_matrix_of(robot, q, v), v)
    return moved + turned + recursive.inverse(robot, q, 0.0 * v, 0.0 * vdot, wrenches)


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


FORMULATIONS: dict[str, Formulation] = {
    "articulated": Formulation(articulated.hybrid, None, "n"),
    "recursive": Formulation(None, recursive.inverse, "n"),
    "composite": Formulation(_by_mass_matrix, _inverse_by_mass_matrix, "n³"),
    "newton_euler": Formulation(
        _maximal(newton_euler.solve_maximal), newton_euler.inverse_maximal, "n, every reaction"
    ),
    "decoupled": Formulation(
        _maximal(decoupled.solve_decoupled), decoupled.inverse_decoupled, "n, every reaction"
    ),
}


def forward_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    formulation: str = "articulated",
) -> Array:
    """Return vdot `(..., nv)`, the rate of v that the forces make: H v̇ + C v = τ + Σ JᵀW + gravity.

    Args:
        robot: the robot; its rotor inertias count, its friction does not (see `passive_forces`).
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`; on a free base [torque, force] in body axes.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: `articulated` O(n), `composite`, `newton_euler` [VT18] or `decoupled`.
    """
    hybrid = _row("forward dynamics", formulation, "hybrid").hybrid
    assert hybrid is not None
    q, v, tau, w = _arguments(robot, q, v, tau, wrenches, "tau")
    return hybrid(robot, q, v, tau, w, {})[0]


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
        formulation: `recursive` O(n), `composite`, `newton_euler` [VT18] or `decoupled`.
    """
    inverse = _row("inverse dynamics", formulation, "inverse").inverse
    assert inverse is not None
    q, v, vdot, w = _arguments(robot, q, v, vdot, wrenches, "vdot")
    return inverse(robot, q, v, vdot, w)


def hybrid_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    prescribed: Mapping[str, ArrayLike],
    wrenches: ArrayLike | None = None,
    formulation: str = "articulated",
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
        formulation: `articulated` O(n), `composite`, `newton_euler` [VT18] or `decoupled`.
    """
    hybrid = _row("forward dynamics", formulation, "hybrid").hybrid
    assert hybrid is not None
    q, v, tau, w = _arguments(robot, q, v, tau, wrenches, "tau")
    return hybrid(robot, q, v, tau, w, held(robot, prescribed))


def newton_euler_solution(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    prescribed: Mapping[str, ArrayLike] | None = None,
    formulation: str = "newton_euler",
) -> Solution:
    """Return everything VT18's framework finds: accelerations of all bodies and all reactions.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        prescribed: accelerations of joints that follow a given motion, by name.
        formulation: `newton_euler` [VT18] or `decoupled`.
    """
    solvers = {"newton_euler": newton_euler.solve_maximal, "decoupled": decoupled.solve_decoupled}
    if formulation not in solvers:
        raise UnknownName("maximal formulation", formulation, solvers)
    q, v, tau, w = _arguments(robot, q, v, tau, wrenches, "tau")
    return solvers[formulation](robot, q, v, tau, w, held(robot, prescribed or {}))


def reaction_wrenches(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    formulation: str = "articulated",
) -> Array:
    """Return the constraint's wrench [f, τ] on body i through joint i, `(..., nj, 6)`.

    In body i's frame, about its origin. It does no work on the joint's freedoms; with the
    actuation wrench V_act τ_i added it is the whole load on the joint (of τ_i, a rotor keeps
    what its own acceleration needs).

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        formulation: what finds the accelerations; `newton_euler` finds the reactions with them.
    """
    if formulation in ("newton_euler", "decoupled"):
        solution = newton_euler_solution(robot, q, v, tau, wrenches, formulation=formulation)
        return solution.reactions
    vdot = forward_dynamics(robot, q, v, tau, wrenches, formulation)
    q, v, vdot, w = _arguments(robot, q, v, vdot, wrenches, "vdot")
    links = moving_links(robot, q, v)
    reactions: list[Array] = []
    loads = recursive.joint_loads(robot, links, vdot, w)
    for joint, link, load in zip(robot.joints, links, loads, strict=True):
        force = vector.apply(vector.transpose(link.S), dual_quaternion.swap(load))
        reactions.append(load - vector.apply(actuation_basis(joint, q), force))
    return with_batch(stack(reactions, axis=-2), batch_shape(q, v, vdot), trailing=2)


def mass_matrix(robot: Robot, q: ArrayLike) -> Array:
    """Return H `(..., nv, nv)`, symmetric and positive definite: kinetic energy ½ vᵀ H v.

    Args:
        robot: the robot; rotor inertias are on the diagonal.
        q: configuration, `(..., nq)`.
    """
    return mass_matrix_of(robot, configuration(robot, q))


def coriolis_matrix(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return C `(..., nv, nv)` with Ḣ - 2C skew-symmetric and C v the velocity-dependent forces.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    return coriolis_matrix_of(robot, configuration(robot, q), velocity(robot, v))


def bias_force(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return C v and gravity's share, `(..., nv)`: the tau at which v̇ = 0.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    return recursive.inverse(robot, q, v, 0.0 * v, None)


def held(robot: Robot, prescribed: Mapping[str, ArrayLike]) -> dict[int, Array]:
    """Return prescribed accelerations by index of the joint, each `(..., nv_i)`, or raise."""
    result: dict[int, Array] = {}
    for name, value in prescribed.items():
        i = robot.joint_index(name)
        joint, nv = robot.joints[i], kind(robot.joints[i]).nv
        if joint.mimic is not None:
            leader = robot.joints[joint.mimic.joint].name
            raise RemoraError(f"joint {name!r} mimics {leader!r}: prescribe that one")
        array = finite(f"the prescribed acceleration of joint {name!r}", value)
        if nv == 1 and (array.ndim == 0 or array.shape[-1] != 1):
            array = array[..., None]
        result[i] = finite(f"the prescribed acceleration of joint {name!r}", array, nv)
    return result


def _row(what: str, name: str, field: str) -> Formulation:
    able = [key for key, row in FORMULATIONS.items() if getattr(row, field) is not None]
    if name not in able:
        raise UnknownName(f"formulation of {what}", name, able)
    return FORMULATIONS[name]


def _arguments(
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
