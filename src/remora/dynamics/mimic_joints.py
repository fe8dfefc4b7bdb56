"""Mimic joints: which formulations cannot have them."""

from __future__ import annotations

from remora.errors import InvalidValue
from remora.model.robot import Robot


def refuse_mimic_joints(robot: Robot, formulation: str) -> None:
    """Raise where joints follow others: such a formulation moves every joint by itself."""
    names = [j.name for j in robot.joints if j.mimic is not None]
    if names:
        raise InvalidValue(
            f"the formulation {formulation!r} has no joints that mimic others "
            f"({', '.join(names)}); use formulation='composite'"
        )
