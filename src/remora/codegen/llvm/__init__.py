"""LLVM back end for the host CPU: lowering to IR, compilation, fast calls."""
