"""The power balance of an assembly with black boxes: does a sensor's wrench have the right sign?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.sensor_reading import SensorReading
from remora.dynamics.assembly.sensor_recording import SensorRecording
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.model.numbers import finite

#: Power of a black box below this fraction of the whole says nothing about its sign.
_NOTHING = 1e-9


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
) -> dict[str, float]:
    """Return the factors of the black boxes' powers that fit the measured power best.

    vᵀτ - P_known = Σ s_k P_k with P_k = vᵀ(τ(ζ_k) - τ(ζ_k = 0)); see `Assembly.check_energy`.
    """
    names = [p.name for p in assembly.parts if p.black_box is not None and p.parent >= 0]
    if not names:
        raise RemoraError(
            "no subsystem is a black box with a predecessor: there is no sign to check"
        )
    v, tau = finite("v", v), finite("tau", tau)
    if v.ndim != 2 or v.shape != tau.shape:
        raise ShapeError(f"v and tau must be samples (n, nv), not {v.shape} and {tau.shape}")
    full = assembly.inverse_dynamics(q, v, vdot, t=t)
    powers: list[Array] = []
    for name in names:
        silent = assembly.swap(name, _silent(assembly.parts, name))
        powers.append(_power(v, full - silent.inverse_dynamics(q, v, vdot, t=t)))
    measured, known = _power(v, tau), _power(v, full) - sum(powers)
    size = float(np.linalg.norm(measured)) + float(np.linalg.norm(known))
    for name, power in zip(names, powers, strict=True):
        if not np.linalg.norm(power) > _NOTHING * size:
            raise InvalidValue(
                f"black box {name!r} exchanges no power with its predecessor in these samples: "
                "the sign of its wrench cannot be checked"
            )
    factors = np.linalg.lstsq(np.stack(powers, axis=-1), measured - known, rcond=None)[0]
    for name, factor in zip(names, factors, strict=True):
        if factor < 0.0:
            raise InvalidValue(
                f"black box {name!r}: its wrench has the wrong sign; the power of the joints fits "
                f"{factor:.3g} times its power. Does the sensor read the reaction or the "
                "actuation? See BlackBox(sensor=...)"
            )
    return {name: float(factor) for name, factor in zip(names, factors, strict=True)}


def _power(v: Array, tau: Array) -> Array:
    return np.einsum("ni,ni->n", v, tau)


def _silent(parts: Sequence[Part], name: str) -> BlackBox:
    """Return a black box whose data are the same but for a wrench of zero."""
    box = next(part.black_box for part in parts if part.name == name)
    assert box is not None
    source = box.source

    def without(t: ArrayLike, twist: Array | None) -> SensorReading:
        reading = source.at(t, name) if isinstance(source, SensorRecording) else source(t, twist)
        return dataclasses.replace(reading, wrench=np.zeros(6))

    return dataclasses.replace(box, source=without)
