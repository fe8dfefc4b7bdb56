"""Time integration inside machine code: compiled step loops."""
