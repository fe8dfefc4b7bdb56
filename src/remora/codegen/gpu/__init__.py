"""Graphs as PTX kernels for NVIDIA GPUs."""
