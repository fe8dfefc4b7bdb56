"""Integrators: Runge-Kutta tableaus, Radau IIA, the variational midpoint rule, error scales."""
