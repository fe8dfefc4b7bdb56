"""Kinematics, momentum and dynamics: one formulation per file, the same signatures."""
