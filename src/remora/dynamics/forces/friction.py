"""Viscous damping and dry friction of the joints, as generalized forces.

`forward_dynamics` takes the sum of all generalized forces; friction is one of them:

    vdot = forward_dynamics(robot, q, v, tau + friction_forces(robot, v))
"""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, absolute, asarray, is_symbolic
from remora.dynamics.joint_arrays import batch_shape, gather
from remora.errors import InvalidValue
from remora.model.joints import speeds
from remora.model.robot import Robot
from remora.model.state import velocity
from remora.model.takes_robot import takes_robot


@takes_robot
def friction_forces(robot: Robot, v: ArrayLike, slip_speed: ArrayLike = 1e-3) -> Array:
    """Return `-d v - f v/(abs(v) + s)`, `(..., nv)`: damping d and dry friction f of each joint.

    Dry friction is smoothed: it has half its magnitude at the slip speed s and all of it far above.

    Args:
        robot: the robot.
        v: velocity, `(..., nv)`.
        slip_speed: s, rad/s or m/s, positive.
    """
    v, slip = velocity(robot, v), asarray(slip_speed)
    if not is_symbolic(slip) and not np.all(slip > 0.0):
        raise InvalidValue(f"slip_speed must be positive, not {slip_speed!r}")
    parts: list[Array] = []
    for joint in robot.joints:
        own = speeds(joint, v)
        loss = joint.damping * own + joint.friction * own / (absolute(own) + slip)
        parts.append(-loss if joint.mimic is None else -joint.mimic.ratio * loss)
    return gather(robot, parts, batch_shape(v))
