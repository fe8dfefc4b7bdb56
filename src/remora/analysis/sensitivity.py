"""Sensitivity of an end-effector's miss to errors in mass properties and lengths.

The joints follow a planned path exactly; the vehicle is held, or floats at zero momentum. Where the
frame ends depends on the robot's numbers p. With h(q, v; p) the momentum, the vehicle's twist ξ and
its derivative are

    ξ = -H_0⁻¹ H_0m v_m,        ∂ξ/∂p = -H_0⁻¹ ∂h/∂p at the speeds (ξ, v_m),

and ∂h/∂p is found by automatic differentiation with symbolic numbers of the robot. Between two
points of the path the vehicle moves by a screw u of fourth order (Magnus, with ξ at two Gauss
points), so that its variation η in its own axes becomes Ad(exp(-½u)) η + dexp(∂u/∂p), without
differences.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, linear, pose, screw, tangent, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, casadi
from remora.analysis.arm import check_base, moving_joints
from remora.analysis.checkpoints import Checkpoint, Progress
from remora.analysis.robot_errors import RobotError, deviated, robot_errors
from remora.dynamics.floating import base_response
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.kinematics import frame_pose
from remora.dynamics.momentum import momentum
from remora.dynamics.refusals import without_constraints
from remora.errors import InvalidValue, ShapeError
from remora.model.robot import Frame, FrameLike, Robot
from remora.model.state import configuration, difference, integrate
from remora.model.takes_robot import takes_robot

#: Gauss points of a segment, and the factor of their cross product in Magnus' screw.
_GAUSS = (0.5 - math.sqrt(3.0) / 6.0, 0.5 + math.sqrt(3.0) / 6.0)
_MAGNUS = math.sqrt(3.0) / 12.0
#: Robots of a Monte Carlo that are evaluated at once.
_CHUNK = 50


@dataclass(frozen=True, eq=False)
class MissSensitivity:
    """How far a frame misses its planned position at the end of a path, to first order.

    Attributes:
        labels: names of the p numbers with errors.
        deviations: their standard deviations, `(p,)`: parts of masses and inertias, or m.
        jacobian: ∂position/∂number, `(3, p)`, inertial axes, m per unit.
        nominal: position of the frame at the end without errors, `(3,)`, m.
        robot: the robot.
        path: configurations, `(n, nq)`.
        frame: the frame.
        base: "fixed" or "floating".
        errors: which numbers have errors.
    """

    labels: tuple[str, ...]
    deviations: Array
    jacobian: Array
    nominal: Array
    robot: Robot
    path: Array
    frame: Frame
    base: str
    errors: tuple[RobotError, ...]

    @property
    def covariance(self) -> Array:
        """Covariance of the miss of independent errors, `(3, 3)`, m²: J Σ Jᵀ."""
        scaled = self.jacobian * self.deviations
        return scaled @ scaled.T

    @property
    def rms(self) -> float:
        """Root mean square of the miss distance, m."""
        return float(np.sqrt(np.trace(self.covariance)))

    @property
    def contributions(self) -> Array:
        """Miss distance of one standard deviation of each number, `(p,)`, m."""
        return np.linalg.norm(self.jacobian, axis=0) * self.deviations

    def miss(self, x: ArrayLike) -> Array:
        """Return the miss of given errors to first order, `(..., p) -> (..., 3)`, m."""
        return asarray(x) @ self.jacobian.T

    def exact_miss(self, x: ArrayLike) -> Array:
        """Return the miss of given errors, `(..., p) -> (..., 3)`, m, by the robots that have them.

        Raises:
            ShapeError: if x does not have p numbers.
        """
        x = asarray(x)
        if x.ndim == 0 or x.shape[-1] != len(self.labels):
            raise ShapeError(f"x must have shape (..., {len(self.labels)}), not {x.shape}")
        rows = x.reshape(-1, x.shape[-1])
        found = [
            _end(*deviated(self.robot, self.frame, self.errors, rows[k : k + _CHUNK, None]),
                 self.path, self.base)
            for k in range(0, len(rows), _CHUNK)
        ]  # fmt: skip
        return np.concatenate(found).reshape(*x.shape[:-1], 3) - self.nominal

    def monte_carlo(
        self,
        samples: int = 1000,
        seed: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> tuple[Array, Array]:
        """Return errors drawn from normal distributions, `(n, p)`, and their misses, `(n, 3)`, m.

        Args:
            samples: number of robots.
            seed: of the generator.
            checkpoint: file (.npz) that keeps what was computed, so that an interrupted
                computation continues there; it is deleted at the end.
            progress: called with the number of robots done and of all.
        """
        if samples < 1:
            raise InvalidValue(f"samples={samples!r} must be at least 1")
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(samples, len(self.labels))) * self.deviations
        misses = np.zeros((samples, 3))
        settings = self.robot, self.path, self.frame, self.base, self.errors, samples, seed
        saved = Checkpoint(checkpoint, settings)
        done = saved.restore({"misses": misses})
        try:
            while done < samples:
                part = slice(done, min(done + _CHUNK, samples))
                misses[part] = self.exact_miss(x[part])
                done = part.stop
                saved.keep(done, {"misses": misses})
                if progress is not None:
                    progress(done, samples)
        except KeyboardInterrupt:
            saved.keep(done, {"misses": misses}, now=True)
            raise
        saved.done()
        return x, misses

    def plot(self, **options: Any) -> Any:
        """Return a figure, see `remora.viewer.figures.analysis_figures`."""
        module: Any = importlib.import_module("remora.viewer.figures.analysis_figures")
        return module.sensitivity_figure(self, **options)


@takes_robot
@without_constraints
def miss_sensitivity(
    robot: Robot,
    q: ArrayLike,
    frame: FrameLike,
    errors: Mapping[str, float],
    base: str = "floating",
) -> MissSensitivity:
    """Return how errors of a robot's numbers move the end of a path that its joints follow.

    Args:
        robot: the robot.
        q: path of configurations, `(n, nq)`; between them the joints move evenly. Of a floating
            base only the first pose is used.
        frame: the name of a body or frame, the index of a body, or a Frame.
        errors: standard deviations by name: `mass` and `inertia` (parts of the nominal values),
            `com` and `length` (m) of all, or `arm.mass`, `elbow.length` of one. Lengths are the
            positions of joints, and of the frame, on the bodies that carry them.
        base: "floating": the vehicle recoils at zero momentum; "fixed": it is held.

    Raises:
        InvalidValue: if no joint of the arm moves the frame, or there are no errors.
        UnknownName: for an unknown error, part, base or frame.
    """
    path = configuration(robot, q)
    if path.ndim != 2 or len(path) < 2:
        raise ShapeError(f"q must be a path of at least two configurations, not {path.shape}")
    if base == "flying":
        raise InvalidValue("a flying base is moved by its own controller: fixed or floating")
    check_base(robot, base)
    moving_joints(robot, frame)
    frame = robot.frame(frame)
    rows = robot_errors(robot, errors, frame)
    labels = tuple(label for row in rows for label in row.labels)
    sizes = np.array([row.deviation for row in rows for _ in row.labels])
    J, nominal = _derivative(robot, frame, rows, path, base, len(labels))
    return MissSensitivity(labels, sizes, J, nominal, robot, path, frame, base, rows)


def _segments(robot: Robot, path: Array) -> tuple[Array, list[Array]]:
    """Return the joints' speeds over each segment in unit time, and q at its two Gauss points.

    The base is where its body frame is the inertial frame.
    """
    home = np.array(path)
    home[:, :8] = dual_quaternion.conjugate(robot.joints[0].placement)
    moved = difference(robot, home[:-1], home[1:])
    return moved[..., 6:], [integrate(robot, home[:-1], c * moved) for c in _GAUSS]


def _screw(xi: list[Array]) -> Array:
    """Return Magnus' screw of a segment from the twists at its Gauss points, `(..., 6)`."""
    return 0.5 * (xi[0] + xi[1]) + _MAGNUS * screw.cross(xi[0], xi[1])


def _end(robot: Robot, frame: Frame, path: Array, base: str) -> Array:
    """Return where the frame is at the end of the path, `(..., 3)`; of a batch of robots (N, 1)."""
    last = path[-1:]
    if base == "fixed":
        return pose.translation(frame_pose(robot, last, frame))[..., 0, :]
    home = np.array(last)
    home[:, :8] = dual_quaternion.conjugate(robot.joints[0].placement)
    inside = frame_pose(robot, home, frame)[..., 0, :]
    speeds, at = _segments(robot, path)
    u = _screw([vector.apply(base_response(robot, q), speeds) for q in at])
    x = dual_quaternion.mul(robot.joints[0].placement, path[0, :8])
    for k in range(u.shape[-2]):
        x = dual_quaternion.mul(x, _exp(u[..., k, :]))
    return pose.translation(dual_quaternion.mul(x, inside))


def _exp(u: Array) -> Array:
    return dual_quaternion.exp(0.5 * u)


def _derivative(
    robot: Robot, frame: Frame, rows: tuple[RobotError, ...], path: Array, base: str, count: int
) -> tuple[Array, Array]:
    """Return ∂position/∂x `(3, p)` and the position `(3,)` at the end of the path."""
    symbols = _symbols("x", count)
    other, moved = deviated(robot, frame, rows, symbols)
    if base == "fixed":
        there = pose.translation(frame_pose(other, path[-1], moved))
        return _jacobian([], there, symbols)(), _end(robot, frame, path, base)
    home = np.array(path[-1])
    home[:8] = dual_quaternion.conjugate(robot.joints[0].placement)
    inside = pose.translation(frame_pose(robot, home, frame))
    inner = _jacobian([], pose.translation(frame_pose(other, home, moved)), symbols)()
    x, eta = _base_derivative(robot, other, path, symbols)
    R = pose.to_rotation_matrix(x)
    turned = -vector.skew(inside) @ eta[:3] + eta[3:] + inner
    return R @ turned, pose.transform_point(x, inside)


def _base_derivative(
    robot: Robot, other: Robot, path: Array, symbols: Array
) -> tuple[Array, Array]:
    """Return the final pose of the floating base, and its variation `(6, p)`, own axes."""
    speeds, at = _segments(robot, path)
    xi = [vector.apply(base_response(robot, q), speeds) for q in at]
    q, v = _symbols("q", robot.nq), _symbols("v", robot.nv)
    of_momentum = _jacobian([q, v], momentum(other, q, v), symbols)
    change: list[Array] = []
    for here, twist in zip(at, xi, strict=True):
        full = np.concatenate([twist, speeds], axis=-1)
        dh = np.stack([of_momentum(a, b) for a, b in zip(here, full, strict=True)])
        dh = np.concatenate([dh[:, 3:], dh[:, :3]], axis=1)  # [L, P], like the base's rows of H
        H0 = mass_matrix(robot, here)[..., :6, :6]
        change.append(-linear.solve(H0, dh))
    u = _screw(xi)
    du = 0.5 * (change[0] + change[1]) + _MAGNUS * (
        _cross(change[0], xi[1]) - _cross(change[1], xi[0])
    )
    x = dual_quaternion.mul(robot.joints[0].placement, path[0, :8])
    eta = np.zeros((6, len(symbols)))
    for k in range(len(u)):
        step = _exp(u[k])
        x = dual_quaternion.mul(x, step)
        own = tangent.twist(u[k], du[k].T).T
        eta = screw.columns_to_inner(screw.transform(step), eta) + own
    return x, eta


def _cross(columns: Array, twist: Array) -> Array:
    """Return the columns `(n, 6, p)` crossed with a twist `(n, 6)`."""
    turned = screw.cross(np.swapaxes(columns, -1, -2), twist[:, None])
    return np.swapaxes(turned, -1, -2)


def _symbols(name: str, count: int) -> Array:
    return np.array([casadi.SX.sym(f"{name}{k}") for k in range(count)], dtype=object)


def _jacobian(inputs: list[Array], result: Array, by: Array) -> Callable[..., Array]:
    """Return the function of the inputs that is ∂result/∂by at by = 0, `(r, p)`."""
    stacked = [casadi.vertcat(*part) for part in (*inputs, by)]
    J = casadi.jacobian(casadi.vertcat(*result), stacked[-1])
    function = casadi.Function("derivative", stacked, [J])
    zero = np.zeros(len(by))

    def at(*values: Array) -> Array:
        return np.array(function(*values, zero))

    return at
