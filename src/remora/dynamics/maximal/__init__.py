"""Maximal-coordinate formulations: VT18, decoupled, and the image space of DM93."""
