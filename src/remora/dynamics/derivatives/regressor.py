"""The inertia regressor: dynamics is linear in the inertial parameters; derivatives by them.

Each body has ten parameters, about its own frame's origin:
π = [m, m c, Ixx, Ixy, Ixz, Iyy, Iyz, Izz].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from remora.algebra import linear, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, stack
from remora.algebra.screw import Inertia
from remora.dynamics.derivatives.root_frame import RootFrameLink, accelerations_of, links_of
from remora.dynamics.formulations import inverse_dynamics, mass_matrix
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.recursive.composite_rigid_body import body_inertias
from remora.dynamics.refusals import needs_dynamics
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot
from remora.model.topology import ancestors


@takes_robot
def inertia_parameters(robot: Robot) -> Array:
    """Return π `(..., 10 nb)`, body after body: [m, m c, Ixx, Ixy, Ixz, Iyy, Iyz, Izz].

    m in kg, the first moment m c in kg m, the inertia about the origin of the body's frame, in its
    axes, in kg m².
    """
    return concatenate([_parameters(M) for M in body_inertias(robot)])


@takes_robot
@needs_dynamics
def inertia_regressor(robot: Robot, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
    """Return Y `(..., nv, 10 nb)` with τ = Y π, for π of `inertia_parameters`.

    τ is that of `inverse_dynamics` without external wrenches and rotor inertias.
    Y does not depend on the robot's masses, centres of mass and inertias.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
    """
    q, v, vdot = configuration(robot, q), velocity(robot, v), velocity(robot, vdot, "vdot")
    links = links_of(robot, q, v)
    parts: list[Array] = []
    for i, needed in enumerate(_required_wrenches(robot, links, q, v, vdot)):
        rows: list[Array] = [np.zeros(10)] * robot.nv
        for j in ancestors(robot, i):
            work = _in_link_frame(links[i], links[j].S) @ needed
            for k, place in enumerate(range(robot.nv)[robot.joints[j].v]):
                rows[place] = rows[place] + work[..., k, :]
        parts.append(stack(rows, axis=-2) if rows else np.zeros((0, 10)))
    return with_batch(concatenate(parts), batch_shape(q, v, vdot), trailing=2)


@takes_robot
@needs_dynamics
def inertia_derivatives(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: ArrayLike | None = None
) -> Array:
    """Return ∂v̇/∂π = -H⁻¹ Y `(..., nv, 10 nb)` of `forward_dynamics`, for `inertia_parameters`.

    Y's columns for body i are J_iᵀ W_i, and H⁻¹ J_iᵀ changes from body to body by one joint's
    motion subspace. This costs less than solving for every column of Y.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
    """
    q, v, tau = configuration(robot, q), velocity(robot, v), velocity(robot, tau, "tau")
    bias = inverse_dynamics(robot, q, v, 0.0 * v, wrenches)
    batch = batch_shape(q, v, tau, bias)
    if robot.nv == 0:
        return np.zeros((*batch, 0, 10 * len(robot.bodies)))
    inverse = linear.ltdl_inverse(linear.ltdl(mass_matrix(robot, q)))
    vdot = vector.apply(inverse, tau - bias)
    links = links_of(robot, q, v)
    answers: list[Array] = []  # H⁻¹ J_iᵀ as rows, in the root's frame
    parts: list[Array] = []
    for link, joint, needed in zip(
        links, robot.joints, _required_wrenches(robot, links, q, v, vdot), strict=True
    ):
        own = inverse[..., :, joint.v] @ link.S
        answers.append(own if link.parent < 0 else answers[link.parent] + own)
        parts.append(-_in_link_frame(link, answers[-1]) @ needed)
    return with_batch(concatenate(parts), batch, trailing=2)


def _parameters(M: Inertia) -> Array:
    I = M.about_origin
    upper = [I[..., i, j] for i in range(3) for j in range(i, 3)]
    return concatenate([asarray(M.mass)[..., None], M.moment, stack(upper)])


def _in_link_frame(link: RootFrameLink, rows: Array) -> Array:
    """Transform rows of twists from the root's frame to the link's own."""
    return vector.transpose(screw.columns_to_inner(link.X, vector.transpose(rows)))


def _required_wrenches(
    robot: Robot, links: list[RootFrameLink], q: Array, v: Array, vdot: Array
) -> Iterator[Array]:
    """Yield for every body the wrench [τ, f] `(..., 6, 10)` per unit of its parameters.

    In its own frame, with p = v̇ + ω × v the acceleration of its origin:
    f = m p + (ω̇ × + ω × ω ×) m c and τ = m c × p + I ω̇ + ω × I ω.
    """
    for link, A in zip(links, accelerations_of(robot, links, q, v, vdot).own, strict=True):
        twist, a = screw.to_inner(link.X, link.twist), screw.to_inner(link.X, A)
        omega, turning = twist[..., :3], a[..., :3]
        p = a[..., 3:] + vector.cross(omega, twist[..., 3:])
        W = vector.skew(omega)
        second = _of_moments(turning) + W @ _of_moments(omega)
        tau = concatenate([np.zeros((3, 1)), -vector.skew(p), second])
        f = concatenate([p[..., :, None], vector.skew(turning) + W @ W, np.zeros((3, 6))])
        yield concatenate([tau, f], trailing=2)


def _of_moments(x: Array) -> Array:
    """Return the matrix with I x = matrix · [Ixx, Ixy, Ixz, Iyy, Iyz, Izz], `(..., 3, 6)`."""
    a, b, c = x[..., 0], x[..., 1], x[..., 2]
    o = np.zeros_like(a)
    rows = [[a, b, c, o, o, o], [o, a, o, b, c, o], [o, o, a, o, b, c]]
    return stack([stack(row) for row in rows], axis=-2)
