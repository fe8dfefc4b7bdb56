"""Constants of the step size control of adaptive methods [HNW93, section II.4]."""

#: Limits of the ratio of successive step sizes, and safety factor.
SHRINK, GROW, SAFETY = 0.2, 8.0, 0.9
#: Times closer than this many units in the last place are considered equal.
CLOSE = 8.0
