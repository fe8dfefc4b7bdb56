"""The wrenches at all joints, split into inertial, Coriolis, gravity and external parts [SA24, IV].

SA24 prints Γ_M = N(X, 0, Ξ̇), Γ_C = N(X, Ξ, 0), Γ_g = N(X, 0, 0); their sum contains gravity three
times. Here it is taken out of all but Γ_g, so that the parts add up to Γ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, concatenate
from remora.dynamics.assembly.composition import Arguments, inverse_dynamics
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.joint_arrays import with_batch
from remora.errors import RemoraError


class WrenchParts(NamedTuple):
    """Parts of the wrenches [f, τ] at all joints, each `(..., nb, 6)`, frames of their bodies.

    Attributes:
        inertial: Γ_M, of the accelerations vdot.
        coriolis: Γ_C, of the velocities.
        gravity: Γ_g.
        external: Γ_Z, what the joints bear of external wrenches on the bodies.
    """

    inertial: Array
    coriolis: Array
    gravity: Array
    external: Array


def wrench_parts(parts: Sequence[Part], given: Arguments) -> WrenchParts:
    """Return the parts of the wrenches at all joints [SA24, eqs. 9, 10]."""
    for part in parts:
        if part.module is None:
            what = "a black box" if part.black_box is not None else "no robot"
            raise RemoraError(f"subsystem {part.name!r} is {what}: its wrenches cannot be split")
    rest = given._replace(v=0.0 * given.v, w=0.0 * given.w, wrenches=None)
    gravity = _wrenches(parts, rest)
    inertial = _wrenches(parts, rest._replace(w=given.w)) - gravity
    coriolis = _wrenches(parts, rest._replace(v=given.v)) - gravity
    external = np.zeros_like(gravity)
    if given.wrenches is not None:
        external = _wrenches(parts, rest._replace(wrenches=given.wrenches)) - gravity
    return WrenchParts(inertial, coriolis, gravity, external)


def _wrenches(parts: Sequence[Part], given: Arguments) -> Array:
    rows = [load.joints for load in inverse_dynamics(parts, given)]
    return with_batch(concatenate(rows, trailing=2), given.batch, trailing=2)
