"""Kernels of a robot that runs share: `dynamics.kernels.kernel_memory` under the engine's name."""

from remora.dynamics.kernels.kernel_memory import kernel

__all__ = ["kernel"]
