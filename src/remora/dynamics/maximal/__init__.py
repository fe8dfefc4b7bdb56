"""Maximal-coordinate formulations: VT18, decoupled Newton-Euler, and DM93's image space."""
