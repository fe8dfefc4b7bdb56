"""FPG11: singularity-free Lagrangian dynamics, reduced models, equivalent manipulator."""
