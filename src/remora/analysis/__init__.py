"""Analysis of robots: manipulability, workspaces, identification; waveforms of measured data."""
