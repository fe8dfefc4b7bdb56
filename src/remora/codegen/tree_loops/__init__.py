"""Recursions over large trees as loops instead of straight-line code."""
