"""Inputs of a run: loads, profiles, prescribed motions, events, phases."""
