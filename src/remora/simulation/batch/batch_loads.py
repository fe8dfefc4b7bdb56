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
from remora.simulation.inputs.loads import Load, Sum, is_mapping
from remora.simulation.inputs.profiles import Profile, Pulse
from remora.simulation.inputs.robot_loads import load_of, load_shape
from remora.simulation.program.run_equations import Law


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
        if what in self._per_run:
            self._insert(what, _itself(what), 0.0)
            return
        load = load_of(self._robot, what, given)
        self.breaks += load.breaks
        self._add(what, load, None)

    def _add(self, what: str, load: Load, place: Any) -> None:
        """Add a parsed load, or its parts.

        Args:
            what: one of `LOADS`.
            load: the load.
            place: slice of a joint's speeds or index of a body; None: the whole.
        """
        if load.entries:
            for own, part in load.entries:
                self._add(what, part, place if own is ... else own)
            return
        given = load.given
        if given is None or is_mapping(given):
            return
        if isinstance(given, Component):
            if place is not None:
                raise RemoraError(
                    f"{load.what}: a component has its own joints and bodies: pass it without "
                    "a name"
                )
            self.components.append(given)
            return
        single = law(given, load.shape, load.what)
        own = single if place is None else self._placed(what, single, place)
        self._insert(what, own, getattr(given, "sample_time", 0.0))

    def _placed(self, what: str, single: Law, place: Any) -> Law:
        """Return the load of one joint or body as one of all."""
        shape = load_shape(self._robot, what)
        first, last = _ends(place)

        def placed(t: Array, q: Array, v: Array, **others: Array) -> Array:
            own = single(t, q, v, **others).reshape((last - first, *shape[1:]))
            before = np.zeros((first, *shape[1:]))
            after = np.zeros((shape[0] - last, *shape[1:]))
            return concatenate([before, own, after], trailing=len(shape))

        return placed

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


def _ends(place: Any) -> tuple[int, int]:
    """Return the ends of a slice, or of an index as a slice."""
    if isinstance(place, int):
        return place, place + 1
    return place.start, place.stop


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
