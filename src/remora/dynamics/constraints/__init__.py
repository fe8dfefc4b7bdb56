"""Dynamics with active constraints: loops between bodies, rods and gears."""
