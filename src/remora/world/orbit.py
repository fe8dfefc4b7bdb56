"""An orbit: a frame that moves along it, and the gravity that bodies feel in this frame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray, sqrt
from remora.algebra.exact_difference import Pair, same
from remora.algebra.vector import cross, dot
from remora.components.actions import Action, Wrench
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal, State
from remora.dynamics.kinematics import poses
from remora.dynamics.momentum import center_of_mass, kinetic_energy, momentum
from remora.errors import InvalidValue, RemoraError
from remora.model.robot import Robot
from remora.world.gravity import (
    EARTH_MU,
    EARTH_RADIUS,
    EARTH_ZONALS,
    gravity,
    gravity_gradient,
    gravity_gradient_energy,
    potential,
)
from remora.world.kepler import (
    OrbitalElements,
    element_names,
    lvlh_rate,
    lvlh_rotation,
    orbit_state,
    orbital_elements,
)

#: What the gravity gradient adds to the force at the centre of mass.
GRADIENTS = ("none", "torque", "full")
#: Altitudes below this part of the planet's radius are in kilometres, or within its atmosphere.
LOWEST = 0.01
#: Distances below this part of the planet's radius are in kilometres.
NEAREST = 0.1
#: Speeds below this part of that of a circular orbit are in km/s.
SLOWEST = 0.01


class Orbit(Component):
    """Gravity of a planet in a frame whose origin moves along an orbit.

    The world frame of the robot does not rotate; its z axis is the planet's pole. Its origin O is
    in free fall, R̈ = g(R), so that a body with its centre of mass at c feels the difference

        f = m (g(R + c) - g(R)),

    computed without cancellation: millimetres of an arm and thousands of kilometres of orbit do not
    meet in one number. The gravity gradient adds its torque and, if it is `full`, its force of
    second order, by which energy and angular momentum are conserved. All trees of a robot feel it.

    The orbit is given by its elements, by `altitude` in place of the semi-major axis, or by
    `position` and `velocity` at the start of the run. It is a state of the system: elements can
    differ by run.

    Outputs: `position`, m, and `velocity`, m/s, of O from the planet's centre in inertial axes,
    `(3,)`; `lvlh`, `(4,)`, the attitude of the local-vertical, local-horizontal axes (x ahead, y
    opposite to the orbit's normal, z down), and `lvlh_rate`, `(3,)`, rad/s, in these axes. For each
    frame F in `felt_at` `gravity_F`, `(3,)`, m/s², g(R + p) - g(R) at its origin p in inertial
    axes ("/" and the like in F become "_").
    """

    alone = True  # two would add up to twice the gravity
    semi_major_axis: float = parameter("a", default=None, unit="m", above=0.0)
    eccentricity: float = parameter("e, below 1", default=0.0, minimum=0.0)
    inclination: float = parameter("i", default=0.0, unit="rad", minimum=0.0, maximum=np.pi)
    node: float = parameter("right ascension of the ascending node Ω", default=0.0, unit="rad")
    periapsis: float = parameter("argument of periapsis ω", default=0.0, unit="rad")
    anomaly: float = parameter("true anomaly ν at the start", default=0.0, unit="rad")
    altitude: Any = parameter(
        "of periapsis above the planet's radius, in place of the semi-major axis", default=None,
        unit="m", fixed=True,
    )  # fmt: skip
    position: Any = parameter(
        "at the start, in place of elements", "vector", default=None, size=3, unit="m"
    )
    velocity: Any = parameter("at the start", "vector", default=None, size=3, unit="m/s")
    mu: float = parameter("μ of the planet", default=EARTH_MU, unit="m³/s²", above=0.0)
    radius: float = parameter("of the planet", default=EARTH_RADIUS, unit="m", above=0.0)
    zonals: Array = parameter("J₂ to J₆ of the planet", "vector", default=EARTH_ZONALS, size=5)
    degree: int = parameter(
        "of the gravity field, up to 6; 0: a point mass", "whole", default=2, minimum=0
    )
    gradient: str = parameter(
        "what the gravity gradient adds", "choice", default="full", choices=GRADIENTS
    )
    felt_at: Sequence[str] = parameter(
        "frames where gravity is an output, for accelerometers", "frames", default=()
    )

    def __post_init__(self) -> None:
        """Check; convert altitude, or position and velocity, to elements."""
        super().__post_init__()
        if self.degree > 6:
            raise InvalidValue(f"degree of an orbit must be from 0 to 6, not {self.degree}")
        given = {
            "semi_major_axis": self.semi_major_axis, "altitude": self.altitude,
            "position": self.position,
        }  # fmt: skip
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1 or (self.position is None) != (self.velocity is None):
            raise InvalidValue(
                "an orbit needs one of semi_major_axis, altitude, or position with velocity, not "
                + (" and ".join(named) or "none")
            )
        if self.position is not None:
            self._from_state()
        elif self.altitude is not None:
            _not_kilometres("altitude", self.altitude, LOWEST * self.radius)
            far = (self.radius + self.altitude) / max(1.0 - self.eccentricity, LOWEST)
            self._set("semi_major_axis", far)
        for name in ("altitude", "position", "velocity"):  # said by the elements now
            self._set(name, None)
        if self.sample_time is not None:
            raise InvalidValue("an orbit has no sample_time: gravity is continuous")
        self._check()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _from_state(self) -> None:
        """Set the elements from position and velocity."""
        used = [name for name in element_names()[1:] if getattr(self, name) != 0.0]
        if used:
            raise InvalidValue(f"an orbit by position and velocity has no {', '.join(used)}")
        distance = float(np.linalg.norm(self.position))
        _not_kilometres("the distance", distance, NEAREST * self.radius)
        if not np.linalg.norm(np.cross(self.position, self.velocity)):
            raise InvalidValue("position and velocity of an orbit must not be parallel, or zero")
        slow = SLOWEST * float(np.sqrt(self.mu / distance))
        _not_kilometres("the speed", float(np.linalg.norm(self.velocity)), slow, "m/s")
        elements = orbital_elements(self.position, self.velocity, self.mu)
        for name in element_names():
            self._set(name, float(getattr(elements, name)))

    def _check(self) -> None:
        """Raise if the orbit is not closed or meets the planet."""
        if not 0.0 <= self.eccentricity < 1.0 or self.semi_major_axis < 0.0:
            raise InvalidValue(
                "an orbit must be closed, with an eccentricity of 0 or more and below 1, not "
                f"{self.eccentricity:g}"
            )
        _not_kilometres("semi_major_axis", self.semi_major_axis, NEAREST * self.radius)
        lowest = self.semi_major_axis * (1.0 - self.eccentricity)
        if lowest <= self.radius:
            raise InvalidValue(
                f"the orbit meets the planet: its periapsis is {lowest:.9g} m from the centre, the "
                f"planet's radius {self.radius:.9g} m"
            )

    @property
    def elements(self) -> OrbitalElements:
        """The elements at the start."""
        return OrbitalElements(*(np.asarray(getattr(self, name)) for name in element_names()))

    @property
    def period(self) -> float:
        """Keplerian period 2π √(a³/μ), s."""
        return float(2.0 * np.pi * np.sqrt(self.semi_major_axis**3 / self.mu))

    @property
    def start(self) -> tuple[Array, Array]:
        """Position and velocity of the origin at the start, `(3,)`, m and m/s."""
        a, e, i, node, periapsis, nu = (getattr(self, name) for name in element_names())
        return orbit_state(a, e, i, node, periapsis, nu, self.mu)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the robot has gravity of its own."""
        for frame in self.felt_at:
            robot.frame(frame)
        if len(self._felt) < len(self.felt_at):
            raise InvalidValue("frames of felt_at must have outputs of different names")
        if np.any(robot.gravity):
            raise RemoraError(
                "an orbit is the gravity of the robot: load or build it with gravity (0, 0, 0)"
            )
        self._check()
        R, V = self.start
        a, n = self.semi_major_axis, self._mean_motion()
        felt = {key: Signal(3, "m/s²") for key in self._felt}
        return Interface(
            outputs={
                "position": Signal(3, "m"), "velocity": Signal(3, "m/s"), "lvlh": Signal(4),
                "lvlh_rate": Signal(3, "rad/s"), **felt,
            },
            # in units of the orbit, so that error tolerances mean the same near any zero
            continuous={"place": State(R / a), "motion": State(V / (a * n))},
        )  # fmt: skip

    def derivative(self, at: Context) -> Mapping[str, Array]:
        """Return the rates of the reference orbit in units of a and the mean motion."""
        n = self._mean_motion()
        g = self._gravity(same(self._position(at))).start
        return {
            "place": at.state["motion"] * n,
            "motion": g / asarray(self.semi_major_axis * n),
        }

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return position, velocity and LVLH axes of the origin."""
        R, V = self._position(at), self._velocity(at)
        rate = lvlh_rate(R, V, self._gravity(same(R)).start)
        felt = {
            key: self._gravity(Pair(R, at.position(frame))).change
            for key, frame in self._felt.items()
        }
        axes = {"lvlh": lvlh_rotation(R, V), "lvlh_rate": rate}
        return {"position": R, "velocity": V, **axes, **felt}

    def act(self, at: Context) -> list[Action]:
        """Return the gravity on each body, relative to the origin's."""
        R, found = self._position(at), list[Action]()
        for body in at.robot.bodies:
            x = at.pose(body.name)
            r = pose.rotation(x)
            c = pose.translation(x) + quaternion.rotate(r, body.com)
            g = self._gravity(Pair(R, c)).change
            force = quaternion.rotate(quaternion.conjugate(r), body.mass * g)
            torque = cross(body.com, force)
            if self.gradient != "none":
                below = quaternion.rotate(quaternion.conjugate(r), R + c)
                turn, pull = gravity_gradient(below, body.inertia, self.mu, self.gradient == "full")
                force, torque = force + pull, torque + turn + cross(body.com, pull)
            found.append(Wrench(body.name, force, torque))
        return found

    def energy(self, robot: Robot, q: ArrayLike, v: ArrayLike, R: ArrayLike, V: ArrayLike) -> Array:
        """Return the energy of a robot relative to its mass on the reference orbit, `(...)`, J.

        E = T + V·P - Σ m (U(R + c) - U(R)) + V_gg: the whole energy, less that of the mass of all
        bodies at the origin, which is constant. It is conserved without other forces if `gradient`
        is `full`.

        Args:
            robot: the robot.
            q: configuration, `(..., nq)`.
            v: velocity, `(..., nv)`.
            R: `position` of the origin, `(..., 3)`.
            V: `velocity` of the origin, `(..., 3)`.
        """
        R, V = asarray(R), asarray(V)
        found = kinetic_energy(robot, q, v) + dot(V, momentum(robot, q, v)[..., :3])[..., 0]
        for body, x in zip(robot.bodies, np.moveaxis(poses(robot, q), -2, 0), strict=True):
            r = pose.rotation(x)
            c = pose.translation(x) + quaternion.rotate(r, body.com)
            U = potential(Pair(R, c), self.mu, self.radius, self._zonals()).change[..., 0]
            found = found - body.mass * U
            if self.gradient == "full":
                below = quaternion.rotate(quaternion.conjugate(r), R + c)
                found = found + gravity_gradient_energy(below, body.inertia, self.mu)
        return found

    def angular_momentum(
        self, robot: Robot, q: ArrayLike, v: ArrayLike, R: ArrayLike, V: ArrayLike
    ) -> Array:
        """Return the angular momentum about the planet, less that of the orbit, `(..., 3)`.

        R × P + m c × V + L, N m s in inertial axes, with momentum P, L and centre of mass c of the
        robot: the whole, less m R × V. It is conserved about a point mass if `gradient` is `full`,
        and its z component with zonal harmonics. See `energy`.
        """
        R, V, both = asarray(R), asarray(V), momentum(robot, q, v)
        lever = robot.mass * center_of_mass(robot, q)
        return cross(R, both[..., :3]) + cross(lever, V) + both[..., 3:]

    @property
    def _felt(self) -> dict[str, str]:
        """The frames of `felt_at` by the names of their outputs."""
        return {f"gravity_{re.sub(r'[^A-Za-z0-9_]', '_', name)}": name for name in self.felt_at}

    def _gravity(self, r: Pair) -> Pair:
        return gravity(r, self.mu, self.radius, self._zonals())

    def _zonals(self) -> Array:
        return self.zonals[..., : max(self.degree - 1, 0)]

    def _mean_motion(self) -> Any:
        return sqrt(asarray(self.mu / self.semi_major_axis**3))

    def _position(self, at: Context) -> Array:
        return at.state["place"] * asarray(self.semi_major_axis)

    def _velocity(self, at: Context) -> Array:
        return at.state["motion"] * asarray(self.semi_major_axis * self._mean_motion())


def _not_kilometres(what: str, value: float, least: float, unit: str = "m") -> None:
    """Raise if a number is so small that it must be in kilometres."""
    if 0.0 < value < least and 1e3 * value >= least:
        raise InvalidValue(
            f"{what} of an orbit is {value:g} {unit}: is it in k{unit}? Remora takes {unit}"
        )
