"""Export of components as C99."""
