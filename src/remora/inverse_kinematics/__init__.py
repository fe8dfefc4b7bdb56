"""Inverse kinematics: tasks, closest configurations, and joint speeds under limits."""
