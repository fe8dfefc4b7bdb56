"""Random trees for the dynamics tests: every joint kind, every base kind, loads, gravity."""

import dataclasses

import numpy as np

import remora as rm

BASES = tuple(rm.JOINT_TYPES)
TREES = range(80)
#: A seed of `rm.random_robot` for which ten bodies are on joints of all ten types.
EVERY_KIND = 856


def with_rotors(robot, rng):
    """Return a robot whose joints, but for the base, have drives with random rotor inertias."""
    geared = [
        dataclasses.replace(joint, rotor_inertia=rng.uniform(0.05, 0.5, joint.rotor_inertia.shape))
        for joint in robot.joints[1:]
    ]
    return robot.replace(joints=[robot.joints[0], *geared])


class Case:
    """A random robot with a random state, forces, accelerations and external wrenches."""

    def __init__(self, seed, largest=30, kinds=None, base=None, rotors=False):
        rng = np.random.default_rng(1000 + seed)
        base = base or BASES[seed % len(BASES)]
        bodies = int(rng.integers(1, largest + 1))
        self.robot = rm.random_robot(rng, bodies=bodies, kinds=kinds, base=base, gravity=True)
        self.q, self.v = rm.random_state(self.robot, rng)
        self.tau = rng.normal(size=self.robot.nv) * 5.0
        self.vdot = rng.normal(size=self.robot.nv)
        self.wrenches = rng.normal(size=(bodies, 6)) * 3.0
        self.robot = with_rotors(self.robot, rng) if rotors else self.robot
        self.rng = rng

    @property
    def state(self):
        return self.robot, self.q, self.v


def relative_error(actual, expected):
    """Largest difference relative to the largest entry."""
    size = np.max(np.abs(expected), initial=1e-300)
    return np.max(np.abs(np.asarray(actual) - expected), initial=0.0) / size
