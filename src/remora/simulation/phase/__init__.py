"""Parts of the equations of one phase: loads, held joints, stops, Jacobian."""
