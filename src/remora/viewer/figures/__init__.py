"""Matplotlib figures of a run."""
