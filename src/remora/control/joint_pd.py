"""PD control of joints: a virtual spring and damper at each joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeGuard

import numpy as np
from pydantic import Discriminator, Field, Tag

from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.model.joints import in_coordinates
from remora.model.robot import Robot
from remora.model.settings_fields import (
    Angles,
    JointName,
    NotNegative,
    Positive,
    Settings,
    degrees_of_a_slide,
)


@dataclass(frozen=True, eq=False)
class JointPD:
    """A PD controller of joint positions, sampled every `sample_time` seconds.

    τᵢ = kpᵢ (goalᵢ - qᵢ) - kdᵢ vᵢ for the coordinates of the chosen joints, 0 elsewhere.

    Attributes:
        joints: names of the joints it acts on.
        q_places: indices of their coordinates in q, `(k,)`.
        v_places: indices of their speeds in v, `(k,)`.
        goal: `(k,)`, rad or m.
        kp: `(k,)`, N m/rad or N/m.
        kd: `(k,)`, N m s/rad or N s/m.
        sample_time: s.
    """

    joints: tuple[str, ...]
    q_places: Array
    v_places: Array
    goal: Array
    kp: Array
    kd: Array
    sample_time: float

    def __init__(
        self,
        robot: Robot,
        goal: Mapping[str, ArrayLike],
        kp: ArrayLike | Mapping[str, ArrayLike],
        kd: ArrayLike | Mapping[str, ArrayLike],
        sample_time: float,
    ) -> None:
        """Check the gains and look up the joints.

        Args:
            robot: the robot.
            goal: desired coordinates by joint name, rad or m.
            kp: stiffness, one for all joints or by joint name; N m/rad or N/m.
            kd: damping, one for all joints or by joint name; N m s/rad or N s/m.
            sample_time: s.
        """
        if not isinstance(goal, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RemoraError(
                f"goal must be a dictionary by joint name, {{'elbow': 0.5}}, not {goal!r}"
            )
        if not goal:
            raise RemoraError("a joint_pd needs a goal for at least one joint")
        columns: dict[str, list[Any]] = {"q": [], "v": [], "goal": [], "kp": [], "kd": []}
        for name, place in goal.items():
            joint = robot.joints[robot.joint_index(name)]
            size = joint.v.stop - joint.v.start
            if not in_coordinates(joint) or joint.mimic is not None or size == 0:
                raise RemoraError(f"joint {name!r} ({joint.kind}) has no coordinates to hold")
            columns["q"] += range(joint.q.start, joint.q.stop)
            columns["v"] += range(joint.v.start, joint.v.stop)
            columns["goal"] += _numbers(f"the goal of {name!r}", place, size)
            for what, gains in (("kp", kp), ("kd", kd)):
                gain = gains.get(name) if _is_mapping(gains) else gains
                if gain is None:
                    raise RemoraError(f"{what} is missing for joint {name!r}")
                columns[what] += _numbers(f"{what} of {name!r}", gain, size)
        object.__setattr__(self, "joints", tuple(goal))
        object.__setattr__(self, "q_places", np.array(columns["q"], int))
        object.__setattr__(self, "v_places", np.array(columns["v"], int))
        for name in ("goal", "kp", "kd"):
            object.__setattr__(self, name, np.array(columns[name]))
        object.__setattr__(self, "sample_time", float(sample_time))

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return the generalized forces, `(nv,)`."""
        tau = np.zeros_like(v)
        off = self.goal - q[self.q_places]
        tau[self.v_places] = self.kp * off - self.kd * v[self.v_places]
        return tau


def _is_mapping(x: object) -> TypeGuard[Mapping[str, ArrayLike]]:
    return isinstance(x, Mapping)


def _numbers(what: str, given: Any, size: int) -> list[float]:
    """Return one number per degree of freedom of a joint, or raise."""
    array = np.asarray(given, dtype=float)
    if array.shape not in ((), (size,)):
        raise ShapeError(f"{what} must be one number, or {size}, not of shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InvalidValue(f"{what} must be finite")
    return np.broadcast_to(array, (size,)).tolist()


def _by_joint(value: Any) -> str:
    return "by joint" if isinstance(value, dict) else "all"


_Gains: TypeAlias = Annotated[
    Annotated[NotNegative, Tag("all")] | Annotated[dict[JointName, NotNegative], Tag("by joint")],
    Discriminator(_by_joint),
]


class JointPDSettings(Settings):
    """The settings of a joint_pd controller in a scenario file."""

    law: Literal["joint_pd"]
    goal: dict[JointName, Angles] = Field(
        min_length=1, description="by joint where it is to be: rad, m, or '30 deg'"
    )
    kp: _Gains = Field(description="stiffness, of all or by joint: N m/rad or N/m")
    kd: _Gains = Field(description="damping, of all or by joint: N m s/rad or N s/m")
    sample_time: Positive = Field(description="s")

    def made(self, robot: Robot) -> JointPD:
        """Return the controller."""
        for name, place in self.goal.items():
            wrong = degrees_of_a_slide(robot.joints[name], place)
            if wrong:
                raise RemoraError(wrong)
        return JointPD(robot, self.goal, self.kp, self.kd, self.sample_time)
