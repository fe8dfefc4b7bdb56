"""Simulation of a robot over time, and the recording of its runs."""
