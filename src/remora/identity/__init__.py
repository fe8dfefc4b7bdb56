"""Identity by value: digests of data, functions and source files, used as cache keys."""
