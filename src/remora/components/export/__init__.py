"""Export of components and closed loops as C99."""
