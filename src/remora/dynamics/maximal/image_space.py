"""DM93's image-space formulation: eight coordinates per body, constraints with multipliers.

    [M Φᵀ; Φ 0] [Q̈; λ] = [F + h; γ]    [DM93, eqs. 23, 30]

Q_i = (q, q_o) is the pose of body i's centre of mass in the inertial frame, q_o = ½ d q. In
quaternion products, with ω' = 2 q* q̇ in body axes and d = 2 q_o q* in inertial axes [eqs. 8-11]:

    M Q̈ - h = Ψᵀ m d̈ + Ωᵀ(J' ω̇' + ω' × J' ω'),    F = Ψᵀ R + Ωᵀ n' = (2 q n' - 2 R q_o, 2 R q)

(without a part along q, which the unit condition's multiplier balances). M is singular. Bordered
with the two unit conditions Φ_u = [qᵀ 0; q_oᵀ qᵀ] it is not: the ten equations of a body have a
closed-form inverse, on and off the manifold. With s = q·q,

    [M Φ_uᵀ; Φ_u 0]⁻¹ = [W diag(J', m 1)⁻¹ Wᵀ/s²  N; Nᵀ  diag(0, -4m)],

where the columns of W are the rates Q̇ of unit ω' and ḋ, and N = [q 0; -q_o q]/s. The joints'
equations couple the bodies, and those of the active constraints close the chains; see
`image_rows`. [DM93] prints [Ġ][J'][Ġ]ᵀ in eq. 25 for
[Ġ]ᵀ[J'][Ġ] and takes ω' with the matrix of the inertial frame: docs/dm93.md lists what is
corrected here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import linear, pose, quaternion, vector
from remora.algebra.array_ops import Array, asarray, concatenate, stack
from remora.dynamics.constraints.contradictions import satisfying
from remora.dynamics.joint_arrays import LoadedState, batch_shape, gather, with_batch
from remora.dynamics.maximal import saddle_point
from remora.dynamics.maximal.image_rows import (
    ClosingRows,
    JointRows,
    closing_rows,
    joint_rows,
    loop_rows,
    padded,
    rate_of,
)
from remora.dynamics.maximal.joint_maps import (
    MaximalSolution,
    constraint,
    mass_properties,
    refuse_unfit,
)
from remora.dynamics.maximal.saddle_point import LoopRows
from remora.dynamics.recursive import articulated_body
from remora.dynamics.recursive.outward_pass import accelerations_of, moving_links
from remora.model import joints
from remora.model.robot import Robot

_apply, _T, _mul, _conjugate = vector.apply, vector.transpose, quaternion.mul, quaternion.conjugate


class BodyEquations(NamedTuple):
    """The ten equations of one body, [M Φ_uᵀ; Φ_u 0] [Q̈; μ] = [F + h; γ_u].

    Attributes:
        mass: m [kg].
        inertia: J' about the centre of mass, body axes, `(..., 3, 3)`.
        Q: the body's coordinates, `(..., 8)`.
        h: `(..., 8)` [DM93, eq. 25, corrected].
        F: generalized forces of gravity and external wrenches, `(..., 8)` [DM93, eq. 21].
        unit_rate: γ_u = -(q̇·q̇, 2 q̇·q̇_o), `(..., 2)`.
    """

    mass: Array
    inertia: Array
    Q: Array
    h: Array
    F: Array
    unit_rate: Array

    @property
    def M(self) -> Array:
        """The mass matrix Ψᵀ m Ψ + Ωᵀ J' Ω, `(..., 8, 8)`, of rank 7 [DM93, eq. 24]."""
        q, q_o = self.Q[..., :4], self.Q[..., 4:]
        E, G = _T(quaternion.left(q)), quaternion.right(_conjugate(q))
        G_o = quaternion.left(q_o) * np.array([1.0, -1.0, -1.0, -1.0])
        psi = 2.0 * concatenate([G_o, G])
        omega = 2.0 * concatenate([E, np.zeros_like(E)])
        moved = self.mass[..., None, None] * (_T(psi) @ psi)
        return moved + _T(omega) @ (_extended(self.inertia) @ omega)

    @property
    def unit(self) -> Array:
        """Φ_u `(..., 2, 8)`, of the conditions ½(q·q - 1) = 0 and q·q_o = 0 [DM93, eqs. 3, 4]."""
        return unit_rows(self.Q)

    @property
    def inverse(self) -> Array:
        """The inverse of [M Φ_uᵀ; Φ_u 0] in closed form, `(..., 10, 10)`."""
        q, q_o, m = self.Q[..., :4], self.Q[..., 4:], self.mass[..., None]
        s = vector.dot(q, q)
        W = motions(self.Q)
        turn, shift = W[..., :3] / s[..., None], W[..., 3:] / s[..., None]
        K = turn @ linear.inverse(self.inertia) @ _T(turn) + shift @ _T(shift) / m[..., None]
        N = stack([concatenate([q, -q_o]) / s, concatenate([np.zeros_like(q), q]) / s])
        corner = asarray([[0.0, 0.0], [0.0, -4.0]]) * m[..., None]
        return concatenate([concatenate([K, N]), concatenate([_T(N), corner])], trailing=2)


def coordinates_of(robot: Robot, q: Array) -> list[Array]:
    """Return Q of every body, `(..., 8)`: the pose of its centre of mass, inertial frame."""
    frames: list[Array] = []
    for joint in robot.joints:
        own = joints.relative_pose(joint, q)
        frames.append(own if joint.parent < 0 else dq.mul(frames[joint.parent], own))
    return [
        dq.mul(x, pose.from_translation(body.com))
        for x, body in zip(frames, robot.bodies, strict=True)
    ]


def rates_of(robot: Robot, Q: list[Array], twists: list[Array]) -> list[Array]:
    """Return Q̇ = ½ Q ω of every body from its twist in its own frame [VT18, eq. 45]."""
    result: list[Array] = []
    for body, own, twist in zip(robot.bodies, Q, twists, strict=True):
        omega, v = twist[..., :3], twist[..., 3:]
        at_com = concatenate([omega, v + vector.cross(omega, body.com)])
        result.append(0.5 * dq.mul(own, dq.pure(at_com)))
    return result


def body_equations(
    mass: Array, inertia: Array, Q: Array, Q_rate: Array, force: Array, torque: Array
) -> BodyEquations:
    """Return the ten equations of a body.

    Args:
        mass: [kg].
        inertia: J' about the centre of mass, body axes, `(..., 3, 3)`.
        Q: `(..., 8)`.
        Q_rate: Q̇, `(..., 8)`.
        force: R, inertial axes, `(..., 3)`.
        torque: n' about the centre of mass, body axes, `(..., 3)`.
    """
    q, q_o, dq_, dq_o = Q[..., :4], Q[..., 4:], Q_rate[..., :4], Q_rate[..., 4:]
    m = asarray(mass)[..., None]
    turned = _apply(inertia, _mul(_conjugate(dq_), q)[..., 1:])
    c = _mul(dq_o, _conjugate(dq_))
    h = concatenate(
        [
            8.0 * _mul(dq_, quaternion.pure(turned)) - 8.0 * m * _mul(_conjugate(c), q_o),
            -8.0 * m * _mul(c, q),
        ]
    )
    unit_rate = -concatenate([vector.dot(dq_, dq_), 2.0 * vector.dot(dq_, dq_o)])
    F = generalized_force(Q, force, torque)
    return BodyEquations(asarray(mass), asarray(inertia), Q, h, F, unit_rate)


def generalized_force(Q: Array, force: Array, torque: Array) -> Array:
    """Return F = Ψᵀ R + Ωᵀ n', `(..., 8)` [DM93, eq. 21, with n' in body axes]."""
    q, q_o = Q[..., :4], Q[..., 4:]
    R, n = quaternion.pure(force), quaternion.pure(torque)
    return 2.0 * concatenate([_mul(q, n) - _mul(R, q_o), _mul(R, q)])


def unit_rows(Q: Array) -> Array:
    """Return Φ_u = [qᵀ 0; q_oᵀ qᵀ], `(..., 2, 8)`."""
    q, q_o = Q[..., :4], Q[..., 4:]
    return stack([concatenate([q, np.zeros_like(q)]), concatenate([q_o, q])], axis=-2)


def motions(Q: Array) -> Array:
    """Return W `(..., 8, 6)`: Q̇ = W [ω', ḋ], ω' in body axes, ḋ in inertial axes."""
    q, q_o = Q[..., :4], Q[..., 4:]
    turn = concatenate([quaternion.left(q), quaternion.left(q_o)], trailing=2)[..., 1:]
    right = quaternion.right(q)
    shift = concatenate([np.zeros_like(right), right], trailing=2)[..., 1:]
    return 0.5 * concatenate([turn, shift])


def _extended(inertia: Array) -> Array:
    """Return the inertia with a row and a column of zeros for the scalar part, `(..., 4, 4)`."""
    inertia = asarray(inertia)
    side = np.zeros_like(inertia[..., :, :1])
    top = np.zeros_like(inertia[..., :1, :1])
    upper = concatenate([top, _T(side)])
    return concatenate([upper, concatenate([side, inertia])], trailing=2)


class Assembled(NamedTuple):
    """The assembled saddle-point system, and the data to interpret its solution.

    Attributes:
        saddle: its blocks; ten equations a body, [Q̈, μ] the unknowns of each, and -λ those of the
            constraints; without S11 and its inverse, which the bodies have.
        bodies: the bodies' own equations.
        rows: the joints' equations, without those of prescribed degrees of freedom.
        L: for every joint, from relative motions to its speeds, `(..., nv_i, 6)`.
    """

    saddle: saddle_point.SaddlePointSystem
    bodies: list[BodyEquations]
    rows: list[JointRows]
    L: list[Array]


def assembled(robot: Robot, state: LoadedState, Q: list[Array], Q_rate: list[Array]) -> Assembled:
    """Assemble [DM93, eq. 30] for a tree: every body's ten equations, every joint's rows."""
    refuse_unfit(robot, "image_space")
    q, v, _, _, prescribed = state
    loads = applied_loads(robot, state, Q)
    bodies = [
        body_equations(mass, inertia, Q[i], Q_rate[i], *loads[i])
        for i, (mass, inertia) in enumerate(mass_properties(robot))
    ]
    rows = [joint_rows(robot, j, Q, Q_rate) for j in range(len(robot.joints))]
    L = [constraint(joints.actuation_basis(joint, q)) for joint in robot.joints]
    B2: list[Array] = []
    S21: dict[tuple[int, int], Array] = {}
    for j, row in enumerate(rows):
        gamma, phi = row.gamma, row.phi
        if j in prescribed:
            free = {i: L[j] @ D for i, D in row.along.items()}  # the joint's speeds per Q̇
            phi = {i: concatenate([phi[i], free[i]], trailing=2) for i in phi}
            held = prescribed[j] - _apply(L[j], row.bias - _screw_rate(robot, j, q, v))
            gamma = concatenate([gamma, held])
        B2.append(gamma)
        if gamma.shape[-1] > 0:
            S21 |= {(j, i): padded(block) for i, block in phi.items()}
    saddle = saddle_point.SaddlePointSystem(
        S11=[],
        S11_inverse=[],
        S12={(i, j): -_T(block) for (j, i), block in S21.items()},
        S21=S21,
        B1=[concatenate([b.F + b.h, b.unit_rate]) for b in bodies],
        B2=B2,
    )
    return Assembled(saddle, bodies, rows, L)


def solve_image_space(robot: Robot, state: LoadedState) -> MaximalSolution:
    """Return accelerations, reactions and the forces of prescribed joints [DM93, eq. 30]."""
    return _solution(robot, state)[0]


def solve_closed(robot: Robot, state: LoadedState) -> tuple[MaximalSolution, Array]:
    """Return the solution with active constraints, and their multipliers `(..., m)`, N or N m."""
    solution, lam = _solution(robot, state)
    free = articulated_body.hybrid(robot, state)[0]
    vdot = satisfying(robot, state.q, state.v, solution.vdot, free)
    return solution._replace(vdot=vdot), lam


def _solution(robot: Robot, state: LoadedState) -> tuple[MaximalSolution, Array]:
    Q = coordinates_of(robot, state.q)
    Q_rate = rates_of(robot, Q, [link.twist for link in moving_links(robot, state.q, state.v)])
    known = assembled(robot, state, Q, Q_rate)
    closing = closing_rows(robot, known.rows, Q, Q_rate)
    motion, forces, lam = saddle_point.solve_with_loops(*_in_motions(robot, known, closing, Q))
    y = [
        _apply(motions(x), a) + _unit_acceleration(x, b.unit_rate)
        for x, a, b in zip(Q, motion, known.bodies, strict=True)
    ]
    return read_solution(robot, state, Q, known, y, forces), lam


def _in_motions(
    robot: Robot, known: Assembled, closing: list[ClosingRows], Q: list[Array]
) -> tuple[saddle_point.SaddlePointSystem, LoopRows | None]:
    """Return the system with the unit conditions solved: Q̈ = W a + N γ_u, six unknowns a body.

    Wᵀ M W = s² diag(J', m 1) and Wᵀ M N = 0, so that no multiplier of a unit condition is left.
    """
    W = [motions(x) for x in Q]
    fixed = [_unit_acceleration(x, b.unit_rate) for x, b in zip(Q, known.bodies, strict=True)]
    S21 = {(j, i): block[..., :8] @ W[i] for (j, i), block in known.saddle.S21.items()}
    B2 = list(known.saddle.B2)
    for (j, i), block in known.saddle.S21.items():
        B2[j] = B2[j] - _apply(block[..., :8], fixed[i])
    inverses: list[Array] = []
    for (mass, inertia), x in zip(mass_properties(robot), Q, strict=True):
        s = vector.dot(x[..., :4], x[..., :4])[..., None]
        zero = np.zeros((3, 3))
        upper = concatenate([linear.inverse(asarray(inertia)), zero])
        lower = concatenate([zero, np.eye(3) / asarray(mass)[..., None, None]])
        inverses.append(concatenate([upper, lower], trailing=2) / (s * s))
    system = saddle_point.SaddlePointSystem(
        S11=[],
        S11_inverse=inverses,
        S12={(i, j): -_T(block) for (j, i), block in S21.items()},
        S21=S21,
        B1=[_apply(_T(Wi), b[..., :8]) for Wi, b in zip(W, known.saddle.B1, strict=True)],
        B2=B2,
    )
    rest = [c.gamma - rate_of(c.phi, fixed) for c in closing]
    return system, loop_rows(closing, rest, lambda i, rows: rows @ W[i])


def _unit_acceleration(Q: Array, unit_rate: Array) -> Array:
    """Return N γ_u, `(..., 8)`: the Q̈ that keeps the unit conditions and moves no inertia but m."""
    q, q_o = Q[..., :4], Q[..., 4:]
    first, second = unit_rate[..., :1], unit_rate[..., 1:]
    return concatenate([first * q, second * q - first * q_o]) / vector.dot(q, q)


def read_solution(
    robot: Robot,
    state: LoadedState,
    Q: list[Array],
    known: Assembled,
    y: list[Array],
    forces: list[Array],
) -> MaximalSolution:
    """Return v̇, tau, the bodies' accelerations and the physical reactions; `forces` are -λ."""
    q, v, tau, _, prescribed = state
    batch = state.batch
    vdots: list[Array] = []
    taus: list[Array] = []
    reactions: list[Array] = []
    accelerations: list[Array] = []
    for j, (joint, row) in enumerate(zip(robot.joints, known.rows, strict=True)):
        count = row.gamma.shape[-1]
        if j in prescribed:
            vdots.append(prescribed[j])
            taus.append(forces[j][..., count:])
        else:
            relative = row.bias
            for i, D in row.along.items():
                relative = relative + _apply(D, y[i][..., :8])
            vdots.append(_apply(known.L[j], relative - _screw_rate(robot, j, q, v)))
            taus.append(tau[..., joint.v])
        force = _apply(_T(row.phi[j]), forces[j][..., :count])
        reactions.append(physical_wrench(robot, j, Q[j], force))
        accelerations.append(_body_acceleration(robot, j, Q[j], y[j][..., :8]))
    return MaximalSolution(
        gather(robot, vdots, batch),
        gather(robot, taus, batch),
        with_batch(stack(accelerations, axis=-2), batch, trailing=2),
        with_batch(stack(reactions, axis=-2), batch, trailing=2),
    )


def physical_wrench(robot: Robot, i: int, Q: Array, force: Array) -> Array:
    """Return the wrench [f, τ] on body i that a generalized force `(..., 8)` represents.

    Wᵀ F = [n', R]: the torque about the centre of mass in body axes and the force in inertial
    axes; the result is in body i's frame, about its origin. A force along Φ_u does no work: Wᵀ maps
    it to zero.
    """
    s = vector.dot(Q[..., :4], Q[..., :4])
    both = _apply(_T(motions(Q)), force) / s
    f = quaternion.rotate(_conjugate(Q[..., :4]), both[..., 3:])
    return concatenate([f, both[..., :3] + vector.cross(robot.bodies[i].com, f)])


def inverse_image_space(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None
) -> Array:
    """Return tau with every joint prescribed: Q̈ outward, multipliers inward."""
    links = moving_links(robot, q, v)
    Q = coordinates_of(robot, q)
    Q_rate = rates_of(robot, Q, [link.twist for link in links])
    held = {i: vdot[..., joint.v] for i, joint in enumerate(robot.joints)}
    own = [_apply(link.S, held[i]) for i, link in enumerate(links)]
    a = accelerations_of(links, own, root=np.zeros(6))
    second: list[Array] = []
    for x, x_rate, rate in zip(Q, Q_rate, rates_of(robot, Q, a), strict=True):
        twist = 2.0 * dq.mul(dq.conjugate(x), x_rate)
        second.append(rate + 0.5 * dq.mul(x_rate, twist))  # Q̈ = ½ Q ω̇ + ½ Q̇ ω
    known = assembled(robot, LoadedState(q, v, 0.0 * v, wrenches, held), Q, Q_rate)
    # projected on the motions of each body: the unit conditions' multipliers drop out
    W = [_T(motions(x)) for x in Q]
    system = known.saddle
    projected = saddle_point.SaddlePointSystem(
        S11=[Wi @ b.M for Wi, b in zip(W, known.bodies, strict=True)],
        S11_inverse=[],
        S12={(i, j): W[i] @ block[..., :8, :] for (i, j), block in system.S12.items()},
        S21={},
        B1=[_apply(Wi, b[..., :8]) for Wi, b in zip(W, system.B1, strict=True)],
        B2=system.B2,
    )
    forces = saddle_point.solve_known(projected, second)
    taus = [x[..., 6 - link.S.shape[-1] :] for x, link in zip(forces, links, strict=True)]
    return gather(robot, taus, batch_shape(q, v, vdot))


def applied_loads(robot: Robot, state: LoadedState, Q: list[Array]) -> list[tuple[Array, Array]]:
    """Return every body's force R and torque n' of [DM93, eq. 21], `(..., 3)` each.

    R in inertial axes, n' about the centre of mass in body axes: of gravity, external wrenches and
    the actuation of the joints that are not prescribed.
    """
    q, _, tau, wrenches, prescribed = state
    R = [asarray(body.mass)[..., None] * asarray(robot.gravity) for body in robot.bodies]
    n: list[Array] = [np.zeros(3)] * len(Q)

    def apply(i: int, wrench: Array) -> tuple[Array, Array]:
        """Apply a wrench in body i's frame; return it in inertial axes about i's centre of mass."""
        f, torque = wrench[..., :3], wrench[..., 3:]
        force, at_com = quaternion.rotate(turn[i], f), torque - vector.cross(robot.bodies[i].com, f)
        R[i], n[i] = R[i] + force, n[i] + at_com
        return force, quaternion.rotate(turn[i], at_com)

    turn = [x[..., :4] for x in Q]
    if wrenches is not None:
        for i in range(len(Q)):
            apply(i, wrenches[..., i, :])
    for j, joint in enumerate(robot.joints):
        if j in prescribed or joints.kind(joint).nv == 0:
            continue
        drive = _apply(joints.actuation_basis(joint, q), tau[..., joint.v])
        force, torque = apply(j, drive)
        if joint.parent >= 0:
            k = joint.parent
            arm = pose.translation(Q[j]) - pose.translation(Q[k])
            back = quaternion.rotate(_conjugate(turn[k]), torque + vector.cross(arm, force))
            R[k], n[k] = R[k] - force, n[k] - back
    return list(zip(R, n, strict=True))


def _screw_rate(robot: Robot, j: int, q: Array, v: Array) -> Array:
    """Return Ṡ v of a joint, `(..., 6)`."""
    joint = robot.joints[j]
    rate = joints.motion_subspace_rate(joint, q, v)
    return np.zeros(6) if rate is None else _apply(rate, v[..., joint.v])


def _body_acceleration(robot: Robot, i: int, Q: Array, second: Array) -> Array:
    """Return the rate of body i's twist in its own frame: 2 vec(Q* Q̈), shifted to its origin."""
    at_com = 2.0 * dq.vec6(dq.mul(dq.conjugate(Q), second))
    rate = at_com[..., :3]
    return concatenate([rate, at_com[..., 3:] - vector.cross(rate, robot.bodies[i].com)])
