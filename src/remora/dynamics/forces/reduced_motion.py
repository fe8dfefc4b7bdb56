"""The reduced model as a first-order ODE, for integrators: joint states and base pose.

The state of a step has the layout of the full model, y = [u, v, work]. The base's part of v is not
integrated, but computed from momentum.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import Array, concatenate
from remora.dynamics.forces.equations_of_motion import (
    NO_STOPS,
    PassiveParameters,
    passive_loads,
)
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.lagrangian.reduced import reduced_flow
from remora.dynamics.state_layout import layout_of
from remora.model.robot import Robot
from remora.model.state import integrate, log_rate


def reduced_rates_near(
    robot: Robot,
    q: Array,
    y: Array,
    tau: Array,
    momentum: Array,
    passive: PassiveParameters = NO_STOPS,
) -> Array:
    """Return the rate of y = [u, v, work] about the configuration q₀ = `q`, `(..., 2 nv + 3)`.

    u̇ = T(u) v with v = [V, q̇] and the base's twist V from momentum; q̈ by the reduced model; the
    rows of the base's velocity are zero.

    Args:
        robot: a robot with a free base without external loads.
        q: configuration q₀, `(..., nq)`.
        y: [u, v, work], `(..., 2 nv + 3)`; the base's part of v is ignored.
        tau: actuation forces, `(..., nv)`; the base's part is ignored.
        momentum: [linear, angular about the inertial origin], inertial axes, `(..., 6)`.
        passive: passive loads at the joints.
    """
    layout = layout_of(robot)
    u, v = y[..., layout.u], y[..., layout.v]
    here = integrate(robot, q, u)
    lost = passive_loads(robot, here, v, passive)[..., 6:]
    given = tau[..., 6:]
    speeds = v[..., 6:]
    V, rate = reduced_flow(robot, here, speeds, given + lost, momentum)
    none = np.zeros(1)
    parts = [
        log_rate(robot, u, concatenate([V, speeds])),
        np.zeros(6),
        rate,
        vector.dot(speeds, given),
        none,
        vector.dot(speeds, lost),
    ]
    return with_batch(concatenate(parts), batch_shape(q, y, tau), trailing=1)
