"""Recordings: samples of a run, and the quantities derived from them."""
