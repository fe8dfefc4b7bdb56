"""Recursions over the tree: passes outward from the base or inward to it, one step for each joint.

A step is a pure function of one joint: (the joint and its share of the arguments, what earlier
passes left there, what the neighbours pass on) -> (what it leaves there, what it passes on). An
outward step is handed what its parent passes on, an inward step the sum of what its children do;
None where there is none. What is left and passed on are tuples of arrays.

`run` does the steps joint by joint: that is what NumPy and a straight-line trace see. For a large
robot `dynamics.rolled` traces each step once for a class of joints and loops over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import screw
from remora.algebra.namespace import Array, asarray, concatenate
from remora.algebra.screw import Inertia
from remora.model.robot import Body, Joint, Robot

_NOTHING = np.zeros(0)


class JointContext(NamedTuple):
    """A joint with the body it carries, and the arguments in which its slices find its share.

    Attributes:
        joint: the joint.
        body: the body it carries.
        ground: the acceleration of the inertial frame that acts like gravity, `(..., 6)`.
        q: configuration.
        v: velocity.
        tau: generalized forces.
        vdot: rate of v.
        wrench: external, on this body, `(..., 6)`, or None.
        given: the acceleration this joint is held to, `(..., nv_i)`, or None.
    """

    joint: Joint
    body: Body
    ground: Array
    q: Array
    v: Array = _NOTHING
    tau: Array = _NOTHING
    vdot: Array = _NOTHING
    wrench: Array | None = None
    given: Array | None = None

    @property
    def is_root(self) -> bool:
        """Whether the joint is mounted on the inertial frame."""
        return self.joint.parent < 0

    @property
    def inertia(self) -> Inertia:
        """The body's inertia about its frame's origin, in its frame."""
        return screw.inertia(self.body.mass, self.body.com, self.body.inertia)


Step = Callable[[JointContext, Any, Any], tuple[Any, Any]]


class Pass(NamedTuple):
    """One way through the tree.

    Attributes:
        inward: from the ends of the branches to the base; else from the base outward.
        step: (at, what earlier passes left here, from the neighbours) -> (left here, passed on).
    """

    inward: bool
    step: Step


def run(
    robot: Robot,
    passes: tuple[Pass, ...],
    wrenches: Array | None = None,
    given: Mapping[int, Array] | None = None,
    **arguments: Array,
) -> tuple[list[JointContext], list[list[Any]]]:
    """Return the joints as the steps saw them, and what each pass left at each of them.

    Args:
        robot: the robot.
        passes: in order.
        wrenches: external, `(..., nb, 6)`, or None.
        given: accelerations that joints are held to, by index.
        **arguments: `q`, `v`, `tau`, `vdot`, as the steps need them.
    """
    ground, given = minus_gravity(robot), given or {}
    sites = [
        JointContext(
            joint,
            body,
            ground,
            wrench=None if wrenches is None else wrenches[..., i, :],
            given=given.get(i),
            **arguments,
        )
        for i, (joint, body) in enumerate(zip(robot.joints, robot.bodies, strict=True))
    ]
    left: list[list[Any]] = []
    for way in passes:
        left.append((_inward if way.inward else _outward)(way.step, sites, left))
    return sites, left


def _outward(step: Step, sites: list[JointContext], before: list[list[Any]]) -> list[Any]:
    left: list[Any] = []
    passed: list[Any] = []
    for i, at in enumerate(sites):
        received = None if at.is_root else passed[at.joint.parent]
        here, on = step(at, tuple(records[i] for records in before), received)
        left.append(here)
        passed.append(on)
    return left


def _inward(step: Step, sites: list[JointContext], before: list[list[Any]]) -> list[Any]:
    left: list[Any] = [None] * len(sites)
    received: list[Any] = [None] * len(sites)
    for i in reversed(range(len(sites))):
        at = sites[i]
        left[i], on = step(at, tuple(records[i] for records in before), received[i])
        if not at.is_root:
            received[at.joint.parent] = added(received[at.joint.parent], on)
    return left


def added(a: Any, b: Any) -> Any:
    """Return the sum of two tuples of arrays, array by array; None is nothing."""
    return b if a is None else type(b)(*(asarray(x + y) for x, y in zip(a, b, strict=True)))


def minus_gravity(robot: Robot) -> Array:
    """Return the acceleration of the inertial frame that acts like gravity, `(..., 6)`."""
    g = asarray(robot.gravity)
    return concatenate([np.zeros_like(g), -g])
