"""Functions of time: profiles and pulses for loads, motions for joints.

Each declares the times at which it is not smooth. Integrators never step across those.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from remora.algebra import hermite
from remora.algebra.array_ops import Array, ArrayLike, asarray, casadi, is_array, less, select
from remora.codegen.ir.graph import Signature
from remora.codegen.ir.trace import is_tuple
from remora.codegen.kernel import Kernel
from remora.errors import InvalidValue, RemoraError, ShapeError, UnknownName
from remora.model.arguments import number, times

KINDS = ("linear", "hold", "cubic")
#: Largest degree of the polynomials of a motion.
DEGREE = 5
#: Start and end of an interval, s -> coefficients `(DEGREE + 1, n)` of q there, in the time since
#: its start.
Pieces = Callable[[float, float], Array]


@dataclass(frozen=True, eq=False)
class Profile:
    """Interpolated values, zero before the first time and after the last.

    Attributes:
        times: ascending, `(n,)`, s.
        values: `(n,)` or `(n, k)`.
        kind: interpolation: `linear`; `hold`, each value until the next time; `cubic`, a smooth
            curve through all values, with slopes from the neighbouring values.
    """

    times: Array
    values: Array
    kind: Literal["linear", "hold", "cubic"] = "linear"
    _slopes: Array = field(init=False, repr=False)

    def __init__(
        self,
        times: ArrayLike,
        values: ArrayLike,
        kind: Literal["linear", "hold", "cubic"] = "linear",
    ) -> None:
        """Check and store."""
        if kind not in KINDS:
            raise UnknownName("kind of profile", kind, KINDS)
        t, x = np.array(times, dtype=float), np.array(values, dtype=float)
        if t.ndim != 1 or t.size < 2 or x.ndim not in (1, 2) or len(x) != t.size:
            raise ShapeError(
                f"a profile needs n >= 2 times (n,) and as many values (n,) or (n, k), not "
                f"{t.shape} and {x.shape}"
            )
        if not (np.all(np.isfinite(t)) and np.all(np.isfinite(x))):
            raise InvalidValue("times and values of a profile must be finite")
        if np.any(np.diff(t) <= 0.0):
            k = int(np.argmax(np.diff(t) <= 0.0))
            raise InvalidValue(f"times of a profile must ascend: {t[k]:g} s, then {t[k + 1]:g} s")
        t.flags.writeable = x.flags.writeable = False
        object.__setattr__(self, "times", t)
        object.__setattr__(self, "values", x)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "_slopes", np.gradient(x, t, axis=0))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Times at which it is not smooth."""
        return tuple(self.times.tolist())

    def __call__(self, t: float) -> Array:
        """Return the value at a time, `()` or `(k,)`."""
        times, x = self.times, self.values
        if t < times[0] or t > times[-1]:
            return np.zeros(x.shape[1:])
        k = min(int(np.searchsorted(times, t, side="right")) - 1, times.size - 2)
        if self.kind == "hold":
            return x[k + 1] if t == times[-1] else x[k]
        h = times[k + 1] - times[k]
        s = (t - times[k]) / h
        if self.kind == "linear":
            return x[k] + s * (x[k + 1] - x[k])
        slopes = h * self._slopes[k], h * self._slopes[k + 1]
        return x[k] + hermite.value(s, x[k + 1] - x[k], *slopes)

    def constant(self, low: float, high: float) -> Array | None:
        """Return the value if it is constant between two times, otherwise None."""
        if high <= self.times[0] or low >= self.times[-1]:
            return np.zeros(self.values.shape[1:])
        within = np.searchsorted(self.times, [low, high])
        return self(low) if self.kind == "hold" and within[0] == within[1] else None

    def coefficients(self, low: float, high: float) -> Array:
        """Return the polynomial in t - low between two times without a break between them.

        Args:
            low: s.
            high: s.

        Returns:
            `(degree + 1,)` or `(degree + 1, k)`, from the constant term on.
        """
        known = self.constant(low, high)
        if known is not None:
            return known[None]
        times, x = self.times, self.values
        k = min(int(np.searchsorted(times, low, side="right")) - 1, times.size - 2)
        h, s = times[k + 1] - times[k], (low - times[k]) / (times[k + 1] - times[k])
        step = x[k + 1] - x[k]
        if self.kind == "linear":
            return np.stack([x[k] + s * step, step / h])
        a, b = h * self._slopes[k], h * self._slopes[k + 1]
        c2, c3 = 3.0 * step - 2.0 * a - b, a + b - 2.0 * step
        at = x[k] + s * (a + s * (c2 + s * c3))
        return np.stack([at, (a + s * (2.0 * c2 + 3.0 * s * c3)) / h,
                         (c2 + 3.0 * s * c3) / h**2, c3 / h**3])  # fmt: skip

    def traced(self, t: Array) -> Array:
        """Return the value at a time that may be symbolic."""
        times, x, s = self.times, self.values, t - self.times[:-1].reshape(-1)
        result: Array = np.zeros(x.shape[1:])
        for k in range(times.size - 1):
            h, step = times[k + 1] - times[k], x[k + 1] - x[k]
            y = s[..., k] / h
            value = x[k] + 0.0 * y
            if self.kind == "linear":
                value = x[k] + y * step
            elif self.kind == "cubic":
                slopes = h * self._slopes[k], h * self._slopes[k + 1]
                value = x[k] + hermite.value(y, step, *slopes)
            result = select(_within(t, times[k], times[k + 1]), value, result)
        return result


def _within(t: Array, start: float, stop: float) -> Array:
    """Return 1 if a time lies between two others, 0 otherwise."""
    return select(less(start, t), 1.0, 0.0) * select(less(t, stop), 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class Pulse:
    """A value between two times, and zero outside.

    Attributes:
        start: s.
        stop: s.
        value: a number, an array, or a function of time.
    """

    start: float
    stop: float
    value: Any

    def __post_init__(self) -> None:
        """Check."""
        if not (math.isfinite(self.start) and math.isfinite(self.stop) and self.start < self.stop):
            raise InvalidValue(f"a pulse needs start < stop, not {self.start} and {self.stop}")

    @property
    def breaks(self) -> tuple[float, ...]:
        """Times at which it is not smooth."""
        return (self.start, self.stop)

    def __call__(self, t: float) -> Array:
        """Return the value at a time; a function is not called outside its interval."""
        if self.start < t < self.stop:
            return self._at(t)
        return self._nothing

    def constant(self, low: float, high: float) -> Array | None:
        """Return the value if it is constant between two times, otherwise None."""
        if high <= self.start or low >= self.stop:
            return self._nothing
        inside = self.start < low and high < self.stop
        return self._at(low) if inside and not callable(self.value) else None

    def _at(self, t: float) -> Array:
        return np.asarray(self.value(t) if callable(self.value) else self.value, dtype=float)

    def traced(self, t: Array) -> Array:
        """Return the value at a time that may be symbolic."""
        on = _within(t, self.start, self.stop)
        middle = 0.5 * (self.start + self.stop)
        seen = select(on, t, middle)  # a function is not evaluated outside its interval
        given: Any = self.value(seen) if callable(self.value) else self.value
        value = asarray(given)
        return select(on, value, 0.0 * value)

    @functools.cached_property
    def _nothing(self) -> Array:
        return np.zeros(self._at(0.5 * (self.start + self.stop)).shape)


class Motion:
    """Prescribed motion of a joint: q, v and v̇ as functions of time.

    Attributes:
        given: the user's function.
        breaks: times at which the acceleration is not smooth, s.
        pieces: the polynomials between two breaks; None: it is not made of polynomials.
    """

    pieces: Pieces | None = None

    def __init__(self, function: Callable[[Any], Any], breaks: Sequence[float] = ()) -> None:
        """Store the function; differentiate it if it returns q alone.

        Args:
            function: t -> (q, v, v̇), each a number or `(n,)`; or t -> q alone, written with NumPy
                or `rm.algebra`, which is then differentiated.
            breaks: times at which it is not smooth, s.
        """
        if not callable(function):
            raise RemoraError(f"a motion is a function of the time, not {function!r}")
        self.given: Any = function
        self.breaks = times("the breaks of a motion", breaks)
        self._function, self._at = function, _with_rates(function)

    @classmethod
    def between(cls, start: float, stop: float, q0: ArrayLike, q1: ArrayLike) -> Motion:
        """Return the rest-to-rest motion from q0 to q1: the quintic with zero end accelerations.

        Args:
            start: s; the joint is at rest at q0 before.
            stop: s; the joint is at rest at q1 after.
            q0: rad or m.
            q1: rad or m.
        """
        start, stop = number("start", start, "0.0, in s"), number("stop", stop, "1.0, in s")
        if not (math.isfinite(start) and math.isfinite(stop) and start < stop):
            raise InvalidValue(f"a motion needs start < stop, not {start} and {stop}")
        first, last = _place("q0", q0), _place("q1", q1)
        if first.shape != last.shape and 1 not in (first.size, last.size):
            raise ShapeError(f"q0 and q1 of a motion differ in shape: {first.shape}, {last.shape}")
        length, way = stop - start, last - first

        def quintic(t: Any) -> tuple[Array, Array, Array]:
            s = (asarray(t) - start) / length
            s = select(less(s, 0.0), 0.0, select(less(1.0, s), 1.0, s))
            place = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
            speed = 30.0 * s * s * (1.0 - s) ** 2 / length
            rate = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / length**2
            return first + place * way, speed * way, rate * way

        def pieces(low: float, high: float) -> Array:
            if high <= start or low >= stop:
                return polynomial([first + way if low >= stop else first], low, low, 1.0)
            s3 = np.multiply.outer([0.0, 0.0, 0.0, 10.0, -15.0, 6.0], way)
            s3[0] = first
            return polynomial(s3, low, start, length)

        motion = cls(quintic, (start, stop))
        motion.given = {"from": first.tolist(), "to": (first + way).tolist()}
        motion.pieces = pieces
        return motion

    def identity_parts(self) -> tuple[Any, ...]:
        """Return the parts of its identity by value, without the machine code of its rates."""
        return self.given, self.breaks

    def traced(self, t: Array) -> tuple[Array, Array, Array]:
        """Return q, v and v̇ at a time that may be symbolic, each `(n,)`."""
        returned: Any = self._function(t)
        if not is_tuple(returned):
            found = _rates_of(self._function, t)
            return found[0], found[1], found[2]
        q, v, a = (np.atleast_1d(asarray(x)) for x in returned)
        return q, v, a

    def __call__(self, t: float) -> tuple[Array, Array, Array]:
        """Return q, v and v̇ at a time, each `(n,)`."""
        q, v, a = self._at(t)
        return _vector(q), _vector(v), _vector(a)


def polynomial(c: ArrayLike, low: float, start: float, length: float) -> Array:
    """Return the coefficients of Σ cₖ sᵏ, s = (t - start) / length, in powers of t - low.

    Args:
        c: `(m, n)`, m at most DEGREE + 1.
        low: s.
        start: s.
        length: s.

    Returns:
        `(DEGREE + 1, n)`.
    """
    own = np.asarray(c, dtype=float)
    found = np.zeros((DEGREE + 1, own.shape[1]))
    s0 = (low - start) / length
    for row in own[::-1]:  # Horner's scheme on polynomials in t - low
        shifted = np.zeros_like(found)
        shifted[1:] = found[:-1] / length
        found = found * s0 + shifted
        found[0] += row
    return found


def _place(name: str, x: ArrayLike) -> Array:
    """Return where a motion begins or ends, `(n,)`, or raise."""
    try:
        found = np.atleast_1d(np.asarray(x, dtype=float))
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} of a motion must be numbers, not {x!r}") from None
    if found.ndim != 1 or not np.all(np.isfinite(found)):
        raise InvalidValue(f"{name} of a motion must be finite numbers (n,), not {x!r}")
    return found


def _vector(x: Any) -> Array:
    """Return one or several numbers as an array `(n,)`."""
    if is_array(x) and x.ndim == 1 and x.dtype == np.float64:
        return x
    return np.atleast_1d(np.asarray(x, dtype=float))


def _rates_of(function: Callable[[Any], Any], t: Array) -> Array:
    """Return q, v and v̇ `(3, n)` at a symbolic time, by differentiation of q."""
    symbol = casadi.SX.sym("t")
    q = np.atleast_1d(asarray(function(np.array(symbol, dtype=object).reshape(()))))
    column = casadi.SX(casadi.vertcat(*q.tolist()))
    v = casadi.jacobian(column, symbol)
    a = casadi.jacobian(v, symbol)
    now = casadi.substitute([column, v, a], [symbol], [casadi.SX(t.item())])
    return np.stack([np.atleast_1d(asarray(x)) for x in now])


def _with_rates(function: Callable[[Any], Any]) -> Callable[[float], Any]:
    """Return t -> (q, v, v̇), by differentiation where the function gives q alone."""
    try:
        tried = function(0.0)
    except Exception as error:
        raise RemoraError(
            f"the motion raised {type(error).__name__} at t = 0, where it is tried: {error}"
        ) from error
    if is_tuple(tried):
        if len(tried) != 3:
            raise RemoraError(f"a motion gives q, or (q, v, vdot), not {len(tried)} things")
        return function

    def rates(t: Array) -> Array:
        return _rates_of(function, t)

    try:
        kernel = Kernel(rates, [Signature("t", ())], "motion")
    except (RemoraError, TypeError, ValueError, NotImplementedError, AttributeError) as error:
        raise RemoraError(
            "the motion cannot be differentiated: write it with NumPy's functions, or let it give "
            f"(q, v, vdot) ({error})"
        ) from None
    return lambda t: kernel(np.asarray(t))
