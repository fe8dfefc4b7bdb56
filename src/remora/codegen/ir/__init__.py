"""The expression graph: tracing, passes over it, and the arguments of kernels."""
