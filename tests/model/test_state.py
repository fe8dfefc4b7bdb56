"""States: shapes, refusals, moving along the tangent."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.errors import RemoraError

ROBOT = rm.random_robot(8, bodies=12)


def test_random_states_are_reproducible_valid_and_within_limits():
    q, v = rm.random_state(ROBOT, 7)
    again, _ = rm.random_state(ROBOT, 7)
    assert np.array_equal(q, again)
    assert q.shape == (ROBOT.nq,)
    assert v.shape == (ROBOT.nv,)
    assert rm.random_state(ROBOT, 7, batch=(2, 0))[0].shape == (2, 0, ROBOT.nq)
    limited = (
        rm.Builder()
        .body("a", mass=1, inertia=(1, 1, 1))
        .body("b", mass=1, inertia=(1, 1, 1))
        .joint("j", "revolute", "a", "b", lower=0.1, upper=0.2)
        .build()
    )
    q, _ = rm.random_state(limited, 0, batch=(100,))
    assert np.all((q[:, 8] >= 0.1) & (q[:, 8] <= 0.2))


def test_integrate_and_difference_on_a_whole_robot(rng):
    q, _ = rm.random_state(ROBOT, rng, batch=(20,))
    step = rng.normal(size=(20, ROBOT.nv)) * 0.5  # less than half a turn
    assert_close(rm.difference(ROBOT, q, rm.integrate(ROBOT, q, step)), step, rtol=1e-13)


def test_normalize_repairs_what_drifted(rng):
    q, _ = rm.random_state(ROBOT, rng)
    spoilt = q * (1.0 + 1e-3 * rng.normal(size=q.shape))
    with pytest.raises(RemoraError, match=r"rm\.normalize"):
        rm.poses(ROBOT, spoilt)
    x = rm.poses(ROBOT, rm.normalize(ROBOT, spoilt))
    assert_close(np.linalg.norm(x[:, :4], axis=-1), np.ones(len(x)), rtol=1e-14)
    assert_close(rm.normalize(ROBOT, q), q, rtol=1e-15)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda q: q[:-1], "must have shape"),
        (lambda q: np.append(q, 0.0), "must have shape"),
        (lambda q: np.where(np.arange(q.size) == 9, np.nan, q), "not finite"),
        (lambda q: np.where(np.arange(q.size) == 9, np.inf, q), "not finite"),
        (lambda q: np.where(np.arange(q.size) < 4, 2 * q, q), "not of unit length"),
        (lambda q: np.where(np.arange(q.size) < 4, 0 * q, q), "not of unit length"),
        (
            lambda q: np.where((np.arange(q.size) > 3) & (np.arange(q.size) < 8), q[0:1] + 1, q),
            "no pose",
        ),
        (lambda q: "nonsense", "not numeric"),
        (lambda q: 3.0, "must have shape"),
    ],
)
def test_bad_configurations_are_refused(spoil, reason):
    q, v = rm.random_state(ROBOT, 2)
    for function in (rm.poses, rm.center_of_mass):
        with pytest.raises(RemoraError, match=reason):
            function(ROBOT, spoil(q))
    with pytest.raises(RemoraError, match="v must have shape"):
        rm.twists(ROBOT, q, v[:-1])
    with pytest.raises(RemoraError, match="vdot holds values that are not finite"):
        rm.accelerations(ROBOT, q, v, v * np.nan)
