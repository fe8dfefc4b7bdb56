"""Maximal-coordinate formulations: VT18's Newton-Euler system, the decoupled one, DM93's image space."""
