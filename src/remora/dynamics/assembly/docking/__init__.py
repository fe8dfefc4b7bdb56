"""Modules that dock and undock during a run, at a cost that the path to the root determines."""
