"""Physical checks of robot parameters that vary between the runs of a batch.

The builder checks the numbers of one robot. These are the same checks for a batch of parameter
values, vectorized over the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.kernels.parameters import parameter
from remora.model.arguments import LARGEST_NUMBER
from remora.model.building.validate import INERTIA_TOLERANCE
from remora.model.constraint import ROD
from remora.model.numbers import UNIT_ROUNDING, UNIT_TOLERANCE, pose_error
from remora.model.robot import Robot


class ParameterFault(NamedTuple):
    """A fault of one parameter in some runs.

    Attributes:
        runs: mask of the faulty runs, with the parameter's batch shape.
        what: name of the parameter.
        rule: the condition that it violates.
        values: the values, leading batch shape.
    """

    runs: Array
    what: str
    rule: str
    values: Array

    def __str__(self) -> str:
        """Return the fault as text, with the first faulty run and its value."""
        first = tuple(np.argwhere(self.runs)[0].tolist()) if self.runs.ndim else ()
        shown = " ".join(str(self.values[first].tolist()).split())
        which = f" of run [{', '.join(map(str, first))}]" if first else ""
        return (
            f"{self.what}{which} {self.rule}: {shown if len(shown) <= 80 else shown[:77] + '...'}"
        )


def parameter_faults(robot: Robot, name: str, values: Array) -> list[ParameterFault]:
    """Return the faults of a parameter's values.

    Args:
        robot: the robot.
        name: of the parameter: `mass`, `arm.mass`, `elbow.placement`, ...
        values: `(..., *shape)`.
    """
    owner, _, number = name.rpartition(".")
    size = len(parameter(robot, name)[0].shape)
    whole = tuple(range(values.ndim - size, values.ndim))
    found = [
        ParameterFault(np.any(~np.isfinite(values), axis=whole), name, "must be finite", values),
        ParameterFault(
            np.any(np.abs(values) > LARGEST_NUMBER, axis=whole),
            name,
            f"exceeds {LARGEST_NUMBER:g}",
            values,
        ),
    ]
    known = np.where(np.isfinite(values), values, 0.0)
    if owner:  # one body, joint or constraint
        found += _CHECKS[number](robot, owner, name, known)
    else:
        names = (robot.joints if number == "placement" else robot.bodies).names
        axis = values.ndim - size
        for i, one in enumerate(names):
            own = np.take(known, i, axis=axis)
            found += _CHECKS[number](robot, one, f"{name} of {one!r}", own)
    return [fault for fault in found if np.any(fault.runs)]


def unit_placements(values: Array) -> Array:
    """Normalize poses that are unit up to rounding, `(..., 8)`."""
    off = pose_error(values) > UNIT_ROUNDING
    return np.where(off[..., None], dual_quaternion.normalize(values), values)


def _mass(robot: Robot, body: str, what: str, x: Array) -> list[ParameterFault]:
    carrier = robot.joints[robot.body_index(body)]
    ground = carrier.parent < 0 and carrier.kind == "fixed"
    if ground or robot.bodies[body].mass == 0.0:
        return [ParameterFault(x < 0.0, what, "must not be negative", x)]
    return [ParameterFault(x <= 0.0, what, "must be positive", x)]


def _inertia(robot: Robot, body: str, what: str, x: Array) -> list[ParameterFault]:
    size = np.max(np.abs(x), axis=(-2, -1))
    skew = np.max(np.abs(x - np.swapaxes(x, -2, -1)), axis=(-2, -1)) > INERTIA_TOLERANCE * size
    a, b, c = np.moveaxis(np.linalg.eigvalsh(x), -1, 0)
    found = [
        ParameterFault(skew, what, "must be symmetric", x),
        ParameterFault(
            ~skew & (a < -INERTIA_TOLERANCE * size), what, "must be positive semi-definite", x
        ),
    ]
    p, r, s = np.linalg.eigvalsh(np.asarray(robot.bodies[body].inertia, dtype=float))
    if p + r >= s * (1.0 - INERTIA_TOLERANCE):  # else the robot itself was accepted without
        violated = ~skew & (a >= -INERTIA_TOLERANCE * size) & (a + b < c - INERTIA_TOLERANCE * size)
        reason = "violates the triangle inequality: no mass distribution has it"
        found.append(ParameterFault(violated, what, reason, x))
    return found


def _placement(robot: Robot, joint: str, what: str, x: Array) -> list[ParameterFault]:
    wrong = pose_error(x) > UNIT_TOLERANCE
    return [ParameterFault(wrong, what, "must be a unit dual quaternion", x)]


def _not_negative(robot: Robot, joint: str, what: str, x: Array) -> list[ParameterFault]:
    return [ParameterFault(np.any(x < 0.0, axis=-1), what, "must not be negative", x)]


def _length(robot: Robot, constraint: str, what: str, x: Array) -> list[ParameterFault]:
    if robot.constraints[constraint].kind != ROD:  # no equation reads it
        return []
    return [ParameterFault(x <= 0.0, what, "must be positive", x)]


def _anything(robot: Robot, part: str, what: str, x: Array) -> list[ParameterFault]:
    return []


#: (robot, body, joint or constraint, what to call it, values) -> faults, by the name of the number.
_CHECKS: Mapping[str, Callable[[Robot, str, str, Array], list[ParameterFault]]] = {
    "mass": _mass,
    "com": _anything,
    "inertia": _inertia,
    "placement": _placement,
    "pitch": _anything,
    "damping": _not_negative,
    "friction": _not_negative,
    "rotor_inertia": _not_negative,
    "stiffness": _not_negative,
    "spring_reference": _anything,
    "parent_placement": _placement,
    "child_placement": _placement,
    "length": _length,
    "ratio": _anything,
    "offset": _anything,
}
