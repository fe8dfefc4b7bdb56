"""Loads on a robot in all accepted forms: numbers, functions, profiles, controllers.

A load returns its value at (t, q, v) as an array of a known shape. It also declares where it is not
smooth: at the breaks of its profiles, and at the samples of a controller.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_array
from remora.components.component import Component
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.simulation.inputs.profiles import Motion, Profile, Pulse


@runtime_checkable
class Controller(Protocol):
    """A sampled controller, called every `sample_time` seconds; zero-order hold in between.

    Attributes:
        sample_time: s.
    """

    sample_time: float

    def __call__(self, t: float, q: Array, v: Array) -> Any:
        """Return the command for a state."""
        ...


class ZeroOrderHold:
    """A function (t, q, v) as a controller that is sampled every `sample_time` seconds."""

    def __init__(self, function: Callable[[float, Array, Array], Any], sample_time: float) -> None:
        """Store the function and the sample time, s."""
        self.function, self.sample_time = function, sample_time

    def __call__(self, t: float, q: Array, v: Array) -> Any:
        """Return the result of the function."""
        return self.function(t, q, v)


#: A controller sampled less than this before the end of a phase is not sampled again at the start
#: of the next, s; at most a hundredth of its sample time.
SAME_SAMPLE = 1e-6
#: Arrays with more elements are not written into the settings of a run.
MOST_TOLD = 1000


class Sum:
    """Sum of several loads, such as a controller and a feedforward."""

    def __init__(self, *parts: Any) -> None:
        """Store the parts, each in any accepted form of a load."""
        self.parts = parts


class InputValue:
    """A load that is set from outside during a run, constant in between (zero-order hold).

    Attributes:
        value: its present value.
    """

    told = "set during the run"

    def __init__(self, value: Array) -> None:
        """Store the first value."""
        self.value = value


#: A load over time: numbers, a function (t, q, v), a profile, a controller.
LoadValue: TypeAlias = (
    ArrayLike | Callable[[float, Array, Array], Any] | Profile | Pulse | Controller | Sum
)
#: A load as passed by a user: also a dictionary by the name of a joint or a body.
LoadLike: TypeAlias = LoadValue | Mapping[str, LoadValue] | None


class Load:
    """One load, ready for evaluation.

    Attributes:
        what: its name, for error messages.
        shape: shape of its value.
        breaks: times at which it is not smooth, besides samples of controllers.
        controllers: its controllers, with the parts of the value they set.
        function: whether it depends on q or v other than through a controller.
        entries: its parts and their positions, if it is given by parts.
        given: as the user gave it.
    """

    def __init__(self, what: str, given: Any, shape: tuple[int, ...], parts: Parts | None) -> None:
        """Convert a user's load.

        Args:
            what: its name, for error messages.
            given: None, numbers, a function (t, q, v), a `Profile` or `Pulse`, a controller; or a
                dictionary of these by name, if `parts` is not None.
            shape: shape of its value.
            parts: maps a name to its position in the value and its shape.
        """
        self.what, self.shape = what, shape
        self.breaks: tuple[float, ...] = ()
        self.controllers: list[HeldValue] = []
        self.function = False
        self.entries: list[tuple[Any, Load]] = []
        self.given: Any = given
        self._fixed: Array | None = None
        if isinstance(given, Sum):
            loads = [Load(what, part, shape, parts) for part in given.parts]
            self._value = self._gathered([(..., load) for load in loads])
        elif is_mapping(given):
            if parts is None:
                raise RemoraError(f"{what} cannot be given by name")
            entries: list[tuple[Any, Load]] = []
            for name, part in given.items():
                place, size = parts(name)
                entries.append((place, Load(f"{what} of {name!r}", part, size, None)))
            self._value = self._gathered(entries)
        else:
            self._value = self._single(given)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return the value, checked."""
        return self._value(t, q, v) if self._fixed is None else self._fixed

    def enter(self, low: float, high: float) -> None:
        """Prepare for the times between two others, within which the load has no discontinuity.

        Parts that are constant there are evaluated once.
        """
        for _, load in self.entries:
            load.enter(low, high)
        self._fixed = self._constant(low, high)

    def _constant(self, low: float, high: float) -> Array | None:
        """Return the value if it is constant between two times, otherwise None."""
        given = self.given
        if self.entries:
            self._split()
            return None if self._live else self._still
        if isinstance(given, (Profile, Pulse)):
            known = given.constant(low, high)
            return None if known is None else self.numbers(known).reshape(self.shape)
        return None if callable(given) else self._value(low, np.zeros(0), np.zeros(0))

    # Construction -----------------------------------------------------------------------------

    def _gathered(self, entries: list[tuple[Any, Load]]) -> Value:
        self.entries = entries
        for _, load in entries:
            self.breaks += load.breaks
            self.controllers += load.controllers
            self.function |= load.function
        self._split()

        def value(t: float, q: Array, v: Array) -> Array:
            total = self._still.copy()
            for place, load in self._live:
                total[place] += load(t, q, v)
            return total

        return value

    def _split(self) -> None:
        """Sum the parts that are constant in this interval, and list the others."""
        self._still = np.zeros(self.shape)
        self._live: list[tuple[Any, Load]] = []
        for place, load in self.entries:
            if load._fixed is None:
                self._live.append((place, load))
            else:
                self._still[place] += load._fixed

    def _single(self, given: Any) -> Value:
        if given is None:
            zero = np.zeros(self.shape)
            return lambda t, q, v: zero
        if isinstance(given, (Profile, Pulse)):
            self.breaks = given.breaks
            return lambda t, q, v: self.checked(given, t)
        if isinstance(given, InputValue):
            return lambda t, q, v: given.value
        if isinstance(given, Component):
            _check_component(self.what, given)
        if callable(given) and hasattr(given, "sample_time") and not _is_continuous(given):
            hold = HeldValue(self, given)
            self.controllers = [hold]
            return lambda t, q, v: hold.value
        if callable(given):
            self.function = True
            return lambda t, q, v: self.checked(given, t, q, v)
        fixed = self.numbers(given)
        fixed.flags.writeable = False
        return lambda t, q, v: fixed

    def checked(self, function: Callable[..., Any], *arguments: Any) -> Array:
        """Return the value of a user's function, checked."""
        try:
            value = function(*arguments)
        except RemoraError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise RemoraError(f"the function of {self.what} raised {kind}: {error}") from error
        return self.numbers(value)

    def numbers(self, value: Any) -> Array:
        """Return a value as an array of the right shape with finite numbers, or raise."""
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError):
            kind = type(value).__name__
            raise ShapeError(f"{self.what} must be numbers {self.shape}, not {kind}") from None
        if array.shape != self.shape:
            if array.size == 1 and math.prod(self.shape) == 1:
                array = array.reshape(self.shape)
            else:
                raise ShapeError(f"{self.what} must have shape {self.shape}, not {array.shape}")
        total = array.item() if array.size == 1 else array.sum()
        if not math.isfinite(total) and not np.all(np.isfinite(array)):
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            shown = f"[{', '.join(map(str, place))}]" if place else ""
            raise InvalidValue(f"{self.what}{shown} is {array[place]}, not a finite number")
        return array


def frozen_view(x: Array) -> Array:
    """Return a read-only view of an array for a user's function."""
    view = x.view()
    view.flags.writeable = False
    return view


Value = Callable[[float, Array, Array], Array]
#: Name -> (position in the value, shape of that part), or raise for an unknown name.
Parts = Callable[[str], tuple[Any, tuple[int, ...]]]


class HeldValue:
    """A controller's last command, held until its next sample (zero-order hold).

    Attributes:
        sample_time: s.
        value: the last command.
    """

    def __init__(self, load: Load, controller: Any) -> None:
        """Store the load and its controller."""
        self.sample_time = float(controller.sample_time)
        if not (math.isfinite(self.sample_time) and self.sample_time > 0.0):
            raise InvalidValue(
                f"the sample time of {load.what} must be positive, not {self.sample_time:g} s"
            )
        self.value = np.zeros(load.shape)
        self._load, self._controller = load, controller

    def same_place(self, other: HeldValue) -> bool:
        """Return whether another holds the command of the same controller for the same load."""
        same = self._controller is other._controller and self._load.what == other._load.what
        return same and self._load.shape == other._load.shape

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Call the controller."""
        self.value = self._load.checked(self._controller, t, q.copy(), v.copy())


def _is_continuous(given: Any) -> bool:
    return isinstance(given, Component) and given.sample_time is None


def _check_component(what: str, given: Component) -> None:
    """Raise if a component can be used in a system only."""
    kind = type(given).__name__
    where = "make it part of a system, rm.simulate(rm.System(robot, [component]), q, v, ...)"
    if not callable(given):
        raise RemoraError(f"{what} cannot be the component {kind}: {where}")
    if given.offset or given.delay:
        raise RemoraError(f"{what}: the offset and the delay of {kind} need a system: {where}")


def kept(given: Any) -> Any:
    """Return a load that does not change with the arrays, lists and dictionaries of the user."""
    if isinstance(given, Sum):
        return Sum(*map(kept, given.parts))
    if is_mapping(given):
        return {name: kept(part) for name, part in given.items()}
    return copy.deepcopy(given) if type(given) in (list, np.ndarray) else given


def is_mapping(x: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value is a mapping by name."""
    return isinstance(x, Mapping)


def _is_list(x: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(x, (list, tuple))


def described(given: Any) -> Any:
    """Return a plain description of a user's load, for the settings stored with a run."""
    if given is None or isinstance(given, (bool, int, float, str)):
        return given
    if is_mapping(given):
        return {name: described(part) for name, part in given.items()}
    if isinstance(given, Profile):
        shown = {"times": given.times.tolist(), "values": given.values.tolist()}
        return {"profile": given.kind, **shown}
    if isinstance(given, Pulse):
        return {"pulse": [given.start, given.stop], "value": described(given.value)}
    if isinstance(given, Motion):
        return {"motion": described(given.given), "breaks": list(given.breaks)}
    if isinstance(given, ZeroOrderHold):
        return {"sampled": described(given.function), "sample_time": given.sample_time}
    if isinstance(given, Sum):
        return {"sum": [described(part) for part in given.parts]}
    told = getattr(given, "told", None)
    if told is not None:
        return told
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        own = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
        return {"made by": type(given).__name__} | {k: described(x) for k, x in own.items()}
    if callable(given):
        function = given if hasattr(given, "__qualname__") else type(given)
        told = {"function": function.__qualname__, "source": _source(function)}
        numbers = _numbers_of(given)
        return {**told, "with": numbers} if numbers else told
    if is_array(given) or _is_list(given):
        return np.asarray(given).tolist()
    return {"object": f"{type(given).__module__}.{type(given).__qualname__}"}


def _numbers_of(function: Any) -> dict[str, Any]:
    """Return the numbers that a function or an object carries, such as controller gains."""
    found: dict[str, Any] = {}
    if isinstance(function, functools.partial):
        found = {str(k): x for k, x in enumerate(function.args)} | function.keywords
    elif hasattr(function, "__closure__"):
        names = function.__code__.co_freevars
        cells: tuple[Any, ...] = function.__closure__ or ()
        found = {n: c.cell_contents for n, c in zip(names, cells, strict=True) if _is_set(c)}
    elif hasattr(function, "__dict__"):
        found = {**vars(function)}
    plain = (bool, int, float, str)
    return {
        name: x if isinstance(x, plain) else x.tolist()
        for name, x in found.items()
        if isinstance(x, plain) or (is_array(x) and x.size <= MOST_TOLD and x.dtype.kind in "biuf")
    }


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


@functools.lru_cache(maxsize=64)
def _source(function: Any) -> str | None:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return None
