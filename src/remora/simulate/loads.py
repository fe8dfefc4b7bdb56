"""What acts on a robot, however it was given: a number, a function, a profile, a controller.

A load gives its value at (t, q, v) as an array of a known shape, and says when it is not smooth:
at the breaks of its profiles, and whenever a controller samples.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from remora.algebra.namespace import Array, is_array
from remora.errors import RemoraError, ShapeError, ValueRefused
from remora.simulate.profiles import Profile, Pulse


@runtime_checkable
class Controller(Protocol):
    """What acts in samples: asked every `sample_time` seconds, its answer held until the next.

    Attributes:
        sample_time: s.
    """

    sample_time: float

    def __call__(self, t: float, q: Array, v: Array) -> Any:
        """Return what it orders, from what it sees."""
        ...


class Sampled:
    """A function (t, q, v) as a controller that is asked every `sample_time` seconds."""

    def __init__(self, function: Callable[[float, Array, Array], Any], sample_time: float) -> None:
        """Keep the function and the time between samples, s."""
        self.function, self.sample_time = function, sample_time

    def __call__(self, t: float, q: Array, v: Array) -> Any:
        """Return what the function returns."""
        return self.function(t, q, v)


class Load:
    """One load, made ready.

    Attributes:
        what: its name, for messages.
        shape: of its value.
        breaks: times at which it is not smooth, besides samples of controllers.
        controllers: those in it, with the parts of the value they give.
        function: whether it depends on q or v other than through a controller.
    """

    def __init__(self, what: str, given: Any, shape: tuple[int, ...], parts: Parts | None) -> None:
        """Take what a user gave.

        Args:
            what: its name, for messages.
            given: None, numbers, a function (t, q, v), a `Profile` or `Pulse`, a controller; or a
                dictionary of these by name, where `parts` are known.
            shape: of its value.
            parts: by name the place in the value, and its shape.
        """
        self.what, self.shape = what, shape
        self.breaks: tuple[float, ...] = ()
        self.controllers: list[Hold] = []
        self.function = False
        if _is_mapping(given):
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
        return self._value(t, q, v)

    # Making -----------------------------------------------------------------------------------

    def _gathered(self, entries: list[tuple[Any, Load]]) -> Value:
        for _, load in entries:
            self.breaks += load.breaks
            self.controllers += load.controllers
            self.function |= load.function

        def value(t: float, q: Array, v: Array) -> Array:
            total = np.zeros(self.shape)
            for place, load in entries:
                total[place] = load(t, q, v)
            return total

        return value

    def _single(self, given: Any) -> Value:
        if given is None:
            zero = np.zeros(self.shape)
            return lambda t, q, v: zero
        if isinstance(given, (Profile, Pulse)):
            self.breaks = given.breaks
            return lambda t, q, v: self.checked(given, t)
        if callable(given) and hasattr(given, "sample_time"):
            hold = Hold(self, given)
            self.controllers = [hold]
            return lambda t, q, v: hold.value
        if callable(given):
            self.function = True
            return lambda t, q, v: self.checked(given, t, q, v)
        fixed = self._numbers(given)
        fixed.flags.writeable = False
        return lambda t, q, v: fixed

    def checked(self, function: Callable[..., Any], *arguments: Any) -> Array:
        """Return what a user's function gives, checked."""
        try:
            value = function(*arguments)
        except RemoraError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise RemoraError(f"the function of {self.what} raised {kind}: {error}") from error
        return self._numbers(value)

    def _numbers(self, value: Any) -> Array:
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
        if not math.isfinite(array.sum()) and not np.all(np.isfinite(array)):
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            shown = f"[{', '.join(map(str, place))}]" if place else ""
            raise ValueRefused(f"{self.what}{shown} is {array[place]}, not a finite number")
        return array


Value = Callable[[float, Array, Array], Array]
#: Name -> (place in the value, shape of that part), or raise for an unknown name.
Parts = Callable[[str], tuple[Any, tuple[int, ...]]]


class Hold:
    """A controller's last answer, held until its next sample.

    Attributes:
        sample_time: s.
        value: what it ordered last.
    """

    def __init__(self, load: Load, controller: Any) -> None:
        """Keep."""
        self.sample_time = float(controller.sample_time)
        if not (math.isfinite(self.sample_time) and self.sample_time > 0.0):
            raise ValueRefused(
                f"the sample time of {load.what} must be positive, not {self.sample_time:g} s"
            )
        self.value = np.zeros(load.shape)
        self._load, self._controller = load, controller

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Ask the controller."""
        self.value = self._load.checked(self._controller, t, q.copy(), v.copy())


def _is_mapping(x: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(x, Mapping)


def _is_list(x: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(x, (list, tuple))


def described(given: Any) -> Any:
    """Return in plain words or numbers what a user gave, for the settings kept with a run."""
    if given is None or isinstance(given, (bool, int, float, str)):
        return given
    if _is_mapping(given):
        return {name: described(part) for name, part in given.items()}
    if isinstance(given, Profile):
        shown = {"times": given.times.tolist(), "values": given.values.tolist()}
        return {"profile": given.kind, **shown}
    if isinstance(given, Pulse):
        return {"pulse": [given.start, given.stop], "value": described(given.value)}
    if isinstance(given, Sampled):
        return {"sampled": described(given.function), "sample_time": given.sample_time}
    if callable(given):
        return {"function": getattr(given, "__qualname__", repr(given)), "source": _source(given)}
    if is_array(given) or _is_list(given):
        return np.asarray(given).tolist()
    return repr(given)


def _source(function: Any) -> str | None:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return None
