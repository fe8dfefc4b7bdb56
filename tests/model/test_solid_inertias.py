"""Inertias of solids against integrals of their points, and against each other."""

import casadi
import numpy as np
import pytest

import remora as rm


def integral(inside, low, high, n=120):
    """Return the inertia per mass of a homogeneous solid by the midpoint rule."""
    axes = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b in zip(low, high, strict=True)]
    p = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    p = p[inside(p)]
    square = np.mean(np.sum(p**2, axis=1))
    return square * np.eye(3) - p.T @ p / len(p)


def test_box():
    size = np.array([0.4, 1.0, 2.5])
    expected = 7.0 * integral(lambda p: np.full(len(p), True), -size / 2, size / 2)
    np.testing.assert_allclose(rm.box_inertia(7.0, size), expected, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_cylinder(axis):
    k, r, length = "xyz".index(axis), 0.3, 1.7
    half = np.full(3, r)
    half[k] = length / 2
    expected = 5.0 * integral(
        lambda p: np.sum(np.delete(p, k, axis=1) ** 2, axis=1) < r**2, -half, half
    )
    found = rm.cylinder_inertia(5.0, r, length, axis)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-12)


def test_sphere():
    half = np.full(3, 0.8)
    expected = 2.0 * integral(lambda p: np.sum(p**2, axis=1) < 0.64, -half, half)
    np.testing.assert_allclose(rm.sphere_inertia(2.0, 0.8), expected, rtol=2e-3, atol=1e-12)


def test_batches_and_symbols():
    masses, sizes = np.array([[1.0], [2.0]]), np.arange(1.0, 10.0).reshape(3, 3)
    many = rm.box_inertia(masses, sizes)
    assert many.shape == (2, 3, 3, 3)
    assert np.array_equal(many[1, 2], rm.box_inertia(2.0, sizes[2]))
    m = casadi.SX.sym("m")
    for found, expected in (
        (rm.box_inertia(m, sizes[0]), rm.box_inertia(3.0, sizes[0])),
        (rm.cylinder_inertia(m, 0.2, 0.5), rm.cylinder_inertia(3.0, 0.2, 0.5)),
        (rm.cylinder_inertia(3.0, 0.2 * m / 3.0, 0.5), rm.cylinder_inertia(3.0, 0.2, 0.5)),
        (rm.sphere_inertia(3.0, m), rm.sphere_inertia(3.0, 3.0)),
    ):
        assert found.dtype == object
        f = casadi.Function("f", [m], [casadi.vertcat(*found.ravel().tolist())])
        np.testing.assert_allclose(np.array(f(3.0)).reshape(3, 3), expected, rtol=1e-15)
    assert rm.box_inertia(m, sizes).shape == (3, 3, 3)


def test_a_robot_of_solids_is_consistent():
    robot = (
        rm.Builder("solids")
        .body("bus", 100.0, inertia=rm.box_inertia(100.0, (1.0, 1.0, 2.0)))
        .body("boom", 5.0, (0.5, 0, 0), rm.cylinder_inertia(5.0, 0.05, 1.0, "x"))
        .body("ball", 2.0, inertia=rm.sphere_inertia(2.0, 0.1))
        .joint("shoulder", "revolute", "bus", "boom")
        .joint("wrist", "spherical", "boom", "ball", xyz=(1.0, 0, 0))
        .build()
    )
    assert robot.warnings == ()


def test_refusals():
    with pytest.raises(rm.errors.InvalidValue, match="mass must not be negative"):
        rm.box_inertia(-1.0, (1, 1, 1))
    with pytest.raises(rm.errors.ShapeError, match="size must have shape"):
        rm.box_inertia(1.0, (1, 1))
    with pytest.raises(rm.errors.InvalidValue, match="radius"):
        rm.sphere_inertia(1.0, np.inf)
    with pytest.raises(rm.errors.UnknownName, match="no axis named 'w'; known: x, y, z"):
        rm.cylinder_inertia(1.0, 1.0, 1.0, "w")
