"""Passive joint forces, and the equations of motion that integrators evaluate."""
