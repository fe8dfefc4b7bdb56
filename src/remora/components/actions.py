"""Actions of components on a robot: generalized forces by joint, wrenches by body or frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from remora.algebra import pose, quaternion, screw
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.components.context import Kinematics
from remora.errors import RemoraError, ShapeError, UnknownName
from remora.model.robot import Robot

#: Axes in which a wrench can be given.
AXES = ("own", "inertial")


@dataclass(frozen=True, eq=False)
class JointForce:
    """A generalized force between the two bodies of a joint.

    Attributes:
        joint: name of the joint.
        value: one number per degree of freedom, N m or N; a number for joints with one.
    """

    joint: str
    value: Any

    def numbers(self) -> Array:
        """Return the numbers of the action, `(..., k)`."""
        value = asarray(self.value)
        return value[..., None] if value.ndim == 0 else value

    def with_numbers(self, numbers: Array) -> JointForce:
        """Return the same action with other numbers."""
        return replace(self, value=numbers)


@dataclass(frozen=True, eq=False)
class GeneralizedForce:
    """Generalized forces on all degrees of freedom.

    Attributes:
        value: `(..., nv)`, ordered as the velocities.
    """

    value: Any

    def numbers(self) -> Array:
        """Return the numbers of the action, `(..., nv)`."""
        value = asarray(self.value)
        return value[..., None] if value.ndim == 0 else value

    def with_numbers(self, numbers: Array) -> GeneralizedForce:
        """Return the same action with other numbers."""
        return replace(self, value=numbers)


@dataclass(frozen=True, eq=False)
class Wrench:
    """An external force and torque on a body, acting at the origin of the body or of a frame.

    Attributes:
        frame: name of a body or frame.
        force: `(..., 3)`, N.
        torque: `(..., 3)`, N m.
        axes: axes of both: `own`, those of the frame, or `inertial`.
    """

    frame: str
    force: Any = (0.0, 0.0, 0.0)
    torque: Any = (0.0, 0.0, 0.0)
    axes: str = "own"

    def __post_init__(self) -> None:
        """Check the axes."""
        if self.axes not in AXES:
            raise UnknownName("axes of a wrench", self.axes, AXES)

    def numbers(self) -> Array:
        """Return force and torque, `(..., 6)`."""
        return concatenate([asarray(self.force), asarray(self.torque)])

    def with_numbers(self, numbers: Array) -> Wrench:
        """Return the same action with other numbers."""
        return replace(self, force=numbers[..., :3], torque=numbers[..., 3:])


Action: TypeAlias = JointForce | GeneralizedForce | Wrench


def listed(who: str, returned: Any) -> list[Action]:
    """Return what the method `act` of a component returned as a list, or raise."""
    if returned is None:
        return []
    items: list[Any] = [*returned] if isinstance(returned, (list, tuple)) else [returned]
    for item in items:
        if not isinstance(item, Action):
            raise RemoraError(
                f"{who} must return JointForce, GeneralizedForce or Wrench, or a list of these, "
                f"not {type(item).__name__}"
            )
    return items


def same_targets(who: str, before: Sequence[Action], now: Sequence[Action]) -> None:
    """Raise if actions differ from those at the neutral state in more than their numbers."""
    if _targets(before) != _targets(now):
        told = [", ".join(_targets(x)) or "nothing" for x in (before, now)]
        raise RemoraError(
            f"{who} must always act on the same joints and bodies, with zeros where no force "
            f"acts: it returned {told[0]} at the neutral state, and now {told[1]}"
        )


def _targets(actions: Sequence[Action]) -> list[str]:
    found: list[str] = []
    for action in actions:
        place = ""
        if isinstance(action, Wrench):
            place = f"({action.frame!r}, {action.axes})"
        elif isinstance(action, JointForce):
            place = f"({action.joint!r})"
        found.append(f"{type(action).__name__}{place} of {action.numbers().shape[-1]}")
    return found


def check(who: str, robot: Robot, action: Action) -> None:
    """Raise if an action does not fit the robot."""
    if isinstance(action, Wrench):
        if robot.frame(action.frame).body < 0:
            raise RemoraError(f"{who}: frame {action.frame!r} is fixed in the inertial frame")
        for name in ("force", "torque"):
            value = asarray(getattr(action, name))
            if value.shape != (3,):
                raise ShapeError(f"{who}: the {name} on {action.frame!r} must have 3 numbers")
        return
    size, place = robot.nv, "all joints"
    if isinstance(action, JointForce):
        joint = robot.joints[robot.joint_index(action.joint)]
        if joint.mimic is not None:
            leader = robot.joints[joint.mimic.joint].name
            raise RemoraError(f"{who}: joint {joint.name!r} mimics {leader!r}: act on that one")
        size, place = joint.v.stop - joint.v.start, f"joint {joint.name!r}"
    if action.numbers().shape != (size,):
        raise ShapeError(
            f"{who}: the force on {place} must have {size} numbers, not shape "
            f"{asarray(action.value).shape}"
        )


def loads(
    robot: Robot, kinematics: Kinematics, actions: Sequence[Action]
) -> tuple[Array | None, Array | None]:
    """Return the sum of actions as generalized forces and wrenches.

    Args:
        robot: the robot.
        kinematics: poses of the bodies, needed for wrenches in inertial axes.
        actions: the actions.

    Returns:
        Generalized forces `(..., nv)`, and wrenches [f, τ] on the bodies in their own frames about
        their origins, `(..., nb, 6)`; None where there is none.
    """
    forces: list[Array] = []
    by_body: dict[int, list[Array]] = {}
    for action in actions:
        if isinstance(action, GeneralizedForce):
            forces.append(action.numbers())
        elif isinstance(action, JointForce):
            joint, value = robot.joints[robot.joint_index(action.joint)], action.numbers()
            before = np.zeros((*value.shape[:-1], joint.v.start))
            after = np.zeros((*value.shape[:-1], robot.nv - joint.v.stop))
            forces.append(concatenate([before, value, after]))
        else:
            body, wrench = _on_body(robot, kinematics, action)
            by_body.setdefault(body, []).append(wrench)
    tau = None if not forces else _total(forces)
    if not by_body:
        return tau, None
    nothing = np.zeros(6)
    rows = [_total(by_body[i]) if i in by_body else nothing for i in range(len(robot.bodies))]
    return tau, concatenate([row[..., None, :] for row in rows], trailing=2)


def _total(parts: Sequence[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _on_body(robot: Robot, kinematics: Kinematics, action: Wrench) -> tuple[int, Array]:
    """Return the index of the body, and the wrench in its frame about its origin."""
    frame = robot.frame(action.frame)
    place = frame.placement
    turn, offset = pose.rotation(place), pose.translation(place)
    force, torque = asarray(action.force), asarray(action.torque)
    if action.axes == "own":
        force, torque = (quaternion.rotate(turn, x) for x in (force, torque))
    else:
        back = quaternion.conjugate(kinematics.poses[..., frame.body, :4])
        force, torque = (quaternion.rotate(back, x) for x in (force, torque))
    return frame.body, screw.shift(concatenate([force, torque]), offset)
