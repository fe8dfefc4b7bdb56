"""What acts on a robot from its surroundings, and between its bodies."""
