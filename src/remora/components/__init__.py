"""Components: what acts on a robot, and the signals between them."""
