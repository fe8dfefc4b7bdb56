"""The robot model: its data, joint types and state, and how it is built and loaded."""
