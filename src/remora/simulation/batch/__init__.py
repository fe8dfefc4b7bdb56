"""Many runs at once, inside machine code."""
