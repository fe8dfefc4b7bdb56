"""What a part of an assembly can be: a robot, a black box, or any object with these methods.

All quantities of a subsystem stand in its own frames. Its base frame is the frame that its first
joint is mounted on (a_i of SA24; the inertial frame of a robot that stands alone). Motions are
twists and their rates, where a rate contains minus the acceleration of gravity, as an ideal
accelerometer measures it: gravity then needs no orientation and passes through every connection.
Wrenches are those that a predecessor exerts on its successor, which SA24 calls actuation; a
force-torque sensor measures the opposite (footnote 15), see `BlackBox`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from remora.algebra.array_ops import Array
from remora.dynamics.recursive.articulated_body import ArticulatedBody
from remora.dynamics.recursive.outward_pass import BodyMotion


class SubsystemLoads(NamedTuple):
    """What a subsystem returns of its inverse dynamics.

    Attributes:
        base: wrench that its predecessor exerts on it, [f, τ] in its base frame, `(..., 6)`.
        tau: its generalized forces, `(..., nv)`.
    """

    base: Array
    tau: Array


class SubsystemAccelerations(NamedTuple):
    """What a subsystem returns of its forward dynamics.

    Attributes:
        vdot: rate of its v, `(..., nv)`.
        points: rates of the twists at its connection points, `(..., 6)` each.
    """

    vdot: Array
    points: Mapping[str, Array]


@runtime_checkable
class Subsystem(Protocol):
    """A part of an assembly that is a user's object [SA24, eqs. 1, 2].

    The methods are called with arrays of any leading batch shape. `base` holds twist and rate of
    the base frame; `loads` the wrench that each connection point exerts on its successors,
    `(..., 6)`, in the point's frame.

    Attributes:
        nq: number of coordinates.
        nv: number of speeds.
        points: names of its connection points.
    """

    nq: int
    nv: int
    points: Sequence[str]

    def point_motions(
        self, base: BodyMotion, q: Array, v: Array, vdot: Array
    ) -> Mapping[str, BodyMotion]:
        """Return twist and rate of every connection point, in the point's frame."""
        ...

    def inverse_dynamics(
        self, base: BodyMotion, q: Array, v: Array, vdot: Array, loads: Mapping[str, Array]
    ) -> SubsystemLoads:
        """Return the wrench at the base and the generalized forces."""
        ...


@runtime_checkable
class ForwardSubsystem(Protocol):
    """What a user's object implements in addition, for forward dynamics.

    `loads` holds at each connection point the articulated-body inertia I and bias wrench p of the
    successors: their wrench is I a + p for an acceleration a of the point.
    """

    def point_twists(self, base: Array, q: Array, v: Array) -> Mapping[str, Array]:
        """Return the twist of every connection point from the twist of the base."""
        ...

    def articulated(
        self, base: Array, q: Array, v: Array, tau: Array, loads: Mapping[str, ArticulatedBody]
    ) -> ArticulatedBody:
        """Return articulated-body inertia and bias wrench at the base, in the base frame."""
        ...

    def accelerations(
        self, base: BodyMotion, q: Array, v: Array, tau: Array, loads: Mapping[str, ArticulatedBody]
    ) -> SubsystemAccelerations:
        """Return vdot and the rates of the connection points, with the base's acceleration."""
        ...
