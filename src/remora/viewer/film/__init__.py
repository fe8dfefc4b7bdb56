"""Films and stills of a run, drawn by a browser without a window."""
