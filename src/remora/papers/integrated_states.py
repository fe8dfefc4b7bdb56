"""`rm.papers.integrate_state`: runs whose state is the one that a paper integrates.

`rm.simulate` integrates q and v on their manifold, whatever the formulation; what drifts in a run
is decided by the state and not by the solver. Here the states are VT18's x (43), DM93's Q with its
rate, and those of decoupled Newton-Euler codes, as flat arrays x whose elements a Runge-Kutta
method adds: nothing is normalized or projected.

Each state is a row of `STATES`: pure functions on arrays, of floats or symbols.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, stack
from remora.dynamics.joint_arrays import LoadedState
from remora.dynamics.kernels.compiled import compile as compiled
from remora.dynamics.maximal import decoupled, newton_euler, saddle_point
from remora.dynamics.maximal.image_coordinates import (
    from_image_coordinates,
    image_coordinates,
    image_rates,
    joint_rows_of,
    joint_state,
)
from remora.dynamics.maximal.image_system import image_space_solution
from remora.dynamics.maximal.joint_maps import joint_maps
from remora.dynamics.maximal.joint_relations import (
    from_generalized_coordinates,
    generalized_coordinates,
    joint_speeds,
    joint_twists,
    rate_maps,
)
from remora.dynamics.recursive.outward_pass import moving_links
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model import joints
from remora.model.arguments import count, positive
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, neutral, runge_kutta_step, velocity
from remora.model.takes_robot import takes_robot

#: Torques of a run: (t, q, v) -> tau.
Torque = Callable[[float, Array, Array], ArrayLike]


class BodyMotions(NamedTuple):
    """Where all bodies are and how they move, at their centres of mass.

    Attributes:
        position: of the centres of mass, inertial axes, `(..., nb, 3)`.
        attitude: quaternions of the bodies' axes, not normalized, `(..., nb, 4)`.
        angular_velocity: body axes, `(..., nb, 3)`.
        velocity: of the centres of mass, inertial axes, `(..., nb, 3)`.
    """

    position: Array
    attitude: Array
    angular_velocity: Array
    velocity: Array


@dataclass(frozen=True)
class PaperState:
    """A state as a flat array x, with its equations of motion.

    Attributes:
        what: its parts, in order.
        start: (robot, q, v) -> x.
        rates: (robot, x, tau) -> ẋ.
        state: (robot, x) -> q, v.
        bodies: (robot, x) -> `BodyMotions`.
    """

    what: str
    start: Callable[[Robot, Array, Array], Array]
    rates: Callable[[Robot, Array, Array], Array]
    state: Callable[[Robot, Array], tuple[Array, Array]]
    bodies: Callable[[Robot, Array], BodyMotions]


@dataclass(frozen=True, eq=False)
class PaperRun:
    """A run of `rm.papers.integrate_state`.

    Attributes:
        robot: the robot.
        state: key of the state.
        t: times, `(n,)`, s.
        x: states, `(n, nx)`, as integrated.
    """

    robot: Robot
    state: str
    t: Array
    x: Array

    @functools.cached_property
    def _q_v(self) -> tuple[Array, Array]:
        return STATES[self.state].state(self.robot, self.x)

    @property
    def q(self) -> Array:
        """Configurations `(n, nq)`; quaternions and dual quaternions are not normalized."""
        return self._q_v[0]

    @property
    def v(self) -> Array:
        """Velocities `(n, nv)`."""
        return self._q_v[1]

    @functools.cached_property
    def bodies(self) -> BodyMotions:
        """The motions of all bodies."""
        return STATES[self.state].bodies(self.robot, self.x)

    @property
    def center_of_mass(self) -> Array:
        """Centre of mass, inertial axes, `(n, 3)`, m."""
        mass = _masses(self.robot)
        return np.sum(mass * self.bodies.position, axis=-2) / np.sum(mass)

    @property
    def momentum(self) -> Array:
        """[linear, angular about the inertial origin], inertial axes, `(n, 6)`."""
        at = self.bodies
        P = _masses(self.robot) * at.velocity
        inertia = np.array([body.inertia for body in self.robot.bodies])
        turned = vector.apply(inertia, at.angular_velocity)
        L = quaternion.rotate(quaternion.normalize(at.attitude), turned)
        L = L + np.cross(at.position, P)
        return np.concatenate([P.sum(axis=-2), L.sum(axis=-2)], axis=-1)

    def __repr__(self) -> str:
        """Return the state, the time and the number of samples."""
        return f"PaperRun({self.state!r}, {len(self.t)} samples, to {self.t[-1]:.6g} s)"


@takes_robot
def integrate_state(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    state: str,
    *,
    step: float,
    torque: Torque | ArrayLike | None = None,
    every: int = 1,
) -> PaperRun:
    """Integrate the state of a paper by the classic Runge-Kutta method with a fixed step.

    Args:
        robot: the robot, without constraints (but for "DM93") and mimic joints.
        q: configuration at the start, `(nq,)`.
        v: velocity at the start, `(nv,)`.
        duration: s, a multiple of the step.
        state: "VT18", "DM93", "decoupled", "decoupled joints" or "decoupled joints, body axes"; see
            `rm.papers.STATES`.
        step: s. Discontinuities of the torque must be at the ends of steps.
        torque: generalized forces `(nv,)`, or (t, q, v) -> tau, at every stage; None: none.
        every: number of steps between two samples.
    """
    if state not in STATES:
        raise UnknownName("state of a paper", state, STATES)
    row = STATES[state]
    if state != "DM93" and any(c.active for c in robot.constraints):
        raise RemoraError(
            f"the state {state!r} is that of a tree, and the robot has active constraints: use "
            "the state 'DM93', or rm.simulate"
        )
    duration, step = positive("duration", duration), positive("step", step)
    every, steps = count("every", every), round(duration / step)
    if steps < 1 or abs(steps * step - duration) > 1e-9 * duration:
        raise InvalidValue(f"duration={duration!r} s must be a multiple of step={step!r} s")
    q, v = configuration(robot, q), velocity(robot, v)
    if q.ndim != 1 or v.ndim != 1:
        raise InvalidValue("one state at a time: q (nq,) and v (nv,)")
    x = row.start(robot, q, v)
    shapes = {"x": x.shape}
    rates = compiled(row.rates, robot, shapes=shapes)
    held = np.zeros(robot.nv) if torque is None or callable(torque) else torque
    constant = finite("torque", held, robot.nv)
    back = compiled(row.state, robot, shapes=shapes) if callable(torque) else None

    def tau(t: float, x: Array) -> Array:
        if back is None or not callable(torque):
            return constant
        return finite("tau", torque(t, *back(x)), robot.nv)

    times, samples = [0.0], [x]
    for k in range(steps):
        t, end = duration * (k / steps), duration * ((k + 1) / steps)
        first, last = np.nextafter(t, end), np.nextafter(end, t)

        def rate(s: float, x: Array, t: float = t, first: float = first, last: float = last):
            return rates(x, tau(min(max(t + s * step, first), last), x))

        x = runge_kutta_step(rate, x, step, _sum, _rate_itself)
        if (k + 1) % every == 0 or k + 1 == steps:
            times.append(end)
            samples.append(x)
    if not np.all(np.isfinite(x)):
        raise RemoraError(f"the state {state!r} is not finite at the end: use a smaller step")
    return PaperRun(robot, state, np.array(times), np.array(samples))


def _sum(x: Array, change: Array) -> Array:
    return x + change


def _rate_itself(_: Array, rate: Array) -> Array:
    return rate


# What the states share ----------------------------------------------------------------------------


def _masses(robot: Robot) -> Array:
    return np.array([body.mass for body in robot.bodies])[:, None]


def _to_com(robot: Robot) -> list[Array]:
    """Return the pose of every centre of mass in its body's frame."""
    return [pose.from_translation(body.com) for body in robot.bodies]


def _at_origins(robot: Robot, twists: list[Array]) -> Array:
    """Return twists about the bodies' origins from those about their centres of mass."""
    moved = [screw.adjoint(c, t) for c, t in zip(_to_com(robot), twists, strict=True)]
    return stack(moved, axis=-2)


def _by_body(robot: Robot, x: Array, width: int) -> list[Array]:
    return [x[..., width * i : width * (i + 1)] for i in range(len(robot.bodies))]


def _split(robot: Robot, x: Array) -> tuple[Array, list[Array]]:
    """Return q, and the velocities of every body, of a state of joint coordinates."""
    free = sum(8 for joint in robot.joints if joints.is_free(joint))
    n = x.shape[-1] - 6 * len(robot.bodies)
    bases, Gamma = x[..., :free], x[..., free:n]
    parts: list[Array] = []
    start, zero = 0, neutral(robot)
    for joint in robot.joints:
        if joints.is_free(joint):
            parts.append(bases[..., start : start + 8])
            start += 8
        else:
            parts.append(zero[joint.q])
    q = from_generalized_coordinates(robot, Gamma, concatenate(parts))
    return q, _by_body(robot, x[..., n:], 6)


def _joined(robot: Robot, q: Array, velocities: Array) -> Array:
    """Return a state of joint coordinates: poses of bases, Γ, velocities of all bodies."""
    bases = [q[joint.q] for joint in robot.joints if joints.is_free(joint)]
    return np.concatenate([*bases, generalized_coordinates(robot, q), velocities.reshape(-1)])


def _coordinate_rates(robot: Robot, q: Array, at_origin: Array) -> Array:
    """Return the rates of the bases' poses and of Γ [VT18, eqs. 45, 47]."""
    across, maps = joint_twists(robot, q, at_origin), rate_maps(robot, q)
    bases: list[Array] = []
    others: list[Array] = []
    for i, joint in enumerate(robot.joints):
        twist = across[..., i, :]
        if joints.is_free(joint):
            bases.append(0.5 * dq.mul(q[..., joint.q], dq.pure(twist)))
        else:
            others.append(vector.apply(maps[i], dq.pure(twist)))
    return concatenate([*bases, *others])


def _com_twists(robot: Robot, q: Array, v: Array) -> Array:
    """Return the twists of all bodies about their centres of mass, `(..., nb, 6)`."""
    links = moving_links(robot, q, v)
    to_com = _to_com(robot)
    return stack([screw.adjoint_inverse(c, k.twist) for c, k in zip(to_com, links, strict=True)],
                 axis=-2)  # fmt: skip


# VT18: x = (q, Γ, y) ------------------------------------------------------------------------------


def _vt18_start(robot: Robot, q: Array, v: Array) -> Array:
    return _joined(robot, q, _com_twists(robot, q, v))


def vt18_rates(robot: Robot, x: Array, tau: Array) -> Array:
    """Return ẋ of x = (q_{B/I}, Γ, y) [VT18, eq. 43, Algorithm 1].

    q of free joints (eight numbers each), Γ of all others, and the dual velocity y of every body
    about its centre of mass, without its two zeros.
    """
    q, y = _split(robot, x)
    at_origin = _at_origins(robot, y)
    v = joint_speeds(robot, q, at_origin)
    system = newton_euler.system(robot, LoadedState(q, v, tau), at_origin)
    accelerations, _ = saddle_point.solve(system)
    rates = _coordinate_rates(robot, q, at_origin)
    return concatenate([rates, *(dq.vec6(a) for a in accelerations)])


def _tree_state(robot: Robot, x: Array) -> tuple[Array, Array]:
    q, y = _split(robot, x)
    return q, joint_speeds(robot, q, _at_origins(robot, y))


def _tree_bodies(robot: Robot, x: Array, inertial: bool = False) -> BodyMotions:
    q, y = _split(robot, x)
    poses = image_coordinates(robot, q)
    u = np.stack(y, axis=-2)
    attitude, velocity = poses[..., :4], u[..., 3:]
    if not inertial:
        velocity = quaternion.rotate(quaternion.normalize(attitude), velocity)
    return BodyMotions(pose.translation(poses), attitude, u[..., :3], velocity)


# Decoupled: velocities in three-vectors -----------------------------------------------------------


def _accelerations(
    robot: Robot, q: Array, v: Array, R: list[Array], moved: list[tuple[screw.Transform, Array]],
    tau: Array,
) -> list[Array]:  # fmt: skip
    """Return [r̈, ω̇] of every body; `moved`: transform across its joint, twist of its origin."""
    links = [
        replace(link, X=X, twist=twist)
        for link, (X, twist) in zip(moving_links(robot, q, v), moved, strict=True)
    ]
    maps = joint_maps(robot, q, {})
    system = decoupled.assembled(robot, LoadedState(q, v, tau), links, maps, R)
    return saddle_point.solve(system)[0]


def _rotations(robot: Robot, q: Array) -> list[Array]:
    """Return all rotation matrices, outward from the base's: reactions cancel in pairs."""
    R: list[Array] = []
    for joint in robot.joints:
        if joints.is_free(joint):
            r = quaternion.normalize(q[..., joint.q][..., :4])
            turn = quaternion.to_matrix(joint.placement[..., :4]) @ quaternion.to_matrix(r)
        else:
            turn = joints.relative_transform(joint, q).R
        R.append(turn if joint.parent < 0 else R[joint.parent] @ turn)
    return R


def _inertial_start(robot: Robot, q: Array, v: Array) -> Array:
    twists = _com_twists(robot, q, v)
    attitude = image_coordinates(robot, q)[..., :4]
    return _joined(robot, q, np.concatenate(
        [twists[..., :3], quaternion.rotate(attitude, twists[..., 3:])], axis=-1
    ))  # fmt: skip


def _joint_rates(robot: Robot, x: Array, tau: Array, inertial: bool) -> Array:
    q, u = _split(robot, x)
    R = _rotations(robot, q)
    back = [vector.transpose(turn) for turn in R]
    own = [
        concatenate([u[i][..., :3], vector.apply(back[i], u[i][..., 3:])]) if inertial else u[i]
        for i in range(len(u))
    ]
    at_origin = _at_origins(robot, own)
    v = joint_speeds(robot, q, at_origin)
    moved = [(link.X, at_origin[..., i, :]) for i, link in enumerate(moving_links(robot, q, v))]
    parts = [_coordinate_rates(robot, q, at_origin)]
    for i, a in enumerate(_accelerations(robot, q, v, R, moved, tau)):
        rate = a[..., :3]
        if not inertial:
            rate = vector.apply(back[i], rate) - vector.cross(own[i][..., :3], own[i][..., 3:])
        parts += [a[..., 3:], rate]
    return concatenate(parts)


def decoupled_joint_rates(robot: Robot, x: Array, tau: Array) -> Array:
    """Return ẋ of x = (q, Γ, then ω in body axes and ṙ in inertial axes of every body)."""
    return _joint_rates(robot, x, tau, inertial=True)


def decoupled_body_axes_rates(robot: Robot, x: Array, tau: Array) -> Array:
    """Return ẋ of x = (q, Γ, then ω and ṙ of every body, both in body axes)."""
    return _joint_rates(robot, x, tau, inertial=False)


def _inertial_state(robot: Robot, x: Array) -> tuple[Array, Array]:
    q, u = _split(robot, x)
    back = [vector.transpose(turn) for turn in _rotations(robot, q)]
    own = [
        concatenate([y[..., :3], vector.apply(turn, y[..., 3:])])
        for y, turn in zip(u, back, strict=True)
    ]
    return q, joint_speeds(robot, q, _at_origins(robot, own))


def _inertial_bodies(robot: Robot, x: Array) -> BodyMotions:
    return _tree_bodies(robot, x, inertial=True)


def _bodies_start(robot: Robot, q: Array, v: Array) -> Array:
    twists, x = _com_twists(robot, q, v), image_coordinates(robot, q)
    velocity = quaternion.rotate(x[..., :4], twists[..., 3:])
    rows = [pose.translation(x), x[..., :4], velocity, twists[..., :3]]
    return np.concatenate(rows, axis=-1).reshape(-1)


def decoupled_rates(robot: Robot, x: Array, tau: Array) -> Array:
    """Return ẋ of x = (r, quaternion, ṙ, ω) of every body: no joint coordinate is a state."""
    z = _by_body(robot, x, 13)
    R = [quaternion.to_matrix(quaternion.normalize(own[..., 3:7])) for own in z]
    moved: list[tuple[screw.Transform, Array]] = []
    origins: list[Array] = []
    for i, (joint, body) in enumerate(zip(robot.joints, robot.bodies, strict=True)):
        p = z[i][..., :3] - vector.apply(R[i], body.com)
        origins.append(p)
        X = screw.Transform(R[i], p)
        if joint.parent >= 0:
            back = vector.transpose(R[joint.parent])
            X = screw.Transform(back @ R[i], vector.apply(back, p - origins[joint.parent]))
        at_com = vector.apply(vector.transpose(R[i]), z[i][..., 7:10])
        twist = concatenate([z[i][..., 10:], at_com])
        moved.append((X, screw.adjoint(pose.from_translation(body.com), twist)))
    Q, rates = _bodies_image(robot, x)
    batch = x.shape[:-1]
    q, v = joint_state(robot, rates, joint_rows_of(robot, Q, rates), batch)
    parts: list[Array] = []
    for own, a in zip(z, _accelerations(robot, q, v, R, moved, tau), strict=True):
        turn = 0.5 * quaternion.mul(own[..., 3:7], quaternion.pure(own[..., 10:]))
        parts += [own[..., 7:10], turn, a[..., :3], a[..., 3:]]
    return concatenate(parts)


def _bodies_image(robot: Robot, x: Array) -> tuple[list[Array], list[Array]]:
    """Return the dual quaternion of every centre of mass, and its rate."""
    Q: list[Array] = []
    rates: list[Array] = []
    for own in _by_body(robot, x, 13):
        r = quaternion.normalize(own[..., 3:7])
        Q.append(pose.from_parts(r, own[..., :3]))
        v = quaternion.rotate(quaternion.conjugate(r), own[..., 7:10])
        rates.append(0.5 * dq.mul(Q[-1], dq.pure(concatenate([own[..., 10:], v]))))
    return Q, rates


def _bodies_state(robot: Robot, x: Array) -> tuple[Array, Array]:
    Q, rates = _bodies_image(robot, x)
    return from_image_coordinates(robot, stack(Q, axis=-2), stack(rates, axis=-2))


def _bodies_bodies(robot: Robot, x: Array) -> BodyMotions:
    z = np.stack(_by_body(robot, x, 13), axis=-2)
    return BodyMotions(z[..., :3], z[..., 3:7], z[..., 10:], z[..., 7:10])


# DM93: x = (Q, Q̇) ---------------------------------------------------------------------------------


def _dm93_start(robot: Robot, q: Array, v: Array) -> Array:
    Q, rates = image_coordinates(robot, q), image_rates(robot, q, v)
    return np.concatenate([Q.reshape(-1), rates.reshape(-1)])


def _dm93_halves(robot: Robot, x: Array) -> tuple[Array, Array]:
    n = 8 * len(robot.bodies)
    shape = (*x.shape[:-1], len(robot.bodies), 8)
    return x[..., :n].reshape(shape), x[..., n:].reshape(shape)


def dm93_rates(robot: Robot, x: Array, tau: Array) -> Array:
    """Return ẋ of x = (Q, Q̇) [DM93, eq. 30]."""
    Q, rates = _dm93_halves(robot, x)
    second = image_space_solution(robot, Q, rates, tau).acceleration
    return concatenate([x[..., 8 * len(robot.bodies) :], second.reshape((*x.shape[:-1], -1))])


def _dm93_state(robot: Robot, x: Array) -> tuple[Array, Array]:
    return from_image_coordinates(robot, *_dm93_halves(robot, x))


def _dm93_bodies(robot: Robot, x: Array) -> BodyMotions:
    """Return the motions, with d = 2 q_o q* and ω = 2 q* q̇ [DM93, eqs. 8, 11 corrected]."""
    Q, rate = _dm93_halves(robot, x)
    q, q_o, dot, dot_o = Q[..., :4], Q[..., 4:], rate[..., :4], rate[..., 4:]
    back = quaternion.conjugate(q)
    velocity = quaternion.mul(dot_o, back) + quaternion.mul(q_o, quaternion.conjugate(dot))
    omega = quaternion.mul(back, dot)
    return BodyMotions(
        2.0 * quaternion.mul(q_o, back)[..., 1:], q, 2.0 * omega[..., 1:], 2.0 * velocity[..., 1:]
    )


#: The states that can be integrated, by key.
STATES: dict[str, PaperState] = {
    "VT18": PaperState(
        "(43): poses of bases, Γ of the other joints, dual velocities y about the centres of mass",
        _vt18_start, vt18_rates, _tree_state, _tree_bodies,
    ),
    "DM93": PaperState(
        "Q and its rate, eight numbers each for every body",
        _dm93_start, dm93_rates, _dm93_state, _dm93_bodies,
    ),
    "decoupled": PaperState(
        "r, quaternion, velocity of the centre of mass in inertial axes and ω of every body",
        _bodies_start, decoupled_rates, _bodies_state, _bodies_bodies,
    ),
    "decoupled joints": PaperState(
        "poses of bases, Γ; ω and, in inertial axes, velocity of the centre of mass of every body",
        _inertial_start, decoupled_joint_rates, _inertial_state, _inertial_bodies,
    ),
    "decoupled joints, body axes": PaperState(
        "the same with these velocities in body axes",
        _vt18_start, decoupled_body_axes_rates, _tree_state, _tree_bodies,
    ),
}  # fmt: skip
