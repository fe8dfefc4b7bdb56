"""The check that forward dynamics is defined: the mass matrix must be positive definite.

A massless body is allowed inside a chain if the articulated-body inertia at its joint is positive
along the motion subspace [F08, 7.2]. If all bodies have mass and a positive definite inertia, no
check is needed. Otherwise the pivots D = Sᵀ Iᴬ S of the articulated-body algorithm (ABA) are
computed at some configurations.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array, is_symbolic
from remora.model import joints
from remora.model.robot import Joint, Robot
from remora.model.state import neutral, random_state

#: Number of random configurations tested besides the neutral one.
SAMPLES = 16
#: A pivot is zero if it is smaller than this relative to its magnitude before cancellation.
ZERO_PIVOT = 1e-12
#: With mimic joints, the mass matrix itself is tested up to this number of bodies.
LARGEST_DENSE = 200


class Undefined(NamedTuple):
    """A joint whose acceleration is not determined by the forces.

    Attributes:
        joint: its index.
        negative: whether its pivot is negative somewhere, not only zero.
        everywhere: whether this holds at every tested configuration.
    """

    joint: int
    negative: bool
    everywhere: bool


def undefined_joint(robot: Robot, prescribed: Collection[int] = ()) -> Undefined | None:
    """Return a joint at which the mass matrix is not positive definite; None if there is none.

    A robot with symbolic numbers is not checked.

    Args:
        robot: the robot.
        prescribed: joints with prescribed accelerations, by index; they need no inertia.
    """
    if robot.nv == 0 or not _suspicious(robot):
        return None
    q = np.concatenate([neutral(robot)[None], random_state(robot, 14, SAMPLES)[0]])
    found = _by_pivots(robot, q, prescribed)
    if found is None or not any(j.mimic is not None for j in robot.joints):
        return found
    # The pivots treat mimic joints as independent, which is stricter than necessary.
    return _by_matrix(robot, q, prescribed) if len(robot.bodies) <= LARGEST_DENSE else found


def is_immobile(joint: Joint) -> bool:
    """Tell whether a joint fixes its body to the inertial frame."""
    return joint.kind == "fixed" and joint.parent < 0


def _suspicious(robot: Robot) -> bool:
    """Tell whether some moving body has no mass, or no inertia about some axis."""
    numbers = [x for b in robot.bodies for x in (b.mass, b.com, b.inertia)]
    numbers += [x for j in robot.joints for x in (j.placement, j.rotor_inertia, j.pitch)]
    if any(is_symbolic(x) or x.ndim > 2 for x in numbers):
        return False
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        moments = np.linalg.eigvalsh(body.inertia)
        flat = body.mass <= 0.0 or moments[0] <= ZERO_PIVOT * max(abs(moments[0]), moments[-1])
        if flat and not is_immobile(joint):
            return True
    return False


def _by_pivots(robot: Robot, q: Array, prescribed: Collection[int]) -> Undefined | None:
    """Test the pivots of the articulated-body algorithm, from the leaves inward."""
    carried, whole = _inertias(robot), _inertias(robot)
    for i in reversed(range(len(robot.joints))):
        joint, I, size = robot.joints[i], carried[i], whole[i]
        S = joints.motion_subspace(joint, q)
        if S.shape[-1] > 0 and i not in prescribed:
            rotor = joints.rotor_inertia(joint)[..., None] * np.eye(S.shape[-1])
            U = I @ S
            D = vector.transpose(S) @ U + rotor
            least = _least(D, vector.transpose(np.abs(S)) @ np.abs(size) @ np.abs(S) + rotor)
            if np.any(least <= ZERO_PIVOT):
                worst = bool(np.any(least < -ZERO_PIVOT))
                return Undefined(i, worst, bool(np.all(least <= ZERO_PIVOT)))
            I = I - U @ np.linalg.solve(D, vector.transpose(U))
        if joint.parent >= 0:
            X = _to_child(joint, q)
            Xt = vector.transpose(X)
            carried[joint.parent] = carried[joint.parent] + Xt @ I @ X
            whole[joint.parent] = whole[joint.parent] + Xt @ size @ X
    return None


def _by_matrix(robot: Robot, q: Array, prescribed: Collection[int]) -> Undefined | None:
    """Test the mass matrix H = Σ Jᵀ M J itself."""
    H, size = np.zeros((2, len(q), robot.nv, robot.nv))
    jacobians: list[Array] = []
    for joint, M in zip(robot.joints, _inertias(robot), strict=True):
        J = np.zeros((len(q), 6, robot.nv))
        if joint.parent >= 0:
            J = _to_child(joint, q) @ jacobians[joint.parent]
        J[..., :, joint.v] += joints.motion_subspace(joint, q)
        jacobians.append(J)
        H = H + vector.transpose(J) @ M @ J
        size = size + vector.transpose(np.abs(J)) @ np.abs(M) @ np.abs(J)
        rotor = np.zeros(robot.nv)
        rotor[joint.v] = joints.rotor_inertia(joint)
        H, size = H + np.diag(rotor), size + np.diag(rotor)
    held = {i for k in prescribed for i in range(robot.nv)[robot.joints[k].v]}
    free = [i for i in range(robot.nv) if i not in held]
    if not free:
        return None
    H, size = H[..., free, :][..., :, free], size[..., free, :][..., :, free]
    least = _least(H, size)
    if not np.any(least <= ZERO_PIVOT):
        return None
    weakest = free[int(np.argmin(np.min(np.diagonal(H, axis1=-2, axis2=-1), axis=0)))]
    index = next(i for i, j in enumerate(robot.joints) if j.v.start <= weakest < j.v.stop)
    return Undefined(index, bool(np.any(least < -ZERO_PIVOT)), bool(np.all(least <= ZERO_PIVOT)))


def _least(A: Array, size: Array) -> Array:
    """Return the smallest eigenvalue of A scaled by its diagonal before cancellation, `(...)`."""
    scale = np.sqrt(np.abs(np.diagonal(size, axis1=-2, axis2=-1)))
    scale = np.where(scale > 0.0, scale, 1.0)
    return np.linalg.eigvalsh(A / (scale[..., :, None] * scale[..., None, :]))[..., 0]


def _inertias(robot: Robot) -> list[Array]:
    """Return [I, [m c]×; -[m c]×, m 1] of every body about its origin, `(6, 6)`."""
    result: list[Array] = []
    for body in robot.bodies:
        M = screw.inertia_matrix(screw.inertia(body.mass, body.com, body.inertia))
        result.append(np.concatenate([M[3:], M[:3]]))
    return result


def _to_child(joint: Joint, q: Array) -> Array:
    """Return X with the twist in the body's frame = X (twist in its parent's), `(..., 6, 6)`."""
    X = joints.relative_transform(joint, q)
    Rt = vector.transpose(X.R)
    back = screw.Transform(Rt, -vector.apply(Rt, X.p))
    return screw.transform_matrix(back)
