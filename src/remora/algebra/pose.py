"""Poses as unit dual quaternions, and conversions to matrices, quaternions and angles."""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion, quaternion, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate


def from_parts(r: Array, p: Array) -> Array:
    """Return the pose x = r + ε ½ p r of orientation r and position p (in the outer frame)."""
    return concatenate([r, 0.5 * quaternion.mul(quaternion.pure(p), r)])


def from_quaternion(r: Array) -> Array:
    """Return the pose of a pure rotation, `(..., 4) -> (..., 8)`."""
    return concatenate([r, np.zeros_like(r)])


def from_translation(p: Array) -> Array:
    """Return the pose of a pure translation, `(..., 3) -> (..., 8)`."""
    one = np.broadcast_to(quaternion.identity(), (*p.shape[:-1], 4))
    return concatenate([one, quaternion.pure(0.5 * p)])


def rotation(x: Array) -> Array:
    """Return the orientation r_ab as a quaternion, `(..., 8) -> (..., 4)`."""
    return x[..., :4]


def translation(x: Array) -> Array:
    """Return the position p = 2 d r* of B's origin in A, `(..., 8) -> (..., 3)`."""
    w, v, dw, dv = x[..., :1], x[..., 1:4], x[..., 4:5], x[..., 5:]
    return 2.0 * (w * dv - dw * v + vector.cross(v, dv))


def to_rotation_matrix(x: Array) -> Array:
    """Return R_ab, `(..., 8) -> (..., 3, 3)`."""
    return quaternion.to_matrix(x[..., :4])


def from_rotation_matrix(R: Array, p: Array | None = None) -> Array:
    """Return the pose of a rotation matrix and (if given) a position."""
    r = quaternion.from_matrix(R)
    return from_quaternion(r) if p is None else from_parts(r, p)


def to_matrix(x: Array) -> Array:
    """Return the homogeneous matrix [R p; 0 1], `(..., 8) -> (..., 4, 4)`."""
    top = concatenate([to_rotation_matrix(x), translation(x)[..., None]])
    last = np.broadcast_to(np.array([[0.0, 0.0, 0.0, 1.0]]), (*top.shape[:-2], 1, 4))
    return concatenate([top, last], trailing=2)


def from_matrix(T: Array) -> Array:
    """Return the pose of a homogeneous matrix, `(..., 4, 4) -> (..., 8)`."""
    return from_rotation_matrix(T[..., :3, :3], T[..., :3, 3])


def from_xyz_rpy(xyz: ArrayLike, rpy: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Return the pose of a position and roll-pitch-yaw angles, as a URDF `<origin>` gives it."""
    return from_parts(quaternion.from_rpy(asarray(rpy)), asarray(xyz))


def to_rpy(x: Array) -> Array:
    """Return roll, pitch and yaw of the orientation, `(..., 8) -> (..., 3)`."""
    return quaternion.to_rpy(x[..., :4])


def from_axis_angle(axis: Array, angle: Array) -> Array:
    """Return the pose of a rotation by `angle` `(...)` about the unit vector `axis` `(..., 3)`."""
    return from_quaternion(quaternion.from_axis_angle(axis, angle))


def to_axis_angle(x: Array) -> tuple[Array, Array]:
    """Return axis `(..., 3)` and angle `(...)` in [0, π] of the orientation."""
    return quaternion.to_axis_angle(x[..., :4])


def compose(*poses: Array) -> Array:
    """Return the product of poses from outer to inner: x_ad = x_ab x_bc x_cd."""
    result = poses[0]
    for x in poses[1:]:
        result = dual_quaternion.mul(result, x)
    return result


def transform_point(x: Array, p: Array) -> Array:
    """Return A's coordinates of a point given in B, for x = x_ab: r p r* + p_ab."""
    return quaternion.rotate(x[..., :4], p) + translation(x)
