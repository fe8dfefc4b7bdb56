"""Multiplicative extended Kalman filter of attitude and gyro bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra import linear, quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, less, select, sqrt
from remora.algebra.vector import apply, skew, transpose
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal, State
from remora.model.robot import Robot

#: No rotation.
IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])


class _Step(NamedTuple):
    """The filter after a tick, and whether an attitude was measured until then."""

    attitude: Array
    bias: Array
    covariance: Array
    innovation: Array
    nis: Array
    started: Array


class AttitudeFilter(Component):
    """Attitude of a body and bias of its gyro, from a gyro and a star tracker [LMS82].

    The errors are δθ, with r = r̂ exp(½ δθ), and δb = b - b̂; P is their covariance `(6, 6)`. From
    tick to tick of h seconds, with the mean ω̂ of the last two measured rates less b̂,

        r̂ ← r̂ exp(½ h ω̂),  P ← Φ P Φᵀ + Q,  Φ = [[R(h ω̂)ᵀ, -h J], [0, 1]],  J = 1 - ½ [h ω̂]×
        Q = [[σ² h² + u² h³/3, -u² h²/2], [-u² h²/2, u² h]]

    with the noise σ of a measured rate and the drift u of the bias. At every `every`-th tick the
    measured attitude r_m gives y = 2 log(r̂* r_m), S = P_θθ + R, K = [P_θθ; P_bθ] S⁻¹ and
    [δθ; δb] = K y, P ← (1 - K H) P (1 - K H)ᵀ + K R Kᵀ. The first attitude is taken as it is; it is
    the first that is not zero, as before a star tracker with an offset or a delay has measured.

    Inputs: `rate`, `(3,)`, rad/s, at every tick; `attitude`, `(4,)`; `attitude_valid`, 0 where the
    attitude is an old one: connect it to `valid` of a star tracker with `dropout`. Outputs:
    `attitude`; `rate`, the measured rate less the bias; `bias`, `(3,)`, rad/s; `deviation`, `(6,)`,
    √diag P; `innovation` y, `(3,)`, rad; `nis`, yᵀ S⁻¹ y, zero where nothing was measured. Discrete
    states: `estimate`, `offset`, `covariance`, and others.

    Valid for gyro and star tracker in the same axes, errors of the attitude far below 1 rad, and
    turns of less than about 0.1 rad per tick.
    """

    uses_design = True
    sampled = True
    rate_noise: float = parameter("σ, of a measured rate", unit="rad/s", above=0.0)
    drift: float = parameter("u, random walk of the bias", unit="rad/s/√s", minimum=0.0)
    attitude_noise: ArrayLike = parameter(
        "√R, of a measured attitude, one or by axis", "numbers", unit="rad", above=0.0, size=3
    )
    bias_deviation: float = parameter(
        "of the bias at the start", default=1e-3, unit="rad/s", above=0.0
    )
    every: int = parameter(
        "number of ticks from one measured attitude to the next", "whole", default=1, minimum=1
    )

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        outputs = {
            "attitude": Signal(4), "rate": Signal(3, "rad/s"), "bias": Signal(3, "rad/s"),
            "deviation": Signal(6), "innovation": Signal(3, "rad"), "nis": Signal(),
        }  # fmt: skip
        states = {
            "estimate": State((1.0, 0.0, 0.0, 0.0)), "offset": State((0.0, 0.0, 0.0), "rad/s"),
            "covariance": State(np.zeros((6, 6))), "measured": State((0.0, 0.0, 0.0), "rad/s"),
            "waiting": State(0.0), "started": State(0.0),
        }  # fmt: skip
        inputs = {"rate": Signal(3, "rad/s"), "attitude": Signal(4)}
        inputs["attitude_valid"] = Signal((), "", 1.0)
        return Interface(inputs=inputs, outputs=outputs, discrete=states)

    def outputs(self, at: Context) -> Mapping[str, ArrayLike]:
        """Return the estimate at this tick."""
        new = self._step(at)
        variances = [asarray(new.covariance[..., i, i])[..., None] for i in range(6)]
        return {
            "attitude": new.attitude, "rate": at.inputs["rate"] - new.bias, "bias": new.bias,
            "deviation": sqrt(concatenate(variances)), "innovation": new.innovation, "nis": new.nis,
        }  # fmt: skip

    def update(self, at: Context) -> Mapping[str, ArrayLike]:
        """Return the estimate for the next tick."""
        new = self._step(at)
        waiting = select(new.started, at.memory["waiting"] + 1.0, 0.0)
        return {
            "estimate": new.attitude, "offset": new.bias, "covariance": new.covariance,
            "measured": at.inputs["rate"], "started": select(new.started, 1.0, 0.0),
            "waiting": select(less(waiting, self.every - 0.5), waiting, 0.0),
        }  # fmt: skip

    def _step(self, at: Context) -> _Step:
        memory, given = at.memory, at.inputs["attitude"]
        size = (given * given).sum(axis=-1)  # zero before it first measured
        seen = less(0.25, size * at.inputs["attitude_valid"])
        measured = select(asarray(seen)[..., None], given, IDENTITY)
        first = asarray(less(memory["started"], 0.5))
        fresh = asarray(less(select(seen, memory["waiting"], 1.0), 0.5))
        R = _diagonal(asarray(self.attitude_noise) * asarray(self.attitude_noise))
        r, P = self._propagated(at)
        off = quaternion.mul(quaternion.conjugate(r), measured)
        y = 2.0 * quaternion.log(quaternion.shortest(off))
        S = linear.mirror(P[..., :3, :3] + R)
        weighted = linear.solve(S, concatenate([P[..., :3, :], y[..., None]]))  # S⁻¹ [P_θ, y]
        K = transpose(weighted[..., :, :6])
        correction = apply(K, y)
        kept = _eye(6) - concatenate([K, 0.0 * K])  # 1 - K H
        after = linear.mirror(kept @ P @ transpose(kept) + K @ R @ transpose(K))
        nis = (y * weighted[..., :, 6]).sum(axis=-1)
        corrected = quaternion.mul(r, quaternion.exp(0.5 * correction[..., :3]))
        starts, updates = first[..., None], fresh[..., None]
        attitude = select(starts, measured, select(updates, corrected, r))
        bias = memory["offset"] + select(updates, correction[..., 3:], 0.0)
        covariance = select(updates[..., None], after, P)
        return _Step(
            quaternion.normalize(attitude),
            select(starts, 0.0, bias),
            select(starts[..., None], self._start(R), covariance),
            select(starts, 0.0, select(updates, y, 0.0)),
            select(first, 0.0, select(fresh, nis, 0.0)),
            less(0.5, select(seen, 1.0, memory["started"])),
        )

    def _propagated(self, at: Context) -> tuple[Array, Array]:
        """Return attitude and covariance at this tick without its measured attitude."""
        assert self.sample_time is not None
        h, memory = self.sample_time, at.memory
        w = 0.5 * (memory["measured"] + at.inputs["rate"]) - memory["offset"]
        turn = quaternion.exp(0.5 * h * w)
        A = transpose(quaternion.to_matrix(turn))
        B = -h * (_eye(3) - 0.5 * h * skew(w))
        zero = 0.0 * A
        F = concatenate([concatenate([A, B]), concatenate([zero, zero + _eye(3)])], trailing=2)
        P = F @ memory["covariance"] @ transpose(F) + self._process(h)
        return quaternion.mul(memory["estimate"], turn), linear.mirror(P)

    def _process(self, h: float) -> Array:
        """Return Q."""
        s, u = asarray(self.rate_noise), asarray(self.drift)
        angle = s * s * h * h + u * u * h**3 / 3.0
        cross, walk = -u * u * h * h / 2.0, u * u * h
        angle, cross, walk = (asarray(x)[..., None, None] * _eye(3) for x in (angle, cross, walk))
        upper, lower = concatenate([angle, cross]), concatenate([cross, walk])
        return concatenate([upper, lower], trailing=2)

    def _start(self, R: Array) -> Array:
        """Return the covariance after the first measured attitude."""
        size = asarray(self.bias_deviation)
        own = asarray(size * size)[..., None, None] * _eye(3)
        zero = 0.0 * R
        upper, lower = concatenate([R, zero]), concatenate([zero, zero + own])
        return concatenate([upper, lower], trailing=2)


def _eye(n: int) -> Array:
    return np.eye(n)


def _diagonal(x: Array) -> Array:
    return asarray(x)[..., None] * np.eye(3)
