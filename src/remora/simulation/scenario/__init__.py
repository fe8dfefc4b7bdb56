"""Scenario files: a complete run described in YAML."""
