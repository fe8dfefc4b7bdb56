"""Views of a recording by the name of a joint, a body, a frame or a constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.errors import RemoraError
from remora.model.constraint import Constraint
from remora.model.joints import coordinates, speeds
from remora.model.robot import Joint, Robot


class RunData(Protocol):
    """The interface that a view reads."""

    @property
    def robot(self) -> Robot:
        """The robot."""
        ...

    @property
    def wrenches(self) -> Array | None:
        """External wrenches, `(n, nb, 6)`, if there were any."""
        ...

    def __len__(self) -> int: ...

    def quantity(self, name: str) -> Array:
        """Return a column or quantity."""
        ...

    def active(self, constraint: str) -> Array:
        """Return whether a constraint acts at each sample, `(n,)`."""
        ...

    def frame_pose(self, frame: str) -> Array:
        """Return the poses of a body or frame, `(n, 8)`."""
        ...

    def frame_twist(self, frame: str) -> Array:
        """Return the twists of a body or frame, `(n, 6)`."""
        ...


@dataclass(frozen=True, eq=False)
class JointView:
    """Recorded quantities of one joint; `(n,)` for one degree of freedom, otherwise `(n, nv_i)`."""

    run: RunData
    index: int

    @property
    def joint(self) -> Joint:
        """The joint."""
        return self.run.robot.joints[self.index]

    @property
    def q(self) -> Array:
        """Its coordinates, rad or m."""
        return _alone(coordinates(self.joint, self.run.quantity("q")))

    @property
    def v(self) -> Array:
        """Its speeds, rad/s or m/s."""
        return _alone(speeds(self.joint, self.run.quantity("v")))

    @property
    def vdot(self) -> Array:
        """The rates of its speeds, rad/s² or m/s²."""
        return _alone(speeds(self.joint, self.run.quantity("vdot")))

    @property
    def torque(self) -> Array:
        """Its actuation, N m or N; of a free base [torque, force]."""
        return self._force(self.run.quantity("tau"))

    force = torque  # for prismatic joints

    @property
    def passive(self) -> Array:
        """Its damping, friction, spring and stops, N m or N."""
        return self._force(self.run.quantity("passive"))

    @property
    def power(self) -> Array:
        """Power of its actuation, `(n,)`, W."""
        self._force(self.run.quantity("tau"))
        part = self.joint.v
        return np.sum(self.run.quantity("tau")[:, part] * self.run.quantity("v")[:, part], axis=-1)

    @property
    def reaction(self) -> Array:
        """Constraint wrench [f, τ] on the body it carries, in that body's frame, `(n, 6)`."""
        return self.run.quantity("reactions")[:, self.index]

    def _force(self, forces: Array) -> Array:
        mimic = self.joint.mimic
        if mimic is not None:
            leader = self.run.robot.joints[mimic.joint].name
            raise RemoraError(
                f"joint {self.joint.name!r} mimics {leader!r}; the forces of both are that one's"
            )
        return _alone(forces[:, self.joint.v])


@dataclass(frozen=True, eq=False)
class FrameView:
    """Recorded quantities of one body or frame."""

    run: RunData
    name: str

    @property
    def pose(self) -> Array:
        """Its pose in the inertial frame, `(n, 8)`."""
        return self.run.frame_pose(self.name)

    @property
    def twist(self) -> Array:
        """Its twist [ω, v] in its own axes, `(n, 6)`."""
        return self.run.frame_twist(self.name)

    @property
    def position(self) -> Array:
        """Its origin in the inertial frame, `(n, 3)`, m."""
        return pose.translation(self.pose)

    @property
    def orientation(self) -> Array:
        """Its orientation in the inertial frame, a unit quaternion, `(n, 4)`."""
        return pose.rotation(self.pose)

    @property
    def wrench(self) -> Array:
        """The external wrench [f, τ] on the body, its frame, `(n, 6)`; zero in a run without."""
        index = self.run.robot.body_index(self.name)
        wrenches = self.run.wrenches
        return np.zeros((len(self.run), 6)) if wrenches is None else wrenches[:, index]


@dataclass(frozen=True, eq=False)
class ConstraintView:
    """Recorded quantities of one constraint."""

    run: RunData
    index: int

    @property
    def constraint(self) -> Constraint:
        """The constraint at the start of the run."""
        return self.run.robot.constraints[self.index]

    @property
    def active(self) -> Array:
        """Whether it acts, `(n,)`, booleans."""
        return self.run.active(self.constraint.name)

    @property
    def wrench(self) -> Array:
        """Its wrench [f, τ] on the child, `(n, 6)`, N and N m; zero where it does not act.

        In the axes of the constraint's frame on the child, about its origin.
        """
        return self.run.quantity("constraint_wrenches")[:, self.index]

    @property
    def violation(self) -> Array:
        """Its largest violation, `(n,)`, m or rad; zero where it does not act."""
        return self.run.quantity("constraint_violations")[:, self.index]


def _alone(x: Array) -> Array:
    """Return `(n, 1)` as `(n,)`."""
    return x[:, 0] if x.shape[1] == 1 else x
