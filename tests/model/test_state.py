"""States: shapes, refusals, moving along the tangent."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.errors import InvalidValue, RemoraError
from remora.model.state import compensated_sum
from sliders import slider

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
            "not a pose",
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
        rm.dynamics.accelerations(ROBOT, q, v, v * np.nan)


def one_joint(kind="revolute", **options):
    body = rm.Builder().body("a", mass=1, inertia=(1, 1, 1))
    return body.joint("j", kind, None, "a", **options).build()


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1e-200, 1e200])
def test_normalize_refuses_a_quaternion_without_a_direction(scale):
    q, _ = rm.random_state(ROBOT, 0, 3)
    first = ROBOT.joints[0].name
    spoilt = q.copy()
    spoilt[1, :4] *= scale
    with pytest.raises(InvalidValue, match=f"quaternion of joint '{first}', is zero"):
        rm.normalize(ROBOT, spoilt)
    with pytest.raises(InvalidValue, match="quaternion of joint 'j'"):
        rm.normalize(one_joint("spherical"), np.array([scale, 0, 0, 0]))
    assert_close(rm.normalize(one_joint("spherical"), [3.0, 0, 0, 4.0]), [0.6, 0, 0, 0.8])


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(5.0, np.inf), (-np.inf, -5.0), (-1.0, np.inf), (-np.inf, 0.0), (1e308, np.inf),
     (-1e308, 1e308), (-1.7e308, 1.7e308), (2.0, 2.0), (1e-300, 1.0)],
)  # fmt: skip
def test_random_states_keep_one_sided_and_huge_limits(lower, upper):
    q, _ = rm.random_state(one_joint(lower=lower, upper=upper), 0, 200)
    assert np.all(np.isfinite(q))
    assert np.all((q >= lower) & (q <= upper))
    mixed = one_joint("planar", lower=(3.0, -np.inf, -0.1), upper=(np.inf, -3.0, 0.1))
    q, _ = rm.random_state(mixed, 0, 200)
    assert np.all((q >= mixed.joints[0].limits.lower) & (q <= mixed.joints[0].limits.upper))


def test_a_batch_may_be_a_number():
    for batch in (3, np.int64(3)):
        for one, other in zip(
            rm.random_state(ROBOT, 1, batch), rm.random_state(ROBOT, 1, (3,)), strict=True
        ):
            assert np.array_equal(one, other)
    for batch in (-1, (2, -1)):
        with pytest.raises(InvalidValue, match=r"batch=.*negative"):
            rm.random_state(ROBOT, 1, batch)


def test_objects_without_symbols_are_numbers():
    """An object array of floats is checked, and computed with, like any other."""
    q, v = rm.random_state(ROBOT, 4)
    xi = rm.twists(ROBOT, q.astype(object), v.astype(object))
    assert xi.dtype == np.float64
    assert np.array_equal(xi, rm.twists(ROBOT, q, v))
    with pytest.raises(RemoraError, match="v holds values that are not finite"):
        rm.twists(ROBOT, q, (v * np.nan).astype(object))
    with pytest.raises(RemoraError, match="not of unit length"):
        rm.poses(ROBOT, (2 * q).astype(object))
    with pytest.raises(RemoraError, match="q is not numeric"):
        rm.poses(ROBOT, np.full(ROBOT.nq, "x", dtype=object))


def test_narrow_floats_are_computed_with_as_doubles():
    q, v = rm.random_state(ROBOT, 4)
    for narrow in (np.float32, np.float16, np.longdouble):
        few = v.astype(narrow)
        xi = rm.twists(ROBOT, q, few)
        assert xi.dtype == np.float64
        assert np.array_equal(xi, rm.twists(ROBOT, q, few.astype(float)))


def test_compensated_sums_do_not_lose_small_changes():
    robot = slider()
    parts, rests = (np.ones(1), np.ones(1)), (np.zeros(1), np.zeros(1))
    for _ in range(1000):
        found = compensated_sum(robot, np.array([1e-17, 3e-17]), parts, rests)
        parts, rests = found[:2], found[2:]
    assert parts[0][0] - 1.0 == pytest.approx(1e-14, abs=2e-16)
    assert parts[1][0] - 1.0 == pytest.approx(3e-14, abs=2e-16)
