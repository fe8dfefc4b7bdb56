"""Runs on disk: saved as they progress, read back, and resumed from checkpoints."""
