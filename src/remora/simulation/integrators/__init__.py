"""Integration methods as data, their steps, and the error scale."""
