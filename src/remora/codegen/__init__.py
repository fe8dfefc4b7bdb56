"""From a function on arrays to machine code; knows nothing of robots."""
