"""Identification of a payload's ten inertia parameters from a recorded manoeuvre.

The momentum of robot and payload together is conserved and linear in the payload's parameters π:
h(robot) + B π = h₀, with B of the payload's twist. Where torques were recorded too, the equations
of motion τ = ID(robot) + Y π give more rows [rm.dynamics.inertia_regressor]. Weighted least
squares, with weights from the residuals; confidence from the scatter of the samples' residuals
(sandwich estimate), which does not need to know the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, stack
from remora.analysis.pseudo_inertia import (
    is_consistent,
    move_matrix,
    nearest_consistent,
)
from remora.dynamics.derivatives.regressor import inertia_regressor
from remora.dynamics.formulations import inverse_dynamics
from remora.dynamics.kinematics import frame_pose, frame_twist
from remora.dynamics.momentum import momentum as robot_momentum
from remora.dynamics.refusals import needs_dynamics
from remora.errors import InvalidValue, ShapeError
from remora.model.numbers import finite
from remora.model.robot import FrameLike, Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot

_linalg: Any = np.linalg
NAMES = ("m", "m cx", "m cy", "m cz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
#: A direction of π with a singular value below this fraction of the largest is not determined.
DETERMINED = 1e-8
#: Relative residual below which data are free of noise and are not weighted.
EXACT = 1e-10


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """The identified inertia parameters of a payload, about the origin of a frame, in its axes.

    Attributes:
        parameters: π = [m, m c, Ixx, Ixy, Ixz, Iyy, Iyz, Izz], `(10,)`; kg, kg m, kg m².
        covariance: `(10, 10)`, of the estimate without the constraint.
        confidence: probability that belongs to `intervals`.
        consistent: whether a body can have the parameters that fit best. If not, `parameters` are
            the best ones that a body can have, and intervals hold for the fit without it.
        unconstrained: the parameters that fit best, `(10,)`.
        residual: root mean square of the rows' residuals over that of the data.
        samples: number of samples.
    """

    parameters: Array
    covariance: Array
    confidence: float
    consistent: bool
    unconstrained: Array
    residual: float
    samples: int

    @property
    def intervals(self) -> Array:
        """Confidence interval of each parameter, `(10, 2)`."""
        half = NormalDist().inv_cdf(0.5 + 0.5 * self.confidence) * np.sqrt(
            np.maximum(np.diag(self.covariance), 0.0)
        )
        return np.stack([self.unconstrained - half, self.unconstrained + half], axis=-1)

    @property
    def mass(self) -> float:
        """Mass, kg."""
        return float(self.parameters[0])

    @property
    def com(self) -> Array:
        """Centre of mass in the frame, `(3,)`, m."""
        return self.parameters[1:4] / self.parameters[0]

    @property
    def inertia(self) -> Array:
        """Inertia about the centre of mass in the frame's axes, `(3, 3)`, kg m²."""
        a, b, c, d, e, f = self.parameters[4:]
        about_origin = np.array([[a, b, c], [b, d, e], [c, e, f]])
        r = self.com
        return about_origin - self.mass * (r @ r * np.eye(3) - np.outer(r, r))

    def __repr__(self) -> str:
        """Return the parameters with their intervals."""
        half = 0.5 * np.diff(self.intervals, axis=-1)[:, 0]
        rows = [
            f"  {name:5} {value:11.6g} ± {width:.2g}"
            for name, value, width in zip(NAMES, self.parameters, half, strict=True)
        ]
        head = f"PayloadEstimate of {self.samples} samples, {self.confidence:.0%} intervals"
        return "\n".join([head, *rows])


@takes_robot
@needs_dynamics
def identify_payload(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    frame: FrameLike,
    momentum: ArrayLike | None = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    vdot: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    confidence: float = 0.95,
) -> PayloadEstimate:
    """Return the ten inertia parameters of a payload that a frame carries rigidly.

    Args:
        robot: the robot without the payload; on a free base for momentum.
        q: recorded configurations, `(n, nq)`.
        v: recorded velocities, `(n, nv)`.
        frame: frame that carries the payload; the parameters are about its origin, in its axes.
        momentum: total momentum of robot and payload [linear, angular about the inertial origin],
            `(6,)`, inertial axes; None: constant but unknown, and estimated too. The default is
            rest at the start. Gravity and external loads must not act.
        vdot: recorded accelerations, `(n, nv)`, with `tau`.
        tau: recorded generalized forces, `(n, nv)`; zero for a base that is not actuated.
        confidence: probability of the intervals.

    Raises:
        InvalidValue: if the manoeuvre does not determine all ten parameters; the message names
            those that it leaves open.
        ShapeError: for arrays that do not fit together.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    if q.ndim != 2 or v.shape[:-1] != q.shape[:-1] or len(q) < 2:
        raise ShapeError(f"q and v must be (n, nq) and (n, nv), n > 1, not {q.shape}, {v.shape}")
    if not 0.0 < confidence < 1.0:
        raise InvalidValue(f"confidence={confidence!r} must be between 0 and 1")
    if (tau is None) != (vdot is None):
        raise InvalidValue("pass both tau and vdot, or neither")
    if robot.joints[0].kind != "free" and tau is None:
        raise InvalidValue(
            f"the base of robot {robot.name!r} is not free, so momentum is not conserved: give tau "
            "and vdot"
        )
    rows, data = _rows(robot, q, v, frame, momentum, vdot, tau)
    extra = 6 if momentum is None and robot.joints[0].kind == "free" else 0
    found, covariance, residual = _weighted(rows, data, extra)
    estimate = found[:10]
    sure = is_consistent(estimate, 1e-9)
    spread = covariance[:10, :10]
    constrained = estimate
    if not sure:
        normal = _linalg.pinv(spread, hermitian=True)
        constrained = nearest_consistent(estimate, normal / max(np.trace(normal), 1e-300))
    return PayloadEstimate(constrained, spread, confidence, sure, estimate, residual, len(q))


def momentum_regressor(robot: Robot, q: ArrayLike, v: ArrayLike, frame: FrameLike) -> Array:
    """Return B `(..., 6, 10)`: momentum of a payload per unit of its parameters.

    [linear, angular about the inertial origin], inertial axes. In the frame's own:
    p = m v + ω × m c and L = m c × v + I ω.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        frame: frame that carries the payload.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    twist = frame_twist(robot, q, v, frame)
    omega, speed = twist[..., :3], twist[..., 3:]
    zero = 0.0 * omega[..., :, None]
    linear = concatenate([speed[..., :, None], vector.skew(omega), *[zero] * 6])
    a, b, c = omega[..., 0], omega[..., 1], omega[..., 2]
    o = 0.0 * a
    moments = stack(
        [stack(row) for row in ([a, b, c, o, o, o], [o, a, o, b, c, o], [o, o, a, o, b, c])],
        axis=-2,
    )
    angular = concatenate([zero, -vector.skew(speed), moments])
    own = concatenate([linear, angular], trailing=2)
    return screw.columns_to_outer(screw.transform(frame_pose(robot, q, frame)), own)


def _rows(
    robot: Robot, q: Array, v: Array, frame: FrameLike, momentum: ArrayLike | None,
    vdot: ArrayLike | None, tau: ArrayLike | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return regressor `(n, r, 10 or 16)` and data `(n, r)`, blocks scaled by their size."""
    parts: list[Array] = []
    data: list[Array] = []
    n = len(q)
    unknown = robot.joints[0].kind == "free" and momentum is None
    if robot.joints[0].kind == "free":
        B = momentum_regressor(robot, q, v, frame)
        own = robot_momentum(robot, q, v)
        given = np.zeros(6) if momentum is None else finite("momentum", momentum, 6)
        if unknown:
            B = np.concatenate([B, np.broadcast_to(-np.eye(6), (n, 6, 6))], axis=-1)
        for block in (slice(0, 3), slice(3, 6)):
            size = _size(own[:, block])
            parts.append(B[:, block] / size)
            data.append((given - own)[:, block] / size)
    if tau is not None and vdot is not None:
        forces, rates = velocity(robot, tau, "tau"), velocity(robot, vdot, "vdot")
        if forces.shape != v.shape or rates.shape != v.shape:
            raise ShapeError(f"tau and vdot must have shape {v.shape}, like v")
        frame = robot.frame(frame)
        whole = inertia_regressor(robot, q, v, rates)
        Y = whole[..., 10 * frame.body : 10 * frame.body + 10] @ move_matrix(frame.placement)
        left = forces - inverse_dynamics(robot, q, v, rates)
        size = _size(forces)
        if unknown:
            Y = np.concatenate([Y, np.zeros((*Y.shape[:-1], 6))], axis=-1)
        parts.append(Y / size)
        data.append(left / size)
    return np.concatenate(parts, axis=1), np.concatenate(data, axis=1)


def _size(x: Array) -> float:
    return float(np.sqrt(np.mean(x * x))) or 1.0


def _weighted(A: Array, b: Array, extra: int) -> tuple[Array, Array, float]:
    """Return unknowns, covariance and relative residual of least squares over samples.

    Args:
        A: `(n, r, m)`.
        b: `(n, r)`.
        extra: number of unknowns after the ten.
    """
    found = _solved(A, b, extra)
    scale = _size(b)
    W: Any = np.eye(A.shape[1])
    for _ in range(3):
        residual = b - A @ found
        if _size(residual) < EXACT * scale:
            break
        spread: Any = residual.T @ residual / len(residual)
        floor = 1e-12 * np.trace(spread) / len(spread)
        W = _linalg.inv(_linalg.cholesky(spread + floor * np.eye(len(spread))))
        found = _solved(W @ A, (W @ b[..., None])[..., 0], extra)
    WA: Any = W @ A
    left: Any = (W @ (b - A @ found)[..., None])[..., 0]
    inverse: Any = _linalg.pinv(np.einsum("nri,nrj->ij", WA, WA), hermitian=True, rcond=1e-20)
    # leave one sample out: its residual without the part that its own fit has taken away
    hat: Any = np.einsum("nri,ij,nsj->nrs", WA, inverse, WA)
    without: Any = (_linalg.pinv(np.eye(A.shape[1]) - hat) @ left[..., None])[..., 0]
    score: Any = np.einsum("nri,nr->ni", WA, without)
    covariance = inverse @ (score.T @ score) @ inverse
    return found, covariance, _size(b - A @ found) / scale


def _solved(A: Array, b: Array, extra: int) -> Array:
    """Return the least-squares solution; refuse what the rows do not determine."""
    flat, right = A.reshape(-1, A.shape[-1]), b.reshape(-1)
    size = _linalg.norm(flat, axis=0)
    if np.any(size == 0.0):
        _refuse(np.flatnonzero(size == 0.0).tolist(), extra)
    parts: Any = _linalg.svd(flat / size, full_matrices=False)
    U, sigma, Vt = parts
    open_ = sigma < DETERMINED * sigma[0]
    if open_.any():
        loose = np.abs(Vt[open_]).max(axis=0) > 1e-3
        _refuse(np.flatnonzero(loose).tolist(), extra)
    return (Vt.T @ ((U.T @ right) / sigma)) / size


def _refuse(places: list[int], extra: int) -> None:
    names = [NAMES[k] if k < 10 else f"momentum {k - 10}" for k in places if k < 10 + extra]
    raise InvalidValue(
        "the manoeuvre does not determine " + ", ".join(names) + ": turn the payload about other "
        "axes, move it along others, or record torques"
    )
