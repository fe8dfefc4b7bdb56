"""Base-reaction compensation: the wrench that keeps the base still while joints move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra.array_ops import Array, concatenate
from remora.algebra.vector import apply
from remora.components.actions import JointForce
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import joint_names, joint_signal, speed_places
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.control.motion import controlled_motion as motion
from remora.errors import InvalidValue
from remora.model.joints import kind
from remora.model.robot import Robot


class BaseReactionCompensation(Component):
    """Feed-forward on the base against the reaction of moving joints [SPART17, section 3].

    τ_0 = H_0c a + h_0: the forces on the base with which v̇_0 = 0 while the controlled joints
    accelerate with a (inverse dynamics with a base that does not accelerate). A free base takes
    [torque, force], body axes.

    Input: `acceleration` a, `(k,)`, of the joints, zero by default. Output: `force` τ_0, `(n0,)`.

    Valid for exact mass properties; it is a feed-forward without feedback, to be added to a law of
    the base. A base that moves keeps its body-axes velocity.
    """

    uses_design = True

    joints: Sequence[str] = parameter("moving joints; all by default", "joints", default=())
    torque_only: bool = parameter(
        "whether only the torque of a free base acts, as of wheels", "flag", default=False
    )
    acts: bool = parameter("whether it acts; else it is an output only", "flag", default=True)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        names, base = joint_names(robot, self.joints), robot.joints[0]
        size = motion.base_size(robot)
        if size == 0:
            raise InvalidValue("the base is fixed: nothing is to be compensated")
        if self.torque_only and kind(base).quaternion is None:
            raise InvalidValue(f"the base is {base.kind}: it has no torque of its own")
        return Interface(
            inputs={"acceleration": joint_signal(robot, names, "acceleration_unit", 0.0)},
            outputs={"force": Signal(size)},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the forces on the base."""
        n0 = motion.base_size(at.robot)
        places = speed_places(at.robot, joint_names(at.robot, self.joints))
        needed = motion.controlled_dynamics(at, [*range(n0), *places], "flying").force
        force = apply(needed.matrix[..., :n0, n0:], at.inputs["acceleration"])
        force = force + needed.offset[..., :n0]
        if self.torque_only:
            force = concatenate([force[..., :3], 0.0 * force[..., 3:]])
        return {"force": force}

    def act(self, at: Context) -> JointForce | None:
        """Return the forces on the base."""
        if not self.acts:
            return None
        return JointForce(at.robot.joints[0].name, self.outputs(at)["force"])
