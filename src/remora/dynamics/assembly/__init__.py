"""SA24: robots composed of subsystems at the level of twists and wrenches, black boxes included."""
