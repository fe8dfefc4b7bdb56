"""Kinematics, momentum and dynamics of robots; every formulation has the same signatures."""
