"""Recursions over the kinematic tree as outward and inward passes, one pure step per joint.

A step is a pure function of one joint: (the joint and its slices of the arguments, results of
earlier passes at this joint, values from the neighbours) -> (result at this joint, value passed
on). An outward step receives its parent's value, an inward step the sum of its children's values;
None if there is no neighbour. Results and values are tuples of arrays.

`run` performs the steps joint by joint, on floats or in a straight-line trace. For large robots
`dynamics.kernels.tree_recursions` traces each step once per class of joints and generates loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import screw
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.algebra.screw import Inertia
from remora.dynamics.joint_arrays import LoadedState
from remora.model.robot import Body, Joint, Robot

_NOTHING = np.zeros(0)


class JointContext(NamedTuple):
    """A joint with its body, and the robot's arguments, indexed by the joint's slices.

    Attributes:
        joint: the joint.
        body: the body it carries.
        ground: the acceleration of the inertial frame that acts like gravity, `(..., 6)`.
        q: configuration.
        v: velocity.
        tau: generalized forces.
        vdot: rate of v.
        wrench: external, on this body, `(..., 6)`, or None.
        given: prescribed acceleration of this joint, `(..., nv_i)`, or None.
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
    """One pass over the tree.

    Attributes:
        inward: True from the leaves to the base, False from the base outward.
        step: (at, earlier results here, value from neighbours) -> (result, value passed on).
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
    """Return the joint contexts, and the result of each pass at each joint.

    Args:
        robot: the robot.
        passes: in order.
        wrenches: external, `(..., nb, 6)`, or None.
        given: prescribed accelerations, by joint index.
        **arguments: those of `q`, `v`, `tau`, `vdot` that the steps use.
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


def run_at(
    robot: Robot, passes: tuple[Pass, ...], state: LoadedState
) -> tuple[list[JointContext], list[list[Any]]]:
    """Return what `run` returns for a state and what drives it."""
    q, v, tau, wrenches, prescribed = state
    return run(robot, passes, wrenches, prescribed, q=q, v=v, tau=tau)


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
    """Return the sum of two tuples of arrays, array by array; None counts as zero."""
    return b if a is None else type(b)(*(asarray(x + y) for x, y in zip(a, b, strict=True)))


def minus_gravity(robot: Robot) -> Array:
    """Return the acceleration of the inertial frame that acts like gravity, `(..., 6)`."""
    g = asarray(robot.gravity)
    return concatenate([np.zeros_like(g), -g])
