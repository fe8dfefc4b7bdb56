"""Peaks of a run against the limits of its joints: efforts, speeds and positions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.joints import in_coordinates, kind
from remora.model.limit_text import coordinate_text, range_text
from remora.model.robot import Joint
from remora.simulation.recording.recording import Recording
from remora.viewer.scene.link_roles import WHEEL, role_of

#: Maximum number of joints.
MOST_JOINTS = 60
#: A share of a limit that is too much, and one that is near.
OVER, NEAR = 1.0 + 1e-9, 0.9
_RPM = 30.0 / math.pi


class Peak(NamedTuple):
    """The largest value of a quantity.

    Attributes:
        text: value with its unit.
        limit: limit with its unit; empty if there is none.
        share: value relative to the limit; NaN if there is none.
        t: when, s.
    """

    text: str
    limit: str
    share: float
    t: float


class JointPeaks(NamedTuple):
    """Peaks of a joint with one degree of freedom.

    Attributes:
        name: of the joint.
        effort: torque or force of its drive.
        speed: its speed.
        travel: its range of positions, and that of its limits.
    """

    name: str
    effort: Peak
    speed: Peak
    travel: Peak


def joint_peaks(run: Recording) -> list[JointPeaks]:
    """Return the peaks of the joints with one degree of freedom of their own."""
    robot, made = run.robot, list[JointPeaks]()
    for i, joint in enumerate(robot.joints):
        if joint.mimic is not None or kind(joint).nv != 1 or joint.parent < 0:
            continue
        wheel = role_of(robot, i) == WHEEL
        made.append(
            JointPeaks(joint.name, _effort(run, joint), _speed(run, joint, wheel),
                       _travel(run, joint, wheel))
        )  # fmt: skip
    return made[:MOST_JOINTS]


def exceeded(peaks: list[JointPeaks]) -> list[str]:
    """Return sentences about limits that were passed."""
    said: list[str] = []
    for own in peaks:
        for what, peak in (("effort", own.effort), ("speed", own.speed), ("range", own.travel)):
            if peak.share > OVER:
                said.append(
                    f"{own.name} passed its {what} limit: {peak.text} at {peak.t:.6g} s, the limit "
                    f"is {peak.limit}"
                )
    return said


def _peak(values: Array, t: Array) -> tuple[float, float]:
    size = np.abs(np.nan_to_num(values))
    k = int(np.argmax(size))
    return float(size[k]), float(t[k])


def _effort(run: Recording, joint: Joint) -> Peak:
    most, when = _peak(run.tau[:, joint.v.start], run.t)
    limit, unit = float(joint.limits.effort[0]), kind(joint).freedoms[0].force_unit
    bound = 0.0 < limit < math.inf
    return Peak(
        f"{most:.4g} {unit}", f"{limit:.4g} {unit}" if bound else "",
        most / limit if bound else math.nan, when,
    )  # fmt: skip


def _speed(run: Recording, joint: Joint, wheel: bool) -> Peak:
    most, when = _peak(run.v[:, joint.v.start], run.t)
    limit, turns = float(joint.limits.velocity[0]), kind(joint).freedoms[0].angular

    def text(x: float) -> str:
        if wheel:
            return f"{_RPM * x:.4g} rpm"
        return f"{math.degrees(x):.4g} °/s" if turns else f"{x:.4g} m/s"

    bound = 0.0 < limit < math.inf
    return Peak(text(most), text(limit) if bound else "", most / limit if bound else math.nan, when)


def _travel(run: Recording, joint: Joint, wheel: bool) -> Peak:
    """Return the range of positions; its share is one at a limit, zero in the middle."""
    if wheel or not in_coordinates(joint):
        return Peak("", "", math.nan, math.nan)
    q, turns = run.q[:, joint.q.start], kind(joint).freedoms[0].angular
    low, high = float(joint.limits.lower[0]), float(joint.limits.upper[0])
    unit = "°" if turns else " m"
    noise = 1e-9 * max(float(np.abs(q).max(initial=0.0)), 1e-3)  # of a joint that stays at zero
    ends = [coordinate_text(x if abs(x) > noise else 0.0, turns)
            for x in (float(q.min()), float(q.max()))]  # fmt: skip
    text = f"{ends[0]} to {ends[1]}{unit}".replace("-", "−")
    limit = range_text(low, high, turns).replace("-", "−")
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return Peak(text, limit, math.nan, math.nan)
    share = np.abs(2.0 * q - low - high) / (high - low)
    k = int(np.argmax(share))
    return Peak(text, limit, float(share[k]), float(run.t[k]))
