"""Planning of motion: tasks, inverse kinematics, and joint speeds under limits."""
