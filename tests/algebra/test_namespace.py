"""What counts as an array of symbols, and what as numbers."""

import casadi
import numpy as np
import pytest

from remora.algebra.array_ops import asarray, is_symbolic


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, ">f8", int, bool, object])
def test_all_numbers_become_doubles(dtype):
    x = asarray(np.ones((2, 3), dtype=dtype))
    assert x.dtype == np.float64
    assert x.dtype.isnative
    assert np.array_equal(x, np.ones((2, 3)))
    assert asarray([np.ones(2, dtype=dtype), [3, 4]]).dtype == np.float64
    assert asarray(np.array(1, dtype=dtype)).shape == ()


def test_doubles_and_symbols_are_not_copied():
    x = np.ones(3)
    assert asarray(x) is x
    mixed = np.array([0.0, casadi.SX.sym("a"), 1.0], dtype=object)
    assert asarray(mixed) is mixed
    assert is_symbolic(asarray([np.zeros(3), mixed]))


def test_the_search_stops_at_the_first_symbol():
    class Hostile:
        @property
        def __class__(self):
            raise AssertionError("looked at")

    mixed = np.array([casadi.SX.sym("a"), Hostile()], dtype=object)
    assert asarray(mixed) is mixed


@pytest.mark.parametrize("odd", ["x", object(), [1, 2]])
def test_other_objects_are_no_numbers(odd):
    x = np.empty(2, dtype=object)
    x[0], x[1] = 1.0, odd
    with pytest.raises((TypeError, ValueError)):
        asarray(x)
