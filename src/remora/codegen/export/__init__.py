"""Export to C99 source and to object files for flight processors."""
