"""The program of a run: its equations, blocks, steps, events and records, for any number of runs."""
