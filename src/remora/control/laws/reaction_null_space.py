"""Reaction null space: the part of commanded joint rates that does not move the base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra import least_squares
from remora.algebra.array_ops import Array
from remora.algebra.vector import apply
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import joint_names, joint_signal, speed_places
from remora.components.parameter import parameter, row_indices
from remora.control.motion import controlled_motion as motion
from remora.errors import InvalidValue
from remora.model.robot import Robot


class ReactionNullSpace(Component):
    """Joint rates projected so that a floating base keeps still [NY96; SPART17, section 4.1].

    v_c = (1 - B⁺B) z - B⁺b, where B v_c + b are the chosen rows of the base's twist: with
    B = -H_0⁻¹H_0c no momentum passes to the base in these rows, and b, which momentum and other
    joints cause, is counteracted. Of all rates without reaction they are the nearest to z.

    Input: `command` z, `(k,)`. Output: `rate` v_c, `(k,)`.

    Valid for a floating base; at least one joint more than rows is needed for any motion to remain.
    Where B loses rank, `damping` bounds the rates and a small reaction remains.
    """

    uses_design = True

    joints: Sequence[str] = parameter("its joints; all by default", "joints", default=())
    rows: str | Sequence[str] = parameter(
        "of the base's twist, inertial axes, that are to be zero", "rows", default="orientation"
    )
    damping: float = parameter("λ of the least squares", default=0.0, minimum=0.0)

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if not row_indices(self.rows):
            raise InvalidValue("a reaction null space needs at least one row of the base")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        if motion.base_size(robot) == 0:
            raise InvalidValue("the base is fixed: there is no reaction")
        rate = joint_signal(robot, joint_names(robot, self.joints), "speed_unit")
        return Interface(inputs={"command": rate}, outputs={"rate": rate})

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the projected rates."""
        places = speed_places(at.robot, joint_names(at.robot, self.joints))
        rows = row_indices(self.rows)
        moves = motion.response(at, places, "floating")
        base = at.robot.bodies[0].name
        B = motion.frame_rates(at, base, rows, places, "floating", moves)
        inverse = least_squares.damped_inverse(B.matrix, self.damping)
        z = at.inputs["command"]
        return {"rate": z - apply(inverse, apply(B.matrix, z) + B.offset)}
