"""Recursive algorithms: RNEA, ABA, CRBA, Coriolis matrix."""
