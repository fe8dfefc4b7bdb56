"""Conservation checks: momentum, centre of mass, energy, unit quaternions.

Without external forces, momentum is conserved for any motion of the joints, and energy always
changes by the work done. The deviation measures the accuracy of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra import quaternion, vector
from remora.algebra.array_ops import Array
from remora.errors import RemoraError
from remora.model.joints import has_rotor, kind
from remora.model.robot import Robot

#: Columns and quantities that `conservation` reads, besides `wrenches`.
NEEDED = (
    "t", "q", "tau", "passive", "work", "momentum", "com", "kinetic_energy", "potential_energy",
    "poses", "twists",
)  # fmt: skip
#: Wrenches cancel if their sum is this small relative to the sum of their magnitudes.
BALANCED = 1e-12
#: A relative jump of momentum that is no rounding.
JUMP = 1e-9


@dataclass(frozen=True)
class Drift:
    """Maximum deviation of a quantity from its required value over all samples.

    Attributes:
        absolute: largest deviation, in `unit`.
        scale: reference magnitude, in `unit`; `compared` says which.
        unit: unit of both.
        compared: meaning of the scale.
        broken_by: why the quantity is not conserved in this run, such as `gravity`; empty if it
            must be.
    """

    absolute: float
    scale: float
    unit: str
    compared: str
    broken_by: str = ""

    @property
    def relative(self) -> float:
        """Deviation relative to the scale; 0 for no deviation."""
        if self.absolute == 0.0:
            return 0.0
        return self.absolute / self.scale if self.scale != 0.0 else float("inf")


@dataclass(frozen=True)
class Conservation:
    """How well a run satisfies the conservation laws; print it for a table.

    Attributes:
        linear_momentum: max ‖P(t) - P(0)‖.
        angular_momentum: max ‖L(t) - L(0)‖, about the inertial origin.
        center_of_mass: max ‖c(t) - c(0) - (t - t₀) P(0)/m‖.
        energy: max abs(E(t) - E(0) - work done), with gravitational potential energy in E.
        quaternion: max abs(‖r‖² - 1) over all joints with a quaternion.
        dual_quaternion: max abs(r·d) over all free joints, m.
        title: title of the table.
        constraint: largest violation of a constraint that acts, m or rad; None: there are none.
    """

    linear_momentum: Drift
    angular_momentum: Drift
    center_of_mass: Drift
    energy: Drift
    quaternion: float
    dual_quaternion: float
    title: str = ""
    constraint: float | None = None

    @property
    def drifts(self) -> dict[str, Drift]:
        """The drifts by name, also of what is not conserved in this run."""
        return {
            "linear momentum": self.linear_momentum,
            "angular momentum": self.angular_momentum,
            "centre of mass": self.center_of_mass,
            "energy balance": self.energy,
        }

    def __str__(self) -> str:
        """Return a table."""
        lines = [self.title, f"{'':20}{'drift':>16}{'relative':>12}  to"]
        for name, drift in self.drifts.items():
            if drift.broken_by:
                lines.append(f"{name:20}not conserved: {drift.broken_by}")
                continue
            moved = f"{drift.absolute:.2e} {drift.unit:6}"
            scale = f"{drift.scale:.4g} {drift.unit}, {drift.compared}"
            lines.append(f"{name:20}{moved:>16}{drift.relative:12.2e}  {scale}")
        lines.append(f"{'| |r|² - 1 |':20}{self.quaternion:9.2e}")
        lines.append(f"{'| r·d |':20}{self.dual_quaternion:9.2e} m")
        if self.constraint is not None:
            lines.append(f"{'constraints':20}{self.constraint:9.2e} m or rad")
        return "\n".join(lines)


def conservation(
    robot: Robot, run: Mapping[str, Array], inertial: Sequence[str] = ()
) -> Conservation:
    """Return how well a run conserves momentum, centre of mass, energy and unit quaternions.

    Args:
        robot: the robot.
        run: the columns and quantities of NEEDED by name, `(n, ...)`; `wrenches` if there are
            external ones; `constraint_violations` if the robot has constraints.
        inertial: names of constraints to the inertial frame that act.

    Raises:
        RemoraError: if there is no sample.
    """
    t, momentum = run["t"], run["momentum"]
    if len(t) == 0:
        raise RemoraError("nothing was recorded: there is nothing to be conserved")
    sizes = _body_momenta(robot, run["poses"], run["twists"])
    linear, angular = (float(np.max(size)) for size in sizes)
    broken_by = outside_forces(robot, run, linear, angular, inertial)
    violations = run.get("constraint_violations")
    potential = run["potential_energy"]
    energy = run["kinetic_energy"] + potential
    work = np.sum(run["work"], axis=-1)
    line = run["com"][0] + (t - t[0])[:, None] * (momentum[0, :3] / float(robot.mass))
    span = float(np.max(run["kinetic_energy"]) + np.max(potential) - np.min(potential))
    unit, orthogonal = unit_violation(robot, run["q"])
    peak = "peak sum over the bodies"
    return Conservation(
        Drift(_farthest(momentum[:, :3] - momentum[0, :3]), linear, "N s", peak, broken_by),
        Drift(_farthest(momentum[:, 3:] - momentum[0, 3:]), angular, "N m s", peak, broken_by),
        Drift(_farthest(run["com"] - line), _size(robot, run), "m", "size", broken_by),
        Drift(
            float(np.max(np.abs((energy - energy[0]) - (work - work[0])))),
            span,
            "J",
            "peak kinetic energy" + (" and range of potential" if np.any(robot.gravity) else ""),
        ),
        unit,
        orthogonal,
        f"conservation of {robot.name!r}: {len(t)} samples, {t[-1] - t[0]:.6g} s",
        None if violations is None else float(np.max(violations, initial=0.0)),
    )


def outside_forces(
    robot: Robot,
    run: Mapping[str, Array],
    linear: float,
    angular: float,
    inertial: Sequence[str] = (),
) -> str:
    """Return what changes the momentum of a run, such as `gravity`; empty if it is conserved.

    Args:
        robot: the robot.
        run: the columns `t`, `tau`, `passive`, `momentum`, `poses` and, if any, `wrenches`.
        linear: largest sum of the bodies' momenta, N s.
        angular: the same of angular momenta, N m s.
        inertial: names of constraints to the inertial frame that act.
    """
    bases = [(joint, body) for joint, body in zip(robot.joints, robot.bodies, strict=True)
             if joint.parent < 0]  # fmt: skip
    found: list[str] = []
    for base, body in bases:
        called = "the base" if len(bases) == 1 else f"the base {body.name!r}"
        if base.kind != "free":
            found.append(f"{called} is held by a {base.kind} joint")
        elif has_rotor(base):
            found.append(f"the rotor inertia of {called}")
        elif np.any(run["tau"][:, base.v]) or np.any(run["passive"][:, base.v]):
            found.append(f"forces on {called}")
    found += [f"constraint {name!r} to the inertial frame" for name in inertial]
    if np.any(robot.gravity):
        found.append("gravity")
    if "wrenches" in run and not _balanced(run["wrenches"], run["poses"]):
        found.append("external wrenches")
    if _resets_momentum(run, np.repeat([linear, angular], 3)):
        found.append("resets")
    return ", ".join(found)


def _balanced(wrenches: Array, poses: Array) -> bool:
    """Return whether wrenches between bodies cancel at every sample, up to rounding.

    Args:
        wrenches: [f, τ] on each body in its own frame about its origin, `(n, nb, 6)`.
        poses: of the bodies in the inertial frame, `(n, nb, 8)`.
    """
    r = poses[..., :4]
    p = 2.0 * quaternion.vec(quaternion.mul(poses[..., 4:], quaternion.conjugate(r)))
    force, torque = (quaternion.rotate(r, x) for x in (wrenches[..., :3], wrenches[..., 3:]))
    lever = vector.cross(p, force)
    forces, torques = np.sum(force, axis=1), np.sum(torque + lever, axis=1)
    size = np.sum(np.abs(force), axis=(1, 2))
    far, pull = (np.sqrt(np.sum(x * x, axis=-1)) for x in (p, force))
    # a force that points at the origin has a lever of rounding errors only: p f is its size
    turning = np.sum(np.abs(torque), axis=(1, 2)) + np.sum(far * pull, axis=1)
    return bool(
        np.all(np.abs(forces) <= BALANCED * size[:, None])
        and np.all(np.abs(torques) <= BALANCED * turning[:, None])
    )


def _resets_momentum(run: Mapping[str, Array], scale: Array) -> bool:
    """Return whether momentum `(6,)` jumps between two samples at the same time."""
    jumps = np.abs(np.diff(run["momentum"], axis=0)[np.diff(run["t"]) == 0.0])
    return bool(np.any(jumps > JUMP * scale))


def unit_violation(robot: Robot, q: Array) -> tuple[float, float]:
    """Return max abs(|r|² - 1) and max abs(r·d) over all samples and joints.

    Args:
        robot: the robot.
        q: configurations, `(n, nq)`.
    """
    unit = orthogonal = 0.0
    for joint in robot.joints:
        row, own = kind(joint), q[:, joint.q]
        if row.quaternion is None:
            continue
        r = own[:, row.quaternion]
        unit = max(unit, float(np.max(np.abs(np.sum(r * r, axis=-1) - 1.0))))
        if row.dual is not None:
            product = np.sum(r * own[:, row.dual], axis=-1)
            orthogonal = max(orthogonal, float(np.max(np.abs(product))))
    return unit, orthogonal


def _farthest(x: Array) -> float:
    """Return the largest norm of vectors `(n, 3)`."""
    return float(np.sqrt(np.max(np.sum(x * x, axis=-1))))


def _body_momenta(robot: Robot, poses: Array, twists: Array) -> tuple[Array, Array]:
    """Return Σ |P_i| and Σ |L_i| about the inertial origin, each `(n,)`.

    In body axes, since norms are invariant: P = m (v + ω × c), L = I ω + (p + c) × P, with the
    body's position p = 2 r* d.
    """
    linear = angular = np.zeros(len(poses))
    for i, body in enumerate(robot.bodies):
        x, xi = poses[:, i], twists[:, i]
        omega, c = xi[:, :3], body.com
        P = body.mass * (xi[:, 3:] + vector.cross(omega, c))
        p = 2.0 * quaternion.vec(quaternion.mul(quaternion.conjugate(x[:, :4]), x[:, 4:]))
        L = omega @ body.inertia.T + vector.cross(p + c, P)
        linear = linear + np.sqrt(np.sum(P * P, axis=-1))
        angular = angular + np.sqrt(np.sum(L * L, axis=-1))
    return linear, angular


def _size(robot: Robot, run: Mapping[str, Array]) -> float:
    """Return the largest initial distance of a body's centre of mass from that of the system, m.

    For a single body, its radius of gyration.
    """
    places = [
        2.0 * quaternion.vec(quaternion.mul(x[4:], quaternion.conjugate(x[:4])))
        + quaternion.rotate(x[:4], body.com)
        for x, body in zip(run["poses"][0], robot.bodies, strict=True)
    ]
    size = _farthest(np.array(places) - run["com"][0])
    if len(robot.bodies) > 1 and size > 0.0:
        return size
    body = robot.bodies[0]
    return float(np.sqrt(np.trace(body.inertia) / (2.0 * float(body.mass))))
