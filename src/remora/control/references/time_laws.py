"""Time laws: how a path from 0 to 1 is travelled, with its rate and acceleration."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, asarray, clip, lasting, less, select
from remora.errors import UnknownName

#: Peak rate and acceleration of the minimum-jerk law of unit duration.
JERK_PEAKS = (1.875, 10.0 / np.sqrt(3.0))


class Travel(NamedTuple):
    """The fraction s of a path, its rate ṡ and acceleration s̈, each `(...)`."""

    s: Array
    rate: Array
    acceleration: Array


def minimum_jerk(t: ArrayLike, duration: ArrayLike, ramp: ArrayLike = 0.0) -> Travel:
    """Return s = 10 u³ - 15 u⁴ + 6 u⁵, u = t/T within [0, 1]: the least integral of jerk² [FH85].

    Peak rate 1.875/T, peak acceleration 5.774/T². At rest before and after.

    Args:
        t: time since the start of the motion, s.
        duration: T, s.
        ramp: not used.
    """
    T = lasting(asarray(duration))
    u = clip(asarray(t) / T, 0.0, 1.0)
    return Travel(
        u * u * u * (10.0 + u * (6.0 * u - 15.0)),
        30.0 * u * u * (1.0 + u * (u - 2.0)) / T,
        60.0 * u * (1.0 + u * (2.0 * u - 3.0)) / (T * T),
    )


def trapezoidal(t: ArrayLike, duration: ArrayLike, ramp: ArrayLike) -> Travel:
    """Return a motion with constant acceleration, constant rate and constant deceleration.

    Rate v = 1/(T - T_r), acceleration v/T_r.

    Args:
        t: time since the start of the motion, s.
        duration: T, s.
        ramp: T_r ≤ T/2, duration of the acceleration and of the deceleration, s.
    """
    t, T, R = asarray(t), lasting(asarray(duration)), lasting(asarray(ramp))
    v = 1.0 / (T - R)
    a = v / R
    first, second, third = clip(t, 0.0, R), clip(t - R, 0.0, T - 2.0 * R), clip(t - (T - R), 0.0, R)
    pushed = select(less(t, 0.0), 0.0, select(less(t, R), a, 0.0))
    braked = select(less(t, T - R), 0.0, select(less(t, T), a, 0.0))
    return Travel(
        0.5 * a * first * first + v * second + v * third - 0.5 * a * third * third,
        a * (first - third),
        pushed - braked,
    )


#: Time laws by name.
TIME_LAWS: dict[str, Callable[[ArrayLike, ArrayLike, ArrayLike], Travel]] = {
    "minimum_jerk": minimum_jerk,
    "trapezoidal": trapezoidal,
}


def time_law(name: str) -> Callable[[ArrayLike, ArrayLike, ArrayLike], Travel]:
    """Return a time law by name, or raise."""
    if name not in TIME_LAWS:
        raise UnknownName("time law", name, TIME_LAWS)
    return TIME_LAWS[name]


def shortest_time(name: str, rate: float, acceleration: float) -> tuple[float, float]:
    """Return duration and ramp, s, of the fastest motion within limits of ṡ and s̈.

    Args:
        name: time law.
        rate: largest ṡ, 1/s.
        acceleration: largest s̈, 1/s²; infinite: not limited.
    """
    time_law(name)
    if name == "minimum_jerk":
        peak_rate, peak_acceleration = JERK_PEAKS
        duration = max(peak_rate / rate, np.sqrt(peak_acceleration / acceleration))
        return float(duration), 0.25 * float(duration)
    if rate * rate < acceleration:  # the rate is reached
        ramp = rate / acceleration if np.isfinite(acceleration) else 1e-3 / rate
        return 1.0 / rate + ramp, ramp
    ramp = float(1.0 / np.sqrt(acceleration))
    return 2.0 * ramp, ramp
