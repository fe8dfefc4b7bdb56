"""A short run of the servicer, shared by the tests of the viewer."""

import numpy as np
import pytest

import remora as rm


@pytest.fixture(scope="session")
def run():
    """Return 4 s in which the arm unfolds and the base answers, with a push on the tool."""
    robot = rm.load("servicer")
    q = rm.neutral(robot)
    start, stop = np.radians([0, -60, 0, 90, 0, -40, 0]), np.radians([40, 20, 10, -30, 10, 40, 0])
    q[8:] = start
    moves = {
        joint.name: rm.Motion.between(0.2, 3.8, start[k], stop[k])
        for k, joint in enumerate(robot.joints[1:])
    }
    wrenches = np.zeros((len(robot.bodies), 6))
    wrenches[-1, 0] = 1.0
    return rm.simulate(
        robot,
        q,
        np.zeros(robot.nv),
        4.0,
        prescribed=moves,
        wrenches=wrenches,
        record=rm.Record(0.05, progress=False),
        integrator=rm.Integrator(rtol=1e-6, atol=1e-8),
    )
