"""Remora's own YAML robot files: reader and writer."""
