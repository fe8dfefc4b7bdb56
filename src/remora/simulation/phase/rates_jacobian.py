"""The Jacobian of the rates of y at u = 0, for implicit methods.

Dynamics: analytic derivatives. Damping, friction, springs, stops and traced components: CasADi.
User functions of the state and components that cannot be traced: finite differences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array
from remora.dynamics.forces.equations_of_motion import PassiveParameters, passive_loads
from remora.dynamics.state_layout import StateLayout
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.state import integrate

#: y -> generalized forces that depend on the state and rates of the extra states, `(nv + nx,)`.
Response = Callable[[Array], Array]


def losses_near(
    robot: Robot,
    q: Array,
    dq: Array,
    v: Array,
    passive: PassiveParameters,
    contact: Array | None = None,
) -> Array:
    """Return the passive forces at integrate(q, dq), `(..., nv)`; see `passive_loads`."""
    return passive_loads(robot, integrate(robot, q, dq), v, passive, contact)


def finite_differences(response: Response, y: Array, layout: StateLayout) -> Array:
    """Return the derivative of a function of y by finite differences, `(m, size)`.

    Not with respect to work, of which nothing depends.
    """
    step, here = np.sqrt(np.finfo(float).eps), response(y)
    slope = np.zeros((here.size, y.size))
    for k in [*range(y.size)[layout.motion], *range(y.size)[layout.extra]]:
        size = step * max(1.0, abs(float(y[k]))) if k >= layout.work.stop else step
        moved = y.copy()
        moved[k] += size
        slope[:, k] = (response(moved) - here) / size
    return slope


def bracket(robot: Robot, v: Array) -> Array:
    """Return the matrix of u -> u×v, joint by joint: twice the slope of T(u)v at u = 0."""
    matrix = np.zeros((robot.nv, robot.nv))
    for joint in robot.joints:
        if joint.mimic is None and kind(joint).quaternion is not None:
            cross = screw.cross if kind(joint).nv == 6 else vector.cross
            matrix[joint.v, joint.v] = cross(np.eye(kind(joint).nv), v[joint.v]).T
    return matrix


def assembled(
    robot: Robot,
    layout: StateLayout,
    v: Array,
    dynamics: tuple[Array, Array, Array],
    response: Array,
    places: list[int],
) -> Array:
    """Return the Jacobian `(size, size)` assembled from its parts.

    Args:
        robot: the robot.
        layout: of y.
        v: velocity, `(nv,)`.
        dynamics: derivatives of v̇ by u and v at constant forces, and H⁻¹, `(nv, nv)` each.
        response: derivatives of the forces and of ẋ by y, `(nv + nx, size)`.
        places: degrees of freedom that are held.
    """
    nv = robot.nv
    dq, dv, inverse = dynamics
    force, own = response[:nv], response[nv:]
    below = np.zeros((nv, layout.size))
    below[:, layout.u], below[:, layout.v] = dq, dv
    below += inverse @ force
    above = np.zeros((nv, layout.size))
    above[:, layout.u], above[:, layout.v] = 0.5 * bracket(robot, v), np.eye(nv)
    columns = [*places, *(nv + i for i in places)]
    if places:  # drives of held joints react so that these follow their motion; their part of y
        # is ignored
        felt: Array = inverse[places][:, places]
        answer: Array = inverse[:, places] @ np.linalg.inv(felt)
        below = below - answer @ below[places]
        for block in (below, above):
            block[places] = 0.0
    J = np.zeros((layout.size, layout.size))
    J[layout.u], J[layout.v], J[layout.extra] = above, below, own
    J[:, columns] = 0.0
    J[:, layout.work] = 0.0
    return J
