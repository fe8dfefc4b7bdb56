"""Runs on disk: written while they go on, read, and resumed from checkpoints."""
