"""Derivatives of the dynamics, and the inertia regressor."""
