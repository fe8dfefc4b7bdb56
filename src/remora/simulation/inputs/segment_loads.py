"""Loads in a segment without discontinuities: polynomials in time, and functions of time.

Numbers, commands of controllers, pulses of numbers, and profiles are polynomials between two of
their breaks. Pulses whose value is a pure function of time are traced. Other functions, which the
run loop must call, have no such form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, asarray, stack
from remora.identity.recent import Recent
from remora.simulation.inputs.loads import Load
from remora.simulation.inputs.profiles import Profile, Pulse
from remora.simulation.inputs.pure_functions import CapturedNumbers, can_be_traced, is_pure

#: Degree of the polynomials of a profile of each kind.
DEGREES = {"hold": 0, "linear": 1, "cubic": 3}


class _Piece(NamedTuple):
    """A part of a load that is given in one form.

    Attributes:
        places: its places in the flat value of the load.
        load: the part.
    """

    places: Array
    load: Load


class SegmentLoad:
    """A load as the sum of polynomials in time and traced functions of time.

    Attributes:
        shape: shape of its value.
        smooth: whether it has no other parts; otherwise it cannot be evaluated.
        degree: largest degree of its polynomials.
        placed: what is traced: places in the flat value, and the pulse.
    """

    def __init__(self, load: Load) -> None:
        """Sort the parts of a load."""
        self.shape, self._size = load.shape, math.prod(load.shape)
        self._given, self._traced = list[_Piece](), list[_Piece]()
        self.degree, self.smooth = 0, True
        if load.given is not None:
            for piece in _pieces(load, np.arange(self._size).reshape(load.shape)):
                self._sort(piece)
        self.placed: tuple[tuple[tuple[int, ...], Pulse], ...] = tuple(
            (tuple(p.places.tolist()), p.load.given) for p in self._traced
        )

    def _sort(self, piece: _Piece) -> None:
        given = piece.load.given
        if _is_function(given):
            self._traced.append(piece)
            self.smooth &= _is_compilable(given, piece.places.size)
        else:
            self._given.append(piece)
            self.smooth &= not piece.load.function
        if isinstance(given, Profile):
            self.degree = max(self.degree, DEGREES[given.kind])

    def coefficients(self, low: float, high: float, degree: int) -> Array:
        """Return the coefficients of the polynomials in t - low, `(degree + 1, *shape)`.

        Args:
            low: start of the segment, s.
            high: end of the segment, s.
            degree: at least `self.degree`.
        """
        found = np.zeros((degree + 1, self._size))
        for index, load in self._given:
            if isinstance(load.given, Profile):
                own = load.given.coefficients(low, high)
                found[: len(own), index] += own.reshape(len(own), -1)
            else:
                load.enter(low, high)
                found[0, index] += load(low, _NOTHING, _NOTHING).ravel()
        return found.reshape(degree + 1, *self.shape)

    def function(self, t: Array) -> Array | None:
        """Return the traced part at a symbolic time `()`; None: there is none."""
        if not self._traced:
            return None
        total: list[Any] = [np.zeros(1)] * self._size
        for index, load in self._traced:
            value = asarray(load.given.traced(t)).reshape((-1,))
            for i, place in enumerate(index.tolist()):
                total[place] = total[place] + value[i : i + 1]
        return stack([x.reshape(()) for x in total]).reshape(self.shape)


_NOTHING = np.zeros(0)


def _pieces(load: Load, index: Array) -> Iterator[_Piece]:
    if not load.entries:
        yield _Piece(index.ravel(), load)
    for place, part in load.entries:
        yield from _pieces(part, index[place])


def _is_function(given: object) -> bool:
    return isinstance(given, Pulse) and callable(given.value)


class _Answer(NamedTuple):
    """Whether a pulse can be compiled, with the numbers its function captured at that time."""

    pulse: Pulse
    captured: CapturedNumbers
    numbers: tuple[Any, ...]
    good: bool


def _is_compilable(pulse: Pulse, size: int) -> bool:
    """Return whether a pulse with a function can be compiled; the last answers are kept."""
    known = _answers.get(id(pulse))
    same = known is not None and known.pulse is pulse
    if known is not None and same and (not known.good or known.numbers == known.captured()):
        return known.good
    a, b = pulse.start, pulse.stop
    times = a + 0.3 * (b - a), a + 0.7 * (b - a)
    good = is_pure(pulse.value) and can_be_traced(pulse.value, times)
    good = good and np.size(pulse(times[0])) == size
    captured = CapturedNumbers(pulse.value)
    return _answers.keep(id(pulse), _Answer(pulse, captured, captured() if good else (), good)).good


#: By the identity of a pulse, which is stored, too, so that no other has its identity.
_answers: Recent[int, _Answer] = Recent(64)
