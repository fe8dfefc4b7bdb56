"""Compilation of functions on arrays to machine code, independent of robots."""
