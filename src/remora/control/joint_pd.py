"""PD control of joints: a virtual spring and damper at each joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.components.actions import Action
from remora.components.component import Component, Interface, set_timing
from remora.components.context import Context
from remora.components.joint_signals import joint_forces, joint_signal
from remora.components.parameter import parameter
from remora.errors import InvalidValue, RemoraError
from remora.model.arguments import each
from remora.model.joints import in_coordinates
from remora.model.robot import Robot


class JointPD(Component):
    """A PD controller of joint positions, sampled every `sample_time` seconds.

    τᵢ = kpᵢ (goalᵢ - qᵢ) - kdᵢ vᵢ for the coordinates of the chosen joints, 0 elsewhere.

    A component of a `System`, with the parameters goal, kp and kd; or a value of `torque=`. In a
    system, goalᵢ may be changed by an input `reference` that is added to it, and τ may be an output
    `torque`, for an actuator, instead of a force on the joints.
    """

    uses_design = True

    joints: tuple[str, ...]
    q_places: Array
    v_places: Array
    goal: Array = parameter("desired coordinates by joint", "joint places", unit="rad or m")
    kp: Array = parameter(
        "stiffness, one or by joint", "joint gains", unit="N m/rad or N/m", minimum=0.0
    )
    kd: Array = parameter(
        "damping, one or by joint", "joint gains", unit="N m s/rad or N s/m", minimum=0.0
    )
    reference_input: bool = parameter(
        "whether an input `reference` is added to the goal", "flag", in_system=True
    )
    torque_output: bool = parameter(
        "whether the torque is an output, for an actuator, instead of acting", "flag",
        in_system=True,
    )  # fmt: skip

    def __init__(
        self,
        robot: Robot,
        goal: Mapping[str, ArrayLike],
        kp: ArrayLike | Mapping[str, ArrayLike],
        kd: ArrayLike | Mapping[str, ArrayLike],
        sample_time: float | None,
        *,
        name: str = "",
        offset: float = 0.0,
        delay: float = 0.0,
        reference_input: bool = False,
        torque_output: bool = False,
    ) -> None:
        """Check the gains and look up the joints.

        Args:
            robot: the robot.
            goal: desired coordinates by joint name, rad or m.
            kp: stiffness, one for all joints or by joint name; N m/rad or N/m.
            kd: damping, one for all joints or by joint name; N m s/rad or N s/m.
            sample_time: s; None: continuous.
            name: name in a system.
            offset: time of the first tick after the start of the run, s; in a system.
            delay: time from a tick until the torque changes, s; in a system.
            reference_input: whether an input `reference` is added to the goal; in a system.
            torque_output: whether the torque is an output instead of acting; in a system.
        """
        if not isinstance(goal, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RemoraError(
                f"goal must be a dictionary by joint name, {{'elbow': 0.5}}, not {goal!r}"
            )
        if not goal:
            raise RemoraError("a joint_pd needs a goal for at least one joint")
        columns: dict[str, list[Any]] = {"q": [], "v": [], "goal": [], "kp": [], "kd": []}
        for own, place in goal.items():
            joint = robot.joints[robot.joint_index(own)]
            size = joint.v.stop - joint.v.start
            if not in_coordinates(joint) or joint.mimic is not None or size == 0:
                raise RemoraError(f"joint {own!r} ({joint.kind}) has no coordinates to hold")
            columns["q"] += range(joint.q.start, joint.q.stop)
            columns["v"] += range(joint.v.start, joint.v.stop)
            columns["goal"] += each(f"the goal of {own!r}", place, size).tolist()
            for what, gains in (("kp", kp), ("kd", kd)):
                gain = gains.get(own) if _is_mapping(gains) else gains
                if gain is None:
                    raise RemoraError(f"{what} is missing for joint {own!r}")
                numbers = each(f"{what} of {own!r}", gain, size).tolist()
                if min(numbers) < 0.0:
                    raise InvalidValue(
                        f"{what} of {own!r} must be zero or positive for a stable loop, "
                        f"not {gain!r}"
                    )
                columns[what] += numbers
        object.__setattr__(self, "joints", tuple(goal))
        object.__setattr__(self, "q_places", np.array(columns["q"], int))
        object.__setattr__(self, "v_places", np.array(columns["v"], int))
        for what in ("goal", "kp", "kd"):
            object.__setattr__(self, what, np.array(columns[what]))
        object.__setattr__(self, "reference_input", bool(reference_input))
        object.__setattr__(self, "torque_output", bool(torque_output))
        set_timing(self, name, sample_time, offset, delay)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the joints of this robot are others."""
        places = [i for name in self.joints for i in range(robot.nq)[robot.joints[name].q]]
        if places != self.q_places.tolist():
            raise RemoraError("was made for another robot: make it with the robot of the system")
        inputs = {"reference": joint_signal(robot, self.joints, "coordinate_unit")}
        outputs = {"torque": joint_signal(robot, self.joints, "force_unit")}
        return Interface(
            inputs=inputs if self.reference_input else {},
            outputs=outputs if self.torque_output else {},
        )

    def outputs(self, at: Context) -> dict[str, Array]:
        """Return the torques, if they are an output."""
        return {"torque": self._commanded(at)} if self.torque_output else {}

    def act(self, at: Context) -> list[Action]:
        """Return the torques or forces of the joints."""
        if self.torque_output:
            return []
        return joint_forces(at.robot, self.joints, self._commanded(at))

    def _commanded(self, at: Context) -> Array:
        tau = self._forces(at.q, at.v)
        return tau + self.kp * at.inputs["reference"] if self.reference_input else tau

    def _forces(self, q: Array, v: Array) -> Array:
        """Return the forces of the chosen coordinates, `(..., k)`."""
        return self.kp * (self.goal - q[..., self.q_places]) - self.kd * v[..., self.v_places]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return the generalized forces, `(nv,)`."""
        tau = np.zeros_like(v)
        tau[self.v_places] = self._forces(q, v)
        return tau


def _is_mapping(x: object) -> TypeGuard[Mapping[str, ArrayLike]]:
    return isinstance(x, Mapping)
