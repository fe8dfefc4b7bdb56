"""The check for mimic joints, for formulations that do not support them."""

from __future__ import annotations

from remora.errors import InvalidValue
from remora.model.robot import Robot


def refuse_mimic_joints(robot: Robot, formulation: str) -> None:
    """Raise if the robot has mimic joints: the formulation moves every joint independently."""
    names = [j.name for j in robot.joints if j.mimic is not None]
    if names:
        raise InvalidValue(
            f"the formulation {formulation!r} does not support mimic joints "
            f"({', '.join(names)}); use formulation='composite'"
        )
