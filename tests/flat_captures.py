"""Two bodies in a plane that capture each other, for the tests of batches with switches."""

import numpy as np

import remora as rm

REACH = {"distance": 0.1, "angle": 1.0, "speed": 0.5}


def flat(*more):
    """Return two bodies in a plane, grasps between them that are off, and where they touch."""
    builder = rm.Builder("flat").body("bus", mass=20.0, com=(0.1, 0, 0), inertia=(2, 3, 4))
    builder = builder.joint("bus", "planar", None, "bus", axis=(0, 0, 1))
    builder = builder.body("target", mass=8.0, com=(0.2, 0.1, 0), inertia=(0.8, 1.1, 1.3))
    builder = builder.joint("target", "planar", None, "target", axis=(0, 0, 1))
    builder = builder.frame("grapple", "bus", xyz=(0.8, 0, 0))
    robot = builder.frame("fixture", "target", xyz=(-0.3, 0, 0)).build()
    for name in ("grasp", *more):
        robot = rm.loops.add_constraint(robot, name, "fixed", "grapple", "fixture", active=False)
    return robot, np.array([0.0, 0, 0, 1.1, 0, 0])


def dispersed(runs, gap=0.2, seed=0):
    """Return states of `flat` that approach with different velocities."""
    rng = np.random.default_rng(seed)
    q = flat()[1] + np.array([0, 0, 0, gap, 0, 0.1])
    v = np.array([0.0, 0, 0, -0.3, 0.02, 0.1]) + 0.02 * rng.normal(size=(runs, 6))
    return np.tile(q, (runs, 1)), v


def capture_phases(robot):
    """Return approach, stack and release."""
    reach = rm.capture_events(robot, "grapple", "fixture", **REACH)
    return [
        rm.Phase(3.0, events=reach, name="approach"),
        rm.Phase(0.5, activate="grasp", latch=True, after_event=True, name="stack"),
        rm.Phase(0.5, release="grasp", separation={"grasp": (0.2, 0.0, 0.0)}, name="release"),
    ]


def close(a, b):
    """Return whether two arrays agree to 1e-12 of their size."""
    return np.abs(np.asarray(a) - b).max() <= 1e-12 * max(1.0, np.abs(np.asarray(b)).max())


def same_switches(batch, k, run):
    """Assert that the switches of a run of a batch are those of a single run."""
    seen = [s for s in batch.switches if np.isfinite(s.t[k])]
    assert len(seen) == len(run.switches)
    for mine, alone in zip(seen, run.switches, strict=True):
        assert mine.phase == alone.phase
        assert (mine.activated, mine.released) == (alone.activated, alone.released)
        assert close(mine.t[k], alone.t)
        assert mine.impulses.keys() == alone.impulses.keys()
        for name, impulse in alone.impulses.items():
            assert close(mine.impulses[name][k], impulse)
        assert close(mine.energy_loss[k], alone.energy_loss)
        assert close(mine.separation_work[k], alone.separation_work)
        for name, numbers in alone.latched.items():
            for key, value in numbers.items():
                assert close(mine.latched[name][key][k], value)
