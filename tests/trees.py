"""Random trees for the dynamics tests: every joint kind, every base kind, loads, gravity."""

import numpy as np

import remora as rm

BASES = tuple(rm.JOINT_TYPES)
TREES = range(80)
#: A seed of `rm.random_robot` for which ten bodies are on joints of all ten types.
EVERY_KIND = 856


class Case:
    """A random robot with a random state, forces, accelerations and external wrenches."""

    def __init__(self, seed, largest=30, kinds=None, base=None):
        rng = np.random.default_rng(1000 + seed)
        base = base or BASES[seed % len(BASES)]
        bodies = int(rng.integers(1, largest + 1))
        self.robot = rm.random_robot(rng, bodies=bodies, kinds=kinds, base=base, gravity=True)
        self.q, self.v = rm.random_state(self.robot, rng)
        self.tau = rng.normal(size=self.robot.nv) * 5.0
        self.vdot = rng.normal(size=self.robot.nv)
        self.wrenches = rng.normal(size=(bodies, 6)) * 3.0
        self.rng = rng

    @property
    def state(self):
        return self.robot, self.q, self.v


def relative_error(actual, expected):
    """Largest difference relative to the largest entry."""
    size = np.max(np.abs(expected), initial=1e-300)
    return np.max(np.abs(np.asarray(actual) - expected), initial=0.0) / size
