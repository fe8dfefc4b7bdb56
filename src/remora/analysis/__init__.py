"""Analysis of robots and of measured or simulated data."""
