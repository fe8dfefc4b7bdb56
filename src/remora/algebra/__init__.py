"""Quaternions, dual quaternions, poses, screws and small linear algebra; no robots here."""

from remora.algebra import dual_quaternion, linear, pose, quaternion, screw, vector

__all__ = ["dual_quaternion", "linear", "pose", "quaternion", "screw", "vector"]
