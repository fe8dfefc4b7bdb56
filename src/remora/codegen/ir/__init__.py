"""Expression graph: tracing, optimization passes, and checks of kernel arguments."""
