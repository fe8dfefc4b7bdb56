"""References as components: motions of joints and of poses in time."""
