"""PTX kernels for NVIDIA GPUs."""
