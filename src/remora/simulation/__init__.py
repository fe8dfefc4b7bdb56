"""Runs: a robot moved through time, and what is kept of it."""
