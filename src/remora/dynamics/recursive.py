"""Inverse dynamics in O(n): the recursive Newton-Euler algorithm.

Outward, every body's twist and acceleration; inward, the wrench that each joint must pass on so
that the bodies beyond it move as they do [VT18, eq. 33; SPART17, section 2.2]. Gravity enters as
an acceleration of the inertial frame.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion, screw, vector
from remora.algebra.namespace import Array, asarray, concatenate
from remora.dynamics.composite import body_inertias
from remora.dynamics.motion import Link, accelerations_of, batch_shape, gather, moving_links
from remora.model import joints
from remora.model.robot import Robot


def inverse(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None) -> Array:
    """Return the generalized forces `(..., nv)` that make the accelerations vdot.

    τ_i = S_iᵀ W_iˢ with W_i the wrench through joint i, and the rotor's share.
    """
    links = moving_links(robot, q, v)
    loads = joint_loads(robot, links, vdot, wrenches)
    parts = [
        vector.apply(vector.transpose(link.S), dual_quaternion.swap(load))
        + joints.rotor_inertia(joint) * vdot[..., joint.v]
        for joint, link, load in zip(robot.joints, links, loads, strict=True)
    ]
    return gather(robot, parts, batch_shape(q, v, vdot))


def joint_loads(
    robot: Robot, links: list[Link], vdot: Array, wrenches: Array | None
) -> list[Array]:
    """Return the whole wrench W_i on body i through joint i, constraint and drive together.

    W_i = M_i ⋆ ω̇_i + ω_i × (M_i ⋆ ω_i) - W_ext,i + Σ_children x W_child x*, body i's frame.
    """
    own = [
        vector.apply(link.S, vdot[..., joint.v])
        for link, joint in zip(links, robot.joints, strict=True)
    ]
    a = accelerations_of(links, own, root=minus_gravity(robot))
    loads = [
        screw.momentum(M, a[i]) + screw.cross(link.twist, screw.momentum(M, link.twist))
        for i, (link, M) in enumerate(zip(links, body_inertias(robot), strict=True))
    ]
    if wrenches is not None:
        loads = [load - wrenches[..., i, :] for i, load in enumerate(loads)]
    for i in reversed(range(len(links))):
        parent = links[i].parent
        if parent >= 0:
            loads[parent] = loads[parent] + screw.to_outer(links[i].X, loads[i])
    return loads


def minus_gravity(robot: Robot) -> Array:
    """Return the acceleration of the inertial frame that acts like gravity, `(..., 6)`."""
    g = asarray(robot.gravity)
    return concatenate([np.zeros_like(g), -g])
