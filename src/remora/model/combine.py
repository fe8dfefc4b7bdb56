"""Several robots in one world: a robot with several trees, each on its own base joint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from remora.algebra.array_ops import Array, is_symbolic
from remora.errors import InvalidValue
from remora.model.constraint import Constraint
from remora.model.named import Named
from remora.model.robot import Body, Frame, Joint, Mimic, Robot
from remora.model.takes_robot import check_robot

#: Separates the prefix from the name of a part: `servicer/arm`.
SEPARATOR = "/"


def combine(robots: Mapping[str, Robot], name: str | None = None) -> Robot:
    """Return one robot that has all given robots as separate trees.

    Bodies, joints, frames and constraints are called `prefix/name`, such as `servicer/arm`. The
    coordinates are those of the first robot, then those of the second, and so on: with
    `both = combine({"servicer": a, "target": b})`, q of `both` is `concatenate([q_a, q_b])`.
    Constraints between the trees are added with `add_constraint`.

    Args:
        robots: the robots by prefix.
        name: of the result; default: the prefixes joined by `+`.

    Raises:
        InvalidValue: if there is no robot, a prefix is empty or contains `/`, or the robots do not
            have the same gravity.

    Example:
        >>> servicer, satellite = rm.load("servicer"), rm.load("defunct_satellite")
        >>> both = rm.combine({"servicer": servicer, "target": satellite})
        >>> both.nv == servicer.nv + satellite.nv
        True
    """
    _check(robots)
    bodies: list[Body] = []
    joints: list[Joint] = []
    frames: list[Frame] = []
    constraints: list[Constraint] = []
    warnings: list[str] = []
    nq = nv = 0
    for prefix, robot in robots.items():
        start = len(bodies)
        named = _Renamed(f"{prefix}{SEPARATOR}", start)
        bodies += [dataclasses.replace(b, name=named(b)) for b in robot.bodies]
        joints += [
            dataclasses.replace(
                j,
                name=named(j),
                parent=named.index(j.parent),
                q=_shifted(j.q, nq),
                v=_shifted(j.v, nv),
                mimic=None if j.mimic is None else _mimic(j.mimic, start),
            )
            for j in robot.joints
        ]
        frames += [
            dataclasses.replace(f, name=named(f), body=named.index(f.body)) for f in robot.frames
        ]
        constraints += [
            dataclasses.replace(
                c, name=named(c), parent=named.index(c.parent), child=named.index(c.child)
            )
            for c in robot.constraints
        ]
        warnings += [f"{prefix}: {text}" for text in robot.warnings]
        nq, nv = nq + robot.nq, nv + robot.nv
    first = next(iter(robots.values()))
    return Robot(
        name="+".join(robots) if name is None else name,
        bodies=Named(bodies, "body"),
        joints=Named(joints, "joint"),
        frames=Named(frames, "frame"),
        gravity=first.gravity,
        warnings=tuple(warnings),
        dynamics=all(robot.dynamics for robot in robots.values()),
        constraints=Named(constraints, "constraint"),
    )


class _Renamed:
    """The names and indices of one robot's parts in the combined robot."""

    def __init__(self, prefix: str, start: int) -> None:
        self.prefix, self.start = prefix, start

    def __call__(self, part: Body | Joint | Frame | Constraint) -> str:
        """Return the name of a part, with its prefix."""
        return self.prefix + part.name

    def index(self, body: int) -> int:
        """Return the index of a body or joint; -1 stays the inertial frame."""
        return body + self.start if body >= 0 else -1


def _shifted(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)


def _mimic(mimic: Mimic, start: int) -> Mimic:
    return dataclasses.replace(mimic, joint=mimic.joint + start)


def _check(robots: object) -> None:
    no_robots: Mapping[Any, Any] = {}
    given = cast(Mapping[Any, Any], robots) if isinstance(robots, Mapping) else no_robots
    if not given:
        shown = "an empty one" if isinstance(robots, Mapping) else type(robots).__name__
        raise InvalidValue(
            'combine takes a dictionary of robots by prefix, such as {"servicer": a, "target": b}, '
            f"not {shown}"
        )
    for prefix, robot in given.items():
        if not isinstance(prefix, str) or not prefix or SEPARATOR in prefix:
            raise InvalidValue(
                f"a prefix must be a name without {SEPARATOR!r}, which separates it from the names "
                f"of the robot's parts, not {prefix!r}"
            )
        check_robot("combine", robot)
    (first, one), *others = given.items()
    for prefix, robot in others:
        if not _equal(one.gravity, robot.gravity):
            raise InvalidValue(
                f"robots in one world have the same gravity: {first!r} has {one.gravity}, "
                f"{prefix!r} has {robot.gravity}; change one with robot.replace(gravity=...)"
            )


def _equal(a: Array, b: Array) -> bool:
    if a is b:
        return True
    return not is_symbolic(a) and not is_symbolic(b) and np.array_equal(a, b)
