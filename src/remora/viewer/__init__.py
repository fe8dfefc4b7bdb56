"""Visualization of robots and runs: browser pages, figures, reports and stand-alone HTML files."""
