"""Motions of the joints that are prescribed or locked during a phase."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import RemoraError, SimulationError
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.simulation.inputs.held_joints import HeldJoint
from remora.simulation.inputs.phases import Phase, held_joints
from remora.simulation.phase.prescribed_motion_check import check_joined, check_step


class HeldMotions:
    """The motions of the held joints of a phase.

    Attributes:
        names: names of the joints that are prescribed or locked.
        prescribed: names of those that are prescribed.
        breaks: times at which a motion is not smooth, on the clock of the phase, s.
    """

    def __init__(
        self, robot: Robot, phase: Phase, q: Array, clock: Callable[[float], float]
    ) -> None:
        """Look up the joints.

        Args:
            robot: the robot.
            phase: has the prescribed and locked joints.
            q: configuration at the start of the phase, `(nq,)`.
            clock: time of the run -> time that is passed to motions, s.
        """
        self._robot, self._clock = robot, clock
        self._held = {
            name: HeldJoint(robot.joints[name], kind(robot.joints[name]), motion)
            for name, motion in held_joints(robot, phase, q).items()
        }
        self.names = tuple(self._held)
        self.prescribed = tuple(phase.prescribed)
        self.breaks = [t for own in self._held.values() for t in own.motion.breaks]

    def motion(self, name: str, t: float) -> tuple[Array, Array, Array]:
        """Return q, v and v̇ of a held joint, checked."""
        own = self._held[name]
        try:
            return own.checked(*own.motion(self._clock(t)))
        except RemoraError as error:
            raise SimulationError(str(error), t) from error
        except Exception as error:
            why = f"the motion of joint {name!r} raised {type(error).__name__}: {error}"
            raise SimulationError(why, t) from error

    def has_pieces(self, name: str) -> bool:
        """Return whether the motion of a joint is made of polynomials."""
        return self._held[name].motion.pieces is not None

    def pieces(self, name: str, low: float, high: float) -> Array:
        """Return the polynomials of a joint's motion between two times of its clock."""
        pieces = self._held[name].motion.pieces
        assert pieces is not None
        return pieces(low, high)

    def set(self, t: float, q: Array, v: Array) -> None:
        """Set held joints to their motion at t, in place."""
        for name, own in self._held.items():
            q[own.joint.q], v[own.joint.v], _ = self.motion(name, t)

    def check_step(self, start: float, stop: float) -> None:
        """Raise if a motion is inconsistent or jumps in a step, see `prescribed_motion_check`."""
        for name in self.prescribed:
            check_step(self._held[name], functools.partial(self.motion, name), start, stop)

    def check_joined(self, t: float, q: Array, v: Array) -> None:
        """Raise if a motion jumps between a state and its continuation."""
        for name in self.prescribed:
            own, after = self._held[name], self.motion(name, t)
            check_joined(own, t, (q[own.joint.q], v[own.joint.v], after[2]), after)

    def look_ahead(
        self, start: float, stop: float, breaks: Sequence[float], margin: Callable[[float], float]
    ) -> None:
        """Raise if a motion jumps at a break, or is wrong midway between two breaks.

        Motions are checked completely during the run; this finds obvious faults before it starts.

        Args:
            start: s.
            stop: s.
            breaks: times at which a motion may not be smooth, s.
            margin: time -> how far before and after it discontinuous motions are evaluated, s.
        """
        inner = [t for t in breaks if start < t < stop]
        for name in self.prescribed:
            own, at = self._held[name], functools.partial(self.motion, name)
            for t in inner:
                check_joined(own, t, at(t - margin(t)), at(t + margin(t)))
            for a, b in itertools.pairwise([start, *inner, stop]):
                middle, half = 0.5 * (a + b), 1e-4 * min(1.0, b - a)
                if half > 0.0:
                    check_step(own, at, middle - half, middle + half)

    def accelerations(self, t: float) -> Array:
        """Return the accelerations of the held joints, zero elsewhere, `(nv,)`."""
        vdot = np.zeros(self._robot.nv)
        for name in self.names:
            vdot[self._robot.joints[name].v] = self.motion(name, t)[2]
        return vdot

    def inserted(self, t: float, q: Array, u: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return u about q, v and accelerations with those of the held joints inserted."""
        u, v, vdot = u.copy(), v.copy(), np.zeros(self._robot.nv)
        for name, own in self._held.items():
            place = own.joint.v
            at, v[place], vdot[place] = self.motion(name, t)
            u[place] = own.row.difference(q[own.joint.q], at)
        return u, v, vdot
