"""Monte Carlo campaigns: dispersed runs of a scenario, computed in blocks, stored and reported."""
