"""Programs: loops and conditions around traced blocks, compiled for many runs at once."""
