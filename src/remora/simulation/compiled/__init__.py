"""Steps of single runs in machine code."""
