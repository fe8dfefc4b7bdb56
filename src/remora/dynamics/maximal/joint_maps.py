"""Joint maps V, V_act and L, the solution type and the checks of the maximal formulations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import vector
from remora.algebra.array_ops import Array, asarray, concatenate, is_symbolic, stack
from remora.dynamics.joint_arrays import LoadedState, gather, with_batch
from remora.dynamics.recursive.outward_pass import Link
from remora.dynamics.refusals import refuse_mimic_joints
from remora.errors import InvalidValue
from remora.model import joints
from remora.model.robot import Joint, Robot


class MaximalSolution(NamedTuple):
    """The results of a maximal formulation.

    Attributes:
        vdot: rate of v, `(..., nv)`.
        tau: generalized forces, `(..., nv)`; computed for prescribed joints.
        accelerations: rate of every body's twist, `(..., nb, 6)`, its own frame and origin.
        reactions: the constraint's wrench on body i through joint i, `(..., nj, 6)`, body i's
            frame, about its origin.
    """

    vdot: Array
    tau: Array
    accelerations: Array
    reactions: Array


class JointMaps(NamedTuple):
    """A joint's mapping matrices in its own frame, in six components.

    Attributes:
        V: from the reduced reaction wrench, `(..., 6, r)` [VT18, Table 4]; for a prescribed joint
            [V, V_act], since its degrees of freedom are constrained too.
        V_act: from the generalized forces, `(..., 6, d)` [VT18, Table 5].
        L: to the generalized speeds, `(..., d, 6)` [VT18, Table 6].
    """

    V: Array
    V_act: Array
    L: Array


def joint_maps(robot: Robot, q: Array, prescribed: Mapping[int, Array]) -> list[JointMaps]:
    """Return V, V_act and L for every joint."""
    result: list[JointMaps] = []
    for i, joint in enumerate(robot.joints):
        V, V_act = joints.reaction_basis(joint, q), joints.actuation_basis(joint, q)
        held = concatenate([V, V_act]) if i in prescribed else V
        result.append(JointMaps(held, V_act, constraint(V_act)))
    return result


def constraint(V: Array) -> Array:
    """Return Λ = Vᵀ(·)ˢ `(..., r, 6)`: the part of a motion on which V does work."""
    return dq.swap(vector.transpose(V))


def collected(
    robot: Robot,
    state: LoadedState,
    maps: list[JointMaps],
    links: list[Link],
    T: list[Array],
    across: list[Array],
    accelerations: list[Array],
) -> MaximalSolution:
    """Return the solution from the reduced wrenches T and, for every joint, across = S v̇."""
    prescribed, batch = state.prescribed, state.batch
    vdots: list[Array] = []
    taus: list[Array] = []
    reactions: list[Array] = []
    for i, (joint, link) in enumerate(zip(robot.joints, links, strict=True)):
        V = maps[i].V
        count = V.shape[-1] - (link.S.shape[-1] if i in prescribed else 0)
        vdots.append(prescribed[i] if i in prescribed else vector.apply(maps[i].L, across[i]))
        taus.append(T[i][..., count:] if i in prescribed else state.tau[..., joint.v])
        reactions.append(vector.apply(V[..., :, :count], T[i][..., :count]))
    return MaximalSolution(
        gather(robot, vdots, batch),
        gather(robot, taus, batch),
        with_batch(stack(accelerations, axis=-2), batch, trailing=2),
        with_batch(stack(reactions, axis=-2), batch, trailing=2),
    )


def mass_properties(robot: Robot) -> list[tuple[Array, Array]]:
    """Return mass and inertia of every body; ones for immobile bodies.

    A body fixed to the inertial frame does not accelerate, and may have no inertia (the ground of a
    fixed robot); its block of S11 only has to be invertible.
    """
    return [
        (np.asarray(1.0), np.eye(3)) if _immobile(joint) else (asarray(body.mass), body.inertia)
        for body, joint in zip(robot.bodies, robot.joints, strict=True)
    ]


def _immobile(joint: Joint) -> bool:
    return joints.is_rigid(joint) and joint.parent < 0


def refuse_unfit(robot: Robot, formulation: str) -> None:
    """Raise if a robot has features that the maximal formulations do not support."""
    refuse_mimic_joints(robot, formulation)
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        if joints.has_rotor(joint):
            raise InvalidValue(
                f"joint {joint.name!r} has a rotor inertia, which the formulation "
                f"{formulation!r} does not support: use formulation='articulated'"
            )
        mass, inertia = asarray(body.mass), asarray(body.inertia)
        if _immobile(joint) or is_symbolic(mass) or is_symbolic(inertia):
            continue
        moments = np.linalg.eigvalsh(inertia)
        if np.any(mass <= 0.0) or np.any(moments[..., 0] <= 1e-14 * moments[..., -1]):
            what = "mass" if np.any(mass <= 0.0) else "inertia about one of its axes"
            raise InvalidValue(
                f"body {body.name!r} has no {what}: S is singular, for the formulation "
                f"{formulation!r} inverts every body's inertia; use formulation='articulated', or "
                "replace the body by a constraint: a link between two pins is a rod"
            )
