"""Samples of a run, and every quantity that follows from them."""
