"""What a robot is, and how one is described, read and checked."""
