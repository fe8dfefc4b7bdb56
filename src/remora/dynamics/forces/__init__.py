"""Joint forces and the equations of motion that integrators see."""
