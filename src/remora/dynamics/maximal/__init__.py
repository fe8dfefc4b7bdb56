"""Maximal-coordinate formulations: VT18's system, the decoupled one, DM93's image space."""
