"""Compilation of functions of a robot to machine code: `rm.compile`."""
