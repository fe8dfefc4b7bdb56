"""Batches: many runs at once in compiled code."""
