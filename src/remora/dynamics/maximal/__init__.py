"""Maximal-coordinate formulations: VT18's Newton-Euler system and the decoupled one."""
