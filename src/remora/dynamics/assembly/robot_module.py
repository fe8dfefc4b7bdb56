"""A robot as a module: its recursions, started from the motion of a moving base.

The steps are those of the RNEA and the ABA (`dynamics.recursive`). A module differs from a robot
that stands alone in two places: its first joints receive the motion of the connection point they
are mounted on instead of the ground's, and what they pass inward goes to the predecessor.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array
from remora.algebra.screw import Transform
from remora.dynamics.joint_arrays import gather
from remora.dynamics.recursive import articulated_body, recursive_newton_euler
from remora.dynamics.recursive.articulated_body import ArticulatedBody
from remora.dynamics.recursive.outward_pass import BodyMotion, moving
from remora.dynamics.recursive.recursive_newton_euler import JointLoad, SubtreeWrench
from remora.dynamics.recursive.tree_passes import JointContext, Step, added
from remora.errors import RemoraError, UnknownName
from remora.model.joints import is_rigid
from remora.model.robot import Frame, Joint, Robot

_Placed = TypeVar("_Placed", Joint, Frame)
_RNEA_OUTWARD, _RNEA_INWARD = (way.step for way in recursive_newton_euler.PASSES)
_, _ABA_INWARD, _ABA_OUTWARD = (way.step for way in articulated_body.PASSES)


@dataclasses.dataclass(frozen=True, eq=False)
class RobotModule:
    """A robot in its place in an assembly.

    Attributes:
        robot: the robot, with the placements of its first joints in the frame it is mounted on.
        ground: whether it is the root, mounted on the inertial frame.
        points: the connection points that are used, in order.
        joints: its joints; of a module that is not the root, parents are counted from 1 and the
            base is 0, so that no joint takes itself for the root.
    """

    robot: Robot
    ground: bool
    points: tuple[Frame, ...]
    joints: tuple[Joint, ...]

    @functools.cached_property
    def transforms(self) -> tuple[Transform, ...]:
        """Transforms from the frames of the used points to those of their bodies."""
        return tuple(screw.transform(frame.placement) for frame in self.points)

    def contexts(
        self, ground: Array, wrenches: Array | None, **arguments: Array
    ) -> list[JointContext]:
        """Return the joints with their arguments.

        Args:
            ground: minus the acceleration of gravity, `(6,)`; read at the root only.
            wrenches: external, `(..., nb, 6)`, or None.
            **arguments: those of `q`, `v`, `vdot`, `tau` that the steps use.
        """
        return [
            JointContext(
                joint, body, ground,
                wrench=None if wrenches is None else wrenches[..., i, :], **arguments,
            )
            for i, (joint, body) in enumerate(zip(self.joints, self.robot.bodies, strict=True))
        ]  # fmt: skip

    def outward(
        self, step: Step, contexts: list[JointContext], before: Sequence[Sequence[Any]], base: Any
    ) -> tuple[list[Any], list[Any]]:
        """Run an outward step from the base; return results and values passed on, by joint."""
        left: list[Any] = []
        passed: list[Any] = [] if self.ground else [base]
        for i, at in enumerate(contexts):
            received = None if at.is_root else passed[at.joint.parent]
            here, on = step(at, tuple(records[i] for records in before), received)
            left.append(here)
            passed.append(on)
        return left, passed if self.ground else passed[1:]

    def inward(
        self,
        step: Step,
        contexts: list[JointContext],
        before: Sequence[Sequence[Any]],
        loads: Mapping[int, Any],
    ) -> tuple[list[Any], Any]:
        """Run an inward step with loads on bodies; return results and what reaches the base."""
        left: list[Any] = [None] * len(contexts)
        shift = 0 if self.ground else 1
        received: list[Any] = [None] * (len(contexts) + shift)
        for body, load in loads.items():
            received[body + shift] = load
        for i in reversed(range(len(contexts))):
            at = contexts[i]
            here = tuple(records[i] for records in before)
            left[i], on = step(at, here, received[i + shift])
            if not at.is_root:
                received[at.joint.parent] = added(received[at.joint.parent], on)
        return left, None if self.ground else received[0]

    def at_points(self, values: Sequence[Array], base: Array) -> list[Array]:
        """Return twists or rates `(..., 6)` at the used points from those of the bodies.

        Args:
            values: of every body, body frame.
            base: of the base, for points fixed to it.
        """
        on_bodies = (base if frame.body < 0 else values[frame.body] for frame in self.points)
        return [screw.to_inner(X, x) for X, x in zip(self.transforms, on_bodies, strict=True)]


class InverseState(NamedTuple):
    """The outward half of a module's inverse dynamics.

    Attributes:
        contexts: joints with their arguments.
        bodies: results of the outward pass.
        motions: motions of the bodies.
        points: motions at the used points.
    """

    contexts: list[JointContext]
    bodies: list[Any]
    motions: list[BodyMotion]
    points: list[BodyMotion]


class ForwardState(NamedTuple):
    """The first two passes of a module's forward dynamics.

    Attributes:
        contexts: joints with their arguments.
        bodies: results of the outward pass.
        points: twists at the used points.
        joints: results of the inward pass, once it has run.
    """

    contexts: list[JointContext]
    bodies: list[Any]
    points: list[Array]
    joints: list[Any]


def module_of(
    name: str, robot: Robot, mount: str | None, placement: Array, ground: bool, points: list[str]
) -> RobotModule:
    """Return a robot as a module.

    Args:
        name: of the subsystem, for error messages.
        robot: the robot.
        mount: the frame a_i of the robot that is placed on the connection point; None: its base.
        placement: pose of a_i in the connection point's frame.
        ground: whether it is the root of the assembly.
        points: names of the connection points that are used.
    """
    if robot.constraints:
        raise RemoraError(
            f"subsystem {name!r}: a robot with constraints (closed loops) cannot be part of an "
            "assembly; twists and wrenches are propagated along a tree"
        )
    if not robot.dynamics:
        raise RemoraError(f"subsystem {name!r} is a kinematics-only model without masses")
    pose = dual_quaternion.mul(placement, dual_quaternion.conjugate(_in_base(name, robot, mount)))
    if not _is_identity(pose):
        robot = robot.replace(
            joints=[_moved(joint, pose) if joint.parent < 0 else joint for joint in robot.joints],
            frames=[_moved(frame, pose) if frame.body < 0 else frame for frame in robot.frames],
        )
    used = tuple(point_of(name, robot, point) for point in points)
    joints = tuple(robot.joints)
    if not ground:
        joints = tuple(dataclasses.replace(joint, parent=joint.parent + 1) for joint in joints)
    return RobotModule(robot, ground, used, joints)


def point_of(name: str, robot: Robot, point: str) -> Frame:
    """Return the frame of a connection point of a robot."""
    try:
        return robot.frame(point)
    except UnknownName as error:
        raise UnknownName(f"connection point of subsystem {name!r}", point, error.known) from None


def _in_base(name: str, robot: Robot, mount: str | None) -> Array:
    """Return the constant pose of the frame `mount` in the robot's base frame."""
    if mount is None:
        return dual_quaternion.identity()
    frame = point_of(name, robot, mount)
    x, body = frame.placement, frame.body
    while body >= 0:
        joint = robot.joints[body]
        if not is_rigid(joint):
            raise RemoraError(
                f"subsystem {name!r} cannot be mounted by {mount!r}: joint {joint.name!r} "
                f"({joint.kind}) moves it in the subsystem's base frame"
            )
        x, body = dual_quaternion.mul(joint.placement, x), joint.parent
    return x


def _moved(part: _Placed, pose: Array) -> _Placed:
    """Return a joint or frame of the base, in the frame that the base is mounted on."""
    return dataclasses.replace(part, placement=dual_quaternion.mul(pose, part.placement))


def _is_identity(x: Array) -> bool:
    return bool((abs(x - dual_quaternion.identity()) == 0.0).all())


# Inverse dynamics ------------------------------------------------------------------------------


def start_inverse(
    module: RobotModule,
    q: Array,
    v: Array,
    vdot: Array,
    base: BodyMotion,
    wrenches: Array | None,
) -> InverseState:
    """Propagate twists and rates through a module [SA24, Algorithm 5; eqs. 6, 7]."""
    contexts = module.contexts(base.rate, wrenches, q=q, v=v, vdot=vdot)
    bodies, motions = module.outward(_RNEA_OUTWARD, contexts, (), base)
    twists = module.at_points([m.twist for m in motions], base.twist)
    rates = module.at_points([m.rate for m in motions], base.rate)
    points = [BodyMotion(t, a) for t, a in zip(twists, rates, strict=True)]
    return InverseState(contexts, bodies, motions, points)


def finish_inverse(
    module: RobotModule, state: InverseState, loads: Sequence[Array | None]
) -> tuple[list[JointLoad], Array | None]:
    """Propagate wrenches through a module [SA24, Algorithm 7; eq. 8].

    Args:
        module: the module.
        state: from `start_inverse`.
        loads: wrench on the successors at each used point, in the point's frame.

    Returns:
        The loads on its joints, and the wrench of the predecessor on it, in its base frame.
    """
    on_bodies: dict[int, Any] = {}
    on_base: Array | None = None
    for frame, X, load in zip(module.points, module.transforms, loads, strict=True):
        if load is None:
            continue
        W = screw.to_outer(X, load)
        if frame.body < 0:
            on_base = W if on_base is None else on_base + W
        else:
            on_bodies[frame.body] = added(on_bodies.get(frame.body), SubtreeWrench(W))
    joints, base = module.inward(_RNEA_INWARD, state.contexts, (state.bodies,), on_bodies)
    wrench = None if base is None else base.W
    if wrench is not None and on_base is not None:
        wrench = wrench + on_base
    return joints, wrench


def generalized_forces(module: RobotModule, joints: list[JointLoad]) -> Array:
    """Return the projections of the joints' wrenches on their axes, `(..., nv)`."""
    return gather(module.robot, [load.tau for load in joints], ())


# Forward dynamics ------------------------------------------------------------------------------


def start_forward(
    module: RobotModule, q: Array, v: Array, base: Array | None, ground: Array
) -> ForwardState:
    """Propagate twists through a module; `base` is the twist of its base."""
    contexts = module.contexts(ground, None, q=q, v=v)
    bodies, twists = module.outward(moving, contexts, (), base)
    points = module.at_points(twists, 0.0 * ground if base is None else base)
    return ForwardState(contexts, bodies, points, [])


def articulate(
    module: RobotModule,
    state: ForwardState,
    tau: Array,
    wrenches: Array | None,
    loads: Sequence[ArticulatedBody],
) -> tuple[ForwardState, ArticulatedBody | None]:
    """Propagate articulated-body inertias and bias wrenches through a module.

    Args:
        module: the module.
        state: from `start_forward`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, `(..., nb, 6)`, or None.
        loads: inertia and bias wrench of the successors at each used point, in its frame.

    Returns:
        The state with the inward pass, and inertia and bias wrench in the module's base frame.
    """
    on_bodies: dict[int, Any] = {}
    on_base: ArticulatedBody | None = None
    for frame, X, load in zip(module.points, module.transforms, loads, strict=True):
        moved = articulated_body.to_outer(X, load)
        if frame.body < 0:
            on_base = added(on_base, moved)
        else:
            on_bodies[frame.body] = added(on_bodies.get(frame.body), moved)
    contexts = [
        at._replace(tau=tau, wrench=None if wrenches is None else wrenches[..., i, :])
        for i, at in enumerate(state.contexts)
    ]
    joints, base = module.inward(_ABA_INWARD, contexts, (state.bodies,), on_bodies)
    state = state._replace(joints=joints)
    if base is None or on_base is None:
        return state, base
    return state, added(on_base, base)


def accelerate(module: RobotModule, state: ForwardState, base: Array) -> tuple[Array, list[Array]]:
    """Return vdot `(..., nv)` and the rates at the used points, from the base's acceleration."""
    before = (state.bodies, state.joints)
    bodies, rates = module.outward(_ABA_OUTWARD, state.contexts, before, base)
    vdot = gather(module.robot, [body.vdot for body in bodies], ())
    return vdot, module.at_points(rates, base)


def to_outer(placement: Array, load: ArticulatedBody) -> ArticulatedBody:
    """Return an articulated-body inertia and bias wrench in A's frame, from those in B's."""
    return articulated_body.to_outer(screw.transform(placement), load)


def wrench_only(W: Array) -> ArticulatedBody:
    """Return a wrench as the load of something without inertia."""
    nothing = np.zeros((3, 3))
    return ArticulatedBody(nothing, nothing, nothing, W)
