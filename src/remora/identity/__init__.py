"""Identity by value: one digest of data, functions and source files."""
