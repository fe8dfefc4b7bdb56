"""Manipulability: ellipsoids of velocity, force and acceleration, and measures of them.

With J the Jacobian of what moves the frame (see `arm`) and S the chosen subspace of its twist:

| kind | unit ball of | ellipsoid of | matrix B, ellipsoid {B x : xᵀx = 1} |
| --- | --- | --- | --- |
| `kinematic` | joint speeds | velocities | S J [SPART17, eq. 50] |
| `static` | joint forces | forces that the frame can exert | (S J)⁻ᵀ |
| `dynamic` | joint forces | accelerations from rest | S J H⁻¹ [Y85] |

The semi-axes are the singular values of B: the square roots of the eigenvalues of B Bᵀ. (SPART17
below eq. 50 calls the eigenvalues themselves semi-axes squared.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra import linear, pose, singular_values, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, is_symbolic
from remora.analysis.arm import (
    arm_inertia,
    arm_jacobian,
    arm_length,
    arm_speeds,
    base_speeds,
    check_base,
    moving_joints,
)
from remora.analysis.subspaces import selection
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.kinematics import frame_pose
from remora.dynamics.refusals import needs_dynamics, without_constraints
from remora.errors import InvalidValue, ShapeError, UnknownName
from remora.model.numbers import finite
from remora.model.robot import FrameLike, Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot

#: Kinds of ellipsoids, and the limits that `scale="limits"` takes.
KINDS = {"kinematic": "velocity", "static": "effort", "dynamic": "effort"}
AXES = ("inertial", "frame")


class Manipulability(NamedTuple):
    """An ellipsoid at a frame, in k coordinates.

    Attributes:
        semi_axes: `(..., k)`, descending: velocities (m/s, rad/s), forces (N, N m) or accelerations
            per unit of joint speed or force.
        axes: `(..., k, k)`; column i is the direction of semi-axis i in the subspace's coordinates.
        center: position of the point in the inertial frame, `(..., 3)`, m.
        length: characteristic length, m; used if the subspace has angular and linear coordinates.
    """

    semi_axes: Array
    axes: Array
    center: Array
    length: float

    @property
    def volume(self) -> Array:
        """Yoshikawa's measure Π σ_i = √det(J Jᵀ), `(...)` [SPART17, eq. 51]."""
        return np.prod(self.semi_axes, axis=-1)

    @property
    def condition(self) -> Array:
        """Condition number, longest over shortest semi-axis, `(...)`; infinite if singular."""
        with np.errstate(divide="ignore"):
            return self.semi_axes[..., 0] / self.semi_axes[..., -1]

    @property
    def smallest(self) -> Array:
        """Shortest semi-axis, the smallest singular value, `(...)`."""
        return self.semi_axes[..., -1]


@takes_robot
@without_constraints
def manipulability(
    robot: Robot,
    q: ArrayLike,
    frame: FrameLike,
    base: str = "fixed",
    kind: str = "kinematic",
    subspace: str | ArrayLike = "translation",
    length: float | None = None,
    point: ArrayLike = (0.0, 0.0, 0.0),
    joints: Sequence[str] | None = None,
    scale: ArrayLike | str | None = None,
    axes: str = "inertial",
) -> Manipulability:
    """Return the manipulability ellipsoid of a frame [SPART17, eqs. 50, 51].

    Args:
        robot: the robot; a robot without a free base has the base "fixed".
        q: configuration, `(..., nq)`.
        frame: the name of a body or frame, the index of a body, or a Frame.
        base: "fixed": the vehicle is held; "flying": it is actuated like a joint; "floating": it
            recoils at zero momentum.
        kind: "kinematic", "static" or "dynamic", see the module's table. A static ellipsoid is
            infinite along directions in which the arm is singular.
        subspace: "translation", "rotation", "twist", "xy", "planar", ..., or rows `(k, 6)` on the
            twist [ω, v].
        length: characteristic length in m that multiplies angular rates (divides torques) where
            the subspace mixes both; default: the length of the arm.
        point: in the frame, `(3,)`, m.
        joints: names of the joints that move, the others are locked; default: all but the base.
        scale: joint speeds (kinematic) or forces that count as one unit, `(n,)`; "limits" for the
            joints' limits; default: 1 rad/s, 1 m/s, 1 N m, 1 N. A flying base has its six first.
        axes: of the subspace: "inertial", or "frame" for the frame's own.

    Raises:
        InvalidValue: if no joint of the arm moves the frame, or a limit that `scale` needs is
            missing.
        UnknownName: for an unknown base, kind, subspace, frame or joint.

    Example:
        >>> robot = rm.load("servicer")
        >>> q = rm.configuration(robot, {"shoulder_pitch": 0.5, "elbow_pitch": -1.0})
        >>> fixed = rm.manipulability(robot, q, "tool", base="fixed")
        >>> floating = rm.manipulability(robot, q, "tool", base="floating")
        >>> bool(floating.volume < fixed.volume)
        True
    """
    q = configuration(robot, q)
    size = characteristic_length(robot, frame, length)
    B = ellipsoid_matrix(
        robot, q, frame, base, kind, subspace, size, point, joints, scale, axes
    )  # fmt: skip
    sigma, U = semi_axes_of(B, kind)
    x = frame_pose(robot, q, frame)
    center = pose.transform_point(x, finite("point", point, 3))
    batch = batch_shape(q, sigma)
    return Manipulability(
        with_batch(sigma, batch, 1), with_batch(U, batch, 2), with_batch(center, batch, 1), size
    )


def semi_axes_of(B: Array, kind: str) -> tuple[Array, Array]:
    """Return semi-axes `(..., k)`, descending, and their directions as columns `(..., k, k)`.

    Args:
        B: matrix of the ellipsoid, from `ellipsoid_matrix`, `(..., k, n)`.
        kind: "kinematic", "static" or "dynamic".
    """
    U, sigma = singular_values.left_svd(B)
    if kind == "static":
        sigma, U = _reciprocal(sigma)[..., ::-1], U[..., :, ::-1]
    return sigma, U


def characteristic_length(robot: Robot, frame: FrameLike, length: float | None) -> float:
    """Return the characteristic length in m: as given, or the length of the arm."""
    moving_joints(robot, frame)  # or refuse
    if length is not None:
        return float(length)
    return arm_length(robot, frame) or 1.0


def ellipsoid_matrix(
    robot: Robot,
    q: Array,
    frame: FrameLike,
    base: str,
    kind: str,
    subspace: str | ArrayLike,
    length: float,
    point: ArrayLike = (0.0, 0.0, 0.0),
    joints: Sequence[str] | None = None,
    scale: ArrayLike | str | None = None,
    axes: str = "inertial",
) -> Array:
    """Return B `(..., k, n)`, see the module's table; for static ellipsoids S J itself."""
    if kind not in KINDS:
        raise UnknownName("kind of ellipsoid", kind, KINDS)
    if axes not in AXES:
        raise UnknownName("axes", axes, AXES)
    moving_joints(robot, frame)
    check_base(robot, base)
    S = selection(subspace, length)
    units = _units(robot, base, kind, joints, scale)
    J = S @ arm_jacobian(robot, q, frame, base, finite("point", point, 3), joints, axes)
    if kind == "kinematic":
        return J * units
    return (
        J / units
        if kind == "static"
        else unit_force_accelerations(robot, q, base, joints, J) * units
    )


@needs_dynamics
def unit_force_accelerations(
    robot: Robot, q: Array, base: str, joints: Sequence[str] | None, J: Array
) -> Array:
    """Return J H⁻¹, by a solve with the symmetric H."""
    H = arm_inertia(robot, q, base, joints)
    return vector.transpose(linear.solve(H, vector.transpose(J)))


def _units(
    robot: Robot, base: str, kind: str, joints: Sequence[str] | None, scale: ArrayLike | str | None
) -> Array:
    """Return what counts as one unit of each joint's speed or force, `(n,)`."""
    columns = arm_speeds(robot, joints)
    n = len(columns) + (base_speeds(robot) if base == "flying" else 0)
    if scale is None:
        return np.ones(n)
    if isinstance(scale, str):
        if scale != "limits":
            raise UnknownName("scale", scale, ["limits"])
        return _limits(robot, base, kind, columns)
    units = finite("scale", scale)
    if units.shape != (n,):
        raise ShapeError(f"scale must have shape ({n},), one for each joint, not {units.shape}")
    if not np.all(units > 0.0):
        raise InvalidValue("scale must be positive")
    return units


def _limits(robot: Robot, base: str, kind: str, columns: list[int]) -> Array:
    if base == "flying":
        raise InvalidValue("a flying base has no limits: pass scale as an array")
    found: list[float] = []
    for joint in robot.joints:
        if joint.mimic is not None:
            continue
        limits = asarray(getattr(joint.limits, KINDS[kind]))
        for k, place in enumerate(range(robot.nv)[joint.v]):
            if place in columns:
                if not 0.0 < limits[k] < np.inf:
                    raise InvalidValue(
                        f"joint {joint.name!r} has no {KINDS[kind]} limit, which scale='limits' "
                        "needs; give scale as an array"
                    )
                found.append(float(limits[k]))
    order = np.argsort(np.argsort(columns))
    return np.array(found)[order]


def _reciprocal(sigma: Array) -> Array:
    if is_symbolic(sigma):
        return 1.0 / sigma
    with np.errstate(divide="ignore"):
        return 1.0 / sigma
