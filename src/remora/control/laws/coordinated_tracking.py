"""Coordinated control of base and arm: one law for both poses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra import least_squares
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.algebra.vector import apply
from remora.components.actions import Action, JointForce
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import joint_forces, joint_names, joint_signal, speed_places
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.control.motion import controlled_motion as motion
from remora.control.motion.pose_goal import ACCELERATED_POSE_INPUTS, base_inputs
from remora.control.motion.screw_error import screw_error
from remora.dynamics.kinematics import jacobian_rate
from remora.errors import InvalidValue
from remora.model.joints import is_free
from remora.model.robot import Robot


class CoordinatedTracking(Component):
    """A wrench on the base and torques of the joints with which base and frame follow poses.

    v̇_0 and ξ̇ of the frame are those of `BasePoseTracking` and `FramePoseTracking`; the joints
    accelerate with a = J_c⁺ (ξ̇ - J̇v - J_0 v̇_0) - (1 - J_c⁺J_c) k v_c, and all forces follow by
    inverse dynamics at once, [τ_0; τ_c] = H [v̇_0; a] + h [PE91; SA24, section IV]: neither disturbs
    the other.

    Inputs: `pose`, `twist`, `twist_rate` of the frame; `base_pose`, `base_twist`,
    `base_twist_rate`. Outputs: `wrench`, `(6,)`, on the base, [torque, force] in body axes;
    `torque`, `(k,)`; `error` and `base_error`, `(6,)`, screws in own axes.

    Valid for a free base that has actuators, exact mass properties, J_c of full rank. Joints that
    are not controlled are taken not to accelerate.
    """

    uses_design = True

    frame: str = parameter("body or frame that follows", "frame")
    kp: ArrayLike = parameter(
        "of the frame, one or six, rotation first", "numbers", unit="1/s²", above=0.0, size=6
    )
    kv: ArrayLike = parameter("of the frame, likewise", "numbers", unit="1/s", above=0.0, size=6)
    base_kp: ArrayLike = parameter(
        "of the base, likewise", "numbers", unit="1/s²", above=0.0, size=6
    )
    base_kv: ArrayLike = parameter(
        "of the base, likewise", "numbers", unit="1/s", above=0.0, size=6
    )
    joints: Sequence[str] = parameter("controlled joints; all by default", "joints", default=())
    damping: float = parameter("λ of the least squares", default=0.0, minimum=0.0)
    joint_damping: float = parameter("k, in the null space", default=1.0, unit="1/s", minimum=0.0)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        base = robot.joints[0]
        if not is_free(base):
            raise InvalidValue(f"the base is {base.kind}: a pose needs a free one")
        robot.frame(self.frame)
        torque = joint_signal(robot, joint_names(robot, self.joints), "force_unit")
        return Interface(
            inputs={**ACCELERATED_POSE_INPUTS, **base_inputs(accelerated=True)},
            outputs={
                "wrench": Signal(6),
                "torque": torque,
                "error": Signal(6),
                "base_error": Signal(6),
            },
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return wrench, torques and errors."""
        places = speed_places(at.robot, joint_names(at.robot, self.joints))
        base = screw_error(at, at.robot.bodies[0].name, "base_", "logarithm")
        tool = screw_error(at, self.frame, "", "logarithm")
        base_rate = base.ahead - self.base_kp * base.pose - self.base_kv * base.twist
        tool_rate = tool.ahead - self.kp * tool.pose - self.kv * tool.twist
        J = at.jacobian(self.frame)
        moving = apply(jacobian_rate(at.robot, at.q, at.v, self.frame), at.v)
        J_c = J[..., :, places]
        inverse = least_squares.damped_inverse(J_c, self.damping)
        a = apply(inverse, tool_rate - moving - apply(J[..., :, :6], base_rate))
        rest = -self.joint_damping * at.v[..., places]
        a = a + least_squares.projected(J_c, inverse, rest)
        all_places = [*range(6), *places]
        needed = motion.controlled_dynamics(at, all_places, "flying").force
        force = apply(needed.matrix, concatenate([base_rate, a])) + needed.offset
        return {
            "wrench": force[..., :6],
            "torque": force[..., 6:],
            "error": tool.pose,
            "base_error": base.pose,
        }

    def act(self, at: Context) -> list[Action]:
        """Return the wrench on the base and the torques of the joints."""
        found, robot = self.outputs(at), at.robot
        names = joint_names(robot, self.joints)
        on_base = JointForce(robot.joints[0].name, found["wrench"])
        return [on_base, *joint_forces(robot, names, found["torque"])]
