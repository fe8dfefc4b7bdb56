"""Momentum observer: forces on the robot that are not commanded, of contact and of payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra.array_ops import Array, asarray, concatenate, less, select
from remora.algebra.vector import apply, transpose
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import joint_names, joint_signal, speed_places
from remora.components.parameter import parameter
from remora.components.signals import Signal, State
from remora.dynamics.forces.equations_of_motion import passive_loads
from remora.dynamics.formulations import coriolis_matrix
from remora.errors import InvalidValue
from remora.model.joints import is_free
from remora.model.robot import Robot


class MomentumObserver(Component):
    """Generalized forces that act besides the commanded ones, from the generalized momentum.

    With p = H v, ṗ = τ + τ_p + Cᵀ v - g + τ_ext: commanded forces τ, passive forces τ_p, gravity g.
    The residual r = K (p - p̂), p̂ ← p̂ + T (τ + τ_p + Cᵀ v - g + r), T the sample time, follows
    τ_ext with the time constant 1/K [DLADH06]. It needs no accelerations. τ_ext is Jᵀ f of a
    contact, or what a payload needs that the design does not have.

    Inputs: `torque`, `(k,)`, commanded to the joints; on a free base `base_force`, `(6,)`, the
    generalized force commanded to it, [torque, force]. Output: `force`, `(nv,)`, r, ordered as v.
    States: `momentum`, `started`.

    Valid without active constraints. Known forces are held from tick to tick, so that r is off by
    about T/2 times their rate: sample fast arms fast.
    """

    uses_design = True
    sampled = True
    gain: float = parameter("K; 1/K is the time constant", unit="1/s", above=0.0)
    joints: Sequence[str] = parameter(
        "the joints of `torque`; all by default", "joints", default=()
    )

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        assert self.sample_time is not None
        if self.gain * self.sample_time > 1.0:
            raise InvalidValue(
                f"gain of a momentum observer must be at most 1/sample_time, "
                f"{1.0 / self.sample_time:.6g} 1/s, not {self.gain:g}"
            )

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        torque = joint_signal(robot, joint_names(robot, self.joints), "force_unit")
        inputs = {"torque": torque}
        if is_free(robot.joints[0]):
            inputs["base_force"] = Signal(6, "", np.zeros(6))
        states = {"momentum": State(np.zeros(robot.nv)), "started": State(0.0)}
        return Interface(inputs=inputs, outputs={"force": Signal(robot.nv)}, discrete=states)

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the residual."""
        return {"force": self._residual(at)[1]}

    def update(self, at: Context) -> Mapping[str, Array]:
        """Return the predicted momentum at the next tick."""
        assert self.sample_time is not None
        robot, (predicted, r) = at.robot, self._residual(at)
        C = coriolis_matrix(robot, at.q, at.v)
        drift = apply(transpose(C), at.v) + apply(C, at.v) - at.bias_force
        known = self._commanded(at) + passive_loads(robot, at.q, at.v) + drift
        return {"momentum": predicted + self.sample_time * (known + r), "started": asarray(1.0)}

    def _residual(self, at: Context) -> tuple[Array, Array]:
        """Return p̂ and r; at the first tick p̂ = p."""
        p = apply(at.mass_matrix, at.v)
        begun = less(0.5, at.memory["started"][..., None])
        predicted = select(begun, at.memory["momentum"], p)
        return predicted, self.gain * (p - predicted)

    def _commanded(self, at: Context) -> Array:
        """Return τ, `(..., nv)`."""
        places = speed_places(at.robot, joint_names(at.robot, self.joints))
        torque = at.inputs["torque"]
        parts = [np.zeros(1)] * at.robot.nv
        for k, place in enumerate(places):
            parts[place] = torque[..., k : k + 1]
        if is_free(at.robot.joints[0]):
            for k in range(6):
                parts[k] = at.inputs["base_force"][..., k : k + 1]
        return concatenate(parts)
