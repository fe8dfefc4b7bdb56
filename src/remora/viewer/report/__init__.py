"""HTML reports and stand-alone pages of a run."""
