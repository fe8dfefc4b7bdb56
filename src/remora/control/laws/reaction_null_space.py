"""Reaction null space: the part of commanded joint rates that does not move the base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from remora.algebra import least_squares
from remora.algebra.array_ops import Array
from remora.algebra.vector import apply
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter_checks import number
from remora.control.law_settings import LawComponentSettings
from remora.control.motion import controlled_motion as motion
from remora.control.motion.joint_signals import joint_signal
from remora.errors import InvalidValue
from remora.model.robot import Robot
from remora.model.settings_fields import JointName, NotNegative


class ReactionNullSpace(Component):
    """Joint rates projected so that a floating base keeps still [NY96; SPART17, section 4.1].

    v_c = (1 - B⁺B) z - B⁺b, where B v_c + b are the chosen rows of the base's twist: with
    B = -H_0⁻¹H_0c no momentum passes to the base in these rows, and b, which momentum and other
    joints cause, is counteracted. Of all rates without reaction they are the nearest to z.

    Input: `command` z, `(k,)`. Output: `rate` v_c, `(k,)`.

    Valid for a floating base; at least one joint more than rows is needed for any motion to remain.
    Where B loses rank, `damping` bounds the rates and a small reaction remains.

    Attributes:
        joints: names of the joints; all by default.
        rows: rows of the base's twist in inertial axes that are to be zero.
        damping: λ of the least squares.
    """

    joints: Sequence[str] = ()
    rows: str | Sequence[str] = "orientation"
    damping: float = 0.0

    def __post_init__(self) -> None:
        """Check."""
        if not motion.row_indices(self.rows):
            raise InvalidValue("a reaction null space needs at least one row of the base")
        damping = number("damping of a reaction null space", self.damping, 0.0)
        object.__setattr__(self, "damping", damping)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        if motion.base_size(robot) == 0:
            raise InvalidValue("the base is fixed: there is no reaction")
        rate = joint_signal(robot, motion.joint_names(robot, self.joints), "speed_unit")
        return Interface(inputs={"command": rate}, outputs={"rate": rate})

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the projected rates."""
        places = motion.speed_places(at.robot, motion.joint_names(at.robot, self.joints))
        rows = motion.row_indices(self.rows)
        moves = motion.response(at, places, "floating")
        base = at.robot.bodies[0].name
        B = motion.frame_rates(at, base, rows, places, "floating", moves)
        inverse = least_squares.damped_inverse(B.matrix, self.damping)
        z = at.inputs["command"]
        return {"rate": z - apply(inverse, apply(B.matrix, z) + B.offset)}


class ReactionNullSpaceSettings(LawComponentSettings):
    """The settings of a reaction_null_space component in a scenario file."""

    component: ClassVar[type[Component]] = ReactionNullSpace
    type: Literal["reaction_null_space"]
    joints: list[JointName] = Field(default=[], description="joints; default: all")
    rows: str | list[str] = Field(default="orientation", description="of the base, to be zero")
    damping: NotNegative = Field(default=0.0, description="of the least squares")
