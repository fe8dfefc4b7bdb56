"""Components that act on a robot, and systems of a robot with components and signals."""
