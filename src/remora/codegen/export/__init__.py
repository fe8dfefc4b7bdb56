"""C99 source and object files for flight processors."""
