"""Recursive algorithms: RNEA, ABA, CRBA and the Coriolis matrix."""
