"""Twists, wrenches, inertia: the shifting law, VT18 eqs. 14-33 and Lemma 3."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from numeric import assert_close
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw, vector
from remora.algebra import quaternion as qt

number = st.floats(-10, 10)
units = (
    arrays(float, 4, elements=st.floats(-1, 1))
    .filter(lambda a: np.linalg.norm(a) > 0.1)
    .map(qt.normalize)
)
vectors = arrays(float, 3, elements=number)
poses = st.builds(pose.from_parts, units, vectors)
screws = arrays(float, 6, elements=number)
masses = st.sampled_from([1e-9, 1e-3, 1.0, 420.0, 1e9])


@given(poses, screws)
def test_adjoint_is_the_dual_quaternion_sandwich(x, s):
    """[VT18, eqs. 14, 18-21]."""
    sandwich = dq.mul(dq.mul(x, dq.pure(s)), dq.conjugate(x))
    scale = max(1.0, np.linalg.norm(s) * np.linalg.norm(x) ** 2)
    assert_close(screw.adjoint(x, s), dq.vec6(sandwich), scale=scale)
    assert_close(sandwich[[0, 4]], np.zeros(2), scale=scale)
    assert_close(screw.adjoint_matrix(x) @ s, screw.adjoint(x, s), scale=scale)
    assert_close(screw.adjoint_inverse(x, screw.adjoint(x, s)), s, scale=scale)


@given(vectors, screws)
def test_shifting_law(r, wrench):
    """A pure shift of the frame is the lever arm [VT18, eqs. 17, 18]."""
    scale = max(1.0, np.linalg.norm(r) * np.linalg.norm(wrench))
    at_q = screw.adjoint(pose.from_translation(r), wrench)
    assert_close(at_q, screw.shift(wrench, r), scale=scale)
    assert_close(at_q[3:], wrench[3:] + np.cross(r, wrench[:3]), scale=scale)


@given(poses, screws, screws)
def test_power_does_not_depend_on_the_frame(x, twist, wrench):
    scale = max(1.0, np.linalg.norm(twist) * np.linalg.norm(wrench) * np.linalg.norm(x) ** 4)
    moved = screw.power(screw.adjoint(x, twist), screw.adjoint(x, wrench))
    assert_close(moved, screw.power(twist, wrench), scale=scale)
    assert_close(
        screw.power(twist, wrench), twist[:3] @ wrench[3:] + twist[3:] @ wrench[:3], scale=scale
    )


@given(screws, screws)
def test_cross_is_the_dual_quaternion_cross(a, b):
    expected = dq.vec6(dq.cross(dq.pure(a), dq.pure(b)))
    assert_close(screw.cross(a, b), expected, scale=max(1.0, np.linalg.norm(a) * np.linalg.norm(b)))


def possible_inertia(rng, mass):
    points = rng.normal(size=(5, 3))
    second = mass * points.T @ points
    return np.trace(second) * np.eye(3) - second


@given(st.integers(0, 2**32 - 1), masses)
def test_lemma_3_and_momentum_in_eight_components(seed, mass):
    """[VT18, eqs. 22-29] in the paper's 8x8 form and in ours, about the centre of mass."""
    rng = np.random.default_rng(seed)
    mass, inertia, twist = np.asarray(mass), possible_inertia(rng, mass), rng.normal(size=6)
    M = screw.dual_inertia(mass, inertia)
    H = screw.H(M)
    a = rng.normal(size=8)
    assert_close(H @ a, M @ dq.swap(a), scale=np.abs(M).max() * 10)
    assert_close(screw.H_inverse(mass, inertia) @ H, np.eye(8), rtol=1e-11)
    ours = screw.momentum(screw.inertia(mass, np.zeros(3), inertia), twist)
    theirs = dq.vec6(H @ dq.pure(twist))
    assert_close(ours, theirs, rtol=1e-14, scale=np.abs(theirs).max())
    energy = 0.5 * dq.circle(dq.swap(dq.pure(twist)), M @ dq.swap(dq.pure(twist)))
    assert_close(
        screw.kinetic_energy(screw.inertia(mass, np.zeros(3), inertia), twist),
        energy, rtol=1e-14, scale=energy,
    )  # fmt: skip


@given(st.integers(0, 2**32 - 1), poses)
def test_inertia_moves_with_its_frame(seed, x):
    """Momentum and energy are the same whichever frame the inertia is written in."""
    rng = np.random.default_rng(seed)
    M = screw.inertia(np.asarray(2.5), rng.normal(size=3), possible_inertia(rng, 2.5))
    twist = rng.normal(size=6)
    there = screw.transform_inertia(screw.transform(x), M)
    twist_there = screw.adjoint(x, twist)
    scale = 1e2 * (1.0 + np.linalg.norm(pose.translation(x))) ** 3
    assert_close(
        screw.momentum(there, twist_there), screw.adjoint(x, screw.momentum(M, twist)), scale=scale
    )
    assert_close(
        screw.kinetic_energy(there, twist_there), screw.kinetic_energy(M, twist), scale=scale
    )
    matrix = screw.inertia_matrix(there)
    assert_close(matrix @ twist_there, screw.momentum(there, twist_there), scale=scale)
    symmetric = np.concatenate([matrix[3:], matrix[:3]])
    assert_close(symmetric, symmetric.T, rtol=1e-15)


def test_newton_euler_of_one_body(rng):
    """[VT18, eqs. 32, 33]: the rate of momentum in the body frame plus ω × H is the wrench.

    A body with its frame off its centre of mass spins freely: with the wrench zero, the momentum
    seen from the inertial frame must not change.
    """
    M = screw.inertia(np.asarray(3.0), rng.normal(size=3), possible_inertia(rng, 3.0))
    twist = rng.normal(size=6)
    H = screw.momentum(M, twist)
    rate = np.linalg.solve(screw.inertia_matrix(M), -screw.cross(twist, H))
    x, h = pose.from_parts(qt.normalize(rng.normal(size=4)), rng.normal(size=3)), 1e-5

    def inertial(t):
        moved = dq.mul(x, dq.exp(0.5 * (t * twist + 0.5 * t * t * rate)))
        return screw.adjoint(moved, screw.momentum(M, twist + t * rate))

    # central difference of a smooth function: error of order h² times its third derivative
    drift = (inertial(h) - inertial(-h)) / (2 * h)
    assert np.max(np.abs(drift)) < 1e-7 * np.max(np.abs(H))


def test_lemma_1_in_six_components(rng):
    x, a, b = (
        pose.from_parts(qt.normalize(rng.normal(size=4)), rng.normal(size=3)),
        *rng.normal(size=(2, 6)),
    )
    assert_close(
        screw.cross(screw.adjoint_inverse(x, a), screw.adjoint_inverse(x, b)),
        screw.adjoint_inverse(x, screw.cross(a, b)), rtol=1e-13,
    )  # fmt: skip
    assert vector.skew(a[:3]).shape == (3, 3)
