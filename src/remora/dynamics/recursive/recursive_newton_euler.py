"""The recursive Newton-Euler algorithm (RNEA): inverse dynamics in O(n).

An outward pass computes every body's twist and acceleration. An inward pass computes the wrench
that each joint transmits to move the bodies beyond it [VT18, eq. 33; SPART17, section 2.2].
Gravity enters as an acceleration of the inertial frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from remora.algebra import dual_quaternion, screw, vector
from remora.algebra.array_ops import Array
from remora.algebra.screw import Transform
from remora.dynamics.joint_arrays import batch_shape, gather
from remora.dynamics.recursive.outward_pass import accelerating
from remora.dynamics.recursive.tree_passes import JointContext, Pass, run
from remora.dynamics.recursive.tree_passes import minus_gravity as minus_gravity
from remora.model import joints
from remora.model.robot import Robot


class InertialWrench(NamedTuple):
    """The wrench that a body's motion requires, with its joint's transform and subspace.

    Attributes:
        X: transform from the body's frame to its parent's.
        S: the joint's motion subspace, `(..., 6, nv_i)`, body frame.
        W: wrench required by the body's own motion, `(..., 6)`, body frame.
    """

    X: Transform
    S: Array
    W: Array


class JointLoad(NamedTuple):
    """The load on a joint.

    Attributes:
        W: total wrench on its body, constraint and actuation, `(..., 6)`, body frame.
        tau: its projection on the motion subspace, plus the rotor's torque, `(..., nv_i)`.
    """

    W: Array
    tau: Array


class SubtreeWrench(NamedTuple):
    """The wrench passed to the parent, in the parent's frame, `(..., 6)`."""

    W: Array


def inverse(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None) -> Array:
    """Return the generalized forces `(..., nv)` for the accelerations vdot.

    τ_i = S_iᵀ W_iˢ with W_i the wrench through joint i, plus the rotor's torque.
    """
    loads = joint_loads(robot, q, v, vdot, wrenches)
    return gather(robot, [load.tau for load in loads], batch_shape(q, v, vdot))


def joint_loads(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None
) -> list[JointLoad]:
    """Return the load on every joint.

    W_i = M_i ⋆ ω̇_i + ω_i × (M_i ⋆ ω_i) - W_ext,i + Σ_children x W_child x*, body i's frame.
    """
    return run(robot, PASSES, wrenches, q=q, v=v, vdot=vdot)[1][-1]


def _outward_step(at: JointContext, _: Any, parent: Any) -> tuple[InertialWrench, Any]:
    """Outward pass: the wrench required by the body's motion; passes the motion on."""
    (here, a), motion = accelerating(at, (), parent)
    M = at.inertia
    W = screw.momentum(M, a) + screw.cross(here.twist, screw.momentum(M, here.twist))
    return InertialWrench(here.X, here.S, W if at.wrench is None else W - at.wrench), motion


def _inward_step(
    at: JointContext, before: tuple[InertialWrench], beyond: SubtreeWrench | None
) -> tuple[JointLoad, SubtreeWrench | None]:
    """Inward pass: the load on the joint; passes the wrench to the parent."""
    (here,) = before
    W = here.W if beyond is None else here.W + beyond.W
    force = vector.apply(vector.transpose(here.S), dual_quaternion.swap(W))
    tau = force + joints.rotor_inertia(at.joint) * at.vdot[..., at.joint.v]
    on = None if at.is_root else SubtreeWrench(screw.to_outer(here.X, W))
    return JointLoad(W, tau), on


#: The passes: motions outward, wrenches inward.
PASSES = (Pass(inward=False, step=_outward_step), Pass(inward=True, step=_inward_step))
