"""Loads of a batch in all accepted forms, as functions that can be compiled and as components."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, asarray, concatenate
from remora.components.actions import Action, GeneralizedForce, Wrench
from remora.components.component import Component
from remora.components.context import Context
from remora.errors import RemoraError
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.simulation.batch.run_equations import Law
from remora.simulation.inputs.loads import Sum, is_mapping
from remora.simulation.inputs.profiles import Profile, Pulse

#: Names of the loads, with the shapes of their values.
LOADS = ("torque", "base_wrench", "wrenches")


class SampledLoad(Component):
    """A load that is sampled: a function (t, q, v) with a sample time.

    Attributes:
        law: the function, which returns generalized forces `(nv,)`, or wrenches `(nb, 6)`.
        what: `torque` or `wrenches`.
    """

    law: Callable[..., Array]
    what: str

    def act(self, at: Context) -> list[Action]:
        """Return the forces."""
        value = self.law(at.t, at.q, at.v)
        if self.what == "torque":
            return [GeneralizedForce(value)]
        names = at.robot.bodies.names
        return [Wrench(n, value[i, :3], value[i, 3:]) for i, n in enumerate(names)]


class BatchLoads:
    """The loads of a batch or of one of its phases.

    Attributes:
        torque: generalized forces as a function, or None.
        wrenches: wrenches on all bodies as a function, or None.
        components: sampled loads, and components given as loads.
        breaks: times at which the loads are not smooth, s.
    """

    def __init__(self, robot: Robot, per_run: Sequence[str]) -> None:
        """Begin without loads.

        Args:
            robot: the robot.
            per_run: names of loads that are numbers which differ from run to run.
        """
        self._robot, self._per_run = robot, per_run
        self._torques, self._wrenches = list[Law](), list[Law]()
        self.components: list[Component] = []
        self.breaks: list[float] = []

    @property
    def torque(self) -> Law | None:
        """Generalized forces as a function."""
        return _summed(self._torques)

    @property
    def wrenches(self) -> Law | None:
        """Wrenches on all bodies as a function."""
        return _summed(self._wrenches)

    def add(self, what: str, given: Any) -> None:
        """Add a load.

        Args:
            what: one of `LOADS`.
            given: None, numbers, a function (t, q, v, and inputs by name), a `Profile`, a `Pulse`,
                a component, a controller with a sample time, a `Sum`, or a dictionary of these.
        """
        if given is None:
            return
        if isinstance(given, Sum):
            for part in given.parts:
                self.add(what, part)
        elif what in self._per_run:
            self._insert(what, _itself(what), 0.0)
        elif is_mapping(given):
            if what == "base_wrench":
                raise RemoraError("base_wrench cannot be given by name")
            for name, part in given.items():
                self._named(what, name, part)
        elif isinstance(given, Component):
            self.components.append(given)
        else:
            shape = self._shape(what)
            self._insert(what, law(given, shape, what), getattr(given, "sample_time", 0.0))
            self._note_breaks(given)

    def _named(self, what: str, name: str, given: Any) -> None:
        """Add a load of one joint or body."""
        if isinstance(given, Sum):
            for part in given.parts:
                self._named(what, name, part)
            return
        robot, told = self._robot, f"{what} of {name!r}"
        if isinstance(given, Component):
            raise RemoraError(f"{told}: a component says itself where it acts: do not name it")
        if what == "torque":
            joint = robot.joints[robot.joint_index(name)]
            if joint.mimic is not None:
                leader = robot.joints[joint.mimic.joint].name
                raise RemoraError(f"joint {name!r} mimics {leader!r}: give the torque to that one")
            place, size, shape = joint.v, robot.nv, (joint.v.stop - joint.v.start,)
        else:
            body = robot.body_index(name)
            place, size, shape = slice(body, body + 1), len(robot.bodies), (1, 6)
        single = law(given, shape if what == "torque" else (6,), told)

        def placed(t: Array, q: Array, v: Array, **others: Array) -> Array:
            own = single(t, q, v, **others).reshape(shape)
            before = np.zeros((place.start, *shape[1:]))
            after = np.zeros((size - place.stop, *shape[1:]))
            return concatenate([before, own, after], trailing=len(shape))

        self._insert(what, placed, getattr(given, "sample_time", 0.0))
        self._note_breaks(given)

    def _insert(self, what: str, own: Law, sample_time: float) -> None:
        if what == "base_wrench":
            own, what = _on_base(own, len(self._robot.bodies)), "wrenches"
        if sample_time:
            name = f"{what}_{len(self.components)}"
            sampled = SampledLoad(own, what, name=name, sample_time=float(sample_time))
            self.components.append(sampled)
        elif what == "torque":
            self._torques.append(own)
        else:
            self._wrenches.append(own)

    def _shape(self, what: str) -> tuple[int, ...]:
        return load_shape(self._robot, what)

    def _note_breaks(self, given: Any) -> None:
        if isinstance(given, (Profile, Pulse)):
            self.breaks += given.breaks


def load_shape(robot: Robot, what: str) -> tuple[int, ...]:
    """Return the shape of a load."""
    return {"torque": (robot.nv,), "base_wrench": (6,)}.get(what, (len(robot.bodies), 6))


def law(given: Any, shape: tuple[int, ...], what: str) -> Law:
    """Return a load as a function on arrays that can be compiled.

    Args:
        given: numbers, a function (t, q, v, and others by name), a `Profile`, a `Pulse`.
        shape: shape of its value.
        what: its name, for error messages.
    """
    if callable(given):
        function, names = _on_arrays(given), _inputs_of(given)

        def traced(t: Array, q: Array, v: Array, **others: Array) -> Array:
            own = {n: x for n, x in others.items() if names is None or n in names}
            returned: Any = function(t, q, v, **own)
            try:
                value = asarray(returned)
            except (TypeError, ValueError):
                kind = type(returned).__name__
                raise RemoraError(f"{what} must be numbers {shape}, not {kind}") from None
            if value.size == 1 and math.prod(shape) == 1:
                value = value.reshape(shape)  # a single symbol has no shape
            if value.shape != shape:
                raise RemoraError(f"{what} must have shape {shape}, not {value.shape}")
            return value

        return traced
    numbers = finite(what, given)
    fixed = numbers.reshape(shape) if numbers.size == math.prod(shape) == 1 else numbers
    if fixed.shape != shape:
        raise RemoraError(f"{what} must have shape {shape}, not {numbers.shape}")

    def constant(t: Array, q: Array, v: Array, **others: Array) -> Array:
        return fixed

    return constant


def _on_arrays(given: Any) -> Callable[..., Any]:
    """Return a load as a function (t, q, v) that also accepts symbols."""
    if isinstance(given, (Profile, Pulse)):
        profile = given

        def value(t: Array, q: Array, v: Array) -> Array:
            return profile.traced(t)

        return value
    return given


def _inputs_of(given: Any) -> frozenset[str] | None:
    """Return the names of the inputs that a function takes; None: all."""
    if isinstance(given, (Profile, Pulse)):
        return frozenset()
    parameters = inspect.signature(given).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)


def _itself(name: str) -> Law:
    def own(t: Array, q: Array, v: Array, **others: Array) -> Array:
        return others[name]

    return own


def _on_base(single: Law, bodies: int) -> Law:
    def placed(t: Array, q: Array, v: Array, **others: Array) -> Array:
        own = single(t, q, v, **others)
        return concatenate([own[None], np.zeros((bodies - 1, 6))], trailing=2)

    return placed


def _summed(laws: Sequence[Law]) -> Law | None:
    if not laws:
        return None

    def total(t: Array, q: Array, v: Array, **others: Array) -> Array:
        found = laws[0](t, q, v, **others)
        for one in laws[1:]:
            found = found + one(t, q, v, **others)
        return found

    return total


def is_per_run(given: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a load is numbers that differ from run to run."""
    if given is None or callable(given) or is_mapping(given) or isinstance(given, (Sum, Mapping)):
        return False
    return tuple(np.shape(given)) != shape
