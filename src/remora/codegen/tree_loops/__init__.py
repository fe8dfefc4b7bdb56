"""Recursions over large trees compiled as loops instead of straight-line code."""
