"""The power balance of an assembly with black boxes: do the wrenches of the sensors fit?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.sensor_reading import BaseState, SensorReading
from remora.dynamics.assembly.sensor_recording import SensorRecording
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.model.arguments import not_negative
from remora.model.numbers import finite

#: Least relative error of the measured power.
_ROUNDING = 1e-9
#: Misfit that is accepted, relative to the power of a black box.
_FITS = 0.1


class _Assembly(Protocol):
    """What the balance needs of an assembly."""

    parts: tuple[Part, ...]

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike, *, t: ArrayLike | None
    ) -> Array:
        """Return the generalized forces."""
        ...

    def swap(self, name: str, subsystem: BlackBox) -> _Assembly:
        """Return an assembly with another subsystem."""
        ...


def power_factors(
    assembly: _Assembly,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    tau: ArrayLike,
    t: ArrayLike,
    accuracy: float,
) -> dict[str, float]:
    """Return the factors of the black boxes' powers that fit the measured powers best.

    Joint by joint, v_i τ_i - P_known,i = Σ s_k P_k,i with P_k,i = v_i (τ_i(ζ_k) - τ_i(ζ_k = 0));
    see `Assembly.check_energy`.
    """
    names = [p.name for p in assembly.parts if p.black_box is not None and p.parent >= 0]
    if not names:
        raise RemoraError(
            "no subsystem is a black box with a predecessor: there is no wrench to check"
        )
    accuracy = not_negative("accuracy", accuracy)
    v, tau = finite("v", v), finite("tau", tau)
    if v.ndim != 2 or v.shape != tau.shape:
        raise ShapeError(f"v and tau must be samples (n, nv), not {v.shape} and {tau.shape}")
    full = assembly.inverse_dynamics(q, v, vdot, t=t)
    silent = [assembly.swap(name, _silent(assembly.parts, name)) for name in names]
    shares = [v * (full - other.inverse_dynamics(q, v, vdot, t=t)) for other in silent]
    powers: Array = np.stack(shares, axis=-1).reshape(-1, len(names))
    into_boxes: Array = (v * (tau - full)).reshape(-1) + powers.sum(axis=-1)
    noise = max(accuracy, _ROUNDING) * float(np.linalg.norm(v * tau))
    for k, name in enumerate(names):
        _require_power(name, powers, k, noise)
    factors = _fitted(powers, into_boxes)
    misfit = float(np.linalg.norm(into_boxes - powers @ factors))
    for k, (name, factor) in enumerate(zip(names, factors, strict=True)):
        if factor < 0.0:
            raise InvalidValue(
                f"black box {name!r}: its wrench has the wrong sign; the power of the joints fits "
                f"{factor:.3g} times its power. Does the sensor read the reaction or the "
                "actuation? See BlackBox(sensor=...)"
            )
        size = float(np.linalg.norm(powers[:, k]))
        if max(misfit, abs(factor - 1.0) * size) > max(2.0 * noise, _FITS * size):
            unexplained = misfit / float(np.linalg.norm(into_boxes))
            raise InvalidValue(
                f"black box {name!r}: its wrench does not fit the power of the joints: the best "
                f"factor is {factor:.3g}, not 1, and {unexplained:.0%} remain unexplained. Is the "
                "wrench in the axes of its base frame, about its origin, in N and N m?"
            )
    return {name: float(factor) for name, factor in zip(names, factors, strict=True)}


def _require_power(name: str, powers: Array, k: int, noise: float) -> None:
    """Raise if errors of the measured power may hide that of a black box.

    What counts is the part of its power that the powers of the others cannot explain.
    """
    others = powers[:, [i for i in range(powers.shape[-1]) if i != k]]
    apart = powers[:, k] - others @ _fitted(others, powers[:, k])
    power = float(np.linalg.norm(apart))
    if not power > noise:
        raise InvalidValue(
            f"black box {name!r} exchanges too little power with its predecessor in these samples "
            f"to check its wrench: {power:.3g} W (root of the sum of squares), and the measured "
            f"power may be wrong by {noise:.3g} W; move it more, or see accuracy=..."
        )


def _fitted(A: Array, b: Array) -> Array:
    """Return the x that minimizes |A x - b|."""
    return np.linalg.lstsq(A, b, rcond=None)[0]


def _silent(parts: Sequence[Part], name: str) -> BlackBox:
    """Return a black box whose data are the same but for a wrench of zero."""
    box = next(part.black_box for part in parts if part.name == name)
    assert box is not None
    source = box.source

    def without(t: ArrayLike, base: BaseState | None) -> SensorReading:
        reading = source.at(t, name) if isinstance(source, SensorRecording) else source(t, base)
        return dataclasses.replace(reading, wrench=np.zeros(6))

    return dataclasses.replace(box, source=without)
