"""Control laws: what a controller orders from what it sees."""
