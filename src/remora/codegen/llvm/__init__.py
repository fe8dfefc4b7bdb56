"""Graphs lowered to LLVM IR and compiled for the processor at hand."""
