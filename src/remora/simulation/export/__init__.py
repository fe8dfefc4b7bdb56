"""Export of closed loops as C99."""
