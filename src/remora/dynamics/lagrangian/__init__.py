"""FPG11: Lagrange's equations without singularities, reduced models, equivalent manipulator."""
