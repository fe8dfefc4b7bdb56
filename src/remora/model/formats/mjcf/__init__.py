"""MJCF files, compiled by MuJoCo."""
