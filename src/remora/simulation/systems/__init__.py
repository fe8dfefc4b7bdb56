"""Components of systems in a run: equations, kernels, evaluation, noise."""
