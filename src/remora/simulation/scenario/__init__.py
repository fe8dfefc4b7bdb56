"""Scenario files: a whole run in YAML."""
