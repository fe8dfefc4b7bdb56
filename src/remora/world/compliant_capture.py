"""A compliant capture: a bushing that acts from the moment a grapple reaches its fixture."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array, asarray, less, select
from remora.algebra.selections import flag
from remora.components.actions import Action
from remora.components.component import Component, Interface, ZeroCrossing
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.model.robot import Robot
from remora.world.bushing import (
    energy,
    forces,
    refuse_same_body,
    wrenches,
)
from remora.world.capture_conditions import capture_margin, reach_margin
from remora.world.relative_motion import RelativeMotion, motion_between

#: Values of the state `stage`.
WAITING, HOLDING, RELEASED = 0.0, 1.0, 2.0


class CompliantCapture(Component):
    """A bushing between grapple and fixture, see `Bushing`, that acts from capture to release.

    The grapple captures when the fixture is within `distance`, `angle` and `speed` of it, also at
    the start of the run. Springs are relaxed in the relative pose of that moment; without `latch`,
    when both frames coincide.

    Outputs: `force`, N, and `torque`, N m, on the fixture, in the axes of the grapple; `energy` of
    the springs, J; `holding`, 1 from capture to release. Events: `captured`; `missed`: the fixture
    left the reach and was not captured; `released`.
    """

    grapple: str = parameter("body or frame that captures", "frame")
    fixture: str = parameter("body or frame that is captured", "frame")
    distance: float = parameter("largest of both origins at capture", unit="m", above=0.0)
    angle: float = parameter(
        "largest of both frames at capture", unit="rad", above=0.0, maximum=math.pi
    )
    speed: float = parameter(
        "largest relative one of both origins at capture", unit="m/s", above=0.0
    )
    stiffness: float = parameter("k of the bushing", unit="N/m", minimum=0.0)
    damping: float = parameter("c", default=0.0, unit="N s/m", minimum=0.0)
    rotational_stiffness: float = parameter("κ", default=0.0, unit="N m/rad", minimum=0.0)
    rotational_damping: float = parameter("γ", default=0.0, unit="N m s/rad", minimum=0.0)
    release_time: float | None = parameter(
        "time of the run at which it lets go; default: never", default=None, unit="s"
    )
    latch: bool = parameter(
        "whether the springs are relaxed in the pose at capture", "flag", default=True
    )

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if both frames are on the same body."""
        refuse_same_body(robot, self.grapple, self.fixture)
        captured = ZeroCrossing(-1, "reset", at_start=True)
        events = {"captured": captured, "missed": ZeroCrossing(1, "record")}
        if self.release_time is not None:
            events["released"] = ZeroCrossing(1, "reset")
        return Interface(
            outputs={
                "force": Signal(3, "N"), "torque": Signal(3, "N m"), "energy": Signal((), "J"),
                "holding": Signal(),
            },
            discrete={"stage": WAITING, "rest": dual_quaternion.identity()},
            events=events,
        )  # fmt: skip

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return force, torque, energy, and whether it holds."""
        on, motion = self._holding(at), self._motion(at)
        force, torque = forces(self, motion)
        return {
            "force": on[..., None] * force, "torque": on[..., None] * torque,
            "energy": asarray(on * energy(self, motion)), "holding": on,
        }  # fmt: skip

    def act(self, at: Context) -> list[Action]:
        """Return the wrenches on both frames."""
        on, motion = self._holding(at)[..., None], self._motion(at)
        force, torque = forces(self, motion)
        # in the axes of the grapple; the springs act in those of the frame that is held
        place = motion_between(at, self.grapple, self.fixture).position
        return wrenches(at, self.grapple, self.fixture, place, on * force, on * torque)

    def crossings(self, at: Context) -> Mapping[str, Array]:
        """Return the conditions; those that cannot occur in this stage stay away from zero."""
        motion = motion_between(at, self.grapple, self.fixture)
        stage = at.memory["stage"]
        waiting = less(stage, 0.5 * (WAITING + HOLDING))
        margin = capture_margin(motion, self.distance, self.angle, self.speed)
        found = {
            "captured": select(waiting, margin, 1.0),
            "missed": select(waiting, reach_margin(motion, self.distance), -1.0),
        }
        if self.release_time is not None:
            found["released"] = select(
                less(stage, 0.5 * (HOLDING + RELEASED)), at.t - self.release_time, -1.0
            )
        return found

    def reset(self, at: Context, event: str) -> Mapping[str, Array]:
        """Return the stage, and the pose in which the springs are relaxed."""
        stage = np.array(HOLDING if event == "captured" else RELEASED)
        if event != "captured" or not self.latch:
            return {"stage": stage}
        return {"stage": stage, "rest": motion_between(at, self.grapple, self.fixture).pose}

    def _holding(self, at: Context) -> Array:
        stage = at.memory["stage"]
        low, high = 0.5 * (WAITING + HOLDING), 0.5 * (HOLDING + RELEASED)
        return asarray(flag(less(low, stage)) * flag(less(stage, high)))

    def _motion(self, at: Context) -> RelativeMotion:
        """Return the deflection of the springs: the fixture's motion relative to where it rests.

        The pose in which the springs are relaxed is fixed in the grapple's frame; the deflection is
        expressed in the grapple's axes, the rotation is that from rest to now.
        """
        motion = motion_between(at, self.grapple, self.fixture)
        return deflection(motion, at.memory["rest"])


def deflection(motion: RelativeMotion, rest: Array) -> RelativeMotion:
    """Return the motion of a frame relative to where it rests, in the axes of the first frame.

    Args:
        motion: of frame b seen from frame a.
        rest: pose of b seen from a in which the springs are relaxed, `(..., 8)`.
    """
    r = quaternion.mul(pose.rotation(motion.pose), quaternion.conjugate(pose.rotation(rest)))
    return motion._replace(
        position=motion.position - pose.translation(rest), rotation=2.0 * quaternion.log(r)
    )
