"""States in the layouts of other libraries."""
