"""The state of a robot as it is measured: signals of sensors put together into q and v."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array, asarray, concatenate, less, select, sqrt
from remora.algebra.vector import dot
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import (
    coordinate_places,
    joint_names,
    joint_signal,
    speed_places,
)
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import InvalidValue
from remora.model.joints import is_free
from remora.model.robot import Robot

#: What can be measured of a free base.
BASE = ("attitude", "rate", "position", "velocity")
_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
_REST = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


class StateEstimate(Component):
    """Configuration q and velocity v with measured parts; all else is the true state.

    Every control law of the system computes with its `q` and `v`, unless something else is
    connected to the law's inputs of these names. `system.truth_read_by()` lists what is not
    measured.

    Inputs: `positions`, `speeds`, `(k,)`, of `joints`; of the base those listed in `base`:
    `attitude`, `(4,)`, the orientation of the frame `tracker`; `rate`, `(3,)`, rad/s, in the axes
    of the frame `gyro`; `position`, `(3,)`, m, and `velocity`, `(3,)`, m/s, of the base's origin in
    inertial axes; of each joint J in `free_joints` `J_pose`, `(8,)`, and `J_twist`, `(6,)`, rad/s
    and m/s in its axes ("/" in J becomes "_").
    Outputs: `q`, `(nq,)`; `v`, `(nv,)`. Attitudes and poses are normalized; those of norm zero, as
    before the first measurement, are the identity.

    Valid for sensors on the base whose placement the design knows.
    """

    uses_design = True
    estimates_state = True
    #: The true position is taken out of the true pose, and brings nothing of its attitude along.
    separates_position = True

    joints: Sequence[str] = parameter(
        "whose positions and speeds are measured", "joints", default=()
    )
    base: Sequence[str] = parameter(
        "what is measured of the base", "choices", default=(), choices=BASE
    )
    tracker: str | None = parameter("frame of `attitude`; the base", "frame", default=None)
    gyro: str | None = parameter("frame of `rate`; the base", "frame", default=None)
    free_joints: Sequence[str] = parameter(
        "free joints of other trees that are measured", "joints", default=()
    )

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if self.sample_time is not None:
            raise InvalidValue(
                "a state_estimate has no sample_time: it passes on what sensors and filters hold; "
                "set sample_time, offset and delay there"
            )

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if a joint or frame cannot be measured in this way."""
        inputs: dict[str, Signal] = {}
        if self.joints:
            names = joint_names(robot, self.joints)
            inputs["positions"] = joint_signal(robot, names, "coordinate_unit")
            inputs["speeds"] = joint_signal(robot, names, "speed_unit")
        if self.base and not is_free(robot.joints[0]):
            raise InvalidValue(
                f"the base is {robot.joints[0].kind}: {self.base[0]} needs a free one"
            )
        for what, frame in (("attitude", self.tracker), ("rate", self.gyro)):
            if frame is not None and what not in self.base:
                raise InvalidValue(f"base has no {what!r}, which the frame {frame!r} would measure")
            if frame is not None and robot.frame(frame).body != 0:
                raise InvalidValue(f"frame {frame!r} is not on the base")
        units = {"attitude": (4, ""), "rate": (3, "rad/s"), "position": (3, "m"),
                 "velocity": (3, "m/s")}  # fmt: skip
        inputs |= {what: Signal(*units[what]) for what in BASE if what in self.base}
        for name in self.free_joints:
            joint = robot.joints[robot.joint_index(name)]
            if not is_free(joint) or joint is robot.joints[0]:
                raise InvalidValue(f"joint {name!r} is not a free joint of another tree")
            if f"{_key(name)}_pose" in inputs:
                raise InvalidValue(f"joint {name!r} has the inputs of another: {_key(name)}_pose")
            inputs |= {f"{_key(name)}_pose": Signal(8), f"{_key(name)}_twist": Signal(6)}
        if not inputs:
            raise InvalidValue("nothing is measured: list joints, base or free_joints")
        return Interface(inputs=inputs, outputs={"q": Signal(robot.nq), "v": Signal(robot.nv)})

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the estimated state."""
        robot, told = at.robot, at.inputs
        q: dict[int, Array] = {}
        v: dict[int, Array] = {}
        if self.joints:
            names = joint_names(robot, self.joints)
            _place(q, coordinate_places(robot, names), told["positions"])
            _place(v, speed_places(robot, names), told["speeds"])
        if self.base:
            self._base(at, q, v)
        for name in self.free_joints:
            joint = robot.joints[name]
            x = told[f"{_key(name)}_pose"]
            _place(q, range(robot.nq)[joint.q], _normalized(x))
            _place(v, range(robot.nv)[joint.v], told[f"{_key(name)}_twist"])
        return {"q": _replaced(at.q, q), "v": _replaced(at.v, v)}

    def _base(self, at: Context, q: dict[int, Array], v: dict[int, Array]) -> None:
        """Place the parts of the base's pose and twist."""
        joint, told = at.robot.joints[0], at.inputs
        places, speeds = range(at.robot.nq)[joint.q], range(at.robot.nv)[joint.v]
        x = at.q[..., joint.q]
        r = pose.rotation(x)
        if "attitude" in self.base:
            mounted = pose.rotation(at.robot.frame(self.tracker or 0).placement)
            r = quaternion.mul(_unit(told["attitude"]), quaternion.conjugate(mounted))
        if {"attitude", "position"} & {*self.base}:
            p = told["position"] if "position" in self.base else pose.translation(x)
            _place(q, places, pose.from_parts(r, p))
        if "rate" in self.base:
            mounted = pose.rotation(at.robot.frame(self.gyro or 0).placement)
            _place(v, speeds[:3], quaternion.rotate(mounted, told["rate"]))
        if "velocity" in self.base:
            _place(v, speeds[3:], quaternion.rotate(quaternion.conjugate(r), told["velocity"]))


def _key(joint: str) -> str:
    return re.sub(r"[^A-Za-z0-9_\-]", "_", joint)


def _unit(r: Array) -> Array:
    """Return a unit quaternion; the identity for one of norm zero."""
    size = dot(r, r)
    empty = less(size, 1e-12)
    return select(empty, _IDENTITY, r / sqrt(select(empty, 1.0, size)))


def _normalized(x: Array) -> Array:
    """Return a unit pose; the identity for one of norm zero."""
    empty = less(dot(x[..., :4], x[..., :4]), 1e-12)
    sound = select(empty, _REST, x)
    size = dot(sound[..., :4], sound[..., :4])
    return pose.from_parts(_unit(sound[..., :4]), pose.translation(sound) / size)


def _place(parts: dict[int, Array], places: Sequence[int], value: Array) -> None:
    for k, place in enumerate(places):
        parts[place] = asarray(value)[..., k : k + 1]


def _replaced(x: Array, parts: Mapping[int, Array]) -> Array:
    return concatenate([parts.get(i, x[..., i : i + 1]) for i in range(x.shape[-1])])
