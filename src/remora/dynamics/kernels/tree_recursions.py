"""Tree recursions of large robots as loops: each step is traced once per class of joints.

The joint's and body's numbers are symbols in the trace. `codegen.tree_loops` finds out which joints
share their zeros and ones and groups them into classes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, is_array, is_symbolic
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.ir.trace import symbols_of, trace
from remora.codegen.tree_loops.loops import ROLES, Loops, Sweep
from remora.dynamics import kinematics
from remora.dynamics.kernels.composed_robot import ComposedRobot
from remora.dynamics.recursive import (
    articulated_body,
    composite_rigid_body,
    recursive_newton_euler,
)
from remora.dynamics.recursive.tree_passes import JointContext, Pass, minus_gravity
from remora.dynamics.refusals import refuse_mimic_joints
from remora.model.joints import kind
from remora.model.robot import Body, Joint, Robot
from remora.model.robot_fields import rows

#: The numbers of a joint, its body and its mimic relation that a step may depend on.
_OF_JOINT, _OF_BODY, _OF_MIMIC = (
    tuple(rows(part, only="looped")) for part in ("joint", "body", "mimic")
)


@dataclass(frozen=True)
class Recursion:
    """A function that consists of passes over the tree.

    Attributes:
        passes: in order.
        result: extracts the joint's or body's part of the result from the last pass; before a
            climb, the initial wrench and own entries of each row.
        shape: of a body's part; None: one number per speed of the joint.
        followers: whether mimic joints are supported.
        straight: largest number of bodies for which a robot whose numbers fold is compiled as
            straight-line code: a quarter faster, but seconds to compile (docs/benchmarks.md). Half
            as many for other robots, which gain nothing by it.
        climb: (at, result of the first pass, six numbers) -> (entries of a row of the result, six
            numbers for the parent), for a symmetric matrix over the speeds.
    """

    passes: tuple[Pass, ...]
    result: Callable[[Any], Array]
    shape: tuple[int, ...] | None = None
    followers: bool = True
    straight: int = 60
    climb: Callable[[JointContext, Any, Array], tuple[Array, Array]] | None = None


def _rows(block: composite_rigid_body.DiagonalBlock) -> Array:
    """Return for each speed of a joint the wrench on the parent, and its row of D."""
    D, F = block
    above = np.zeros((6, D.shape[-1])) if F is None else F
    return np.concatenate([above.T, D], axis=-1)


#: The functions of the library that can run as loops, by name.
RECURSIONS = {
    "forward_dynamics": Recursion(articulated_body.PASSES, lambda left: left.vdot, followers=False),
    "inverse_dynamics": Recursion(recursive_newton_euler.PASSES, lambda left: left.tau),
    "bias_force": Recursion(recursive_newton_euler.PASSES, lambda left: left.tau),
    "mass_matrix": Recursion(
        composite_rigid_body.BLOCKS, _rows, straight=20, climb=composite_rigid_body.ancestor_row
    ),
    "poses": Recursion(kinematics.POSES, lambda left: left.pose, (8,)),
    "twists": Recursion(kinematics.TWISTS, lambda left: left.twist, (6,)),
    "accelerations": Recursion(kinematics.ACCELERATIONS, lambda left: left.rate, (6,)),
}


def loops(robot: Robot, function: str, inputs: Sequence[Signature]) -> Loops:
    """Return a function of RECURSIONS for one robot as loops over its joints.

    Args:
        robot: the robot; its numbers are floats.
        function: a name of RECURSIONS.
        inputs: the arguments.
    """
    recursion = RECURSIONS[function]
    if not recursion.followers:
        refuse_mimic_joints(robot, "articulated")
    shape = (robot.nv,) if recursion.shape is None else (len(robot.bodies), *recursion.shape)
    climbs = recursion.climb is not None
    keys = [(j.kind, j.parent < 0, j.mimic is None) for j in robot.joints]
    sorts = list(dict.fromkeys(keys))
    pairs = list(zip(robot.joints, robot.bodies, strict=True))
    templates = [pairs[keys.index(sort)] for sort in sorts]
    return Loops(
        inputs=tuple(inputs),
        outputs=(Signature("out", 2 * shape if climbs else shape),),
        parents=tuple(j.parent for j in robot.joints),
        sorts=tuple(sorts.index(key) for key in keys),
        numbers=tuple(_numbers(joint, body) for joint, body in pairs),
        places=_places(robot, recursion, {s.name for s in inputs}),
        sweeps=_Tracer(robot, recursion, [s.name for s in inputs], templates).sweeps(),
        shared=recursion.shape is None and any(j.mimic is not None for j in robot.joints),
        rows=tuple(j.v.stop - j.v.start for j in robot.joints) if climbs else (),
    )


def _places(
    robot: Robot, recursion: Recursion, arguments: Collection[str]
) -> dict[str, tuple[int, ...]]:
    """Return where each joint's part of an argument or of the result begins."""
    count, width = len(robot.joints), math.prod(recursion.shape or ())
    speeds = tuple(j.v.start for j in robot.joints)
    places = {
        "q": tuple(j.q.start for j in robot.joints),
        "v": speeds,
        "tau": speeds,
        "vdot": speeds,
        "wrenches": tuple(range(0, 6 * count, 6)),
        "out": speeds if recursion.shape is None else tuple(width * i for i in range(count)),
    }
    return {name: at for name, at in places.items() if name in arguments or name == "out"}


def uses_loops(robot: Robot, straight: int) -> bool:
    """Tell whether a robot should be compiled as loops, given a row's `straight`."""
    if isinstance(robot, ComposedRobot):  # its forward dynamics is no straight line either
        return True
    if len(robot.bodies) <= straight // 2 or not can_use_loops(robot):
        return False
    return len(robot.bodies) > straight or not _folds(robot)


def _folds(robot: Robot) -> bool:
    """Tell whether nearly all of the joints' directions are zeros and ones, which fold away."""
    turns = [pose.to_rotation_matrix(joint.placement) for joint in robot.joints]
    numbers = np.concatenate([np.ravel(x) for x in (*turns, *(j.axes for j in robot.joints))])
    return bool(np.mean(np.isin(np.abs(numbers), (0.0, 1.0))) > 0.9)


def can_use_loops(robot: Robot) -> bool:
    """Tell whether the robot's numbers are plain floats without a batch shape."""
    for joint, body in zip(robot.joints, robot.bodies, strict=True):
        arrays = [getattr(joint, n) for n in _OF_JOINT] + [getattr(body, n) for n in _OF_BODY]
        if any(is_symbolic(np.asarray(a)) for a in arrays):
            return False
        if joint.placement.ndim != 1 or joint.axes.ndim != 2 or np.ndim(body.mass) != 0:
            return False
        if body.com.ndim != 1 or body.inertia.ndim != 2 or joint.rotor_inertia.ndim != 1:
            return False
    return not is_symbolic(robot.gravity) and robot.gravity.ndim == 1


# Numbers of a joint and its body ------------------------------------------------------------------


def _parts(joint: Joint, body: Body) -> list[Array]:
    parts = [getattr(joint, n) for n in _OF_JOINT] + [getattr(body, n) for n in _OF_BODY]
    if joint.mimic is not None:
        parts += [getattr(joint.mimic, n) for n in _OF_MIMIC]
    return [np.asarray(p) for p in parts]


def _numbers(joint: Joint, body: Body) -> Array:
    return np.concatenate([p.reshape(-1) for p in _parts(joint, body)])


def _with_numbers(joint: Joint, body: Body, numbers: Array) -> tuple[Joint, Body]:
    """Return a joint and body with other numbers, and slices into the joint's own arguments."""
    row = kind(joint)
    values = iter(_split(numbers, _parts(joint, body)))
    changes: dict[str, Any] = {name: next(values) for name in _OF_JOINT}
    body = dataclasses.replace(body, **{name: next(values) for name in _OF_BODY})
    if joint.mimic is not None:
        followed = {name: next(values) for name in _OF_MIMIC}
        changes["mimic"] = dataclasses.replace(joint.mimic, **followed)
    own = {"q": slice(0, row.nq), "v": slice(0, row.nv)}
    return dataclasses.replace(joint, **changes, **own), body


def _split(flat: Array, like: Sequence[Array]) -> list[Array]:
    """Return consecutive parts of a flat array in the shapes of others."""
    bounds = np.cumsum([0, *(p.size for p in like)])
    return [
        flat[a:b].reshape(p.shape) for a, b, p in zip(bounds[:-1], bounds[1:], like, strict=True)
    ]


# Tuples of arrays ---------------------------------------------------------------------------------


def _leaves(record: Any) -> list[Array]:
    """Return the arrays of nested tuples in order; None holds none."""
    if is_array(record):
        return [record]
    return [] if record is None else [leaf for part in record for leaf in _leaves(part)]


def _flat(record: Any) -> Array:
    leaves = [leaf.reshape(-1) for leaf in _leaves(record)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def _like(record: Any, flat: Array) -> Any:
    """Return nested tuples as `record` with the numbers of a flat array."""
    values = iter(_split(flat, _leaves(record)))

    def rebuilt(part: Any) -> Any:
        if is_array(part):
            return next(values)
        if part is None:
            return None
        parts = [rebuilt(p) for p in part]
        return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)

    return rebuilt(record)


# Tracing ------------------------------------------------------------------------------------------


class _Tracer:
    """Traces the steps of a recursion for some classes of joints."""

    def __init__(
        self,
        robot: Robot,
        recursion: Recursion,
        arguments: Sequence[str],
        templates: list[tuple[Joint, Body]],
    ) -> None:
        self.ground = minus_gravity(robot)
        self.recursion, self.arguments, self.templates = recursion, arguments, templates
        #: Result of each pass so far, by joint class.
        self.records: list[list[Any]] = [[] for _ in templates]

    def sweeps(self) -> tuple[Sweep, ...]:
        """Return every pass with the graphs of its steps."""
        made = tuple(self._sweep(way) for way in self.recursion.passes)
        return made if self.recursion.climb is None else (*made, self._climb())

    def _sweep(self, way: Pass) -> Sweep:
        received = self._passed_on(way)
        last = way is self.recursion.passes[-1]
        graphs: list[Graph] = []
        for sort, (joint, _) in enumerate(self.templates):
            known = received if way.inward or joint.parent >= 0 else None
            left, graph = self._traced(way, sort, known, _flat(received).size, last)
            graphs.append(graph)
            self.records[sort].append(left)
        return Sweep(way.inward, tuple(graphs))

    def _passed_on(self, way: Pass) -> Any:
        """Return an example of the value that joints pass on: from the base, or from a leaf."""
        for sort, (joint, _) in enumerate(self.templates):
            if (joint.parent < 0) != way.inward:
                return self._run(way, sort, symbols_of(self._inputs(sort))[1], None)[1]
        return None

    def _inputs(self, sort: int, received: int = 0) -> list[Signature]:
        joint, body = self.templates[sort]
        row = kind(joint)
        sizes = {"q": row.nq, "v": row.nv, "tau": row.nv, "vdot": row.nv, "wrenches": 6}
        counts = (_numbers(joint, body).size, _flat(self.records[sort]).size, received)
        return [
            *(Signature(role, (n,)) for role, n in zip(ROLES, counts, strict=True)),
            *(Signature(name, (sizes[name],)) for name in self.arguments),
        ]

    def _site(self, sort: int, arrays: Sequence[Array]) -> tuple[JointContext, tuple[Any, ...]]:
        """Return a joint with these numbers and arguments, and the earlier results there."""
        joint, body = _with_numbers(*self.templates[sort], arrays[0])
        given = dict(zip(self.arguments, arrays[3:], strict=True))
        wrench = given.pop("wrenches", None)
        still = {"vdot": np.zeros(kind(joint).nv)}
        at = JointContext(joint, body, self.ground, wrench=wrench, **(still | given))
        return at, tuple(_like(self.records[sort], arrays[1]))

    def _run(self, way: Pass, sort: int, arrays: Sequence[Array], received: Any) -> tuple[Any, Any]:
        """Run a step on arrays: joint numbers, earlier results, received values, arguments."""
        at, before = self._site(sort, arrays)
        return way.step(at, before, None if received is None else _like(received, arrays[2]))

    def _traced(
        self, way: Pass, sort: int, received: Any, width: int, last: bool
    ) -> tuple[Any, Graph]:
        kept: list[Any] = []

        def function(*arrays: Array) -> tuple[Array, ...]:
            left, passed = self._run(way, sort, arrays, received)
            kept.append(left)
            result = self.recursion.result(left) if last else np.zeros(0)
            return np.zeros(0) if last else _flat(left), _flat(passed), result.reshape(-1)

        graph = trace(function, self._inputs(sort, width), ("left", "passed", "out"))
        return kept[0], graph

    def _climb(self) -> Sweep:
        """Return the steps of the climb: one wrench at a time, so that all rows share them."""
        graphs: list[Graph] = []
        for sort in range(len(self.templates)):

            def function(*arrays: Array, sort: int = sort) -> tuple[Array, ...]:
                assert self.recursion.climb is not None
                at, before = self._site(sort, arrays)
                entries, on = self.recursion.climb(at, before[0], arrays[2][:, None])
                return np.zeros(0), _flat(on), entries.reshape(-1)

            graphs.append(trace(function, self._inputs(sort, 6), ("left", "passed", "out")))
        return Sweep(inward=False, steps=tuple(graphs), climbs=True)
