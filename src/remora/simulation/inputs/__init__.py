"""What acts on a robot during a run: loads, profiles, motions, phases."""
