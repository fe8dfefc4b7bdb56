"""Quaternions, dual quaternions, poses, twists and wrenches, and small linear algebra on arrays."""

from remora.algebra import dual_quaternion, linear, pose, quaternion, screw, vector

__all__ = ["dual_quaternion", "linear", "pose", "quaternion", "screw", "vector"]
